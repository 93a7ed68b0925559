//! The hashes of many windows by tables of 256 numbers, for machines without the instructions that
//! `avx512.rs` has.
//!
//! Enters: data and a range of positions. Leaves: the hash of the window of each. A hash slides by
//! one byte: times x, the byte that enters added, the one that leaves taken off. Four strips of
//! the range, end to end, run in lockstep, because each step waits for the one before; each
//! strip but the first of a scan takes in its first window anew.

use super::{WINDOW_BYTES, scalar};

const STRIPS: usize = 4;

/// How many positions are hashed at a time.
pub(super) const BLOCK_POSITIONS: usize = 1024;

/// The hashes of a block.
pub(super) type Hashes = [u128; BLOCK_POSITIONS];

/// What a byte adds as it enters, and as it leaves.
#[derive(Clone)]
pub(super) struct Tables {
    entering: [u128; 256],
    leaving: [u128; 256],
}

impl Tables {
    pub(super) fn new(constants: &[u128; 8], constants_leaving: &[u128; 8]) -> Self {
        let table = |constants| std::array::from_fn(|byte| scalar::of_byte(constants, byte as u8));
        Self {
            entering: table(constants),
            leaving: table(constants_leaving),
        }
    }

    /// Hashes the windows that end at `start..start + count`, `count` at most [`BLOCK_POSITIONS`].
    pub(super) fn hash(&self, data: &[u8], start: usize, count: usize, hashes: &mut Hashes) {
        let strip = count / STRIPS;
        let done = if strip < WINDOW_BYTES / 2 {
            0
        } else {
            self.hash_strips(data, start, strip, hashes);
            STRIPS * strip
        };
        if done == count {
            return;
        }
        let bytes = &data[start + done - WINDOW_BYTES..start + count];
        let mut hash = bytes[..WINDOW_BYTES].iter().fold(0, |hash, &byte| {
            scalar::times_x(hash) ^ self.entering[usize::from(byte)]
        });
        let pairs = bytes[WINDOW_BYTES..].iter().zip(bytes);
        for (slot, (&entering, &leaving)) in hashes[done..].iter_mut().zip(pairs) {
            hash = self.slide(hash, entering, leaving);
            *slot = hash;
        }
    }

    /// As [`Tables::hash`], with vector instructions. No address depends on a hash.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    pub(super) fn hash_avx2(&self, data: &[u8], start: usize, count: usize, hashes: &mut Hashes) {
        let bytes = &data[start - WINDOW_BYTES..start + count];
        let strip = count / STRIPS;
        let done = STRIPS * strip;
        self.hash_strips_avx2::<STRIPS>(bytes, strip, &mut hashes[..done]);
        if done < count {
            self.hash_strips_avx2::<1>(&bytes[done..], count - done, &mut hashes[done..count]);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn hash_strips_avx2<const N: usize>(&self, bytes: &[u8], strip: usize, hashes: &mut [u128]) {
        use std::arch::x86_64::*;
        const AWAY: i8 = -1;
        // The last byte to bytes 0, 1, 2 and 7; there a rotated byte and three carries are made of it.
        let last = _mm_set_epi8(
            AWAY, AWAY, AWAY, AWAY, AWAY, AWAY, AWAY, AWAY, 15, AWAY, AWAY, AWAY, AWAY, 15, 15, 15,
        );
        let carries = _mm_set_epi64x(0, 0x0100_0000_0001_0101);
        let first_byte = _mm_set_epi64x(0, 0xfe);
        let times_x = |hash| {
            let last = _mm_shuffle_epi8(hash, last);
            let carries = _mm_and_si128(_mm_srli_epi16::<7>(last), carries);
            let rotated = _mm_and_si128(_mm_add_epi8(last, last), first_byte);
            let back = _mm_xor_si128(carries, rotated);
            _mm_xor_si128(_mm_slli_si128::<1>(hash), back)
        };
        // SAFETY: a u128 has sixteen bytes; x86-64 is little-endian.
        let load = |number: &u128| unsafe { _mm_loadu_si128((&raw const *number).cast()) };
        let rows: [&[u8]; N] = std::array::from_fn(|k| &bytes[k * strip..][..WINDOW_BYTES + strip]);
        let mut running = [_mm_setzero_si128(); N];
        for index in 0..WINDOW_BYTES {
            for (hash, row) in running.iter_mut().zip(&rows) {
                let entering = load(&self.entering[usize::from(row[index])]);
                *hash = _mm_xor_si128(times_x(*hash), entering);
            }
        }
        let hashes = &mut hashes[..N * strip];
        for index in 0..strip {
            for (k, (hash, row)) in running.iter_mut().zip(&rows).enumerate() {
                let entering = load(&self.entering[usize::from(row[WINDOW_BYTES + index])]);
                let leaving = load(&self.leaving[usize::from(row[index])]);
                *hash = _mm_xor_si128(times_x(*hash), _mm_xor_si128(entering, leaving));
                let slot = &mut hashes[k * strip + index];
                // SAFETY: as above.
                unsafe { _mm_storeu_si128((&raw mut *slot).cast(), *hash) };
            }
        }
    }

    #[inline(always)]
    fn slide(&self, hash: u128, entering: u8, leaving: u8) -> u128 {
        let change = self.entering[usize::from(entering)] ^ self.leaving[usize::from(leaving)];
        scalar::times_x(hash) ^ change
    }

    fn hash_strips(&self, data: &[u8], start: usize, strip: usize, hashes: &mut Hashes) {
        let data = &data[start - WINDOW_BYTES..start + STRIPS * strip];
        let rows: [&[u8]; STRIPS] =
            std::array::from_fn(|k| &data[k * strip..][..WINDOW_BYTES + strip]);
        let mut running = [0u128; STRIPS];
        for index in 0..WINDOW_BYTES {
            for (hash, row) in running.iter_mut().zip(&rows) {
                *hash = scalar::times_x(*hash) ^ self.entering[usize::from(row[index])];
            }
        }
        let mut out = hashes.chunks_exact_mut(strip);
        let out: [&mut [u128]; STRIPS] =
            std::array::from_fn(|_| out.next().expect("four strips fit a block"));
        for index in 0..strip {
            for k in 0..STRIPS {
                let entering = rows[k][WINDOW_BYTES + index];
                running[k] = self.slide(running[k], entering, rows[k][index]);
                out[k][index] = running[k];
            }
        }
    }
}
