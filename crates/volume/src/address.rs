//! Addresses of blocks: logical, physical, and references from one to the other.

/// Bytes of a block: the unit of mapping and deduplication.
pub const BLOCK_BYTES: usize = 4096;

/// A block of the disk that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lba(pub u64);

/// A block of the backing store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pba(pub u64);

impl Pba {
    /// Where the block starts in the backing store, in bytes.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.0 * BLOCK_BYTES as u64
    }
}

/// Bits of a reference that are the block; the others are the generation it was made in.
const PBA_BITS: u32 = 40;

/// Blocks of a backing store are fewer than this: 4 PiB.
pub const PHYSICAL_BLOCKS_MAX: u64 = 1 << PBA_BITS;

/// Generations are fewer than this.
pub const GENERATIONS_MAX: u32 = 1 << (64 - PBA_BITS);

/// What a mapping or a directory stores in 8 bytes: a block, and the generation in which the
/// reference was made; or nothing (block 0 is the superblock, so that no reference is 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reference(u64);

impl Reference {
    /// No block: reads as zeros.
    pub const NONE: Reference = Reference(0);

    /// A reference to a block, made in that generation.
    ///
    /// # Panics
    /// When the block is 0, or one of them has too many bits.
    #[must_use]
    pub fn new(pba: Pba, generation: u32) -> Self {
        assert!(pba.0 != 0 && pba.0 < PHYSICAL_BLOCKS_MAX && generation < GENERATIONS_MAX);
        Self(pba.0 | u64::from(generation) << PBA_BITS)
    }

    /// From its stored form.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its stored form.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The block, if there is one.
    #[must_use]
    pub fn pba(self) -> Option<Pba> {
        let block = self.0 & (PHYSICAL_BLOCKS_MAX - 1);
        (block != 0).then_some(Pba(block))
    }

    /// The generation in which the reference was made.
    #[must_use]
    pub fn generation(self) -> u32 {
        (self.0 >> PBA_BITS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_keep_block_and_generation() {
        let reference = Reference::new(Pba(PHYSICAL_BLOCKS_MAX - 1), GENERATIONS_MAX - 1);
        assert_eq!(reference.bits(), u64::MAX);
        assert_eq!(reference.pba(), Some(Pba(PHYSICAL_BLOCKS_MAX - 1)));
        assert_eq!(reference.generation(), GENERATIONS_MAX - 1);
        assert_eq!(Reference::from_bits(7).pba(), Some(Pba(7)));
        assert_eq!(Reference::NONE.pba(), None);
    }
}
