//! §4.3.6: what the pool takes, by the size of the journal.

use volume::address::{BLOCK_BYTES, Lba};
use volume::fingerprint::{FingerprintKind, Fingerprinter};
use volume::pool::{JournalPool, PoolKind};

use super::published::{JOURNAL_BYTES, MEMORY_BYTES};
use crate::paper::Results;
use crate::paper::figure::Figure;

/// The journals that the paper tried (§4.3.6), and what it chose.
const JOURNALS: [u64; 4] = [32 << 20, 64 << 20, JOURNAL_BYTES, 1 << 30];

/// The metric.
pub const MEMORY: &str = "pool_bytes";
/// Names of what is counted.
pub const BY_THE_PAPER: &str = "12 B + 8 B an entry";
pub const OURS: &str = "our pool";

/// Fills pools.
pub fn memory(results: &mut Results) {
    let maker = Fingerprinter::new(FingerprintKind::Xxh3, [3; 32]);
    for journal_bytes in JOURNALS {
        let blocks = journal_bytes / BLOCK_BYTES as u64;
        let mut pool = JournalPool::new(PoolKind::Whole, std::iter::once(0..blocks).collect());
        for block in 0..blocks {
            pool.insert(Lba(block), maker.of(&block.to_le_bytes()));
        }
        let (counted, ours) = pool.memory_bytes();
        let is_papers = journal_bytes == JOURNAL_BYTES;
        for (name, bytes, paper) in [
            (BY_THE_PAPER, counted, is_papers.then_some(MEMORY_BYTES)),
            (OURS, ours, None),
        ] {
            let figure = Figure::new("memory", "every block of the journal", name, MEMORY);
            let figure = figure.at(journal_bytes as f64).with(bytes as f64, paper);
            results.figures.push(figure);
        }
    }
}
