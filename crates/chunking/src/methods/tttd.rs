//! Two thresholds, two divisors (TTTD; Eshghi and Tang, *A Framework for Analyzing and Improving
//! Content-Based Chunking Algorithms*, HP Laboratories 2005), over the Gear hash.
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. The hash starts as 0 and first takes `src[min]`.
//! 2. With b = log2(avg): the *main* mask has b ones, the *backup* mask b − 1 of them, both placed
//!    as FastCDC's are ([`spread`]). The chunk is `src[0..i]` for the smallest i in min..min(n, max)
//!    whose byte, once taken, leaves only zeros under the main mask.
//! 3. No such i, and n ≥ max: `src[0..i]` for the *greatest* i in min..max that leaves only zeros
//!    under the backup mask; if there is none either, the first max bytes.
//! 4. No such i, and n < max: all n bytes, for the stream ends there.
//!
//! The article uses divisors of 540 and 270 for chunks of about 1 KiB between 460 and 2800 bytes: a
//! backup twice as frequent, which is one bit less here.

use super::masks::spread;
use crate::Parameters;
use kernels::gear::{self, GearTable};

/// A TTTD chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct Tttd {
    table: Box<GearTable>,
    main: u64,
    backup: u64,
    min: usize,
    max: usize,
}

impl Tttd {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: Box<GearTable>) -> Self {
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
        // Whatever the main mask finds, the backup mask finds: its ones are among the main ones.
        let (mut start, mut hash, mut backup) = (self.min, 0, None);
        loop {
            let scan = gear::find_cut(&self.table, hash, self.backup, &data[start..]);
            let Some(position) = scan.position else { break };
            let length = start + position;
            if scan.hash & self.main == 0 {
                return length;
            }
            backup = Some(length);
            (start, hash) = (length + 1, scan.hash);
        }
        match backup {
            Some(length) if data.len() == self.max => length,
            _ => data.len(),
        }
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
        data[64] = 9;
        assert_eq!(chunker.cut(&data), 64);
    }
}
