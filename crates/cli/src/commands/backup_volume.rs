//! `onefold backup --volume`: the image of a volume, while it is in use or not.
//!
//! The disk is pinned as it is, as a generation of the volume that belongs to the repository. If the latest image in the
//! repository is of a generation that is still pinned, only what changed since is read. When the new
//! image is saved its generation stays pinned for the next time, and older ones of the repository go; when
//! not, the new one goes.

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use engine::pipeline::{SparseExtent, SparseStream};
use repository::snapshot::{DiskState, Snapshot};
use repository::{BackupError, BackupOptions, BackupReport, DiskImage, EarlierImage, Repository};
use volume::{Extent, ExtentKind, Generation, OwnerId, VolumeError};

use crate::commands::volume::{Access, GenerationDisk, Place, no_volume};
use crate::names;
use crate::progress_display::{Items, watch};
use crate::session::Session;
use crate::units;

/// Extents that are asked for at once.
const EXTENTS_AHEAD: u32 = 4096;

/// Bytes of the disk that they are asked for: few extents may take many pages of the mapping to find.
const EXTENTS_AHEAD_BYTES: u64 = 1 << 30;

/// Ranges of changes that are kept apart at most: 64 MiB.
const RANGES_MAX: usize = 4 << 20;

/// What became of an image.
pub struct VolumeBackup {
    /// What the repository says.
    pub report: Result<BackupReport, BackupError>,
    /// The generation that the image is of, if it stays pinned.
    pub generation: Option<u32>,
    /// Bytes that changed since the earlier image, if there is one to start from.
    pub changed_bytes: Option<u64>,
}

/// Whether there is something at `path`.
pub fn look(path: &Path) -> anyhow::Result<()> {
    match path.metadata() {
        Ok(_) => Ok(()),
        Err(error) => Err(no_volume(path, error)),
    }
}

/// Backs a volume up.
pub fn back_up(
    session: &Session,
    repository: &Repository,
    path: &Path,
    name: Option<&[u8]>,
    options: &BackupOptions,
) -> anyhow::Result<VolumeBackup> {
    let shown = || names::escaped_path(path);
    let place = Place::of(path);
    let imaging = Imaging {
        session,
        repository,
        path: path.canonicalize().with_context(shown)?,
        name,
        options,
    };
    let mut access = Access::to(session, &place, true)?;
    let done = imaging.pin_and_save(&mut access).with_context(shown);
    let ended = access.end(path);
    let done = done?;
    ended?;
    Ok(done)
}

/// A volume on its way into a repository.
struct Imaging<'a> {
    session: &'a Session,
    repository: &'a Repository,
    /// Where the volume is, without links.
    path: PathBuf,
    /// What the image is called, if not as the volume.
    name: Option<&'a [u8]>,
    options: &'a BackupOptions,
}

/// What the repository says, and how many bytes changed since the image that it started from.
type Saved = (Result<BackupReport, BackupError>, Option<u64>);

impl Imaging<'_> {
    fn pin_and_save(&self, access: &mut Access) -> anyhow::Result<VolumeBackup> {
        let volume = access.status()?.id;
        let owner = OwnerId(self.repository.config().id.0);
        let generation = access.pin(owner)?;
        let outcome = self.save(access, volume, &generation);
        let is_saved = matches!(&outcome, Ok((Ok(report), _)) if report.is_written);
        let tidied = match is_saved {
            true => keep(self.session, access, &generation, owner),
            false => access.give_up(generation.number),
        };
        let (report, changed_bytes) = outcome?;
        // The snapshot stands; what is left pinned takes room and does no harm.
        if let Err(error) = tidied {
            self.session.output.warning(&format!(
                "{}: an older generation stays pinned: {error}",
                names::escaped_path(&self.path)
            ));
        }
        Ok(VolumeBackup {
            report,
            generation: is_saved.then_some(generation.number),
            changed_bytes,
        })
    }

    fn save(
        &self,
        access: &mut Access,
        volume: [u8; 16],
        generation: &Generation,
    ) -> anyhow::Result<Saved> {
        let earlier = match self.options.force {
            true => None,
            false => self.changed_since(access, volume, generation)?,
        };
        let changed_bytes = earlier.as_ref().map(|(_, changed)| {
            let bytes = changed.iter().map(|range| range.end - range.start);
            bytes.sum()
        });
        self.say_what_is_read(changed_bytes);
        let mut stream = GenerationStream {
            disk: access.disk(generation)?,
            size_bytes: generation.logical_blocks * 4096,
            extents: Vec::new(),
            extents_start: 0,
        };
        let image = image_path(&self.path, self.name);
        let disk = DiskImage {
            path: image.into_os_string().into_vec(),
            state: DiskState {
                volume,
                generation_id: generation.id.0,
                generation: generation.number,
            },
            stream: &mut stream,
            earlier: earlier
                .as_ref()
                .map(|(snapshot, changed)| EarlierImage { snapshot, changed }),
        };
        let report = watch(&self.session.output, Items::Files, |progress| {
            self.repository.backup_disk(disk, self.options, progress)
        })?;
        Ok((report, changed_bytes))
    }

    /// The image to start from, if there is one, and what changed since.
    fn changed_since(
        &self,
        access: &mut Access,
        volume: [u8; 16],
        generation: &Generation,
    ) -> anyhow::Result<Option<(Snapshot, Vec<Range<u64>>)>> {
        let Some((snapshot, number)) = earlier_image(self.repository, access, volume)? else {
            return Ok(None);
        };
        let mut changed = Changes::new(RANGES_MAX);
        let visit = &mut |range| changed.push(range);
        match access.visit_changes(number, Some(generation.number), visit) {
            Ok(()) => Ok(Some((snapshot, changed.ranges))),
            // Another backup is done meanwhile, and removed it.
            Err(VolumeError::NoGeneration(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn say_what_is_read(&self, changed_bytes: Option<u64>) {
        let said = match changed_bytes {
            Some(bytes) => &format!("{} changed since the image before.", units::bytes(bytes)),
            None if self.options.force => "All of the disk is read.",
            None => "There is no image to start from: all of the disk is read.",
        };
        self.session.output.note(said);
    }
}

/// The latest image of a generation that is still pinned, and that generation's number.
fn earlier_image(
    repository: &Repository,
    access: &mut Access,
    volume: [u8; 16],
) -> anyhow::Result<Option<(Snapshot, u32)>> {
    let generations = access.generations()?;
    let pinned = |state: &DiskState| {
        generations.iter().find(|generation| {
            generation.number == state.generation
                && generation.id.0 == state.generation_id
                && generation.removed_blocks == 0
        })
    };
    let list = repository.snapshots()?.snapshots;
    let is_sure = |it: &Snapshot| !it.is_interrupted && !it.is_doubtful;
    let mut images = list.into_iter().rev().filter(is_sure);
    Ok(images.find_map(|snapshot| {
        let state = snapshot.disk.filter(|state| state.volume == volume)?;
        let number = pinned(&state)?.number;
        Some((snapshot, number))
    }))
}

/// Keeps a generation for the next backup, and removes those of earlier ones.
fn keep(
    session: &Session,
    access: &mut Access,
    generation: &Generation,
    owner: OwnerId,
) -> Result<(), volume::VolumeError> {
    access.keep(generation.number)?;
    for older in access.generations()? {
        if older.owner != owner || older.number >= generation.number {
            continue;
        }
        if let Err(error) = access.unpin(older.number) {
            // Another backup reads it, and removes it, or the next one does.
            session.output.note(&format!(
                "Generation {} stays pinned for now: {error}.",
                older.number
            ));
        }
    }
    Ok(())
}

/// Where the image is in the snapshot: beside the volume, and called as that, but `.img`.
fn image_path(volume: &Path, name: Option<&[u8]>) -> PathBuf {
    match name {
        Some(name) => volume.with_file_name(OsStr::from_bytes(name)),
        None => volume.with_extension("img"),
    }
}

/// At most so many ranges, by joining those that are closest: what lies between counts as changed, too.
struct Changes {
    ranges: Vec<Range<u64>>,
    ranges_max: usize,
    /// Ranges that are at most so far apart are joined next.
    gap_bytes: u64,
}

impl Changes {
    fn new(ranges_max: usize) -> Self {
        Self {
            ranges: Vec::new(),
            ranges_max,
            gap_bytes: 64 << 10,
        }
    }

    /// Adds a range behind those before.
    fn push(&mut self, range: Range<u64>) {
        self.ranges.push(range);
        while self.ranges.len() > self.ranges_max {
            let gap_bytes = self.gap_bytes;
            self.ranges.dedup_by(|next, range| {
                let is_close = next.start - range.end <= gap_bytes;
                if is_close {
                    range.end = next.end;
                }
                is_close
            });
            self.gap_bytes *= 2;
        }
    }
}

/// A pinned generation as a stream.
struct GenerationStream<'a> {
    disk: GenerationDisk<'a>,
    size_bytes: u64,
    /// What is there from `extents_start` on, as far as it is known.
    extents: Vec<Extent>,
    extents_start: u64,
}

impl GenerationStream<'_> {
    /// What is at `offset` by what is known.
    fn known_at(&self, offset: u64) -> Option<(ExtentKind, u64)> {
        let mut end = self.extents_start;
        for extent in &self.extents {
            end += extent.length_bytes;
            if offset >= self.extents_start && offset < end {
                return Some((extent.kind, end));
            }
        }
        None
    }
}

impl SparseStream for GenerationStream<'_> {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn extent_at(&mut self, offset: u64) -> io::Result<(SparseExtent, u64)> {
        let (kind, end) = match self.known_at(offset) {
            Some(known) => known,
            None => {
                let sector = offset - offset % 4096;
                let ahead = EXTENTS_AHEAD_BYTES.min(self.size_bytes - sector);
                self.extents = self.disk.extents(sector, ahead, EXTENTS_AHEAD)?;
                self.extents_start = sector;
                let known = self.known_at(offset);
                known.ok_or_else(|| io::Error::other("the volume says nothing of a place"))?
            }
        };
        Ok(match kind {
            ExtentKind::Data => (SparseExtent::Data, end),
            ExtentKind::Hole => (SparseExtent::Hole, end),
        })
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        // A chunk may end anywhere, a reading must not.
        let (start, end) = (offset - offset % 4096, offset + buffer.len() as u64);
        let end = end.next_multiple_of(4096).min(self.size_bytes);
        if start == offset && end == offset + buffer.len() as u64 {
            return self.disk.read(offset, buffer);
        }
        let mut blocks = vec![0; (end - start) as usize];
        self.disk.read(start, &mut blocks)?;
        let at = (offset - start) as usize;
        buffer.copy_from_slice(&blocks[at..at + buffer.len()]);
        Ok(())
    }

    fn passed(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Changes, image_path};
    use std::ops::Range;
    use std::path::Path;

    #[test]
    fn images_have_the_name_of_their_volume() {
        let image = |volume, name| image_path(Path::new(volume), name);
        assert_eq!(image("/srv/disk.1fv", None), Path::new("/srv/disk.img"));
        assert_eq!(image("/dev/sda3", None), Path::new("/dev/sda3.img"));
        assert_eq!(image("/srv/disk.1fv", Some(b"x")), Path::new("/srv/x"));
    }

    #[test]
    fn ranges_are_joined_as_far_as_need_be() {
        let mib = 1 << 20;
        let ranges = vec![0..4096, 8192..12_288, mib..2 * mib, 9 * mib..10 * mib];
        let joined = |ranges: Vec<Range<u64>>, ranges_max| {
            let mut changes = Changes::new(ranges_max);
            ranges.into_iter().for_each(|range| changes.push(range));
            changes.ranges
        };
        assert_eq!(joined(ranges.clone(), 4), ranges);
        assert_eq!(
            joined(ranges.clone(), 3),
            [0..12_288, mib..2 * mib, 9 * mib..10 * mib]
        );
        assert_eq!(joined(ranges.clone(), 2), [0..2 * mib, 9 * mib..10 * mib]);
        assert_eq!(joined(ranges, 1), vec![0..10 * mib]);
    }
}
