//! Transforms on every level but the scalar one. A macro, for what differs are the names of
//! instructions, and functions that are generic over those would not be compiled for their features.

/// The functions of a level, in a module that has
/// - `V`, a register of `LANES` numbers of 32 bits;
/// - `load`, `store`, `splat`, `add`, `mul`, `min` of such numbers without a sign, and `least`, the
///   least number of a register.
macro_rules! transforms_kernel {
    ($features:literal) => {
        /// See [`Transforms::apply`].
        #[target_feature(enable = $features)]
        pub(super) fn transform(transforms: &Transforms, values: &[u32], minima: &mut [u32]) {
            if values.len() < MANY {
                transform_few(transforms, values, minima);
            } else {
                let mut least = [splat(u32::MAX); TRANSFORMS_MOST];
                transform_many(transforms, values, &mut least[..minima.len()]);
                join(&least, minima);
            }
        }

        /// A transform a lane.
        #[target_feature(enable = $features)]
        fn transform_few(transforms: &Transforms, values: &[u32], minima: &mut [u32]) {
            let (multipliers, _) = transforms.multipliers.as_chunks::<LANES>();
            let (addends, _) = transforms.addends.as_chunks::<LANES>();
            let constants = multipliers.iter().zip(addends);
            for (minima, (multipliers, addends)) in minima.chunks_mut(LANES).zip(constants) {
                let (multipliers, addends) = (load(multipliers), load(addends));
                let mut least = splat(u32::MAX);
                for &value in values {
                    least = min(least, add(mul(splat(value), multipliers), addends));
                }
                for (minimum, least) in minima.iter_mut().zip(store(least)) {
                    *minimum = least.min(*minimum);
                }
            }
        }

        /// A value a lane: lowers each register to what its transform makes of the values.
        #[target_feature(enable = $features)]
        fn transform_many(transforms: &Transforms, values: &[u32], least: &mut [V]) {
            let (whole, rest) = values.as_chunks::<LANES>();
            // What is there twice counts once.
            let mut padded = [values.first().copied().unwrap_or(0); LANES];
            padded[..rest.len()].copy_from_slice(rest);
            let padded = if rest.is_empty() { None } else { Some(&padded) };
            let constants = transforms.multipliers.chunks(4);
            let constants = constants.zip(transforms.addends.chunks(4));
            for (least, (multipliers, addends)) in least.chunks_mut(4).zip(constants) {
                let multipliers: [V; 4] = std::array::from_fn(|k| splat(multipliers[k]));
                let addends: [V; 4] = std::array::from_fn(|k| splat(addends[k]));
                let mut lowest = [splat(u32::MAX); 4];
                for values in whole.iter().chain(padded) {
                    let values = load(values);
                    for k in 0..4 {
                        let transformed = add(mul(values, multipliers[k]), addends[k]);
                        lowest[k] = min(lowest[k], transformed);
                    }
                }
                for (least, lowest) in least.iter_mut().zip(lowest) {
                    *least = min(*least, lowest);
                }
            }
        }

        /// Lowers each minimum to the least number of its register.
        #[target_feature(enable = $features)]
        fn join(registers: &[V], minima: &mut [u32]) {
            for (minimum, &register) in minima.iter_mut().zip(registers) {
                *minimum = least(register).min(*minimum);
            }
        }
    };
}

pub(super) use transforms_kernel;
