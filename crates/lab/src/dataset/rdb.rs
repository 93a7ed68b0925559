//! `rdb`: dumps of a real Redis server, `v01.rdb` …, with updates between them.
//!
//! Stands for RDB of FastCDC, Odess and P-Dedupe: backups of a running server's `dump.rdb`,
//! 91–93 % duplicates. Half of the keys are hashes of a user's fields, a third are JSON
//! documents, the rest is binary; 2.5 KiB on average. From one dump to the next one key of a
//! hundred is changed (a third of them were changed before as well) and one is added to two
//! hundred, so about one chunk of 8 KiB in ten is new.
//!
//! The commands are a function of the seed; the dumps are not, because each server orders its
//! keys by a random number of its own. So all dumps come from one server: when one is missing,
//! all are made again. The number of keys is kept off powers of two, where the server would
//! double its table and put all keys into another order, between two dumps.

use std::fmt::Write;

use anyhow::Result;

use super::content::{Contents, Grain};
use super::redis::Server;
use super::seeded::Seeded;
use super::site::Site;

/// Changed and added between two dumps, in thousandths of the keys.
const CHANGED: u64 = 10;
const ADDED: u64 = 5;

/// Of those changed, how many were changed before; thousandths.
const CHANGED_AGAIN: u64 = 333;

/// Purposes of random numbers.
const VALUE: u64 = 1;
const CHANGE: u64 = 2;
const UPDATE: u64 = 3;

/// What the server is told of each key beside the value, about.
const KEY_BYTES: u64 = 20;

/// Makes all dumps if one is missing.
///
/// # Errors
/// When there is no server, or it fails.
pub fn build(site: &mut Site) -> Result<()> {
    let versions = site.versions_asked();
    site.note_tool("redis-server", &Server::version()?);
    site.start_over()?;
    let records = Records {
        seed: site.seed(),
        contents: Contents::new(site.seed()),
    };
    let growth = 1.0 + ADDED as f64 / 1000.0 * (versions - 1) as f64;
    let bytes = site.bytes_asked() as f64 / versions as f64 / (1.0 + growth) * 2.0;
    let mut revisions = vec![0; records.count(bytes as u64, growth)];
    let mut server = Server::start(&site.fresh("redis")?)?;
    for id in 0..revisions.len() {
        records.put(&mut server, id as u64, 0)?;
    }
    // Each look moves a bucket to a new table, should the server be at that still.
    for id in 0..revisions.len().next_power_of_two() {
        server.send(&[b"EXISTS", Records::key(id as u64).as_bytes()])?;
    }
    let mut hot = Vec::new();
    for number in 1..=versions {
        let mut label = format!("{} keys", revisions.len());
        if number > 1 {
            let (changed, added) =
                records.update(&mut server, number as u64, &mut revisions, &mut hot)?;
            label = format!("{} keys, {changed} changed, {added} new", revisions.len());
        }
        let dump = server.save()?;
        site.add(number, &dump, ".rdb", &label)?;
    }
    Ok(())
}

/// What the server is told to hold.
struct Records {
    seed: u64,
    contents: Contents,
}

/// The value of a key.
enum Value {
    Hash(Vec<(&'static str, String)>),
    String(Vec<u8>),
}

impl Records {
    /// How many keys have about this many bytes, away from where `growth` would pass a power of
    /// two.
    fn count(&self, bytes: u64, growth: f64) -> usize {
        let (mut total, mut count) = (0, 0);
        while total < bytes {
            total += KEY_BYTES + self.value(count, 0).bytes();
            count += 1;
        }
        let count = count.max(16) as usize;
        let table = count.next_power_of_two();
        if (count as f64 * growth) as usize + 2 > table {
            (table as f64 / growth) as usize - 2
        } else {
            count
        }
    }

    fn key(id: u64) -> String {
        let kind = match id % 20 {
            0..10 => "user",
            10..17 => "document",
            _ => "blob",
        };
        format!("{kind}:{id:08}")
    }

    /// That of a key after its change before dump `revision`, 0 for none.
    fn value(&self, id: u64, revision: u64) -> Value {
        let mut numbers = Seeded::new(self.seed, &[VALUE, id]);
        let mut change = Seeded::new(self.seed, &[CHANGE, id, revision]);
        match id % 20 {
            0..10 => self.user(id, revision, &mut numbers, &mut change),
            10..17 => self.document(id, revision, &mut numbers, &mut change),
            _ => {
                let length = numbers.log_normal(7000.0, 0.8).clamp(64, 50_000);
                let (mut bytes, stream) = (Vec::new(), numbers.next());
                self.contents
                    .append(&mut bytes, stream, Grain::Noise, 0, length);
                if revision > 0 {
                    let from = change.index(bytes.len());
                    change.fill(&mut bytes[from..]);
                }
                Value::String(bytes)
            }
        }
    }

    fn user(&self, id: u64, revision: u64, numbers: &mut Seeded, change: &mut Seeded) -> Value {
        let mut word = || self.contents.word(numbers).to_owned();
        let (first, last, city, street) = (word(), word(), word(), word());
        let about: Vec<_> = (0..16).map(|_| word()).collect();
        Value::Hash(vec![
            ("name", format!("{first} {last}")),
            ("email", format!("{first}.{last}{id}@example.org")),
            ("street", format!("{} {street}", numbers.below(200))),
            ("city", city),
            ("about", about.join(" ")),
            (
                "token",
                format!("{:016x}{:016x}", numbers.next(), numbers.next()),
            ),
            (
                "created",
                format!("{}", 1_500_000_000 + numbers.below(1 << 27)),
            ),
            ("visits", format!("{:06}", change.below(1_000_000))),
            (
                "balance",
                format!("{}.{:02}", change.below(5000), change.below(100)),
            ),
            ("seen", format!("{}", 1_700_000_000 + revision * 86_400)),
        ])
    }

    fn document(&self, id: u64, revision: u64, numbers: &mut Seeded, change: &mut Seeded) -> Value {
        let paragraphs = numbers.log_normal(24.0, 0.8).clamp(1, 200);
        let changed = change.below(paragraphs);
        let mut json = format!("{{\"id\":{id},\"revision\":{revision},\"body\":[");
        for paragraph in 0..paragraphs {
            let mut own = Seeded::new(numbers.next(), &[]);
            if revision > 0 && paragraph == changed {
                own = change.clone();
            }
            let words: Vec<_> = (0..14).map(|_| self.contents.word(&mut own)).collect();
            let comma = if paragraph == 0 { "" } else { "," };
            write!(json, "{comma}\"{}\"", words.join(" ")).expect("strings take everything");
        }
        json.push_str("]}");
        Value::String(json.into_bytes())
    }

    fn put(&self, server: &mut Server, id: u64, revision: u64) -> Result<()> {
        let key = Self::key(id);
        match self.value(id, revision) {
            Value::String(value) => server.send(&[b"SET", key.as_bytes(), &value]),
            Value::Hash(fields) => {
                let mut words: Vec<&[u8]> = vec![b"HSET", key.as_bytes()];
                for (name, value) in &fields {
                    words.extend([name.as_bytes(), value.as_bytes()]);
                }
                server.send(&words)
            }
        }
    }

    /// Changes and adds keys; says how many.
    fn update(
        &self,
        server: &mut Server,
        number: u64,
        revisions: &mut Vec<u64>,
        hot: &mut Vec<usize>,
    ) -> Result<(usize, usize)> {
        let mut numbers = Seeded::new(self.seed, &[UPDATE, number]);
        let before = revisions.len();
        let share = |numbers: &mut Seeded, thousandths: u64| {
            numbers.rounded(before as f64 * thousandths as f64 / 1000.0)
        };
        let changed = share(&mut numbers, CHANGED).max(1);
        for _ in 0..changed {
            let id = if numbers.is_one_of(CHANGED_AGAIN) && !hot.is_empty() {
                hot[numbers.index(hot.len())]
            } else {
                numbers.index(before)
            };
            revisions[id] = number;
            self.put(server, id as u64, number)?;
            hot.push(id);
        }
        let added = share(&mut numbers, ADDED);
        for id in before..before + added {
            revisions.push(0);
            self.put(server, id as u64, 0)?;
        }
        Ok((changed, added))
    }
}

impl Value {
    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::String(value) => value.len(),
            Self::Hash(fields) => fields
                .iter()
                .map(|(name, value)| name.len() + value.len() + 4)
                .sum(),
        };
        bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_within_one_table() {
        let records = Records {
            seed: 1,
            contents: Contents::new(1),
        };
        for bytes in [1, 100_000, 1_000_000, 1_050_000, 2_000_000] {
            let count = records.count(bytes, 1.06);
            let last = (count as f64 * 1.06) as usize + 1;
            assert!(count >= 13, "{count}");
            assert_eq!(count.next_power_of_two(), last.next_power_of_two());
        }
    }

    #[test]
    fn a_change_leaves_most_of_a_value() {
        let records = Records {
            seed: 1,
            contents: Contents::new(1),
        };
        let Value::String(was) = records.value(10, 0) else {
            panic!("a document");
        };
        let Value::String(is) = records.value(10, 3) else {
            panic!("a document");
        };
        let text = String::from_utf8(was.clone()).unwrap();
        assert!(text.starts_with("{\"id\":10,\"revision\":0,"), "{text}");
        assert_ne!(was, is);
        let shared = was
            .split(|&b| b == b'"')
            .filter(|part| part.len() > 20 && is.windows(part.len()).any(|window| window == *part));
        assert!(shared.count() >= 1);
    }
}
