//! The first byte as great as a window at the start (RAM; Widodo et al., 2017).
//!
//! Enters: bytes and the length of the window. Leaves: the index of the first byte at or behind
//! the window that is at least the greatest byte of the window.
//!
//! Method: the greatest byte a block at a time, of which the compiler makes vectors; the search
//! ends at 255, which nothing exceeds and which random data has within some 256 bytes. The same
//! way a block behind the window is passed when its greatest byte is too small.

/// Bytes judged before one look.
const BLOCK: usize = 128;

/// Bytes judged one by one when one of them is great enough.
const PART: usize = 16;

/// The specification: every byte, one at a time.
pub mod scalar {
    /// The first index from `window` on whose byte is at least each of the first `window` bytes;
    /// `None` when there is none, or no window.
    #[must_use]
    pub fn find_cut(bytes: &[u8], window: usize) -> Option<usize> {
        let greatest = *bytes.get(..window)?.iter().max()?;
        (window..bytes.len()).find(|&index| bytes[index] >= greatest)
    }
}

/// The first index from `window` on whose byte is at least each of the first `window` bytes;
/// `None` when there is none, or no window. Equal to [`scalar::find_cut`], faster.
#[must_use]
pub fn find_cut(bytes: &[u8], window: usize) -> Option<usize> {
    if window == 0 || window > bytes.len() {
        return None;
    }
    let (window_bytes, behind) = bytes.split_at(window);
    let position = find_at_least(behind, greatest(window_bytes))?;
    Some(window + position)
}

/// The greatest byte; 0 of none.
fn greatest(bytes: &[u8]) -> u8 {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut greatest = greatest_of(rest);
    for block in blocks {
        greatest = greatest.max(greatest_of(block));
        if greatest == u8::MAX {
            break;
        }
    }
    greatest
}

/// The index of the first byte that is at least `bound`.
fn find_at_least(bytes: &[u8], bound: u8) -> Option<usize> {
    let mut start = 0;
    while let Some(block) = bytes[start..].first_chunk::<BLOCK>() {
        if greatest_of(block) >= bound {
            break;
        }
        start += BLOCK;
    }
    while let Some(part) = bytes[start..].first_chunk::<PART>() {
        if greatest_of(part) >= bound {
            break;
        }
        start += PART;
    }
    let position = bytes[start..].iter().position(|&byte| byte >= bound)?;
    Some(start + position)
}

/// The greatest of a few bytes, every one looked at.
#[inline(always)]
fn greatest_of(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |greatest, &byte| byte.max(greatest))
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, PART, find_cut, scalar};
    use proptest::prelude::*;

    #[test]
    fn specification_by_hand() {
        assert_eq!(scalar::find_cut(&[3, 9, 1, 8, 9, 10], 3), Some(4));
        assert_eq!(scalar::find_cut(&[3, 9, 1, 8, 9, 10], 2), Some(4));
        assert_eq!(scalar::find_cut(&[0, 0, 0], 2), Some(2));
        assert_eq!(scalar::find_cut(&[5, 4, 3], 2), None);
        assert_eq!(scalar::find_cut(&[5, 4], 2), None);
        assert_eq!(scalar::find_cut(&[5, 4], 3), None);
        assert_eq!(scalar::find_cut(&[5, 4], 0), None);
        assert_eq!(scalar::find_cut(&[], 0), None);
    }

    #[test]
    fn every_window_and_place_of_the_greatest() {
        let length = 2 * BLOCK + 2 * PART + 3;
        for window in 0..=length {
            for place in (0..length).step_by(3) {
                let mut bytes = vec![7u8; length];
                bytes[window / 2] = 8;
                bytes[place] = 9;
                for bytes in [&bytes[..], &bytes[..place]] {
                    assert_eq!(find_cut(bytes, window), scalar::find_cut(bytes, window));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn equal_to_the_specification(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..1000),
                proptest::collection::vec(0..=3u8, 0..1000),
                proptest::collection::vec(250..=255u8, 0..400),
            ],
            window in 0usize..700,
        ) {
            prop_assert_eq!(find_cut(&bytes, window), scalar::find_cut(&bytes, window));
        }
    }
}
