//! Where in a base eight given bytes stand: a hash table of sampled positions, used for one base
//! after the other without being cleared.
//!
//! An entry is a position plus the *origin* of its base; the origin of the next base lies behind
//! every entry of the last, so that entries of earlier bases are smaller and count as empty. Only
//! when 32 bits are used up, every few hundred thousand chunks, is the table cleared.

use super::matching::word;

/// Every so many positions of a base are entered.
const STEP: usize = 5;

/// Every so many positions of a target are looked up: as the two have no common divisor, an
/// agreement of 7 + [`STEP`] times this many bytes is found wherever it lies.
pub const TARGET_STEP: usize = 2;

/// Least and most binary logarithm of the slots that a base uses.
const SLOT_BITS: std::ops::RangeInclusive<u32> = 8..=20;

/// An odd number whose multiples scatter their high bits (the golden ratio of 2^64).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The table.
#[derive(Debug, Default)]
pub struct BaseTable {
    slots: Vec<u32>,
    slot_bits: u32,
    /// Entries below are those of earlier bases; at least 1, for 0 is an empty slot.
    origin: u32,
    /// Where the next base's origin will be.
    next_origin: u32,
}

impl BaseTable {
    /// Enters positions of `base`, which is shorter than 2^31 bytes; earlier bases are forgotten.
    pub fn enter(&mut self, base: &[u8]) {
        let positions = (base.len() / STEP).max(1);
        let slot_bits = positions.next_power_of_two().ilog2();
        self.slot_bits = slot_bits.clamp(*SLOT_BITS.start(), *SLOT_BITS.end());
        let slots = 1 << self.slot_bits;
        if self.slots.len() < slots {
            self.slots.resize(slots, 0);
        }
        self.origin = self.next_origin.max(1);
        let bytes = base.len() as u32;
        if self.origin.checked_add(bytes).is_none() {
            self.slots.fill(0);
            self.origin = 1;
        }
        self.next_origin = self.origin + bytes;
        let Some(last) = base.len().checked_sub(8) else {
            return;
        };
        // From the end, so that of equal words the first stays.
        let slots = &mut self.slots[..slots];
        for position in (0..=last / STEP).rev().map(|step| step * STEP) {
            let slot = slot_of(word(base, position), self.slot_bits);
            slots[slot] = self.origin + position as u32;
        }
    }

    /// Where in the base the word stands, if anywhere: the caller compares. A word that is nowhere
    /// leads to any position, most often 0; the base has eight bytes from there on.
    #[inline(always)]
    pub fn find(&self, word: u64) -> usize {
        // No branch: which slots are empty can't be predicted.
        let entry = self.slots[slot_of(word, self.slot_bits)];
        entry.saturating_sub(self.origin) as usize
    }
}

#[inline(always)]
fn slot_of(word: u64, slot_bits: u32) -> usize {
    (word.wrapping_mul(MULTIPLIER) >> (64 - slot_bits)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of another base that may meet the slot of the same position: one in 512 of 400 does.
    const CHANCE_MAX: usize = 10;

    /// Words of `base` at entered positions that are found where they stand.
    fn found(table: &BaseTable, base: &[u8]) -> usize {
        let positions = (0..base.len() - 7).step_by(STEP);
        positions
            .filter(|&position| table.find(word(base, position)) == position)
            .count()
    }

    /// Bases whose words differ from each other and from those of every other number.
    fn base(number: u32) -> Vec<u8> {
        let words = (1..=500u32).map(|index| index.wrapping_mul(0x9e37_79b1) ^ number << 20);
        words.flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn words_are_found_and_those_of_earlier_bases_are_not() {
        let mut table = BaseTable::default();
        for number in 0..10 {
            table.enter(&base(number));
            // Words that share a slot hide each other.
            assert!(found(&table, &base(number)) > 200, "{number}");
            for earlier in 0..number {
                assert!(
                    found(&table, &base(earlier)) <= CHANCE_MAX,
                    "{earlier} in {number}"
                );
            }
        }
        table.enter(&base(0)[..7]);
        assert!(found(&table, &base(9)) <= CHANCE_MAX);
    }

    #[test]
    fn origins_begin_again_when_they_are_used_up() {
        let mut table = BaseTable::default();
        table.enter(&base(1));
        let expected = found(&table, &base(1));
        table.next_origin = u32::MAX - 3000;
        table.enter(&base(2));
        assert_eq!(table.origin, u32::MAX - 3000);
        table.enter(&base(1));
        assert_eq!(table.origin, 1);
        assert_eq!(found(&table, &base(1)), expected);
        assert!(found(&table, &base(2)) <= CHANCE_MAX);
    }
}
