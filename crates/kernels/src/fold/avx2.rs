//! `fold` with AVX2 and PCLMULQDQ: 256 bytes, four words of signs, at a time.
//!
//! Words are in order here, the first of their 64 places is the lowest bit. A look-up for each half
//! of a byte (VPSHUFB) gives its four planes in the upper bits of a byte, VPMOVMSKB takes one plane of
//! 32 bytes out. With place n at bit n and tap d at bit d of a number, the product has bit n + d
//! at n + d: its lower half is what the 64 bytes do to their own places, its upper half what they do
//! to the next 64.

use super::prefetch::Prefetch;
use super::{Fold, HALF_PLANES, PATTERN, PLANES, mark_blocks};
use crate::marks::Marks;
use std::arch::x86_64::*;

/// Bytes of a block: four words of places.
const BLOCK: usize = 256;

/// Places of a word.
const WORD: usize = 64;

/// Planes of the halves of a byte, plane p in bit 7 − p, for both lanes of a look-up.
const LOW_PLANES: [u8; 32] = look_up(0);
const HIGH_PLANES: [u8; 32] = look_up(1);

const fn look_up(half: usize) -> [u8; 32] {
    let (mut table, mut index) = ([0; 32], 0);
    while index < 32 {
        table[index] = HALF_PLANES[half][index % 16].reverse_bits();
        index += 1;
    }
    table
}

/// What the blocks before leave behind.
#[derive(Clone, Copy)]
struct State {
    /// The last of the upper halves, in the highest word.
    upper: __m256i,
    /// The last word of signs, in the highest word.
    signs: __m256i,
}

/// Where a scan is.
#[derive(Clone, Copy)]
struct Walk {
    /// The first byte that was not taken.
    position: usize,
    /// The words of the next block that are judged.
    words: u32,
    prefetch: Prefetch,
    state: State,
}

/// What a scan reads.
struct Scan<'a> {
    data: &'a [u8],
    fold: &'a Fold,
    normal: usize,
    /// Planes of the lower and of the upper half of a byte.
    low_planes: __m256i,
    high_planes: __m256i,
    taps: [__m128i; PLANES],
}

/// See [`Fold::find_cut`].
#[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
pub(super) fn find_cut(fold: &Fold, data: &[u8], first: usize, normal: usize) -> Option<usize> {
    let scan = scan(fold, data, normal);
    // The word before the first judged one has right signs in its last 32 places: no byte before
    // it reaches further, and no pattern looks at more.
    let mut walk = Walk {
        position: first - WORD,
        words: !1,
        prefetch: Prefetch::new(first),
        state: State {
            upper: _mm256_setzero_si256(),
            signs: _mm256_setzero_si256(),
        },
    };
    find_cut_by_blocks!(scan, walk)
}

/// See [`Fold::mark`].
#[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
pub(super) fn mark(fold: &Fold, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
    let scan = scan(fold, data, 0);
    let mut state = State {
        upper: _mm256_setzero_si256(),
        signs: _mm256_setzero_si256(),
    };
    mark_blocks::<4>(data, first, count, marks, |block| {
        let block = block.try_into().expect("four words are a block");
        let (now, before) = scan.signs(block, &mut state);
        let loose = any_pattern(now, before, 0..fold.loose_signs);
        let more = any_pattern(now, before, fold.loose_signs..fold.strict_signs);
        [stored(_mm256_and_si256(loose, more)), stored(loose)]
    });
}

#[inline]
#[target_feature(enable = "avx2")]
fn stored(words: __m256i) -> [u64; 4] {
    let mut out = [0u64; 4];
    // SAFETY: four quadwords are 32 bytes.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), words) };
    out
}

#[target_feature(enable = "avx2")]
fn scan<'a>(fold: &'a Fold, data: &'a [u8], normal: usize) -> Scan<'a> {
    Scan {
        data,
        fold,
        normal,
        low_planes: load(&LOW_PLANES),
        high_planes: load(&HIGH_PLANES),
        taps: fold.taps.map(|taps| {
            let taps = u64::from(taps.reverse_bits()) << 1;
            _mm_cvtsi64_si128(taps.cast_signed())
        }),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are there.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

impl Scan<'_> {
    /// Takes whole blocks up to `end` under the pattern of `signs` signs.
    #[inline]
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
    fn run(&self, signs: usize, end: usize, walk: &mut Walk) -> Option<usize> {
        by_signs!(signs, self, end, walk)
    }

    /// The same, for a number of signs that the compiler knows.
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
    fn run_with<const SIGNS: usize>(&self, end: usize, walk: &mut Walk) -> Option<usize> {
        let Walk {
            mut position,
            mut words,
            mut prefetch,
            mut state,
        } = *walk;
        let data = &self.data[..end];
        while let Some(block) = data.get(position..).and_then(|rest| rest.first_chunk()) {
            prefetch.advance::<BLOCK>(self.data, position);
            let (now, before) = self.signs(block, &mut state);
            let cuts = pattern::<SIGNS>(now, before);
            let found = found(cuts) & words;
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
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
    fn crossing(&self, block: &[u8; BLOCK], walk: &mut Walk) -> Option<usize> {
        let (now, before) = self.signs(block, &mut walk.state);
        let loose = any_pattern(now, before, 0..self.fold.loose_signs);
        let more = any_pattern(now, before, self.fold.loose_signs..self.fold.strict_signs);
        let strict_places = self.normal.saturating_sub(walk.position).min(BLOCK);
        let is_loose = [0, WORD, 2 * WORD, 3 * WORD].map(|start| {
            let strict_places = strict_places.saturating_sub(start) as u32;
            (!0u64)
                .checked_shl(strict_places)
                .unwrap_or(0)
                .cast_signed()
        });
        let [a, b, c, d] = is_loose;
        let is_loose = _mm256_set_epi64x(d, c, b, a);
        let cuts = _mm256_and_si256(loose, _mm256_or_si256(more, is_loose));
        let found = found(cuts) & walk.words;
        let position = walk.position;
        walk.words = !0;
        walk.position += BLOCK;
        (found != 0).then(|| position + first_place(cuts, found))
    }

    /// The signs of a block, and those of each word before.
    #[inline]
    #[target_feature(enable = "avx2,pclmulqdq,bmi1,lzcnt")]
    fn signs(&self, block: &[u8; BLOCK], state: &mut State) -> (__m256i, __m256i) {
        let (words, _) = block.as_chunks::<WORD>();
        let first = self.product(&words[0]);
        let second = self.product(&words[1]);
        let third = self.product(&words[2]);
        let fourth = self.product(&words[3]);
        let lower = _mm256_set_m128i(
            _mm_unpacklo_epi64(third, fourth),
            _mm_unpacklo_epi64(first, second),
        );
        let upper = _mm256_set_m128i(
            _mm_unpackhi_epi64(third, fourth),
            _mm_unpackhi_epi64(first, second),
        );
        let signs = _mm256_xor_si256(lower, one_later(upper, state.upper));
        let before = one_later(signs, state.signs);
        *state = State { upper, signs };
        (signs, before)
    }

    /// The sum of the products of the planes of 64 bytes with their taps.
    #[inline]
    #[target_feature(enable = "avx2,pclmulqdq")]
    fn product(&self, bytes: &[u8; WORD]) -> __m128i {
        let (halves, _) = bytes.as_chunks::<32>();
        let mut low = self.planes(&halves[0]);
        let mut high = self.planes(&halves[1]);
        let mut sum = _mm_setzero_si128();
        for taps in self.taps {
            let plane = u64::from(_mm256_movemask_epi8(low).cast_unsigned())
                | u64::from(_mm256_movemask_epi8(high).cast_unsigned()) << 32;
            let plane = _mm_cvtsi64_si128(plane.cast_signed());
            sum = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(plane, taps));
            low = _mm256_add_epi8(low, low);
            high = _mm256_add_epi8(high, high);
        }
        sum
    }

    /// The planes of 32 bytes, in bits 7 to 4 of each.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn planes(&self, bytes: &[u8; 32]) -> __m256i {
        let bytes = load(bytes);
        let half = _mm256_set1_epi8(0x0f);
        let low = _mm256_and_si256(bytes, half);
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), half);
        _mm256_xor_si256(
            _mm256_shuffle_epi8(self.low_planes, low),
            _mm256_shuffle_epi8(self.high_planes, high),
        )
    }
}

/// The words, one further on: the first of them is the last of `before`.
#[inline]
#[target_feature(enable = "avx2")]
fn one_later(words: __m256i, before: __m256i) -> __m256i {
    let words = _mm256_permute4x64_epi64::<0b10_01_00_11>(words);
    let before = _mm256_permute4x64_epi64::<0b10_01_00_11>(before);
    _mm256_blend_epi32::<0b0000_0011>(words, before)
}

/// Places where the first `SIGNS` signs of the pattern are as they must be.
#[inline]
#[target_feature(enable = "avx2")]
fn pattern<const SIGNS: usize>(now: __m256i, before: __m256i) -> __m256i {
    let mut cuts = now;
    macro_rules! and_signs {
        ($($row:literal)*) => { $(
            if $row < SIGNS {
                const AGO: i32 = PATTERN[$row].0 as i32;
                let ago = _mm256_or_si256(
                    _mm256_slli_epi64::<AGO>(now),
                    _mm256_srli_epi64::<{ 64 - AGO }>(before),
                );
                cuts = if PATTERN[$row].1 {
                    _mm256_and_si256(cuts, ago)
                } else {
                    _mm256_andnot_si256(ago, cuts)
                };
            }
        )* };
    }
    and_signs!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26);
    cuts
}

/// Places where these rows of the pattern hold.
#[inline]
#[target_feature(enable = "avx2")]
fn any_pattern(now: __m256i, before: __m256i, rows: std::ops::Range<usize>) -> __m256i {
    PATTERN[rows]
        .iter()
        .fold(_mm256_set1_epi64x(-1), |cuts, &(ago, sign)| {
            let left = _mm_cvtsi64_si128(i64::from(ago));
            // A shift by 64 leaves nothing.
            let right = _mm_cvtsi64_si128(i64::from(64 - ago));
            let ago = _mm256_or_si256(_mm256_sll_epi64(now, left), _mm256_srl_epi64(before, right));
            if sign {
                _mm256_and_si256(cuts, ago)
            } else {
                _mm256_andnot_si256(ago, cuts)
            }
        })
}

/// A bit for each word that is not zero.
#[inline]
#[target_feature(enable = "avx2")]
fn found(cuts: __m256i) -> u32 {
    let zero = _mm256_cmpeq_epi64(cuts, _mm256_setzero_si256());
    !_mm256_movemask_pd(_mm256_castsi256_pd(zero)).cast_unsigned() & 0b1111
}

/// The first place of the first of the `found` words.
#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn first_place(cuts: __m256i, found: u32) -> usize {
    let words = stored(cuts);
    let word = found.trailing_zeros() as usize;
    word * WORD + words[word].trailing_zeros() as usize
}
