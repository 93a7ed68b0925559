//! Which snapshots are kept and forgotten together: those that have the same host, paths or tags,
//! as was asked for.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::snapshot::Snapshot;

/// What snapshots of one group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grouping {
    /// The host.
    pub by_host: bool,
    /// The paths, in any order.
    pub by_paths: bool,
    /// The tags, in any order.
    pub by_tags: bool,
}

impl Default for Grouping {
    /// Host and paths: what one backup command makes day by day.
    fn default() -> Self {
        Self {
            by_host: true,
            by_paths: true,
            by_tags: false,
        }
    }
}

impl Grouping {
    /// All snapshots are one group.
    pub const NONE: Grouping = Grouping {
        by_host: false,
        by_paths: false,
        by_tags: false,
    };

    /// The group that a snapshot is in.
    #[must_use]
    pub fn key_of(self, snapshot: &Snapshot) -> GroupKey {
        let paths = || snapshot.paths.iter().cloned().collect();
        let tags = || snapshot.tags.iter().cloned().collect();
        GroupKey {
            host: self.by_host.then(|| snapshot.host.clone()),
            paths: self.by_paths.then(paths),
            tags: self.by_tags.then(tags),
        }
    }
}

/// The text is no way to group snapshots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is nothing to group by: give some of host, paths, tags with commas between, or none"
)]
pub struct BadGrouping(String);

impl FromStr for Grouping {
    type Err = BadGrouping;

    /// `host,paths`, or `none`.
    fn from_str(text: &str) -> Result<Self, BadGrouping> {
        let mut grouping = Self::NONE;
        if matches!(text, "" | "none") {
            return Ok(grouping);
        }
        for word in text.split(',') {
            match word {
                "host" => grouping.by_host = true,
                "path" | "paths" => grouping.by_paths = true,
                "tag" | "tags" => grouping.by_tags = true,
                _ => return Err(BadGrouping(word.to_owned())),
            }
        }
        Ok(grouping)
    }
}

/// What the snapshots of a group have in common; nothing where it was not asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey {
    /// The host.
    pub host: Option<String>,
    /// The paths.
    pub paths: Option<BTreeSet<Vec<u8>>>,
    /// The tags.
    pub tags: Option<BTreeSet<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groupings_are_read() {
        let parse = |text: &str| text.parse::<Grouping>();
        assert_eq!(parse("host,paths"), Ok(Grouping::default()));
        assert_eq!(parse("paths,host"), Ok(Grouping::default()));
        assert_eq!(parse("none"), Ok(Grouping::NONE));
        assert_eq!(parse(""), Ok(Grouping::NONE));
        assert!(parse("tags").unwrap().by_tags);
        for bad in ["hosts", "host,", "host paths", "all"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn order_and_repetition_make_no_other_group() {
        let of = |paths: &[&str], tags: &[&str]| Snapshot {
            paths: paths.iter().map(|path| path.as_bytes().to_vec()).collect(),
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            ..Snapshot::default()
        };
        let (one, two) = (of(&["/a", "/b"], &["x"]), of(&["/b", "/a", "/b"], &[]));
        let grouping = Grouping::default();
        assert_eq!(grouping.key_of(&one), grouping.key_of(&two));
        let by_all: Grouping = "host,paths,tags".parse().unwrap();
        assert_ne!(by_all.key_of(&one), by_all.key_of(&two));
        assert_eq!(Grouping::NONE.key_of(&one), GroupKey::default());
    }
}
