//! Rabin fingerprints of all windows, transformed or not, on the levels that have the planes of
//! `linear`. A macro, for what differs are the names of instructions, and functions that are generic
//! over those would not be compiled for their features.

/// The functions of a level, `$linear` being its module in `crate::linear`, in a module that has what
/// `transforms_kernel` makes and needs, and `words`: four registers of words of 32 bits made of four
/// planes, by interleaving bytes within each 16 and then words.
macro_rules! rabin_kernel {
    ($features:literal, $linear:ident) => {
        /// Lanes of a chunk.
        const PLACES: usize = crate::linear::$linear::LANES;

        /// See [`FeatureRabin::minima`](super::rabin::FeatureRabin::minima); says whether the chunk is
        /// long enough for it.
        #[target_feature(enable = $features)]
        pub(super) fn rabin_minima(
            linear: &Linear<4, false>,
            transforms: &Transforms,
            chunk: &[u8],
            minima: &mut [u32],
        ) -> bool {
            /// Registers of words that are transformed together.
            const TOGETHER: usize = 64;
            let windows = (chunk.len() + 1).saturating_sub(WINDOW_BYTES);
            let steps = windows
                .div_ceil(PLACES)
                .saturating_sub(1)
                .next_multiple_of(16);
            if windows < steps + 1 {
                return false;
            }
            let starts =
                std::array::from_fn(|place| (place * (steps + 1)).min(windows - (steps + 1)));
            let mut values = [[0u32; LANES]; TOGETHER];
            let (mut count, mut behind) = (0, 0);
            let mut lowest = [splat(u32::MAX); TRANSFORMS_MOST];
            let lowest = &mut lowest[..minima.len()];
            crate::linear::$linear::roll(linear, chunk, &starts, steps, |planes| {
                for (values, words) in values[count..].iter_mut().zip(words(planes)) {
                    *values = store(words);
                }
                count += 4;
                prefetch_behind::<PLACES>(chunk, behind);
                behind += PLACES;
                if count == TOGETHER {
                    transform_many(transforms, values.as_flattened(), lowest);
                    count = 0;
                }
            });
            transform_many(transforms, values[..count].as_flattened(), lowest);
            join(lowest, minima);
            true
        }

        /// See [`FeatureRabin::maxima`](super::rabin::FeatureRabin::maxima): `bound(k)` is where part k
        /// begins. Says whether there are lanes for the parts, and the parts are long enough.
        #[target_feature(enable = $features)]
        pub(super) fn rabin_maxima(
            linear: &Linear<4, false>,
            chunk: &[u8],
            bound: impl Fn(usize) -> usize,
            maxima: &mut [u32],
        ) -> bool {
            let parts = maxima.len();
            let places = PLACES / parts;
            let windows =
                |part: usize| (bound(part + 1) + 1).saturating_sub(bound(part) + WINDOW_BYTES);
            let most = (0..parts).map(windows).max().unwrap_or(0);
            let fewest = (0..parts).map(windows).min().unwrap_or(0);
            if places == 0 {
                return false;
            }
            let steps = most.div_ceil(places).saturating_sub(1).next_multiple_of(16);
            if fewest < steps + 1 {
                return false;
            }
            // Places behind the last part go with the first.
            let part_of = |place: usize| Some(place / places).filter(|&part| part < parts);
            let starts = std::array::from_fn(|place| {
                part_of(place).map_or(bound(0), |part| {
                    let within = place % places * (steps + 1);
                    bound(part) + within.min(windows(part) - (steps + 1))
                })
            });
            let mut greatest = [splat(0); 4];
            let mut behind = 0;
            crate::linear::$linear::roll(linear, chunk, &starts, steps, |planes| {
                let words = words(planes);
                prefetch_behind::<PLACES>(chunk, behind);
                behind += PLACES;
                for k in 0..4 {
                    greatest[k] = max(greatest[k], words[k]);
                }
            });
            maxima.fill(0);
            for (k, words) in greatest.into_iter().enumerate() {
                for (index, word) in store(words).into_iter().enumerate() {
                    let place = index / 4 * 16 + 4 * k + index % 4;
                    if let Some(part) = part_of(place) {
                        maxima[part] = maxima[part].max(word);
                    }
                }
            }
            true
        }
    };
}

pub(super) use rabin_kernel;
