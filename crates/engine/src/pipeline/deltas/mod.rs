//! New chunks that resemble others are stored as deltas (Odess; design.md, 'Deltas').
//!
//! ```text
//! new chunk ──▶ a base? ──no──▶ group ──▶ compress ──▶ pack            containers of data
//!                 │ yes
//!                 └──▶ batch ──▶ encode ──▶ group, compress, pack      containers of deltas
//!    the thread that decides      workers        one thread
//! ```
//!
//! Which of the two ways a chunk goes is decided at once, by its super-features; whether its delta is
//! worth it turns out later, and if not it is stored whole among the deltas. What is decided, and so
//! what is stored, follows from the input and from what the repository held: which bases can be had
//! depends on numbers and sizes of groups, never on how far other threads are.
//!
//! **A delta is never stored before its base.** A process that dies leaves containers that no index run
//! covers, and the next backup takes them up: so a container of deltas goes to the store when those of
//! its bases are durable. To have nothing wait for a container that is still open, a chunk of this run
//! that is stored whole becomes a base once its container is sealed, not before. A chunk stored as a
//! delta is one as soon as its batch is on its way: it lies in the same container, or an earlier one.
//!
//! **Nothing waits for itself**: encoders and the packer of deltas wait for sealed containers to be
//! durable, and the thread that decides for both packers, but only for groups that it closed before.

mod encoding;
mod level;
mod numbers;
mod packing;
mod recent;
mod search;

pub use level::DeltaLevel;

use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use self::encoding::{BaseBytes, DeltaBatch, DeltaDone, DeltaDraft, DeltaJob, start_encoding};
use self::numbers::Known;
use self::packing::DeltaPacker;
use self::recent::{GroupEnd, RecentChunks, RecentEnds, RecentGroup};
use self::search::{BaseCandidate, BaseSearch};
use super::WriteError;
use super::budget::{Failure, Stopped, lock};
use super::ordered::JobSender;
use super::packer::{BasePlace, Packer, PlainGroup, SharedPlacements};
use super::put_pool::PutPool;
use super::stages::{Stage, Stages};
use crate::container::{ChunkAddress, ContainerId, ContainerKind, DeltaMethod, SUPER_FEATURES_MAX};
use crate::engine::EngineSettings;
use crate::fingerprint::Fingerprint;
use crate::format::ObjectError;
use crate::index::Index;
use crate::restore::{Reader, WantedChunks};
use crate::similarity::base_choice::BaseChoice;
use crate::similarity::{Detection, DetectionError, Detector};

/// Chunks that go to an encoder at a time, in bytes.
const BATCH_BYTES: usize = 64 << 10;

/// How similar chunks are found and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaSettings {
    /// How super-features come about.
    pub detection: Detection,
    /// Which of several similar chunks is the base.
    pub choice: BaseChoice,
    /// Most deltas from a chunk to one that is stored whole: 1 to 15.
    pub depth_max: u8,
    /// The kind of delta.
    pub method: DeltaMethod,
}

/// Most that [`DeltaSettings::depth_max`] can be: what the super-feature index has bits for.
pub const WRITTEN_DEPTH_MAX: u8 = 15;

/// Settings of deltas that are impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaSettingsError {
    /// Super-features can't come about so.
    #[error(transparent)]
    Detection(#[from] DetectionError),
    /// More of them than a container says of a chunk.
    #[error("{count} super-features a chunk are impossible: at most {SUPER_FEATURES_MAX} can be")]
    SuperFeatures {
        /// How many there would be.
        count: usize,
    },
    /// Too deep, or no deltas at all.
    #[error("a depth of {depth_max} is impossible: from 1 to {WRITTEN_DEPTH_MAX} can be")]
    Depth {
        /// What was asked for.
        depth_max: u8,
    },
}

impl DeltaSettings {
    /// As small as it gets.
    #[must_use]
    pub fn best() -> Self {
        Self {
            detection: Detection::new(Detector::OdessPlus),
            choice: BaseChoice::Best,
            depth_max: 8,
            method: DeltaMethod::Instructions,
        }
    }

    /// With bases that are stored whole only, so that what is read back needs one more chunk at most.
    #[must_use]
    pub fn fast() -> Self {
        Self {
            depth_max: 1,
            ..Self::best()
        }
    }

    /// Are they possible?
    ///
    /// # Errors
    /// Which is not.
    pub fn check(&self) -> Result<(), DeltaSettingsError> {
        self.detection.check()?;
        let count = self.detection.super_features();
        if count > SUPER_FEATURES_MAX {
            return Err(DeltaSettingsError::SuperFeatures { count });
        }
        let depth_max = self.depth_max;
        if !(1..=WRITTEN_DEPTH_MAX).contains(&depth_max) {
            return Err(DeltaSettingsError::Depth { depth_max });
        }
        Ok(())
    }
}

/// Where a base lies, and its bytes.
type Base = (BasePlace, BaseBytes);

/// The row of deltas, from the thread that decides on.
pub(super) struct DeltaStage {
    search: BaseSearch,
    /// New chunks that are stored whole, and those that are deltas.
    whole: RecentEnds,
    deltas: RecentChunks,
    /// Bases that encoders will read.
    wanted: Arc<WantedChunks>,
    batch: Vec<DeltaDraft>,
    batch_bytes: Vec<u8>,
    next_sequence: u64,
    next_offset: u64,
    /// Bytes of chunks since groups of deltas were closed.
    unclosed_bytes: usize,
    /// Deltas with smaller numbers are in closed groups.
    closed_end: u64,
    jobs: Option<JobSender<DeltaJob, DeltaDone>>,
    packer: Option<JoinHandle<()>>,
    placements: Arc<SharedPlacements>,
    stages: Stages,
}

/// What the stage works with.
pub(super) struct DeltaParts<'a> {
    pub settings: &'a EngineSettings,
    pub with: &'a DeltaSettings,
    pub reader: &'a Reader,
    pub packer: Packer,
    pub puts: &'a PutPool,
    pub stages: &'a Stages,
    pub failure: &'a Failure,
}

impl DeltaStage {
    /// Starts its threads.
    ///
    /// # Errors
    /// When the settings are impossible, or the system starts no more threads.
    pub fn start(parts: DeltaParts<'_>) -> Result<Self, WriteError> {
        let DeltaParts {
            settings,
            with,
            reader,
            packer,
            puts,
            stages,
            failure,
        } = parts;
        let shares = settings.shares();
        let search = BaseSearch::new(with, shares.feature_bytes)?;
        let wanted = Arc::new(WantedChunks::default());
        let encoding = start_encoding(settings, with, reader, &wanted, puts, stages, failure);
        let (jobs, done) = encoding.map_err(WriteError::Threads)?;
        let placements = Arc::clone(&packer.placements);
        let packer = DeltaPacker { packer };
        let packer = thread::Builder::new()
            .name("pack-deltas".to_owned())
            .spawn(move || packer.run(done))
            .map_err(WriteError::Threads)?;
        Ok(Self {
            search,
            whole: RecentEnds::new(shares.recent_bytes / 2),
            deltas: RecentChunks::new(shares.recent_bytes),
            wanted,
            batch: Vec::new(),
            batch_bytes: Vec::new(),
            next_sequence: 0,
            next_offset: 0,
            unclosed_bytes: 0,
            closed_end: 0,
            jobs: Some(jobs),
            packer: Some(packer),
            placements,
            stages: stages.clone(),
        })
    }

    /// Looks for a base of a new chunk. Nothing: it is to be stored whole.
    pub fn find_base(
        &mut self,
        chunk: &[u8],
        index: &mut Index,
    ) -> Result<Option<(Base, u8)>, ObjectError> {
        self.search.look_at(chunk, index)?;
        let (whole, deltas, placements) = (&self.whole, &self.deltas, &self.placements);
        let place = |candidate: BaseCandidate| match candidate.known {
            Known::Stored { container, slot } => {
                let address = ChunkAddress { container, slot };
                let base = (BasePlace::At(address), BaseBytes::Stored(address));
                index.is_live(container).then_some(base)
            }
            Known::New { kind, sequence } => {
                let sealed_before = match kind {
                    ContainerKind::Deltas => {
                        if let Some(chunk) = deltas.get(sequence) {
                            let place = BasePlace::Numbered(sequence);
                            return Some((place, BaseBytes::Recent(chunk)));
                        }
                        deltas.sealed_before
                    }
                    ContainerKind::Data | ContainerKind::Metadata => whole.sealed_before,
                };
                if sequence >= sealed_before {
                    return None;
                }
                let address = lock(&placements.state).of(kind).address(sequence)?;
                Some((BasePlace::At(address), BaseBytes::Sealed(address)))
            }
        };
        Ok(self.search.find(place))
    }

    /// The super-features of the chunk that a base was looked for, if it may be a base itself.
    pub fn super_features(&self) -> &[u32] {
        self.search.super_features()
    }

    /// The chunk that a base was looked for is stored whole, under this number.
    pub fn stored_whole(&mut self, sequence: u64) {
        self.search.stored(ContainerKind::Data, sequence, 0);
    }

    /// Stores the chunk that a base was found for; says under which number, and after how many bytes of
    /// such chunks.
    pub fn push(
        &mut self,
        fingerprint: Fingerprint,
        chunk: &[u8],
        (place, base_bytes): Base,
        base_depth: u8,
    ) -> Result<(u64, u64), Stopped> {
        let (sequence, offset) = (self.next_sequence, self.next_offset);
        self.next_sequence += 1;
        self.next_offset += chunk.len() as u64;
        let depth = base_depth + 1;
        let features = match self.search.may_be_base(depth) {
            true => self.search.super_features().to_vec(),
            false => Vec::new(),
        };
        self.search.stored(ContainerKind::Deltas, sequence, depth);
        if let BaseBytes::Stored(address) | BaseBytes::Sealed(address) = base_bytes {
            self.wanted.add(address);
        }
        self.batch_bytes.extend_from_slice(chunk);
        self.batch.push(DeltaDraft {
            fingerprint,
            length: chunk.len() as u32,
            features,
            depth,
            base: place,
            base_bytes,
        });
        if self.batch_bytes.len() >= BATCH_BYTES {
            self.hand_on()?;
        }
        Ok((sequence, offset))
    }

    /// Hands the open batch on.
    fn hand_on(&mut self) -> Result<(), Stopped> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let bytes = Arc::new(std::mem::take(&mut self.batch_bytes));
        let drafts = std::mem::take(&mut self.batch);
        let first = self.next_sequence - drafts.len() as u64;
        let lengths = drafts.iter().map(|draft| draft.length);
        let recent = RecentGroup::new(first, &bytes, lengths);
        self.deltas.push(Arc::new(recent));
        self.unclosed_bytes += bytes.len();
        let counted = 2 * bytes.len();
        self.submit(DeltaJob::Batch(DeltaBatch { bytes, drafts }), counted)?;
        if self.unclosed_bytes >= self.deltas.limit_bytes() / 4 {
            self.close_groups()?;
        }
        while let Some(end) = self.deltas.pop() {
            if end > self.closed_end {
                self.close_groups()?;
            }
            self.deltas.sealed_before = self.wait_for(ContainerKind::Deltas, end)?;
        }
        Ok(())
    }

    fn close_groups(&mut self) -> Result<(), Stopped> {
        self.unclosed_bytes = 0;
        self.closed_end = self.next_sequence;
        self.submit(DeltaJob::Close, 0)
    }

    /// Closes the open batch and group early.
    pub fn close(&mut self) -> Result<(), Stopped> {
        self.hand_on()?;
        if self.closed_end < self.next_sequence {
            self.close_groups()?;
        }
        Ok(())
    }

    /// Is a group closed that has the chunk before that number?
    pub fn is_closed(&self, end: u64) -> bool {
        end <= self.closed_end
    }

    /// A group of whole chunks, of which the first has that number, was closed.
    pub fn closed_whole(&mut self, first: u64, group: &PlainGroup) {
        self.whole.push(GroupEnd {
            bytes: group.plain().len(),
            end: first + group.chunks.len() as u64,
        });
    }

    /// Learns which whole chunks are sealed by now; their groups must have been handed on.
    pub fn trim_whole(&mut self) -> Result<(), Stopped> {
        while let Some(end) = self.whole.pop() {
            self.whole.sealed_before = self.wait_for(ContainerKind::Data, end)?;
        }
        Ok(())
    }

    /// Waits until all chunks before that number have a place; says which of them are in sealed
    /// containers.
    fn wait_for(&self, kind: ContainerKind, end: u64) -> Result<u64, Stopped> {
        let meter = self.stages.meter(Stage::Index);
        let mut state = lock(&self.placements.state);
        while state.of(kind).placed_end < end {
            if state.ended {
                return Err(Stopped);
            }
            let wait = || self.placements.changed.wait(state);
            state = meter.blocked(wait).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(state.of(kind).sealed_before(end))
    }

    /// That container was stored in this run.
    pub fn note_own(&mut self, container: ContainerId) {
        self.search.note_own(container);
    }

    /// Closes the open container: afterwards, when the packer says so, all has a place.
    pub fn flush(&mut self) -> Result<(), Stopped> {
        self.hand_on()?;
        self.closed_end = self.next_sequence;
        self.unclosed_bytes = 0;
        self.submit(DeltaJob::Flush, 0)
    }

    fn submit(&self, job: DeltaJob, bytes: usize) -> Result<(), Stopped> {
        let jobs = self.jobs.as_ref().ok_or(Stopped)?;
        let meter = self.stages.meter(Stage::Index);
        meter.blocked(|| jobs.submit(job, bytes, 1))
    }
}

impl Drop for DeltaStage {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(packer) = self.packer.take() {
            // A packer that panicked has ended the placements' wait already.
            let _ = packer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_impossible_setting_is_named() {
        assert_eq!(DeltaSettings::best().check(), Ok(()));
        assert_eq!(DeltaSettings::fast().check(), Ok(()));
        for depth_max in [0, 16] {
            let settings = DeltaSettings {
                depth_max,
                ..DeltaSettings::best()
            };
            let error = DeltaSettingsError::Depth { depth_max };
            assert_eq!(settings.check(), Err(error));
        }
        let mut settings = DeltaSettings::best();
        settings.detection.features = 64;
        assert_eq!(settings.check(), Ok(()));
        settings.detection.tiers = vec![2];
        let error = DeltaSettingsError::SuperFeatures { count: 32 };
        assert_eq!(settings.check(), Err(error));
        settings.detection.features = 0;
        assert!(matches!(
            settings.check(),
            Err(DeltaSettingsError::Detection(_))
        ));
    }
}
