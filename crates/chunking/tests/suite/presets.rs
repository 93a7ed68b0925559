//! Presets beside the libraries whose cuts they follow.

use crate::random::random_bytes;
use crate::{lengths, sized, unkeyed};
use chunking::{Algorithm, Parameters};
use fastcdc::v2020;
use proptest::prelude::*;

/// Bytes of 1 to 256 symbols.
fn any_data() -> impl Strategy<Value = Vec<u8>> {
    (any::<u64>(), 0usize..100_000, 1u16..=256).prop_map(|(seed, length, symbols)| {
        let mut data = random_bytes(seed, length);
        for byte in &mut data {
            *byte = (u16::from(*byte) % symbols) as u8;
        }
        data
    })
}

fn crate_fastcdc_lengths(parameters: &Parameters, data: &[u8]) -> Vec<usize> {
    let level = match parameters.normalization {
        0 => v2020::Normalization::Level0,
        1 => v2020::Normalization::Level1,
        2 => v2020::Normalization::Level2,
        _ => v2020::Normalization::Level3,
    };
    let [min, avg, max] = [
        parameters.min_bytes,
        parameters.avg_bytes,
        parameters.max_bytes,
    ]
    .map(|size| size as usize);
    v2020::FastCDC::with_level(data, min, avg, max, level)
        .map(|chunk| chunk.length)
        .collect()
}

/// What the crate gearhash finds in the whole stream, but what would be too small a chunk.
fn gearhash_lengths(parameters: &Parameters, data: &[u8]) -> Vec<usize> {
    let mask = u64::from(parameters.avg_bytes) - 1;
    let mask = mask << mask.leading_zeros();
    let mut hasher = gearhash::Hasher::default();
    let (mut ends, mut position) = (Vec::new(), 0);
    while let Some(length) = hasher.next_match(&data[position..], mask) {
        position += length;
        ends.push(position);
    }
    let (min, max) = (parameters.min_bytes as usize, parameters.max_bytes as usize);
    let (mut lengths, mut start) = (Vec::new(), 0);
    while start < data.len() {
        let most = max.min(data.len() - start);
        let fits = ends
            .iter()
            .map(|&end| end.saturating_sub(start))
            .find(|&length| length >= min)
            .filter(|&length| length < most);
        lengths.push(fits.unwrap_or(most));
        start += lengths[lengths.len() - 1];
    }
    lengths
}

/// The steps of xet-core's `Chunker::next_boundary` for data that lies in memory whole.
fn xet_lengths(parameters: &Parameters, data: &[u8]) -> Vec<usize> {
    let mask = u64::from(parameters.avg_bytes) - 1;
    let mask = mask << mask.leading_zeros();
    let (min, max) = (parameters.min_bytes as usize, parameters.max_bytes as usize);
    let (mut lengths, mut start) = (Vec::new(), 0);
    while start < data.len() {
        let rest = &data[start..];
        let mut hasher = gearhash::Hasher::default();
        let mut at = if min > 64 {
            (min - 65).min(rest.len())
        } else {
            0
        };
        let read_end = rest.len().min(at + max);
        loop {
            match hasher.next_match(&rest[at..read_end], mask) {
                Some(length) => at += length,
                None => at = read_end,
            }
            if at >= min || at == read_end {
                break;
            }
        }
        lengths.push(at.min(max));
        start += lengths[lengths.len() - 1];
    }
    lengths
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn fastcdc_crate(
        data in any_data(),
        avg in 128u32..4096,
        below in 1u32..4000,
        above in 1u32..10_000,
        level in 0u8..=3,
    ) {
        let avg = 2 * avg;
        let min = avg.saturating_sub(2 * below).max(64);
        let max = (avg + 2 * above).max(1024);
        let mut parameters = sized(Algorithm::FastCdcCrateV2020, min, avg, max);
        parameters.normalization = level;
        prop_assert_eq!(
            lengths(&unkeyed(&parameters), &data),
            crate_fastcdc_lengths(&parameters, &data)
        );
    }

    #[test]
    fn gearhash_and_xet(
        data in any_data(),
        avg_bits in 8u32..13,
        min in 64u32..3000,
        above in 1u32..20_000,
    ) {
        let avg = 1 << avg_bits;
        let max = avg.max(min) + above;
        let parameters = sized(Algorithm::GearHash, min, avg, max);
        let found = lengths(&unkeyed(&parameters), &data);
        prop_assert_eq!(&found, &gearhash_lengths(&parameters, &data));
        let parameters = sized(Algorithm::Xet, min, avg, max);
        prop_assert_eq!(&found, &lengths(&unkeyed(&parameters), &data));
        prop_assert_eq!(&found, &xet_lengths(&parameters, &data));
    }
}

/// The cuts that xet-core's own test holds (xet-data 1.8.0, `test_correctness_1mb_random_data`),
/// whose data is splitmix64 from 0. The crate itself was run beside ours on 240 MB, whole and in
/// pieces, without a difference; it is no dependency here, for it brings three hundred others.
#[test]
fn xet_core_s_published_cuts() {
    let data = random_bytes(0, 1_000_000);
    assert_eq!((data[0], data[127], data[111_111]), (175, 132, 118));
    let chunker = unkeyed(&Parameters::new(Algorithm::Xet));
    let ends: Vec<usize> = chunker.chunks(&data).map(|chunk| chunk.end).collect();
    let published = [
        84_493, 134_421, 144_853, 243_318, 271_793, 336_457, 467_529, 494_581, 582_000, 596_735,
        616_815, 653_164, 678_202, 724_510, 815_591, 827_760, 958_832, 991_092, 1_000_000,
    ];
    assert_eq!(ends, published);
}

#[test]
fn real_sizes() {
    let data = random_bytes(21, 8 << 20);
    for level in 0..=3 {
        let mut parameters = sized(Algorithm::FastCdcCrateV2020, 2048, 8192, 65_536);
        parameters.normalization = level;
        let expected = crate_fastcdc_lengths(&parameters, &data);
        assert_eq!(lengths(&unkeyed(&parameters), &data), expected);
    }
    let xet = Parameters::new(Algorithm::Xet);
    assert_eq!(lengths(&unkeyed(&xet), &data), xet_lengths(&xet, &data));
}
