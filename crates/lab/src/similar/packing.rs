//! Items compressed one by one, or many together: sizes, times, and what it costs to read one back.
//!
//! Enters: items (chunks or deltas) in the order in which they are stored, and a [`Unit`]. Leaves: for
//! each item the number of the unit that holds it, for each unit its bytes before and after zstd. A unit
//! that zstd does not shrink counts with its plain bytes, as groups of repositories do.

use anyhow::Context as _;
use zstd::zstd_safe::CParameter;

use crate::interrupt;
use crate::paper::timing::thread_seconds;

/// What is compressed at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Every item alone.
    Item,
    /// Every item alone, with a dictionary trained on a sample of them.
    ItemWithDictionary,
    /// Every item alone, stored as it is: it was compressed before.
    ItemAsItIs,
    /// Items up to so many bytes together.
    Group(usize),
    /// The same with a window of 2 to that power.
    GroupWithWindow(usize, u32),
    /// The same, looking for matches far apart.
    GroupLong(usize, u32),
    /// All in one stream, looking for matches far apart, with a window as large as it is.
    Stream,
}

/// Bytes of a dictionary: zstd's own default.
const DICTIONARY_BYTES: usize = 112_640;
/// Bytes of samples for each byte of it: "about 100" (zstd's documentation).
const SAMPLES_OF_DICTIONARY: usize = 100;
/// The largest window of zstd.
const WINDOW_LOG_MAX: u32 = 31;

/// A unit that was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    /// Bytes that are read.
    pub stored_bytes: u64,
    /// Bytes that come out.
    pub plain_bytes: u64,
}

/// Items that were compressed.
#[derive(Debug, Default)]
pub struct Packing {
    /// The unit of each item.
    pub unit_of: Vec<u32>,
    /// The units.
    pub units: Vec<Packed>,
    /// Bytes beside them: a dictionary.
    pub beside_bytes: u64,
    /// Seconds that the thread ran, training included.
    pub seconds: f64,
}

impl Packing {
    /// Compresses items.
    ///
    /// # Errors
    /// When zstd can't, or somebody asked for a stop.
    pub fn of(items: &[&[u8]], unit: Unit, level: i32) -> anyhow::Result<Self> {
        let clock = thread_seconds();
        let mut packing = Self::default();
        match unit {
            Unit::Stream => packing.stream(items, level)?,
            Unit::ItemAsItIs => packing.as_it_is(items),
            Unit::Item => packing.groups(items, 0, level, &[])?,
            Unit::ItemWithDictionary => packing.with_dictionary(items, level)?,
            Unit::Group(bytes) => packing.groups(items, bytes, level, &[])?,
            Unit::GroupWithWindow(bytes, log) => {
                packing.groups(items, bytes, level, &[CParameter::WindowLog(log)])?;
            }
            Unit::GroupLong(bytes, log) => {
                let parameters = [
                    CParameter::WindowLog(log),
                    CParameter::EnableLongDistanceMatching(true),
                ];
                packing.groups(items, bytes, level, &parameters)?;
            }
        }
        packing.seconds = thread_seconds() - clock;
        Ok(packing)
    }

    /// Bytes of everything.
    pub fn stored_bytes(&self) -> u64 {
        let units = self.units.iter().map(|unit| unit.stored_bytes);
        units.sum::<u64>() + self.beside_bytes
    }

    fn as_it_is(&mut self, items: &[&[u8]]) {
        for item in items {
            self.add_unit(item.len(), item.len(), 1);
        }
    }

    fn groups(
        &mut self,
        items: &[&[u8]],
        bytes: usize,
        level: i32,
        parameters: &[CParameter],
    ) -> anyhow::Result<()> {
        let mut compressor = zstd::bulk::Compressor::new(level).context("zstd")?;
        for parameter in parameters {
            compressor.set_parameter(*parameter).context("zstd")?;
        }
        self.compress(items, bytes, &mut compressor)
    }

    fn with_dictionary(&mut self, items: &[&[u8]], level: i32) -> anyhow::Result<()> {
        let dictionary = dictionary(items)?;
        self.beside_bytes = dictionary.len() as u64;
        let mut compressor = zstd::bulk::Compressor::with_dictionary(level, &dictionary)?;
        self.compress(items, 0, &mut compressor)
    }

    /// Units of at most so many bytes, or of one item.
    fn compress(
        &mut self,
        items: &[&[u8]],
        bytes: usize,
        compressor: &mut zstd::bulk::Compressor<'_>,
    ) -> anyhow::Result<()> {
        let mut plain = Vec::with_capacity(bytes);
        let mut first = 0;
        while first < items.len() {
            interrupt::check()?;
            plain.clear();
            let mut end = first;
            while end < items.len() && (end == first || plain.len() + items[end].len() <= bytes) {
                plain.extend_from_slice(items[end]);
                end += 1;
            }
            let compressed = compressor.compress(&plain).context("zstd")?;
            self.add_unit(compressed.len(), plain.len(), end - first);
            first = end;
        }
        Ok(())
    }

    fn stream(&mut self, items: &[&[u8]], level: i32) -> anyhow::Result<()> {
        let bytes: usize = items.iter().map(|item| item.len()).sum();
        let counter = Counter::default();
        let mut encoder = zstd::stream::Encoder::new(counter, level)?;
        let window_log = bytes.max(1024).next_power_of_two().trailing_zeros();
        encoder.window_log(window_log.min(WINDOW_LOG_MAX))?;
        encoder.long_distance_matching(true)?;
        encoder.set_pledged_src_size(Some(bytes as u64))?;
        for item in items {
            interrupt::check()?;
            std::io::Write::write_all(&mut encoder, item)?;
        }
        let stored = encoder.finish()?.0;
        self.add_unit(stored, bytes, items.len());
        Ok(())
    }

    fn add_unit(&mut self, stored_bytes: usize, plain_bytes: usize, items: usize) {
        let number = self.units.len() as u32;
        self.unit_of.extend(std::iter::repeat_n(number, items));
        self.units.push(Packed {
            stored_bytes: stored_bytes.min(plain_bytes) as u64,
            plain_bytes: plain_bytes as u64,
        });
    }
}

/// A dictionary of items that stand at equal distances; none where there are too few of them.
fn dictionary(items: &[&[u8]]) -> anyhow::Result<Vec<u8>> {
    let bytes: usize = items.iter().map(|item| item.len()).sum();
    let step = (bytes / (DICTIONARY_BYTES * SAMPLES_OF_DICTIONARY)).max(1);
    let samples: Vec<&[u8]> = items.iter().step_by(step).copied().collect();
    match zstd::dict::from_samples(&samples, DICTIONARY_BYTES) {
        Ok(dictionary) => Ok(dictionary),
        // zstd refuses where the samples are few; then there is nothing to share either.
        Err(_) if bytes < DICTIONARY_BYTES * SAMPLES_OF_DICTIONARY => Ok(Vec::new()),
        Err(error) => Err(error).context("zstd trains no dictionary"),
    }
}

/// Counts bytes and forgets them.
#[derive(Default)]
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::data::random_bytes;

    fn pack(items: &[&[u8]], unit: Unit) -> Packing {
        Packing::of(items, unit, 3).unwrap()
    }

    #[test]
    fn groups_hold_whole_items_up_to_their_size() {
        let items: [&[u8]; 4] = [&[1; 400], &[2; 700], &[3; 300], &[4; 5000]];
        let packing = pack(&items, Unit::Group(1000));
        assert_eq!(packing.unit_of, [0, 1, 1, 2]);
        let plain: Vec<u64> = packing.units.iter().map(|unit| unit.plain_bytes).collect();
        assert_eq!(plain, [400, 1000, 5000]);
        assert_eq!(pack(&items, Unit::Item).unit_of, [0, 1, 2, 3]);
        assert_eq!(pack(&items, Unit::ItemAsItIs).stored_bytes(), 6400);
        assert_eq!(pack(&items, Unit::Stream).unit_of, [0; 4]);
    }

    #[test]
    fn what_two_items_share_is_found_where_they_are_together() {
        let noise = random_bytes(1, 100_000);
        let items = [&noise[..], &noise[..]];
        let stored = |unit| pack(&items, unit).stored_bytes();
        assert_eq!(stored(Unit::Item), 200_000);
        assert!(stored(Unit::Group(1 << 20)) < 101_000);
        assert!(stored(Unit::Stream) < 101_000);
        assert!(stored(Unit::GroupLong(1 << 20, 22)) < 101_000);
    }

    #[test]
    fn a_window_that_reaches_farther_finds_more() {
        let noise = random_bytes(2, 3 << 20);
        let items = [&noise[..], &noise[..1 << 20]];
        let stored = |unit| pack(&items, unit).stored_bytes();
        let usual = stored(Unit::Group(4 << 20));
        // Nothing is found: it is stored as it is.
        assert_eq!(usual, 4 << 20);
        assert!(stored(Unit::GroupWithWindow(4 << 20, 22)) < usual);
    }

    #[test]
    fn a_dictionary_helps_small_items_of_one_kind() {
        let texts: Vec<Vec<u8>> = (0..3000u32)
            .map(|number| {
                let word = number.wrapping_mul(2_654_435_761);
                format!(
                    "{{\"name\": \"value of {word}\", \"kind\": \"the same\", \"n\": {number}}}"
                )
                .into_bytes()
            })
            .collect();
        let items: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let with = pack(&items, Unit::ItemWithDictionary);
        let units: u64 = with.units.iter().map(|unit| unit.stored_bytes).sum();
        assert!(units * 3 < pack(&items, Unit::Item).stored_bytes() * 2);
        assert_eq!(with.stored_bytes(), units + with.beside_bytes);
    }
}
