//! How far two byte strings agree, eight bytes or more at a time.

/// Bytes compared in one step where long agreement is likely.
const STRIDE_BYTES: usize = 32;

/// The eight bytes from `at`, the first lowest.
///
/// # Panics
/// When fewer are there.
#[inline(always)]
pub fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes[at..].first_chunk();
    u64::from_le_bytes(*word.expect("the caller leaves eight bytes"))
}

/// Bytes at the front in which `left` and `right` agree.
#[inline]
pub fn common_front(left: &[u8], right: &[u8]) -> usize {
    let length = left.len().min(right.len());
    let (left, right) = (&left[..length], &right[..length]);
    let mut at = 0;
    while length - at >= STRIDE_BYTES {
        let (l, r) = (&left[at..at + STRIDE_BYTES], &right[at..at + STRIDE_BYTES]);
        if l != r {
            break;
        }
        at += STRIDE_BYTES;
    }
    while length - at >= 8 {
        let difference = word(left, at) ^ word(right, at);
        if difference != 0 {
            return at + difference.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < length && left[at] == right[at] {
        at += 1;
    }
    at
}

/// Bytes at the end in which `left` and `right` agree.
#[inline]
pub fn common_end(left: &[u8], right: &[u8]) -> usize {
    let length = left.len().min(right.len());
    let left = &left[left.len() - length..];
    let right = &right[right.len() - length..];
    let mut end = length;
    while end >= STRIDE_BYTES {
        let (l, r) = (
            &left[end - STRIDE_BYTES..end],
            &right[end - STRIDE_BYTES..end],
        );
        if l != r {
            break;
        }
        end -= STRIDE_BYTES;
    }
    while end >= 8 {
        let difference = word(left, end - 8) ^ word(right, end - 8);
        if difference != 0 {
            return length - end + difference.leading_zeros() as usize / 8;
        }
        end -= 8;
    }
    while end > 0 && left[end - 1] == right[end - 1] {
        end -= 1;
    }
    length - end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_ends_at_the_first_difference() {
        for length in 0..130 {
            let left: Vec<u8> = (0..length as u8).collect();
            assert_eq!(common_front(&left, &left), length);
            assert_eq!(common_end(&left, &left), length);
            for place in 0..length {
                let mut right = left.clone();
                right[place] ^= 0x80;
                assert_eq!(common_front(&left, &right), place);
                assert_eq!(common_end(&left, &right), length - 1 - place);
                assert_eq!(common_front(&left, &right[..place]), place);
                assert_eq!(common_end(&left, &left[place..]), length - place);
            }
        }
    }
}
