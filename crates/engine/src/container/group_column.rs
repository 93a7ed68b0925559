//! The column of a section's groups (docs/format/v1.md, §6).
//!
//! Groups lie one after the other in the object, in the order in which the sections first name them. A group that an
//! earlier section of the object has named already may be named again, by its number: then both have the same chunks in
//! it, under slots of their own. So chunks that two clients have stored at the same time come to be stored once.
//! In each section the groups ascend by their places.

use super::Compression;
use super::delta_columns::Delta;
use super::metadata::{GROUP_BYTES_MAX, Group, SLOTS_MAX};
use crate::format::{DecodeError, Decoder, SEAL_TAG_BYTES, put_varint};

/// Beside the compression: an earlier section has named the group; its number follows.
const SHARED: u8 = 0x80;

/// Groups that were named so far, by number.
#[derive(Default)]
pub(super) struct EarlierGroups {
    groups: Vec<Group>,
    end: u64,
}

/// Appends the column. `next_group` is the number of the first group that is new.
pub(super) fn encode_groups(groups: &[Group], next_group: &mut u32, out: &mut Vec<u8>) {
    for group in groups {
        assert!(
            group.number <= *next_group,
            "groups are named in their order"
        );
        let is_shared = group.number < *next_group;
        put_varint(out, u64::from(group.sealed_bytes));
        out.push(group.compression as u8 | if is_shared { SHARED } else { 0 });
        put_varint(out, u64::from(group.chunk_count));
        match is_shared {
            true => put_varint(out, u64::from(group.number)),
            false => *next_group += 1,
        }
    }
}

/// Reads the column of a section with these chunks.
///
/// # Errors
/// When no writer would have written this.
pub(super) fn decode_groups(
    bytes: &[u8],
    lengths: &[u32],
    deltas: &[Option<Delta>],
    earlier: &mut EarlierGroups,
) -> Result<Vec<Group>, DecodeError> {
    let stored = |(chunk, &length): (usize, &u32)| match deltas.get(chunk) {
        Some(Some(delta)) => u64::from(delta.stored_bytes),
        _ => u64::from(length),
    };
    let mut decoder = Decoder::new(bytes);
    let mut groups = Vec::new();
    let mut first_chunk = 0usize;
    while !decoder.is_empty() {
        let sealed_bytes = decoder.varint_at_most(GROUP_BYTES_MAX, "a group's length")? as u32;
        let number = decoder.u8()?;
        let (is_shared, number) = (number & SHARED != 0, number & !SHARED);
        let compression = Compression::from_number(number).ok_or_else(|| {
            DecodeError::new(format!(
                "a group of compression {number}, which this version does not know"
            ))
        })?;
        let chunk_count = decoder.varint_at_most(SLOTS_MAX as u64, "a group's chunk count")?;
        let end = first_chunk + chunk_count as usize;
        let plain_bytes = lengths
            .get(first_chunk..end)
            .filter(|lengths| !lengths.is_empty())
            .map(|_| {
                let all = lengths.iter().enumerate();
                let chunks = all.take(end).skip(first_chunk);
                chunks.map(stored).sum::<u64>()
            })
            .ok_or_else(|| DecodeError::new("a group has chunks that are not there"))?;
        if plain_bytes > GROUP_BYTES_MAX || (sealed_bytes as usize) < SEAL_TAG_BYTES {
            return Err(DecodeError::new(format!(
                "a group of {plain_bytes} bytes in {sealed_bytes} is not possible"
            )));
        }
        let mut group = Group {
            offset: earlier.end,
            sealed_bytes,
            compression,
            number: earlier.groups.len() as u32,
            first_chunk: first_chunk as u32,
            chunk_count: chunk_count as u32,
            plain_bytes,
        };
        match is_shared {
            true => earlier.share(&mut group, decoder.varint()?)?,
            false => earlier.add(group),
        }
        if groups
            .last()
            .is_some_and(|last: &Group| last.number >= group.number)
        {
            return Err(DecodeError::new("groups are out of order"));
        }
        groups.push(group);
        first_chunk = end;
    }
    if first_chunk != lengths.len() {
        return Err(DecodeError::new(format!(
            "{} chunks are in no group",
            lengths.len() - first_chunk
        )));
    }
    Ok(groups)
}

impl EarlierGroups {
    fn add(&mut self, group: Group) {
        self.end += u64::from(group.sealed_bytes);
        self.groups.push(group);
    }

    /// Has `group` lie where the earlier one of that number does.
    fn share(&self, group: &mut Group, number: u64) -> Result<(), DecodeError> {
        let earlier = usize::try_from(number).ok();
        let earlier = earlier.and_then(|number| self.groups.get(number));
        let is_same = |earlier: &&Group| {
            earlier.sealed_bytes == group.sealed_bytes
                && earlier.compression == group.compression
                && earlier.chunk_count == group.chunk_count
                && earlier.plain_bytes == group.plain_bytes
        };
        let Some(earlier) = earlier.filter(is_same) else {
            return Err(DecodeError::new(format!(
                "a section shares group {number}, which is none or another one"
            )));
        };
        (group.offset, group.number) = (earlier.offset, earlier.number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u32, first_chunk: u32, chunk_count: u32) -> Group {
        Group {
            offset: u64::from(number) * 100,
            sealed_bytes: 100,
            compression: Compression::Zstd,
            number,
            first_chunk,
            chunk_count,
            plain_bytes: u64::from(chunk_count) * 7,
        }
    }

    fn encoded(sections: &[Vec<Group>]) -> Vec<Vec<u8>> {
        let mut next_group = 0;
        let column = |groups: &Vec<Group>| {
            let mut out = Vec::new();
            encode_groups(groups, &mut next_group, &mut out);
            out
        };
        sections.iter().map(column).collect()
    }

    fn decoded(columns: &[Vec<u8>], chunks: usize) -> Result<Vec<Vec<Group>>, DecodeError> {
        let mut earlier = EarlierGroups::default();
        let lengths = vec![7; chunks];
        let decode = |column: &Vec<u8>| decode_groups(column, &lengths, &[], &mut earlier);
        columns.iter().map(decode).collect()
    }

    #[test]
    fn groups_may_be_shared() {
        let sections = [
            vec![group(0, 0, 2), group(1, 2, 3)],
            vec![group(1, 0, 3), group(2, 3, 2)],
            vec![group(0, 0, 2), group(3, 2, 3)],
        ];
        let columns = encoded(&sections);
        assert_eq!(decoded(&columns, 5).unwrap(), sections);
        for (at, column) in columns.iter().enumerate() {
            for end in 0..column.len() {
                let mut cut = columns.clone();
                cut[at].truncate(end);
                assert!(decoded(&cut, 5).is_err(), "{at}: {end}");
            }
        }
    }

    #[test]
    fn what_is_shared_is_there_and_the_same() {
        let first = vec![group(0, 0, 2), group(1, 2, 3)];
        let refused = |second: &[u8]| {
            let columns = [
                encoded(std::slice::from_ref(&first)).remove(0),
                second.to_vec(),
            ];
            decoded(&columns, 5).unwrap_err().to_string()
        };
        // Number 1 again, and as it is: the other two chunks are in no group.
        assert!(refused(&[100, 0x81, 3, 1]).contains("in no group"));
        for other in [
            [100, 0x81, 3, 2],
            [101, 0x81, 3, 1],
            [100, 0x80, 3, 1],
            [100, 0x81, 2, 1],
        ] {
            assert!(refused(&other).contains("none or another one"), "{other:?}");
        }
        let twice = [100, 0x81, 2, 0, 100, 0x81, 2, 0];
        assert!(refused(&twice).contains("out of order"));
        let back = [100, 0x81, 3, 1, 100, 0x81, 2, 0];
        assert!(refused(&back).contains("out of order"));
        assert!(refused(&[100, 0x82, 3, 1]).contains("compression 2"));
    }
}
