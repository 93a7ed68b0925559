//! Which snapshots a policy keeps, and why each.
//!
//! Enters: all snapshots of a repository, a policy, which of them it is for, how they are grouped,
//! the time now and the time zone of the calendar. Leaves: for each group its snapshots, oldest
//! first, each with the reasons to keep it; what has none goes. Nothing is read, written or
//! deleted here, and no clock is looked at.
//!
//! Method, for each group on its own, the newest snapshot first (of equal times, the one of the
//! greater id counts as newer):
//! * Only snapshots that are *whole* and not *in the future* take part in the rules that count and
//!   in those of the calendar. Each rule looks at all of them, whatever other rules keep.
//! * *last N* keeps the first N. A rule of a period keeps the newest snapshot of each of the last N
//!   hours, days, weeks, months, years that have one. Hours, days and so on are those of the
//!   calendar in the time zone; weeks are those of ISO 8601. While such a rule has places left, the
//!   oldest snapshot takes one: a history that is shorter than the rule asks for keeps its
//!   beginning.
//! * *within D* keeps what is at most D older than the newest snapshot (not than now: a machine that
//!   is off for a year loses nothing by it); *within D* of a period keeps the newest of each period
//!   there.
//! * A tag keeps what carries it; a protected snapshot is always kept.
//! * What an interrupted backup left fills no place. It is kept while the next backup would go on
//!   from it: until there is a whole snapshot of the same host and paths that is not older.
//!   After that only *within*, tags and protection keep it.
//! * A snapshot in the future comes from a clock that was wrong, here or there. It is kept, and
//!   fills no place.

mod calendar;
mod group;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use calendar::{BadDuration, CalendarDuration, Period};
pub use group::{BadGrouping, GroupKey, Grouping};
pub use jiff::tz::TimeZone;

use crate::snapshot::{Snapshot, SnapshotFilter};
use crate::timestamp::Timestamp;
use calendar::{Bucket, instant};

/// How many snapshots a rule keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// So many.
    Number(u64),
    /// As many as there are.
    All,
}

impl Places {
    fn has_room_after(self, taken: u64) -> bool {
        match self {
            Places::Number(number) => taken < number,
            Places::All => true,
        }
    }
}

/// What is kept. A rule that is not there keeps nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The newest ones.
    pub last: Option<Places>,
    /// The newest of each of so many periods.
    pub periods: BTreeMap<Period, Places>,
    /// All that are at most so much older than the newest.
    pub within: Option<CalendarDuration>,
    /// The newest of each period, as far back as that.
    pub within_periods: BTreeMap<Period, CalendarDuration>,
    /// All that have one of these tags.
    pub tags: BTreeSet<String>,
}

impl RetentionPolicy {
    /// Does it keep nothing, whatever there is (but for what is kept without any rule)?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let none = |places: &Places| *places == Places::Number(0);
        self.last.as_ref().is_none_or(none)
            && self.periods.values().all(none)
            && self.within.is_none()
            && self.within_periods.is_empty()
            && self.tags.is_empty()
    }
}

/// Why a snapshot is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is protected.
    Protected,
    /// It is one of the newest.
    Last,
    /// It is the newest of an hour, a day, …
    Period {
        /// Of which rule.
        period: Period,
        /// Which one, as `2026-11-20`.
        name: String,
        /// It is there as the oldest of all, for a rule that has places left.
        is_oldest: bool,
    },
    /// It is young enough.
    Within(CalendarDuration),
    /// It is young enough, and the newest of an hour, a day, …
    WithinPeriod {
        /// How young is young.
        within: CalendarDuration,
        /// Of which rule.
        period: Period,
        /// Which one.
        name: String,
    },
    /// It has this tag.
    Tag(String),
    /// The next backup goes on from it.
    Interrupted,
    /// It was made later than now.
    Future,
}

impl Reason {
    /// The rule: a word that never changes.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Reason::Protected => "protected",
            Reason::Last => "last",
            Reason::Period { period, .. } => period.adjective(),
            Reason::Within(_) => "within",
            Reason::WithinPeriod { period, .. } => period.within_name(),
            Reason::Tag(_) => "tag",
            Reason::Interrupted => "interrupted",
            Reason::Future => "future",
        }
    }

    /// What the rule found: the period, the duration, the tag.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        match self {
            Reason::Period { name, .. } | Reason::WithinPeriod { name, .. } => Some(name.clone()),
            Reason::Within(within) => Some(within.to_string()),
            Reason::Tag(tag) => Some(tag.clone()),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    /// As a person reads it: `daily 2026-11-20`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Protected => f.write_str("protected"),
            Reason::Last => f.write_str("last"),
            Reason::Period {
                period,
                name,
                is_oldest,
            } => {
                let oldest = if *is_oldest { " (oldest)" } else { "" };
                write!(f, "{} {name}{oldest}", period.adjective())
            }
            Reason::Within(within) => write!(f, "within {within}"),
            Reason::WithinPeriod {
                within,
                period,
                name,
            } => write!(f, "{} {name} within {within}", period.adjective()),
            Reason::Tag(tag) => write!(f, "tag {tag}"),
            Reason::Interrupted => f.write_str("interrupted: the next backup goes on from it"),
            Reason::Future => f.write_str("dated in the future"),
        }
    }
}

/// What becomes of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Which one.
    pub snapshot: &'a Snapshot,
    /// Why it is kept; it goes when there are none.
    pub reasons: Vec<Reason>,
}

impl Decision<'_> {
    /// Does it stay?
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !self.reasons.is_empty()
    }
}

/// What becomes of the snapshots of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPlan<'a> {
    /// What they have in common.
    pub key: GroupKey,
    /// Each of them, oldest first.
    pub decisions: Vec<Decision<'a>>,
}

impl GroupPlan<'_> {
    /// Would nothing be left of the group that could be restored whole, though there is something?
    #[must_use]
    pub fn loses_everything(&self) -> bool {
        let is_whole = |decision: &&Decision<'_>| !decision.snapshot.is_interrupted;
        let mut kept = self.decisions.iter().filter(|decision| decision.is_kept());
        if self.decisions.iter().any(|decision| is_whole(&decision)) {
            !kept.any(|decision| is_whole(&decision))
        } else {
            kept.next().is_none()
        }
    }
}

/// What a policy is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only these snapshots.
    pub filter: SnapshotFilter,
    /// What makes a group of them.
    pub grouping: Grouping,
}

/// Decides what becomes of those of `snapshots`, all of a repository, that are in the scope. Groups
/// are in order of their keys.
#[must_use]
pub fn plan<'a>(
    snapshots: &'a [Snapshot],
    policy: &RetentionPolicy,
    scope: &Scope,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<GroupPlan<'a>> {
    let mut groups: BTreeMap<GroupKey, Vec<&Snapshot>> = BTreeMap::new();
    for snapshot in snapshots {
        if scope.filter.matches(snapshot) {
            let key = scope.grouping.key_of(snapshot);
            groups.entry(key).or_default().push(snapshot);
        }
    }
    let planned = groups.into_iter().map(|(key, mut members)| {
        members.sort_by_key(|snapshot| snapshot.order());
        let reasons = Rules {
            all: snapshots,
            policy,
            now,
            zone,
        }
        .reasons(&members);
        let decisions = members.into_iter().zip(reasons);
        let decisions = decisions.map(|(snapshot, reasons)| Decision { snapshot, reasons });
        GroupPlan {
            key,
            decisions: decisions.collect(),
        }
    });
    planned.collect()
}

struct Rules<'a> {
    all: &'a [Snapshot],
    policy: &'a RetentionPolicy,
    now: Timestamp,
    zone: &'a TimeZone,
}

impl Rules<'_> {
    /// The reasons to keep each snapshot of a group, which is sorted, oldest first.
    fn reasons(&self, members: &[&Snapshot]) -> Vec<Vec<Reason>> {
        let mut reasons: Vec<Vec<Reason>> = vec![Vec::new(); members.len()];
        for (snapshot, reasons) in members.iter().zip(&mut reasons) {
            self.keep_as_it_is(snapshot, reasons);
        }
        let is_past = |position: &usize| !self.is_future(members[*position]);
        let past: Vec<usize> = (0..members.len()).rev().filter(is_past).collect();
        let whole = past.iter().copied();
        let whole: Vec<usize> = whole
            .filter(|&position| !members[position].is_interrupted)
            .collect();
        if let Some(last) = self.policy.last {
            for (&position, taken) in whole.iter().zip(0..) {
                if last.has_room_after(taken) {
                    reasons[position].push(Reason::Last);
                }
            }
        }
        for (&period, &places) in &self.policy.periods {
            for (position, name, is_oldest) in self.newest_of_each(members, &whole, period, places)
            {
                reasons[position].push(Reason::Period {
                    period,
                    name,
                    is_oldest,
                });
            }
        }
        let Some(newest) = whole.first().or(past.first()) else {
            return reasons;
        };
        let newest = members[*newest].time;
        if let Some(within) = self.policy.within {
            let limit = within.before(newest, self.zone);
            for &position in &past {
                if instant(members[position].time) >= limit {
                    reasons[position].push(Reason::Within(within));
                }
            }
        }
        for (&period, &within) in &self.policy.within_periods {
            let limit = within.before(newest, self.zone);
            let newest_of_each = self.newest_of_each(members, &whole, period, Places::All);
            for (position, name, is_oldest) in newest_of_each {
                // A duration has no places left.
                if !is_oldest && instant(members[position].time) >= limit {
                    reasons[position].push(Reason::WithinPeriod {
                        within,
                        period,
                        name,
                    });
                }
            }
        }
        reasons
    }

    /// What a snapshot is kept for by itself, whatever others there are in its group.
    fn keep_as_it_is(&self, snapshot: &Snapshot, reasons: &mut Vec<Reason>) {
        if snapshot.is_protected {
            reasons.push(Reason::Protected);
        }
        let tags = snapshot.tags.iter().collect::<BTreeSet<_>>();
        for tag in self.policy.tags.iter().filter(|tag| tags.contains(tag)) {
            reasons.push(Reason::Tag(tag.clone()));
        }
        if self.is_future(snapshot) {
            reasons.push(Reason::Future);
        }
        if snapshot.is_interrupted && !self.has_successor(snapshot) {
            reasons.push(Reason::Interrupted);
        }
    }

    fn is_future(&self, snapshot: &Snapshot) -> bool {
        snapshot.time > self.now
    }

    /// Is there a whole snapshot that backups take unchanged files from rather than from this one?
    fn has_successor(&self, interrupted: &Snapshot) -> bool {
        let same = SnapshotFilter {
            hosts: vec![interrupted.host.clone()],
            paths: interrupted.paths.clone(),
            tags: Vec::new(),
        };
        let is_successor = |other: &Snapshot| {
            !other.is_interrupted && other.time >= interrupted.time && same.matches(other)
        };
        self.all.iter().any(is_successor)
    }

    /// Of the members at `whole`, newest first: the newest of each period while there are places,
    /// with the period's name; and the oldest of all, if there is a place left for it.
    fn newest_of_each(
        &self,
        members: &[&Snapshot],
        whole: &[usize],
        period: Period,
        places: Places,
    ) -> Vec<(usize, String, bool)> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, &position) in whole.iter().enumerate() {
            if !places.has_room_after(found.len() as u64) {
                break;
            }
            let bucket = Bucket::of(members[position].time, period, self.zone);
            let name = bucket.name().to_owned();
            if seen.insert(bucket) {
                found.push((position, name, false));
            } else if index + 1 == whole.len() {
                found.push((position, name, true));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
