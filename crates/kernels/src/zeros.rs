//! Is a run of bytes all zero? Holes of files and unused blocks are found with it.
//!
//! Method: OR together a block that fits a handful of vector registers (the compiler makes the
//! vectors), and look once a block. Data that is not zero is mostly known from its first byte.

/// Bytes joined before one look.
const BLOCK: usize = 128;

/// The specification: every byte, one at a time.
pub mod scalar {
    /// Whether every byte is zero; true of no bytes.
    #[must_use]
    pub fn is_all_zero(bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| byte == 0)
    }
}

/// Whether every byte is zero; true of no bytes. Equal to [`scalar::is_all_zero`], faster.
#[must_use]
pub fn is_all_zero(bytes: &[u8]) -> bool {
    if bytes.first().is_some_and(|&byte| byte != 0) {
        return false;
    }
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let joined = |bytes: &[u8]| bytes.iter().fold(0, |joined, &byte| joined | byte);
    blocks.iter().all(|block| joined(block) == 0) && joined(rest) == 0
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, is_all_zero, scalar};

    #[test]
    fn zeros_of_every_length_and_start() {
        let zeros = [0u8; 3 * BLOCK + 5];
        for start in 0..=70 {
            for end in start..=zeros.len() {
                assert!(is_all_zero(&zeros[start..end]));
            }
        }
    }

    #[test]
    fn one_bit_anywhere_is_seen() {
        for length in [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5] {
            let mut bytes = vec![0u8; length];
            for place in 0..length {
                bytes[place] = 1 << (place % 8);
                assert!(!is_all_zero(&bytes), "{place} of {length}");
                assert!(!scalar::is_all_zero(&bytes));
                // Seen from inside the slice only.
                assert!(is_all_zero(&bytes[..place]));
                assert!(is_all_zero(&bytes[place + 1..]));
                bytes[place] = 0;
            }
        }
    }
}
