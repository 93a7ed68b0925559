//! The specification of `fold`: one byte after another.

use super::{Fold, Rule, WINDOW_BYTES};
use crate::marks::Marks;

/// The smallest i from `first` on, below `data.len()`, behind whose byte i − 1 there is a cut: by
/// the strict pattern while i < `normal`, by the loose one from there on.
///
/// # Panics
/// When `first` is less than [`WINDOW_BYTES`].
#[must_use]
pub fn find_cut(fold: &Fold, data: &[u8], first: usize, normal: usize) -> Option<usize> {
    let strict = Rule::new(fold.strict_signs);
    let loose = Rule::new(fold.loose_signs);
    let mut hash = hash(fold, data.get(first - WINDOW_BYTES..first)?);
    for (index, &byte) in data.iter().enumerate().skip(first) {
        let rule = if index < normal { strict } else { loose };
        if rule.is_cut(hash) {
            return Some(index);
        }
        hash = fold.step(hash, byte);
    }
    None
}

/// Marks the positions i = `first`..`first + count`, the first as bit 0, behind whose byte i − 1
/// the patterns cut.
///
/// # Panics
/// When `first` is less than [`WINDOW_BYTES`], or the data end before the last position.
pub fn mark(fold: &Fold, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
    let strict = Rule::new(fold.strict_signs);
    let loose = Rule::new(fold.loose_signs);
    let mut hash = hash(fold, &data[first - WINDOW_BYTES..first]);
    for (index, &byte) in data[first..first + count].iter().enumerate() {
        if loose.is_cut(hash) {
            marks.set(index, strict.is_cut(hash));
        }
        hash = fold.step(hash, byte);
    }
}

/// The hash of the last 63 of `bytes`, which is all that it remembers.
#[must_use]
pub fn hash(fold: &Fold, bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |hash, &byte| fold.step(hash, byte))
}
