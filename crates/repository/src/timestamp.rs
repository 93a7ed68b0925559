//! Points in time, to the nanosecond, as stored in snapshots and directory entries.
//!
//! Stored form: zigzag seconds since 1970 (rounded down, so that times before 1970 have
//! nanoseconds that count forward), then varint nanoseconds (docs/format/v1.md, §9 and §10).
//! [`Timestamp::now`] is where the clock enters this crate.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::format::{DecodeError, Decoder, put_signed, put_varint};

/// Nanoseconds in a second.
const NANOSECONDS: u32 = 1_000_000_000;

/// A point in time. Orders by time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 00:00 UTC, negative before.
    pub seconds: i64,
    /// Nanoseconds after that second, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// What the clock of this machine says.
    #[must_use]
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// The time elapsed from `earlier` to this one; nothing when it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Option<Duration> {
        let nanoseconds = |time: Timestamp| {
            i128::from(time.seconds) * i128::from(NANOSECONDS) + i128::from(time.nanoseconds)
        };
        let elapsed = u128::try_from(nanoseconds(self) - nanoseconds(earlier)).ok()?;
        let seconds = u64::try_from(elapsed / u128::from(NANOSECONDS)).ok()?;
        Some(Duration::new(
            seconds,
            (elapsed % u128::from(NANOSECONDS)) as u32,
        ))
    }

    /// Appends the stored form.
    pub fn encode(self, out: &mut Vec<u8>) {
        put_signed(out, self.seconds);
        put_varint(out, u64::from(self.nanoseconds));
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When it is cut off, or has a second's worth of nanoseconds or more.
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let seconds = decoder.signed()?;
        let nanoseconds = decoder.varint_at_most(u64::from(NANOSECONDS - 1), "nanoseconds")?;
        Ok(Self {
            seconds,
            nanoseconds: nanoseconds as u32,
        })
    }
}

impl From<SystemTime> for Timestamp {
    /// Rounds times beyond what 64 bits of seconds hold to the nearest that they do.
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self {
                seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                nanoseconds: after.subsec_nanos(),
            },
            Err(before) => before_1970(before.duration()),
        }
    }
}

fn before_1970(distance: Duration) -> Timestamp {
    let whole = i64::try_from(distance.as_secs()).map_or(i64::MIN, |seconds| -seconds);
    match distance.subsec_nanos() {
        0 => Timestamp {
            seconds: whole,
            nanoseconds: 0,
        },
        part => Timestamp {
            seconds: whole.saturating_sub(1),
            nanoseconds: NANOSECONDS - part,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn timestamps_come_back(seconds: i64, nanoseconds in 0..NANOSECONDS) {
            let time = Timestamp { seconds, nanoseconds };
            let mut out = Vec::new();
            time.encode(&mut out);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(Timestamp::decode(&mut decoder).unwrap(), time);
            prop_assert!(decoder.finish().is_ok());
            for end in 0..out.len() {
                prop_assert!(Timestamp::decode(&mut Decoder::new(&out[..end])).is_err());
            }
        }

        #[test]
        fn system_times_convert_in_order(
            a in -(1i64 << 40)..1 << 40, b in -(1i64 << 40)..1 << 40, nanoseconds in 0..NANOSECONDS,
        ) {
            let system = |seconds: i64| {
                let whole = Duration::from_secs(seconds.unsigned_abs());
                let start = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
                start + Duration::from_nanos(u64::from(nanoseconds))
            };
            let (left, right) = (Timestamp::from(system(a)), Timestamp::from(system(b)));
            prop_assert_eq!(left, Timestamp { seconds: a, nanoseconds });
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.since(right).is_some(), a >= b);
        }
    }

    #[test]
    fn a_whole_second_of_nanoseconds_is_refused() {
        let mut out = Vec::new();
        put_signed(&mut out, 5);
        put_varint(&mut out, u64::from(NANOSECONDS));
        assert!(Timestamp::decode(&mut Decoder::new(&out)).is_err());
    }

    #[test]
    fn elapsed_time_crosses_seconds() {
        let earlier = Timestamp {
            seconds: -1,
            nanoseconds: 900_000_000,
        };
        let later = Timestamp {
            seconds: 1,
            nanoseconds: 100_000_000,
        };
        assert_eq!(later.since(earlier), Some(Duration::from_millis(1200)));
        assert_eq!(earlier.since(later), None);
    }
}
