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

/// Reads a time: a date, with or without a time of day, in the local time zone; RFC 3339; seconds since 1970 behind `@`.
pub fn parse(text: &str) -> Result<Timestamp, String> {
    parse_in(text, &TimeZone::system())
}

fn parse_in(text: &str, zone: &TimeZone) -> Result<Timestamp, String> {
    if let Some(seconds) = text.strip_prefix('@') {
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let digits = format!("{fraction:0<9}");
        let nanoseconds = digits.parse().ok().filter(|_| digits.len() == 9);
        return match (whole.parse(), nanoseconds) {
            (Ok(seconds), Some(nanoseconds)) => Ok(Timestamp {
                seconds,
                nanoseconds,
            }),
            _ => Err("seconds since 1970 are wanted behind @, with up to nine decimals".to_owned()),
        };
    }
    let time = match text.parse::<jiff::Timestamp>() {
        Ok(time) => time,
        Err(_) => {
            let local: Result<jiff::civil::DateTime, _> = text.parse();
            let zoned = local.and_then(|local| local.to_zoned(zone.clone()));
            zoned
                .map_err(|error| format!("no time: {error}"))?
                .timestamp()
        }
    };
    let nanoseconds = time.as_nanosecond();
    Ok(Timestamp {
        seconds: nanoseconds.div_euclid(1_000_000_000) as i64,
        nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as u32,
    })
}

/// For times that no calendar reaches: seconds since 1970 after an `@`.
fn seconds(time: Timestamp) -> String {
    format!("@{}.{:09}", time.seconds, time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let time = |text| parse_in(text, &zone).map(|time| (time.seconds, time.nanoseconds));
        assert_eq!(time("1970-01-01T00:00:00Z"), Ok((0, 0)));
        assert_eq!(time("1970-01-02"), Ok((79_200, 0)));
        assert_eq!(time("1970-01-01 02:00:01.5"), Ok((1, 500_000_000)));
        assert_eq!(time("1969-12-31T23:59:59.5Z"), Ok((-1, 500_000_000)));
        assert_eq!(time("@12.000000007"), Ok((12, 7)));
        assert_eq!(time("@-5"), Ok((-5, 0)));
        for bad in ["yesterday", "@", "@1.0000000001", "@x", "2019-13-01", ""] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

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
