//! `fold`: a rolling hash over GF(2) that is made for carry-less multiplication.
//!
//! Enters: bytes, a table that is linear in them ([`Fold::new`]), where the first cut may be and
//! from where on the weaker rule holds. Leaves: the first cut, or bit arrays of all of them.
//!
//! The hash, one byte after another ([`scalar`]): `hash = (hash << 1) ^ table[byte]`, as Gear but
//! with XOR in place of addition. The table's numbers have 32 bits, so bit 31 of the hash is a
//! function of the last 32 bytes, its *sign*, and bit 31 + o is the sign of o bytes ago. A place is
//! cut when the signs of a few of the last 32 bytes (0, 1, 2, 3, 11 … bytes ago) are what the
//! [`PATTERN`] says: the hash under a mask, compared with a value, in 63 bits. So each cut is
//! decided by the 63 bytes before it.
//!
//! Why: one bit a byte is all that there is to compute, and as the hash is linear, the signs of 64
//! places are a product of polynomials over GF(2). The table is
//! `table[byte] = XOR over p of parity(byte & ROWS[p]) · taps[p]`: four linear functionals of each
//! byte, with 32 taps each.
//! The bits p of 64 bytes make a polynomial, the taps p another; the sum of the four products has
//! the signs of these 64 places and what they leave for the 64 after them. Then the pattern is an
//! AND of shifted words.
//!
//! The pattern asks for ones and zeros in turn, so set that data of a short period never cuts: signs
//! of such data have the same period, and for every period up to 23 (patterns of 11 signs or more; up
//! to 10 from 8 signs on, to 5 from 5) the pattern asks for a one and a zero that are a multiple of
//! it apart. In turn, because signs are zero within a run of one byte: with the ones near and the
//! zeros far, places just behind such runs would be cut far too often.
//!
//! Linear also means: whoever knows a few cuts of known data can compute the taps. A key makes cuts
//! differ between repositories, and protects nothing.

/// Runs a scan for a number of signs that the compiler knows.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! by_signs {
    ($signs:ident, $scan:ident, $end:ident, $walk:ident) => {
        by_signs!($signs, $scan, $end, $walk,
            5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27)
    };
    ($signs:ident, $scan:ident, $end:ident, $walk:ident, $($count:literal)*) => {
        match $signs {
            $( $count => $scan.run_with::<$count>($end, $walk), )*
            _ => unreachable!("numbers of signs were checked"),
        }
    };
}
/// The search of every level, from where `walk` stands: whole blocks under the strict pattern, the
/// block in which the normal point lies, whole blocks under the loose one, then what is left, padded.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! find_cut_by_blocks {
    ($scan:ident, $walk:ident) => {{
        let data: &[u8] = $scan.data;
        let strict_end = $scan.normal.min(data.len());
        if let Some(cut) = $scan.run($scan.fold.strict_signs, strict_end, &mut $walk) {
            return Some(cut);
        }
        if $walk.position < $scan.normal {
            if let Some(block) = data[$walk.position..].first_chunk::<BLOCK>() {
                if let Some(cut) = $scan.crossing(block, &mut $walk) {
                    return Some(cut);
                }
            }
        }
        if let Some(cut) = $scan.run($scan.fold.loose_signs, data.len(), &mut $walk) {
            return Some(cut);
        }
        let mut block = [0; BLOCK];
        let rest = &data[$walk.position..];
        block[..rest.len()].copy_from_slice(rest);
        let cut = $scan.crossing(&block, &mut $walk)?;
        (cut < data.len()).then_some(cut)
    }};
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod prefetch;
pub mod scalar;
#[cfg(test)]
mod tests;

use crate::isa::Isa;
use crate::marks::Marks;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::marks::words_for;

/// The linear functionals of a byte: plane p is the parity of `byte & ROWS[p]`.
///
/// Four bits of eight: 15 of the 255 differences of two bytes are not seen. None of these has fewer
/// than three bits, and none is a difference that data often have: 0xff (masks, signs), 0x20,
/// of digits, of white space.
pub const ROWS: [u8; PLANES] = [0x9b, 0x29, 0xcd, 0x71];

/// Functionals of a byte.
pub const PLANES: usize = 4;

/// The planes of a byte: plane p in bit p.
const fn planes(byte: u8) -> u8 {
    let (mut planes, mut plane) = (0, 0);
    while plane < PLANES {
        planes |= ((byte & ROWS[plane]).count_ones() as u8 % 2) << plane;
        plane += 1;
    }
    planes
}

/// The planes of each lower and of each upper half of a byte.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const HALF_PLANES: [[u8; 16]; 2] = {
    let (mut halves, mut half) = ([[0; 16]; 2], 0);
    while half < 16 {
        halves[0][half] = planes(half as u8);
        halves[1][half] = planes((half as u8) << 4);
        half += 1;
    }
    halves
};

/// Bytes before a cut that decide it.
pub const WINDOW_BYTES: usize = 63;

/// The most signs that a pattern looks at.
pub const SIGNS_MOST: usize = PATTERN.len();

/// The fewest signs that a pattern looks at.
pub const SIGNS_FEWEST: usize = 5;

/// Bytes that decide a sign.
const TAPS: usize = 32;

/// How many bytes ago, and which sign is asked for: the first `count` rows are the pattern of
/// `count` signs, so every pattern contains those with fewer.
///
/// Chosen by the dedup ratio on real data (docs/design/0007) and so that short periods never match.
pub const PATTERN: [(u32, bool); 27] = [
    (0, true),
    (1, false),
    (2, true),
    (3, false),
    (11, true),
    (14, false),
    (16, true),
    (18, false),
    (20, true),
    (22, false),
    (24, true),
    (27, false),
    (28, true),
    (30, false),
    (31, true),
    (5, false),
    (7, true),
    (9, false),
    (6, true),
    (12, false),
    (26, true),
    (13, false),
    (29, true),
    (8, false),
    (23, true),
    (17, false),
    (21, true),
];

/// Where a pattern of `count` signs cuts: `hash & mask == value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Bit 31 + o for each sign of o bytes ago that is looked at.
    pub mask: u64,
    /// What these bits must be.
    pub value: u64,
}

impl Rule {
    /// The rule of the first `count` signs of [`PATTERN`].
    #[must_use]
    pub fn new(count: usize) -> Self {
        let mut rule = Self { mask: 0, value: 0 };
        for (ago, sign) in &PATTERN[..count] {
            let bit = 1 << (TAPS as u32 - 1 + ago);
            rule.mask |= bit;
            rule.value |= if *sign { bit } else { 0 };
        }
        rule
    }

    /// Whether it cuts behind the bytes that made `hash`.
    #[inline(always)]
    #[must_use]
    pub fn is_cut(self, hash: u64) -> bool {
        hash & self.mask == self.value
    }
}

/// What decides cuts: the taps, and how many signs count before and from the normal point on.
#[derive(Clone)]
pub struct Fold {
    /// `XOR over p of parity(byte & ROWS[p]) · taps[p]`.
    table: [u32; 256],
    /// Bit 32 − d of `taps[p]`: whether plane p of the byte d before a place, 1 ≤ d ≤ 32, is in its
    /// sign.
    taps: [u32; PLANES],
    strict_signs: usize,
    loose_signs: usize,
}

impl Fold {
    /// A scanner with these taps: random numbers, bit 0 of each is set here, so that a sign knows
    /// 32 bytes.
    ///
    /// # Panics
    /// When the numbers of signs are not `SIGNS_FEWEST <= loose_signs <= strict_signs <=
    /// SIGNS_MOST`.
    #[must_use]
    pub fn new(taps: [u32; PLANES], strict_signs: usize, loose_signs: usize) -> Self {
        assert!(SIGNS_FEWEST <= loose_signs && loose_signs <= strict_signs);
        assert!(strict_signs <= SIGNS_MOST);
        let taps = taps.map(|taps| taps | 1);
        let table = std::array::from_fn(|byte| {
            let planes = planes(byte as u8);
            let is_set = |plane: &usize| planes >> plane & 1 == 1;
            (0..PLANES)
                .filter(is_set)
                .fold(0, |number, plane| number ^ taps[plane])
        });
        Self {
            table,
            taps,
            strict_signs,
            loose_signs,
        }
    }

    /// The hash after one more byte.
    #[inline(always)]
    #[must_use]
    pub fn step(&self, hash: u64, byte: u8) -> u64 {
        hash << 1 ^ u64::from(self.table[usize::from(byte)])
    }

    /// The smallest i from `first` on, below `data.len()`, behind whose byte i − 1 there is a cut:
    /// by the strict pattern while i < `normal`, by the loose one from there on.
    ///
    /// Every level gives what [`scalar::find_cut`] gives.
    ///
    /// # Panics
    /// When `first` < 64.
    #[must_use]
    pub fn find_cut(&self, data: &[u8], first: usize, normal: usize, isa: Isa) -> Option<usize> {
        assert!(first > WINDOW_BYTES, "windows lie in the data");
        if first >= data.len() {
            return None;
        }
        match isa.or_scalar() {
            // SAFETY: the machine has what the level stands for.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::find_cut(self, data, first, normal) },
            // SAFETY: the machine has what the level stands for.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::find_cut(self, data, first, normal) },
            // SAFETY: the machine has what the level stands for.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { neon::find_cut(self, data, first, normal) },
            _ => scalar::find_cut(self, data, first, normal),
        }
    }

    /// Marks the positions i = `first`..`first + count`, the first as bit 0, behind whose byte i − 1
    /// the patterns cut.
    ///
    /// Every level gives what [`scalar::mark`] gives.
    ///
    /// # Panics
    /// When `first` < 64, when the data end before the last position, or the marks do.
    pub fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        assert!(first > WINDOW_BYTES, "windows lie in the data");
        assert!(first + count <= data.len());
        match isa.or_scalar() {
            // SAFETY: the machine has what the level stands for.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::mark(self, data, first, count, marks) },
            // SAFETY: the machine has what the level stands for.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::mark(self, data, first, count, marks) },
            // SAFETY: the machine has what the level stands for.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { neon::mark(self, data, first, count, marks) },
            _ => scalar::mark(self, data, first, count, marks),
        }
    }
}

/// Marks positions block by block: `judge` takes `WORDS` times 64 bytes, and gives strict and loose
/// words for the places before each of them, the first place in bit 0.
///
/// The first word is of the 64 bytes before `first`, whose last 32 signs are right: enough for the
/// words behind it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn mark_blocks<const WORDS: usize>(
    data: &[u8],
    first: usize,
    count: usize,
    marks: &mut Marks<'_>,
    mut judge: impl FnMut(&[u8]) -> [[u64; WORDS]; 2],
) {
    let words = words_for(count);
    let mut position = first - 64;
    // How many words of the next block are of no judged position.
    let mut skipped = 1;
    let mut done = 0;
    while done < words {
        let block = &data[position..];
        let [strict_words, loose_words] = if block.len() >= 64 * WORDS {
            judge(&block[..64 * WORDS])
        } else {
            let mut padded = [[0u8; 64]; WORDS];
            padded.as_flattened_mut()[..block.len()].copy_from_slice(block);
            judge(padded.as_flattened())
        };
        let judged = strict_words.iter().zip(&loose_words).skip(skipped);
        for (&strict, &loose) in judged.take(words - done) {
            let left = count - 64 * done;
            let kept = if left < 64 { !(!0 << left) } else { !0 };
            marks.set_word(done, strict & kept, loose & kept);
            done += 1;
        }
        skipped = 0;
        position += 64 * WORDS;
    }
}
