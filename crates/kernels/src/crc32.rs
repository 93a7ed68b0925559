//! The scan of a rolling CRC-32: at which window does it have a given value?
//!
//! Enters: a polynomial of degree 32 over GF(2) in the reflected form that CRCs use (bit 31 − i for
//! x^i, x^32 left out: 0xedb88320 for that of Ethernet and zip), the size of the window in bytes, a
//! value, a mask, data. Leaves: the first position whose window has
//! `crc & mask == value & mask`. The CRC of a window starts as 0, takes the window's bytes first to
//! last, and is not inverted at the end.
//!
//! Method. A window slides by one byte with two tables of 256 numbers (Ni §2.3.3, Eqs. 2.1 and
//! 2.2, with the byte fed back into the index, which the print leaves out):
//! `crc = (crc >> 8) ^ append[(crc ^ entering) & 0xff] ^ leave[leaving]`, where `leave` has the CRC
//! of the byte and a window of zeros behind it. Four lanes run at once (`lanes.rs`).
//! What is carried is the CRC XOR the value, so that a cut is a zero under the mask; the constants
//! that keep it so are put into the tables.

use crate::isa::Isa;
use crate::lanes::{self, Sliding};
use crate::linear::{self, Judged, Linear};
use crate::marks::{Marks, Masks};

/// The specification: the CRC bit by bit.
pub mod scalar {
    /// The CRC of a window.
    #[must_use]
    pub fn crc(reflected: u32, window: &[u8]) -> u32 {
        window
            .iter()
            .fold(0, |crc, &byte| append(reflected, crc, byte))
    }

    /// The CRC with one byte more.
    pub(super) fn append(reflected: u32, crc: u32, byte: u8) -> u32 {
        (0..u8::BITS).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { reflected } else { 0 }
        })
    }

    /// The first position i, from `first` on, at which the window of `window_bytes` bytes that ends
    /// with `data[i]` has `crc & mask == value & mask`.
    #[must_use]
    pub fn find_cut(
        (reflected, window_bytes, value): (u32, usize, u32),
        mask: u32,
        data: &[u8],
        first: usize,
    ) -> Option<usize> {
        (first..data.len())
            .find(|&i| crc(reflected, &data[i + 1 - window_bytes..=i]) & mask == value & mask)
    }
}

/// A polynomial, a window and a value, made ready to scan. Has no `Debug`: the polynomial may be
/// secret.
#[derive(Clone)]
pub struct Crc32 {
    append: [u32; 256],
    leave: [u32; 256],
    window_bytes: usize,
    value: u32,
    /// The same in planes, the lowest byte being the last, which is moved out.
    linear: Linear<4, true>,
}

/// The byte of a CRC that is this plane.
fn byte_of(plane: usize) -> usize {
    3 - plane
}

impl Crc32 {
    /// Makes the tables.
    ///
    /// # Panics
    /// When the window is empty.
    #[must_use]
    pub fn new(reflected: u32, window_bytes: usize, value: u32) -> Self {
        assert!(window_bytes > 0);
        let append: [u32; 256] =
            std::array::from_fn(|byte| scalar::append(reflected, 0, byte as u8));
        let value_low = (value & 0xff) as usize;
        let passed = append
            .map(|crc| (0..window_bytes).fold(crc, |crc, _| scalar::append(reflected, crc, 0)));
        Self {
            append: std::array::from_fn(|index| append[index ^ value_low]),
            leave: passed.map(|passed| passed ^ value ^ value >> 8),
            window_bytes,
            value,
            linear: Linear {
                append: linear::maps(|bit| append[usize::from(bit)].into(), byte_of),
                leave: linear::maps(|bit| passed[usize::from(bit)].into(), byte_of),
                enter: [[0; 8]; linear::ENTERING],
                window_bytes,
            },
        }
    }

    /// The first position i, from `first` on, at which the window that ends with `data[i]` has
    /// `crc & mask == value & mask`: equal to [`scalar::find_cut`], faster.
    ///
    /// # Panics
    /// When `first + 1` is less than the window.
    #[must_use]
    pub fn find_cut(&self, mask: u32, data: &[u8], first: usize) -> Option<usize> {
        let scan = Scan { tables: self, mask };
        lanes::find_cut(&scan, 1 << mask.count_ones(), data, first)
    }

    /// The same by the loop that papers print, one byte after another: to measure it.
    ///
    /// # Panics
    /// When `first + 1` is less than the window.
    #[must_use]
    pub fn find_cut_in_order(&self, mask: u32, data: &[u8], first: usize) -> Option<usize> {
        lanes::find_cut_in_order(&Scan { tables: self, mask }, data, first)
    }

    /// Marks the positions `first..first + count`, the first as bit 0, whose window has the value
    /// under the strict and the loose mask, every position judged.
    ///
    /// # Panics
    /// When `first + 1` is less than the window, a position lies behind the data, or the marks are
    /// too few.
    pub fn mark(
        &self,
        isa: Isa,
        (strict, loose): (u32, u32),
        data: &[u8],
        first: usize,
        count: usize,
        marks: &mut Marks<'_>,
    ) {
        let data = &data[..first + count];
        let scan = Scan {
            tables: self,
            mask: loose,
        };
        let judge = |hash: u32| (hash & loose == 0, hash & strict == 0);
        // What slides into the lanes needs a byte before the first window.
        let lead = (self.window_bytes - first.min(self.window_bytes)).min(count);
        lanes::mark(&scan, judge, &data[..first + lead], (first, 0), marks);
        let masks = Masks {
            strict: strict.into(),
            loose: loose.into(),
            value: self.value.into(),
        };
        let judged = Judged::new(masks, byte_of);
        let done = self
            .linear
            .mark::<2, 4>(isa, &judged, data, first, lead, marks);
        lanes::mark(&scan, judge, data, (first, done), marks);
    }
}

struct Scan<'a> {
    tables: &'a Crc32,
    mask: u32,
}

impl Sliding for Scan<'_> {
    type Hash = u32;

    #[inline(always)]
    fn window_bytes(&self) -> usize {
        self.tables.window_bytes
    }

    #[inline(always)]
    fn start(&self) -> u32 {
        self.tables.value
    }

    /// A zero that leaves adds nothing.
    #[inline(always)]
    fn enter(&self, hash: u32, entering: u8) -> u32 {
        self.slide(hash, entering, 0)
    }

    #[inline(always)]
    fn slide(&self, hash: u32, entering: u8, leaving: u8) -> u32 {
        let index = hash as u8 ^ entering;
        // Whatever does not wait for the table comes first.
        let change = self.tables.leave[usize::from(leaving)];
        (hash >> 8 ^ change) ^ self.tables.append[usize::from(index)]
    }

    #[inline(always)]
    fn is_cut(&self, hash: u32) -> bool {
        hash & self.mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Crc32, scalar};
    use crate::isa::Isa;
    use crate::marks::Marks;
    use proptest::prelude::*;

    const ETHERNET: u32 = 0xedb8_8320;

    /// The check value of CRC-32, 0xcbf43926 for "123456789", is that of the inverted form: with
    /// four bytes inverted at the start, and the end inverted.
    #[test]
    fn specification_gives_the_published_check_value() {
        let mut bytes = *b"123456789";
        bytes[..4].iter_mut().for_each(|byte| *byte = !*byte);
        assert_eq!(!scalar::crc(ETHERNET, &bytes), 0xcbf4_3926);
        assert_eq!(scalar::crc(ETHERNET, &[0; 9]), 0);
        // Table number 128 of any CRC-32 program.
        assert_eq!(scalar::crc(ETHERNET, &[128]), ETHERNET);
    }

    #[test]
    fn every_place_and_length_near_the_edges_of_lanes() {
        let crc32 = Crc32::new(ETHERNET, 32, 0);
        for length in [31, 32, 33, 95, 96, 319, 320, 600, 2048] {
            for place in 0..length {
                let mut data = vec![1u8; length];
                let end = (place + 32).min(length);
                data[place..end].fill(0);
                let expected = (place + 32 <= length).then_some(place + 31);
                let cut = crc32.find_cut((1 << 20) - 1, &data, 31);
                assert_eq!(cut, expected, "{length} {place}");
            }
        }
    }

    proptest! {
        #[test]
        fn marks_are_those_of_the_specification(
            reflected in prop::sample::select(vec![ETHERNET, 0x82f6_3b78]),
            window_bytes in prop::sample::select(vec![1usize, 16, 32, 48, 64, 256]),
            (loose, more) in (0u32..9, 0u32..4),
            shift in prop::sample::select(vec![0u32, 0, 0, 20]),
            value: u32,
            first in 0usize..300,
            symbols in 1u16..=256,
            seed: u64,
            length in 0usize..9000,
        ) {
            let mut state = seed;
            let data: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ((state >> 40) % u64::from(symbols)) as u8
                })
                .collect();
            let (loose, strict) = (((1 << loose) - 1) << shift, ((1 << (loose + more)) - 1) << shift);
            let first = first.max(window_bytes - 1);
            let count = length.saturating_sub(first);
            let crc32 = Crc32::new(reflected, window_bytes, value);
            let crcs: Vec<u32> = (first..length)
                .map(|i| scalar::crc(reflected, &data[i + 1 - window_bytes..=i]) ^ value)
                .collect();
            for isa in Isa::available() {
                let (mut a, mut b) = (vec![0; 200], vec![0; 200]);
                let mut marks = Marks::cleared(&mut a, &mut b, count);
                if count > 0 {
                    crc32.mark(isa, (strict, loose), &data, first, count, &mut marks);
                }
                for (index, crc) in crcs.iter().enumerate() {
                    let bit = |words: &[u64]| words[index / 64] >> (index % 64) & 1 == 1;
                    prop_assert_eq!(bit(&b), crc & loose == 0, "{} {}", isa, index);
                    prop_assert_eq!(bit(&a), crc & strict == 0, "{} {}", isa, index);
                }
            }
        }

        #[test]
        fn equal_to_the_specification(
            reflected in prop::sample::select(vec![ETHERNET, 0x82f6_3b78, 0x8000_0001]),
            window_bytes in prop::sample::select(vec![1usize, 32, 48, 64, 256]),
            bits in 0u32..13,
            value: u32,
            first in 0usize..300,
            symbols in 1u8..=255,
            mut data in proptest::collection::vec(any::<u8>(), 0..1500),
        ) {
            data.iter_mut().for_each(|byte| *byte %= symbols);
            let mask = (1 << bits) - 1;
            let first = first.max(window_bytes - 1);
            let crc32 = Crc32::new(reflected, window_bytes, value);
            let expected = scalar::find_cut((reflected, window_bytes, value), mask, &data, first);
            prop_assert_eq!(crc32.find_cut(mask, &data, first), expected);
            prop_assert_eq!(crc32.find_cut_in_order(mask, &data, first), expected);
        }
    }
}
