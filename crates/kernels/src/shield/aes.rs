//! Judging hashes with AES instructions, eight at a time: x86-64 with AES-NI, ARM with its
//! cryptographic part.

/// How many are judged at a time.
pub(super) const JUDGED: usize = 8;

/// The values of hashes, as [`super::scalar::value`] has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes")]
pub(super) fn values_avx2(round_keys: &[[u8; 16]; 11], hashes: &[u128; JUDGED]) -> [u64; JUDGED] {
    use std::arch::x86_64::*;
    // SAFETY: sixteen bytes are sixteen bytes.
    let key = |round: usize| unsafe { _mm_loadu_si128(round_keys[round].as_ptr().cast()) };
    let first = key(0);
    let mut blocks: [__m128i; JUDGED] = std::array::from_fn(|index| {
        // SAFETY: a u128 has sixteen bytes; x86-64 is little-endian.
        let hash = unsafe { _mm_loadu_si128((&raw const hashes[index]).cast()) };
        _mm_xor_si128(hash, first)
    });
    for round in 1..10 {
        let key = key(round);
        blocks = blocks.map(|block| _mm_aesenc_si128(block, key));
    }
    let last = key(10);
    blocks.map(|block| _mm_cvtsi128_si64(_mm_aesenclast_si128(block, last)) as u64)
}

/// The values of hashes, as [`super::scalar::value`] has them.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon,aes")]
pub(super) fn values_neon(round_keys: &[[u8; 16]; 11], hashes: &[u128; JUDGED]) -> [u64; JUDGED] {
    use std::arch::aarch64::*;
    // SAFETY: sixteen bytes are sixteen bytes.
    let key = |round: usize| unsafe { vld1q_u8(round_keys[round].as_ptr()) };
    let mut blocks: [uint8x16_t; JUDGED] = std::array::from_fn(|index| {
        let bytes = hashes[index].to_le_bytes();
        // SAFETY: sixteen bytes are sixteen bytes.
        unsafe { vld1q_u8(bytes.as_ptr()) }
    });
    for round in 0..9 {
        let key = key(round);
        blocks = blocks.map(|block| vaesmcq_u8(vaeseq_u8(block, key)));
    }
    let (ninth, last) = (key(9), key(10));
    blocks.map(|block| {
        let block = veorq_u8(vaeseq_u8(block, ninth), last);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(block))
    })
}
