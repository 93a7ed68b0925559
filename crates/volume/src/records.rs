//! What is known of each physical block: its fingerprint, how many references it has, an owner.

use crate::address::{Lba, Pba};
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::page::{read_u32, read_u64};
use crate::tables::{TableKind, Tables};

/// What is known of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockRecord {
    /// Of the bytes that clients wrote; unknown after a crash in some persistences.
    pub fingerprint: Fingerprint,
    /// References from the mapping and from pinned generations; 0: the block is free.
    pub references: u32,
    /// A block of the disk that refers to it, or did: where a move begins to look.
    pub owner: Lba,
}

/// The record of a block.
///
/// # Errors
/// When the table can't be read.
pub fn record(tables: &mut Tables, pba: Pba) -> Result<BlockRecord, VolumeError> {
    let Some(bytes) = tables.entry(TableKind::Blocks, pba.0)? else {
        return Ok(BlockRecord::default());
    };
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&bytes[..16]);
    Ok(BlockRecord {
        fingerprint: Fingerprint(fingerprint),
        references: read_u32(bytes, 16),
        owner: Lba(read_u64(bytes, 20)),
    })
}

/// Changes the record of a block.
///
/// # Errors
/// When the table can't be read.
pub fn set_record(tables: &mut Tables, pba: Pba, record: &BlockRecord) -> Result<(), VolumeError> {
    let bytes = tables.entry_mut(TableKind::Blocks, pba.0)?;
    bytes[..16].copy_from_slice(&record.fingerprint.0);
    bytes[16..20].copy_from_slice(&record.references.to_le_bytes());
    bytes[20..28].copy_from_slice(&record.owner.0.to_le_bytes());
    Ok(())
}

/// References of a block.
///
/// # Errors
/// When the table can't be read.
pub fn references(tables: &mut Tables, pba: Pba) -> Result<u32, VolumeError> {
    Ok(tables
        .entry(TableKind::Blocks, pba.0)?
        .map_or(0, |bytes| read_u32(bytes, 16)))
}
