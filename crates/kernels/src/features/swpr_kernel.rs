//! SWPR with sub-windows of four bytes on every level but the scalar one (Odess, Algorithm 2). A macro,
//! for what differs are the names of instructions, and functions that are generic over those would not
//! be compiled for their features.
//!
//! Method. Four windows lie side by side in 128 bits, as in the paper; their hashes move on by four
//! bytes with one shuffle (the big-endian numbers that begin at four bytes in a row), one shift, one
//! addition. Wider registers hold several lanes of the chunk, and two registers run side by side,
//! because each hash waits for the one before.
//!
//! A hash in 128 is sampled, so that among the eight hashes that come to lie at one place of a register
//! in a turn there is seldom more than one. So the greatest of the eight is kept when it reaches the
//! bound, without a branch, and the second greatest tells whether that was all: if not, all eight are
//! looked at.

/// The functions of a level, in a module that has
/// - `V`, a register of `LANES` numbers of 32 bits, in `PARTS` parts of 128 bits;
/// - `gather`, 16 bytes from each of `PARTS` places; `join_at_12`, 16 bytes of each part from byte 12
///   on, and those of another register behind;
/// - `numbers`, one of the shuffles of `NUMBERS`, the same in each part; `shift`, by 4 bits up; `add`,
///   `min`, `max`, `splat`;
/// - `reaches`, whether any number of a register reaches those of another; `keep`, which writes those
///   numbers of a register that reach a bound, close together, and says how many.
macro_rules! swpr_kernel {
    ($features:literal) => {
        /// Lanes of a chunk.
        const SEGMENTS: usize = 2 * PARTS;

        /// Collects hashes of at least `boundary`; says whether the chunk is long enough for it.
        #[target_feature(enable = $features)]
        pub(super) fn swpr_four(
            boundary: u32,
            chunk: &[u8],
            collector: &mut Collector<'_>,
        ) -> bool {
            let windows = (chunk.len() + 1).saturating_sub(WINDOW_BYTES);
            let lane = windows.div_ceil(SEGMENTS).next_multiple_of(16);
            if windows < lane || windows == 0 {
                return false;
            }
            let starts = std::array::from_fn(|place| (place * lane).min(windows - lane));
            if boundary < DENSE_BELOW {
                swpr_lanes::<true>(boundary, chunk, &starts, lane, collector);
            } else {
                swpr_lanes::<false>(boundary, chunk, &starts, lane, collector);
            }
            true
        }

        #[target_feature(enable = $features)]
        fn swpr_lanes<const IS_DENSE: bool>(
            boundary: u32,
            chunk: &[u8],
            starts: &[usize; SEGMENTS],
            lane: usize,
            collector: &mut Collector<'_>,
        ) {
            /// What is hashed before the first window is full.
            const WARM_BYTES: usize = WINDOW_BYTES - 4;
            assert!(
                starts
                    .iter()
                    .all(|start| start + lane + WINDOW_BYTES - 1 <= chunk.len())
            );
            let places: [*const u8; SEGMENTS] =
                std::array::from_fn(|place| chunk.as_ptr().wrapping_add(starts[place]));
            let (first, second) = places.split_at(PARTS);
            let first: &[*const u8; PARTS] = first.try_into().expect("half of the places");
            let second: &[*const u8; PARTS] = second.try_into().expect("half of the places");
            let load = |places: &[*const u8; PARTS], offset: usize| {
                // SAFETY: a lane has `lane + 31` bytes, and no offset is above `lane + 15`.
                unsafe { gather(places, offset) }
            };
            let shuffles: [V; 4] = std::array::from_fn(|row| shuffle(row));
            let bound = splat(boundary);
            // Numbers at the offset, and 4, 8 and 12 bytes behind it; the last need three bytes more.
            let rows_of = |bytes: V, last: V| {
                [
                    numbers(bytes, shuffles[0]),
                    numbers(bytes, shuffles[1]),
                    numbers(bytes, shuffles[2]),
                    last,
                ]
            };
            let rows = |places: &[*const u8; PARTS], offset: usize| {
                let last = numbers(load(places, offset + 3), shuffles[3]);
                rows_of(load(places, offset), last)
            };
            let halves = [first, second];
            let mut hashes = halves.map(|places| {
                let mut hash = splat(0);
                let (head, tail) = (rows(places, 0), rows(places, WARM_BYTES - 16));
                for numbers in head.into_iter().chain(tail.into_iter().skip(1)) {
                    hash = add(shift(hash), numbers);
                }
                hash
            });
            // The last 16 bytes of a lane, of which 13 would be too many behind 16 others.
            let last = WARM_BYTES + lane - 16;
            let mut bytes = halves.map(|places| load(places, WARM_BYTES));
            for offset in (WARM_BYTES..=last).step_by(16) {
                collector.make_room(2 * 4 * LANES);
                prefetch_behind::<{ SEGMENTS * 16 }>(chunk, SEGMENTS * (offset - WARM_BYTES));
                let mut taken = [[splat(0); 4]; 2];
                for half in 0..2 {
                    let next = load(halves[half], (offset + 16).min(last + 3));
                    // One more load costs more than joining where it is several.
                    let row = if PARTS == 1 {
                        numbers(load(halves[half], offset + 3), shuffles[3])
                    } else if offset == last {
                        numbers(next, shuffles[3])
                    } else {
                        numbers(join_at_12(bytes[half], next), shuffles[0])
                    };
                    for (taken, row) in taken[half].iter_mut().zip(rows_of(bytes[half], row)) {
                        hashes[half] = add(shift(hashes[half]), row);
                        *taken = hashes[half];
                    }
                    bytes[half] = next;
                }
                let [a, b] = taken;
                if !IS_DENSE {
                    let (greatest, second_greatest) = greatest_of(a, b);
                    keep(greatest, bound, collector);
                    if !reaches(second_greatest, bound) {
                        continue;
                    }
                }
                for hashes in a.into_iter().chain(b) {
                    keep(hashes, bound, collector);
                }
            }
        }

        /// The greatest and the second greatest of eight, place by place.
        #[inline]
        #[target_feature(enable = $features)]
        fn greatest_of(a: [V; 4], b: [V; 4]) -> (V, V) {
            let pair = |k: usize| (max(a[k], b[k]), min(a[k], b[k]));
            let joined = |one: (V, V), other: (V, V)| {
                let second = max(min(one.0, other.0), max(one.1, other.1));
                (max(one.0, other.0), second)
            };
            joined(joined(pair(0), pair(1)), joined(pair(2), pair(3)))
        }
    };
}

pub(super) use swpr_kernel;
