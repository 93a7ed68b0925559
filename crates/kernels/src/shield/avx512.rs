//! `shield` for AVX-512 with GFNI and VAES: hashes of 4096 windows at a time, by planes.
//!
//! Method. A block of 4096 positions is 64 strips of 64, and strip j has byte lane j of every
//! register. Register p of sixteen, a *plane*, holds byte p of 64 hashes, those of one place t
//! of all strips. So a step from t to t + 1 is: the planes are renamed (the bytes of a hash move up
//! by one), the last one comes back into four, and what the bytes of column t and of the column
//! 64 bytes before add is, for every plane, a product with an 8 × 8 matrix of bits (GF2P8AFFINEQB):
//! the hash is linear. 64 windows so cost some fifty instructions, and no carry chain.
//!
//! A strip is as long as a window. So the window before a strip is the strip before it, and the
//! columns that leave are those that fill the hashes at the start: two transpositions of 64 × 64
//! bytes serve all. Sixteen planes are transposed into 64 blocks of the cipher, which are put aside
//! in such an order that *group* r, strips 4r to 4r + 3, lies together, strip 4r + q in 128-bit
//! lane q. Groups are then encrypted one after the other, so that no more than 255 positions behind
//! a cut are.
//!
//! Cost on a core with two vector ports: about 160 AES instructions for 64 positions and about as
//! many others; the port of AES is the limit.

use super::{Masks, WINDOW_BYTES};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::Range;

/// How many positions are hashed at a time.
pub(super) const BLOCK_POSITIONS: usize = STRIPS * STRIP_POSITIONS;
const STRIPS: usize = 64;
const STRIP_POSITIONS: usize = WINDOW_BYTES;

/// Strips that are encrypted together, and how many such groups there are.
const GROUP_STRIPS: usize = 4;
const GROUPS: usize = STRIPS / GROUP_STRIPS;
const GROUP_POSITIONS: usize = GROUP_STRIPS * STRIP_POSITIONS;

const LINE_BYTES: usize = 64;
/// Lines that are asked for before each group, at most: three times as many as it has itself.
const PREFETCHED_LINES: usize = 12;

/// Registers from one group to the next: one more than it has, or stores to all would meet in
/// one set of the cache.
const GROUP_STRIDE: usize = STRIP_POSITIONS + 1;

/// Where hashes wait for the cipher.
type Waiting = [MaybeUninit<__m512i>; GROUPS * GROUP_STRIDE];
/// The values of a group: of each place, those of four strips, each with eight bytes behind it that
/// nobody reads.
type Values = [MaybeUninit<[u64; 8]>; STRIP_POSITIONS];
type Columns = [__m512i; STRIP_POSITIONS];
type Planes = [__m512i; 16];

/// What a byte adds to each plane as it enters and as it leaves: matrices of GF2P8AFFINEQB.
#[derive(Clone)]
pub(super) struct Matrices {
    entering: [i64; 16],
    leaving: [i64; 16],
}

impl Matrices {
    pub(super) fn new(constants: &[u128; 8], constants_leaving: &[u128; 8]) -> Self {
        Self {
            entering: std::array::from_fn(|plane| matrix(constants, plane)),
            leaving: std::array::from_fn(|plane| matrix(constants_leaving, plane)),
        }
    }
}

/// The matrix that takes a byte to byte `plane` of its G. Row i, for bit i of the result, is byte
/// 7 − i.
fn matrix(constants: &[u128; 8], plane: usize) -> i64 {
    let mut rows = [0u8; 8];
    for (bit, constant) in constants.iter().enumerate() {
        let byte = constant.to_le_bytes()[plane];
        for (row, from) in rows.iter_mut().rev().zip(0..) {
            *row |= (byte >> from & 1) << bit;
        }
    }
    i64::from_le_bytes(rows)
}

/// Rotates a byte left by one bit.
const ROTATE: i64 = i64::from_le_bytes([0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01, 0x80]);
/// Bit 7 to bit 0, nothing else.
const CARRY: i64 = i64::from_le_bytes([0, 0, 0, 0, 0, 0, 0, 0x80]);

/// The first position from `first` on that cuts, of those for which `data` has a whole block or
/// which end with it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
pub(super) fn find_cut(
    (matrices, round_keys): (&Matrices, &[[u8; 16]; 11]),
    masks: Masks,
    data: &[u8],
    first: usize,
) -> Option<usize> {
    let mut waiting: Waiting = [MaybeUninit::uninit(); GROUPS * GROUP_STRIDE];
    let mut values: Values = [MaybeUninit::uninit(); STRIP_POSITIONS];
    let mut padded = [0u8; WINDOW_BYTES + BLOCK_POSITIONS];
    let mut start = first;
    let mut prefetched = first + BLOCK_POSITIONS;
    while start < data.len() {
        let block = &data[start - WINDOW_BYTES..];
        let count = (block.len() - WINDOW_BYTES).min(BLOCK_POSITIONS);
        let block = if let Some(block) = block.first_chunk() {
            block
        } else {
            padded[..block.len()].copy_from_slice(block);
            &padded
        };
        hash(matrices, block, &mut waiting);
        for (group, hashes) in waiting.chunks_exact(GROUP_STRIDE).enumerate() {
            let from = start + group * GROUP_POSITIONS;
            let end = start + count;
            if from >= end {
                break;
            }
            // When the next cut comes here, the next block ends there.
            prefetched = prefetch(
                data,
                prefetched,
                from + first + GROUP_POSITIONS + BLOCK_POSITIONS,
            );
            // SAFETY: `hash` has written every register of the group but the last, which is only
            // there to keep groups apart.
            let cut = unsafe { judge(round_keys, masks, hashes, &mut values, from..end) };
            if cut.is_some() {
                return cut;
            }
        }
        start += BLOCK_POSITIONS;
    }
    None
}

/// Asks for lines of `data` from `from` on, as far as `until`: how far it came. Without it a block
/// begins with a wait for 64 strips.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
fn prefetch(data: &[u8], from: usize, until: usize) -> usize {
    let until = until.min(from + PREFETCHED_LINES * LINE_BYTES);
    let lines = data.get(from..until).unwrap_or_default();
    for line in lines.chunks(LINE_BYTES) {
        _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
    }
    until.max(from)
}

/// The hashes of the windows that end at `block[64..]`, to where they wait.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
fn hash(matrices: &Matrices, block: &[u8; WINDOW_BYTES + BLOCK_POSITIONS], waiting: &mut Waiting) {
    let (before, _) = block.as_chunks::<STRIP_POSITIONS>();
    let zero = _mm512_setzero_si512();
    let (mut leaving, mut entering) = ([zero; STRIP_POSITIONS], [zero; STRIP_POSITIONS]);
    columns(before, &mut leaving);
    columns(&before[1..], &mut entering);
    let mut planes = [_mm512_setzero_si512(); 16];
    for column in leaving {
        planes = step(planes);
        for (plane, &matrix) in planes.iter_mut().zip(&matrices.entering) {
            let added = _mm512_gf2p8affine_epi64_epi8::<0>(column, _mm512_set1_epi64(matrix));
            *plane = _mm512_xor_si512(*plane, added);
        }
    }
    for place in 0..STRIP_POSITIONS {
        planes = step(planes);
        for (index, plane) in planes.iter_mut().enumerate() {
            let matrix = _mm512_set1_epi64(matrices.entering[index]);
            let added = _mm512_gf2p8affine_epi64_epi8::<0>(entering[place], matrix);
            let matrix = _mm512_set1_epi64(matrices.leaving[index]);
            let taken = _mm512_gf2p8affine_epi64_epi8::<0>(leaving[place], matrix);
            *plane = _mm512_ternarylogic_epi64::<0x96>(*plane, added, taken);
        }
        for (group, hashes) in transposed(planes).into_iter().enumerate() {
            waiting[group * GROUP_STRIDE + place].write(hashes);
        }
    }
}

/// Times x: see `scalar::times_x`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
fn step(planes: Planes) -> Planes {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, last] = planes;
    let carry = _mm512_gf2p8affine_epi64_epi8::<0>(last, _mm512_set1_epi64(CARRY));
    let back = _mm512_gf2p8affine_epi64_epi8::<0>(last, _mm512_set1_epi64(ROTATE));
    let a = _mm512_xor_si512(a, carry);
    let b = _mm512_xor_si512(b, carry);
    let g = _mm512_xor_si512(g, carry);
    [back, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o]
}

/// Column t of the strips, strip 4r + q in byte 16q + r.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
fn columns(strips: &[[u8; STRIP_POSITIONS]], columns: &mut Columns) {
    let strips = &strips[..STRIPS];
    let zero = _mm512_setzero_si512();
    let mut quarters = [[zero; 16]; GROUP_STRIPS];
    for (q, quarter) in quarters.iter_mut().enumerate() {
        let mut rows = [zero; 16];
        for (r, row) in rows.iter_mut().enumerate() {
            // SAFETY: a strip has 64 bytes.
            *row = unsafe { _mm512_loadu_si512(strips[GROUP_STRIPS * r + q].as_ptr().cast()) };
        }
        *quarter = transposed(rows);
    }
    let [a, b, c, d] = &quarters;
    // What lies in 128-bit lane l of register k of a quarter is its part of column 16l + k.
    for k in 0..16 {
        let low_ab = _mm512_shuffle_i64x2::<0x44>(a[k], b[k]);
        let low_cd = _mm512_shuffle_i64x2::<0x44>(c[k], d[k]);
        let high_ab = _mm512_shuffle_i64x2::<0xee>(a[k], b[k]);
        let high_cd = _mm512_shuffle_i64x2::<0xee>(c[k], d[k]);
        columns[k] = _mm512_shuffle_i64x2::<0x88>(low_ab, low_cd);
        columns[16 + k] = _mm512_shuffle_i64x2::<0xdd>(low_ab, low_cd);
        columns[32 + k] = _mm512_shuffle_i64x2::<0x88>(high_ab, high_cd);
        columns[48 + k] = _mm512_shuffle_i64x2::<0xdd>(high_ab, high_cd);
    }
}

/// Sixteen registers, transposed as a matrix of 16 × 16 bytes in each 128-bit lane. One round
/// rotates the eight digits (four of the register, four of the byte) by one; four swap them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
fn transposed(rows: Planes) -> Planes {
    mixed(mixed(mixed(mixed(rows))))
}

/// One round. Written out, as arrays that are filled in loops end up in memory.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
fn mixed(rows: Planes) -> Planes {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = rows;
    [
        _mm512_unpacklo_epi8(a, i),
        _mm512_unpackhi_epi8(a, i),
        _mm512_unpacklo_epi8(b, j),
        _mm512_unpackhi_epi8(b, j),
        _mm512_unpacklo_epi8(c, k),
        _mm512_unpackhi_epi8(c, k),
        _mm512_unpacklo_epi8(d, l),
        _mm512_unpackhi_epi8(d, l),
        _mm512_unpacklo_epi8(e, m),
        _mm512_unpackhi_epi8(e, m),
        _mm512_unpacklo_epi8(f, n),
        _mm512_unpackhi_epi8(f, n),
        _mm512_unpacklo_epi8(g, o),
        _mm512_unpackhi_epi8(g, o),
        _mm512_unpacklo_epi8(h, p),
        _mm512_unpackhi_epi8(h, p),
    ]
}

/// Encrypts the group that begins at `positions.start`: the first of `positions` in it that cuts.
///
/// # Safety
/// The first 64 of `hashes` must be initialized.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,gfni,vaes,aes")]
unsafe fn judge(
    round_keys: &[[u8; 16]; 11],
    masks: Masks,
    hashes: &[MaybeUninit<__m512i>],
    values: &mut Values,
    positions: Range<usize>,
) -> Option<usize> {
    const AT_ONCE: usize = 8;
    const FIRST_HALVES: __mmask8 = 0x55;
    let from = positions.start;
    let keys: [__m512i; 11] = std::array::from_fn(|round| {
        // SAFETY: sixteen bytes are sixteen bytes.
        _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(round_keys[round].as_ptr().cast()) })
    });
    let is_strict = from + GROUP_POSITIONS <= masks.normal;
    let mask = if is_strict { masks.strict } else { masks.loose };
    let mask = _mm512_set1_epi64(mask as i64);
    let mut uncut = FIRST_HALVES;
    for place in (0..STRIP_POSITIONS).step_by(AT_ONCE) {
        let mut blocks: [__m512i; AT_ONCE] = std::array::from_fn(|index| {
            // SAFETY: the caller promises it.
            let hash = unsafe { hashes[place + index].assume_init() };
            _mm512_xor_si512(hash, keys[0])
        });
        for &key in &keys[1..10] {
            blocks = blocks.map(|block| _mm512_aesenc_epi128(block, key));
        }
        blocks = blocks.map(|block| _mm512_aesenclast_epi128(block, keys[10]));
        for (block, values) in blocks.into_iter().zip(&mut values[place..]) {
            uncut = _mm512_mask_test_epi64_mask(uncut, block, mask);
            // SAFETY: eight numbers of eight bytes.
            unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), block) };
        }
    }
    if uncut == FIRST_HALVES {
        return None;
    }
    let mut found = (0..GROUP_STRIPS).flat_map(|strip| {
        let values = values.iter().enumerate();
        values.map(move |(place, values)| {
            // SAFETY: the loop above has written the values of every place.
            let values = unsafe { values.assume_init_ref() };
            (from + strip * STRIP_POSITIONS + place, values[2 * strip])
        })
    });
    let is_cut = |&(position, value): &(usize, u64)| value & masks.at(position) == 0;
    let (position, _) = found.find(is_cut)?;
    (position < positions.end).then_some(position)
}
