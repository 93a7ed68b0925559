//! What to read next, and what to keep, when a stream is read back in order.
//!
//! Enter: the groups that the stream needs, in stream order, as far as they are known ahead (the
//! *window*); groups as they arrive. Leave: *visits*, each some groups of one container that are to
//! be read now; the group that the stream needs next.
//!
//! A recipe says the future, so nothing has to be guessed from the past. Groups are read in the
//! order of their first use; a visit takes along whatever else the window needs of its container.
//! When there is no room, the group goes whose next use is farthest, or which the window does
//! not need any more (Belady, 1966: no other choice reads less often; within the window). A group is never
//! dropped for one that is needed later. Forward assembly (Lillibridge et al., FAST'13, §4) is
//! the same with parts of the stream as the room to assemble in, and without memory beyond
//! the window's end.
//!
//! Invariants: what is kept and what is being read together are at most the limit, but for the
//! group that the stream waits for, which is let in always: the stream gets on with any limit.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

/// A group of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupPlace<C> {
    /// The container.
    pub container: C,
    /// Its number there.
    pub group: u32,
}

/// The window, and what of it is in memory as `P`.
#[derive(Debug)]
pub struct LookAhead<C, P> {
    limit_bytes: u64,
    used_bytes: u64,
    /// The groups needed, and the number of the first of them.
    needs: VecDeque<GroupPlace<C>>,
    first: u64,
    known: HashMap<GroupPlace<C>, Known<P>>,
    /// Groups that nobody has read, by first use and by place.
    absent: BTreeMap<u64, GroupPlace<C>>,
    absent_places: BTreeMap<GroupPlace<C>, u64>,
    /// Groups in memory: the last one goes first.
    ready: BTreeSet<(Rank, GroupPlace<C>)>,
    visits: u64,
}

/// How soon a group is needed: its next use, or, for one that the window does not need, how long
/// ago it was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Needed { next: u64 },
    Spare { uses_since: u64 },
}

#[derive(Debug)]
struct Known<P> {
    uses: VecDeque<u64>,
    last_use: u64,
    bytes: u64,
    state: State<P>,
}

#[derive(Debug)]
enum State<P> {
    Absent,
    Fetching,
    Ready(P),
}

impl<P> Known<P> {
    fn rank(&self) -> Rank {
        match self.uses.front() {
            Some(&next) => Rank::Needed { next },
            None => Rank::Spare {
                uses_since: u64::MAX - self.last_use,
            },
        }
    }
}

impl<C: Copy + Ord + Hash, P: Clone> LookAhead<C, P> {
    /// An empty window that keeps at most `limit_bytes` of groups.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            used_bytes: 0,
            needs: VecDeque::new(),
            first: 0,
            known: HashMap::new(),
            absent: BTreeMap::new(),
            absent_places: BTreeMap::new(),
            ready: BTreeSet::new(),
            visits: 0,
        }
    }

    /// How many uses the window knows of that are not done with.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.needs.len()
    }

    /// How many visits were made so far.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.visits
    }

    /// The stream needs that group, of so many bytes, after all that was pushed before.
    pub fn push(&mut self, place: GroupPlace<C>, bytes: u64) {
        let number = self.first + self.needs.len() as u64;
        self.needs.push_back(place);
        let known = self.known.entry(place).or_insert_with(|| Known {
            uses: VecDeque::new(),
            last_use: 0,
            bytes,
            state: State::Absent,
        });
        let before = known.rank();
        known.uses.push_back(number);
        if known.uses.len() > 1 {
            return;
        }
        match known.state {
            State::Ready(_) => {
                self.ready.remove(&(before, place));
                self.ready.insert((Rank::Needed { next: number }, place));
            }
            State::Absent => {
                self.absent.insert(number, place);
                self.absent_places.insert(place, number);
            }
            State::Fetching => {}
        }
    }

    /// Groups of one container, ascending, to be read now: [`LookAhead::arrived`] follows for each.
    /// Nothing when all is here that is needed, or there is no room for more.
    pub fn next_visit(&mut self) -> Option<Vec<GroupPlace<C>>> {
        let (&use_number, &place) = self.absent.first_key_value()?;
        if !self.begin(place, use_number, use_number == self.first) {
            return None;
        }
        let all = GroupPlace { group: 0, ..place }..=GroupPlace {
            group: u32::MAX,
            ..place
        };
        let mut others: Vec<_> = self
            .absent_places
            .range(all)
            .map(|(&place, &use_number)| (use_number, place))
            .collect();
        others.sort_unstable();
        let mut visit = vec![place];
        for (use_number, place) in others {
            if !self.begin(place, use_number, false) {
                break;
            }
            visit.push(place);
        }
        visit.sort_unstable();
        self.visits += 1;
        Some(visit)
    }

    /// Makes room for a group and says that it is being read; false when there is no room.
    fn begin(&mut self, place: GroupPlace<C>, use_number: u64, must: bool) -> bool {
        let bytes = self.known[&place].bytes;
        while self.used_bytes + bytes > self.limit_bytes {
            let soon = Rank::Needed { next: use_number };
            match self.ready.last() {
                Some(&(rank, farthest)) if rank > soon => self.drop_group(rank, farthest),
                _ if must => break,
                _ => return false,
            }
        }
        self.absent.remove(&use_number);
        self.absent_places.remove(&place);
        self.used_bytes += bytes;
        if let Some(known) = self.known.get_mut(&place) {
            known.state = State::Fetching;
        }
        true
    }

    fn drop_group(&mut self, rank: Rank, place: GroupPlace<C>) {
        self.ready.remove(&(rank, place));
        let Some(known) = self.known.get_mut(&place) else {
            return;
        };
        self.used_bytes -= known.bytes;
        known.state = State::Absent;
        match known.uses.front() {
            Some(&next) => {
                self.absent.insert(next, place);
                self.absent_places.insert(place, next);
            }
            None => drop(self.known.remove(&place)),
        }
    }

    /// A group of a visit is here.
    ///
    /// # Panics
    /// When nobody was asked to read it.
    pub fn arrived(&mut self, place: GroupPlace<C>, group: P) {
        let known = self.known.get_mut(&place);
        let known = known.filter(|known| matches!(known.state, State::Fetching));
        let known = known.expect("a group that was asked for");
        known.state = State::Ready(group);
        let rank = known.rank();
        self.ready.insert((rank, place));
    }

    /// The group that the stream needs now, if it is here.
    #[must_use]
    pub fn front(&self) -> Option<P> {
        match &self.known.get(self.needs.front()?)?.state {
            State::Ready(group) => Some(group.clone()),
            State::Absent | State::Fetching => None,
        }
    }

    /// The stream has got what it needed now.
    ///
    /// # Panics
    /// When that is not here.
    pub fn pop(&mut self) {
        let place = self.needs.pop_front().expect("something is needed");
        let known = self.known.get_mut(&place);
        let known = known.filter(|known| matches!(known.state, State::Ready(_)));
        let known = known.expect("a group that is here");
        self.ready.remove(&(known.rank(), place));
        known.uses.pop_front();
        known.last_use = self.first;
        self.ready.insert((known.rank(), place));
        self.first += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(container: u32, group: u32) -> GroupPlace<u32> {
        GroupPlace { container, group }
    }

    /// Reads a stream with one reader that is always in time; returns the groups in the order in
    /// which they were read, and how many visits there were.
    fn read(
        stream: &[GroupPlace<u32>],
        limit_bytes: u64,
        window: usize,
    ) -> (Vec<GroupPlace<u32>>, u64) {
        let mut look: LookAhead<u32, GroupPlace<u32>> = LookAhead::new(limit_bytes);
        let mut pushed = 0;
        let mut reads = Vec::new();
        for &expected in stream {
            while pushed < stream.len() && look.waiting() < window {
                look.push(stream[pushed], 1);
                pushed += 1;
            }
            while look.front().is_none() {
                for place in look.next_visit().expect("what is needed now has room") {
                    reads.push(place);
                    look.arrived(place, place);
                }
            }
            assert!(look.used_bytes <= limit_bytes.max(1));
            assert_eq!(look.front(), Some(expected));
            look.pop();
        }
        assert_eq!(look.waiting(), 0);
        (reads, look.visits())
    }

    /// The least number of reads with room for so many groups of one byte each: Belady's.
    fn least_reads(stream: &[GroupPlace<u32>], room: usize) -> usize {
        let mut here: Vec<GroupPlace<u32>> = Vec::new();
        let mut reads = 0;
        for (now, place) in stream.iter().enumerate() {
            if here.contains(place) {
                continue;
            }
            reads += 1;
            if here.len() == room {
                let next_use = |place: &GroupPlace<u32>| {
                    let later = stream[now..].iter().position(|other| other == place);
                    later.unwrap_or(usize::MAX)
                };
                let farthest = (0..room).max_by_key(|&at| next_use(&here[at]));
                here.swap_remove(farthest.expect("some room"));
            }
            here.push(*place);
        }
        reads
    }

    #[test]
    fn a_visit_takes_along_what_its_container_has() {
        let stream = [
            place(1, 2),
            place(2, 0),
            place(1, 0),
            place(1, 2),
            place(1, 5),
        ];
        let (reads, visits) = read(&stream, 10, 10);
        let expected = [place(1, 0), place(1, 2), place(1, 5), place(2, 0)];
        assert_eq!((&reads[..], visits), (&expected[..], 2));
        // Known only one need ahead, and with room for one group.
        assert_eq!(read(&stream, 1, 1).1, 5);
    }

    #[test]
    fn a_group_larger_than_the_limit_goes_alone() {
        let mut look: LookAhead<u32, u8> = LookAhead::new(10);
        look.push(place(1, 0), 100);
        look.push(place(2, 0), 5);
        assert_eq!(look.next_visit(), Some(vec![place(1, 0)]));
        assert_eq!(look.next_visit(), None, "no room beside it");
        look.arrived(place(1, 0), 1);
        assert_eq!(look.next_visit(), None);
        assert_eq!(look.front(), Some(1));
        look.pop();
        assert_eq!(look.front(), None);
        assert_eq!(look.next_visit(), Some(vec![place(2, 0)]));
        assert_eq!(look.used_bytes, 5);
    }

    proptest! {
        #[test]
        fn nothing_reads_less(
            stream in prop::collection::vec(0..12u32, 1..200),
            room in 1..8usize,
        ) {
            // One group a container, so that a visit is a read; the whole stream is known.
            let stream: Vec<_> = stream.into_iter().map(|number| place(number, 0)).collect();
            let (reads, visits) = read(&stream, room as u64, stream.len());
            prop_assert_eq!(reads.len(), least_reads(&stream, room));
            prop_assert_eq!(visits as usize, reads.len());
        }

        #[test]
        fn everything_comes_in_order_with_any_window(
            stream in prop::collection::vec((0..6u32, 0..4u32), 1..200),
            room in 1..8u64,
            window in 1..50usize,
        ) {
            let stream: Vec<_> = stream.into_iter().map(|(c, g)| place(c, g)).collect();
            let (reads, visits) = read(&stream, room, window);
            prop_assert!(visits as usize <= reads.len());
        }
    }
}
