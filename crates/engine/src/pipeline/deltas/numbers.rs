//! The numbers under which the super-feature index knows chunks, and which chunks they are.
//!
//! New chunks get rising numbers from [`START`] on, those of containers that were there before
//! falling ones from there: the higher, the newer, if containers come in the newest first. When the
//! numbers run out, the oldest quarter of them is given up.

use std::collections::VecDeque;

use crate::container::{ContainerId, ContainerKind, Slot};
use crate::similarity::index::NUMBER_END;

/// Consecutive chunks of a row that get consecutive numbers.
const BLOCK: u32 = 64;

/// The first number of a new chunk: 12.6 million are left for those that were there before.
const START: u32 = NUMBER_END / 4 * 3;

/// Which chunk has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// One that was there before.
    Stored { container: ContainerId, slot: Slot },
    /// A new one, by its row and its number there.
    New { kind: ContainerKind, sequence: u64 },
}

#[derive(Debug, Clone, Copy)]
enum Owner {
    Container(ContainerId),
    Row {
        kind: ContainerKind,
        first_sequence: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Range {
    first: u32,
    count: u32,
    owner: Owner,
}

/// Gives out numbers and takes them back.
#[derive(Debug)]
pub struct Numbers {
    /// Ascending.
    ranges: VecDeque<Range>,
    next_new: u32,
    /// The lowest number given to a stored chunk.
    lowest: u32,
    /// Where the open block of each row begins: number and sequence.
    blocks: [Option<(u32, u64)>; 2],
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            ranges: VecDeque::new(),
            next_new: START,
            lowest: START,
            blocks: [None; 2],
        }
    }
}

impl Numbers {
    /// The number of a new chunk. Those of a row must come in ascending order. When none is left, the
    /// oldest are given up: `renumber` learns by how much all others fall.
    pub fn of_new(
        &mut self,
        kind: ContainerKind,
        sequence: u64,
        renumber: impl FnOnce(u32),
    ) -> u32 {
        let row = usize::from(kind == ContainerKind::Deltas);
        if let Some((first, first_sequence)) = self.blocks[row]
            && sequence - first_sequence < u64::from(BLOCK)
        {
            return first + (sequence - first_sequence) as u32;
        }
        if self.next_new + BLOCK > NUMBER_END {
            self.renumber(NUMBER_END / 4);
            renumber(NUMBER_END / 4);
        }
        let first = self.next_new;
        self.next_new += BLOCK;
        self.blocks[row] = Some((first, sequence));
        self.ranges.push_back(Range {
            first,
            count: BLOCK,
            owner: Owner::Row {
                kind,
                first_sequence: sequence,
            },
        });
        first
    }

    /// The number of slot 0 of a container that was there before, whose slots are all below
    /// `slots`; nothing when there are no more numbers.
    pub fn of_container(&mut self, container: ContainerId, slots: u32) -> Option<u32> {
        let first = self.lowest.checked_sub(slots).filter(|&first| first > 0)?;
        self.lowest = first;
        self.ranges.push_front(Range {
            first,
            count: slots,
            owner: Owner::Container(container),
        });
        Some(first)
    }

    /// Which chunk has that number.
    pub fn known(&self, number: u32) -> Option<Known> {
        let next = self.ranges.partition_point(|range| range.first <= number);
        let range = self.ranges.get(next.checked_sub(1)?)?;
        let at = number - range.first;
        if at >= range.count {
            return None;
        }
        Some(match range.owner {
            Owner::Container(container) => Known::Stored {
                container,
                slot: Slot(at as u16),
            },
            Owner::Row {
                kind,
                first_sequence,
            } => Known::New {
                kind,
                sequence: first_sequence + u64::from(at),
            },
        })
    }

    fn renumber(&mut self, step: u32) {
        self.ranges.retain_mut(|range| {
            // A range that would lose some of its numbers loses all.
            let moved = range.first.checked_sub(step).filter(|&first| first > 0);
            range.first = moved.unwrap_or(0);
            moved.is_some()
        });
        self.next_new -= step;
        self.lowest = self.lowest.saturating_sub(step);
        self.blocks = [None; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectId;

    #[test]
    fn numbers_name_their_chunks() {
        let mut numbers = Numbers::default();
        let container = |number: u8| ContainerId(ObjectId([number; 16]));
        let first = numbers.of_container(container(1), 500).unwrap();
        let second = numbers.of_container(container(2), 70).unwrap();
        assert!(second + 70 == first);
        let stored = |container, slot| {
            Some(Known::Stored {
                container,
                slot: Slot(slot),
            })
        };
        assert_eq!(numbers.known(first + 499), stored(container(1), 499));
        assert_eq!(numbers.known(second), stored(container(2), 0));
        assert_eq!(numbers.known(second - 1), None);
        let (data, deltas) = (ContainerKind::Data, ContainerKind::Deltas);
        let mut of_new = |kind, sequence| numbers.of_new(kind, sequence, |_| panic!("room"));
        let given = [
            of_new(data, 5),
            of_new(deltas, 0),
            of_new(data, 68),
            of_new(data, 69),
        ];
        assert!(given[2] == given[0] + 63 && given[3] > given[1]);
        let new = |kind, sequence| Some(Known::New { kind, sequence });
        assert_eq!(
            given.map(|number| numbers.known(number)),
            [new(data, 5), new(deltas, 0), new(data, 68), new(data, 69),]
        );
        assert_eq!(numbers.of_container(container(3), NUMBER_END), None);
    }

    #[test]
    fn when_they_run_out_the_oldest_are_given_up() {
        let mut numbers = Numbers::default();
        let container = ContainerId(ObjectId([7; 16]));
        let old = numbers.of_container(container, 60_000).unwrap();
        let kind = ContainerKind::Data;
        let (mut fallen, mut sequence, mut last) = (0, 0, 0);
        while fallen < 2 {
            let number = numbers.of_new(kind, sequence, |_| fallen += 1);
            assert_eq!(numbers.known(number), Some(Known::New { kind, sequence }));
            assert!(number > last || fallen > 0);
            (last, sequence) = (number, sequence + 1);
        }
        // It falls as all others do, by two steps of a quarter.
        let moved = numbers.known(old - NUMBER_END / 2);
        assert!(matches!(moved, Some(Known::Stored { .. })));
        assert!(u64::from(NUMBER_END / 2) - 64 <= sequence);
    }
}
