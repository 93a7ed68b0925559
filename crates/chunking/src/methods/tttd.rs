//! Two thresholds, two divisors (TTTD; Eshghi and Tang, *A Framework for Analyzing and Improving
//! Content-Based Chunking Algorithms*, HP Laboratories 2005), over the Gear hash.
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. The hash of position i is the Gear hash of `src[i−47..=i]`, all the bytes that the masks can
//!    see; hence min ≥ 48.
//! 2. With b = log2(avg): the *main* mask has b ones, the *backup* mask b − 1 of them, both placed
//!    as FastCDC's are ([`spread`]). The chunk is `src[0..i]` for the smallest i in min..min(n, max)
//!    whose hash has only zeros under the main mask.
//! 3. No such i, and n ≥ max: `src[0..i]` for the *greatest* i in min..max whose hash has only zeros
//!    under the backup mask; if there is none either, the first max bytes.
//! 4. No such i, and n < max: all n bytes, for the stream ends there.
//!
//! The article uses divisors of 540 and 270 for chunks of about 1 KiB between 460 and 2800 bytes: a
//! backup twice as frequent, which is one bit less here.
//!
//! A chunk that is cut at its backup had all of its max bytes judged, and what is behind the cut is
//! judged again. Data can be made for which that happens at every chunk, just behind min; so max is
//! at most [`MAX_PER_MIN`] times min, which bounds the work.

use super::gear::hash_at;
use super::masks::spread;
use crate::Parameters;
use crate::gear_table::SharedGearTable;
use crate::two_stage::{Rule, Windowed};
use kernels::gear;
use kernels::isa::Isa;
use kernels::marks::{Marks, Masks};

/// Bytes that the masks can see: bit 47 is the highest.
pub(crate) const WINDOW_BYTES: u32 = 48;

/// How many times min may max be.
pub(crate) const MAX_PER_MIN: u32 = 64;

/// How many bytes are searched for the last backup at a time, from the end on.
const BACKUP_BLOCK_BYTES: usize = 4096;

/// A TTTD chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct Tttd {
    table: SharedGearTable,
    main: u64,
    backup: u64,
    min: usize,
    max: usize,
}

impl Tttd {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: SharedGearTable) -> Self {
        let bits = parameters.avg_bytes.ilog2();
        Self {
            table,
            main: spread(bits),
            backup: spread(bits - 1),
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let hash = self.hash_before(data, self.min);
        let scan = gear::find_cut(&self.table, hash, self.main, &data[self.min..]);
        if let Some(position) = scan.position {
            return self.min + position;
        }
        let is_at_max = data.len() == self.max;
        let backup = is_at_max.then(|| self.last_backup(data)).flatten();
        backup.unwrap_or(data.len())
    }

    /// Whether the main mask matches at `length`, from min on and before the end. A backup does
    /// not count: whether it is one is not for its window alone to say.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        hash_at(&self.table, self.main, &data[..=length]) & self.main == 0
    }

    /// The greatest position that has only zeros under the backup mask.
    fn last_backup(&self, data: &[u8]) -> Option<usize> {
        let mut end = data.len();
        while end > self.min {
            let start = end.saturating_sub(BACKUP_BLOCK_BYTES).max(self.min);
            let mut hash = self.hash_before(data, start);
            let mut last = None;
            for (index, &byte) in data[start..end].iter().enumerate() {
                hash = gear::step(&self.table, hash, byte);
                if hash & self.backup == 0 {
                    last = Some(start + index);
                }
            }
            if last.is_some() {
                return last;
            }
            end = start;
        }
        None
    }

    /// The hash of the bytes of a window that stand before `position`.
    fn hash_before(&self, data: &[u8], position: usize) -> u64 {
        let window = &data[position + 1 - WINDOW_BYTES as usize..position];
        gear::hash(&self.table, 0, window)
    }
}

/// Strict marks are main ones, loose marks backups.
impl Windowed for Tttd {
    fn rule(&self) -> Rule {
        Rule {
            normal: usize::MAX,
            has_backups: true,
            ..Rule::whole_windows(self.min, self.min, self.max)
        }
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        let masks = Masks {
            strict: self.main,
            loose: self.backup,
            value: 0,
        };
        self.table.mark(isa, masks, data, (first, count), marks);
    }

    fn gain(&self, isa: Isa) -> f64 {
        if isa == Isa::Avx512 { 1.45 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, Chunker, KeyMaterial, Parameters};

    /// After a byte 9 all bits are zero; after an 8 all but the last of the main mask; after any
    /// other some bit is not.
    #[test]
    fn the_last_backup_is_taken_at_the_maximum_and_not_at_the_end() {
        let mut table = [1 << 47; 256];
        table[9] = 0;
        let (main, backup) = (super::spread(8), super::spread(7));
        table[8] = main & !backup;
        // What an 8 leaves goes again with a 6, before it climbs to bit 47.
        table[6] = (1 << 47) - (table[8] << 1);
        let parameters = Parameters {
            min_bytes: 64,
            avg_bytes: 256,
            max_bytes: 1024,
            ..Parameters::new(Algorithm::Tttd)
        };
        let key = KeyMaterial::Table(Box::new(table));
        let chunker = Chunker::new(&parameters, key).expect("possible parameters");
        let mut data = vec![1u8; 3000];
        assert_eq!(chunker.cut(&data), 1024, "no cut, no backup");
        data[100..102].copy_from_slice(&[8, 6]);
        data[200..202].copy_from_slice(&[8, 6]);
        assert_eq!(chunker.cut(&data), 200, "the later backup");
        assert_eq!(chunker.cut(&data[..1000]), 1000, "the stream ends first");
        data[900] = 9;
        assert_eq!(chunker.cut(&data), 900, "a main cut beats backups");
        data[60] = 9;
        assert_eq!(chunker.cut(&data), 900, "nothing counts before the minimum");
        assert_eq!(chunker.cut(&[&data[..890], &[1; 3000]].concat()), 200);
        data[64] = 9;
        assert_eq!(chunker.cut(&data), 64);
    }
}
