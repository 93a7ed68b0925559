//! The calendar of retention rules: hours, days, weeks, months and years in a time zone, and
//! durations that are counted in them.
//!
//! Times that no calendar reaches (beyond the years -9999 … 9999) count as the nearest that one
//! does.

use std::fmt;
use std::str::FromStr;

use jiff::Span;
use jiff::tz::TimeZone;

use crate::timestamp::Timestamp;

/// Most of a unit in a duration: more reaches beyond every calendar.
const NUMBER_MAX: u32 = 200_000;

/// A period of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Period {
    /// An hour; where clocks are set back, the one that comes twice is two.
    Hour,
    /// A day.
    Day,
    /// A week of ISO 8601: from Monday on.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

impl Period {
    /// All of them, the shortest first.
    pub const ALL: [Period; 5] = [
        Period::Hour,
        Period::Day,
        Period::Week,
        Period::Month,
        Period::Year,
    ];

    /// What a snapshot is called that is kept for one.
    #[must_use]
    pub fn adjective(self) -> &'static str {
        match self {
            Period::Hour => "hourly",
            Period::Day => "daily",
            Period::Week => "weekly",
            Period::Month => "monthly",
            Period::Year => "yearly",
        }
    }

    /// The name of the rule that keeps one of each period as far back as a duration.
    #[must_use]
    pub fn within_name(self) -> &'static str {
        match self {
            Period::Hour => "within_hourly",
            Period::Day => "within_daily",
            Period::Week => "within_weekly",
            Period::Month => "within_monthly",
            Period::Year => "within_yearly",
        }
    }
}

/// One hour, one day, …: equal for two times when they lie in the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bucket {
    name: String,
    /// Hours that come twice have the same name.
    offset_seconds: i32,
}

impl Bucket {
    /// The period that `time` lies in.
    pub fn of(time: Timestamp, period: Period, zone: &TimeZone) -> Self {
        let zoned = instant(time).to_zoned(zone.clone());
        let (year, month, day) = (zoned.year(), zoned.month(), zoned.day());
        let name = match period {
            Period::Hour => format!("{year:04}-{month:02}-{day:02} {:02}:00", zoned.hour()),
            Period::Day => format!("{year:04}-{month:02}-{day:02}"),
            Period::Week => {
                let week = zoned.date().iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            Period::Month => format!("{year:04}-{month:02}"),
            Period::Year => format!("{year:04}"),
        };
        let offset_seconds = match period {
            Period::Hour => zoned.offset().seconds(),
            _ => 0,
        };
        Self {
            name,
            offset_seconds,
        }
    }

    /// As a person reads it: `2026-11-20 14:00`, `2026-11-20`, `2026-W47`, `2026-11`, `2026`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The time as the calendar has it.
pub(super) fn instant(time: Timestamp) -> jiff::Timestamp {
    let nanoseconds = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    let reached = nanoseconds.clamp(
        jiff::Timestamp::MIN.as_nanosecond(),
        jiff::Timestamp::MAX.as_nanosecond(),
    );
    jiff::Timestamp::from_nanosecond(reached).expect("it lies between the least and the greatest")
}

/// A length of time in units of the calendar: `1y6m2w3d12h`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CalendarDuration {
    /// Years.
    pub years: u32,
    /// Months.
    pub months: u32,
    /// Weeks.
    pub weeks: u32,
    /// Days.
    pub days: u32,
    /// Hours.
    pub hours: u32,
}

/// The text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no duration; durations are like 7d, 12h, 4w, 6m (months) or 1y6m")]
pub struct BadDuration(String);

impl CalendarDuration {
    /// The instant so much before `time`, by the calendar of the zone.
    pub(super) fn before(self, time: Timestamp, zone: &TimeZone) -> jiff::Timestamp {
        let span = || {
            Span::new()
                .try_years(self.years)?
                .try_months(self.months)?
                .try_weeks(self.weeks)?
                .try_days(self.days)?
                .try_hours(self.hours)
        };
        let zoned = instant(time).to_zoned(zone.clone());
        let before = span().and_then(|span| zoned.checked_sub(span));
        before.map_or(jiff::Timestamp::MIN, |before| before.timestamp())
    }

    /// The units with their letters, the longest first.
    fn units(&mut self) -> [(char, &mut u32); 5] {
        [
            ('y', &mut self.years),
            ('m', &mut self.months),
            ('w', &mut self.weeks),
            ('d', &mut self.days),
            ('h', &mut self.hours),
        ]
    }
}

impl FromStr for CalendarDuration {
    type Err = BadDuration;

    /// Numbers, each with its unit, no unit twice.
    fn from_str(text: &str) -> Result<Self, BadDuration> {
        let bad = || BadDuration(text.to_owned());
        let mut duration = Self::default();
        let mut seen = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest
                .find(|character: char| !character.is_ascii_digit())
                .ok_or_else(bad)?;
            let number: u32 = rest[..end].parse().map_err(|_| bad())?;
            let letter = rest[end..].chars().next().ok_or_else(bad)?;
            let mut units = duration.units().into_iter();
            let (_, unit) = units.find(|unit| unit.0 == letter).ok_or_else(bad)?;
            if seen.contains(&letter) || number > NUMBER_MAX {
                return Err(bad());
            }
            *unit = number;
            seen.push(letter);
            rest = &rest[end + letter.len_utf8()..];
        }
        if seen.is_empty() {
            return Err(bad());
        }
        Ok(duration)
    }
}

impl fmt::Display for CalendarDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        let units = copy.units().into_iter().filter(|unit| *unit.1 != 0);
        let text: String = units
            .map(|(letter, number)| format!("{number}{letter}"))
            .collect();
        f.write_str(if text.is_empty() { "0h" } else { &text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let time: jiff::Timestamp = text.parse().unwrap();
        Timestamp {
            seconds: time.as_second(),
            nanoseconds: 0,
        }
    }

    fn zone() -> TimeZone {
        // Central European Time, without the system's database.
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn periods_are_those_of_the_zone() {
        let name = |text, period| Bucket::of(at(text), period, &zone()).name().to_owned();
        let evening = "2026-12-31T23:30:00Z";
        let names = Period::ALL.map(|period| name(evening, period));
        let expected = [
            "2027-01-01 00:00",
            "2027-01-01",
            "2026-W53",
            "2027-01",
            "2027",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            name("2026-07-01T12:00:00Z", Period::Hour),
            "2026-07-01 14:00"
        );
        let far = Timestamp {
            seconds: i64::MIN,
            nanoseconds: 0,
        };
        assert!(
            Bucket::of(far, Period::Year, &zone())
                .name()
                .contains("9999")
        );
    }

    #[test]
    fn the_hour_that_comes_twice_is_two() {
        // Clocks go back at 01:00 UTC: 02:30 comes twice.
        let hour = |text| Bucket::of(at(text), Period::Hour, &zone());
        let (first, second) = (hour("2026-10-25T00:30:00Z"), hour("2026-10-25T01:30:00Z"));
        assert_eq!(first.name(), second.name());
        assert_ne!(first, second);
    }

    #[test]
    fn durations_are_counted_on_the_calendar() {
        let before = |duration: &str, text| {
            let duration: CalendarDuration = duration.parse().unwrap();
            duration.before(at(text), &zone()).to_string()
        };
        // The same hour of the day, though clocks changed; the last day of a shorter month.
        assert_eq!(before("1d", "2026-03-29T10:00:00Z"), "2026-03-28T11:00:00Z");
        assert_eq!(
            before("24h", "2026-03-29T10:00:00Z"),
            "2026-03-28T10:00:00Z"
        );
        assert_eq!(before("1m", "2026-03-31T12:00:00Z"), "2026-02-28T13:00:00Z");
        assert_eq!(
            before("1y2w", "2026-03-15T12:00:00Z"),
            "2025-03-01T12:00:00Z"
        );
        let ages = before("200000y", "2026-03-15T12:00:00Z");
        assert_eq!(ages, jiff::Timestamp::MIN.to_string());
    }

    #[test]
    fn durations_are_read_and_printed() {
        for text in ["1y6m2w3d12h", "7d", "36h", "200000h"] {
            let duration: CalendarDuration = text.parse().unwrap();
            assert_eq!(duration.to_string(), text);
        }
        let parse = |text: &str| text.parse::<CalendarDuration>();
        assert_eq!(parse("2h1d").unwrap().to_string(), "1d2h");
        assert_eq!(parse("0d").unwrap().to_string(), "0h");
        let bad = [
            "",
            "7",
            "d",
            "7 d",
            "1d1d",
            "1s",
            "-1d",
            "7D",
            "200001d",
            "99999999999y",
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
