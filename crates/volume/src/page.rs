//! Pages of metadata: 4 KiB, eight sectors of 512 bytes, each with 504 bytes of entries and a checksum.
//!
//! A sector is what a disk writes whole or not at all, and entries never straddle sectors; so a page
//! that was torn while it was written in place is still a page of entries, each old or new.
//! The checksum (XXH3, 64 bits) is seeded with the page's table and number and the sector's number,
//! so that a page that was written elsewhere is not taken for this one. Specified in docs/format/volume.md.

use twox_hash::XxHash3_64;

use crate::address::BLOCK_BYTES;

/// Bytes of a sector.
pub const SECTOR_BYTES: usize = 512;

/// Bytes of entries in a sector.
pub const SECTOR_PAYLOAD_BYTES: usize = SECTOR_BYTES - 8;

/// Sectors of a page.
pub const PAGE_SECTORS: usize = BLOCK_BYTES / SECTOR_BYTES;

/// The bytes of a page.
pub type PageBytes = [u8; BLOCK_BYTES];

/// Which page this is: it goes into the checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageIdentity {
    /// The table's number and level.
    pub table: u8,
    /// Number of the page in that.
    pub page: u64,
}

impl PageIdentity {
    fn seed(self, sector: usize) -> u64 {
        u64::from(self.table) << 56 | (self.page * PAGE_SECTORS as u64 + sector as u64)
    }
}

/// Writes the checksums of all sectors.
pub fn seal(identity: PageIdentity, page: &mut PageBytes) {
    for (number, sector) in page.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        let (payload, checksum) = sector.split_at_mut(SECTOR_PAYLOAD_BYTES);
        let sum = XxHash3_64::oneshot_with_seed(identity.seed(number), payload);
        checksum.copy_from_slice(&sum.to_le_bytes());
    }
}

/// The first sector whose checksum is wrong.
#[must_use]
pub fn first_damaged_sector(identity: PageIdentity, page: &PageBytes) -> Option<usize> {
    page.chunks_exact(SECTOR_BYTES)
        .enumerate()
        .find(|(number, sector)| {
            let (payload, checksum) = sector.split_at(SECTOR_PAYLOAD_BYTES);
            let sum = XxHash3_64::oneshot_with_seed(identity.seed(*number), payload);
            checksum != sum.to_le_bytes()
        })
        .map(|(number, _)| number)
}

/// Where in a page the entry of that number stands, for entries of `entry_bytes`.
#[must_use]
pub fn entry_offset(entry: usize, entry_bytes: usize) -> usize {
    let per_sector = SECTOR_PAYLOAD_BYTES / entry_bytes;
    entry / per_sector * SECTOR_BYTES + entry % per_sector * entry_bytes
}

/// Entries of `entry_bytes` in a page.
#[must_use]
pub const fn entries_per_page(entry_bytes: usize) -> usize {
    SECTOR_PAYLOAD_BYTES / entry_bytes * PAGE_SECTORS
}

/// Reads the 8 bytes at `offset`.
#[must_use]
pub fn read_u64(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

/// Reads the 4 bytes at `offset`.
#[must_use]
pub fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

/// Reads the 2 bytes at `offset`.
#[must_use]
pub fn read_u16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_page_is_intact_and_every_changed_bit_is_noticed() {
        let identity = PageIdentity { table: 3, page: 77 };
        let mut page = [0; BLOCK_BYTES];
        for (at, byte) in page.iter_mut().enumerate() {
            *byte = (at * 31) as u8;
        }
        seal(identity, &mut page);
        assert_eq!(first_damaged_sector(identity, &page), None);
        for bit in (0..BLOCK_BYTES * 8).step_by(97) {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                first_damaged_sector(identity, &page),
                Some(bit / 8 / SECTOR_BYTES)
            );
            page[bit / 8] ^= 1 << (bit % 8);
        }
        let other = PageIdentity { table: 3, page: 78 };
        assert_eq!(first_damaged_sector(other, &page), Some(0));
    }

    #[test]
    fn entries_lie_within_sectors_and_do_not_overlap() {
        for entry_bytes in [8, 12, 28] {
            let mut taken = [false; BLOCK_BYTES];
            for entry in 0..entries_per_page(entry_bytes) {
                let start = entry_offset(entry, entry_bytes);
                assert!((start + entry_bytes - 1) % SECTOR_BYTES < SECTOR_PAYLOAD_BYTES);
                for byte in &mut taken[start..start + entry_bytes] {
                    assert!(!std::mem::replace(byte, true));
                }
            }
        }
    }
}
