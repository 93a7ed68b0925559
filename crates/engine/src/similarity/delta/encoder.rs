//! From a base and a target to the delta.
//!
//! Method: what both have in common at their beginnings and ends is found by comparing. In between,
//! wherever a copy ends, the target is compared with the base a little further on (bytes that were
//! replaced by as many others), and if that does not help, each of its words is looked up in a
//! table of the base's, which is made only then. Every agreement is made as long as it can be, in
//! both directions. Whatever the data, the time is linear in their length.

use super::base_table::{BaseTable, TARGET_STEP};
use super::matching::{common_end, common_front, word};
use super::{DELTA_SIDE_BYTES_MAX, INSERT_ESCAPE, Jump};

/// Bytes that base and target must agree in for a copy.
const MATCH_BYTES_MIN: usize = 8;

/// Bytes that base and target must agree in for a copy from elsewhere: shorter ones cost more than
/// their literals, once deltas are compressed together (docs/format/delta.md has figures).
const MOVED_BYTES_MIN: usize = 24;

/// How far behind the end of a copy replaced bytes are looked for.
const REPLACED_BYTES_MAX: usize = 32;

/// Encodes chunks against bases, keeping its working memory from one to the next.
#[derive(Debug, Default)]
pub struct DeltaEncoder {
    table: BaseTable,
    /// Instructions of the delta that is being made, first byte first.
    instructions: Vec<u8>,
}

impl DeltaEncoder {
    /// An encoder; its memory grows to at most 1.6 bytes a byte of the largest base, 4 MiB in all,
    /// and as many bytes as the longest delta had instructions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the delta that makes `target` of `base` to `out`. `false`, with `out` as it was, when
    /// the delta would have more than `limit` bytes, or when base or target are longer than any
    /// chunk. The same bytes in, the same delta out, whatever was encoded before.
    pub fn encode(&mut self, base: &[u8], target: &[u8], limit: usize, out: &mut Vec<u8>) -> bool {
        if base.len().max(target.len()) > DELTA_SIDE_BYTES_MAX {
            return false;
        }
        self.instructions.clear();
        let start = out.len();
        let mut encoding = Encoding {
            base,
            target,
            limit,
            start,
            out,
            instructions: &mut self.instructions,
            written: 0,
            base_end: 0,
        };
        let fits = encoding.run(&mut self.table).is_some();
        if fits {
            out.extend(self.instructions.iter().rev());
        } else {
            out.truncate(start);
        }
        fits
    }
}

/// Bytes that base and target have in common.
#[derive(Debug, Clone, Copy)]
struct Match {
    base_start: usize,
    target_start: usize,
    bytes: usize,
}

/// A delta that is half made.
struct Encoding<'a> {
    base: &'a [u8],
    target: &'a [u8],
    limit: usize,
    /// Length of `out` before: literals follow.
    start: usize,
    out: &'a mut Vec<u8>,
    instructions: &'a mut Vec<u8>,
    /// Bytes of the target that literals and instructions stand for.
    written: usize,
    /// Where the last copy ended in the base.
    base_end: usize,
}

impl Encoding<'_> {
    /// `None` when it does not fit.
    fn run(&mut self, table: &mut BaseTable) -> Option<()> {
        let (base, target) = (self.base, self.target);
        let front = common_front(base, target);
        let end = common_end(&base[front..], &target[front..]);
        if front >= MATCH_BYTES_MIN {
            self.put(Match {
                base_start: 0,
                target_start: 0,
                bytes: front,
            })?;
        }
        let middle_end = target.len() - end;
        self.middle(middle_end, table)?;
        if end > 0 {
            self.put(Match {
                base_start: base.len() - end,
                target_start: middle_end,
                bytes: end,
            })?;
        }
        self.finish()
    }

    /// Matches of the target until `middle_end`, where the common end begins.
    fn middle(&mut self, middle_end: usize, table: &mut BaseTable) -> Option<()> {
        let mut is_entered = false;
        while middle_end - self.written >= MATCH_BYTES_MIN {
            let found = self.replaced(middle_end).or_else(|| {
                if !is_entered {
                    table.enter(self.base);
                    is_entered = true;
                }
                self.moved(middle_end, table)
            });
            match found {
                Some(found) => self.put(found)?,
                None => break,
            }
        }
        Some(())
    }

    /// The next match when bytes of the base were replaced by as many others.
    fn replaced(&self, middle_end: usize) -> Option<Match> {
        let base = &self.base[self.base_end..];
        let target = &self.target[self.written..middle_end];
        let last = base.len().min(target.len()).checked_sub(MATCH_BYTES_MIN)?;
        let mut at = 0;
        while at <= last.min(REPLACED_BYTES_MAX) {
            let difference = word(base, at) ^ word(target, at);
            if difference == 0 {
                let bytes = 8 + common_front(&base[at + 8..], &target[at + 8..]);
                return Some(Match {
                    base_start: self.base_end + at,
                    target_start: self.written + at,
                    bytes,
                });
            }
            // Behind the last byte that differs.
            at += 8 - difference.leading_zeros() as usize / 8;
        }
        None
    }

    /// The next match anywhere in the base.
    fn moved(&self, middle_end: usize, table: &BaseTable) -> Option<Match> {
        let base = self.base;
        if base.len() < 8 {
            return None;
        }
        let target = &self.target[self.written..middle_end];
        for (at, window) in target.windows(8).enumerate().step_by(TARGET_STEP) {
            let found = table.find(word(window, 0));
            if word(base, found) != word(window, 0) {
                continue;
            }
            let before = common_end(&base[..found], &target[..at]);
            let behind = common_front(&base[found + 8..], &target[at + 8..]);
            let bytes = before + 8 + behind;
            if bytes >= MOVED_BYTES_MIN {
                return Some(Match {
                    base_start: found - before,
                    target_start: self.written + at - before,
                    bytes,
                });
            }
        }
        None
    }

    /// Literals up to the match, then the match.
    fn put(&mut self, found: Match) -> Option<()> {
        let insert = found.target_start - self.written;
        let replaced = self.base_end + insert;
        let from = found.base_start;
        let (jump, distance) = if from == replaced {
            (Jump::Replaced, 0)
        } else if from == self.base_end {
            (Jump::Inserted, 0)
        } else if from > replaced {
            (Jump::Forward, from - replaced)
        } else {
            (Jump::Backward, replaced - from)
        };
        self.begin(insert, jump)?;
        if distance > 0 {
            put_number(self.instructions, distance);
        }
        self.written += found.bytes;
        self.base_end = from + found.bytes;
        // The last copy goes to the end of the target without saying so.
        if self.written < self.target.len() {
            put_number(self.instructions, found.bytes);
        }
        self.fits()
    }

    /// What is left as literals.
    fn finish(&mut self) -> Option<()> {
        let insert = self.target.len() - self.written;
        if insert > 0 {
            self.begin(insert, Jump::Replaced)?;
        }
        self.fits()
    }

    /// The first byte of an instruction, and its literals.
    fn begin(&mut self, insert: usize, jump: Jump) -> Option<()> {
        let literals = &self.target[self.written..self.written + insert];
        if self.out.len() - self.start + insert > self.limit {
            return None;
        }
        self.out.extend_from_slice(literals);
        self.written += insert;
        let short = insert.min(INSERT_ESCAPE);
        self.instructions.push((short as u8) << 2 | jump as u8);
        if short == INSERT_ESCAPE {
            put_number(self.instructions, insert - short);
        }
        Some(())
    }

    fn fits(&self) -> Option<()> {
        let bytes = self.out.len() - self.start + self.instructions.len();
        (bytes <= self.limit).then_some(())
    }
}

/// LEB128 in its shortest form.
fn put_number(instructions: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        instructions.push(number as u8 | 0x80);
        number >>= 7;
    }
    instructions.push(number as u8);
}
