//! One place judged alone, beside what cuts there.

use crate::collection::{any_parameters, small};
use crate::random::any_data;
use crate::{sized, unkeyed};
use chunking::{ALGORITHMS, Algorithm, Chunker, KeyMaterial, Parameters};
use proptest::prelude::*;

/// Fails unless the first length from min on that [`Chunker::is_cut_at`] is true of is the cut.
fn assert_first_place_is_the_cut(chunker: &Chunker, data: &[u8]) {
    let parameters = chunker.parameters();
    let cut = chunker.cut(data);
    let from = (parameters.min_bytes as usize).min(data.len());
    let places = (from..=data.len()).find(|&length| chunker.is_cut_at(data, length));
    // Only what is behind it tells a backup cut.
    let is_backup = parameters.algorithm == Algorithm::Tttd && !chunker.is_cut_at(data, cut);
    assert!(is_backup || places.unwrap_or(0) == cut, "{parameters:?}");
    let possible = from.max(1)..=data.len().min(parameters.max_bytes as usize);
    for length in [0, 1, from.saturating_sub(1), data.len(), data.len() + 1] {
        let is_judged = possible.contains(&length);
        assert!(is_judged || !chunker.is_cut_at(data, length), "{length}");
    }
}

proptest! {
    #[test]
    fn the_first_place_that_cuts_is_the_cut(
        parameters in any_parameters(),
        data in any_data(),
        start in 0usize..60_000,
    ) {
        let data = &data[start.min(data.len())..];
        assert_first_place_is_the_cut(&unkeyed(&parameters), data);
    }

    #[test]
    fn so_with_a_key(index in 0..ALGORITHMS.len(), seed: u64, data in any_data()) {
        let info = &ALGORITHMS[index];
        prop_assume!(info.keyed);
        let table = std::array::from_fn(|byte| {
            (seed ^ byte as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
                .wrapping_mul(0xd6e8_feb8_6659_fd93)
        });
        let key = KeyMaterial::Table(Box::new(table));
        let parameters = Parameters { min_bytes: 64, avg_bytes: 256, ..small(info.algorithm) };
        let parameters = Parameters { max_bytes: 1024, ..parameters };
        let parameters = [parameters, small(info.algorithm)]
            .into_iter()
            .find(|parameters| parameters.validate().is_ok())
            .expect("the second is possible");
        let chunker = Chunker::new(&parameters, key).expect("possible");
        assert_first_place_is_the_cut(&chunker, &data);
    }
}

#[test]
fn the_mask_is_the_one_in_force() {
    // On many chunks, so that there are cuts just before and just behind the normal size.
    let parameters = Parameters {
        normalization: 3,
        ..sized(Algorithm::FastCdc, 64, 256, 2048)
    };
    let chunker = unkeyed(&parameters);
    let data = crate::random::random_bytes(3, 400_000);
    let mut sides = [0; 2];
    for chunk in chunker.chunks(&data) {
        let rest = &data[chunk.start..];
        assert_first_place_is_the_cut(&chunker, &rest[..rest.len().min(2048)]);
        sides[usize::from(chunk.len() >= 256)] += 1;
    }
    assert!(sides[0] > 20 && sides[1] > 20, "{sides:?}");
}
