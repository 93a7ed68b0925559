//! Irreducible polynomials over GF(2): which are, and which one a secret stands for.
//!
//! A polynomial is a number: bit i is the coefficient of x^i.

use kernels::gear::GearTable;

/// Whether nothing but 1 and itself divides the polynomial: Ben-Or's test, by which a polynomial of
/// degree n is irreducible when it has no divisor in common with x^(2^i) − x for i = 1 to n / 2,
/// the product of all irreducible polynomials whose degree divides i.
pub(crate) fn is_irreducible(polynomial: u64) -> bool {
    let Some(degree) = polynomial.checked_ilog2() else {
        return false;
    };
    if degree < 2 {
        return degree == 1;
    }
    let mut power = 2; // x
    for _ in 0..degree / 2 {
        power = square(power, polynomial);
        if greatest_common_divisor(polynomial, power ^ 2) != 1 {
            return false;
        }
    }
    true
}

/// The degree of a key's polynomial.
const KEY_DEGREE: u32 = 63;

/// The irreducible polynomial of degree 63 that the 2048 bytes of a key stand for: the XOR of their
/// 256 numbers, with the bits 63 and 0 set; then, until it is irreducible, 2 more, where all ones
/// wrap to the lowest.
///
/// Stored data depends on it: it is frozen.
pub(crate) fn from_table(table: &GearTable) -> u64 {
    let ends = 1 << KEY_DEGREE | 1;
    let mut candidate = table.iter().fold(0, |sum, number| sum ^ number) | ends;
    while !is_irreducible(candidate) {
        candidate = candidate.wrapping_add(2) | ends;
    }
    candidate
}

/// `factor²` mod `modulus`.
fn square(factor: u64, modulus: u64) -> u64 {
    let degree = modulus.ilog2();
    let (mut product, mut shifted) = (0, factor);
    for bit in 0..degree {
        if factor >> bit & 1 == 1 {
            product ^= shifted;
        }
        shifted <<= 1;
        if shifted >> degree & 1 == 1 {
            shifted ^= modulus;
        }
    }
    product
}

fn greatest_common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        let degree = right.ilog2();
        while let Some(high) = left.checked_ilog2().filter(|&high| high >= degree) {
            left ^= right << (high - degree);
        }
        (left, right) = (right, left);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::{from_table, is_irreducible};

    /// The product, as long as it fits.
    fn product(left: u64, right: u64) -> u64 {
        (0..64)
            .filter(|bit| left >> bit & 1 == 1)
            .fold(0, |sum, bit| sum ^ right << bit)
    }

    #[test]
    fn small_polynomials_against_a_sieve() {
        let mut is_product = vec![false; 1 << 12];
        for left in 2..1 << 11 {
            for right in 2..=left {
                if let Some(is) = is_product.get_mut(product(left, right) as usize) {
                    *is = true;
                }
            }
        }
        assert!(!is_irreducible(0) && !is_irreducible(1));
        for polynomial in 2..1 << 12 {
            let is_prime = !is_product[polynomial as usize];
            assert_eq!(is_irreducible(polynomial), is_prime, "{polynomial:#x}");
        }
    }

    /// Those of LBFS, restic, and CRC-32.
    #[test]
    fn published_polynomials_are_irreducible() {
        for polynomial in [
            0xbfe6_b8a5_bf37_8d83,
            0x003d_a335_8b4d_c173,
            0x0001_04c1_1db7,
            1 << 63 | 0b11,
        ] {
            assert!(is_irreducible(polynomial), "{polynomial:#x}");
            assert!(!is_irreducible(polynomial ^ 2));
            assert!(!is_irreducible(polynomial ^ 1));
        }
        // Two factors of degree 31, one of degree 1.
        let factor = 1 << 31 | 1 << 3 | 1;
        assert!(is_irreducible(factor));
        assert!(!is_irreducible(product(factor, factor)));
        assert!(!is_irreducible(product(product(factor, factor), 3)));
    }

    #[test]
    fn a_key_gives_a_polynomial_of_its_degree() {
        let mut table = [0u64; 256];
        assert_eq!(from_table(&table), 1 << 63 | 0b11);
        // The numbers that cancel do not matter; all ones wrap.
        table[3] = u64::MAX;
        table[4] = 7;
        table[5] = 7;
        for number in [0, 0x1234_5678_9abc_def1, 99, 1 << 40] {
            table[9] = number;
            let polynomial = from_table(&table);
            assert!(is_irreducible(polynomial) && polynomial.ilog2() == 63);
        }
    }
}
