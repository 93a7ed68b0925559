//! One header block.
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0..100 | name | |
//! | 100..108 | mode | numbers are octal, or, with the highest bit set, big-endian in base 256 (GNU) |
//! | 108..116, 116..124 | uid, gid | |
//! | 124..136 | size | |
//! | 136..148 | time | seconds |
//! | 148..156 | checksum | the sum of all bytes, these eight taken as spaces |
//! | 156 | type | |
//! | 157..257 | link | |
//! | 257..265 | magic, version | `ustar\0` `00` of POSIX, `ustar  \0` of GNU; v7 has none |
//! | 265..297, 297..329 | names of user and group | |
//! | 329..337, 337..345 | device: major, minor | |
//! | 345..500 | prefix of the name | POSIX alone; GNU has times and holes there |

use std::ops::Range;

use super::{BLOCK_BYTES, Block};

pub const NAME: Range<usize> = 0..100;
pub const MODE: Range<usize> = 100..108;
pub const UID: Range<usize> = 108..116;
pub const GID: Range<usize> = 116..124;
pub const SIZE: Range<usize> = 124..136;
pub const TIME: Range<usize> = 136..148;
pub const CHECKSUM: Range<usize> = 148..156;
pub const TYPE: usize = 156;
pub const LINK: Range<usize> = 157..257;
pub const MAGIC: Range<usize> = 257..265;
pub const USER: Range<usize> = 265..297;
pub const GROUP: Range<usize> = 297..329;
pub const MAJOR: Range<usize> = 329..337;
pub const MINOR: Range<usize> = 337..345;
pub const PREFIX: Range<usize> = 345..500;

/// Magic and version of POSIX.
pub const USTAR: &[u8; 8] = b"ustar\x0000";

/// The sum of all bytes, those of the checksum taken as spaces.
pub fn checksum(block: &Block) -> u64 {
    let all: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
    let own: u64 = block[CHECKSUM].iter().map(|&byte| u64::from(byte)).sum();
    all - own + CHECKSUM.len() as u64 * u64::from(b' ')
}

/// The same as some old programs make it, of signed bytes.
fn signed_checksum(block: &Block) -> i64 {
    let sum = |bytes: &[u8]| -> i64 { bytes.iter().map(|&byte| i64::from(byte as i8)).sum() };
    sum(block) - sum(&block[CHECKSUM]) + CHECKSUM.len() as i64 * i64::from(b' ')
}

/// Whether the checksum that a block names is that of the block.
pub fn has_right_checksum(block: &Block) -> bool {
    let Some(named) = number(&block[CHECKSUM]) else {
        return false;
    };
    i128::from(named) == i128::from(checksum(block)) || named == signed_checksum(block)
}

/// Whether all of a block is zeros: the end of an archive.
pub fn is_zero(block: &Block) -> bool {
    block.iter().all(|&byte| byte == 0)
}

/// A field of text: up to the first NUL.
pub fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&byte| byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// A number, octal or in base 256; an empty field is 0. Nothing where it is no number, or none of 64 bits.
pub fn number(field: &[u8]) -> Option<i64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 == 0 {
        return octal(field);
    }
    // Two's complement; the highest bit is the mark, the next one the sign.
    let is_negative = first & 0x40 != 0;
    let high = i128::from(first & 0x3f) - if is_negative { 0x40 } else { 0 };
    let value = rest.iter().try_fold(high, |value, &byte| {
        value.checked_mul(256)?.checked_add(i128::from(byte))
    })?;
    i64::try_from(value).ok()
}

/// Octal digits, behind spaces and in front of spaces or NULs.
fn octal(field: &[u8]) -> Option<i64> {
    let start = field.iter().position(|&byte| byte != b' ');
    let field = &field[start.unwrap_or(field.len())..];
    let count = field
        .iter()
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .count();
    let (digits, behind) = field.split_at(count);
    if !behind.iter().all(|&byte| byte == b' ' || byte == 0) {
        // Some programs leave something behind the NUL that ends the number.
        let is_ended = behind.first().is_some_and(|&byte| byte == 0);
        if !is_ended {
            return None;
        }
    }
    digits.iter().try_fold(0i64, |value, &digit| {
        value.checked_mul(8)?.checked_add(i64::from(digit - b'0'))
    })
}

/// Writes a number in octal, if that has room for it; else in base 256. Says whether it is octal.
pub fn put_number(field: &mut [u8], value: u64) -> bool {
    let digits = field.len() - 1;
    let text = format!("{value:0digits$o}");
    if text.len() == digits {
        field[..digits].copy_from_slice(text.as_bytes());
        field[digits] = 0;
        return true;
    }
    let bytes = value.to_be_bytes();
    field.fill(0);
    let start = field.len().saturating_sub(bytes.len());
    let count = field.len() - start;
    field[start..].copy_from_slice(&bytes[bytes.len() - count..]);
    field[0] |= 0x80;
    false
}

/// Writes as much of a text as there is room for; says whether that is all of it.
pub fn put_text(field: &mut [u8], text: &[u8]) -> bool {
    let count = text.len().min(field.len());
    field[..count].copy_from_slice(&text[..count]);
    field[count..].fill(0);
    count == text.len()
}

/// An empty header of POSIX.
pub fn empty() -> Block {
    let mut block = [0; BLOCK_BYTES];
    block[MAGIC].copy_from_slice(USTAR);
    block
}

/// Enters the checksum: the last thing that is done to a header.
pub fn seal(block: &mut Block) {
    let text = format!("{:06o}\0 ", checksum(block));
    block[CHECKSUM].copy_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_octal_or_in_base_256() {
        assert_eq!(number(b"00000001750\0"), Some(1000));
        assert_eq!(number(b"       1750 "), Some(1000));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"        "), Some(0));
        assert_eq!(number(b"644\0garb"), Some(0o644));
        assert_eq!(number(&[0xff; 12]), Some(-1));
        assert_eq!(
            number(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"),
            Some(i64::MAX)
        );
        for bad in [
            &b"12x4"[..],
            b"189",
            b"1 2",
            b"",
            b"\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_put_is_read(value in 0u64..=i64::MAX as u64, is_long: bool) {
            let mut field = [7; 12];
            let field = if is_long { &mut field[..] } else { &mut field[..8] };
            // Eight bytes have room for 62 bits.
            let value = if is_long { value } else { value >> 2 };
            put_number(field, value);
            prop_assert_eq!(number(field), Some(value as i64));
        }

        #[test]
        fn nothing_panics(field: Vec<u8>) {
            let _ = number(&field);
            let _ = text(&field);
        }
    }

    #[test]
    fn a_sealed_header_has_the_right_checksum() {
        let mut block = empty();
        put_text(&mut block[NAME], b"k\xe4se");
        seal(&mut block);
        assert!(has_right_checksum(&block));
        block[0] ^= 1;
        assert!(!has_right_checksum(&block));
    }
}
