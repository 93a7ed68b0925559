//! Slots of a container, a bit each: what of it is to be kept.

use std::ops::Range;

use crate::container::Slot;

const WORD_BITS: usize = u64::BITS as usize;

/// A set of slots of one container. Takes a bit for each slot up to the last that is in it: at most 8 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    /// A set of none.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a slot in; true when it was not in the set.
    pub fn insert(&mut self, Slot(slot): Slot) -> bool {
        let (word, bit) = (usize::from(slot) / WORD_BITS, usize::from(slot) % WORD_BITS);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let before = self.words[word];
        self.words[word] |= 1 << bit;
        before != self.words[word]
    }

    /// Takes `count` consecutive slots from `first` in; those beyond the last possible slot are passed over.
    pub fn insert_run(&mut self, first: Slot, count: u32) {
        let slots = (first.0..=u16::MAX).take(count as usize);
        slots.for_each(|slot| {
            self.insert(Slot(slot));
        });
    }

    /// Takes all slots of another set in.
    pub fn insert_all(&mut self, other: &SlotSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, others) in self.words.iter_mut().zip(&other.words) {
            *word |= others;
        }
    }

    /// Is that slot in the set?
    #[must_use]
    pub fn contains(&self, Slot(slot): Slot) -> bool {
        let word = self.words.get(usize::from(slot) / WORD_BITS);
        word.is_some_and(|word| word >> (usize::from(slot) % WORD_BITS) & 1 == 1)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let bits = self.words.iter().map(|word| word.count_ones() as usize);
        bits.sum()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Its slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        let bits = |at: usize| -> Range<usize> { at * WORD_BITS..(at + 1) * WORD_BITS };
        let all = (0..self.words.len()).filter(|&at| self.words[at] != 0);
        let all = all.flat_map(bits).map(|slot| Slot(slot as u16));
        all.filter(|&slot| self.contains(slot))
    }

    /// Memory that it takes, beside its place in a map.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        let mut set = Self::new();
        for slot in slots {
            set.insert(slot);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(
            runs in prop::collection::vec((any::<u16>(), 0u32..300), 0..20),
            others in prop::collection::btree_set(any::<u16>(), 0..50),
        ) {
            let (mut set, mut model) = (SlotSet::new(), BTreeSet::new());
            for (first, count) in runs {
                set.insert_run(Slot(first), count);
                model.extend((first..=u16::MAX).take(count as usize));
            }
            let other: SlotSet = others.iter().copied().map(Slot).collect();
            set.insert_all(&other);
            model.extend(others);
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.is_empty(), model.is_empty());
            prop_assert!(set.iter().map(|slot| slot.0).eq(model.iter().copied()));
            prop_assert!((0..=u16::MAX).all(|slot| set.contains(Slot(slot)) == model.contains(&slot)));
            prop_assert!(set.memory_bytes() <= 2 * 8192);
        }
    }

    #[test]
    fn an_empty_tail_takes_no_memory() {
        let mut set = SlotSet::new();
        assert_eq!(set.memory_bytes(), 0);
        assert!(set.insert(Slot(63)) && !set.insert(Slot(63)));
        assert_eq!(set.words.len(), 1);
        assert!(set.insert(Slot(u16::MAX)));
        assert_eq!((set.words.len() * 8, set.len()), (8192, 2));
    }
}
