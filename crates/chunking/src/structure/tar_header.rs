//! One header block of a tar: is it one, and what does it say about the bytes behind it?
//!
//! Enters: 512 bytes that may be anything. Leaves: a [`Header`], or nothing. Sources: POSIX.1-2017
//! `pax`, "ustar Interchange Format" and "pax Interchange Format"; the GNU tar manual, "Basic Tar Format".
//!
//! | bytes | field | read as |
//! |---|---|---|
//! | 124..136 | size | octal; or, with the highest bit set, a big-endian number in base 256 (GNU) |
//! | 148..156 | checksum | octal: the sum of all bytes, these eight taken as spaces |
//! | 156 | type | |
//! | 257..262 | magic | `ustar`, of POSIX and of GNU; v7 has none |
//! | 482 | more sparse headers follow | of GNU's type `S` alone |

/// Bytes of a block: everything in a tar begins at a multiple of it.
pub(super) const BLOCK_BYTES: usize = 512;

/// A block of a tar.
pub(super) type Block = [u8; BLOCK_BYTES];

const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const TYPE: usize = 156;
const MAGIC: std::ops::Range<usize> = 257..262;
const GNU_IS_EXTENDED: usize = 482;
const GNU_EXTENSION_IS_EXTENDED: usize = 504;

/// What a header announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announced {
    /// Bytes of a file, or of a type that is not known (which POSIX says to take for a file).
    Content,
    /// The same, behind blocks that list more of its holes.
    ContentBehindExtensions,
    /// Nothing: a directory, a link, a device.
    Nothing,
    /// Something about the next member, such as its long name.
    Metadata,
    /// Records about the next member (pax).
    PaxOfNext,
    /// Records about all members that follow (pax).
    PaxOfAll,
}

/// A header whose checksum is right. It may lie all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// What follows.
    pub(super) announced: Announced,
    /// How many bytes of it, without what fills the last block.
    pub(super) size: u64,
}

/// Whether the block has the magic that all headers have but those of v7. Costs one comparison.
#[inline]
pub(super) fn has_magic(block: &Block) -> bool {
    block[MAGIC] == *b"ustar"
}

/// Whether all of a block is zeros: the end of an archive.
pub(super) fn is_zero(block: &Block) -> bool {
    block.iter().all(|&byte| byte == 0)
}

/// Whether a block that lists holes is followed by another one (GNU).
pub(super) fn is_extended(extension: &Block) -> bool {
    extension[GNU_EXTENSION_IS_EXTENDED] != 0
}

impl Header {
    /// The header that a block is: its checksum is right, its size a number.
    pub(super) fn parse(block: &Block) -> Option<Self> {
        let announced_sum = octal(&block[CHECKSUM])?;
        let sum_of = |value: fn(u8) -> i64| {
            let all: i64 = block.iter().map(|&byte| value(byte)).sum();
            let own: i64 = block[CHECKSUM].iter().map(|&byte| value(byte)).sum();
            all - own + CHECKSUM.len() as i64 * i64::from(b' ')
        };
        // Some old programs add signed bytes.
        let unsigned = sum_of(i64::from);
        let is_right = |sum: i64| u64::try_from(sum) == Ok(announced_sum);
        if !is_right(unsigned) && !is_right(sum_of(|byte| i64::from(byte as i8))) {
            return None;
        }
        let announced = match block[TYPE] {
            b'1'..=b'6' => Announced::Nothing,
            b'L' | b'K' => Announced::Metadata,
            b'x' | b'X' => Announced::PaxOfNext,
            b'g' => Announced::PaxOfAll,
            b'S' if block[GNU_IS_EXTENDED] != 0 => Announced::ContentBehindExtensions,
            _ => Announced::Content,
        };
        let size = number(&block[SIZE])?;
        Some(Self { announced, size })
    }
}

/// A number in octal, or in base 256.
fn number(field: &[u8]) -> Option<u64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 == 0 {
        return octal(field);
    }
    // Bit 6 is the sign.
    if first & 0x40 != 0 {
        return None;
    }
    rest.iter()
        .map(|&byte| u64::from(byte))
        .try_fold(u64::from(first & 0x3f), |value: u64, digit| {
            value.checked_mul(256)?.checked_add(digit)
        })
}

/// Octal digits, behind spaces and in front of spaces or NULs. A field without digits is 0 in v7's
/// own headers of nothing, but then it has a checksum; so it is no number here.
fn octal(field: &[u8]) -> Option<u64> {
    let start = field.iter().position(|&byte| byte != b' ')?;
    let digits = field[start..].iter();
    let count = digits
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .count();
    let (digits, behind) = field[start..].split_at(count);
    if digits.is_empty() || !behind.iter().all(|&byte| byte == b' ' || byte == 0) {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &digit| {
        value.checked_mul(8)?.checked_add(u64::from(digit - b'0'))
    })
}

/// The last `size` among pax records, `LENGTH KEY=VALUE\n` each; nothing when there is none, or from
/// where they stop being records.
pub(super) fn pax_size(mut records: &[u8]) -> Option<u64> {
    let mut size = None;
    while let Some(space) = records.iter().take(20).position(|&byte| byte == b' ') {
        let length = decimal(&records[..space]).and_then(|length| usize::try_from(length).ok());
        let Some(length) = length.filter(|length| (space + 2..=records.len()).contains(length))
        else {
            break;
        };
        let (record, rest) = records.split_at(length);
        if let Some(value) = record[space + 1..].strip_prefix(b"size=") {
            let value = value.strip_suffix(b"\n").unwrap_or(value);
            size = decimal(value).or(size);
        }
        records = rest;
    }
    size
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_in_base_256() {
        assert_eq!(number(b"00000001750\0"), Some(1000));
        assert_eq!(number(b"       1750 "), Some(1000));
        assert_eq!(number(b"777777777777"), Some((1 << 36) - 1));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x01\0\0\0\0"), Some(1 << 32));
        assert_eq!(
            number(b"\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            None
        );
        assert_eq!(
            number(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            None
        );
        for bad in [
            &b"            "[..],
            b"\0\0\0\0",
            b"12x4",
            b"189",
            b"1 2",
            b"",
        ] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_found_among_records() {
        assert_eq!(pax_size(b"11 path=abc\n"), None);
        assert_eq!(pax_size(b"12 path=abc\n16 size=1234567\n"), Some(1_234_567));
        assert_eq!(pax_size(b"10 size=1\n10 size=2\n"), Some(2));
        assert_eq!(pax_size(b"16 GNU.size=1234\n"), None);
        for bad in [
            &b""[..],
            b"99 size=1\n",
            b"0 size=1\n",
            b"10size=1\n",
            b"-1 size=1\n",
            b"99999999999999999999 size=1\n",
            b"10 size=x\n",
            b"30 size=99999999999999999999\n",
        ] {
            assert_eq!(pax_size(bad), None, "{bad:?}");
        }
    }
}
