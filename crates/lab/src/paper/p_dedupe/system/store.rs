//! Stage 4: distinct chunks in containers, files as recipes (§3.1, Fig. 4), all in memory: the paper's
//! lie on a RAM disk (§4.1), so that storing is no bottleneck.

use super::stages::{Fingerprint, LookedUp};

/// A container takes chunks up to so many bytes (§3.1).
const CONTAINER_BYTES: usize = 4 << 20;

/// Where a distinct chunk lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of its container.
    pub container: u32,
    /// Where in it the chunk begins.
    pub start: u32,
    /// Its length.
    pub bytes: u32,
}

/// A chunk of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipeEntry {
    /// What it is.
    pub fingerprint: Fingerprint,
    /// Where it lies.
    pub place: Place,
}

/// What deduplication stores.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Store {
    containers: Vec<Vec<u8>>,
    /// Of distinct chunks, by their numbers.
    places: Vec<Place>,
    /// Of files, by their numbers.
    recipes: Vec<Vec<RecipeEntry>>,
}

impl Store {
    /// A store of so many files, all empty.
    pub fn new(files: usize) -> Self {
        Self {
            recipes: vec![Vec::new(); files],
            ..Self::default()
        }
    }

    /// Writes chunks, in the order in which they were looked up: the new ones into containers, all
    /// of them into the recipe of their file.
    pub fn write(&mut self, looked_up: &LookedUp<'_>) {
        let chunks = &looked_up.chunks;
        let entries = chunks.unit.chunks().zip(&chunks.fingerprints);
        for ((chunk, fingerprint), &number) in entries.zip(&looked_up.numbers) {
            if number as usize == self.places.len() {
                let place = self.add(chunk);
                self.places.push(place);
            }
            self.recipes[chunks.unit.file].push(RecipeEntry {
                fingerprint: *fingerprint,
                place: self.places[number as usize],
            });
        }
    }

    fn add(&mut self, chunk: &[u8]) -> Place {
        let has_room = |container: &Vec<u8>| container.len() + chunk.len() <= CONTAINER_BYTES;
        if !self.containers.last().is_some_and(has_room) {
            let capacity = CONTAINER_BYTES.max(chunk.len());
            self.containers.push(Vec::with_capacity(capacity));
        }
        let number = self.containers.len() - 1;
        let container = &mut self.containers[number];
        let place = Place {
            container: number as u32,
            start: container.len() as u32,
            bytes: chunk.len() as u32,
        };
        container.extend_from_slice(chunk);
        place
    }

    /// The recipe of a file.
    #[cfg(test)]
    pub fn recipe(&self, file: usize) -> &[RecipeEntry] {
        &self.recipes[file]
    }

    /// The bytes of a file.
    #[cfg(test)]
    pub fn read(&self, file: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for RecipeEntry { place, .. } in &self.recipes[file] {
            let (start, length) = (place.start as usize, place.bytes as usize);
            let container = &self.containers[place.container as usize];
            bytes.extend_from_slice(&container[start..start + length]);
        }
        bytes
    }

    /// Bytes of distinct chunks.
    pub fn bytes_unique(&self) -> u64 {
        let bytes = self.containers.iter().map(|container| container.len());
        bytes.sum::<usize>() as u64
    }
}
