//! Passwords, and the slow function that makes a key of one (Argon2id, RFC 9106;
//! docs/format/v1.md, §5).
//!
//! Enters: a password, a salt, a cost. Leaves: 32 bytes. The cost is read from storage that
//! others may write to, so every bound is checked before memory is taken; the memory is wiped
//! and given back before the key is returned.

use std::fmt;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use engine::format::DecodeError;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of salt in a key slot.
pub(super) const SALT_BYTES: usize = 32;

/// A password as it was typed. It is wiped from memory when dropped and never printed.
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// A password of these bytes, taken as they are: no trimming, no Unicode normalization.
    #[must_use]
    pub fn new(password: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(password.into()))
    }

    /// Is it empty? Such a password opens nothing and seals nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// How much work a guess at a password costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Argon2Cost {
    /// Memory filled, in KiB.
    pub memory_kib: u32,
    /// How many times the memory is filled.
    pub passes: u32,
    /// Independent lanes of the memory.
    pub lanes: u32,
}

impl Argon2Cost {
    /// 64 MiB, three passes, four lanes: the second recommendation of RFC 9106, §4. The lanes are
    /// filled by as many threads as there are.
    pub const DEFAULT: Argon2Cost = Argon2Cost {
        memory_kib: 64 << 10,
        passes: 3,
        lanes: 4,
    };
    /// Most memory in KiB (4 GiB).
    pub const MEMORY_KIB_MAX: u32 = 4 << 20;
    /// Most passes.
    pub const PASSES_MAX: u32 = 64;
    /// Most lanes.
    pub const LANES_MAX: u32 = 16;
    /// Most memory filled in all passes together, in KiB (16 GiB: some ten seconds), so that a
    /// slot from a hostile store can't occupy its reader for long.
    pub const WORK_KIB_MAX: u64 = 16 << 20;
    /// Least memory of a lane in KiB.
    const LANE_KIB_MIN: u32 = 8;

    /// KiB filled in all passes together.
    #[must_use]
    pub fn work_kib(self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes)
    }

    /// Is it within every bound?
    pub(super) fn check(self) -> Result<(), DecodeError> {
        let within = |value: u32, least: u32, most: u32, what: &str| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(DecodeError::new(format!(
                "it asks for {value} {what}, between {least} and {most} make sense"
            )))
        };
        within(self.lanes, 1, Self::LANES_MAX, "lanes of Argon2")?;
        within(self.passes, 1, Self::PASSES_MAX, "passes of Argon2")?;
        let memory_kib_min = Self::LANE_KIB_MIN * self.lanes;
        within(
            self.memory_kib,
            memory_kib_min,
            Self::MEMORY_KIB_MAX,
            "KiB of memory",
        )?;
        if self.work_kib() > Self::WORK_KIB_MAX {
            return Err(DecodeError::new(format!(
                "it asks for {} passes over {} KiB, more than {} KiB in all",
                self.passes,
                self.memory_kib,
                Self::WORK_KIB_MAX
            )));
        }
        Ok(())
    }
}

impl Default for Argon2Cost {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why no key could be made of a password.
#[derive(Debug)]
pub(super) enum StretchError {
    /// The cost is out of bounds.
    Refused(DecodeError),
    /// This machine does not have the memory that the cost asks for.
    OutOfMemory,
}

/// Argon2id (version 0x13) of `password`.
pub(super) fn stretch(
    password: &Password,
    salt: &[u8; SALT_BYTES],
    cost: Argon2Cost,
) -> Result<Zeroizing<[u8; 32]>, StretchError> {
    cost.check().map_err(StretchError::Refused)?;
    let refused = |error: argon2::Error| StretchError::Refused(DecodeError::new(error.to_string()));
    let params =
        Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32)).map_err(refused)?;
    let mut memory: Vec<Block> = Vec::new();
    memory
        .try_reserve_exact(params.block_count())
        .map_err(|_| StretchError::OutOfMemory)?;
    memory.resize(params.block_count(), Block::new());

    let mut key = Zeroizing::new([0; 32]);
    let outcome = Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into_with_memory(&password.0, salt, &mut *key, memory.as_mut_slice());
    memory.iter_mut().for_each(Zeroize::zeroize);
    drop(memory);
    outcome.map_err(refused)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked_before_memory_is_taken() {
        let cost = |memory_kib, passes, lanes| Argon2Cost {
            memory_kib,
            passes,
            lanes,
        };
        for good in [
            Argon2Cost::default(),
            cost(8, 1, 1),
            cost(128, 64, 16),
            cost(4 << 20, 4, 1),
        ] {
            assert!(good.check().is_ok(), "{good:?}");
        }
        for bad in [
            cost(7, 1, 1),
            cost(127, 1, 16),
            cost(64, 0, 1),
            cost(64, 1, 0),
            cost(64, 65, 1),
            cost(1024, 1, 17),
            cost((4 << 20) + 1, 1, 1),
            cost(4 << 20, 5, 1),
            cost(u32::MAX, u32::MAX, u32::MAX),
        ] {
            let outcome = stretch(&Password::new("x"), &[0; 32], bad);
            assert!(matches!(outcome, Err(StretchError::Refused(_))), "{bad:?}");
        }
    }

    #[test]
    fn every_input_matters() {
        let cost = Argon2Cost {
            memory_kib: 64,
            passes: 2,
            lanes: 2,
        };
        let key = |password: &str, salt, cost| {
            *stretch(&Password::new(password), &[salt; 32], cost).unwrap()
        };
        let base = key("a", 1, cost);
        assert_eq!(base, key("a", 1, cost));
        assert_ne!(base, key("b", 1, cost));
        assert_ne!(base, key("a", 2, cost));
        assert_ne!(
            base,
            key(
                "a",
                1,
                Argon2Cost {
                    memory_kib: 72,
                    ..cost
                }
            )
        );
        assert_ne!(base, key("a", 1, Argon2Cost { passes: 3, ..cost }));
        assert_ne!(base, key("a", 1, Argon2Cost { lanes: 1, ..cost }));
    }

    #[test]
    fn nothing_of_a_password_is_printed() {
        assert_eq!(format!("{:?}", Password::new("hunter2")), "Password");
    }
}
