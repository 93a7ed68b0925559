//! Verifies whole container objects: seals, padding, decompression, the fingerprint of every
//! chunk that is stored whole. One stored as a delta takes its base to be verified, which lies
//! elsewhere: that is a matter of a [`RestorePlan`](crate::restore::RestorePlan).
//!
//! An object is fetched, whole or its end alone, and then verified: two calls, so that one thread
//! may wait for the store while another computes.

use std::collections::HashSet;
use std::sync::Arc;

use super::groups::GroupOpener;
use super::metadata::ObjectMetadata;
use super::reader::{
    ContainerReader, ContainerSummary, LoadedSection, OBJECT_BYTES_MAX, OpenObject, PADDING_PIECE,
    TAIL_BYTES,
};
use crate::format::{DecodeError, InObject, LENGTH_TAG_BYTES, ObjectError};
use crate::object::{ObjectKey, Tail};
use crate::pipeline::Stage;

/// A container object as it was read from the store.
#[derive(Debug)]
pub struct FetchedObject {
    key: ObjectKey,
    /// The whole object, or its end.
    tail: Tail,
    is_whole: bool,
}

impl ContainerReader {
    /// Bytes that [`ContainerReader::fetch_object`] reads of an object of that length.
    #[must_use]
    pub fn fetch_bytes(object_bytes: u64, whole: bool) -> usize {
        let bytes = object_bytes.min(OBJECT_BYTES_MAX) as usize;
        if whole { bytes } else { bytes.min(TAIL_BYTES) }
    }

    /// Reads an object: the whole of it, or as much of its end as usually holds its metadata.
    ///
    /// # Errors
    /// What the store says; objects that are too long for a container are not read.
    pub fn fetch_object(&self, key: ObjectKey, whole: bool) -> Result<FetchedObject, ObjectError> {
        let tail = if whole {
            let bytes = self.store.get(&key, OBJECT_BYTES_MAX)?;
            let object_bytes = bytes.len() as u64;
            Tail {
                bytes,
                object_bytes,
            }
        } else {
            self.store.get_tail(&key, TAIL_BYTES)?
        };
        Ok(FetchedObject {
            key,
            tail,
            is_whole: whole,
        })
    }

    /// Verifies all that was fetched: the metadata, and what lies before it if that is there.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify_fetched(
        &self,
        fetched: FetchedObject,
        opener: &mut GroupOpener,
    ) -> Result<ContainerSummary, ObjectError> {
        let FetchedObject {
            key,
            tail,
            is_whole,
        } = fetched;
        let unseal = opener.stages().meter(Stage::Unseal);
        let open = unseal.busy(0, || self.open_tail(key, &tail))?;
        let summary = open.summary;
        if is_whole {
            self.verify_data(key, tail.bytes, open, opener)?;
        }
        Ok(summary)
    }

    /// Reads a whole object and verifies all there is.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify_object(&self, key: ObjectKey) -> Result<ContainerSummary, ObjectError> {
        let fetched = self.fetch_object(key, true)?;
        self.verify_fetched(fetched, &mut GroupOpener::default())
    }

    fn verify_data(
        &self,
        key: ObjectKey,
        mut object: Vec<u8>,
        open: OpenObject,
        opener: &mut GroupOpener,
    ) -> Result<(), ObjectError> {
        let data_end = open.summary.data_bytes as usize;
        let metadata_start = object.len() - LENGTH_TAG_BYTES - open.summary.metadata_bytes as usize;
        if data_end < metadata_start {
            let padding = &mut object[data_end..metadata_start];
            let zeros = open
                .sealer
                .open_slice(PADDING_PIECE, padding)
                .in_object(key, "padding")?;
            if zeros.iter().any(|&byte| byte != 0) {
                return Err(DecodeError::new("it is not zero")).in_object(key, "padding");
            }
        }
        let shared = shared_groups(&open.metadata);
        for section in open.metadata.sections {
            let loaded = LoadedSection {
                object: key,
                section: Arc::new(section),
                sealer: Arc::clone(&open.sealer),
            };
            for (index, group) in loaded.section.groups.iter().enumerate() {
                let start = group.offset as usize;
                let sealed = &mut object[start..start + group.sealed_bytes as usize];
                if shared.contains(&group.number) {
                    // Opened in place it would be there once.
                    self.verify_group(&loaded, index, &mut sealed.to_vec(), opener)?;
                } else {
                    self.verify_group(&loaded, index, sealed, opener)?;
                }
            }
        }
        Ok(())
    }

    fn verify_group(
        &self,
        loaded: &LoadedSection,
        index: usize,
        sealed: &mut [u8],
        opener: &mut GroupOpener,
    ) -> Result<(), ObjectError> {
        let stages = opener.stages().clone();
        let plain = opener.open(loaded, index, sealed)?;
        let section = &loaded.section;
        let places = section.places_in(index);
        let chunks = places.first()..places.first() + places.count();
        let verify = stages.meter(Stage::Verify);
        verify.busy(section.groups[index].plain_bytes, || {
            let mut whole = chunks.filter(|&chunk| section.delta(chunk).is_none());
            whole.try_for_each(|chunk| self.verify_chunk(loaded, chunk, &plain[places.of(chunk)]))
        })
    }
}

/// Groups that several sections name.
fn shared_groups(metadata: &ObjectMetadata) -> HashSet<u32> {
    let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
    for group in metadata.sections.iter().flat_map(|section| &section.groups) {
        if !seen.insert(group.number) {
            shared.insert(group.number);
        }
    }
    shared
}
