//! What a repository holds and what it costs: counted from its objects.

use std::sync::atomic::Ordering;

use engine::container::{ContainerKind, ContainerSummary, Delta, ObjectMetadata, Section};
use engine::object::{ObjectId, ObjectKey, ObjectKind};

use crate::progress::{Problem, Progress};
use crate::repository::{Repository, RepositoryError};

/// What a repository holds. Sizes are of stored objects, in bytes, unless said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Snapshots that can be read.
    pub snapshots: u64,
    /// Files in all of them.
    pub files: u64,
    /// Directories and other entries in all of them.
    pub other_entries: u64,
    /// Bytes of all files in all snapshots.
    pub logical_bytes: u64,
    /// Bytes of all stored chunks of file data, before compression of any kind.
    pub unique_bytes: u64,
    /// Stored chunks of file data.
    pub chunks: u64,
    /// Stored pages of directories and recipes.
    pub pages: u64,
    /// What of file data is stored as deltas.
    pub deltas: DeltaStats,
    /// Containers of file data.
    pub data_containers: u64,
    /// Containers of file data that is stored as deltas, mostly.
    pub delta_containers: u64,
    /// Containers of pages.
    pub metadata_containers: u64,
    /// Bytes of containers of file data.
    pub data_container_bytes: u64,
    /// Bytes of containers of deltas.
    pub delta_container_bytes: u64,
    /// Bytes of containers of pages.
    pub metadata_container_bytes: u64,
    /// Bytes of the metadata regions in containers of file data and of deltas.
    pub chunk_metadata_bytes: u64,
    /// How full containers of file data are.
    pub data_filling: KindFilling,
    /// How full containers of deltas are.
    pub delta_filling: KindFilling,
    /// How full containers of pages are.
    pub metadata_filling: KindFilling,
    /// Bytes of index runs.
    pub index_bytes: u64,
    /// Bytes of snapshots.
    pub snapshot_bytes: u64,
    /// Bytes of configuration, keys, remaps.
    pub other_bytes: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
}

/// What of file data is stored as deltas to similar chunks (Odess, §4.3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DeltaStats {
    /// Chunks stored as deltas.
    pub chunks: u64,
    /// Bytes of those chunks.
    pub chunk_bytes: u64,
    /// Bytes of their deltas, before they are compressed together.
    pub delta_bytes: u64,
    /// Sum of what each chunk saves, as a share of its length.
    saved: f64,
    /// Sum of their depths.
    depths: u64,
}

impl DeltaStats {
    fn add(&mut self, chunk_bytes: u32, delta: &Delta) {
        self.chunks += 1;
        self.chunk_bytes += u64::from(chunk_bytes);
        self.delta_bytes += u64::from(delta.stored_bytes);
        self.saved += 1.0 - f64::from(delta.stored_bytes) / f64::from(chunk_bytes);
        self.depths += u64::from(delta.depth);
    }

    /// Delta compression efficiency, DCE (Eq. 13): how much of a chunk its delta saves, on average.
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        (self.chunks > 0).then(|| self.saved / self.chunks as f64)
    }

    /// How many deltas it takes to make a chunk that is stored as one, on average.
    #[must_use]
    pub fn mean_depth(&self) -> Option<f64> {
        ratio(self.depths, self.chunks)
    }
}

/// How full containers of a kind are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindFilling {
    /// Those of the size that containers of this kind have.
    pub full: Filling,
    /// Smaller ones: the last of a backup; where nothing is padded, most.
    pub smaller: Filling,
}

impl KindFilling {
    /// Of all of the kind.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.full + self.smaller).ratio()
    }
}

/// What containers have room for, and what is in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filling {
    /// How many.
    pub containers: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of groups, metadata and tags in them.
    pub filled_bytes: u64,
}

impl Filling {
    /// Groups, metadata and tags over the size of the containers (MACS, §IV-B).
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        ratio(self.filled_bytes, self.bytes)
    }
}

impl std::ops::Add for Filling {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            containers: self.containers + other.containers,
            bytes: self.bytes + other.bytes,
            filled_bytes: self.filled_bytes + other.filled_bytes,
        }
    }
}

impl Stats {
    /// Bytes of all objects.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.data_container_bytes
            + self.delta_container_bytes
            + self.metadata_container_bytes
            + self.index_bytes
            + self.snapshot_bytes
            + self.other_bytes
    }

    /// Logical over unique bytes; nothing when there are none.
    #[must_use]
    pub fn dedup_ratio(&self) -> Option<f64> {
        ratio(self.logical_bytes, self.unique_bytes)
    }

    /// Delta compression ratio, DCR (Odess, Eq. 12): bytes of all stored chunks, over the same with
    /// deltas in the place of those that are stored so.
    #[must_use]
    pub fn delta_compression_ratio(&self) -> Option<f64> {
        let after = self.unique_bytes - self.deltas.chunk_bytes + self.deltas.delta_bytes;
        ratio(self.unique_bytes, after)
    }

    /// Similar chunk ratio, SCR (Odess, Eq. 14): chunks stored as deltas, over those stored whole.
    #[must_use]
    pub fn similar_chunk_ratio(&self) -> Option<f64> {
        ratio(self.deltas.chunks, self.chunks - self.deltas.chunks)
    }

    /// Share of the bytes of stored chunks that deltas stand for.
    #[must_use]
    pub fn delta_share(&self) -> Option<f64> {
        ratio(self.deltas.chunk_bytes, self.unique_bytes)
    }

    /// Logical over stored bytes: the global compression ratio (Odess, §4.3.4).
    #[must_use]
    pub fn reduction_ratio(&self) -> Option<f64> {
        ratio(self.logical_bytes, self.stored_bytes())
    }

    /// Groups, metadata and tags over the size of the containers (MACS, §IV-B); the last
    /// container of a run counts with the size that it has.
    #[must_use]
    pub fn filling_ratio(&self) -> Option<f64> {
        let kinds = [self.data_filling, self.delta_filling, self.metadata_filling];
        let all = kinds.into_iter().map(|kind| kind.full + kind.smaller);
        all.fold(Filling::default(), |sum, kind| sum + kind).ratio()
    }

    /// Adds the chunks of a section.
    fn add_section(&mut self, section: &Section) {
        let lengths = section.lengths.iter().map(|&length| u64::from(length));
        match section.kind {
            ContainerKind::Metadata => self.pages += section.chunk_count() as u64,
            ContainerKind::Data | ContainerKind::Deltas => {
                self.chunks += section.chunk_count() as u64;
                self.unique_bytes += lengths.sum::<u64>();
            }
        }
        for (chunk, &length) in section.lengths.iter().enumerate() {
            if let Some(delta) = section.delta(chunk) {
                self.deltas.add(length, delta);
            }
        }
    }

    /// Adds a container object; `whole_bytes` is the size of whole ones of that kind.
    fn add_object(
        &mut self,
        kind: ContainerKind,
        object_bytes: u64,
        summary: &ContainerSummary,
        whole_bytes: u32,
    ) {
        let (containers, bytes, filling) = match kind {
            ContainerKind::Data => (
                &mut self.data_containers,
                &mut self.data_container_bytes,
                &mut self.data_filling,
            ),
            ContainerKind::Deltas => (
                &mut self.delta_containers,
                &mut self.delta_container_bytes,
                &mut self.delta_filling,
            ),
            ContainerKind::Metadata => (
                &mut self.metadata_containers,
                &mut self.metadata_container_bytes,
                &mut self.metadata_filling,
            ),
        };
        *containers += 1;
        *bytes += object_bytes;
        let part = match object_bytes == u64::from(whole_bytes) {
            true => &mut filling.full,
            false => &mut filling.smaller,
        };
        *part = *part
            + Filling {
                containers: 1,
                bytes: object_bytes,
                filled_bytes: summary.filled_bytes(),
            };
        if kind != ContainerKind::Metadata {
            self.chunk_metadata_bytes += summary.metadata_bytes;
        }
    }

    /// Container metadata and index for each stored chunk.
    #[must_use]
    pub fn metadata_bytes_per_chunk(&self) -> Option<f64> {
        ratio(self.chunk_metadata_bytes + self.index_bytes, self.chunks)
    }

    /// Directory pages, recipes and snapshots for each file of each snapshot.
    #[must_use]
    pub fn metadata_bytes_per_file(&self) -> Option<f64> {
        ratio(
            self.metadata_container_bytes + self.snapshot_bytes,
            self.files,
        )
    }
}

/// What an object with several sections, as a compaction leaves it, counts as.
fn kind_of(metadata: &ObjectMetadata) -> ContainerKind {
    let has = |kind| metadata.sections.iter().any(|section| section.kind == kind);
    let kinds = [ContainerKind::Metadata, ContainerKind::Deltas];
    let found = kinds.into_iter().find(|&kind| has(kind));
    found.unwrap_or(ContainerKind::Data)
}

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

impl Repository {
    /// Counts what the repository holds; reads the metadata of every container.
    ///
    /// # Errors
    /// When the store can't be listed. Unreadable objects are counted and reported.
    pub fn stats(&self, progress: &Progress) -> Result<Stats, RepositoryError> {
        let mut stats = Stats::default();
        for kind in ObjectKind::ALL {
            let mut bytes = 0;
            if kind != ObjectKind::Config {
                self.store()
                    .list(kind, &mut |_, object_bytes| bytes += object_bytes)?;
            }
            match kind {
                ObjectKind::Container => {}
                ObjectKind::Index => stats.index_bytes = bytes,
                ObjectKind::Snapshot => stats.snapshot_bytes = bytes,
                ObjectKind::Config => stats.other_bytes += self.object_bytes(ObjectKey::CONFIG)?,
                ObjectKind::Key
                | ObjectKind::Remap
                | ObjectKind::Run
                | ObjectKind::Condemned
                | ObjectKind::Expired
                | ObjectKind::Epoch => stats.other_bytes += bytes,
            }
        }
        let list = self.snapshots()?;
        for snapshot in &list.snapshots {
            let summary = &snapshot.summary;
            stats.snapshots += 1;
            stats.files += summary.files;
            stats.other_entries += summary.directories + summary.other_entries;
            stats.logical_bytes += summary.files_bytes;
        }
        stats.unreadable += list.unreadable.len() as u64;
        self.count_containers(&mut stats, progress)?;
        Ok(stats)
    }

    fn count_containers(
        &self,
        stats: &mut Stats,
        progress: &Progress,
    ) -> Result<(), RepositoryError> {
        let mut containers: Vec<(ObjectId, u64)> = Vec::new();
        self.store().list(ObjectKind::Container, &mut |id, bytes| {
            containers.push((id, bytes))
        })?;
        containers.sort_unstable();
        progress
            .files_total
            .store(containers.len() as u64, Ordering::Relaxed);
        progress.is_total_known.store(true, Ordering::Relaxed);
        let reader = self.engine().reader()?;
        let settings = self.engine().settings();
        for (id, object_bytes) in containers {
            let key = ObjectKey::new(ObjectKind::Container, id);
            progress.set_current(key.to_string().as_bytes());
            let (metadata, summary) = match reader.containers().object(key) {
                Ok(found) => found,
                Err(error) => {
                    stats.unreadable += 1;
                    progress.report(&Problem {
                        path: key.to_string().into_bytes(),
                        message: error.to_string(),
                        is_error: true,
                    });
                    continue;
                }
            };
            metadata.sections.iter().for_each(|s| stats.add_section(s));
            let kind = kind_of(&metadata);
            let whole_bytes = match kind {
                ContainerKind::Data | ContainerKind::Deltas => settings.container_bytes,
                ContainerKind::Metadata => settings.metadata_container_bytes(),
            };
            stats.add_object(kind, object_bytes, &summary, whole_bytes);
            Progress::add(&progress.files_done, 1);
            Progress::add(&progress.bytes_done, object_bytes);
        }
        Ok(())
    }
}
