//! Places metadata pages (directories, long recipes): their addresses are needed at once,
//! because the pages above them name them.
//!
//! A page goes into the open group only if it would fit its container even uncompressed; so
//! its slot is certain before the group is compressed. Near the end of a container groups get
//! shorter, until what is left is not worth a group.

use std::sync::Arc;

use crate::container::{
    ChunkAddress, Compression, Compressor, ContainerBuilder, ContainerKind, SealedContainer, Slot,
};
use crate::engine::METADATA_GROUP_BYTES;
use crate::fingerprint::Fingerprint;
use crate::format::Vault;

/// Plain bytes at which a group is closed.
const GROUP_BYTES: usize = METADATA_GROUP_BYTES as usize;

/// Room below which a container is closed rather than given another group.
const ROOM_BYTES_MIN: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct MetadataPacker {
    vault: Arc<Vault>,
    container_bytes: u32,
    compressor: Compressor,
    builder: Option<ContainerBuilder>,
    plain: Vec<u8>,
    chunks: Vec<(Fingerprint, u32)>,
    chunk_metadata_bytes: usize,
}

impl MetadataPacker {
    pub fn new(vault: Arc<Vault>, container_bytes: u32, compressor: Compressor) -> Self {
        Self {
            vault,
            container_bytes,
            compressor,
            builder: None,
            plain: Vec::new(),
            chunks: Vec::new(),
            chunk_metadata_bytes: 0,
        }
    }

    /// Gives a page its place. Returns it, and a container that had to be closed before.
    pub fn push(
        &mut self,
        fingerprint: Fingerprint,
        page: &[u8],
    ) -> (ChunkAddress, Option<SealedContainer>) {
        let mut sealed = None;
        if !self.fits(page.len()) {
            self.close_group();
            let room = self
                .builder
                .as_ref()
                .map_or(0, |builder| builder.group_room(1, 64));
            if room < page.len().max(ROOM_BYTES_MIN) {
                sealed = self.close(false);
            }
        }
        let builder = self.builder.get_or_insert_with(|| {
            ContainerBuilder::new(&self.vault, ContainerKind::Metadata, self.container_bytes)
        });
        let address = ChunkAddress {
            container: builder.id(),
            slot: Slot((builder.chunk_count() + self.chunks.len()) as u16),
        };
        self.plain.extend_from_slice(page);
        self.chunks.push((fingerprint, page.len() as u32));
        self.chunk_metadata_bytes += ContainerBuilder::chunk_metadata_bytes(page.len() as u32);
        if self.plain.len() >= GROUP_BYTES {
            self.close_group();
        }
        (address, sealed)
    }

    /// Would the open group and a page of that length fit, uncompressed?
    fn fits(&self, page_bytes: usize) -> bool {
        let metadata_bytes =
            self.chunk_metadata_bytes + ContainerBuilder::chunk_metadata_bytes(page_bytes as u32);
        self.builder.as_ref().is_some_and(|builder| {
            self.plain.len() + page_bytes
                <= builder.group_room(self.chunks.len() + 1, metadata_bytes)
        })
    }

    fn close_group(&mut self) {
        if self.chunks.is_empty() {
            return;
        }
        if let Some(builder) = &mut self.builder {
            match self.compressor.compress(&self.plain) {
                Some(bytes) => builder.push_group(&bytes, Compression::Zstd, &self.chunks),
                None => builder.push_group(&self.plain, Compression::Stored, &self.chunks),
            }
        }
        self.plain.clear();
        self.chunks.clear();
        self.chunk_metadata_bytes = 0;
    }

    /// Closes the open container, if there is one.
    pub fn close(&mut self, is_last: bool) -> Option<SealedContainer> {
        self.close_group();
        Some(self.builder.take()?.finish(is_last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::CompressionLevel;
    use crate::object::ObjectId;
    use std::collections::BTreeMap;
    use zeroize::Zeroizing;

    #[test]
    fn addresses_given_at_once_are_where_the_pages_lie() {
        let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
        let vault = Arc::new(Vault::new(ObjectId([1; 16]), secrets, true));
        let compressor = Compressor::new(CompressionLevel::DEFAULT);
        let mut packer = MetadataPacker::new(vault, 1 << 20, compressor);
        let mut addresses = Vec::new();
        let mut sealed = Vec::new();
        for number in 0..400u32 {
            let mut page = vec![0; 1 + (number as usize * 7919) % 30_000];
            let half = page.len() / 2;
            blake3::Hasher::new_derive_key("page")
                .update(&number.to_le_bytes())
                .finalize_xof()
                .fill(&mut page[..half]);
            let fingerprint = Fingerprint(*blake3::hash(&page).as_bytes());
            let (address, closed) = packer.push(fingerprint, &page);
            sealed.extend(closed);
            addresses.push((address, fingerprint));
        }
        let full = sealed.len();
        sealed.extend(packer.close(true));
        assert!(full >= 2, "the pages fill containers");
        for container in &sealed[..full] {
            assert_eq!(container.bytes.len(), 1 << 20);
            assert!(
                container.filled_bytes * 100 >= 90 << 20,
                "{}",
                container.filled_bytes
            );
        }
        for (address, fingerprint) in addresses {
            let container = sealed
                .iter()
                .find(|container| container.section.id == address.container)
                .unwrap();
            let chunk = container.section.chunk_in(address.slot).unwrap();
            assert_eq!(container.section.fingerprints[chunk], fingerprint);
        }
    }
}
