//! What snapshots need: a bit for each slot.
//!
//! Enter: snapshots. Leaves: for each logical container the slots that their trees, recipes and chunks lie in, and those
//! of the bases that deltas are made of. Nothing is looked up by fingerprint: recipes name slots.
//!
//! A page of a directory or of a long recipe whose bit is set was read before, for whoever refers to it, and is passed
//! over: what snapshots share is visited once. Memory: a bit a slot, some 100 bytes a container, and a page for each
//! level of the deepest path.

use std::collections::{HashMap, VecDeque};

use engine::container::{ChunkAddress, ContainerId, ContainerKind, Slot, SlotSet};
use engine::recipe::{Recipe, Run};
use engine::restore::{ReadError, Reader, Runs};

use super::PruneError;
use crate::progress::Progress;
use crate::snapshot::Snapshot;
use crate::tree::{DirectoryReader, Entry, EntryKind};

/// Slots that are needed.
#[derive(Debug, Default)]
pub struct Marks {
    slots: HashMap<ContainerId, SlotSet>,
}

impl Marks {
    /// Those of a container, if there are any.
    #[must_use]
    pub fn of(&self, container: ContainerId) -> Option<&SlotSet> {
        self.slots.get(&container)
    }

    /// How many slots are needed.
    #[must_use]
    pub fn chunk_count(&self) -> u64 {
        self.slots.values().map(|slots| slots.len() as u64).sum()
    }

    /// Memory that they take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let beside = size_of::<(ContainerId, SlotSet)>() + 1;
        let sets = self.slots.values().map(SlotSet::memory_bytes);
        self.slots.capacity() * beside + sets.sum::<usize>()
    }

    fn insert(&mut self, address: ChunkAddress) -> bool {
        let slots = self.slots.entry(address.container).or_default();
        slots.insert(address.slot)
    }

    /// Marks the slots of a run.
    pub fn insert_run(&mut self, run: &Run) {
        if let Run::Slots {
            container,
            first,
            count,
            ..
        } = *run
        {
            self.slots
                .entry(container)
                .or_default()
                .insert_run(first, count);
        }
    }
}

/// Marks what snapshots need.
pub struct Marking<'a> {
    reader: &'a Reader,
    progress: &'a Progress,
    marks: Marks,
}

/// A directory on the way down: what is left of it.
struct Level {
    pages: Pages,
    entries: VecDeque<Entry>,
}

/// The pages of a directory, in order.
struct Pages {
    runs: Runs,
    slots: Option<(ContainerId, std::ops::Range<u32>)>,
}

impl Pages {
    fn next(&mut self) -> Option<Result<ChunkAddress, ReadError>> {
        loop {
            if let Some((container, slots)) = &mut self.slots
                && let Some(slot) = slots.next()
            {
                return Some(Ok(ChunkAddress {
                    container: *container,
                    slot: Slot(slot as u16),
                }));
            }
            match self.runs.next()? {
                Ok(Run::Slots {
                    container,
                    first: Slot(first),
                    count,
                    ..
                }) => self.slots = Some((container, u32::from(first)..u32::from(first) + count)),
                Ok(Run::Hole { .. }) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<'a> Marking<'a> {
    /// Nothing is marked yet.
    #[must_use]
    pub fn new(reader: &'a Reader, progress: &'a Progress) -> Self {
        Self {
            reader,
            progress,
            marks: Marks::default(),
        }
    }

    /// Marks what a snapshot needs, but for the bases of deltas.
    ///
    /// # Errors
    /// When a part of it can't be read: then nobody knows what it needs.
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), PruneError> {
        let damaged = |error| PruneError::Unreadable {
            snapshot: snapshot.id,
            error: Box::new(error),
        };
        self.tree(&snapshot.root).map_err(damaged)
    }

    fn tree(&mut self, root: &Recipe) -> Result<(), MarkError> {
        let mut levels = vec![self.directory(root)?];
        while let Some(level) = levels.last_mut() {
            if self.progress.is_cancelled() {
                return Err(MarkError::Stopped);
            }
            if let Some(entry) = level.entries.pop_front() {
                match entry.kind {
                    EntryKind::Directory => levels.push(self.directory(&entry.content)?),
                    _ => self.recipe(&entry.content)?,
                }
                continue;
            }
            match level.pages.next() {
                None => drop(levels.pop()),
                Some(page) => {
                    let page = page?;
                    if self.marks.insert(page) {
                        let bytes = self.reader.chunk(page)?;
                        let entries = DirectoryReader::new().page(&bytes);
                        level.entries = entries.map_err(MarkError::Page)?.into();
                    }
                }
            }
        }
        Ok(())
    }

    fn directory(&mut self, recipe: &Recipe) -> Result<Level, MarkError> {
        self.pages_of_recipe(recipe)?;
        Ok(Level {
            pages: Pages {
                runs: self.reader.runs(recipe),
                slots: None,
            },
            entries: VecDeque::new(),
        })
    }

    /// Marks the chunks of a stream, and the pages of its recipe.
    fn recipe(&mut self, recipe: &Recipe) -> Result<(), MarkError> {
        match recipe {
            Recipe::Runs(runs) => {
                for run in runs {
                    self.marks.insert_run(run);
                }
            }
            Recipe::Paged { level, pages } => {
                for page in pages {
                    // A page is one chunk; who was here before has marked what it lists.
                    if self.insert_page(&page.page) {
                        let below = self.reader.recipe_page(page, *level)?;
                        self.recipe(&below)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Marks the pages of a recipe, and not what they list.
    fn pages_of_recipe(&mut self, recipe: &Recipe) -> Result<(), MarkError> {
        if let Recipe::Paged { level, pages } = recipe {
            for page in pages {
                self.insert_page(&page.page);
                if *level > 1 {
                    let below = self.reader.recipe_page(page, *level)?;
                    self.pages_of_recipe(&below)?;
                }
            }
        }
        Ok(())
    }

    fn insert_page(&mut self, runs: &[Run]) -> bool {
        let mut is_new = false;
        for run in runs {
            if let Run::Slots {
                container,
                first: Slot(first),
                count,
                ..
            } = *run
            {
                for slot in (first..=u16::MAX).take(count as usize).map(Slot) {
                    is_new |= self.marks.insert(ChunkAddress { container, slot });
                }
            }
        }
        is_new
    }

    /// Marks the bases of deltas, and their bases, and ends. `deltas` are the containers of deltas that there are.
    ///
    /// # Errors
    /// When the metadata of one that is needed can't be read.
    pub fn finish(mut self, deltas: &[ContainerId]) -> Result<Marks, PruneError> {
        // How many slots of a container were looked at: bases of bases come in later rounds.
        let mut seen: HashMap<ContainerId, usize> = HashMap::new();
        loop {
            let mut is_done = true;
            for &container in deltas {
                let Some(slots) = self.marks.of(container) else {
                    continue;
                };
                let count = slots.len();
                if seen.insert(container, count) == Some(count) {
                    continue;
                }
                is_done = false;
                let slots: Vec<Slot> = slots.iter().collect();
                for slot in slots {
                    let address = ChunkAddress { container, slot };
                    let found = self.reader.containers().find(address)?;
                    let (loaded, chunk) = found.ok_or(PruneError::Missing { address })?;
                    debug_assert_eq!(loaded.section.kind, ContainerKind::Deltas);
                    if let Some(delta) = loaded.section.delta(chunk) {
                        self.marks.insert(delta.base);
                    }
                }
            }
            if is_done {
                return Ok(self.marks);
            }
        }
    }
}

/// Why a snapshot can't be marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// A page of a directory or a recipe can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A page of a directory is not one.
    #[error("a page of a directory is damaged: {0}")]
    Page(engine::format::DecodeError),
    /// Somebody asked for a stop.
    #[error("stopped")]
    Stopped,
}
