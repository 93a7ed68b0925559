//! The scan of Rabin fingerprints: at which window does the fingerprint have a given value?
//!
//! Enters: an irreducible polynomial P over GF(2) (bit i for x^i), the size of the window in bytes,
//! a value, a mask, data. Leaves: the first position whose window has
//! `fingerprint & mask == value & mask`. The fingerprint of a window is the remainder mod P of the
//! polynomial whose coefficients are the bits of the window, the first bit of the first byte the
//! highest (Rabin 1981; Broder 1993; FastCDC §2, Eqs. 1 and 2).
//!
//! Method. A window slides by one byte with two tables of 256 numbers, as in LBFS:
//! `fingerprint = (fingerprint << 8 | entering) ^ append[top 8 bits] ^ leave[leaving]`, where
//! `append` reduces what was shifted out above the degree, and `leave` has `byte · x^(8 · window)`.
//! Four lanes run at once (`lanes.rs`).
//! What is carried is the fingerprint XOR the value, so that a cut is a zero under the mask and
//! costs one instruction to see: as all is linear, the constant that keeps it so,
//! `value ^ value << 8`, is put into `leave`.

use crate::isa::Isa;
use crate::lanes::{self, Sliding};
use crate::linear::{self, Judged, Linear};
use crate::marks::{Marks, Masks};

/// The lowest degree that a polynomial may have.
pub const DEGREE_LOWEST: u32 = 53;
/// The highest degree that a polynomial may have.
pub const DEGREE_HIGHEST: u32 = 63;

/// The specification: fingerprints as they are defined.
pub mod scalar {
    /// The remainder of a window, bit by bit.
    #[must_use]
    pub fn fingerprint(polynomial: u64, window: &[u8]) -> u64 {
        window.iter().fold(0, |fingerprint, &byte| {
            append(polynomial, fingerprint, byte)
        })
    }

    /// `fingerprint · x^8 + byte` mod `polynomial`.
    pub(super) fn append(polynomial: u64, mut fingerprint: u64, byte: u8) -> u64 {
        let degree = polynomial.ilog2();
        for bit in (0..u8::BITS).rev() {
            fingerprint = fingerprint << 1 | u64::from(byte >> bit & 1);
            if fingerprint >> degree & 1 == 1 {
                fingerprint ^= polynomial;
            }
        }
        fingerprint
    }

    /// The first position i, from `first` on, at which the window of `window_bytes` bytes that ends
    /// with `data[i]` has `fingerprint & mask == value & mask`.
    #[must_use]
    pub fn find_cut(
        (polynomial, window_bytes, value): (u64, usize, u64),
        mask: u64,
        data: &[u8],
        first: usize,
    ) -> Option<usize> {
        (first..data.len()).find(|&i| {
            let window = &data[i + 1 - window_bytes..=i];
            fingerprint(polynomial, window) & mask == value & mask
        })
    }
}

/// A polynomial, a window and a value, made ready to scan. Has no `Debug`: the polynomial may be
/// secret.
#[derive(Clone)]
pub struct Rabin {
    append: [u64; 256],
    leave: [u64; 256],
    degree: u32,
    window_bytes: usize,
    value: u64,
    /// The same in planes, shifted up so that the last plane is what is moved out.
    linear: Linear<8, false>,
}

impl Rabin {
    /// Makes the tables.
    ///
    /// # Panics
    /// When the degree is not from [`DEGREE_LOWEST`] to [`DEGREE_HIGHEST`], the window is empty, or
    /// the value has bits within 8 of the degree.
    #[must_use]
    pub fn new(polynomial: u64, window_bytes: usize, value: u64) -> Self {
        let degree = polynomial.checked_ilog2().unwrap_or(0);
        assert!((DEGREE_LOWEST..=DEGREE_HIGHEST).contains(&degree));
        assert!(window_bytes > 0);
        assert_eq!(value >> (degree - 8), 0);
        let append_zeros = |fingerprint: u64, count: usize| {
            (0..count).fold(fingerprint, |fingerprint, _| {
                scalar::append(polynomial, fingerprint, 0)
            })
        };
        let bytes: [u64; 256] = std::array::from_fn(|byte| byte as u64);
        // What stands above the degree goes, its remainder comes.
        let remainders = bytes.map(|byte| append_zeros(byte << (degree - 8), 1));
        let passed = bytes.map(|byte| append_zeros(byte, window_bytes));
        let shift = u64::BITS - degree;
        Self {
            append: std::array::from_fn(|byte| remainders[byte] ^ bytes[byte] << degree),
            leave: passed.map(|passed| passed ^ value ^ value << 8),
            degree,
            window_bytes,
            value,
            linear: Linear {
                append: linear::maps(|bit| remainders[usize::from(bit)] << shift, |k| k),
                leave: linear::maps(|bit| passed[usize::from(bit)] << shift, |k| k),
                enter: linear::maps(|bit| u64::from(bit) << shift, |k| k),
                window_bytes,
            },
        }
    }

    /// The first position i, from `first` on, at which the window that ends with `data[i]` has
    /// `fingerprint & mask == value & mask`: equal to [`scalar::find_cut`], faster.
    ///
    /// # Panics
    /// When `first + 1` is less than the window.
    #[must_use]
    pub fn find_cut(&self, mask: u64, data: &[u8], first: usize) -> Option<usize> {
        // The degrees in use get code of their own: shifts by a constant are cheaper.
        match self.degree {
            63 => self.find_cut_at(63, mask, data, first),
            53 => self.find_cut_at(53, mask, data, first),
            degree => self.find_cut_at(degree, mask, data, first),
        }
    }

    /// The same by the loop that papers print, one byte after another: to measure it.
    ///
    /// # Panics
    /// When `first + 1` is less than the window.
    #[must_use]
    pub fn find_cut_in_order(&self, mask: u64, data: &[u8], first: usize) -> Option<usize> {
        match self.degree {
            63 => lanes::find_cut_in_order(&self.scan(63, mask), data, first),
            degree => lanes::find_cut_in_order(&self.scan(degree, mask), data, first),
        }
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
        (strict, loose): (u64, u64),
        data: &[u8],
        first: usize,
        count: usize,
        marks: &mut Marks<'_>,
    ) {
        let data = &data[..first + count];
        let scan = self.scan(self.degree, loose);
        let judge = |hash: u64| (hash & loose == 0, hash & strict == 0);
        // What slides into the lanes needs a byte before the first window.
        let lead = (self.window_bytes - first.min(self.window_bytes)).min(count);
        lanes::mark(&scan, judge, &data[..first + lead], (first, 0), marks);
        let shift = u64::BITS - self.degree;
        let inside = u64::MAX >> shift;
        let masks = Masks {
            strict: (strict & inside) << shift,
            loose: (loose & inside) << shift,
            value: self.value << shift,
        };
        let judged = Judged::new(masks, |plane| plane);
        let done = self
            .linear
            .mark::<0, 4>(isa, &judged, data, first, lead, marks);
        lanes::mark(&scan, judge, data, (first, done), marks);
    }

    #[inline(always)]
    fn find_cut_at(&self, degree: u32, mask: u64, data: &[u8], first: usize) -> Option<usize> {
        let distance = 1 << mask.count_ones().min(32);
        lanes::find_cut(&self.scan(degree, mask), distance, data, first)
    }

    #[inline(always)]
    fn scan(&self, degree: u32, mask: u64) -> Scan<'_> {
        Scan {
            tables: self,
            shift: degree - 8,
            mask,
        }
    }
}

struct Scan<'a> {
    tables: &'a Rabin,
    shift: u32,
    mask: u64,
}

impl Sliding for Scan<'_> {
    type Hash = u64;

    #[inline(always)]
    fn window_bytes(&self) -> usize {
        self.tables.window_bytes
    }

    #[inline(always)]
    fn start(&self) -> u64 {
        self.tables.value
    }

    /// A zero that leaves adds nothing.
    #[inline(always)]
    fn enter(&self, hash: u64, entering: u8) -> u64 {
        self.slide(hash, entering, 0)
    }

    #[inline(always)]
    fn slide(&self, hash: u64, entering: u8, leaving: u8) -> u64 {
        let top = (hash >> self.shift) as u8;
        // Whatever does not wait for the hash comes first.
        let change = self.tables.leave[usize::from(leaving)] ^ u64::from(entering);
        (hash << 8 ^ change) ^ self.tables.append[usize::from(top)]
    }

    #[inline(always)]
    fn is_cut(&self, hash: u64) -> bool {
        hash & self.mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Rabin, scalar};
    use crate::isa::Isa;
    use crate::marks::Marks;
    use proptest::prelude::*;

    /// The polynomial of LBFS, two of restic's kind, and one of a degree in between.
    const POLYNOMIALS: [u64; 4] = [
        0xbfe6_b8a5_bf37_8d83,
        0x003d_a335_8b4d_c173,
        0x002b_1e4c_27d5_3ce1,
        0x0800_0000_0000_0095,
    ];

    #[test]
    fn specification_by_hand() {
        // 0x0102 is x^8 + x, far below the degree.
        let polynomial = POLYNOMIALS[1];
        assert_eq!(scalar::fingerprint(polynomial, &[1, 2]), 0x102);
        assert_eq!(scalar::fingerprint(polynomial, &[0, 0, 9]), 9);
        assert_eq!(scalar::fingerprint(polynomial, &[]), 0);
        // x^53 mod P: P without its highest term.
        let mut window = [0; 7];
        window[0] = 1 << 5;
        let rest = polynomial ^ 1 << 53;
        assert_eq!(scalar::fingerprint(polynomial, &window), rest);
        let definition = (polynomial, 2, 0x78);
        let cut = scalar::find_cut(definition, 0xff, &[0x78, 1, 0x78, 0x78, 0x78], 1);
        assert_eq!(cut, Some(2));
        assert_eq!(scalar::find_cut(definition, 0xff, &[0x78, 1], 1), None);
    }

    /// A window of zeros with one 1 in front has the fingerprint x^(8 (w − 1)): seen at one place.
    #[test]
    fn every_place_and_length_near_the_edges_of_lanes() {
        let rabin = Rabin::new(POLYNOMIALS[0], 32, 0);
        let mask = (1 << 20) - 1;
        for length in [31, 32, 33, 95, 96, 319, 320, 600, 2048] {
            for place in 0..length {
                let mut data = vec![1u8; length];
                // 32 zeros from `place` on: fingerprint 0 where they end.
                let end = (place + 32).min(length);
                data[place..end].fill(0);
                let expected = (place + 32 <= length).then_some(place + 31);
                assert_eq!(
                    rabin.find_cut(mask, &data, 31),
                    expected,
                    "{length} {place}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn marks_are_those_of_the_specification(
            polynomial in prop::sample::select(POLYNOMIALS.to_vec()),
            window_bytes in prop::sample::select(vec![1usize, 32, 48, 64, 256]),
            (loose, more) in (0u32..9, 0u32..4),
            shift in prop::sample::select(vec![0u32, 0, 0, 40]),
            value in 0u64..256,
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
            let rabin = Rabin::new(polynomial, window_bytes, value);
            let fingerprints: Vec<u64> = (first..length)
                .map(|i| {
                    scalar::fingerprint(polynomial, &data[i + 1 - window_bytes..=i]) ^ value
                })
                .collect();
            for isa in Isa::available() {
                let (mut a, mut b) = (vec![0; 200], vec![0; 200]);
                let mut marks = Marks::cleared(&mut a, &mut b, count);
                if count > 0 {
                    rabin.mark(isa, (strict, loose), &data, first, count, &mut marks);
                }
                for (index, fingerprint) in fingerprints.iter().enumerate() {
                    let bit = |words: &[u64]| words[index / 64] >> (index % 64) & 1 == 1;
                    prop_assert_eq!(bit(&b), fingerprint & loose == 0, "{} {}", isa, index);
                    prop_assert_eq!(bit(&a), fingerprint & strict == 0, "{} {}", isa, index);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn equal_to_the_specification(
            polynomial in prop::sample::select(POLYNOMIALS.to_vec()),
            window_bytes in prop::sample::select(vec![1usize, 32, 48, 64]),
            bits in 0u32..13,
            value in 0u64..256,
            first in 0usize..300,
            data in proptest::collection::vec(any::<u8>(), 0..1500),
        ) {
            let mask = (1 << bits) - 1;
            let first = first.max(window_bytes - 1);
            let rabin = Rabin::new(polynomial, window_bytes, value);
            let expected = scalar::find_cut((polynomial, window_bytes, value), mask, &data, first);
            prop_assert_eq!(rabin.find_cut(mask, &data, first), expected);
            prop_assert_eq!(rabin.find_cut_in_order(mask, &data, first), expected);
        }

        /// Every cut of data of few symbols, where windows repeat.
        #[test]
        fn every_cut_is_found(
            window_bytes in prop::sample::select(vec![32usize, 48, 256]),
            symbols in 1u8..4,
            bits in 3u32..9,
            mut data in proptest::collection::vec(any::<u8>(), 1000..1200),
        ) {
            data.iter_mut().for_each(|byte| *byte %= symbols);
            let mask = (1 << bits) - 1;
            let polynomial = POLYNOMIALS[0];
            let rabin = Rabin::new(polynomial, window_bytes, 0x78);
            let mut first = window_bytes - 1;
            loop {
                let cut = rabin.find_cut(mask, &data, first);
                let definition = (polynomial, window_bytes, 0x78);
                prop_assert_eq!(cut, scalar::find_cut(definition, mask, &data, first));
                let Some(cut) = cut else { break };
                first = cut + 1;
            }
        }
    }
}
