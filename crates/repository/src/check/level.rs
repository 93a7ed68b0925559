//! How much of the data a check reads.
//!
//! Enters: what a person asked for. Leaves: which groups of which containers are read ([`GroupChoice`]), for a
//! repository of so many bytes. Groups are drawn by a hash of the seed, the container object's id and the group's
//! number there: spread over all containers, the same again with the same seed, and known to nobody who does not know
//! the ids.

use engine::container::GroupChoice;

use super::CheckOptions;

/// How thoroughly to check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckLevel {
    /// That everything is there and agrees; no data is read.
    #[default]
    Structure,
    /// The same, and a part of the data.
    Sample(Sample),
    /// The same, and all data.
    Data,
}

/// A part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How much.
    pub size: SampleSize,
    /// Which: the same seed chooses the same groups of the same containers.
    pub seed: u32,
}

/// How much of the data is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleSize {
    /// About so many millionths of all groups, at most 1,000,000.
    Millionths(u32),
    /// About so many bytes of groups.
    Bytes(u64),
    /// One of several parts; after all of them, every group that was there all the time was read once.
    Part {
        /// Which one, from 1 on.
        part: u32,
        /// How many there are.
        of: u32,
    },
}

impl From<CheckOptions> for CheckLevel {
    fn from(options: CheckOptions) -> Self {
        match options.read_data {
            true => CheckLevel::Data,
            false => CheckLevel::Structure,
        }
    }
}

impl CheckLevel {
    /// The groups to be read where containers have so many bytes.
    pub(super) fn choice(self, total_bytes: u64) -> GroupChoice {
        match self {
            CheckLevel::Structure => GroupChoice::None,
            CheckLevel::Data => GroupChoice::All,
            CheckLevel::Sample(Sample { size, seed }) => match size {
                SampleSize::Part { part, of } => {
                    let of = of.max(1);
                    let part = part.clamp(1, of) - 1;
                    GroupChoice::Part { seed, part, of }
                }
                SampleSize::Millionths(millionths) => share(seed, u64::from(millionths), 1_000_000),
                SampleSize::Bytes(bytes) => share(seed, bytes, total_bytes),
            },
        }
    }

    /// Bytes that it is expected to read of so many.
    pub(super) fn expected_bytes(self, total_bytes: u64) -> u64 {
        let part = |part: u64, of: u64| {
            let bytes = u128::from(total_bytes) * u128::from(part) / u128::from(of.max(1));
            u64::try_from(bytes).unwrap_or(u64::MAX).min(total_bytes)
        };
        match self {
            CheckLevel::Structure | CheckLevel::Data => total_bytes,
            CheckLevel::Sample(Sample { size, .. }) => match size {
                SampleSize::Millionths(millionths) => part(u64::from(millionths), 1_000_000),
                SampleSize::Bytes(bytes) => bytes.min(total_bytes),
                SampleSize::Part { of, .. } => part(1, u64::from(of)),
            },
        }
    }
}

/// `part` of `of` parts, in 2³² parts, rounded up: what was asked for, or a little more.
fn share(seed: u32, part: u64, of: u64) -> GroupChoice {
    let parts = (u128::from(part) << 32).div_ceil(u128::from(of.max(1)));
    match u32::try_from(parts) {
        Ok(0) => GroupChoice::None,
        Ok(share) => GroupChoice::Share { seed, share },
        Err(_) => GroupChoice::Share {
            seed,
            share: u32::MAX,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_become_shares() {
        let choice = |size, total| CheckLevel::Sample(Sample { size, seed: 3 }).choice(total);
        let share = |share| GroupChoice::Share { seed: 3, share };
        assert_eq!(choice(SampleSize::Millionths(500_000), 7), share(1 << 31));
        assert_eq!(
            choice(SampleSize::Millionths(1_000_000), 7),
            share(u32::MAX)
        );
        assert_eq!(choice(SampleSize::Bytes(1), 1 << 40), share(1));
        assert_eq!(choice(SampleSize::Bytes(25), 100), share(1 << 30));
        assert_eq!(choice(SampleSize::Bytes(300), 100), share(u32::MAX));
        assert_eq!(choice(SampleSize::Bytes(300), 0), share(u32::MAX));
        assert_eq!(choice(SampleSize::Bytes(0), 100), GroupChoice::None);
        let third = SampleSize::Part { part: 3, of: 7 };
        assert_eq!(
            choice(third, 100),
            GroupChoice::Part {
                seed: 3,
                part: 2,
                of: 7
            }
        );
        assert_eq!(CheckLevel::Data.choice(1), GroupChoice::All);
        assert_eq!(CheckLevel::Structure.choice(1), GroupChoice::None);
    }

    #[test]
    fn how_much_is_read_is_known_before() {
        let expected = |size| CheckLevel::Sample(Sample { size, seed: 0 }).expected_bytes(700);
        assert_eq!(expected(SampleSize::Part { part: 1, of: 7 }), 100);
        assert_eq!(expected(SampleSize::Bytes(50)), 50);
        assert_eq!(expected(SampleSize::Bytes(5000)), 700);
        assert_eq!(expected(SampleSize::Millionths(10_000)), 7);
        assert_eq!(CheckLevel::Data.expected_bytes(700), 700);
    }
}
