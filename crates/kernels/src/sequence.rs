//! The first rising sequence of bytes, with jumps over what falls (SeqCDC; Udayashankar et al.,
//! Middleware 2024).
//!
//! Enters: a [`Rule`] and bytes, the first of which is only compared with. Leaves: the index of
//! the byte that ends the first sequence.
//!
//! Method. Pairs of neighbours are judged 64 at a time: which of them fall is a mask, made of
//! byte comparisons that the compiler makes vectors of, eight flags gathered by one
//! multiplication. Its count of ones says whether the jump comes in this block, and where. A
//! sequence needs `rises` pairs in a row none of which falls, which few blocks have; only those
//! are looked at pair by pair. How often bytes rose before a block is counted only then, over
//! fewer than `rises` pairs, for more would have been such a block.

use std::cmp::Ordering;
use std::hint::black_box;

/// Pairs judged at a time.
const BLOCK: usize = 64;

/// What a sequence is, and when to jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// So many pairs must rise with none between them that falls; pairs of equals do not count.
    /// From 1 to [`Rule::RISES_HIGHEST`].
    pub rises: u32,
    /// So many falling pairs make it jump; at least 1.
    pub falls: u32,
    /// So many bytes are passed over then.
    pub jump: usize,
}

impl Rule {
    /// The highest `rises`.
    pub const RISES_HIGHEST: u32 = 64;
}

/// The specification: every pair, one at a time.
pub mod scalar {
    use super::{Ordering, Rule};

    /// The index of the byte that ends the first sequence.
    #[must_use]
    pub fn find_cut(rule: &Rule, bytes: &[u8]) -> Option<usize> {
        let mut index = 1;
        let (mut rises, mut falls) = (0, 0);
        while index < bytes.len() {
            match bytes[index].cmp(&bytes[index - 1]) {
                Ordering::Equal => {}
                Ordering::Greater => {
                    rises += 1;
                    if rises == rule.rises {
                        return Some(index);
                    }
                }
                Ordering::Less => {
                    rises = 0;
                    falls += 1;
                    if falls == rule.falls {
                        falls = 0;
                        index = index.saturating_add(rule.jump);
                    }
                }
            }
            index = index.saturating_add(1);
        }
        None
    }
}

/// The index of the byte that ends the first sequence. Equal to [`scalar::find_cut`], faster.
#[must_use]
pub fn find_cut(rule: &Rule, bytes: &[u8]) -> Option<usize> {
    assert!((1..=Rule::RISES_HIGHEST).contains(&rule.rises) && rule.falls > 0);
    // The pair to be judged next ends here.
    let mut index = 1;
    let mut falls = 0;
    // Which of the 64 pairs before it do not fall, as far as there was no jump between.
    let mut calm_before = 0u64;
    // How often bytes rose since the last fall or jump, where the pairs before do not tell.
    let mut rises = Some(0);
    while let Some(block) = bytes.get(index - 1..).and_then(<[u8]>::first_chunk) {
        let falling = mask(block, |before, byte| byte < before);
        let counts = running_counts(falling);
        let missing = rule.falls - falls;
        let jump_at =
            (counts >> 56 >= u64::from(missing)).then(|| nth_one(falling, counts, missing));
        // All pairs of the block, or those up to the one that makes it jump.
        let judged = jump_at.map_or(u64::MAX, |place| u64::MAX >> (63 - place));
        if has_row(calm_before, !falling, rule.rises) & judged != 0 {
            let before = rises.unwrap_or_else(|| rises_before(bytes, index));
            match rises_in(rule, block, falling & judged, judged, before) {
                Ok(place) => return Some(index + place),
                Err(after) => rises = Some(after),
            }
        } else {
            rises = None;
        }
        if let Some(place) = jump_at {
            index = (index + place + 1).saturating_add(rule.jump);
            (falls, calm_before, rises) = (0, 0, Some(0));
            touch_next_landing(rule, bytes, index);
        } else {
            index += BLOCK;
            falls += (counts >> 56) as u32;
            calm_before = !falling;
        }
        if index > bytes.len() {
            return None;
        }
    }
    let before = rises.unwrap_or_else(|| rises_before(bytes, index));
    find_in_rest(rule, bytes, index, before, falls)
}

/// Loads what the scan that begins at `index` will probably come to behind its jump, so that
/// memory is asked for it early: jumps are too wide for the machine to foresee.
#[inline(always)]
fn touch_next_landing(rule: &Rule, bytes: &[u8], index: usize) {
    // About every second pair falls. How far that is off, three cache lines make good.
    let landing = rule.jump.saturating_add(2 * rule.falls as usize);
    let ahead = bytes
        .get(index.saturating_add(landing)..)
        .unwrap_or_default();
    for line in ahead.iter().step_by(64).take(3) {
        black_box(*line);
    }
}

/// The pairs that remain, fewer than a block but for jumps.
fn find_in_rest(
    rule: &Rule,
    bytes: &[u8],
    mut index: usize,
    mut rises: u32,
    mut falls: u32,
) -> Option<usize> {
    while index < bytes.len() {
        match bytes[index].cmp(&bytes[index - 1]) {
            Ordering::Equal => {}
            Ordering::Greater => {
                rises += 1;
                if rises == rule.rises {
                    return Some(index);
                }
            }
            Ordering::Less => {
                (rises, falls) = (0, falls + 1);
                if falls == rule.falls {
                    falls = 0;
                    index = index.saturating_add(rule.jump);
                }
            }
        }
        index = index.saturating_add(1);
    }
    None
}

/// Where in a block a sequence ends, or how often bytes rose since its last fall.
#[inline(never)]
fn rises_in(
    rule: &Rule,
    block: &[u8; BLOCK + 1],
    falling: u64,
    judged: u64,
    mut rises: u32,
) -> Result<usize, u32> {
    let mut rising = mask(block, |before, byte| byte > before) & judged;
    let mut falling = falling;
    // From fall to fall: the pairs between are below the lowest one of `falling`.
    loop {
        let below = falling.wrapping_sub(1) & !falling;
        let between = rising & below;
        if rises + between.count_ones() >= rule.rises {
            let counts = running_counts(between);
            return Ok(nth_one(between, counts, rule.rises - rises));
        }
        if falling == 0 {
            return Err(rises + between.count_ones());
        }
        rises = 0;
        rising &= !below;
        falling &= falling - 1;
    }
}

/// How often bytes rose in the pairs that end before `index`, back to the last that falls. Only
/// asked where few pairs before it do not fall.
fn rises_before(bytes: &[u8], index: usize) -> u32 {
    let pairs = bytes[..index].windows(2).rev();
    let calm = pairs.take_while(|pair| pair[1] >= pair[0]);
    calm.filter(|pair| pair[1] > pair[0]).count() as u32
}

/// The pairs at which a row of `length` ones ends, the ones of `before` continued by `ones`.
#[inline(always)]
fn has_row(before: u64, ones: u64, length: u32) -> u64 {
    let joined = u128::from(ones) << 64 | u128::from(before);
    let mut rows = joined;
    for _ in 1..length {
        rows = joined & rows << 1;
    }
    (rows >> 64) as u64
}

/// Bit i: what `is_so` says of bytes i and i + 1.
#[inline(always)]
fn mask(block: &[u8; BLOCK + 1], is_so: impl Fn(u8, u8) -> bool) -> u64 {
    let mut flags = [0u8; BLOCK];
    for (index, flag) in flags.iter_mut().enumerate() {
        *flag = u8::from(is_so(block[index], block[index + 1]));
    }
    // Moves bit 8j of a word to bit 56 + j, for each j.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let words = flags.as_chunks::<8>().0.iter().enumerate();
    words.fold(0, |mask, (index, &word)| {
        mask | (u64::from_le_bytes(word).wrapping_mul(GATHER) >> 56) << (8 * index)
    })
}

/// Byte j: how many of the lowest 8 (j + 1) bits are ones.
#[inline(always)]
fn running_counts(ones: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let pairs = ones - (ones >> 1 & (0x55 * EACH));
    let quads = (pairs & (0x33 * EACH)) + (pairs >> 2 & (0x33 * EACH));
    ((quads + (quads >> 4)) & (0x0f * EACH)).wrapping_mul(EACH)
}

/// The place of the `n`th one, n from 1 to the number of ones; `counts` are its running counts.
#[inline(always)]
fn nth_one(ones: u64, counts: u64, n: u32) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Counts are at most 64: a byte keeps its top bit where its count is at least n.
    let reached = ((counts | (0x80 * EACH)) - u64::from(n) * EACH) & (0x80 * EACH);
    let byte = reached.trailing_zeros() / 8;
    let passed = if byte == 0 {
        0
    } else {
        counts >> (8 * (byte - 1)) & 0xff
    };
    let mut rest = ones >> (8 * byte);
    for _ in 1..n - passed as u32 {
        rest &= rest - 1;
    }
    (8 * byte + rest.trailing_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Rule, find_cut, nth_one, running_counts, scalar};
    use proptest::prelude::*;

    fn rule(rises: u32, falls: u32, jump: usize) -> Rule {
        Rule { rises, falls, jump }
    }

    #[test]
    fn specification_by_hand() {
        let bytes = [9, 1, 2, 2, 3, 1, 5, 6, 7];
        assert_eq!(scalar::find_cut(&rule(2, 50, 0), &bytes), Some(4));
        assert_eq!(scalar::find_cut(&rule(3, 50, 0), &bytes), Some(8));
        assert_eq!(scalar::find_cut(&rule(4, 50, 0), &bytes), None);
        // The pair 9, 1 falls: the pairs that end at indices 2 to 6 are not looked at.
        assert_eq!(scalar::find_cut(&rule(2, 1, 5), &bytes), Some(8));
        assert_eq!(scalar::find_cut(&rule(2, 1, usize::MAX), &bytes), None);
        assert_eq!(scalar::find_cut(&rule(1, 1, 0), &[]), None);
        assert_eq!(scalar::find_cut(&rule(1, 1, 0), &[4]), None);
    }

    #[test]
    fn every_one_is_found() {
        for ones in [
            1,
            1 << 63,
            u64::MAX,
            0x8100_0000_0000_0180,
            0x5555_0000_ffff_0001,
        ] {
            let counts = running_counts(ones);
            assert_eq!(counts >> 56, u64::from(ones.count_ones()));
            let places: Vec<usize> = (0..64).filter(|place| ones >> place & 1 == 1).collect();
            for (index, &place) in places.iter().enumerate() {
                assert_eq!(nth_one(ones, counts, index as u32 + 1), place);
            }
        }
    }

    #[test]
    fn every_length_and_place_of_a_sequence() {
        let falling: Vec<u8> = (0..4 * BLOCK)
            .map(|index| 255 - index as u8 % 200)
            .collect();
        for place in 0..falling.len() - 6 {
            for equals in [0, 3, 2 * BLOCK] {
                let mut bytes = falling.clone();
                let run = std::iter::repeat_n(2, equals);
                bytes.splice(
                    place..place + 5,
                    [0, 1].into_iter().chain(run).chain([3, 4, 5]),
                );
                for rule in [
                    rule(4, 5000, 0),
                    rule(5, 5000, 0),
                    rule(4, 50, 30),
                    rule(4, 7, 1),
                ] {
                    let expected = scalar::find_cut(&rule, &bytes);
                    assert_eq!(find_cut(&rule, &bytes), expected, "{place} {equals}");
                    let cut_off = &bytes[..place + 5];
                    assert_eq!(find_cut(&rule, cut_off), scalar::find_cut(&rule, cut_off));
                }
            }
        }
    }

    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let steps = (-1i8..=1, 1usize..90);
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..2000),
            proptest::collection::vec(0..=3u8, 0..2000),
            // Slopes: long rows of rises, falls and equals.
            proptest::collection::vec(steps, 0..60).prop_map(|slopes| {
                let mut byte = 128u8;
                let mut bytes = Vec::new();
                for (step, count) in slopes {
                    for index in 0..count {
                        byte = byte.wrapping_add_signed(if index % 3 == 0 { step } else { 0 });
                        bytes.push(byte);
                    }
                }
                bytes
            }),
        ]
    }

    proptest! {
        #[test]
        fn equal_to_the_specification(
            bytes in any_bytes(),
            rises in prop_oneof![1u32..=8, 1u32..=Rule::RISES_HIGHEST],
            falls in prop_oneof![1u32..=8, 1u32..=200],
            jump in prop_oneof![0usize..10, 0usize..300],
        ) {
            let rule = rule(rises, falls, jump);
            prop_assert_eq!(find_cut(&rule, &bytes), scalar::find_cut(&rule, &bytes));
        }
    }
}
