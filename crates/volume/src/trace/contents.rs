//! What blocks hold: identities that repeat at a given rate, and bytes to an identity.
//!
//! Identities come from a counter, so that any number of them is remembered in none: an earlier
//! content is an earlier number. A block begins with its identity, permuted, so that blocks of two
//! contents differ for certain, and in their first bytes, too.

use super::random::{Random, fraction, mix, mix_wide};
use super::workload::check_deduplication_ratio;
use super::{BLOCK_BYTES, ContentId, TraceKind, TraceRecord, WorkloadError};

/// Random bytes of a block that compresses; the rest repeats one byte. LZ4 (lz4_flex's blocks) makes
/// 41 more of them: 3273, where 4096 / 1.25 is 3276.8.
const COMPRESSIBLE_RANDOM_BYTES: usize = 3232;

/// The bytes of a block. One that is compressible shrinks by LZ4 to 4096 / 1.25 bytes or slightly
/// less (the compression ratio that ThinDedup's evaluation assumes), another not at all.
#[must_use]
pub fn content_of(content: ContentId, compressible: bool) -> [u8; BLOCK_BYTES as usize] {
    let name = mix_wide(u128::from_le_bytes(content.0));
    let mut block = [0; BLOCK_BYTES as usize];
    block[..16].copy_from_slice(&name.to_le_bytes());
    let mut random = Random::new((name >> 64) as u64 ^ mix(name as u64));
    let end = match compressible {
        true => COMPRESSIBLE_RANDOM_BYTES,
        false => block.len(),
    };
    for piece in block[16..end].chunks_mut(8) {
        piece.copy_from_slice(&random.next().to_le_bytes()[..piece.len()]);
    }
    // Not the byte before, so that the repetition begins where it is said to.
    let repeated = block[end - 1] ^ 0x55;
    block[end..].fill(repeated);
    block
}

/// Whether a content is one of those that compress, of which there are so many (0 to 1).
#[must_use]
pub fn is_compressible(content: ContentId, compressibility_ratio: f64) -> bool {
    let name = u128::from_le_bytes(content.0);
    fraction(mix(name as u64 ^ mix((name >> 64) as u64))) < compressibility_ratio
}

/// Contents of blocks that are written, of which some were written before: the share that was not is
/// one to the deduplication ratio, chance decides which, and all earlier contents are as likely.
#[derive(Debug, Clone)]
pub struct ContentSource {
    random: Random,
    seed: u64,
    share_new: f64,
    contents: u64,
}

impl ContentSource {
    /// Blocks written to blocks stored are `deduplication_ratio`, 1 or more.
    ///
    /// # Errors
    /// When it is less, or no number.
    pub fn new(deduplication_ratio: f64, seed: u64) -> Result<Self, WorkloadError> {
        check_deduplication_ratio(deduplication_ratio)?;
        Ok(Self {
            random: Random::new(mix(seed)),
            seed,
            share_new: 1.0 / deduplication_ratio,
            contents: 0,
        })
    }

    /// The content of the next block.
    pub fn next_content(&mut self) -> ContentId {
        let is_new = self.random.fraction() < self.share_new || self.contents == 0;
        let number = if is_new {
            self.contents += 1;
            self.contents - 1
        } else {
            self.random.below(self.contents)
        };
        let name = mix_wide(u128::from(self.seed) << 64 | u128::from(number));
        ContentId(name.to_le_bytes())
    }

    /// How many different contents there have been.
    #[must_use]
    pub fn contents(&self) -> u64 {
        self.contents
    }

    /// Gives contents to a write of which the trace does not say any, block by block (of the disk);
    /// other records stay as they are.
    pub fn fill(&mut self, record: TraceRecord) -> impl Iterator<Item = TraceRecord> + '_ {
        let mut rest = Some(record);
        std::iter::from_fn(move || {
            let record = rest.take()?;
            if record.kind == TraceKind::Read || record.content.is_some() {
                return Some(record);
            }
            let to_boundary = BLOCK_BYTES - record.offset_bytes % BLOCK_BYTES;
            let length_bytes = record.length_bytes.min(to_boundary);
            if length_bytes < record.length_bytes {
                rest = Some(TraceRecord {
                    offset_bytes: record.offset_bytes + length_bytes,
                    length_bytes: record.length_bytes - length_bytes,
                    ..record
                });
            }
            Some(TraceRecord {
                length_bytes,
                content: Some(self.next_content()),
                ..record
            })
        })
    }
}
