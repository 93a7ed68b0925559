//! Gear hashes in 32 chains, AVX-512 with VBMI and VBMI2.
//!
//! Method. The positions are cut into blocks, a block into 32 equal lanes that lie end to end; the
//! 32 chains run in lockstep, each from the window before its lane on.
//! - *Turning*: 16 bytes of each lane are loaded, and turned by three rounds of UNPACK, so that a
//!   register has bytes t and t + 1 of all lanes.
//! - *Table*: 256 numbers are looked up byte by byte of the number ("planes"): two VPERMI2B of 128
//!   entries each, the second of which replaces what the first left because its bit 7 was set.
//! - *Sum*: a hash of 16·W bits is W registers of 32 words of 16 bits; UNPACK makes words of two
//!   planes. `2 · hash` is VPSHLDW (the top bit of the word below comes in), then the number is
//!   added, with the carries by comparison: a sum below what was added has carried, and so has a
//!   word of all ones that gets a carry. Words above the masks are not computed, for carries only
//!   go up.
//! - *Judging*: what differs from the value under the loose mask; the lesser of two steps is tested
//!   for zero, and only then which lanes have it, and the strict mask.
//!
//! About 18 cycles for 64 positions with W = 2, 28 with W = 3, half of them in the one port that
//! shuffles bytes. A form of 16 lanes of 32-bit numbers has more to shuffle; one of a position a
//! lane ("doubling": h(i) of 2k bytes is h(i) + h(i − k) ≪ k) needs 42.

use super::{GearPlanes, window_bytes};
use crate::marks::{Marks, Masks};
use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm512_add_epi16, _mm512_castsi128_si512,
    _mm512_cmplt_epu16_mask, _mm512_loadu_si512, _mm512_mask_add_epi16,
    _mm512_mask_broadcast_i32x4, _mm512_mask_cmpeq_epi16_mask, _mm512_mask2_permutex2var_epi8,
    _mm512_min_epu16, _mm512_movepi8_mask, _mm512_set1_epi16, _mm512_setzero_si512,
    _mm512_shldi_epi16, _mm512_ternarylogic_epi32, _mm512_testn_epi16_mask, _mm512_unpackhi_epi8,
    _mm512_unpacklo_epi8,
};
use std::hint::black_box;

/// Chains.
const LANES: usize = 32;

/// Bytes of a lane that are turned together.
const GROUP: usize = 16;

/// Positions of a lane in a block: with the bytes of its window, well inside the nearest cache.
const LANE_HIGHEST: usize = 512;

/// Fewer are left to the scalar form.
const LANE_LOWEST: usize = 2 * GROUP;

/// Marks positions from `first`, with 16 bytes before them for each word of a hash, to the end of
/// the data or a little before, and says how many it did.
///
/// # Safety
/// The machine must have the features of [`Isa::Avx512`](crate::isa::Isa::Avx512).
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
pub(super) fn mark(
    planes: &GearPlanes,
    masks: Masks<u64>,
    data: &[u8],
    first: usize,
    from: usize,
    marks: &mut Marks<'_>,
) -> usize {
    let judged = masks.strict | masks.loose;
    // A value is looked for in the lowest word.
    if masks.value > 0xffff || judged == 0 {
        return from;
    }
    let mut place = Place { data, first, marks };
    let lowest = if masks.value == 0 {
        judged.trailing_zeros() / 16
    } else {
        0
    };
    match (words_for(masks), lowest) {
        (1, _) => mark_words::<1, 0>(planes, masks, from, &mut place),
        (2, 1) => mark_words::<2, 1>(planes, masks, from, &mut place),
        (2, _) => mark_words::<2, 0>(planes, masks, from, &mut place),
        (3, 1 | 2) => mark_words::<3, 1>(planes, masks, from, &mut place),
        (3, _) => mark_words::<3, 0>(planes, masks, from, &mut place),
        (_, 3) => mark_words::<4, 3>(planes, masks, from, &mut place),
        (_, 2) => mark_words::<4, 2>(planes, masks, from, &mut place),
        _ => mark_words::<4, 0>(planes, masks, from, &mut place),
    }
}

/// Words of a hash that these masks need.
pub(super) fn words_for(masks: Masks<u64>) -> usize {
    window_bytes(masks).div_ceil(16)
}

/// Where to read and to mark.
struct Place<'a, 'b> {
    data: &'a [u8],
    first: usize,
    marks: &'a mut Marks<'b>,
}

/// Block by block, hashes of `WORDS` words of which those from `JUDGED` on are judged.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
fn mark_words<const WORDS: usize, const JUDGED: usize>(
    planes: &GearPlanes,
    masks: Masks<u64>,
    mut from: usize,
    place: &mut Place<'_, '_>,
) -> usize {
    let scan = Scan::<WORDS, JUDGED>::new(planes, masks);
    loop {
        let positions = place.data.len() - place.first - from;
        let lane = (positions / LANES).min(LANE_HIGHEST) / GROUP * GROUP;
        if lane < LANE_LOWEST {
            return from;
        }
        let data = &place.data[place.first + from - GROUP * WORDS..];
        scan.block(data, lane, from, place.marks);
        from += LANES * lane;
    }
}

/// All that stays the same.
struct Scan<const WORDS: usize, const JUDGED: usize> {
    /// Two planes of a word, of each two halves, for bytes below 128 and from there on.
    planes: [[[[__m512i; 2]; 2]; 2]; WORDS],
    loose: [__m512i; WORDS],
    strict: [__m512i; WORDS],
    value: __m512i,
}

impl<const WORDS: usize, const JUDGED: usize> Scan<WORDS, JUDGED> {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(planes: &GearPlanes, masks: Masks<u64>) -> Self {
        let word = |number: u64, k: usize| _mm512_set1_epi16((number >> (16 * k)) as i16);
        let quarter = |plane: usize, quarter: usize| {
            let bytes: &[u8; 64] = planes[plane].as_chunks().0[quarter..]
                .first()
                .expect("four");
            // SAFETY: the pointer is to 64 bytes.
            unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
        };
        Self {
            planes: std::array::from_fn(|k| {
                [2 * k, 2 * k + 1].map(|plane| {
                    [0, 2].map(|half| [quarter(plane, half), quarter(plane, half + 1)])
                })
            }),
            loose: std::array::from_fn(|k| word(masks.loose, k)),
            strict: std::array::from_fn(|k| word(masks.strict, k)),
            value: word(masks.value, 0),
        }
    }

    /// A block: `data` begins with the bytes that a hash remembers at the first position, and has
    /// `LANES * lane` bytes more.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    fn block(&self, data: &[u8], lane: usize, from: usize, marks: &mut Marks<'_>) {
        let warm = GROUP * WORDS;
        assert!(data.len() >= warm + LANES * lane);
        let mut hash = [_mm512_setzero_si512(); WORDS];
        // Unknown to the compiler, which would make two instructions of the addition of a carry.
        let one = black_box(_mm512_set1_epi16(1));
        for index in (0..warm).step_by(GROUP) {
            // SAFETY: the last lane ends with the data, of which `warm + lane` bytes are its own.
            let turned = unsafe { turn(data, index, lane) };
            for bytes in turned {
                let [even, odd] = self.numbers(bytes);
                step(&mut hash, &even, one);
                step(&mut hash, &odd, one);
            }
        }
        let mut ahead = warm + LANES * lane;
        for index in (0..lane).step_by(GROUP) {
            for line in 0..LANES * GROUP / 64 {
                // Beyond the data nothing is read.
                let address = data.as_ptr().wrapping_add(ahead + 64 * line).cast();
                _mm_prefetch::<_MM_HINT_T0>(address);
            }
            ahead += LANES * GROUP;
            // SAFETY: as above.
            let turned = unsafe { turn(data, warm + index, lane) };
            // Kept until the end of the group: a call in its midst would put all into memory.
            let mut found = [[0; 2]; GROUP];
            let mut is_any = false;
            for (pair, bytes) in turned.into_iter().enumerate() {
                let [even, odd] = self.numbers(bytes);
                step(&mut hash, &even, one);
                let even = hash;
                step(&mut hash, &odd, one);
                let (a, b) = (self.rest(&even, &self.loose), self.rest(&hash, &self.loose));
                let lesser = _mm512_min_epu16(a, b);
                if _mm512_testn_epi16_mask(lesser, lesser) != 0 {
                    is_any = true;
                    let strict = [
                        self.rest(&even, &self.strict),
                        self.rest(&hash, &self.strict),
                    ];
                    for (step, (loose, strict)) in
                        [(a, strict[0]), (b, strict[1])].into_iter().enumerate()
                    {
                        found[2 * pair + step] = [
                            _mm512_testn_epi16_mask(loose, loose),
                            _mm512_testn_epi16_mask(strict, strict),
                        ];
                    }
                }
            }
            if is_any {
                for (step, &lanes) in found.iter().enumerate() {
                    mark_lanes(lanes, lane, from + index + step, marks);
                }
            }
        }
    }

    /// The numbers of the bytes of two steps, which lie in turns of eight.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn numbers(&self, bytes: __m512i) -> [[__m512i; WORDS]; 2] {
        let is_high = _mm512_movepi8_mask(bytes);
        let look_up = |[low, high]: &[[__m512i; 2]; 2]| {
            let kept = _mm512_mask2_permutex2var_epi8(low[0], bytes, !is_high, low[1]);
            _mm512_mask2_permutex2var_epi8(high[0], kept, is_high, high[1])
        };
        let mut numbers = [[_mm512_setzero_si512(); WORDS]; 2];
        for (k, planes) in self.planes.iter().enumerate() {
            let (low, high) = (look_up(&planes[0]), look_up(&planes[1]));
            numbers[0][k] = _mm512_unpacklo_epi8(low, high);
            numbers[1][k] = _mm512_unpackhi_epi8(low, high);
        }
        numbers
    }

    /// Zero where a hash has the value under the masks.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn rest(&self, hash: &[__m512i; WORDS], masks: &[__m512i; WORDS]) -> __m512i {
        // (hash ^ value) & mask, of the lowest word; and the others joined to it.
        const DIFFERS: i32 = 0x28;
        const JOINED: i32 = 0xf8;
        let value = if JUDGED == 0 {
            self.value
        } else {
            _mm512_setzero_si512()
        };
        let lowest = _mm512_ternarylogic_epi32::<DIFFERS>(hash[JUDGED], value, masks[JUDGED]);
        (JUDGED + 1..WORDS).fold(lowest, |rest, k| {
            _mm512_ternarylogic_epi32::<JOINED>(rest, hash[k], masks[k])
        })
    }
}

/// Marks the lanes whose bit is set.
fn mark_lanes([mut loose, strict]: [u32; 2], lane: usize, place: usize, marks: &mut Marks<'_>) {
    while loose != 0 {
        let k = loose.trailing_zeros();
        marks.set(k as usize * lane + place, strict >> k & 1 == 1);
        loose &= loose - 1;
    }
}

/// Hashes of one byte more.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2")]
fn step<const WORDS: usize>(hash: &mut [__m512i; WORDS], numbers: &[__m512i; WORDS], one: __m512i) {
    let ones = _mm512_set1_epi16(-1);
    let below = *hash;
    let mut carry = 0;
    for k in 0..WORDS {
        let doubled = if k == 0 {
            _mm512_add_epi16(below[0], below[0])
        } else {
            _mm512_shldi_epi16::<1>(below[k], below[k - 1])
        };
        let sum = _mm512_add_epi16(doubled, numbers[k]);
        hash[k] = if k == 0 {
            sum
        } else {
            _mm512_mask_add_epi16(sum, carry, sum, one)
        };
        if k + 1 < WORDS {
            let passed_on = if k == 0 {
                0
            } else {
                _mm512_mask_cmpeq_epi16_mask(carry, sum, ones)
            };
            carry = passed_on | _mm512_cmplt_epu16_mask(sum, numbers[k]);
        }
    }
}

/// Bytes `index..index + 16` of all lanes, each of which begins `lane` bytes behind the one before:
/// in register r and its part q of 16 bytes, byte i is byte 2r of lane 8q + i and byte 8 + i the one
/// that follows it.
///
/// # Safety
/// `data` must have `index + 16` bytes from the beginning of the last lane on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn turn(data: &[u8], index: usize, lane: usize) -> [__m512i; 8] {
    debug_assert!(index + GROUP + (LANES - 1) * lane <= data.len());
    let load = |k: usize| {
        // SAFETY: lanes lie in the data, as the caller promises.
        unsafe { _mm_loadu_si128(data.as_ptr().add(index + k * lane).cast()) }
    };
    let rows: [__m512i; 8] = std::array::from_fn(|k| {
        let row = _mm512_castsi128_si512(load(k));
        let row = _mm512_mask_broadcast_i32x4(row, 0x00f0, load(8 + k));
        let row = _mm512_mask_broadcast_i32x4(row, 0x0f00, load(16 + k));
        _mm512_mask_broadcast_i32x4(row, 0xf000, load(24 + k))
    });
    let lo = |a, b| _mm512_unpacklo_epi8(a, b);
    let hi = |a, b| _mm512_unpackhi_epi8(a, b);
    // Rows 0 4, 1 5, 2 6, 3 7; then 0 2 4 6 and 1 3 5 7; then all.
    let four = |k: usize| {
        let (a, b) = (lo(rows[k], rows[k + 4]), lo(rows[k + 2], rows[k + 6]));
        let (c, d) = (hi(rows[k], rows[k + 4]), hi(rows[k + 2], rows[k + 6]));
        [lo(a, b), hi(a, b), lo(c, d), hi(c, d)]
    };
    let (even, odd) = (four(0), four(1));
    std::array::from_fn(|r| {
        if r % 2 == 0 {
            lo(even[r / 2], odd[r / 2])
        } else {
            hi(even[r / 2], odd[r / 2])
        }
    })
}
