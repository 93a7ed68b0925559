//! Points in time, for people (in their time zone) and for programs (RFC 3339, UTC).

use jiff::tz::TimeZone;
use repository::timestamp::Timestamp;

/// `2026-03-01 12:34:56` in the local time zone.
pub fn local(time: Timestamp) -> String {
    in_zone(time, TimeZone::system())
}

fn in_zone(time: Timestamp, zone: TimeZone) -> String {
    match calendar(time) {
        Some(calendar) => calendar
            .to_zoned(zone)
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        None => seconds(time),
    }
}

/// RFC 3339 in UTC, with as many digits as the time has.
pub fn universal(time: Timestamp) -> String {
    calendar(time).map_or_else(|| seconds(time), |calendar| calendar.to_string())
}

fn calendar(time: Timestamp) -> Option<jiff::Timestamp> {
    // Both count nanoseconds forward from the second below, but jiff wants equal signs.
    jiff::Timestamp::from_nanosecond(
        i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds),
    )
    .ok()
}

/// For times that no calendar reaches: seconds since 1970 after an `@`.
fn seconds(time: Timestamp) -> String {
    format!("@{}.{:09}", time.seconds, time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        let time = |seconds, nanoseconds| Timestamp {
            seconds,
            nanoseconds,
        };
        assert_eq!(universal(time(0, 0)), "1970-01-01T00:00:00Z");
        assert_eq!(universal(time(-1, 500_000_000)), "1969-12-31T23:59:59.5Z");
        assert_eq!(
            universal(time(i64::MAX, 7)),
            "@9223372036854775807.000000007"
        );
        assert_eq!(
            in_zone(time(86_399, 0), TimeZone::UTC),
            "1970-01-01 23:59:59"
        );
    }
}
