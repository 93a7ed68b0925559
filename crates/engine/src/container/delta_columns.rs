//! What a section's metadata says of deltas: their bases, their stored lengths, and the
//! super-features of chunks that may be bases (docs/format/v1.md, §6).
//!
//! Enter: columns as stored. Leave: a [`Delta`] for each chunk that is stored as one, [`Features`].
//! Nothing is allocated that the stored bytes do not warrant; an index that names no base and a base in
//! the section itself that does not come before its chunk are errors.

use std::collections::{BTreeMap, BTreeSet};

use super::{CHUNK_BYTES_MAX, ChunkAddress, ContainerId, Slot};
use crate::format::{DecodeError, Decoder, put_varint};
use crate::object::ObjectId;

/// Most deltas from a chunk that is stored whole to one that is to be read: what a reader follows, and
/// a writer may allow itself.
pub const DELTA_DEPTH_MAX: u8 = 31;

/// Most super-features a chunk.
pub const SUPER_FEATURES_MAX: usize = 16;

/// How a delta says what makes its chunk of its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DeltaMethod {
    /// Instructions to copy from the base and to insert (docs/format/delta.md).
    Instructions = 1,
    /// A zstd frame for which the base is the prefix.
    Prefix = 2,
}

impl DeltaMethod {
    fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Instructions),
            2 => Some(Self::Prefix),
            _ => None,
        }
    }
}

/// How a chunk is stored that is not stored whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delta {
    /// Where its base lies.
    pub base: ChunkAddress,
    /// Bytes of the delta in its group's plaintext.
    pub stored_bytes: u32,
    /// What kind of delta it is.
    pub method: DeltaMethod,
    /// Deltas from a chunk stored whole to this one, at most: 1 where the base is stored whole.
    pub depth: u8,
}

/// The bases of a section's deltas, each once, sorted.
fn bases_of(deltas: &[Option<Delta>]) -> Vec<ChunkAddress> {
    let bases: BTreeSet<_> = deltas.iter().flatten().map(|delta| delta.base).collect();
    bases.into_iter().collect()
}

/// Column *foreign*: the bases, by container.
pub(super) fn encode_foreign(deltas: &[Option<Delta>], out: &mut Vec<u8>) {
    let mut by_container: BTreeMap<ContainerId, Vec<Slot>> = BTreeMap::new();
    for base in bases_of(deltas) {
        by_container
            .entry(base.container)
            .or_default()
            .push(base.slot);
    }
    for (container, slots) in by_container {
        out.extend_from_slice(&container.0.0);
        put_varint(out, slots.len() as u64);
        let mut end = 0;
        for Slot(slot) in slots {
            put_varint(out, u64::from(u32::from(slot) - end));
            end = u32::from(slot) + 1;
        }
    }
}

/// Reads column *foreign*: strictly ascending addresses.
pub(super) fn decode_foreign(bytes: &[u8]) -> Result<Vec<ChunkAddress>, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let mut bases: Vec<ChunkAddress> = Vec::new();
    while !decoder.is_empty() {
        let container = ContainerId(ObjectId(decoder.array()?));
        let before = bases.last().map(|base| base.container);
        if before.is_some_and(|before| before >= container) {
            return Err(DecodeError::new("containers of bases are out of order"));
        }
        let count = decoder.count(1, "bases in a container")?;
        if count == 0 {
            return Err(DecodeError::new("a container of bases has none"));
        }
        let mut end = 0u64;
        for _ in 0..count {
            let slot = end + decoder.varint_at_most(u64::from(u16::MAX), "a gap between bases")?;
            let number = u16::try_from(slot)
                .map_err(|_| DecodeError::new(format!("a base in slot {slot}")))?;
            bases.push(ChunkAddress {
                container,
                slot: Slot(number),
            });
            end = slot + 1;
        }
    }
    Ok(bases)
}

/// Column *deltas*.
pub(super) fn encode_deltas(deltas: &[Option<Delta>], out: &mut Vec<u8>) {
    let bases = bases_of(deltas);
    for delta in deltas {
        let Some(delta) = delta else {
            put_varint(out, 0);
            continue;
        };
        let number = bases.partition_point(|base| *base < delta.base);
        put_varint(out, number as u64 + 1);
        put_varint(out, u64::from(delta.stored_bytes));
        out.push(delta.method as u8 | delta.depth << 2);
    }
}

/// Reads column *deltas* of the section `id` with these slots.
pub(super) fn decode_deltas(
    bytes: &[u8],
    bases: &[ChunkAddress],
    id: ContainerId,
    slots: &[Slot],
) -> Result<Vec<Option<Delta>>, DecodeError> {
    if bytes.len() < slots.len() {
        return Err(DecodeError::new("deltas of chunks are missing"));
    }
    let mut decoder = Decoder::new(bytes);
    let mut deltas = Vec::with_capacity(slots.len());
    for &slot in slots {
        let number = decoder.varint_at_most(bases.len() as u64, "the number of a base")?;
        if number == 0 {
            deltas.push(None);
            continue;
        }
        let base = bases[number as usize - 1];
        if base.container == id && base.slot >= slot {
            return Err(DecodeError::new(format!(
                "the chunk in slot {} is a delta to itself or to a later one",
                slot.0
            )));
        }
        let stored_bytes =
            decoder.varint_at_most(u64::from(CHUNK_BYTES_MAX), "a delta's length")? as u32;
        let last = decoder.u8()?;
        let method = DeltaMethod::from_number(last & 3);
        let depth = last >> 2;
        let (Some(method), 1..=DELTA_DEPTH_MAX, 1..) = (method, depth, stored_bytes) else {
            return Err(DecodeError::new(format!(
                "a delta of {stored_bytes} bytes, method {} and depth {depth}",
                last & 3
            )));
        };
        deltas.push(Some(Delta {
            base,
            stored_bytes,
            method,
            depth,
        }));
    }
    decoder.finish()?;
    Ok(deltas)
}

/// The super-features of a section's chunks: so many for each that may be a base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// How many a chunk has that has any; 0 where no chunk has.
    per_chunk: usize,
    /// For each chunk that many; zeros where it has none (no super-feature is 0).
    values: Vec<u32>,
}

impl Features {
    /// Of chunks that have `per_chunk` each, or none; 0 for none at all.
    #[must_use]
    pub fn new(per_chunk: usize) -> Self {
        assert!(per_chunk <= SUPER_FEATURES_MAX);
        Self {
            per_chunk,
            values: Vec::new(),
        }
    }

    /// How many a chunk has that has any.
    #[must_use]
    pub fn per_chunk(&self) -> usize {
        self.per_chunk
    }

    /// Adds the next chunk's: none, or as many as every other has.
    ///
    /// # Panics
    /// When there are more or fewer.
    pub fn push(&mut self, super_features: &[u32]) {
        if super_features.is_empty() {
            self.values.resize(self.values.len() + self.per_chunk, 0);
            return;
        }
        assert_eq!(super_features.len(), self.per_chunk);
        // 0 stands for none.
        self.values
            .extend(super_features.iter().map(|&value| value.max(1)));
    }

    /// Those of the chunk of that index.
    #[must_use]
    pub fn of(&self, chunk: usize) -> Option<&[u32]> {
        let values = self
            .values
            .get(chunk * self.per_chunk..(chunk + 1) * self.per_chunk)?;
        (values.first()? != &0).then_some(values)
    }

    /// Memory that they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<u32>()
    }

    /// Column *features*: how many a chunk has, a bit a chunk, then the values of those that have any.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.per_chunk as u8);
        let chunks = self.values.chunks_exact(self.per_chunk.max(1));
        let mut bits = vec![0u8; chunks.len().div_ceil(8)];
        let mut values = Vec::new();
        for (chunk, super_features) in chunks.enumerate() {
            if super_features[0] != 0 {
                bits[chunk / 8] |= 1 << (chunk % 8);
                for value in super_features {
                    values.extend_from_slice(&value.to_le_bytes());
                }
            }
        }
        out.extend_from_slice(&bits);
        out.extend_from_slice(&values);
    }

    /// Reads column *features* of `count` chunks; an empty column is that of none.
    pub(super) fn decode(bytes: &[u8], count: usize) -> Result<Self, DecodeError> {
        let Some((&per_chunk, rest)) = bytes.split_first() else {
            return Ok(Self::default());
        };
        let per_chunk = usize::from(per_chunk);
        let wrong = || DecodeError::new(format!("{} bytes of features", bytes.len()));
        if !(1..=SUPER_FEATURES_MAX).contains(&per_chunk) {
            return Err(wrong());
        }
        let (bits, mut rest) = rest.split_at_checked(count.div_ceil(8)).ok_or_else(wrong)?;
        let with: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
        if rest.len() != with as usize * per_chunk * 4 {
            return Err(wrong());
        }
        let mut values = Vec::with_capacity(count * per_chunk);
        for chunk in 0..count {
            if bits[chunk / 8] >> (chunk % 8) & 1 == 0 {
                values.resize(values.len() + per_chunk, 0);
                continue;
            }
            for _ in 0..per_chunk {
                let (value, after) = rest.split_first_chunk().ok_or_else(wrong)?;
                values.push(u32::from_le_bytes(*value).max(1));
                rest = after;
            }
        }
        if !rest.is_empty() {
            return Err(wrong());
        }
        Ok(Self { per_chunk, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(container: u8, slot: u16) -> ChunkAddress {
        ChunkAddress {
            container: ContainerId(ObjectId([container; 16])),
            slot: Slot(slot),
        }
    }

    fn delta() -> impl Strategy<Value = Option<Delta>> {
        let some = (
            0u8..4,
            any::<u16>(),
            1..=CHUNK_BYTES_MAX,
            any::<bool>(),
            1..=DELTA_DEPTH_MAX,
        );
        prop::option::of(
            some.prop_map(|(container, slot, stored_bytes, prefix, depth)| Delta {
                base: address(container, slot),
                stored_bytes,
                method: match prefix {
                    true => DeltaMethod::Prefix,
                    false => DeltaMethod::Instructions,
                },
                depth,
            }),
        )
    }

    proptest! {
        #[test]
        fn deltas_come_back(deltas in prop::collection::vec(delta(), 0..200)) {
            let (mut foreign, mut column) = (Vec::new(), Vec::new());
            encode_foreign(&deltas, &mut foreign);
            encode_deltas(&deltas, &mut column);
            let slots: Vec<_> = (0..deltas.len() as u16).map(Slot).collect();
            let bases = decode_foreign(&foreign).unwrap();
            let own = address(9, 0).container;
            prop_assert_eq!(decode_deltas(&column, &bases, own, &slots).unwrap(), deltas);
            for end in 0..column.len() {
                prop_assert!(decode_deltas(&column[..end], &bases, own, &slots).is_err());
            }
        }

        #[test]
        fn features_come_back(
            per_chunk in 1usize..5,
            chunks in prop::collection::vec(prop::option::of(any::<u32>()), 0..100),
        ) {
            let mut features = Features::new(per_chunk);
            for value in &chunks {
                let super_features: Vec<u32> = match value {
                    Some(value) => (0..per_chunk as u32).map(|n| value.wrapping_mul(n + 1)).collect(),
                    None => Vec::new(),
                };
                features.push(&super_features);
            }
            let mut column = Vec::new();
            features.encode(&mut column);
            let back = Features::decode(&column, chunks.len()).unwrap();
            prop_assert_eq!(&back, &features);
            for (chunk, value) in chunks.iter().enumerate() {
                prop_assert_eq!(back.of(chunk).is_some(), value.is_some());
            }
            prop_assert!(back.of(chunks.len()).is_none());
            column.push(0);
            prop_assert!(Features::decode(&column, chunks.len()).is_err());
        }
    }

    #[test]
    fn a_base_in_the_section_itself_comes_before() {
        let deltas = [
            None,
            Some(Delta {
                base: address(1, 0),
                stored_bytes: 7,
                method: DeltaMethod::Instructions,
                depth: 1,
            }),
        ];
        let (mut foreign, mut column) = (Vec::new(), Vec::new());
        encode_foreign(&deltas, &mut foreign);
        encode_deltas(&deltas, &mut column);
        let bases = decode_foreign(&foreign).unwrap();
        let slots = [Slot(0), Slot(1)];
        let own = address(1, 0).container;
        assert!(decode_deltas(&column, &bases, own, &slots).is_ok());
        let bases = [address(1, 1)];
        assert!(decode_deltas(&column, &bases, own, &slots).is_err());
        let bases = [address(2, 1)];
        assert!(decode_deltas(&column, &bases, own, &slots).is_ok());
    }

    #[test]
    fn impossible_columns_are_errors() {
        let id = address(1, 0).container;
        let bases = [address(2, 1)];
        // No such base, no bytes, no method, no depth, too deep.
        for column in [
            [2, 5, 5].as_slice(),
            &[1, 0, 5],
            &[1, 5, 4],
            &[1, 5, 1],
            &[1, 5, 129],
        ] {
            assert!(
                decode_deltas(column, &bases, id, &[Slot(0)]).is_err(),
                "{column:?}"
            );
        }
        assert!(decode_deltas(&[1, 5, 5], &bases, id, &[Slot(0)]).is_ok());
        let mut twice = Vec::new();
        for _ in 0..2 {
            twice.extend_from_slice(&[2; 16]);
            twice.extend_from_slice(&[1, 3]);
        }
        assert!(decode_foreign(&twice).is_err());
        assert!(decode_foreign(&[[2; 16].as_slice(), &[0]].concat()).is_err());
        assert!(Features::decode(&[17, 0], 1).is_err());
        assert!(
            Features::decode(&[1, 2], 1).is_err(),
            "a bit beyond the chunks"
        );
    }
}
