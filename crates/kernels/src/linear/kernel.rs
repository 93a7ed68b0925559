//! The loop of every level. A macro, for what differs are the names of instructions, and functions
//! that are generic over those would not be compiled for their features.

/// The functions of a level, in a module that has
/// - `V`, a register of `LANES` bytes, and `TURNED`, how many of them a block and a window need;
/// - `Maps`, the linear maps, `split`, what they are applied to, and `apply`;
/// - `load`, 16 bytes of lanes that are 16 apart, `load_each`, those of any places; `low` and `high`, which interleave the halves of
///   parts of 16 bytes; `zero`, `splat`, `xor`, `differing` (`rest | (hash ^ value) & mask`), `zeros`
///   (which bytes are zero, as bits).
macro_rules! linear_kernel {
    ($features:literal) => {
        /// Marks whole blocks; see [`Linear::mark`].
        ///
        /// # Safety
        /// The machine must have the features of the level.
        #[target_feature(enable = $features)]
        pub(super) fn mark<
            const PLANES: usize,
            const FED: bool,
            const FROM: usize,
            const END: usize,
        >(
            linear: &Linear<PLANES, FED>,
            judged: &Judged<PLANES>,
            data: &[u8],
            first: usize,
            mut from: usize,
            marks: &mut Marks<'_>,
        ) -> usize {
            let maps = Maps::new(linear);
            let judged = Wanted::new(judged);
            let window = linear.window_bytes;
            let mut turned = [zero(); TURNED];
            loop {
                let positions = data.len() - first - from;
                let lane = positions.min(BLOCK) / LANES / GROUP * GROUP;
                if lane < LANE_LOWEST {
                    return from;
                }
                let block = &data[first + from - window..][..window + LANES * lane];
                let mut hash = [zero(); PLANES];
                for index in (0..window).step_by(GROUP) {
                    let group = turn(block, index, lane);
                    turned[index..index + GROUP].copy_from_slice(&group);
                    for entering in group {
                        hash = advance(&maps, &hash, entering, None);
                    }
                }
                for index in (0..lane).step_by(GROUP) {
                    let group = turn(block, window + index, lane);
                    turned[window + index..][..GROUP].copy_from_slice(&group);
                    for (step, entering) in group.into_iter().enumerate() {
                        let leaving = turned[index + step];
                        hash = advance(&maps, &hash, entering, Some(leaving));
                        let mut loose = zeros(judged.rest::<FROM, END>(&hash, &judged.loose));
                        if loose != 0 {
                            let strict = zeros(judged.rest::<FROM, END>(&hash, &judged.strict));
                            while loose != 0 {
                                let k = loose.trailing_zeros();
                                let place = from + k as usize * lane + index + step;
                                marks.set(place, strict >> k & 1 == 1);
                                loose &= loose - 1;
                            }
                        }
                    }
                }
                from += LANES * lane;
            }
        }

        /// Hands out the hashes of all windows of lanes that begin anywhere, for windows of two groups:
        /// `steps + 1` times a hash of every lane, which has so many windows. In each 16 bytes of a
        /// register byte b is of lane 16 k + b, as they come.
        ///
        /// # Panics
        /// When windows have another size, a lane does not lie in the data, or `steps` is not a multiple
        /// of a group.
        #[target_feature(enable = $features)]
        pub(crate) fn roll<const PLANES: usize, const FED: bool>(
            linear: &Linear<PLANES, FED>,
            data: &[u8],
            starts: &[usize; LANES],
            steps: usize,
            mut take: impl FnMut([V; PLANES]),
        ) {
            assert!(linear.window_bytes == 2 * GROUP && steps.is_multiple_of(GROUP));
            let is_inside = |start: &usize| start + 2 * GROUP + steps <= data.len();
            assert!(starts.iter().all(is_inside), "lanes lie in the data");
            let maps = Maps::new(linear);
            let group = |index: usize| {
                let row = |row: usize| {
                    let place = |part: usize| {
                        data.as_ptr()
                            .wrapping_add(starts[part * GROUP + row] + index)
                    };
                    // SAFETY: lanes lie in the data, and `index` at least 16 bytes before their end.
                    unsafe { load_each(std::array::from_fn(place)) }
                };
                transposed(row)
            };
            let mut window = [group(0), group(GROUP)];
            let mut hash = [zero(); PLANES];
            for entering in window.into_iter().flatten() {
                hash = advance(&maps, &hash, entering, None);
            }
            take(hash);
            for index in (0..steps).step_by(GROUP) {
                let entered = group(2 * GROUP + index);
                for step in 0..GROUP {
                    hash = advance(&maps, &hash, entered[step], Some(window[0][step]));
                    take(hash);
                }
                window = [window[1], entered];
            }
        }

        /// The hashes of one byte more, and one less.
        #[inline]
        #[target_feature(enable = $features)]
        fn advance<const PLANES: usize, const FED: bool>(
            maps: &Maps<PLANES, FED>,
            hash: &[V; PLANES],
            entering: V,
            leaving: Option<V>,
        ) -> [V; PLANES] {
            let last = hash[PLANES - 1];
            let last = split(if FED { xor(last, entering) } else { last });
            let leaving = leaving.map(|leaving| split(leaving));
            let entering = split(entering);
            let mut next = [zero(); PLANES];
            for k in 0..PLANES {
                let mut change = apply(&maps.append[k], last);
                if let Some(leaving) = leaving {
                    change = xor(apply(&maps.leave[k], leaving), change);
                }
                if !FED && k < ENTERING {
                    change = xor(apply(&maps.enter[k], entering), change);
                }
                next[k] = if k > 0 {
                    xor(hash[k - 1], change)
                } else {
                    change
                };
            }
            next
        }

        /// What is looked for.
        struct Wanted<const PLANES: usize> {
            strict: [V; PLANES],
            loose: [V; PLANES],
            value: [V; PLANES],
        }

        impl<const PLANES: usize> Wanted<PLANES> {
            #[target_feature(enable = $features)]
            fn new(judged: &Judged<PLANES>) -> Self {
                Self {
                    strict: std::array::from_fn(|k| splat(judged.strict[k])),
                    loose: std::array::from_fn(|k| splat(judged.loose[k])),
                    value: std::array::from_fn(|k| splat(judged.value[k])),
                }
            }

            /// Zero in the lanes whose hash has the value under the masks.
            #[inline]
            #[target_feature(enable = $features)]
            fn rest<const FROM: usize, const END: usize>(
                &self,
                hash: &[V; PLANES],
                masks: &[V; PLANES],
            ) -> V {
                let mut rest = zero();
                for k in FROM..END {
                    rest = differing(rest, hash[k], self.value[k], masks[k]);
                }
                rest
            }
        }

        /// Bytes `index..index + 16` of all lanes, turned: register t has byte `index + t` of each.
        #[inline]
        #[target_feature(enable = $features)]
        fn turn(block: &[u8], index: usize, lane: usize) -> [V; GROUP] {
            assert!(index + GROUP + (LANES - 1) * lane <= block.len());
            let row = |row: usize| {
                // SAFETY: the last lane's bytes lie in the block.
                unsafe { load(block.as_ptr().add(index + row * lane), GROUP * lane) }
            };
            transposed(row)
        }

        /// Sixteen rows of 16 bytes a lane, turned.
        #[inline]
        #[target_feature(enable = $features)]
        fn transposed(row: impl Fn(usize) -> V) -> [V; GROUP] {
            // Written out, for loops over registers would put them into memory.
            let rows = [
                row(0),
                row(1),
                row(2),
                row(3),
                row(4),
                row(5),
                row(6),
                row(7),
                row(8),
                row(9),
                row(10),
                row(11),
                row(12),
                row(13),
                row(14),
                row(15),
            ];
            // Each round halves how far the bytes of a row stand apart from where they belong.
            halve(halve(halve(halve(rows))))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn halve(r: [V; GROUP]) -> [V; GROUP] {
            [
                low(r[0], r[8]),
                high(r[0], r[8]),
                low(r[1], r[9]),
                high(r[1], r[9]),
                low(r[2], r[10]),
                high(r[2], r[10]),
                low(r[3], r[11]),
                high(r[3], r[11]),
                low(r[4], r[12]),
                high(r[4], r[12]),
                low(r[5], r[13]),
                high(r[5], r[13]),
                low(r[6], r[14]),
                high(r[6], r[14]),
                low(r[7], r[15]),
                high(r[7], r[15]),
            ]
        }
    };
}

pub(super) use linear_kernel;
