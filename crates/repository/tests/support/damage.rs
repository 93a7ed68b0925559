//! Ways of damaging an object, and what may come out of a damaged repository: the right bytes,
//! or nothing and a word about it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use engine::object::{MemoryStore, ObjectKey};
use repository::snapshot::Snapshot;
use repository::{Repository, RestoreError};

use super::sources::{self, Picture};

/// A way of damaging an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Cut off after so many bytes.
    Truncate(usize),
    /// One bit of that byte.
    Flip(usize),
    Delete,
    /// The bytes of another object of its kind.
    Swap,
    /// So many bytes more.
    Append(usize),
    /// Zeros from here to there.
    Zeros(usize, usize),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What is done to an object of that length: every kind of change; at the start, in the middle,
/// at the end, and in the places where headers and tags lie.
pub fn changes(length: usize) -> Vec<Change> {
    let mut changes = vec![Change::Delete, Change::Swap];
    for bytes in [0, 1, 12, length / 2, length - 33, length - 1] {
        changes.push(Change::Truncate(bytes));
    }
    let places = [
        0,
        5,
        length / 4,
        length / 2,
        3 * length / 4,
        length - 40,
        length - 28,
        length - 18,
        length - 1,
    ];
    changes.extend(places.map(Change::Flip));
    changes.extend([1, 100, length].map(Change::Append));
    changes.push(Change::Zeros(0, length));
    changes.push(Change::Zeros(length / 3, 2 * length / 3));
    changes
}

/// A copy of `store` with that object damaged. For a swap, `other` has the bytes of another
/// object, which gets those of this one if it lies in the same store.
pub fn damaged(
    store: &MemoryStore,
    key: ObjectKey,
    change: Change,
    (other, other_bytes): (ObjectKey, &[u8]),
) -> MemoryStore {
    let copy = store.fork();
    let done = match change {
        Change::Truncate(bytes) => copy.corrupt(&key, |object| object.truncate(bytes)),
        Change::Flip(place) => copy.corrupt(&key, |object| object[place] ^= 0x10),
        Change::Delete => copy.remove_raw(&key).is_some(),
        Change::Swap => {
            let bytes = copy.insert_raw(key, other_bytes.to_vec());
            if let Some(bytes) = &bytes
                && other != key
                && copy.object(&other).is_some()
            {
                copy.insert_raw(other, bytes.clone());
            }
            bytes.is_some()
        }
        Change::Append(bytes) => copy.corrupt(&key, |object| {
            object.extend((0..bytes).map(|number| number as u8));
        }),
        Change::Zeros(start, end) => copy.corrupt(&key, |object| object[start..end].fill(0)),
    };
    assert!(done, "{key} is there to be damaged");
    copy
}

/// What a restore from a damaged repository did not bring back.
#[derive(Debug, Default)]
pub struct Losses {
    /// Paths that are not there.
    pub paths: BTreeSet<PathBuf>,
    /// What was said.
    pub messages: Vec<String>,
}

/// Restores a snapshot of a damaged repository. What is there must be right, what is not must
/// have been named.
pub fn restore_what_is_left(
    repository: &Repository,
    snapshot: &Snapshot,
    source: &Path,
    expected: &Picture,
) -> Result<Losses, String> {
    let place = sources::place();
    let target = place.path().join("target");
    let (report, problems) = match super::restore(repository, snapshot, source, &target) {
        Ok(outcome) => outcome,
        Err(RestoreError::List(error)) => {
            return Ok(Losses {
                paths: expected.keys().cloned().collect(),
                messages: vec![error.to_string()],
            });
        }
        Err(error) => return Err(format!("not restored: {error}")),
    };
    let named: Vec<PathBuf> = problems
        .iter()
        .map(|problem| {
            use std::os::unix::ffi::OsStrExt;
            PathBuf::from(std::ffi::OsStr::from_bytes(&problem.path))
        })
        .collect();
    let actual = sources::picture(&target);
    let mut losses = Losses {
        messages: problems.iter().map(ToString::to_string).collect(),
        ..Losses::default()
    };
    for (path, before, after) in sources::differences(expected, &actual) {
        if after.is_some() {
            return Err(format!(
                "{} is {after:?}, it was {before:?}",
                path.display()
            ));
        }
        let place = target.join(path);
        if !named.iter().any(|named| place.starts_with(named)) {
            return Err(format!("{} is missing, and nobody says so", path.display()));
        }
        losses.paths.insert(path.to_owned());
    }
    if report.failed != problems.iter().filter(|problem| problem.is_error).count() as u64 {
        return Err(format!(
            "{} failures are counted: {problems:?}",
            report.failed
        ));
    }
    if (report.failed > 0) == losses.paths.is_empty() {
        return Err(format!("lost are {:?}, said is {problems:?}", losses.paths));
    }
    Ok(losses)
}
