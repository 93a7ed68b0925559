//! Copies in a directory, bounded in bytes, shared by processes.
//!
//! Names are `KIND/ID` with a suffix for the piece (`containers/xx/ID`). A copy is written under a name of its own in `tmp/`
//! and renamed, so that nobody reads half of one; it is not synced, for its check values find out what a crash left. What goes wrong here
//! is nobody's concern: the server has everything.
//!
//! How much there is stands in the file `bytes`, as it was when somebody last counted and as those who
//! came since have added. When that is more than the limit, whoever adds the last counts, and removes what was not used for
//! longest until four fifths of the limit are left. A process adds up what it writes for a while before it says so:
//! the directory may exceed its limit by a sixteenth for each that is at work.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use engine::object::{ObjectId, ObjectKey, ObjectKind};

use super::entry::{self, Entry, Piece};

/// A copy that was used counts as used for so long without being touched again.
const USED_FOR: Duration = Duration::from_secs(24 * 3600);

/// After what time a file in `tmp/` has no living writer.
const STALE_AFTER: Duration = Duration::from_secs(24 * 3600);

pub(super) struct CacheDirectory {
    root: PathBuf,
    limit_bytes: u64,
    /// Bytes added since they were last told to others.
    added_bytes: Mutex<u64>,
}

/// A copy that grows.
pub(super) struct Growing {
    file: File,
    path: PathBuf,
    key: ObjectKey,
    bytes: u64,
    limit_bytes: u64,
}

impl Growing {
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.limit_bytes {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.file.write_all(bytes)
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        // Renamed if it came to its end.
        let _ = fs::remove_file(&self.path);
    }
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

impl CacheDirectory {
    pub fn open(root: &Path, limit_bytes: u64) -> io::Result<Self> {
        make(&root.join("tmp"))?;
        Ok(Self {
            root: root.to_owned(),
            limit_bytes,
            added_bytes: Mutex::new(0),
        })
    }

    fn path(&self, key: &ObjectKey, piece: Piece) -> PathBuf {
        self.root.join(format!("{key}{}", piece.suffix()))
    }

    /// What `look` finds in a copy; one in which it finds nothing stays, one that is no copy goes.
    pub fn read<T>(
        &self,
        key: &ObjectKey,
        piece: Piece,
        look: impl FnOnce(&Entry) -> Option<T>,
    ) -> Option<T> {
        let path = self.path(key, piece);
        let file = File::open(&path).ok()?;
        self.note_use(&file);
        let Some(entry) = Entry::open(file, key) else {
            let _ = fs::remove_file(&path);
            return None;
        };
        look(&entry)
    }

    /// Copies are removed by how long ago they were written or noted as used.
    fn note_use(&self, file: &File) {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > USED_FOR) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Keeps a piece of an object: `bytes` at `offset` of `object_bytes`.
    pub fn keep(
        &self,
        key: &ObjectKey,
        piece: Piece,
        offset: u64,
        object_bytes: u64,
        bytes: &[u8],
    ) {
        if bytes.len() as u64 > self.limit_bytes / 4 {
            return;
        }
        let write = |file: &mut File| entry::write(file, key, offset, object_bytes, bytes);
        let temporary = self.temporary();
        let written = File::create_new(&temporary).and_then(|mut file| write(&mut file));
        let path = self.path(key, piece);
        if written
            .and_then(|()| self.rename(&temporary, &path))
            .is_err()
        {
            let _ = fs::remove_file(&temporary);
            return;
        }
        self.add(bytes.len() as u64);
    }

    /// Begins a copy of a whole object whose length is not known yet.
    pub fn begin(&self, key: &ObjectKey) -> Option<Growing> {
        let path = self.temporary();
        let mut file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .ok()?;
        entry::begin(&mut file).ok()?;
        Some(Growing {
            file,
            path,
            key: *key,
            bytes: 0,
            limit_bytes: self.limit_bytes / 4,
        })
    }

    /// Keeps what has grown.
    pub fn finish(&self, mut growing: Growing) {
        let path = self.path(&growing.key, Piece::Whole);
        let sealed = entry::seal(&mut growing.file, &growing.key, growing.bytes);
        if sealed
            .and_then(|()| self.rename(&growing.path, &path))
            .is_ok()
        {
            self.add(growing.bytes);
        }
    }

    fn temporary(&self) -> PathBuf {
        self.root.join("tmp").join(ObjectId::random().to_string())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(to.parent().unwrap_or(&self.root))?;
                fs::rename(from, to)
            }
            outcome => outcome,
        }
    }

    /// Removes all copies of pieces of an object.
    pub fn forget(&self, key: &ObjectKey) {
        let whole = self.path(key, Piece::Whole);
        let Some(directory) = whole.parent() else {
            return;
        };
        for (path, id, _) in copies(directory) {
            if id == key.id {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes copies of objects of a kind that are not `there`.
    pub fn keep_only(&self, kind: ObjectKind, there: &HashSet<ObjectId>) {
        for (path, id, _) in copies(&self.root.join(kind.directory())) {
            if !there.contains(&id) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Counts what was added; when it is worth it, tells others, and makes room.
    fn add(&self, bytes: u64) {
        let told = {
            let mut added = crate::lock(&self.added_bytes);
            *added += bytes;
            if *added < self.limit_bytes / 16 {
                return;
            }
            std::mem::take(&mut *added)
        };
        self.tell(told);
    }

    fn tell(&self, bytes: u64) {
        let Ok(lock) = File::create(self.root.join("lock")) else {
            return;
        };
        if lock.lock().is_err() {
            return;
        }
        let total = self.root.join("bytes");
        let known = fs::read_to_string(&total).ok();
        let known = known.and_then(|text| text.trim().parse::<u64>().ok());
        let sum = match known.map(|known| known.saturating_add(bytes)) {
            Some(sum) if sum <= self.limit_bytes => sum,
            // Too much, or nobody knows how much.
            _ => self.make_room(),
        };
        // Where this gets lost it is counted next time.
        let _ = fs::write(&total, sum.to_string());
    }

    /// Counts everything, and removes the oldest if it is too much. Returns what is left.
    fn make_room(&self) -> u64 {
        let mut all = Vec::new();
        let kinds = ObjectKind::ALL.map(ObjectKind::directory);
        for (path, _, metadata) in kinds.iter().flat_map(|kind| copies(&self.root.join(kind))) {
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            all.push((used, metadata.len(), path));
        }
        self.remove_stale();
        let mut sum: u64 = all.iter().map(|(_, bytes, _)| bytes).sum();
        if sum <= self.limit_bytes {
            return sum;
        }
        all.sort_unstable();
        for (_, bytes, path) in all {
            if sum <= self.limit_bytes / 5 * 4 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                sum -= bytes;
            }
        }
        sum
    }

    fn remove_stale(&self) {
        for entry in fs::read_dir(self.root.join("tmp"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > STALE_AFTER) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for CacheDirectory {
    fn drop(&mut self) {
        let added = *crate::lock(&self.added_bytes);
        if added > 0 {
            self.tell(added);
        }
    }
}

/// The copies in a directory and those right below it, with the ids of their objects.
fn copies(directory: &Path) -> Vec<(PathBuf, ObjectId, fs::Metadata)> {
    let mut found = Vec::new();
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((next, depth)) = waiting.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() && depth == 0 {
                waiting.push((entry.path(), 1));
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let id = name.split('.').next().and_then(|id| id.parse().ok());
            if let (Some(id), true) = (id, metadata.is_file()) {
                found.push((entry.path(), id, metadata));
            }
        }
    }
    found
}
