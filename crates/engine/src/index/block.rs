//! Blocks of an index run: sorted entries, bit-packed (docs/format/v1.md, §11).
//!
//! Enter: entries in strictly ascending order. Leave: plaintexts of exactly
//! [`BLOCK_PLAIN_BYTES`], with as many entries as fit (a new entry may widen the columns of all
//! those before it; the block is full when the widened whole would not fit).
//!
//! All entries of a block have one width, delta + container + slot ≤ 112 bits. With up to 7 bits
//! of shift that is below 128, so one 16-byte load at a byte boundary holds a whole entry; the
//! load never leaves the buffer, because 16 zero bytes stand where the seal's tag was.
//!
//! A prefix is the sum of the deltas before it. Decoding walks the block once to check it, and
//! keeps the sum before every 64th entry (an *anchor*): a search starts at an anchor.
//!
//! Limits: 65,535 entries; a reader refuses what a writer would not write, except that wider
//! columns than necessary are no damage.

use crate::container::Slot;
use crate::format::{DecodeError, Decoder, SEAL_TAG_BYTES};

use super::RunEntry;

/// Stored length of a block.
pub(super) const BLOCK_BYTES: usize = 16_384;

/// Length of a block before it is sealed.
pub(super) const BLOCK_PLAIN_BYTES: usize = BLOCK_BYTES - SEAL_TAG_BYTES;

/// Bytes before the entries.
const HEADER_BYTES: usize = 16;

/// Room for entries.
const ENTRIES_BITS: usize = (BLOCK_PLAIN_BYTES - HEADER_BYTES) * 8;

/// One load of a `u128` holds an entry.
const LOAD_BYTES: usize = 16;

/// Entries from one anchor to the next.
const ANCHOR_ENTRIES: usize = 64;

const _: () = assert!(LOAD_BYTES <= SEAL_TAG_BYTES && 64 + 32 + 16 + 7 <= LOAD_BYTES * 8);

/// Bits of each column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Widths {
    delta: u8,
    container: u8,
    slot: u8,
}

impl Widths {
    fn entry_bits(self) -> usize {
        usize::from(self.delta) + usize::from(self.container) + usize::from(self.slot)
    }

    /// Wide enough for one more entry.
    fn with(self, delta: u64, entry: &RunEntry) -> Self {
        let bits = |value: u64| (64 - value.leading_zeros()) as u8;
        Self {
            delta: self.delta.max(bits(delta)),
            container: self.container.max(bits(u64::from(entry.container))),
            slot: self.slot.max(bits(u64::from(entry.slot.0))),
        }
    }
}

/// Gathers the entries of one block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    entries: Vec<RunEntry>,
    widths: Widths,
}

impl BlockBuilder {
    /// The entries gathered.
    pub(super) fn entries(&self) -> &[RunEntry] {
        &self.entries
    }

    /// Takes `entry` if there is room for it. The caller keeps the order.
    pub(super) fn push(&mut self, entry: RunEntry) -> bool {
        let delta = self
            .entries
            .last()
            .map_or(0, |last| entry.prefix - last.prefix);
        let widths = self.widths.with(delta, &entry);
        let count = self.entries.len() + 1;
        if count > usize::from(u16::MAX) || count * widths.entry_bits() > ENTRIES_BITS {
            return false;
        }
        self.widths = widths;
        self.entries.push(entry);
        true
    }

    /// Appends the plaintext of the block to `out` and starts anew.
    ///
    /// # Panics
    /// Without any entry.
    pub(super) fn encode(&mut self, out: &mut Vec<u8>) {
        let first = self.entries[0].prefix;
        let start = out.len();
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&(self.entries.len() as u16).to_le_bytes());
        out.extend_from_slice(&[self.widths.delta, self.widths.container, self.widths.slot]);
        out.resize(start + BLOCK_BYTES, 0);
        let packed = &mut out[start + HEADER_BYTES..];
        let mut before = first;
        for (index, entry) in self.entries.iter().enumerate() {
            let word = u128::from(entry.prefix - before)
                | u128::from(entry.container) << self.widths.delta
                | u128::from(entry.slot.0) << (self.widths.delta + self.widths.container);
            let bit = index * self.widths.entry_bits();
            let place = &mut packed[bit / 8..][..LOAD_BYTES];
            let mut bytes = [0u8; LOAD_BYTES];
            bytes.copy_from_slice(place);
            let joined = u128::from_le_bytes(bytes) | word << (bit % 8);
            place.copy_from_slice(&joined.to_le_bytes());
            before = entry.prefix;
        }
        out.truncate(start + BLOCK_PLAIN_BYTES);
        self.entries.clear();
        self.widths = Widths::default();
    }
}

/// A block that was read, opened and checked.
#[derive(Debug)]
pub(super) struct Block {
    /// The plaintext and [`LOAD_BYTES`] zeros.
    bytes: Vec<u8>,
    /// For every [`ANCHOR_ENTRIES`]-th entry the prefix of the one before it (at first: its own).
    anchors: Vec<u64>,
    last_prefix: u64,
    count: usize,
    widths: Widths,
}

/// A place in a block: the next entry, and the prefix of the one before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockPlace {
    index: usize,
    before: u64,
}

impl Block {
    /// Checks the plaintext of a block whose run has a table of `containers` ids.
    ///
    /// # Errors
    /// When no writer would have written this.
    pub(super) fn decode(mut bytes: Vec<u8>, containers: usize) -> Result<Self, DecodeError> {
        if bytes.len() != BLOCK_PLAIN_BYTES {
            return Err(DecodeError::new(format!("it has {} bytes", bytes.len())));
        }
        let mut header = Decoder::new(&bytes[..HEADER_BYTES]);
        let first_prefix = header.u64()?;
        let count = usize::from(header.u16()?);
        let widths = Widths {
            delta: header.u8()?,
            container: header.u8()?,
            slot: header.u8()?,
        };
        header.finish_zero()?;
        if widths.delta > 64 || widths.container > 32 || widths.slot > 16 {
            return Err(DecodeError::new(format!(
                "its columns are too wide: {widths:?}"
            )));
        }
        let used_bits = count * widths.entry_bits();
        if count == 0 || used_bits > ENTRIES_BITS {
            return Err(DecodeError::new(format!(
                "{count} entries of {widths:?} can't be"
            )));
        }
        let tail = &bytes[HEADER_BYTES + used_bits / 8..];
        if tail
            .first()
            .is_some_and(|byte| byte >> (used_bits % 8) != 0)
        {
            return Err(DecodeError::new("the bits after its entries are not zero"));
        }
        Decoder::new(tail.get(1..).unwrap_or_default()).finish_zero()?;
        bytes.resize(BLOCK_BYTES, 0);
        let mut block = Self {
            bytes,
            anchors: Vec::with_capacity(count.div_ceil(ANCHOR_ENTRIES)),
            last_prefix: first_prefix,
            count,
            widths,
        };
        block.check_entries(first_prefix, containers)?;
        Ok(block)
    }

    /// Walks all entries once, checks their order and sets the anchors.
    fn check_entries(&mut self, first: u64, containers: usize) -> Result<(), DecodeError> {
        let mut last: Option<RunEntry> = None;
        let mut prefix = first;
        for index in 0..self.count {
            if index % ANCHOR_ENTRIES == 0 {
                self.anchors.push(prefix);
            }
            let (delta, container, slot) = self.columns(index);
            prefix = prefix
                .checked_add(delta)
                .ok_or_else(|| DecodeError::new("its prefixes exceed 64 bits"))?;
            let entry = RunEntry {
                prefix,
                container,
                slot,
            };
            if last.map_or(delta != 0, |last| entry <= last) {
                return Err(DecodeError::new(format!(
                    "its entry {index} is out of order"
                )));
            }
            if container as usize >= containers {
                return Err(DecodeError::new(format!(
                    "it names container {container} of a table of {containers}"
                )));
            }
            last = Some(entry);
        }
        self.last_prefix = prefix;
        Ok(())
    }

    /// The columns of entry `index`, which is below the count.
    fn columns(&self, index: usize) -> (u64, u32, Slot) {
        let bit = index * self.widths.entry_bits();
        let loaded = self.bytes[HEADER_BYTES + bit / 8..]
            .first_chunk::<LOAD_BYTES>()
            .expect("LOAD_BYTES zeros follow the plaintext");
        let word = u128::from_le_bytes(*loaded) >> (bit % 8);
        let mask = |bits: u8| (1u64 << (bits % 64)).wrapping_sub(1);
        let delta = match self.widths.delta {
            64 => word as u64,
            bits => word as u64 & mask(bits),
        };
        let rest = (word >> self.widths.delta) as u64;
        let container = rest & mask(self.widths.container);
        let slot = rest >> self.widths.container & mask(self.widths.slot);
        (delta, container as u32, Slot(slot as u16))
    }

    /// The prefix of the first entry.
    pub(super) fn first_prefix(&self) -> u64 {
        self.anchors[0]
    }

    /// The prefix of the last entry.
    pub(super) fn last_prefix(&self) -> u64 {
        self.last_prefix
    }

    /// Memory that the block takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.anchors.capacity() * 8
    }

    /// The place of the first entry.
    pub(super) fn start(&self) -> BlockPlace {
        BlockPlace {
            index: 0,
            before: self.anchors[0],
        }
    }

    /// The entry at `place`, which moves on; nothing at the end.
    pub(super) fn next(&self, place: &mut BlockPlace) -> Option<RunEntry> {
        if place.index >= self.count {
            return None;
        }
        let (delta, container, slot) = self.columns(place.index);
        place.index += 1;
        place.before += delta;
        Some(RunEntry {
            prefix: place.before,
            container,
            slot,
        })
    }

    /// The entries of `prefix`.
    pub(super) fn search(&self, prefix: u64) -> impl Iterator<Item = RunEntry> + '_ {
        // All entries before the last anchor below `prefix` are below it as well.
        let anchor = self
            .anchors
            .partition_point(|&before| before < prefix)
            .saturating_sub(1);
        let mut place = BlockPlace {
            index: anchor * ANCHOR_ENTRIES,
            before: self.anchors[anchor],
        };
        std::iter::from_fn(move || self.next(&mut place))
            .skip_while(move |entry| entry.prefix < prefix)
            .take_while(move |entry| entry.prefix == prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONTAINERS: usize = 1 << 20;

    /// All entries in blocks, each plaintext with the number of its entries.
    fn pack(entries: &[RunEntry]) -> Vec<(Vec<u8>, usize)> {
        let mut blocks = Vec::new();
        let mut builder = BlockBuilder::default();
        let close = |builder: &mut BlockBuilder, blocks: &mut Vec<_>| {
            let count = builder.entries().len();
            let mut out = Vec::new();
            builder.encode(&mut out);
            blocks.push((out, count));
        };
        for &entry in entries {
            if !builder.push(entry) {
                close(&mut builder, &mut blocks);
                assert!(builder.push(entry), "an empty block has room");
            }
        }
        if !builder.entries().is_empty() {
            close(&mut builder, &mut blocks);
        }
        blocks
    }

    fn unpack(block: &Block) -> Vec<RunEntry> {
        let mut place = block.start();
        std::iter::from_fn(|| block.next(&mut place)).collect()
    }

    fn entries_strategy() -> impl Strategy<Value = Vec<RunEntry>> {
        let prefix = prop_oneof![
            any::<u64>(),
            0..20u64,
            Just(0),
            Just(u64::MAX),
            (u64::MAX - 9)..=u64::MAX,
            any::<u64>().prop_map(|prefix| prefix >> 40),
        ];
        let container = prop_oneof![0..3u32, 0..CONTAINERS as u32];
        let entry =
            (prefix, container, any::<u16>()).prop_map(|(prefix, container, slot)| RunEntry {
                prefix,
                container,
                slot: Slot(slot),
            });
        prop::collection::btree_set(entry, 1..5000).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn entries_come_back_and_are_found(entries in entries_strategy()) {
            let mut unpacked = Vec::new();
            let mut packed = 0;
            for (plain, count) in pack(&entries) {
                prop_assert_eq!(plain.len(), BLOCK_PLAIN_BYTES);
                let block = Block::decode(plain, CONTAINERS).unwrap();
                let own = unpack(&block);
                prop_assert_eq!(own.len(), count);
                prop_assert_eq!(block.first_prefix(), own[0].prefix);
                prop_assert_eq!(block.last_prefix(), own[count - 1].prefix);
                for wanted in own.iter().step_by(37).map(|entry| entry.prefix) {
                    for prefix in [wanted.saturating_sub(1), wanted, wanted.saturating_add(1)] {
                        let found: Vec<_> = block.search(prefix).collect();
                        let model: Vec<_> =
                            own.iter().filter(|entry| entry.prefix == prefix).copied().collect();
                        prop_assert_eq!(found, model);
                    }
                }
                packed += count;
                unpacked.extend(own);
            }
            prop_assert_eq!(packed, entries.len());
            prop_assert_eq!(unpacked, entries);
        }

        #[test]
        fn hostile_blocks_never_panic(
            header in prop::array::uniform16(any::<u8>()),
            count in 0..2000u16,
            widths in (0..70u8, 0..36u8, 0..20u8),
            body in prop::collection::vec(any::<u8>(), 0..4096),
            mend: bool,
        ) {
            let mut plain = vec![0u8; BLOCK_PLAIN_BYTES];
            plain[..16].copy_from_slice(&header);
            if mend {
                plain[8..10].copy_from_slice(&count.to_le_bytes());
                plain[10..13].copy_from_slice(&[widths.0, widths.1, widths.2]);
                plain[13..16].fill(0);
            }
            plain[16..16 + body.len()].copy_from_slice(&body);
            if let Ok(block) = Block::decode(plain, CONTAINERS) {
                let all = unpack(&block);
                prop_assert!(all.is_sorted());
                for entry in &all {
                    prop_assert!(block.search(entry.prefix).any(|found| found == *entry));
                }
            }
        }
    }

    fn entry(prefix: u64, container: u32, slot: u16) -> RunEntry {
        RunEntry {
            prefix,
            container,
            slot: Slot(slot),
        }
    }

    #[test]
    fn packing_is_greedy() {
        // 9 + 6 + 5 bits are not reached at first: the block is filled by the widths that are.
        let entries: Vec<_> = (0..20_000)
            .map(|n| entry(n * 256, (n % 64) as u32, 17))
            .collect();
        let blocks = pack(&entries);
        assert_eq!(blocks[0].1, ENTRIES_BITS / (9 + 6 + 5));
        let equal: Vec<_> = (0..=u16::MAX).map(|slot| entry(7, 0, slot)).collect();
        assert_eq!(
            pack(&equal)[0].1,
            ENTRIES_BITS / 14,
            "slots from 8,192 on need 14 bits"
        );
        let dense: Vec<_> = (0..70_000).map(|n| entry(n, 0, 0)).collect();
        assert_eq!(pack(&dense)[0].1, 65_535);
    }

    #[test]
    fn the_widest_entries_fit() {
        let wide = [entry(0, 0, 0), entry(u64::MAX, u32::MAX, u16::MAX)];
        let (plain, count) = pack(&wide).remove(0);
        assert_eq!(count, 2);
        let block = Block::decode(plain, usize::MAX).unwrap();
        assert_eq!(unpack(&block), wide);
        assert_eq!(block.search(u64::MAX).count(), 1);
    }

    #[test]
    fn malformed_blocks_are_refused() {
        let (good, _) = pack(&[entry(5, 1, 2), entry(9, 0, 3), entry(9, 1, 3)]).remove(0);
        assert!(Block::decode(good.clone(), 2).is_ok());
        assert!(
            Block::decode(good.clone(), 1).is_err(),
            "container 1 of a table of 1"
        );
        assert!(Block::decode(good[1..].to_vec(), 2).is_err());
        assert!(Block::decode(Vec::new(), 2).is_err());
        let refused = |place: usize, value: u8| {
            let mut bad = good.clone();
            assert_ne!(bad[place], value);
            bad[place] = value;
            Block::decode(bad, 2).is_err()
        };
        assert!(refused(8, 0), "no entries");
        assert!(refused(9, 255), "too many entries");
        assert!(refused(8, 2), "bits after the entries");
        assert!(refused(8, 4), "an entry equal to, or below, the one before");
        assert!(
            refused(10, 65) && refused(11, 33) && refused(12, 17),
            "widths"
        );
        assert!(refused(13, 1) && refused(15, 1), "reserved bytes");
        assert!(refused(BLOCK_PLAIN_BYTES - 1, 1), "the last byte");
        let first_delta = good[16] | 1;
        assert!(refused(16, first_delta), "the first delta is zero");
        let mut overflowing = good.clone();
        overflowing[..8].fill(0xff);
        assert!(
            Block::decode(overflowing, 2).is_err(),
            "prefixes above 64 bits"
        );
    }
}
