//! The index of fingerprints: which blocks may have that content.
//!
//! A hash table of buckets of 504 bytes, 42 entries of 12 bytes: 56 bits of the fingerprint and the
//! block. Buckets hold 28 entries on average when every block is in it; from a bucket that is full, an
//! entry is forgotten. A candidate counts when the block's record has the whole fingerprint; so the index
//! may be stale or incomplete, and a hit is only ever an optimisation.

use crate::address::Pba;
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::page::{read_u32, read_u64};
use crate::tables::{TableKind, Tables};

const ENTRY_BYTES: usize = 12;
const BUCKET_ENTRIES: usize = TableKind::Index.entry_bytes() / ENTRY_BYTES;

/// Entries of a bucket when every block has one.
const MEAN_ENTRIES: u64 = 28;

/// Candidates that a look-up gives, at most.
pub const CANDIDATES_MAX: usize = 4;

/// Buckets for so many blocks.
#[must_use]
pub fn bucket_count(physical_blocks: u64) -> u64 {
    physical_blocks.div_ceil(MEAN_ENTRIES).max(1)
}

fn bucket(tables: &Tables, fingerprint: Fingerprint) -> u64 {
    let buckets = tables.entries(TableKind::Index);
    ((u128::from(fingerprint.high()) * u128::from(buckets)) >> 64) as u64
}

/// The entry of a fingerprint and a block.
fn entry(fingerprint: Fingerprint, pba: Pba) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..8].copy_from_slice(&(pba.0 | fingerprint.low() << 40).to_le_bytes());
    bytes[8..].copy_from_slice(&((fingerprint.low() >> 24) as u32).to_le_bytes());
    bytes
}

fn entry_pba(bytes: &[u8]) -> Pba {
    Pba(read_u64(bytes, 0) & ((1 << 40) - 1))
}

/// Blocks that may have that fingerprint, newest entries last.
///
/// # Errors
/// When the table can't be read.
pub fn candidates(
    tables: &mut Tables,
    fingerprint: Fingerprint,
) -> Result<([Pba; CANDIDATES_MAX], usize), VolumeError> {
    let mut found = [Pba(0); CANDIDATES_MAX];
    let mut count = 0;
    let bucket = bucket(tables, fingerprint);
    let Some(bytes) = tables.entry(TableKind::Index, bucket)? else {
        return Ok((found, 0));
    };
    let wanted = entry(fingerprint, Pba(0));
    let (low, high) = (read_u64(&wanted, 0) >> 40, read_u32(&wanted, 8));
    for stored in bytes.chunks_exact(ENTRY_BYTES) {
        if read_u32(stored, 8) == high
            && read_u64(stored, 0) >> 40 == low
            && entry_pba(stored) != Pba(0)
            && count < CANDIDATES_MAX
        {
            found[count] = entry_pba(stored);
            count += 1;
        }
    }
    Ok((found, count))
}

/// Whether a block is in its bucket.
///
/// # Errors
/// When the table can't be read.
pub fn contains(
    tables: &mut Tables,
    fingerprint: Fingerprint,
    pba: Pba,
) -> Result<bool, VolumeError> {
    let bucket = bucket(tables, fingerprint);
    let wanted = entry(fingerprint, pba);
    let found = tables.entry(TableKind::Index, bucket)?;
    Ok(found.is_some_and(|bytes| {
        bytes
            .chunks_exact(ENTRY_BYTES)
            .any(|stored| stored == wanted)
    }))
}

/// Remembers a block.
///
/// # Errors
/// When the table can't be read.
pub fn insert(tables: &mut Tables, fingerprint: Fingerprint, pba: Pba) -> Result<(), VolumeError> {
    let bucket = bucket(tables, fingerprint);
    let bytes = tables.entry_mut(TableKind::Index, bucket)?;
    let new = entry(fingerprint, pba);
    let free = bytes
        .chunks_exact(ENTRY_BYTES)
        .position(|stored| entry_pba(stored) == Pba(0));
    // Which one is forgotten is as good as random.
    let at = free.unwrap_or((pba.0 % BUCKET_ENTRIES as u64) as usize) * ENTRY_BYTES;
    bytes[at..at + ENTRY_BYTES].copy_from_slice(&new);
    Ok(())
}

/// Forgets a block.
///
/// # Errors
/// When the table can't be read.
pub fn remove(tables: &mut Tables, fingerprint: Fingerprint, pba: Pba) -> Result<(), VolumeError> {
    let bucket = bucket(tables, fingerprint);
    let gone = entry(fingerprint, pba);
    let Some(bytes) = tables.entry(TableKind::Index, bucket)? else {
        return Ok(());
    };
    let Some(at) = bytes
        .chunks_exact(ENTRY_BYTES)
        .position(|stored| stored == gone)
    else {
        return Ok(());
    };
    let at = at * ENTRY_BYTES;
    tables.entry_mut(TableKind::Index, bucket)?[at..at + ENTRY_BYTES].fill(0);
    Ok(())
}
