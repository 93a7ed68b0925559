//! Are the bases of deltas what the metadata of their containers says?

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chunks::check_base;
use super::reader::ReadError;
use crate::container::{ContainerId, ContainerReader, Delta, LoadedSection, Section};

/// A chunk stored as a delta whose base can't be had.
#[derive(Debug)]
pub struct WrongBase {
    /// Its index in the section.
    pub chunk: usize,
    /// What is wrong.
    pub message: String,
    /// Are stored bytes gone or wrong (rather than unreachable just now)?
    pub is_damage: bool,
}

/// The chunks of a section whose bases are not there, can be no bases, or are as deep as the chunk itself.
/// Whether a base that is there can be read is another question. Reads the metadata of the containers
/// of bases, each once.
#[must_use]
pub fn wrong_bases(containers: &ContainerReader, section: &Section) -> Vec<WrongBase> {
    let mut by_container: BTreeMap<ContainerId, Vec<usize>> = BTreeMap::new();
    for chunk in 0..section.chunk_count() {
        if let Some(delta) = section.delta(chunk) {
            let chunks = by_container.entry(delta.base.container).or_default();
            chunks.push(chunk);
        }
    }
    let mut wrong = Vec::new();
    for (container, chunks) in by_container {
        let loaded = containers.section(container).map_err(ReadError::from);
        wrong.extend(wrong_in(containers, section, &chunks, loaded.as_ref()));
    }
    wrong.sort_by_key(|wrong| wrong.chunk);
    wrong
}

/// Those of `chunks`, whose bases lie in one container: in its first place or in others.
fn wrong_in(
    containers: &ContainerReader,
    section: &Section,
    chunks: &[usize],
    bases: Result<&Arc<LoadedSection>, &ReadError>,
) -> Vec<WrongBase> {
    let check_found = |bases: &LoadedSection, delta: &Delta| {
        if let Some(chunk) = bases.section.chunk_in(delta.base.slot) {
            return check_base(&bases.section, chunk, delta);
        }
        let found = containers.find(delta.base)?;
        let (elsewhere, chunk) = found.ok_or(ReadError::NoChunk(delta.base))?;
        check_base(&elsewhere.section, chunk, delta)
    };
    let check = |&chunk: &usize| {
        let delta = section.delta(chunk)?;
        let base = delta.base;
        let (message, is_damage) = match bases {
            Err(error) => (error.to_string(), error.is_damage()),
            Ok(bases) => {
                let error = check_found(bases, delta).err()?;
                (error.to_string(), error.is_damage())
            }
        };
        let address = section.address(chunk);
        Some(WrongBase {
            chunk,
            message: super::reader::base_message(&address, &base, &message),
            is_damage,
        })
    };
    chunks.iter().filter_map(check).collect()
}
