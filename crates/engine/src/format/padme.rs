//! Padmé: object lengths that say little (docs/format/v1.md, §3.2).

/// `length` rounded up so that at most O(log log length) bits of it show; at most 12 % more.
/// Source: Nikitin et al., Reducing Metadata Leakage from Encrypted Files and Communication
/// with PURBs, PoPETs 2019, §4.
#[must_use]
pub fn padme(length: u64) -> u64 {
    if length < 2 {
        return length;
    }
    let exponent = length.ilog2();
    let significant = exponent.max(1).ilog2() + 1;
    let free_bits = exponent.saturating_sub(significant);
    let mask = (1u64 << free_bits) - 1;
    length.saturating_add(mask) & !mask
}

#[cfg(test)]
mod tests {
    use super::padme;

    #[test]
    fn known_lengths() {
        for (length, padded) in [(0, 0), (1, 1), (2, 2), (9, 10), (100, 104), (1000, 1024)] {
            assert_eq!(padme(length), padded, "{length}");
        }
    }

    #[test]
    fn never_smaller_never_much_larger_and_stable() {
        let mut length = 1u64;
        while length < 1 << 40 {
            let padded = padme(length);
            assert!(padded >= length && padded <= length + length * 12 / 100 + 1);
            assert_eq!(padme(padded), padded);
            length += 1 + length / 7;
        }
    }
}
