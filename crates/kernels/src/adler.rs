//! The scan of a rolling Adler checksum: at which window are its judged bits all ones?
//!
//! Enters: 256 numbers A of 16 bits, the size w of the window in bytes, how many bits are judged,
//! data. Leaves: the first position whose window has only ones in so many highest bits of its hash.
//! For a window b_w … b_1, where b_1 is the
//! last byte, with all sums modulo 2^16 (P-Dedupe, Table 4, with a window, which its formula
//! lacks):
//!
//! - `S1 = A[b_1] + A[b_2] + … + A[b_w]`,
//! - `S2 = 1 · A[b_1] + 2 · A[b_2] + … + w · A[b_w]`,
//! - `hash = S2 << 16 | S1`.
//!
//! Method. A window slides by one byte with `S1 += A[entering] − A[leaving]`, then
//! `S2 += S1 − w · A[leaving]`. Nothing but two additions waits for the byte before, so the loop is
//! bound by its instructions, not by its chain. Both sums are carried in the upper half of 32 bits,
//! where they wrap by themselves and S2 is in place to be judged; S1 is looked at only once S2
//! fits. What is carried is S2 plus the lowest judged bit, so that all ones are seen as zeros.

use crate::lanes::{self, Sliding};
use crate::marks::Marks;

/// The numbers that bytes stand for.
pub type AdlerTable = [u16; 256];

/// The specification: the sums as they are defined.
pub mod scalar {
    use super::AdlerTable;

    /// The hash of a window.
    #[must_use]
    pub fn hash(table: &AdlerTable, window: &[u8]) -> u32 {
        let (mut sum, mut weighted) = (0u16, 0u16);
        for (before, &byte) in window.iter().rev().enumerate() {
            let number = table[usize::from(byte)];
            sum = sum.wrapping_add(number);
            weighted = weighted.wrapping_add(number.wrapping_mul(before as u16 + 1));
        }
        u32::from(weighted) << 16 | u32::from(sum)
    }

    /// The first position i, from `first` on, at which the window of `window_bytes` bytes that ends
    /// with `data[i]` has only ones in the `bits` highest bits of its hash.
    #[must_use]
    pub fn find_cut(
        table: &AdlerTable,
        window_bytes: usize,
        bits: u32,
        data: &[u8],
        first: usize,
    ) -> Option<usize> {
        let mask = super::highest(bits);
        (first..data.len()).find(|&i| hash(table, &data[i + 1 - window_bytes..=i]) & mask == mask)
    }
}

/// The numbers and a window, made ready to scan. Has no `Debug`: the numbers may be secret.
#[derive(Clone)]
pub struct Adler {
    /// `A << 16`.
    enter: [u32; 256],
    /// `w · A << 16`.
    leave: [u32; 256],
    window_bytes: usize,
}

impl Adler {
    /// Makes the tables.
    ///
    /// # Panics
    /// When the window is empty.
    #[must_use]
    pub fn new(table: &AdlerTable, window_bytes: usize) -> Self {
        assert!(window_bytes > 0);
        Self {
            enter: table.map(|number| u32::from(number) << 16),
            leave: table.map(|number| u32::from(number.wrapping_mul(window_bytes as u16)) << 16),
            window_bytes,
        }
    }

    /// The first position i, from `first` on, at which the window that ends with `data[i]` has
    /// only ones in the `bits` highest bits of its hash: equal to [`scalar::find_cut`], faster.
    ///
    /// # Panics
    /// When `first + 1` is less than the window.
    #[must_use]
    pub fn find_cut(&self, bits: u32, data: &[u8], first: usize) -> Option<usize> {
        assert!(
            self.window_bytes <= first + 1,
            "the first window lies in the data"
        );
        let last = *data.get(first)?;
        let (mut sum, mut weighted) = (0u32, 0u32);
        let before = &data[first + 1 - self.window_bytes..first];
        for &byte in before.iter().chain(&[last]) {
            sum = sum.wrapping_add(self.enter[usize::from(byte)]);
            weighted = weighted.wrapping_add(sum);
        }
        let mask = highest(bits);
        let (mask_weighted, mask_sum) = (mask & 0xffff_0000, mask << 16);
        weighted = weighted.wrapping_add(mask_weighted & mask_weighted.wrapping_neg());
        let is_cut =
            |sum: u32, weighted: u32| weighted & mask_weighted == 0 && !sum & mask_sum == 0;
        if is_cut(sum, weighted) {
            return Some(first);
        }
        let entering = &data[first + 1..];
        let leaving = &data[first + 1 - self.window_bytes..];
        for (index, (&entering, &leaving)) in entering.iter().zip(leaving).enumerate() {
            let change =
                self.enter[usize::from(entering)].wrapping_sub(self.enter[usize::from(leaving)]);
            sum = sum.wrapping_add(change);
            weighted = weighted
                .wrapping_sub(self.leave[usize::from(leaving)])
                .wrapping_add(sum);
            if is_cut(sum, weighted) {
                return Some(first + 1 + index);
            }
        }
        None
    }
}

impl Adler {
    /// Marks the positions `first..first + count`, the first as bit 0, whose window has only ones in
    /// the `bits` highest bits of its hash, as strict and as loose ones.
    ///
    /// # Panics
    /// When `first + 1` is less than the window, a position lies behind the data, or the marks are
    /// too few.
    pub fn mark(&self, bits: u32, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        let mask = highest(bits);
        let judge = |(sum, weighted): (u32, u32)| {
            let is_cut = !(weighted & 0xffff_0000 | sum >> 16) & mask == 0;
            (is_cut, is_cut)
        };
        lanes::mark(self, judge, &data[..first + count], (first, 0), marks);
    }
}

/// The two sums, each in the upper half.
impl Sliding for Adler {
    type Hash = (u32, u32);

    #[inline(always)]
    fn window_bytes(&self) -> usize {
        self.window_bytes
    }

    #[inline(always)]
    fn start(&self) -> (u32, u32) {
        (0, 0)
    }

    #[inline(always)]
    fn enter(&self, (sum, weighted): (u32, u32), entering: u8) -> (u32, u32) {
        let sum = sum.wrapping_add(self.enter[usize::from(entering)]);
        (sum, weighted.wrapping_add(sum))
    }

    #[inline(always)]
    fn slide(&self, (sum, weighted): (u32, u32), entering: u8, leaving: u8) -> (u32, u32) {
        let leaving = usize::from(leaving);
        let sum = sum.wrapping_sub(self.enter[leaving]);
        self.enter((sum, weighted.wrapping_sub(self.leave[leaving])), entering)
    }

    /// Not asked: how many bits are judged is not known here.
    fn is_cut(&self, _: (u32, u32)) -> bool {
        false
    }
}

/// A mask of the `bits` highest of 32 bits.
fn highest(bits: u32) -> u32 {
    !u32::MAX.checked_shr(bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Adler, AdlerTable, scalar};
    use crate::marks::Marks;
    use proptest::prelude::*;

    fn table_from(seed: u64) -> AdlerTable {
        let mut state = seed;
        std::array::from_fn(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as u16
        })
    }

    #[test]
    fn specification_by_hand() {
        let mut table = [0u16; 256];
        table[1] = 1;
        table[2] = 0x4000;
        assert_eq!(scalar::hash(&table, &[]), 0);
        // S1 = 0x4001; S2 = 1 · 1 + 2 · 0x4000.
        assert_eq!(scalar::hash(&table, &[2, 1]), 0x8001_4001);
        assert_eq!(scalar::hash(&table, &[1, 2]), 0x4002_4001);
        // Both wrap.
        assert_eq!(scalar::hash(&table, &[2, 2, 2, 2]), 0x8000_0000);
        let cut = scalar::find_cut(&table, 2, 1, &[1, 1, 2, 1], 1);
        assert_eq!(cut, Some(3));
    }

    proptest! {
        #[test]
        fn equal_to_the_specification(
            seed: u64,
            window_bytes in prop::sample::select(vec![1usize, 32, 48, 64, 256]),
            bits in 0u32..=32,
            first in 0usize..300,
            symbols in 1u8..=255,
            mut data in proptest::collection::vec(any::<u8>(), 0..1500),
        ) {
            data.iter_mut().for_each(|byte| *byte %= symbols);
            let table = table_from(seed);
            let first = first.max(window_bytes - 1);
            let adler = Adler::new(&table, window_bytes);
            let count = data.len().saturating_sub(first);
            let (mut strict, mut loose) = (vec![0; 30], vec![0; 30]);
            if count > 0 {
                let mut marks = Marks::cleared(&mut strict, &mut loose, count);
                adler.mark(bits, &data, first, count, &mut marks);
            }
            prop_assert_eq!(&strict, &loose);
            let marked = (first..data.len())
                .filter(|i| loose[(i - first) / 64] >> ((i - first) % 64) & 1 == 1);
            let expected = (first..data.len()).filter(|i| {
                let mask = super::highest(bits);
                scalar::hash(&table, &data[i + 1 - window_bytes..=*i]) & mask == mask
            });
            prop_assert!(marked.eq(expected));
            let mut from = first;
            loop {
                let cut = adler.find_cut(bits, &data, from);
                let expected = scalar::find_cut(&table, window_bytes, bits, &data, from);
                prop_assert_eq!(cut, expected);
                let Some(cut) = cut else { break };
                from = cut + 1;
            }
        }
    }
}
