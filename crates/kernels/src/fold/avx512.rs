//! `fold` with AVX-512: 512 bytes, eight words of signs, at a time.
//!
//! Words are in reverse, the first of their 64 places is the highest bit: so GF2P8AFFINEQB leaves
//! them, which takes a matrix row a byte. With place n at bit 63 − n and tap d at bit 64 − d of a
//! number, the product has bit n + d at 127 − (n + d): its upper half is what the 64 bytes do to
//! their own places, its lower half what they do to the next 64.
//!
//! For two vectors of 64 bytes at once: the affine instruction with the data as matrix makes the
//! four planes of eight bytes to four bytes, in the lower or the upper half of each quadword; VPERMB
//! gathers the eight bytes of each plane; four 128-bit lanes multiply two planes each. Lanes are
//! added up in pairs so that the eight products come out in order.
//!
//! The pattern: signs of o bytes ago are the words shifted to the right by o, filled from the word
//! before (VPSHRDQ).
//!
//! Bytes are loaded in ascending order.

use super::prefetch::Prefetch;
use super::{Fold, PATTERN, PLANES, ROWS, mark_blocks};
use crate::marks::Marks;
use std::arch::x86_64::*;

/// Bytes of a block: eight vectors.
const BLOCK: usize = 512;

/// Bytes of a vector, and places of a word.
const WORD: usize = 64;

/// The rows, once for each quadword: in its lower half, and in its upper one.
const LOW_ROWS: [u8; WORD] = rows_at(0);
const HIGH_ROWS: [u8; WORD] = rows_at(PLANES);

/// Which byte goes where, so that quadword j holds byte j of each quadword, the first one last.
const GATHER: [u8; WORD] = {
    let (mut gather, mut from) = ([0; WORD], 0);
    while from < WORD {
        gather[8 * (from % 8) + 7 - from / 8] = from as u8;
        from += 1;
    }
    gather
};

const fn rows_at(offset: usize) -> [u8; WORD] {
    let (mut rows, mut index) = ([0; WORD], 0);
    while index < 8 * PLANES {
        rows[8 * (index / PLANES) + offset + index % PLANES] = ROWS[index % PLANES];
        index += 1;
    }
    rows
}

/// What the blocks before leave behind.
#[derive(Clone, Copy)]
struct State {
    /// The last of the lower halves, in the highest word.
    lower: __m512i,
    /// The last word of signs, in the highest word.
    signs: __m512i,
}

/// The constants of the plane stage.
struct Constants {
    low_rows: __m512i,
    high_rows: __m512i,
    gather: __m512i,
    taps: __m512i,
}

/// See [`Fold::find_cut`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq")]
pub(super) fn find_cut(fold: &Fold, data: &[u8], first: usize, normal: usize) -> Option<usize> {
    let scan = Scan {
        data,
        fold,
        normal,
        constants: constants(fold),
    };
    // The word before the first judged one has right signs in its last 32 places: no byte before
    // it reaches further, and no pattern looks at more.
    let mut walk = Walk {
        position: first - WORD,
        words: !1,
        prefetch: Prefetch::new(first),
        state: State {
            lower: _mm512_setzero_si512(),
            signs: _mm512_setzero_si512(),
        },
    };
    find_cut_by_blocks!(scan, walk)
}

/// See [`Fold::mark`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq")]
pub(super) fn mark(fold: &Fold, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
    let scan = Scan {
        data,
        fold,
        normal: 0,
        constants: constants(fold),
    };
    let mut state = State {
        lower: _mm512_setzero_si512(),
        signs: _mm512_setzero_si512(),
    };
    mark_blocks::<8>(data, first, count, marks, |block| {
        let block = block.try_into().expect("eight words are a block");
        let (now, before) = scan.signs(block, &mut state);
        let loose = any_pattern(now, before, 0..fold.loose_signs);
        let more = any_pattern(now, before, fold.loose_signs..fold.strict_signs);
        [in_order(_mm512_and_si512(loose, more)), in_order(loose)]
    });
}

/// Words with their first place in bit 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn in_order(words: __m512i) -> [u64; 8] {
    // The bits of each byte in reverse, then the bytes of each word.
    let mirror = _mm512_set1_epi64(0x8040_2010_0804_0201_u64.cast_signed());
    let words = _mm512_gf2p8affine_epi64_epi8::<0>(words, mirror);
    let swap = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    let words = _mm512_shuffle_epi8(words, swap);
    let mut out = [0u64; 8];
    // SAFETY: eight quadwords are 64 bytes.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), words) };
    out
}

#[target_feature(enable = "avx512f")]
fn constants(fold: &Fold) -> Constants {
    let taps = fold.taps.map(|taps| i64::from(taps) << 32);
    let taps: [i64; 8] = std::array::from_fn(|index| taps[index % PLANES]);
    Constants {
        low_rows: load(&LOW_ROWS),
        high_rows: load(&HIGH_ROWS),
        gather: load(&GATHER),
        // SAFETY: eight quadwords are 64 bytes.
        taps: unsafe { _mm512_loadu_si512(taps.as_ptr().cast()) },
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; WORD]) -> __m512i {
    // SAFETY: 64 bytes are there.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Where a scan is.
struct Walk {
    /// The first byte that was not taken.
    position: usize,
    /// The words of the next block that are judged.
    words: __mmask8,
    prefetch: Prefetch,
    state: State,
}

/// What a scan reads.
struct Scan<'a> {
    data: &'a [u8],
    fold: &'a Fold,
    normal: usize,
    constants: Constants,
}

impl Scan<'_> {
    /// Takes whole blocks up to `end` under the pattern of `signs` signs.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq")]
    fn run(&self, signs: usize, end: usize, walk: &mut Walk) -> Option<usize> {
        by_signs!(signs, self, end, walk)
    }

    /// The same, for a number of signs that the compiler knows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq")]
    fn run_with<const SIGNS: usize>(&self, end: usize, walk: &mut Walk) -> Option<usize> {
        let mut state = walk.state;
        let mut position = walk.position;
        let mut prefetch = walk.prefetch;
        let mut words = walk.words;
        while let Some(block) = self.data[..end]
            .get(position..)
            .and_then(|rest| rest.first_chunk())
        {
            prefetch.advance::<BLOCK>(self.data, position);
            let (now, before) = self.signs(block, &mut state);
            let cuts = pattern::<SIGNS>(now, before);
            let found = _mm512_test_epi64_mask(cuts, cuts) & words;
            if found != 0 {
                return Some(position + first_place(cuts, found));
            }
            words = !0;
            position += BLOCK;
        }
        *walk = Walk {
            position,
            words,
            prefetch,
            state,
        };
        None
    }

    /// Takes one block in which the normal point may lie.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq")]
    fn crossing(&self, block: &[u8; BLOCK], walk: &mut Walk) -> Option<usize> {
        let (now, before) = self.signs(block, &mut walk.state);
        let loose = any_pattern(now, before, 0..self.fold.loose_signs);
        let more = any_pattern(now, before, self.fold.loose_signs..self.fold.strict_signs);
        let strict_places = self.normal.saturating_sub(walk.position).min(BLOCK) as i64;
        let starts = _mm512_set_epi64(448, 384, 320, 256, 192, 128, 64, 0);
        let strict_places = _mm512_sub_epi64(_mm512_set1_epi64(strict_places), starts);
        let strict_places = _mm512_max_epi64(strict_places, _mm512_setzero_si512());
        // A shift by 64 or more leaves nothing: all places of the word are strict.
        let is_loose = _mm512_srlv_epi64(_mm512_set1_epi64(-1), strict_places);
        let cuts = _mm512_and_si512(loose, _mm512_or_si512(more, is_loose));
        let found = _mm512_test_epi64_mask(cuts, cuts) & walk.words;
        let position = walk.position;
        walk.words = !0;
        walk.position += BLOCK;
        (found != 0).then(|| position + first_place(cuts, found))
    }

    /// The signs of a block, and those of each word before.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq")]
    fn signs(&self, block: &[u8; BLOCK], state: &mut State) -> (__m512i, __m512i) {
        let constants = &self.constants;
        let (bytes, _) = block.as_chunks::<WORD>();
        let x0 = load(&bytes[0]);
        let x1 = load(&bytes[1]);
        let x2 = load(&bytes[2]);
        let x3 = load(&bytes[3]);
        let x4 = load(&bytes[4]);
        let x5 = load(&bytes[5]);
        let x6 = load(&bytes[6]);
        let x7 = load(&bytes[7]);
        let even = sums(products(constants, x0, x2), products(constants, x4, x6));
        let odd = sums(products(constants, x1, x3), products(constants, x5, x7));
        let lower = _mm512_unpacklo_epi64(even, odd);
        let upper = _mm512_unpackhi_epi64(even, odd);
        let carried = _mm512_alignr_epi64::<7>(lower, state.lower);
        let signs = _mm512_xor_si512(upper, carried);
        let before = _mm512_alignr_epi64::<7>(signs, state.signs);
        *state = State { lower, signs };
        (signs, before)
    }
}

/// The products of the planes of two vectors with the taps, two planes added up a lane: lanes 0 and
/// 1 are of the first vector, 2 and 3 of the second.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni,vpclmulqdq")]
fn products(constants: &Constants, low: __m512i, high: __m512i) -> __m512i {
    let planes = _mm512_or_si512(
        _mm512_gf2p8affine_epi64_epi8::<0>(constants.low_rows, low),
        _mm512_gf2p8affine_epi64_epi8::<0>(constants.high_rows, high),
    );
    let planes = _mm512_permutexvar_epi8(constants.gather, planes);
    _mm512_xor_si512(
        _mm512_clmulepi64_epi128::<0x00>(planes, constants.taps),
        _mm512_clmulepi64_epi128::<0x11>(planes, constants.taps),
    )
}

/// Adds up pairs of lanes: the 128-bit products of the four vectors, in order.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums(first: __m512i, second: __m512i) -> __m512i {
    _mm512_xor_si512(
        _mm512_shuffle_i64x2::<0b10_00_10_00>(first, second),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(first, second),
    )
}

/// Places where the first `SIGNS` signs of the pattern are as they must be.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn pattern<const SIGNS: usize>(now: __m512i, before: __m512i) -> __m512i {
    let mut cuts = now;
    macro_rules! and_signs {
        ($($row:literal)*) => { $(
            if $row < SIGNS {
                let ago = _mm512_shrdi_epi64::<{ PATTERN[$row].0 as i32 }>(now, before);
                cuts = if PATTERN[$row].1 {
                    _mm512_and_si512(cuts, ago)
                } else {
                    _mm512_andnot_si512(ago, cuts)
                };
            }
        )* };
    }
    and_signs!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26);
    cuts
}

/// Places where these rows of the pattern hold.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn any_pattern(now: __m512i, before: __m512i, rows: std::ops::Range<usize>) -> __m512i {
    PATTERN[rows]
        .iter()
        .fold(_mm512_set1_epi64(-1), |cuts, &(ago, sign)| {
            let ago = _mm512_shrdv_epi64(now, before, _mm512_set1_epi64(i64::from(ago)));
            if sign {
                _mm512_and_si512(cuts, ago)
            } else {
                _mm512_andnot_si512(ago, cuts)
            }
        })
}

/// The first place of the first of the `found` words.
#[inline]
#[target_feature(enable = "avx512f")]
fn first_place(cuts: __m512i, found: __mmask8) -> usize {
    let mut words = [0u64; 8];
    // SAFETY: eight quadwords are 64 bytes.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), cuts) };
    let word = found.trailing_zeros() as usize;
    word * WORD + words[word].leading_zeros() as usize
}
