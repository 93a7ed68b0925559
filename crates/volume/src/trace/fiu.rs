//! FIU's format: a request a line, nine fields between spaces.
//!
//! | field | |
//! |---|---|
//! | time | nanoseconds |
//! | pid, process | who asked; not kept |
//! | lba, size | first sector and sectors of 512 bytes |
//! | operation | `R` or `W` |
//! | major, minor | the device; not kept |
//! | MD5 | 32 hexadecimal digits for every 4096 bytes, or, in the traces called homes, for every 512, without anything between |
//!
//! A request of several blocks with their MD5s is a record a block, counted from its first sector. Of
//! a block with an MD5 for each sector, the content is a function of these, in order. A single MD5 is
//! that of the whole request, whatever its size.
//!
//! Source: the README beside the traces in SNIA's IOTTA repository; that MD5s of homes stand one after
//! the other is from programs that read them.

use std::fmt::Write;
use std::time::Duration;

use super::random::mix_wide;
use super::{BLOCK_BYTES, ContentId, SECTOR_BYTES, TraceKind, TraceRecord, check_range, number};

const FIELDS: usize = 9;
const DIGEST_DIGITS: usize = 32;
const SECTORS_PER_BLOCK: u64 = BLOCK_BYTES / SECTOR_BYTES;

/// The records of a line.
pub fn parse(line: &str) -> Result<Vec<TraceRecord>, String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let count = fields.len();
    if count < FIELDS {
        return Err(format!("{count} fields instead of {FIELDS}"));
    }
    // The name of a process may have spaces: the other fields count from the ends.
    let [lba, size, operation, major, minor, digests] = fields[count - 6..] else {
        return Err(format!("{count} fields instead of {FIELDS}"));
    };
    let time = Duration::from_nanos(number(fields[0], "the time")?);
    number(major, "the major number")?;
    number(minor, "the minor number")?;
    let kind = match operation {
        "R" | "r" => TraceKind::Read,
        "W" | "w" => TraceKind::Write,
        _ => return Err(format!("the operation is neither R nor W: {operation:?}")),
    };
    let sectors = number(size, "the size")?;
    let bytes_of = |sectors: u64| sectors.checked_mul(SECTOR_BYTES);
    let offset_bytes = bytes_of(number(lba, "the lba")?);
    let (Some(offset_bytes), Some(length_bytes)) = (offset_bytes, bytes_of(sectors)) else {
        return Err(format!(
            "{sectors} sectors at {lba} are more than there can be"
        ));
    };
    check_range(offset_bytes, length_bytes)?;
    let whole = TraceRecord {
        time,
        kind,
        offset_bytes,
        length_bytes,
        content: None,
    };
    let digests = digests_of(digests)?;
    let per_block = sectors.div_ceil(SECTORS_PER_BLOCK);
    match digests.len() as u64 {
        1 => Ok(vec![TraceRecord {
            content: digests.first().copied(),
            ..whole
        }]),
        count if count == sectors => {
            let blocks = digests.chunks(SECTORS_PER_BLOCK as usize);
            Ok(blocks_of(whole, blocks.map(content_of_sectors)))
        }
        count if count == per_block => Ok(blocks_of(whole, digests.into_iter())),
        count => Err(format!("{count} MD5s for {sectors} sectors")),
    }
}

fn digests_of(digits: &str) -> Result<Vec<ContentId>, String> {
    let is_whole = digits.len().is_multiple_of(DIGEST_DIGITS);
    if digits.is_empty() || !is_whole || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        let start: String = digits.chars().take(DIGEST_DIGITS).collect();
        return Err(format!("no MD5s of 32 hexadecimal digits: {start:?}"));
    }
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
    let digests = digits.as_bytes().chunks_exact(DIGEST_DIGITS);
    Ok(digests
        .map(|digest| {
            let mut content = [0; 16];
            for (byte, pair) in content.iter_mut().zip(digest.chunks_exact(2)) {
                *byte = value(pair[0]) << 4 | value(pair[1]);
            }
            ContentId(content)
        })
        .collect())
}

/// One content for the sectors of a block. A single one is its own.
fn content_of_sectors(sectors: &[ContentId]) -> ContentId {
    let numbers = sectors.iter().map(|sector| u128::from_le_bytes(sector.0));
    let content = numbers.reduce(|before, sector| mix_wide(before) ^ sector);
    ContentId(content.unwrap_or_default().to_le_bytes())
}

fn blocks_of(whole: TraceRecord, contents: impl Iterator<Item = ContentId>) -> Vec<TraceRecord> {
    let blocks = contents.zip((0..).step_by(BLOCK_BYTES as usize));
    blocks
        .map(|(content, start)| TraceRecord {
            offset_bytes: whole.offset_bytes + start,
            length_bytes: (whole.length_bytes - start).min(BLOCK_BYTES),
            content: Some(content),
            ..whole
        })
        .collect()
}

/// The line of a record, with its end. Who asked is "onefold".
pub fn line(record: &TraceRecord) -> Result<String, &'static str> {
    let sectors = |bytes: u64| match bytes.is_multiple_of(SECTOR_BYTES) {
        true => Ok(bytes / SECTOR_BYTES),
        false => Err("it is not whole sectors"),
    };
    let Ok(time) = u64::try_from(record.time.as_nanos()) else {
        return Err("its time is later than the format can say");
    };
    let Some(content) = record.content else {
        return Err("it has no content, and each has one in this format");
    };
    let operation = match record.kind {
        TraceKind::Read => 'R',
        TraceKind::Write => 'W',
    };
    let lba = sectors(record.offset_bytes)?;
    let size = sectors(record.length_bytes)?;
    let mut line = format!("{time} 0 onefold {lba} {size} {operation} 0 0 ");
    for byte in content.0 {
        write!(line, "{byte:02x}").expect("writing to a string does not fail");
    }
    line.push('\n');
    Ok(line)
}
