//! Which snapshot is meant: an id, the beginning of one, or the latest of some host, path or
//! tag.
//!
//! Enters: what a person typed. Leaves: one snapshot, or an error that says what is there
//! instead. Ids are looked up in the listing alone; only `latest` reads every snapshot.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use engine::format::{ObjectError, Vault};
use engine::object::{ObjectId, ObjectStore};

use super::{Snapshot, SnapshotError, SnapshotList, UnreadableSnapshot};

/// Digits of a whole id.
const ID_DIGITS: usize = 2 * ObjectId::BYTES;
/// Most names of things in a message.
const NAMES_SHOWN_MAX: usize = 10;

/// A way to name a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotSpec {
    /// The one of this id.
    Id(ObjectId),
    /// The one whose id begins with these lower-case hexadecimal digits.
    Prefix(String),
    /// The one taken last.
    Latest,
}

impl FromStr for SnapshotSpec {
    type Err = SnapshotError;

    /// `latest`, or 1 … 32 hexadecimal digits of either case.
    fn from_str(text: &str) -> Result<Self, SnapshotError> {
        if text == "latest" {
            return Ok(SnapshotSpec::Latest);
        }
        let digits = text.to_ascii_lowercase();
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !are_digits || !(1..=ID_DIGITS).contains(&digits.len()) {
            return Err(SnapshotError::BadSpec {
                text: text.to_owned(),
            });
        }
        Ok(match digits.parse() {
            Ok(id) => SnapshotSpec::Id(id),
            Err(_) => SnapshotSpec::Prefix(digits),
        })
    }
}

impl fmt::Display for SnapshotSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotSpec::Id(id) => id.fmt(f),
            SnapshotSpec::Prefix(prefix) => f.write_str(prefix),
            SnapshotSpec::Latest => f.write_str("latest"),
        }
    }
}

/// What a snapshot must be like; everything is, for the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotFilter {
    /// It is of one of these hosts; any, when there are none.
    pub hosts: Vec<String>,
    /// It has all of these among its paths, byte for byte.
    pub paths: Vec<Vec<u8>>,
    /// It has all of these tags.
    pub tags: Vec<String>,
}

impl SnapshotFilter {
    /// Is the snapshot like that?
    #[must_use]
    pub fn matches(&self, snapshot: &Snapshot) -> bool {
        self.matches_host(snapshot) && self.matches_paths(snapshot) && self.matches_tags(snapshot)
    }

    fn matches_host(&self, snapshot: &Snapshot) -> bool {
        self.hosts.is_empty() || self.hosts.contains(&snapshot.host)
    }

    fn matches_paths(&self, snapshot: &Snapshot) -> bool {
        self.paths.iter().all(|path| snapshot.paths.contains(path))
    }

    fn matches_tags(&self, snapshot: &Snapshot) -> bool {
        self.tags.iter().all(|tag| snapshot.tags.contains(tag))
    }
}

/// A snapshot that was asked for.
#[derive(Debug)]
pub struct Resolved {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Snapshots that could not be read when `latest` was asked for: a later one may be among
    /// them, which a person must be told.
    pub unreadable: Vec<UnreadableSnapshot>,
}

impl SnapshotSpec {
    /// Finds and reads the snapshot. `filter` narrows `latest` and nothing else.
    ///
    /// # Errors
    /// [`SnapshotError::NotFound`], [`SnapshotError::Ambiguous`], and when the store fails or
    /// the snapshot is damaged.
    pub fn resolve(
        &self,
        store: &dyn ObjectStore,
        vault: &Vault,
        filter: &SnapshotFilter,
    ) -> Result<Resolved, SnapshotError> {
        let prefix = match self {
            SnapshotSpec::Latest => {
                return resolve_latest(Snapshot::load_all(store, vault)?, filter);
            }
            SnapshotSpec::Id(id) => id.to_string(),
            SnapshotSpec::Prefix(prefix) => prefix.clone(),
        };
        let resolved = |snapshot| Resolved {
            snapshot,
            unreadable: Vec::new(),
        };
        match match_prefix(&Snapshot::ids(store)?, &prefix) {
            Ok(id) => match Snapshot::load(store, vault, id) {
                Err(SnapshotError::Object(ObjectError::Store(error))) if error.is_missing() => {}
                outcome => return outcome.map(resolved),
            },
            Err(SnapshotError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        // It may have had this id before it was changed.
        let list = Snapshot::load_all(store, vault)?;
        find_id(&list, &prefix).cloned().map(resolved)
    }
}

/// The snapshot of a list that `spec` names.
pub(super) fn find<'a>(
    list: &'a SnapshotList,
    spec: &SnapshotSpec,
    filter: &SnapshotFilter,
) -> Result<&'a Snapshot, SnapshotError> {
    match spec {
        SnapshotSpec::Latest => {
            latest(&list.snapshots, filter).ok_or_else(|| no_latest(list, filter))
        }
        SnapshotSpec::Id(id) => find_id(list, &id.to_string()),
        SnapshotSpec::Prefix(prefix) => find_id(list, prefix),
    }
}

/// The snapshot whose id begins with `prefix`, or did so before it was changed.
fn find_id<'a>(list: &'a SnapshotList, prefix: &str) -> Result<&'a Snapshot, SnapshotError> {
    let unreadable = list.unreadable.iter().map(|unreadable| unreadable.id);
    let mut ids: Vec<ObjectId> = list.snapshots.iter().map(|snapshot| snapshot.id).collect();
    ids.extend(unreadable);
    ids.sort_unstable();
    let id = match match_prefix(&ids, prefix) {
        Err(SnapshotError::NotFound { asked, hint }) => {
            let had = |snapshot: &&Snapshot| {
                let mut earlier = snapshot.replaces.iter();
                earlier.any(|id| id.to_string().starts_with(prefix))
            };
            let matches: Vec<&Snapshot> = list.snapshots.iter().filter(had).collect();
            return match matches[..] {
                [snapshot] => Ok(snapshot),
                [] => Err(SnapshotError::NotFound { asked, hint }),
                _ => Err(SnapshotError::Ambiguous {
                    prefix: prefix.to_owned(),
                    matches: matches.iter().map(|snapshot| snapshot.id).collect(),
                }),
            };
        }
        outcome => outcome?,
    };
    if let Some(unreadable) = list.unreadable.iter().find(|other| other.id == id) {
        let reason = unreadable.error.to_string();
        return Err(SnapshotError::Unreadable { id, reason });
    }
    let found = list.snapshots.iter().find(|snapshot| snapshot.id == id);
    Ok(found.expect("the id is that of a snapshot or of one that can't be read"))
}

/// The snapshot taken last of those that the filter lets through, but for those of backups that
/// were interrupted; of several of one instant, the last by [`Snapshot::order`].
#[must_use]
pub fn latest<'a>(snapshots: &'a [Snapshot], filter: &SnapshotFilter) -> Option<&'a Snapshot> {
    let is_sure = |snapshot: &&Snapshot| !snapshot.is_interrupted && !snapshot.is_doubtful;
    let whole = snapshots.iter().filter(is_sure);
    whole
        .filter(|snapshot| filter.matches(snapshot))
        .max_by_key(|snapshot| snapshot.order())
}

/// What backups left behind that were interrupted after the snapshot `since`, the last one first.
#[must_use]
pub fn interrupted_since<'a>(
    snapshots: &'a [Snapshot],
    filter: &SnapshotFilter,
    since: Option<&Snapshot>,
) -> Vec<&'a Snapshot> {
    let is_later = |snapshot: &&Snapshot| since.is_none_or(|since| snapshot.time > since.time);
    let is_wanted = |snapshot: &&Snapshot| {
        snapshot.is_interrupted
            && !snapshot.is_doubtful
            && is_later(snapshot)
            && filter.matches(snapshot)
    };
    let mut interrupted: Vec<_> = snapshots.iter().filter(is_wanted).collect();
    interrupted.sort_by_key(|snapshot| std::cmp::Reverse((snapshot.time, snapshot.id)));
    interrupted
}

fn resolve_latest(list: SnapshotList, filter: &SnapshotFilter) -> Result<Resolved, SnapshotError> {
    match latest(&list.snapshots, filter) {
        Some(snapshot) => Ok(Resolved {
            snapshot: snapshot.clone(),
            unreadable: list.unreadable,
        }),
        None => Err(no_latest(&list, filter)),
    }
}

fn no_latest(list: &SnapshotList, filter: &SnapshotFilter) -> SnapshotError {
    let interrupted = interrupted_since(&list.snapshots, filter, None).len();
    let mut hint = why_none(list, filter);
    if interrupted > 0 {
        let more = "of backups that were interrupted can be named by their ids";
        hint.push_str(&format!("; {interrupted} {more}"));
    }
    SnapshotError::NotFound {
        asked: "fits".to_owned(),
        hint,
    }
}

/// The one id of `ids` (in ascending order) that begins with `prefix`.
pub(super) fn match_prefix(ids: &[ObjectId], prefix: &str) -> Result<ObjectId, SnapshotError> {
    let matches: Vec<ObjectId> = ids
        .iter()
        .filter(|id| id.to_string().starts_with(prefix))
        .copied()
        .collect();
    match matches[..] {
        [id] => Ok(id),
        [] => Err(SnapshotError::NotFound {
            asked: prefix.to_owned(),
            hint: match ids.len() {
                0 => "the repository holds no snapshots".to_owned(),
                count => format!("the ids of the {count} that are there begin otherwise"),
            },
        }),
        _ => Err(SnapshotError::Ambiguous {
            prefix: prefix.to_owned(),
            matches,
        }),
    }
}

/// Says which condition no snapshot fulfils, and what would be there.
fn why_none(list: &SnapshotList, filter: &SnapshotFilter) -> String {
    let whole = |snapshot: &&Snapshot| !snapshot.is_interrupted && !snapshot.is_doubtful;
    let snapshots: Vec<&Snapshot> = list.snapshots.iter().filter(whole).collect();
    let mut hint = if snapshots.is_empty() {
        "the repository holds no snapshots that can be read".to_owned()
    } else if !snapshots.iter().any(|s| filter.matches_host(s)) {
        let hosts = snapshots.iter().map(|s| s.host.clone()).collect();
        format!(
            "none is of host {}; hosts are {}",
            filter.hosts.join(" or "),
            some_of(&hosts)
        )
    } else if !snapshots.iter().any(|s| filter.matches_paths(s)) {
        let wanted = filter.paths.iter().map(|path| readable(path)).collect();
        let paths = snapshots
            .iter()
            .flat_map(|s| &s.paths)
            .map(|path| readable(path));
        format!(
            "none is of {}; paths are {}",
            some_of(&wanted),
            some_of(&paths.collect())
        )
    } else if !snapshots.iter().any(|s| filter.matches_tags(s)) {
        let tags = snapshots.iter().flat_map(|s| s.tags.clone()).collect();
        format!(
            "none has the tags {}; tags are {}",
            filter.tags.join(", "),
            some_of(&tags)
        )
    } else {
        "each condition on host, paths and tags is met by some, all of them by none".to_owned()
    };
    if !list.unreadable.is_empty() {
        hint.push_str(&format!("; {} can't be read", list.unreadable.len()));
    }
    hint
}

fn readable(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn some_of(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "not used".to_owned();
    }
    let shown: Vec<&str> = names
        .iter()
        .take(NAMES_SHOWN_MAX)
        .map(String::as_str)
        .collect();
    let more = names.len() - shown.len();
    let ending = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    shown.join(", ") + &ending
}

/// Ids for a message.
pub(super) fn listed(ids: &[ObjectId]) -> String {
    some_of(&ids.iter().map(ObjectId::to_string).collect())
}
