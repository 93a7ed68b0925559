//! Records of pax headers: `LENGTH KEY=VALUE\n`, the length that of the whole record, in decimal digits.

use crate::timestamp::Timestamp;

/// Key and value of a record.
pub type Record<'a> = (&'a [u8], &'a [u8]);

/// Appends a record.
pub fn put_record(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    // The space, the equals sign and the newline; then as many digits as the length with them has.
    let rest = key.len() + value.len() + 3;
    let mut length = rest;
    while rest + digits(length) != length {
        length = rest + digits(length);
    }
    out.extend_from_slice(length.to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(key);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}

/// The records of a header, in their order: (key, value). Nothing from where they stop being records.
///
/// # Errors
/// Where they do, in bytes from the beginning.
pub fn records(bytes: &[u8]) -> Result<Vec<Record<'_>>, usize> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        // Some programs fill up with NULs.
        if rest.iter().all(|&byte| byte == 0) {
            break;
        }
        let at = bytes.len() - rest.len();
        let (record, behind) = first_record(rest).ok_or(at)?;
        found.push(record);
        rest = behind;
    }
    Ok(found)
}

fn first_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let space = bytes.iter().take(20).position(|&byte| byte == b' ')?;
    let length = usize::try_from(decimal(&bytes[..space])?).ok()?;
    if length <= space + 1 || length > bytes.len() {
        return None;
    }
    let (record, behind) = bytes.split_at(length);
    let record = record[space + 1..].strip_suffix(b"\n")?;
    let equals = record.iter().position(|&byte| byte == b'=')?;
    (equals > 0).then_some(((&record[..equals], &record[equals + 1..]), behind))
}

/// A number in decimal digits.
pub fn decimal(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// A time as pax has it: seconds since 1970 in decimal digits, negative before, with a fraction.
pub fn time_text(time: Timestamp) -> String {
    let Timestamp {
        seconds,
        nanoseconds,
    } = time;
    let (sign, whole, fraction) = if seconds < 0 && nanoseconds > 0 {
        // Stored times round down; these are a sign and a distance.
        ("-", i128::from(-(seconds + 1)), 1_000_000_000 - nanoseconds)
    } else if seconds < 0 {
        ("-", -i128::from(seconds), 0)
    } else {
        ("", i128::from(seconds), nanoseconds)
    };
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let text = format!("{sign}{whole}.{fraction:09}");
    text.trim_end_matches('0').to_owned()
}

/// The reverse; digits behind nanoseconds are cut off, towards the past.
pub fn time(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanoseconds: i128 = 0;
    let mut has_more = false;
    for (place, digit) in fraction.bytes().enumerate() {
        if place < 9 {
            nanoseconds += i128::from(digit - b'0') * 10i128.pow(8 - place as u32);
        } else {
            has_more |= digit != b'0';
        }
    }
    let mut total = whole.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    if is_negative {
        total = -total - i128::from(has_more);
    }
    Some(Timestamp {
        seconds: i64::try_from(total.div_euclid(1_000_000_000)).ok()?,
        nanoseconds: total.rem_euclid(1_000_000_000) as u32,
    })
}

/// The name of an extended attribute as a part of a key, in which `=` would end the key (as GNU tar has it).
pub fn attribute_key(name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len());
    for &byte in name {
        match byte {
            b'=' => key.extend_from_slice(b"%3D"),
            b'%' => key.extend_from_slice(b"%25"),
            _ => key.push(byte),
        }
    }
    key
}

/// The reverse.
pub fn attribute_name(key: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(key.len());
    let mut rest = key;
    while let Some((&first, behind)) = rest.split_first() {
        if rest.starts_with(b"%3D") {
            name.push(b'=');
            rest = &rest[3..];
        } else if rest.starts_with(b"%25") {
            name.push(b'%');
            rest = &rest[3..];
        } else {
            name.push(first);
            rest = behind;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_count_themselves() {
        for length in [0usize, 1, 80, 90, 91, 92, 93, 94, 95, 985, 990, 995, 10_000] {
            let mut out = Vec::new();
            put_record(&mut out, b"k", &vec![b'x'; length]);
            let space = out.iter().position(|&byte| byte == b' ').unwrap();
            assert_eq!(decimal(&out[..space]), Some(out.len() as u64), "{length}");
        }
    }

    #[test]
    fn times_before_1970_count_back() {
        let time_of = |seconds, nanoseconds| Timestamp {
            seconds,
            nanoseconds,
        };
        for (text, expected) in [
            ("0", time_of(0, 0)),
            ("12.5", time_of(12, 500_000_000)),
            ("-1.5", time_of(-2, 500_000_000)),
            ("-0.000000001", time_of(-1, 999_999_999)),
            ("-7", time_of(-7, 0)),
        ] {
            assert_eq!(time(text.as_bytes()), Some(expected));
            assert_eq!(time_text(expected), text);
        }
        assert_eq!(time(b"1.1234567891"), Some(time_of(1, 123_456_789)));
        assert_eq!(time(b"-1.1234567891"), Some(time_of(-2, 876_543_210)));
        for bad in ["", "-", ".", "1e5", "1.2.3", "x", "99999999999999999999"] {
            assert_eq!(time(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn records_come_back(pairs in proptest::collection::vec(("[a-z.]{1,20}", any::<Vec<u8>>()), 0..8)) {
            let mut out = Vec::new();
            for (key, value) in &pairs {
                put_record(&mut out, key.as_bytes(), value);
            }
            let expected: Vec<(&[u8], &[u8])> =
                pairs.iter().map(|(key, value)| (key.as_bytes(), value.as_slice())).collect();
            prop_assert_eq!(records(&out), Ok(expected));
        }

        #[test]
        fn times_come_back(seconds in i64::MIN + 1..i64::MAX, nanoseconds in 0u32..1_000_000_000) {
            let expected = Timestamp { seconds, nanoseconds };
            prop_assert_eq!(time(time_text(expected).as_bytes()), Some(expected));
        }

        #[test]
        fn names_of_attributes_come_back(name: Vec<u8>) {
            prop_assert_eq!(attribute_name(&attribute_key(&name)), name);
        }

        #[test]
        fn hostile_records_never_panic(bytes: Vec<u8>) {
            let _ = records(&bytes);
            let _ = time(&bytes);
        }
    }
}
