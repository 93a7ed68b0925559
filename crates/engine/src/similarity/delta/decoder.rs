//! From a delta and its base back to the target.

use super::{DELTA_SIDE_BYTES_MAX, DeltaError, INSERT_ESCAPE, Jump};

/// Most bytes of a number: 28 bits, more than any length of a chunk.
const NUMBER_BYTES_MAX: u32 = 4;

/// Appends the target of `delta` to `out`: exactly `target_bytes` bytes.
///
/// Any bytes may be given: no more than `target_bytes` is ever allocated or written. What comes out
/// of a wrong delta or a wrong base is an error or other bytes of that length: the caller compares
/// fingerprints.
///
/// # Errors
/// As [`DeltaError`] lists; `out` is then as it was.
pub fn decode(
    base: &[u8],
    delta: &[u8],
    target_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), DeltaError> {
    for (side, bytes) in [("base", base.len()), ("target", target_bytes)] {
        if bytes > DELTA_SIDE_BYTES_MAX {
            let limit = DELTA_SIDE_BYTES_MAX;
            return Err(DeltaError::TooLong { side, bytes, limit });
        }
    }
    let start = out.len();
    out.reserve(target_bytes);
    let result = Decoding {
        base,
        rest: delta,
        target_bytes,
        start,
    }
    .run(out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// A delta that is half read.
struct Decoding<'a> {
    base: &'a [u8],
    /// What neither literals nor instructions have used: the next literal is first, the next
    /// instruction last.
    rest: &'a [u8],
    target_bytes: usize,
    /// Length of `out` before.
    start: usize,
}

impl Decoding<'_> {
    fn run(mut self, out: &mut Vec<u8>) -> Result<(), DeltaError> {
        let mut base_end = 0usize;
        while out.len() - self.start < self.target_bytes {
            let written_bytes = out.len() - self.start;
            let left = self.target_bytes - written_bytes;
            let first = self.next_byte(written_bytes)?;
            let mut insert = usize::from(first >> 2);
            if insert == INSERT_ESCAPE {
                insert += self.number(written_bytes)?;
            }
            let replaced = base_end + insert;
            let from = match Jump::of(first) {
                Jump::Replaced => replaced as i64,
                Jump::Inserted => base_end as i64,
                Jump::Forward => (replaced + self.number(written_bytes)?) as i64,
                Jump::Backward => replaced as i64 - self.number(written_bytes)? as i64,
            };
            self.literals(insert, left, out)?;
            let left = left - insert;
            if left == 0 {
                break;
            }
            let written_bytes = written_bytes + insert;
            let copy = match self.rest {
                [] => left,
                _ => self.number(written_bytes)?,
            };
            base_end = self.copy(from, copy, left, out)?;
            if insert + copy == 0 {
                return Err(DeltaError::Void { written_bytes });
            }
        }
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(DeltaError::LeftOver { bytes }),
        }
    }

    /// Appends the next `insert` literals to a target that lacks `left` bytes.
    fn literals(
        &mut self,
        insert: usize,
        left: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DeltaError> {
        if insert > left {
            return Err(self.outside_target(insert, left));
        }
        let Some((literals, rest)) = self.rest.split_at_checked(insert) else {
            return Err(self.used_up(self.target_bytes - left));
        };
        out.extend_from_slice(literals);
        self.rest = rest;
        Ok(())
    }

    /// Appends `copy` bytes of the base to a target that lacks `left`; gives where they ended.
    fn copy(
        &self,
        from: i64,
        copy: usize,
        left: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, DeltaError> {
        if copy > left {
            return Err(self.outside_target(copy, left));
        }
        let range = usize::try_from(from).ok().map(|from| from..from + copy);
        let bytes = range.clone().and_then(|range| self.base.get(range));
        let (Some(range), Some(bytes)) = (range, bytes) else {
            return Err(DeltaError::OutsideBase {
                base_offset: from,
                copy_bytes: copy,
                base_bytes: self.base.len(),
            });
        };
        out.extend_from_slice(bytes);
        Ok(range.end)
    }

    /// The next byte of the instructions.
    #[inline]
    fn next_byte(&mut self, written_bytes: usize) -> Result<u8, DeltaError> {
        let Some((&byte, rest)) = self.rest.split_last() else {
            return Err(self.used_up(written_bytes));
        };
        self.rest = rest;
        Ok(byte)
    }

    /// The next number of the instructions: LEB128 in its shortest form, backwards.
    #[inline]
    fn number(&mut self, written_bytes: usize) -> Result<usize, DeltaError> {
        let mut value = 0;
        for index in 0..NUMBER_BYTES_MAX {
            let byte = self.next_byte(written_bytes)?;
            value |= usize::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                if byte == 0 && index > 0 {
                    break;
                }
                return Ok(value);
            }
        }
        Err(DeltaError::BadNumber { written_bytes })
    }

    fn used_up(&self, written_bytes: usize) -> DeltaError {
        DeltaError::UsedUp {
            written_bytes,
            target_bytes: self.target_bytes,
        }
    }

    fn outside_target(&self, bytes: usize, left: usize) -> DeltaError {
        DeltaError::OutsideTarget {
            written_bytes: self.target_bytes - left,
            bytes,
            target_bytes: self.target_bytes,
        }
    }
}
