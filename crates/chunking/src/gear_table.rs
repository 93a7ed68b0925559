//! Where a Gear table comes from: a fixed rule, or a secret.
//!
//! The *unkeyed* table is for data that is not secret and for comparison: `G[b]` is output `b + 1`
//! of splitmix64 (Steele et al., OOPSLA 2014) whose state starts as the eight ASCII bytes
//! `onefold1`, read as a little-endian number. A *keyed* table is 2048 bytes that the caller
//! derives from a secret (docs/format, derived values), so that cut points are not the same for
//! everybody. Research finds such secrets from the sizes of known chunks (docs/format/chunkers.md).

use kernels::gear::GearTable;
use kernels::gear_marks::{self, GearPlanes, Tables};
use kernels::isa::Isa;
use kernels::marks::{Marks, Masks};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// The table that chunkers without a secret use.
pub static UNKEYED_GEAR_TABLE: GearTable = splitmix64_table(u64::from_le_bytes(*b"onefold1"));

/// What decides the cut points beside contents and parameters.
#[derive(Clone)]
#[non_exhaustive]
pub enum KeyMaterial {
    /// Nothing secret: anybody gets the same cuts from the same data.
    Unkeyed,
    /// A secret Gear table.
    Table(Box<GearTable>),
}

impl KeyMaterial {
    /// The Gear table that it stands for.
    ///
    /// It is shared by all clones of a chunker, and wiped with the last one.
    pub(crate) fn gear_table(self) -> SharedGearTable {
        match self {
            Self::Unkeyed => SharedGearTable::new(&UNKEYED_GEAR_TABLE),
            Self::Table(mut table) => {
                let shared = SharedGearTable::new(&table);
                table.zeroize();
                shared
            }
        }
    }
}

/// A Gear table as it is and byte by byte. Has no `Debug`: it may be secret.
#[derive(Clone)]
pub(crate) struct SharedGearTable(Arc<Zeroizing<(GearTable, GearPlanes)>>);

impl SharedGearTable {
    pub(crate) fn new(table: &GearTable) -> Self {
        Self(Arc::new(Zeroizing::new((
            *table,
            gear_marks::planes(table),
        ))))
    }

    /// The table of the upper 32 bits: a Gear hash of 32 bits.
    pub(crate) fn upper_half(&self) -> Self {
        let mut upper = self.map(|number| number >> 32);
        let shared = Self::new(&upper);
        upper.zeroize();
        shared
    }

    /// Marks the positions `first..first + count`, whose windows all lie in the data.
    pub(crate) fn mark(
        &self,
        isa: Isa,
        masks: Masks<u64>,
        data: &[u8],
        (first, count): (usize, usize),
        marks: &mut Marks<'_>,
    ) {
        let (numbers, planes) = &**self.0;
        let tables = Tables { numbers, planes };
        gear_marks::mark(isa, tables, masks, data, first, count, marks);
    }
}

impl Deref for SharedGearTable {
    type Target = GearTable;

    fn deref(&self) -> &GearTable {
        &self.0.0
    }
}

/// Never shows the secret.
impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unkeyed => "Unkeyed",
            Self::Table(_) => "Table(secret)",
        })
    }
}

/// The Gear table that 2048 uniformly random bytes stand for: 256 numbers, little-endian.
#[must_use]
pub fn gear_table_from_bytes(bytes: &[u8; 2048]) -> GearTable {
    let (numbers, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|index| u64::from_le_bytes(numbers[index]))
}

const fn splitmix64_table(seed: u64) -> GearTable {
    let mut table = [0u64; 256];
    let mut state = seed;
    let mut index = 0;
    while index < table.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[index] = mixed ^ (mixed >> 31);
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{KeyMaterial, UNKEYED_GEAR_TABLE, gear_table_from_bytes, splitmix64_table};
    use crate::methods::masks::Masks;

    #[test]
    fn splitmix64_gives_its_published_numbers() {
        // First outputs for the seed 1234567, as reference implementations give them.
        let table = splitmix64_table(1_234_567);
        assert_eq!(table[0], 6_457_827_717_110_365_317);
        assert_eq!(table[1], 3_203_168_211_198_807_973);
    }

    #[test]
    fn unkeyed_table_is_frozen() {
        let joined = UNKEYED_GEAR_TABLE
            .iter()
            .fold(0u64, |joined, number| joined.rotate_left(1) ^ number);
        assert_eq!(UNKEYED_GEAR_TABLE[0], 0x2d88_7652_463d_8bd5);
        assert_eq!(UNKEYED_GEAR_TABLE[255], 0x8f5d_7a6c_e97a_d42a);
        assert_eq!(joined, 0xc3dd_804b_03d3_20a1);
    }

    /// A long run of byte b has the hash −G[b]; a hash that cuts would cut at every minimum. The
    /// seed promises nothing here, but it is so for all sizes in use, and stays frozen with it.
    #[test]
    fn runs_of_one_byte_are_not_cut_with_the_unkeyed_table() {
        for avg_bits in 12..=24 {
            for level in 0..=2 {
                let masks = Masks::new(1 << avg_bits, level);
                for (byte, number) in UNKEYED_GEAR_TABLE.iter().enumerate() {
                    let hash = number.wrapping_neg();
                    assert_ne!(hash & masks.loose, 0, "{byte}, 2^{avg_bits}, {level}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_little_endian_numbers_in_order() {
        let mut bytes = [0u8; 2048];
        bytes[0] = 1;
        bytes[9] = 2;
        bytes[2047] = 0x80;
        let table = gear_table_from_bytes(&bytes);
        assert_eq!((table[0], table[1], table[255]), (1, 0x200, 1 << 63));
        assert_eq!(table.iter().filter(|&&number| number != 0).count(), 3);
    }

    #[test]
    fn debug_hides_the_table() {
        let key = KeyMaterial::Table(Box::new([0xabcd; 256]));
        assert_eq!(format!("{key:?}"), "Table(secret)");
    }
}
