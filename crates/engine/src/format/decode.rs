//! Reading and writing integers and byte strings (docs/format/v1.md, §1).
//!
//! A [`Decoder`] walks a byte slice; every read is checked against the bytes left, and every
//! count is checked against its limit before memory is allocated for it.

use std::fmt;

/// What a decoder found wrong, for a person; the object and part are added by the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DecodeError(Box<str>);

impl DecodeError {
    /// A failure described by `reason`.
    pub fn new(reason: impl Into<Box<str>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads stored values from the front of a byte slice.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Is everything read?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        if length > self.rest.len() {
            return Err(DecodeError::new(format!(
                "it ends too early: {length} bytes wanted, {} left",
                self.rest.len()
            )));
        }
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0u8; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// One byte.
    ///
    /// # Errors
    /// When none is left.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// A little-endian 16-bit integer.
    ///
    /// # Errors
    /// When fewer than two bytes are left.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// A little-endian 32-bit integer.
    ///
    /// # Errors
    /// When fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A little-endian 64-bit integer.
    ///
    /// # Errors
    /// When fewer than eight bytes are left.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// An unsigned LEB128 integer in its shortest form.
    ///
    /// # Errors
    /// When it is cut off, longer than needed, or above 64 bits.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                return Err(DecodeError::new("an integer exceeds 64 bits"));
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                if byte == 0 && index > 0 {
                    return Err(DecodeError::new("an integer is not in its shortest form"));
                }
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(DecodeError::new("an integer is cut off or exceeds 64 bits"))
    }

    /// A varint that must not exceed `limit`; `what` names it in the error.
    ///
    /// # Errors
    /// As [`Decoder::varint`], and when the value is above the limit.
    pub fn varint_at_most(&mut self, limit: u64, what: &str) -> Result<u64, DecodeError> {
        let value = self.varint()?;
        if value > limit {
            return Err(DecodeError::new(format!(
                "{what} is {value}, at most {limit} makes sense"
            )));
        }
        Ok(value)
    }

    /// A count of things that each take at least `bytes_each` (≥ 1) of the bytes left, so that
    /// a hostile count can't make the caller allocate more than the input warrants.
    ///
    /// # Errors
    /// As [`Decoder::varint`], and when so many things can't be there.
    pub fn count(&mut self, bytes_each: usize, what: &str) -> Result<usize, DecodeError> {
        let value = self.varint()?;
        let limit = self.rest.len() / bytes_each.max(1);
        usize::try_from(value)
            .ok()
            .filter(|&count| count <= limit)
            .ok_or_else(|| {
                DecodeError::new(format!(
                    "{value} {what} announced, but only {} bytes follow",
                    self.rest.len()
                ))
            })
    }

    /// A zigzag-coded signed integer.
    ///
    /// # Errors
    /// As [`Decoder::varint`].
    pub fn signed(&mut self) -> Result<i64, DecodeError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A varint length and that many bytes.
    ///
    /// # Errors
    /// When cut off.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.count(1, "bytes")?;
        self.take(length)
    }

    /// A varint length and that much UTF-8 text.
    ///
    /// # Errors
    /// When cut off or not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::new("a text is not UTF-8"))
    }

    /// Checks that everything was read.
    ///
    /// # Errors
    /// When bytes are left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::new(format!(
                "{} bytes are left over at its end",
                self.rest.len()
            )))
        }
    }

    /// Checks that all bytes left are zero.
    ///
    /// # Errors
    /// When one is not.
    pub fn finish_zero(self) -> Result<(), DecodeError> {
        if self.rest.iter().all(|&byte| byte == 0) {
            Ok(())
        } else {
            Err(DecodeError::new(
                "its padding or reserved bytes are not zero",
            ))
        }
    }
}

/// Appends `value` as LEB128.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`put_varint`] needs for `value`.
#[must_use]
pub fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends `value` zigzag-coded.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63) as u64);
}

/// Appends the length of `bytes` as a varint, then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_come_back(value: u64, signed: i64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            prop_assert_eq!(out.len(), varint_bytes(value));
            put_signed(&mut out, signed);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(decoder.varint(), Ok(value));
            prop_assert_eq!(decoder.signed(), Ok(signed));
            prop_assert!(decoder.finish().is_ok());
        }

        #[test]
        fn hostile_bytes_never_panic(bytes: Vec<u8>) {
            let mut decoder = Decoder::new(&bytes);
            while !decoder.is_empty() {
                if decoder.clone().bytes().is_err() && decoder.clone().varint().is_err() {
                    break;
                }
                if decoder.varint().is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn bad_integers_are_refused() {
        for bad in [
            &[][..],
            &[0x80],
            &[0x80, 0],
            &[0xff; 10],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert!(Decoder::new(bad).varint().is_err(), "{bad:?}");
        }
        let greatest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Decoder::new(&greatest).varint(), Ok(u64::MAX));
    }

    #[test]
    fn counts_are_bounded_by_what_follows() {
        assert!(Decoder::new(&[3, 0, 0]).count(1, "things").is_err());
        assert_eq!(Decoder::new(&[2, 0, 0]).count(1, "things"), Ok(2));
        assert!(Decoder::new(&[2, 0, 0]).count(2, "things").is_err());
    }
}
