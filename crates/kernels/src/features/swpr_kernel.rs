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
/// - `gather`, 16 bytes from each of `PARTS` places;
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
            // SAFETY: a lane has `lane + 31` bytes; what is loaded ends at most 19 bytes behind an
            // offset that is at most `lane + 12`.
            let load =
                |places: &[*const u8; PARTS], offset: usize| unsafe { gather(places, offset) };
            let shuffles: [V; 4] = std::array::from_fn(|row| shuffle(row));
            let bound = splat(boundary);
            // Numbers at the offset, and 4, 8 and 12 bytes behind it: these do not lie in 16 bytes.
            let rows = |places: &[*const u8; PARTS], offset: usize| {
                let bytes = load(places, offset);
                let behind = load(places, offset + 3);
                [
                    numbers(bytes, shuffles[0]),
                    numbers(bytes, shuffles[1]),
                    numbers(bytes, shuffles[2]),
                    numbers(behind, shuffles[3]),
                ]
            };
            let mut hashes = [first, second].map(|places| {
                let mut hash = splat(0);
                let (head, tail) = (rows(places, 0), rows(places, WARM_BYTES - 16));
                for numbers in head.into_iter().chain(tail.into_iter().skip(1)) {
                    hash = add(shift(hash), numbers);
                }
                hash
            });
            for offset in (0..lane).step_by(16) {
                collector.make_room(2 * 4 * LANES);
                let mut both = [[splat(0); 4]; 2];
                let (a, b) = (
                    rows(first, WARM_BYTES + offset),
                    rows(second, WARM_BYTES + offset),
                );
                for row in 0..4 {
                    hashes[0] = add(shift(hashes[0]), a[row]);
                    hashes[1] = add(shift(hashes[1]), b[row]);
                    both[0][row] = hashes[0];
                    both[1][row] = hashes[1];
                }
                if IS_DENSE {
                    both.as_flattened()
                        .iter()
                        .for_each(|&hashes| keep(hashes, bound, collector));
                    continue;
                }
                let [a, b] = both;
                let (greatest, second_greatest) = greatest_of(a, b);
                keep(greatest, bound, collector);
                if reaches(second_greatest, bound) {
                    both.as_flattened()
                        .iter()
                        .for_each(|&hashes| keep(hashes, bound, collector));
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
