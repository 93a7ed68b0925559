//! Numbers as people read and write them: bytes, counts, durations, ratios.
//!
//! Bytes are printed in binary units (KiB, MiB, …). Read are both binary (`64M`, `64MiB`: the
//! same) and decimal ones (`64MB`), so that no copied text is misunderstood.

use std::time::Duration;

/// Binary units, from 1024 bytes on.
const BINARY_UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// `1.5 GiB`; whole numbers below 1 KiB.
pub fn bytes(count: u64) -> String {
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while value >= 1023.95 && unit + 1 < BINARY_UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", BINARY_UNITS[unit])
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 file`, `2,000 files`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 05 min`, `3 d 04 h`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 9.995 {
        return format!("{seconds:.2} s");
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (minutes, hours, days) = (whole / 60, whole / 3600, whole / 86_400);
    match (minutes, hours, days) {
        (_, 0, _) => format!("{minutes} min {:02} s", whole % 60),
        (_, _, 0) => format!("{hours} h {:02} min", minutes % 60),
        _ => format!("{days} d {:02} h", hours % 24),
    }
}

/// The dedup ratio: logical bytes over unique bytes. None when nothing is unique.
pub fn dedup_ratio(logical: u64, unique: u64) -> Option<f64> {
    (unique > 0).then(|| logical as f64 / unique as f64)
}

/// `part` over `whole`, or zero where there is no whole.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Reads `4096`, `64K`, `64KiB`, `64 MB`, `1.5G`: units of either case, binary unless they end
/// in a `B` without an `i`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let number: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is no size; sizes are like 64MiB, 1.5G or 4096"))?;
    let factor = unit_bytes(unit.trim()).ok_or_else(|| {
        format!(
            "'{}' is no unit of size; units are B, K, M, G, T",
            unit.trim()
        )
    })?;
    let value = number * factor as f64;
    // 2^53 bytes (8 PiB): beyond, not every whole number is a float.
    if value > (1u64 << 53) as f64 {
        return Err(format!("{text} is more than this program can count"));
    }
    Ok(value as u64)
}

fn unit_bytes(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let (prefix, base): (&str, u64) = match unit.as_str() {
        "" | "b" => return Some(1),
        other => match (other.strip_suffix("ib"), other.strip_suffix('b')) {
            (Some(prefix), _) => (prefix, 1024),
            (None, Some(prefix)) => (prefix, 1000),
            (None, None) => (other, 1024),
        },
    };
    let power = match prefix {
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(base.pow(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_readable() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn counts_have_separators() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn durations_are_readable() {
        let cases = [
            (0.0, "0.00 s"),
            (9.999, "10.0 s"),
            (59.96, "1 min 00 s"),
            (185.0, "3 min 05 s"),
            (7_500.0, "2 h 05 min"),
            (277_200.0, "3 d 05 h"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), text);
        }
    }

    #[test]
    fn sizes_are_read_in_both_systems() {
        let good = [
            ("4096", 4096),
            ("64K", 64 << 10),
            ("64KiB", 64 << 10),
            ("64kb", 64_000),
            ("1.5 G", 3 << 29),
            ("2TiB", 2 << 40),
            ("7b", 7),
        ];
        for (text, number) in good {
            assert_eq!(parse_bytes(text), Ok(number), "{text}");
        }
        for bad in [
            "",
            "M",
            "-1M",
            "12 parsecs",
            "1..2M",
            "99999999T",
            "inf",
            "nan",
        ] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
