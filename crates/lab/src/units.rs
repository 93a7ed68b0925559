//! Numbers as people read and write them: sizes, counts, speeds.
//!
//! The same notation as in `onefold`: printed are binary units; read are binary ones (`64K`,
//! `64KiB`: the same) and decimal ones (`64KB`).

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

/// A size as it may be written on a command line: `6K`, `10240`, `1M`.
pub fn short_bytes(count: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if count >= 1 << shift && count.is_multiple_of(1 << shift) {
            return format!("{}{unit}", count >> shift);
        }
    }
    count.to_string()
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

/// `2.81`, `0.314`, `28.4`: three digits that count.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = if magnitude >= 100.0 {
        0
    } else if magnitude >= 10.0 {
        1
    } else if magnitude >= 1.0 || magnitude == 0.0 {
        2
    } else if magnitude >= 0.001 {
        3
    } else {
        6
    };
    format!("{value:.decimals$}")
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
        .map_err(|_| format!("'{text}' is no size; sizes are like 8K, 1.5G or 4096"))?;
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

/// A size of a chunk: at least 1, and below 4 GiB.
pub fn parse_chunk_bytes(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text)?;
    u32::try_from(bytes).map_err(|_| format!("{text} is more than any chunk may have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let sizes = [(0, "0 B"), (1536, "1.5 KiB"), ((1 << 20) - 1, "1.0 MiB")];
        for (number, text) in sizes {
            assert_eq!(bytes(number), text);
        }
        let sizes = [(6144, "6K"), (10_000, "10000"), (1 << 20, "1M"), (0, "0")];
        for (number, text) in sizes {
            assert_eq!(short_bytes(number), text);
        }
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "file", "files"), "1 file");
        let values = [(0.0, "0.00"), (2.806, "2.81"), (0.3141, "0.314")];
        for (value, text) in values {
            assert_eq!(three_digits(value), text);
        }
        assert_eq!(three_digits(123.4), "123");
    }

    #[test]
    fn sizes_are_read_in_both_systems() {
        for (text, value) in [
            ("4096", 4096),
            ("8k", 8192),
            ("8KiB", 8192),
            ("8 KB", 8000),
            ("1.5M", 3 << 19),
        ] {
            assert_eq!(parse_bytes(text), Ok(value));
        }
        for text in ["", "K", "8X", "1..5K", "9000T"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert!(parse_chunk_bytes("8G").is_err());
    }
}
