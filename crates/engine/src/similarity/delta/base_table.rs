//! Where in a base eight given bytes stand: a hash table of sampled positions, used for one base
//! after the other without being cleared.
//!
//! An entry is a position plus the *origin* of its base; the origin of the next base lies behind
//! every entry of the last, so that entries of earlier bases are smaller and count as empty. Only
//! when 32 bits are used up, every few hundred thousand chunks, is the table cleared.

use super::matching::word;

/// Every so many positions of a base are entered: an agreement of 7 + this many bytes is found.
const STEP: usize = 8;

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

    /// Where in the base the word may stand. The caller compares.
    #[inline(always)]
    pub fn find(&self, word: u64) -> Option<usize> {
        let entry = self.slots[slot_of(word, self.slot_bits)];
        entry
            .checked_sub(self.origin)
            .map(|position| position as usize)
    }
}

#[inline(always)]
fn slot_of(word: u64, slot_bits: u32) -> usize {
    (word.wrapping_mul(MULTIPLIER) >> (64 - slot_bits)) as usize
}
