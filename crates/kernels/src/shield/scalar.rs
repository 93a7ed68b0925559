//! The specification of `shield`: the hash of a window, the cipher, and which positions cut.
//!
//! Short rather than fast. The S-box is looked up with secret numbers: who can time the caches of
//! the machine that makes the backup may learn something; the forms with AES instructions have no
//! such lookups.

use super::{Masks, WINDOW_BYTES};

/// The bytes, beside byte 0, into which x^128 = x^7 + x^2 + x + 1 comes back: 1, 2 and 7.
const BACK: u128 = 1 << 8 | 1 << 16 | 1 << 56;

/// `number · x` in GF(2)\[x\] / (x^128 + x^7 + x^2 + x + 1), where bit b of byte p is the coefficient of
/// x^(16b + p): the bytes move up by one, the last comes back rotated by a bit.
#[must_use]
#[inline(always)]
pub fn times_x(number: u128) -> u128 {
    let last = (number >> 120) as u8;
    let carry = u128::from(last >> 7).wrapping_neg();
    (number << 8 | u128::from(last.rotate_left(1))) ^ (carry & BACK)
}

/// G(byte): the sum of the constants of the bits that are set.
#[must_use]
pub fn of_byte(constants: &[u128; 8], byte: u8) -> u128 {
    let chosen = (0..8).filter(|bit| byte >> bit & 1 == 1);
    chosen.fold(0, |sum, bit| sum ^ constants[bit])
}

/// The sum of G(byte) · x^k over a window, k = 0 for its last byte.
#[must_use]
pub fn hash(constants: &[u128; 8], window: &[u8]) -> u128 {
    window
        .iter()
        .fold(0, |hash, &byte| times_x(hash) ^ of_byte(constants, byte))
}

/// The S-box of AES (FIPS 197, §5.1.1).
static S_BOX: [u8; 256] = s_box();

/// Inverses of GF(2^8) as powers of 3, then the affine map.
const fn s_box() -> [u8; 256] {
    let mut s_box = [0x63; 256];
    let (mut power, mut inverse) = (1u8, 1u8);
    loop {
        // Times 3, and divided by 3.
        power ^= times_2(power);
        inverse ^= inverse << 1;
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        if inverse & 0x80 != 0 {
            inverse ^= 0x09;
        }
        s_box[power as usize] = inverse
            ^ inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4)
            ^ 0x63;
        if power == 1 {
            return s_box;
        }
    }
}

const fn times_2(number: u8) -> u8 {
    number << 1 ^ ((number >> 7) * 0x1b)
}

/// The eleven round keys of AES-128 (FIPS 197, §5.2), each as sixteen bytes.
#[must_use]
pub fn round_keys(key: &[u8; 16]) -> [[u8; 16]; 11] {
    let mut keys = [*key; 11];
    let mut constant = 1u8;
    for round in 1..keys.len() {
        let before = keys[round - 1];
        for index in 0..16 {
            keys[round][index] = before[index]
                ^ match index {
                    0 => S_BOX[usize::from(before[13])] ^ constant,
                    1 | 2 => S_BOX[usize::from(before[13 + index])],
                    3 => S_BOX[usize::from(before[12])],
                    _ => keys[round][index - 4],
                };
        }
        constant = times_2(constant);
    }
    keys
}

/// AES-128 of one block (FIPS 197, §5.1).
#[must_use]
pub fn encrypt(round_keys: &[[u8; 16]; 11], block: [u8; 16]) -> [u8; 16] {
    let mut state = add(block, round_keys[0]);
    for key in &round_keys[1..10] {
        state = add(mix_columns(substitute_and_shift(state)), *key);
    }
    add(substitute_and_shift(state), round_keys[10])
}

fn add(state: [u8; 16], key: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|index| state[index] ^ key[index])
}

/// Row r of the state, bytes r, r + 4, r + 8, r + 12, is rotated by r places.
fn substitute_and_shift(state: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|index| S_BOX[usize::from(state[(5 * index) % 16])])
}

fn mix_columns(state: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|index| {
        let at = |row: usize| state[index / 4 * 4 + (index + row) % 4];
        times_2(at(0) ^ at(1)) ^ at(1) ^ at(2) ^ at(3)
    })
}

/// What the masks judge of a window's hash: the first eight bytes of its cipher text.
#[must_use]
pub fn value(round_keys: &[[u8; 16]; 11], hash: u128) -> u64 {
    u128::from_le_bytes(encrypt(round_keys, hash.to_le_bytes())) as u64
}

/// The first position i, from `first` on, whose window `data[i − 63..=i]` cuts.
#[must_use]
pub fn find_cut(
    (constants, key): (&[u128; 8], &[u8; 16]),
    masks: Masks,
    data: &[u8],
    first: usize,
) -> Option<usize> {
    let round_keys = round_keys(key);
    (first..data.len()).find(|&position| {
        let window = &data[position + 1 - WINDOW_BYTES..=position];
        let value = value(&round_keys, hash(constants, window));
        value & masks.at(position) == 0
    })
}
