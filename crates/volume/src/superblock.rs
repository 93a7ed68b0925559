//! The superblock: what a volume is, and where its metadata begins.
//!
//! Blocks 0 and 1 of the backing store hold one copy each; they are written in turn, so that one is
//! always whole. The valid one with the higher sequence number counts. Specified in
//! docs/format/volume.md; little-endian, the last 16 bytes are XXH3-128 of those before.

use twox_hash::XxHash3_128;

use crate::address::{BLOCK_BYTES, GENERATIONS_MAX, PHYSICAL_BLOCKS_MAX, Pba, Reference};
use crate::error::VolumeError;
use crate::fingerprint::FingerprintKind;
use crate::page::{read_u16, read_u32, read_u64};
use crate::settings::{Persistence, Policy, VolumeSettings};
use crate::stat::{COUNTERS, Counters};

const MAGIC: &[u8; 8] = b"1FVOLUME";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = BLOCK_BYTES - 16;

/// Bytes of the text that says where the journal is.
pub const JOURNAL_BYTES_MAX: usize = 190;

/// Zones that can be uncommitted at a time.
pub const UNCOMMITTED_ZONES_MAX: usize = 64;

/// Pages of the list of generations.
pub const GENERATION_PAGES_MAX: usize = 8;

const UUID_AT: usize = 24;
const SEQUENCE_AT: usize = 40;
const KEY_AT: usize = 88;
const GENERATION_PAGES_AT: usize = 128;
const COUNTERS_AT: usize = 192;
const MAPPED_AT: usize = 304;
const JOURNAL_AT: usize = 320;
const COUNTS_AT: usize = 512;
const VOLUMES_AT: usize = 520;
const ZONES_AT: usize = 776;
const TABLES_AT: usize = 1032;

const _: () = assert!(GENERATION_PAGES_AT + 8 * GENERATION_PAGES_MAX <= COUNTERS_AT);
const _: () = assert!(COUNTERS_AT + 8 * COUNTERS <= MAPPED_AT);
const _: () = assert!(JOURNAL_AT + 2 + JOURNAL_BYTES_MAX <= COUNTS_AT);
const _: () = assert!(ZONES_AT + 4 * UNCOMMITTED_ZONES_MAX <= TABLES_AT);

/// Where a table's pages are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRoot {
    /// Number of the table.
    pub table: u8,
    /// Entries it has room for.
    pub entries: u64,
    /// Its root pages; none when the table is empty.
    pub roots: Vec<Reference>,
}

/// Whether the roots of tables with so many root pages each fit into a superblock.
#[must_use]
pub fn has_room_for_roots(roots: impl Iterator<Item = usize>) -> bool {
    roots.map(|roots| 16 + 8 * roots).sum::<usize>() <= CHECKSUM_AT - TABLES_AT
}

/// What a volume is, and where its metadata begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Superblock {
    /// Random; it goes into every part of a window.
    pub uuid: [u8; 16],
    /// Higher in the newer of the two copies.
    pub sequence: u64,
    /// What the volume was made with. `size_bytes` may have grown since.
    pub settings: VolumeSettings,
    /// Blocks of the backing store that are used.
    pub physical_blocks: u64,
    /// Whether the volume was closed after everything was committed.
    pub clean: bool,
    /// The generation that references are made in now.
    pub generation: u32,
    /// Windows up to this one are in the tables.
    pub committed_window: u64,
    /// Key of fingerprints.
    pub fingerprint_key: [u8; 32],
    /// Pages of the list of pinned generations.
    pub generation_pages: Vec<Reference>,
    /// What was done in the volume's life.
    pub counters: Counters,
    /// Blocks of the disk that hold something, by the tables.
    pub mapped_blocks: u64,
    /// Zones that may hold windows that are not in the tables, in the order they are filled.
    pub uncommitted_zones: Vec<u32>,
    /// The tables.
    pub tables: Vec<TableRoot>,
}

/// Why 4 KiB are no superblock that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SuperblockError {
    /// It does not begin as one.
    #[error("no superblock")]
    NotOne,
    /// The checksum is wrong.
    #[error("the superblock's checksum is wrong")]
    Checksum,
    /// Written by a newer version.
    #[error("{0}")]
    Unsupported(String),
    /// The checksum is right and the contents are impossible.
    #[error("the superblock says {0}")]
    Impossible(String),
}

impl Superblock {
    /// The stored form.
    ///
    /// # Panics
    /// When lists are longer than they may be.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        let settings = &self.settings;
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, UUID_AT, &self.uuid);
        put(&mut bytes, SEQUENCE_AT, &self.sequence.to_le_bytes());
        put(&mut bytes, 48, &settings.sector_bytes.to_le_bytes());
        put(&mut bytes, 52, &settings.zone_blocks.to_le_bytes());
        put(&mut bytes, 56, &self.physical_blocks.to_le_bytes());
        bytes[64] = settings.policy as u8;
        bytes[65] = settings.persistence as u8;
        bytes[66] = settings.fingerprint as u8;
        bytes[67] = u8::from(self.clean);
        put(&mut bytes, 68, &settings.window_blocks.to_le_bytes());
        put(&mut bytes, 72, &settings.commit_zones.to_le_bytes());
        put(&mut bytes, 76, &self.generation.to_le_bytes());
        put(&mut bytes, 80, &self.committed_window.to_le_bytes());
        put(&mut bytes, KEY_AT, &self.fingerprint_key);
        assert!(self.generation_pages.len() <= GENERATION_PAGES_MAX);
        bytes[120] = self.generation_pages.len() as u8;
        for (number, page) in self.generation_pages.iter().enumerate() {
            let at = GENERATION_PAGES_AT + 8 * number;
            put(&mut bytes, at, &page.bits().to_le_bytes());
        }
        for (number, value) in self.counters.values().into_iter().enumerate() {
            put(&mut bytes, COUNTERS_AT + 8 * number, &value.to_le_bytes());
        }
        put(&mut bytes, MAPPED_AT, &self.mapped_blocks.to_le_bytes());
        let journal = settings.journal.as_bytes();
        assert!(journal.len() <= JOURNAL_BYTES_MAX);
        put(
            &mut bytes,
            JOURNAL_AT,
            &(journal.len() as u16).to_le_bytes(),
        );
        put(&mut bytes, JOURNAL_AT + 2, journal);
        put(&mut bytes, COUNTS_AT, &1u16.to_le_bytes());
        assert!(self.uncommitted_zones.len() <= UNCOMMITTED_ZONES_MAX);
        let zones = self.uncommitted_zones.len() as u16;
        put(&mut bytes, COUNTS_AT + 2, &zones.to_le_bytes());
        put(
            &mut bytes,
            COUNTS_AT + 4,
            &(self.tables.len() as u16).to_le_bytes(),
        );
        let logical = settings.logical_blocks();
        put(&mut bytes, VOLUMES_AT + 8, &logical.to_le_bytes());
        for (number, zone) in self.uncommitted_zones.iter().enumerate() {
            put(&mut bytes, ZONES_AT + 4 * number, &zone.to_le_bytes());
        }
        let mut at = TABLES_AT;
        for table in &self.tables {
            assert!(at + 16 + 8 * table.roots.len() <= CHECKSUM_AT);
            bytes[at] = table.table;
            put(
                &mut bytes,
                at + 2,
                &(table.roots.len() as u16).to_le_bytes(),
            );
            put(&mut bytes, at + 8, &table.entries.to_le_bytes());
            at += 16;
            for root in &table.roots {
                put(&mut bytes, at, &root.bits().to_le_bytes());
                at += 8;
            }
        }
        let checksum = XxHash3_128::oneshot(&bytes[..CHECKSUM_AT]).to_le_bytes();
        put(&mut bytes, CHECKSUM_AT, &checksum);
        bytes
    }

    /// From the stored form.
    ///
    /// # Errors
    /// When it is none, damaged, or of a version or with features that are not known.
    pub fn decode(bytes: &[u8]) -> Result<Self, SuperblockError> {
        if bytes.len() != BLOCK_BYTES || &bytes[..8] != MAGIC {
            return Err(SuperblockError::NotOne);
        }
        let checksum = XxHash3_128::oneshot(&bytes[..CHECKSUM_AT]).to_le_bytes();
        if bytes[CHECKSUM_AT..] != checksum {
            return Err(SuperblockError::Checksum);
        }
        let version = read_u32(bytes, 8);
        if version != VERSION {
            return Err(SuperblockError::Unsupported(format!("format {version}")));
        }
        let (read_only_features, features) = (read_u32(bytes, 16), read_u32(bytes, 20));
        if features != 0 || read_only_features != 0 {
            return Err(SuperblockError::Unsupported(format!(
                "features {features:#x}, {read_only_features:#x}"
            )));
        }
        let impossible = |what: &str| SuperblockError::Impossible(what.to_owned());
        if read_u16(bytes, COUNTS_AT) != 1 {
            return Err(SuperblockError::Unsupported(
                "several disks in one pool".to_owned(),
            ));
        }
        let journal_bytes = usize::from(read_u16(bytes, JOURNAL_AT));
        if journal_bytes > JOURNAL_BYTES_MAX {
            return Err(impossible("the journal's description is too long"));
        }
        let journal = &bytes[JOURNAL_AT + 2..JOURNAL_AT + 2 + journal_bytes];
        let logical_blocks = read_u64(bytes, VOLUMES_AT + 8);
        let settings = VolumeSettings {
            size_bytes: logical_blocks
                .checked_mul(BLOCK_BYTES as u64)
                .ok_or_else(|| impossible("a size beyond all bounds"))?,
            sector_bytes: read_u32(bytes, 48),
            policy: Policy::from_number(bytes[64]).ok_or_else(|| impossible("no known policy"))?,
            persistence: Persistence::from_number(bytes[65])
                .ok_or_else(|| impossible("no known persistence"))?,
            fingerprint: FingerprintKind::from_number(bytes[66])
                .ok_or_else(|| impossible("no known fingerprint"))?,
            zone_blocks: read_u32(bytes, 52),
            window_blocks: read_u32(bytes, 68),
            commit_zones: read_u32(bytes, 72),
            journal: String::from_utf8(journal.to_vec())
                .map_err(|_| impossible("the journal's description is no text"))?,
        };
        settings
            .check()
            .map_err(|error| SuperblockError::Impossible(error.to_string()))?;
        let physical_blocks = read_u64(bytes, 56);
        if physical_blocks >= PHYSICAL_BLOCKS_MAX
            || physical_blocks < u64::from(settings.zone_blocks)
        {
            return Err(impossible("an impossible number of blocks"));
        }
        if !physical_blocks.is_multiple_of(u64::from(settings.zone_blocks)) {
            return Err(impossible("a part of a zone"));
        }
        if !(1..GENERATIONS_MAX).contains(&read_u32(bytes, 76)) {
            return Err(impossible("no possible generation"));
        }
        let reference = |at| checked_reference(read_u64(bytes, at), physical_blocks);
        let generation_pages = usize::from(bytes[120]);
        if generation_pages > GENERATION_PAGES_MAX {
            return Err(impossible("too many pages of generations"));
        }
        let generation_pages = (0..generation_pages)
            .map(|number| reference(GENERATION_PAGES_AT + 8 * number))
            .collect::<Result<_, _>>()?;
        let zones = usize::from(read_u16(bytes, COUNTS_AT + 2));
        if zones > UNCOMMITTED_ZONES_MAX {
            return Err(impossible("too many uncommitted zones"));
        }
        let uncommitted_zones: Vec<u32> = (0..zones)
            .map(|number| read_u32(bytes, ZONES_AT + 4 * number))
            .collect();
        let zone_count = physical_blocks / u64::from(settings.zone_blocks);
        if uncommitted_zones
            .iter()
            .any(|&zone| zone == 0 || u64::from(zone) >= zone_count)
        {
            return Err(impossible("an uncommitted zone that is not there"));
        }
        let mut tables = Vec::new();
        let mut at = TABLES_AT;
        for _ in 0..read_u16(bytes, COUNTS_AT + 4) {
            if at + 16 > CHECKSUM_AT {
                return Err(impossible("too many tables"));
            }
            let count = usize::from(read_u16(bytes, at + 2));
            if at + 16 + 8 * count > CHECKSUM_AT {
                return Err(impossible("too many pages of roots"));
            }
            tables.push(TableRoot {
                table: bytes[at],
                entries: read_u64(bytes, at + 8),
                roots: (0..count)
                    .map(|number| reference(at + 16 + 8 * number))
                    .collect::<Result<_, _>>()?,
            });
            at += 16 + 8 * count;
        }
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[UUID_AT..UUID_AT + 16]);
        let mut fingerprint_key = [0; 32];
        fingerprint_key.copy_from_slice(&bytes[KEY_AT..KEY_AT + 32]);
        let mut counters = [0; COUNTERS];
        for (number, value) in counters.iter_mut().enumerate() {
            *value = read_u64(bytes, COUNTERS_AT + 8 * number);
        }
        Ok(Self {
            uuid,
            sequence: read_u64(bytes, SEQUENCE_AT),
            settings,
            physical_blocks,
            clean: bytes[67] == 1,
            generation: read_u32(bytes, 76),
            committed_window: read_u64(bytes, 80),
            fingerprint_key,
            generation_pages,
            counters: Counters::from_values(counters),
            mapped_blocks: read_u64(bytes, MAPPED_AT),
            uncommitted_zones,
            tables,
        })
    }

    /// The copy that counts, of the two in blocks 0 and 1.
    ///
    /// # Errors
    /// When neither is one.
    pub fn choose(first: &[u8], second: &[u8]) -> Result<Self, VolumeError> {
        let newest = match (Self::decode(first), Self::decode(second)) {
            (Ok(one), Ok(other)) if one.sequence >= other.sequence => Ok(one),
            (Ok(_), Ok(other)) => Ok(other),
            // A newer version may have written the other copy.
            (Err(SuperblockError::Unsupported(what)), _)
            | (_, Err(SuperblockError::Unsupported(what))) => {
                Err(SuperblockError::Unsupported(what))
            }
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
            (Err(SuperblockError::NotOne), Err(error)) | (Err(error), Err(_)) => Err(error),
        };
        newest.map_err(|error| match error {
            SuperblockError::NotOne => VolumeError::NotAVolume(error.to_string()),
            SuperblockError::Unsupported(what) => VolumeError::Unsupported(what),
            other => VolumeError::Damaged(format!("both superblocks: {other}")),
        })
    }

    /// The block that the copy of this sequence number goes to.
    #[must_use]
    pub fn place(&self) -> Pba {
        Pba(self.sequence % 2)
    }
}

fn checked_reference(bits: u64, physical_blocks: u64) -> Result<Reference, SuperblockError> {
    let reference = Reference::from_bits(bits);
    match reference.pba() {
        Some(pba) if pba.0 < physical_blocks => Ok(reference),
        None if bits == 0 => Ok(reference),
        _ => Err(SuperblockError::Impossible(
            "a page that is not there".to_owned(),
        )),
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        Superblock {
            uuid: [3; 16],
            sequence: 12,
            settings: VolumeSettings::new(1 << 30),
            physical_blocks: 300_032,
            clean: true,
            generation: 9,
            committed_window: 88,
            fingerprint_key: [4; 32],
            generation_pages: vec![Reference::new(Pba(5), 2)],
            counters: Counters {
                syncs: 7,
                ..Counters::default()
            },
            mapped_blocks: 77,
            uncommitted_zones: vec![1, 2, 70],
            tables: vec![TableRoot {
                table: 1,
                entries: 262_144,
                roots: vec![Reference::new(Pba(4711), 9), Reference::NONE],
            }],
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let superblock = sample();
        assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
    }

    #[test]
    fn the_newer_whole_copy_counts() {
        let old = sample().encode();
        let mut newer = sample();
        newer.sequence += 1;
        let new = newer.encode();
        let sequence = |a: &[u8], b: &[u8]| Superblock::choose(a, b).map(|found| found.sequence);
        assert_eq!(sequence(&old, &new).unwrap(), 13);
        assert_eq!(sequence(&new, &old).unwrap(), 13);
        let mut torn = new.clone();
        torn[512..].copy_from_slice(&vec![0; BLOCK_BYTES - 512]);
        assert_eq!(sequence(&old, &torn).unwrap(), 12);
        assert!(matches!(
            sequence(&torn, &torn),
            Err(VolumeError::Damaged(_))
        ));
        let nothing = vec![0; BLOCK_BYTES];
        assert!(matches!(
            sequence(&nothing, &nothing),
            Err(VolumeError::NotAVolume(_))
        ));
    }

    #[test]
    fn impossible_contents_are_errors() {
        let resealed = |change: &dyn Fn(&mut [u8])| {
            let mut bytes = sample().encode();
            change(&mut bytes);
            let checksum = XxHash3_128::oneshot(&bytes[..CHECKSUM_AT]).to_le_bytes();
            bytes[CHECKSUM_AT..].copy_from_slice(&checksum);
            Superblock::decode(&bytes)
        };
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (at, value) = ((random >> 20) as usize % CHECKSUM_AT, (random >> 50) as u8);
            // Whatever it says, nothing panics.
            let _ = resealed(&|bytes: &mut [u8]| bytes[at] = value);
        }
        assert!(matches!(
            resealed(&|bytes: &mut [u8]| bytes[20] = 1),
            Err(SuperblockError::Unsupported(_))
        ));
        assert!(matches!(
            resealed(&|bytes: &mut [u8]| put(bytes, TABLES_AT + 16, &u64::MAX.to_le_bytes())),
            Err(SuperblockError::Impossible(_))
        ));
    }
}
