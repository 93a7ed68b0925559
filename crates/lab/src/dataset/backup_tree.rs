//! A file tree that lives: files are created, modified and deleted between backups.
//!
//! After Tarasov, Mudrankit, Buik, Shilane, Kuenning, Zadok, "Generating realistic datasets for
//! deduplication analysis" (USENIX ATC 2012): files of log-normal size in a tree; from one backup
//! to the next some are deleted, some created (a share of them copies of others), some modified,
//! preferably those that were modified before; a modification falls on the beginning, the middle
//! or the end of a file, or on several of them. Their transition probabilities were learnt from
//! traces that are not published with the paper, so a [`Life`] names plain ones instead.
//!
//! Enters: a seed, a [`Life`], how many bytes a backup has. Leaves: version after version as a
//! tar in path order, a backup stream. Only extents are kept ([`Contents`] makes the bytes), so
//! memory grows with the number of files and modifications, not with bytes. A version depends on
//! those before it through its extents alone: any one can be written without the others.

use std::collections::BTreeMap;

use anyhow::Result;

use super::archive::Archive;
use super::content::{Contents, Grain};
use super::seeded::Seeded;
use super::site::Site;

/// How files are and change. Shares are in thousandths.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// Files deleted from one backup to the next, as a share of all files.
    pub deleted: u64,
    /// Files created, as a share of all files.
    pub created: u64,
    /// Of those created, how many are copies of another file.
    pub copied: u64,
    /// Files modified, as a share of all files.
    pub modified: u64,
    /// Of those modified, how many were modified in the backup before, too.
    pub modified_again: u64,
    /// How the length of a new file and its grain are drawn.
    pub new_file: fn(&mut Seeded) -> (u64, Grain),
    /// Median of the bytes that a modification writes.
    pub patch_bytes: u64,
}

/// 2023-01-01, the first backup; one a day follows.
const FIRST_SECONDS: u64 = 1_672_531_200;
const DAY_SECONDS: u64 = 86_400;

/// Purposes of random numbers.
const START: u64 = 1;
const STEP: u64 = 2;

/// Part of a stream.
#[derive(Debug, Clone, Copy)]
struct Extent {
    stream: u64,
    start: u64,
    length: u64,
}

#[derive(Debug, Clone)]
struct LivingFile {
    grain: Grain,
    extents: Vec<Extent>,
    /// The backup before which it was written last.
    modified: u64,
}

/// The tree at one moment.
struct BackupTree {
    seed: u64,
    life: Life,
    files: BTreeMap<String, LivingFile>,
    streams: u64,
}

/// Writes the versions that the site lacks, as `v01.tar` ….
///
/// # Errors
/// When they can't be written.
pub fn build(site: &mut Site, life: Life) -> Result<()> {
    let versions = site.versions_asked();
    let contents = Contents::new(site.seed());
    let mut tree = BackupTree::start(site.seed(), life, site.bytes_asked() / versions as u64);
    let scratch = site.fresh("tree")?;
    for number in 1..=versions {
        let label = if number == 1 {
            format!("{} files", tree.files.len())
        } else {
            tree.step(number as u64)
        };
        if site.lacks(number) {
            let path = scratch.join("tar");
            let mut archive = Archive::create(&path, FIRST_SECONDS)?;
            tree.write(&contents, &mut archive)?;
            archive.finish()?;
            site.add(number, &path, ".tar", &label)?;
        }
    }
    Ok(())
}

impl LivingFile {
    fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.length).sum()
    }

    /// Replaces `cut` bytes at `at` by an extent.
    fn splice(&mut self, at: u64, cut: u64, new: Extent) {
        let (mut position, mut new) = (0, Some(new));
        let mut extents = Vec::with_capacity(self.extents.len() + 2);
        for extent in &self.extents {
            let end = position + extent.length;
            let kept = at.clamp(position, end) - position;
            if kept > 0 {
                let length = kept;
                extents.push(Extent { length, ..*extent });
            }
            if end > at || (end == at && at == 0) {
                extents.extend(new.take());
            }
            let skipped = (at + cut).clamp(position, end) - position;
            let rest = skipped.max(kept);
            if rest < extent.length {
                extents.push(Extent {
                    start: extent.start + rest,
                    length: extent.length - rest,
                    ..*extent
                });
            }
            position = end;
        }
        extents.extend(new);
        extents.retain(|extent| extent.length > 0);
        self.extents = extents;
    }
}

impl BackupTree {
    fn start(seed: u64, life: Life, bytes: u64) -> Self {
        let mut tree = Self {
            seed,
            life,
            files: BTreeMap::new(),
            streams: 0,
        };
        let mut numbers = Seeded::new(seed, &[START]);
        let (mut total, most) = (0, (bytes / 8).max(4096));
        while total < bytes {
            let file = tree.new_file(&mut numbers, 1, most);
            // Header and padding of a tar count, too.
            total += file.bytes().next_multiple_of(512) + 512;
            let name = new_name(&mut numbers, file.grain);
            tree.files.insert(name, file);
        }
        tree
    }

    fn new_stream(&mut self) -> u64 {
        self.streams += 1;
        self.streams
    }

    fn new_file(&mut self, numbers: &mut Seeded, version: u64, most: u64) -> LivingFile {
        let (length, grain) = (self.life.new_file)(numbers);
        let extent = Extent {
            stream: self.new_stream(),
            start: 0,
            length: length.min(most),
        };
        LivingFile {
            grain,
            extents: vec![extent],
            modified: version,
        }
    }

    /// Lets a day pass; says what happened.
    fn step(&mut self, version: u64) -> String {
        let mut numbers = Seeded::new(self.seed, &[STEP, version]);
        let total: u64 = self.files.values().map(LivingFile::bytes).sum();
        let before = self.files.len();
        let count = |numbers: &mut Seeded, share: u64| {
            numbers.rounded(before as f64 * share as f64 / 1000.0)
        };
        let names: Vec<String> = self.files.keys().cloned().collect();
        let deleted = count(&mut numbers, self.life.deleted);
        for _ in 0..deleted {
            self.files.remove(&names[numbers.index(names.len())]);
        }
        let modified = count(&mut numbers, self.life.modified).max(1);
        self.modify_some(&mut numbers, version, modified);
        let created = count(&mut numbers, self.life.created);
        for _ in 0..created {
            self.create(&mut numbers, version, (total / 8).max(4096));
        }
        format!("{deleted} files deleted, {modified} modified, {created} created")
    }

    fn modify_some(&mut self, numbers: &mut Seeded, version: u64, count: usize) {
        let names: Vec<String> = self.files.keys().cloned().collect();
        let was_modified = |name: &&String| self.files[*name].modified + 1 == version;
        let hot: Vec<String> = names.iter().filter(was_modified).cloned().collect();
        for _ in 0..count {
            let is_again = numbers.is_one_of(self.life.modified_again) && !hot.is_empty();
            let choice = if is_again { &hot } else { &names };
            if choice.is_empty() {
                return;
            }
            let name = &choice[numbers.index(choice.len())];
            self.modify(numbers, version, name);
        }
    }

    /// One to three patches: beginning, middle, end, or several of them.
    fn modify(&mut self, numbers: &mut Seeded, version: u64, name: &str) {
        let places = match numbers.below(16) {
            0..4 => 0b001,
            4..8 => 0b010,
            8..13 => 0b100,
            13 => 0b011,
            14 => 0b110,
            _ => 0b111,
        };
        for place in 0..3 {
            if places & (1 << place) == 0 {
                continue;
            }
            let stream = self.new_stream();
            let written = numbers.log_normal(self.life.patch_bytes as f64, 1.5);
            let (kind, random) = (numbers.below(10), numbers.unit());
            let Some(file) = self.files.get_mut(name) else {
                return;
            };
            let bytes = file.bytes();
            let written = written.clamp(1, bytes.max(16));
            let room = bytes.saturating_sub(written);
            let at = match place {
                0 => 0,
                1 => (room as f64 * random) as u64,
                _ if kind < 8 => bytes,
                _ => room,
            };
            // Half of the patches overwrite, or append at the end; the others insert or remove,
            // so that files grow little on the whole.
            let (cut, length) = match kind {
                0..5 => (written.min(bytes - at), written),
                5..8 => (0, written),
                _ => ((2 * written).min(bytes - at), 0),
            };
            let new = Extent {
                stream,
                start: 0,
                length,
            };
            file.splice(at, cut, new);
            file.modified = version;
        }
    }

    fn create(&mut self, numbers: &mut Seeded, version: u64, most: u64) {
        let is_copy = numbers.is_one_of(self.life.copied) && !self.files.is_empty();
        let file = if is_copy {
            let index = numbers.index(self.files.len());
            let original = self.files.values().nth(index).cloned();
            let mut copy = original.unwrap_or_else(|| self.new_file(numbers, version, most));
            copy.modified = version;
            copy
        } else {
            self.new_file(numbers, version, most)
        };
        let name = new_name(numbers, file.grain);
        self.files.insert(name, file);
    }

    fn write<W: std::io::Write>(
        &self,
        contents: &Contents,
        archive: &mut Archive<W>,
    ) -> Result<()> {
        let mut content = Vec::new();
        for (name, file) in &self.files {
            content.clear();
            for extent in &file.extents {
                let Extent {
                    stream,
                    start,
                    length,
                } = *extent;
                contents.append(&mut content, stream, file.grain, start, length);
            }
            archive.set_seconds(FIRST_SECONDS + file.modified * DAY_SECONDS);
            archive.file(name, 0o644, content.len() as u64, content.as_slice())?;
        }
        Ok(())
    }
}

/// A path of one to four directories; the number makes it unlike all others.
fn new_name(numbers: &mut Seeded, grain: Grain) -> String {
    let mut name = String::from("home");
    for _ in 0..1 + numbers.below(4) {
        name.push_str(&format!("/d{:02}", numbers.below(12)));
    }
    let ending = match grain {
        Grain::Text => "txt",
        Grain::Records => "db",
        Grain::Noise => "jpg",
    };
    format!("{name}/{:08x}.{ending}", numbers.next() >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splices_are_those_of_a_vector() {
        let mut numbers = Seeded::new(5, &[]);
        let contents = Contents::new(1);
        let bytes = |file: &LivingFile| {
            let mut all = Vec::new();
            for extent in &file.extents {
                let Extent {
                    stream,
                    start,
                    length,
                } = *extent;
                contents.append(&mut all, stream, Grain::Noise, start, length);
            }
            all
        };
        let first = Extent {
            stream: 0,
            start: 0,
            length: 5000,
        };
        let mut file = LivingFile {
            grain: Grain::Noise,
            extents: vec![first],
            modified: 0,
        };
        let mut model = bytes(&file);
        for stream in 1..200 {
            let at = numbers.below(model.len() as u64 + 1);
            let cut = numbers.below(500).min(model.len() as u64 - at);
            let new = Extent {
                stream,
                start: numbers.below(9),
                length: numbers.below(500),
            };
            let mut patch = Vec::new();
            contents.append(&mut patch, stream, Grain::Noise, new.start, new.length);
            model.splice(at as usize..(at + cut) as usize, patch);
            file.splice(at, cut, new);
            assert_eq!(bytes(&file), model, "after {stream} splices");
        }
    }
}
