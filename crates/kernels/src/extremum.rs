//! Extrema of values that begin at each byte: where is the maximum that a window does not exceed?
//!
//! Enters: an [`Order`], which says how the eight bytes that begin at a position are a number, and
//! bytes. `bytes` has `bytes.len() − 7` positions, those whose eight bytes all lie in it.
//! Leaves: the position of an extremum. [`asymmetric`] looks to one side (AE, Zhang et al., INFOCOM
//! 2015), [`symmetric`] to both (Bjørner et al., 2010).
//!
//! Method. Both rest on one question, which position holds a value greater than a bound, and
//! almost no position does. A value can be greater only if its head is at least the head of the
//! bound: one byte in big-endian order, one product of 16 bits in scrambled order. The compiler
//! makes vectors of that comparison, `BLOCK` positions at a time; only where it holds are whole
//! values compared, `PART` positions at a time. Runs of one byte, whose heads may all be equal
//! to that of the bound, are known by their bytes: one value speaks for all positions.
//!
//! [`symmetric`] asks each position about twice: ahead from a candidate until something is as
//! great, which is the next candidate and needs no look at what was passed; where nothing is, back
//! over what was not yet passed, and then on behind the window, where nothing can be a maximum.

/// Bytes of a value.
pub const VALUE_BYTES: usize = 8;

/// Bytes of a value beyond the first.
const OVERHANG: usize = VALUE_BYTES - 1;

/// Positions judged by their heads before one look.
const BLOCK: usize = 128;

/// Positions whose whole values are compared when a head may be greater.
const PART: usize = 16;

/// How eight bytes are a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The first byte is the highest.
    BigEndian,
    /// The bytes are four little-endian numbers of 16 bits; each is multiplied by
    /// [`SCRAMBLER`] modulo 2^16, and of the products the first is the highest.
    ///
    /// One to one, so random bytes have random values; but a byte is not great because it is a
    /// letter, and zeros are the least of all.
    Scrambled,
}

/// The multiplier of [`Order::Scrambled`].
pub const SCRAMBLER: u16 = 0xf34d;

/// The specification: every value, one position at a time.
pub mod scalar {
    use super::{Order, SCRAMBLER, VALUE_BYTES};

    /// The value of eight bytes.
    #[must_use]
    pub fn value(order: Order, bytes: [u8; VALUE_BYTES]) -> u64 {
        match order {
            Order::BigEndian => u64::from_be_bytes(bytes),
            Order::Scrambled => bytes.chunks_exact(2).fold(0, |value, pair| {
                let number = u16::from_le_bytes([pair[0], pair[1]]);
                value << 16 | u64::from(number.wrapping_mul(SCRAMBLER))
            }),
        }
    }

    /// The value that begins at `position`.
    fn value_at(order: Order, bytes: &[u8], position: usize) -> u64 {
        let bytes = bytes[position..].first_chunk();
        value(order, *bytes.expect("a position has a value"))
    }

    /// The maximum that the first `window` positions behind it do not exceed: the position of the
    /// greatest value so far, the first of equals, once `window` more positions were seen, or all.
    #[must_use]
    pub fn asymmetric(order: Order, bytes: &[u8], window: usize) -> Option<usize> {
        let positions = (bytes.len() + 1).checked_sub(VALUE_BYTES)?;
        if positions == 0 {
            return None;
        }
        let (mut maximum, mut greatest) = (0, value_at(order, bytes, 0));
        for position in 1..positions {
            if position - maximum > window {
                break;
            }
            let value = value_at(order, bytes, position);
            if value > greatest {
                (maximum, greatest) = (position, value);
            }
        }
        Some(maximum)
    }

    /// The first position that has `reach` positions before and behind it, each of a smaller value.
    #[must_use]
    pub fn symmetric(order: Order, bytes: &[u8], reach: usize) -> Option<usize> {
        let positions = (bytes.len() + 1).checked_sub(VALUE_BYTES)?;
        (reach..positions.saturating_sub(reach)).find(|&position| {
            let value = value_at(order, bytes, position);
            let is_smaller = |other| value_at(order, bytes, other) < value;
            (position - reach..position).all(is_smaller)
                && (position + 1..=position + reach).all(is_smaller)
        })
    }
}

/// The maximum that the first `window` positions behind it do not exceed; `None` without a
/// position. Equal to [`scalar::asymmetric`], faster.
#[must_use]
pub fn asymmetric(order: Order, bytes: &[u8], window: usize) -> Option<usize> {
    match order {
        Order::BigEndian => asymmetric_by::<BigEndian>(bytes, window),
        Order::Scrambled => asymmetric_by::<Scrambled>(bytes, window),
    }
}

/// The first position that has `reach` positions before and behind it, each of a smaller value.
/// Equal to [`scalar::symmetric`], faster.
#[must_use]
pub fn symmetric(order: Order, bytes: &[u8], reach: usize) -> Option<usize> {
    match order {
        Order::BigEndian => symmetric_by::<BigEndian>(bytes, reach),
        Order::Scrambled => symmetric_by::<Scrambled>(bytes, reach),
    }
}

fn asymmetric_by<V: Value>(bytes: &[u8], window: usize) -> Option<usize> {
    let mut maximum = 0usize;
    let mut value = V::value(bytes.first_chunk()?);
    let positions = bytes.len() - OVERHANG;
    loop {
        let end = positions.min(maximum.saturating_add(window).saturating_add(1));
        // A greater value is often near: bytes that rise have one at position after position.
        let near_end = end.min(maximum + 1 + PART);
        let near = (maximum + 1..near_end).find(|&position| value_at::<V>(bytes, position) > value);
        let far = || {
            let position = find_greater::<V>(positions_of(bytes, near_end, end), value)?;
            Some(near_end + position)
        };
        let Some(greater) = near.or_else(far) else {
            return Some(maximum);
        };
        maximum = greater;
        value = value_at::<V>(bytes, maximum);
    }
}

fn symmetric_by<V: Value>(bytes: &[u8], reach: usize) -> Option<usize> {
    let positions = bytes.len().saturating_sub(OVERHANG);
    let mut candidate = reach;
    // Every value from here to the candidate is smaller than the candidate's.
    let mut passed = candidate;
    while candidate.checked_add(reach)? < positions {
        let value = value_at::<V>(bytes, candidate);
        let ahead = positions_of(bytes, candidate + 1, candidate + reach + 1);
        let Some(position) = find_at_least::<V>(ahead, value) else {
            let before = positions_of(bytes, candidate - reach, passed);
            if find_at_least::<V>(before, value).is_none() {
                return Some(candidate);
            }
            candidate += reach + 1;
            passed = candidate;
            continue;
        };
        candidate += 1 + position;
        if value_at::<V>(bytes, candidate) > value {
            continue;
        }
        // As great as the one before: neither is a maximum, nor anything in reach that is not
        // greater than both.
        let end = positions.min(candidate + reach + 1);
        match find_greater::<V>(positions_of(bytes, candidate + 1, end), value) {
            Some(position) => candidate += 1 + position,
            None => {
                candidate += reach + 1;
                passed = candidate;
            }
        }
    }
    None
}

/// The bytes whose positions are those from `start` to before `end`.
fn positions_of(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    if start < end {
        &bytes[start..end + OVERHANG]
    } else {
        &[]
    }
}

#[inline(always)]
fn value_at<V: Value>(bytes: &[u8], position: usize) -> u64 {
    V::value(
        bytes[position..]
            .first_chunk()
            .expect("a position has a value"),
    )
}

/// The first position whose value is at least `bound`.
fn find_at_least<V: Value>(bytes: &[u8], bound: u64) -> Option<usize> {
    match bound.checked_sub(1) {
        Some(below) => find_greater::<V>(bytes, below),
        None => (bytes.len() >= VALUE_BYTES).then_some(0),
    }
}

/// The first position whose value is greater than `bound`.
fn find_greater<V: Value>(bytes: &[u8], bound: u64) -> Option<usize> {
    let positions = bytes.len().saturating_sub(OVERHANG);
    let head = V::head(bound);
    let mut start = 0;
    while let Some(block) = bytes[start..].first_chunk::<{ BLOCK + OVERHANG }>() {
        if V::may_have_head::<BLOCK>(block, head) {
            if block[1..] == block[..block.len() - 1] {
                if value_at::<V>(block, 0) > bound {
                    return Some(start);
                }
            } else if let Some(position) = find_greater_in_parts::<V>(block, bound, head) {
                return Some(start + position);
            }
        }
        start += BLOCK;
    }
    if start >= positions {
        return None;
    }
    let position = find_greater_in_parts::<V>(&bytes[start..], bound, head)?;
    Some(start + position)
}

/// The same, `PART` positions at a time.
#[inline(never)]
fn find_greater_in_parts<V: Value>(bytes: &[u8], bound: u64, head: V::Head) -> Option<usize> {
    let mut start = 0;
    while let Some(part) = bytes[start..].first_chunk::<{ PART + OVERHANG }>() {
        if V::may_have_head::<PART>(part, head) {
            let is_greater = |&position: &usize| {
                let bytes = part[position..].first_chunk();
                V::is_greater(bytes.expect("a position has a value"), bound, head)
            };
            if let Some(position) = (0..PART).find(is_greater) {
                return Some(start + position);
            }
        }
        start += PART;
    }
    let positions = bytes.len().saturating_sub(OVERHANG);
    (start..positions).find(|&position| value_at::<V>(bytes, position) > bound)
}

/// An [`Order`] as a type, so that each gets loops of its own.
trait Value {
    /// The highest part of a value, which vectors compare.
    type Head: Copy;

    fn value(bytes: &[u8; VALUE_BYTES]) -> u64;

    fn head(value: u64) -> Self::Head;

    /// Whether the value is greater than `bound`, whose head is `head`.
    fn is_greater(bytes: &[u8; VALUE_BYTES], bound: u64, head: Self::Head) -> bool;

    /// Whether one of the first `N` positions may have a head of at least `head`. `bytes` has
    /// `N + OVERHANG` bytes.
    fn may_have_head<const N: usize>(bytes: &[u8], head: Self::Head) -> bool;
}

struct BigEndian;

impl Value for BigEndian {
    type Head = u8;

    #[inline(always)]
    fn value(bytes: &[u8; VALUE_BYTES]) -> u64 {
        u64::from_be_bytes(*bytes)
    }

    #[inline(always)]
    fn head(value: u64) -> u8 {
        (value >> 56) as u8
    }

    #[inline(always)]
    fn is_greater(bytes: &[u8; VALUE_BYTES], bound: u64, _head: u8) -> bool {
        Self::value(bytes) > bound
    }

    #[inline(always)]
    fn may_have_head<const N: usize>(bytes: &[u8], head: u8) -> bool {
        let bytes: &[u8; N] = bytes.first_chunk().expect("a block and its overhang");
        bytes.iter().fold(0, |highest, &byte| byte.max(highest)) >= head
    }
}

struct Scrambled;

impl Value for Scrambled {
    type Head = u16;

    #[inline(always)]
    fn value(bytes: &[u8; VALUE_BYTES]) -> u64 {
        scalar::value(Order::Scrambled, *bytes)
    }

    #[inline(always)]
    fn head(value: u64) -> u16 {
        (value >> 48) as u16
    }

    /// The head first, for the whole value takes four multiplications.
    #[inline(always)]
    fn is_greater(bytes: &[u8; VALUE_BYTES], bound: u64, head: u16) -> bool {
        u16::from_le_bytes([bytes[0], bytes[1]]).wrapping_mul(SCRAMBLER) >= head
            && Self::value(bytes) > bound
    }

    #[inline(always)]
    fn may_have_head<const N: usize>(bytes: &[u8], head: u16) -> bool {
        // Saturating: above zero where the product is at least `head`.
        let Some(below) = head.checked_sub(1) else {
            return true;
        };
        let even: &[u8; N] = bytes.first_chunk().expect("a block and its overhang");
        let odd: &[u8; N] = bytes[1..].first_chunk().expect("a block and its overhang");
        let excess = |pair: &[u8; 2]| {
            let product = u16::from_le_bytes(*pair).wrapping_mul(SCRAMBLER);
            product.saturating_sub(below)
        };
        let pairs = even.as_chunks::<2>().0.iter().zip(odd.as_chunks::<2>().0);
        pairs.fold(0, |joined, (even, odd)| joined | excess(even) | excess(odd)) != 0
    }
}

#[cfg(test)]
mod tests;
