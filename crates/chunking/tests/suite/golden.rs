//! Golden cuts: stored in repositories, so they never change for `fastcdc` = 1.
//!
//! The expected values came from a transcription of Algorithm 2 in Python, not from this crate.

use crate::random::{Splitmix64, random_bytes};
use crate::{fastcdc, lengths, unkeyed};
use chunking::{Chunker, KeyMaterial, Parameters, gear_table_from_bytes};

/// What the cuts of 1 MiB must be.
struct Golden {
    count: usize,
    /// FNV-1a, 64 bits, over all lengths as little-endian u32.
    checksum: u64,
    /// The first 20 lengths.
    first: [usize; 20],
}

fn check(chunker: &Chunker, data: &[u8], golden: &Golden) {
    let lengths = lengths(chunker, data);
    let bytes = lengths
        .iter()
        .flat_map(|&length| (length as u32).to_le_bytes());
    let checksum = bytes.fold(0xcbf2_9ce4_8422_2325u64, |checksum, byte| {
        (checksum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let parameters = chunker.parameters();
    assert_eq!(lengths[..20], golden.first, "{parameters:?}");
    assert_eq!(lengths.len(), golden.count, "{parameters:?}");
    assert_eq!(checksum, golden.checksum, "{parameters:?}");
}

fn random_mebibyte() -> Vec<u8> {
    random_bytes(1, 1 << 20)
}

#[test]
fn paper_parameters() {
    let golden = Golden {
        count: 111,
        checksum: 0x3deb_4e25_3bbe_c5eb,
        first: [
            10276, 8953, 2906, 4522, 17822, 8303, 12893, 8382, 12519, 15592, 8289, 8781, 11041,
            9175, 10491, 11077, 11978, 2730, 9857, 9308,
        ],
    };
    let chunker = unkeyed(&fastcdc(2048, 8192, 65536, 2));
    check(&chunker, &random_mebibyte(), &golden);
}

#[test]
fn paper_parameters_without_normalization() {
    let golden = Golden {
        count: 95,
        checksum: 0x6d8b_79d2_9512_20dc,
        first: [
            22135, 4522, 33807, 5211, 36493, 22740, 7063, 4867, 2616, 10913, 3764, 11493, 10106,
            4316, 5639, 5701, 12138, 7426, 11998, 17892,
        ],
    };
    let chunker = unkeyed(&fastcdc(2048, 8192, 65536, 0));
    check(&chunker, &random_mebibyte(), &golden);
}

#[test]
fn keyed_by_a_secret_table() {
    let golden = Golden {
        count: 116,
        checksum: 0x4544_49be_f4cc_0c3c,
        first: [
            9763, 3367, 2812, 12059, 11622, 9306, 7101, 2669, 13719, 9050, 9248, 9903, 6688, 10634,
            8630, 9912, 7217, 12830, 10700, 8298,
        ],
    };
    let secret: [u8; 2048] = random_bytes(2, 2048).try_into().expect("2048 bytes");
    let table = gear_table_from_bytes(&secret);
    assert!(table.iter().copied().eq(Splitmix64(2).take(256)));
    let key = KeyMaterial::Table(Box::new(table));
    let chunker = Chunker::new(&Parameters::default(), key).expect("default parameters");
    check(&chunker, &random_mebibyte(), &golden);
}

#[test]
fn data_of_few_symbols() {
    let golden = Golden {
        count: 111,
        checksum: 0x9983_8e83_ce09_d712,
        first: [
            10102, 5657, 11464, 8342, 12178, 9893, 4121, 13565, 11747, 10818, 9322, 10225, 8239,
            9287, 7890, 10747, 10159, 12373, 8264, 8659,
        ],
    };
    let digits = b"0123456789abcdef";
    let data: Vec<u8> = random_bytes(3, 1 << 20)
        .iter()
        .map(|byte| digits[usize::from(byte % 16)])
        .collect();
    check(&unkeyed(&Parameters::default()), &data, &golden);
}

#[test]
fn sizes_and_levels_whose_masks_follow_the_rule() {
    let small = Golden {
        count: 3287,
        checksum: 0xab35_38e7_ccfe_105b,
        first: [
            701, 179, 230, 265, 287, 579, 246, 251, 264, 616, 125, 196, 299, 241, 527, 340, 354,
            357, 125, 623,
        ],
    };
    let medium = Golden {
        count: 204,
        checksum: 0xb0e9_ab5a_8a2f_e105,
        first: [
            5346, 5613, 5657, 3155, 4696, 2778, 5146, 7262, 4697, 5780, 1453, 9430, 6531, 1088,
            3412, 2839, 8579, 1048, 4617, 5890,
        ],
    };
    let strong = Golden {
        count: 58,
        checksum: 0xbea3_43fd_094a_4c7c,
        first: [
            16616, 16610, 16904, 17414, 16939, 16956, 18916, 20698, 18655, 16958, 20525, 17098,
            21204, 16799, 17406, 10590, 18051, 18612, 16748, 19272,
        ],
    };
    let data = random_mebibyte();
    for (parameters, golden) in [
        (fastcdc(64, 256, 1024, 0), small),
        (fastcdc(1024, 4096, 16384, 1), medium),
        (fastcdc(6144, 16384, 65536, 3), strong),
    ] {
        check(&unkeyed(&parameters), &data, &golden);
    }
}

/// The choice that the paper's `return i` makes: the byte that matches begins the next chunk.
#[test]
fn the_byte_that_matches_is_not_in_the_chunk() {
    // Every byte but 9 sets bit 47, which every mask judges; after a 9 all judged bits are zero.
    let mut table = [1 << 47; 256];
    table[9] = 0;
    let key = KeyMaterial::Table(Box::new(table));
    let parameters = fastcdc(64, 256, 1024, 2);
    let chunker = Chunker::new(&parameters, key).expect("possible parameters");
    let mut data = vec![1u8; 3000];
    // The first byte that is hashed: a chunk of exactly min_bytes.
    data[64] = 9;
    assert_eq!(chunker.cut(&data), 64);
    // Bytes before min_bytes are not hashed.
    data[64] = 1;
    data[63] = 9;
    assert_eq!(chunker.cut(&data), 1024);
    // A stream that ends at min_bytes is one chunk; one byte more makes the cut possible.
    data[64] = 9;
    assert_eq!(chunker.cut(&data[..64]), 64);
    assert_eq!(lengths(&chunker, &data[..65]), [64, 1]);
}
