//! What a repository holds and what it costs: counted from its objects.

use std::sync::atomic::Ordering;

use engine::container::ContainerKind;
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
    /// Bytes of all stored chunks of file data, before compression.
    pub unique_bytes: u64,
    /// Stored chunks of file data.
    pub chunks: u64,
    /// Stored pages of directories and recipes.
    pub pages: u64,
    /// Containers of file data, and of pages.
    pub data_containers: u64,
    /// Containers of pages.
    pub metadata_containers: u64,
    /// Bytes of containers of file data.
    pub data_container_bytes: u64,
    /// Bytes of containers of pages.
    pub metadata_container_bytes: u64,
    /// Bytes of the metadata regions in containers of file data.
    pub chunk_metadata_bytes: u64,
    /// How full containers of file data are.
    pub data_filling: KindFilling,
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

    /// Logical over stored bytes.
    #[must_use]
    pub fn reduction_ratio(&self) -> Option<f64> {
        ratio(self.logical_bytes, self.stored_bytes())
    }

    /// Groups, metadata and tags over the size of the containers (MACS, §IV-B); the last
    /// container of a run counts with the size that it has.
    #[must_use]
    pub fn filling_ratio(&self) -> Option<f64> {
        let (data, metadata) = (self.data_filling, self.metadata_filling);
        (data.full + data.smaller + metadata.full + metadata.smaller).ratio()
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
                ObjectKind::Key | ObjectKind::Remap | ObjectKind::Run => stats.other_bytes += bytes,
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
            let is_data = metadata
                .sections
                .iter()
                .all(|s| s.kind == ContainerKind::Data);
            let (filling, whole_bytes) = match is_data {
                true => (&mut stats.data_filling, settings.container_bytes),
                false => (
                    &mut stats.metadata_filling,
                    settings.metadata_container_bytes(),
                ),
            };
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
            if is_data {
                stats.data_containers += 1;
                stats.data_container_bytes += object_bytes;
                stats.chunks += summary.chunks;
                stats.unique_bytes += summary.plain_bytes;
                stats.chunk_metadata_bytes += summary.metadata_bytes;
            } else {
                stats.metadata_containers += 1;
                stats.metadata_container_bytes += object_bytes;
                stats.pages += summary.chunks;
            }
            Progress::add(&progress.files_done, 1);
            Progress::add(&progress.bytes_done, object_bytes);
        }
        Ok(())
    }
}
