//! Tests of retention: each rule by example, and all together against a plain model that counts
//! hours and days by division.

use engine::object::ObjectId;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// 2026-11-20 12:00, a Friday.
const NOON: i64 = 1_795_176_000;

fn time(seconds: i64) -> Timestamp {
    Timestamp {
        seconds,
        nanoseconds: 0,
    }
}

fn at(number: usize, seconds: i64) -> Snapshot {
    Snapshot {
        id: ObjectId((number as u128).to_be_bytes()),
        time: time(seconds),
        host: "here".to_owned(),
        paths: vec![b"/home".to_vec()],
        ..Snapshot::default()
    }
}

fn series(seconds: impl IntoIterator<Item = i64>) -> Vec<Snapshot> {
    let numbered = seconds.into_iter().enumerate();
    numbered
        .map(|(number, seconds)| at(number, seconds))
        .collect()
}

fn period(period: Period, number: u64) -> RetentionPolicy {
    RetentionPolicy {
        periods: BTreeMap::from([(period, Places::Number(number))]),
        ..RetentionPolicy::default()
    }
}

fn last(number: u64) -> RetentionPolicy {
    RetentionPolicy {
        last: Some(Places::Number(number)),
        ..RetentionPolicy::default()
    }
}

fn within(text: &str) -> RetentionPolicy {
    RetentionPolicy {
        within: Some(text.parse().unwrap()),
        ..RetentionPolicy::default()
    }
}

/// The reasons for each snapshot of one group, as a person reads them.
fn reasons(snapshots: &[Snapshot], policy: &RetentionPolicy, now: i64) -> Vec<Vec<String>> {
    let scope = Scope::default();
    let groups = plan(snapshots, policy, &scope, time(now), &TimeZone::UTC);
    assert_eq!(groups.len(), 1, "{groups:?}");
    let decisions = groups[0].decisions.iter();
    let texts = |decision: &Decision| decision.reasons.iter().map(Reason::to_string).collect();
    decisions.map(texts).collect()
}

/// The numbers of the snapshots that are kept.
fn kept(snapshots: &[Snapshot], policy: &RetentionPolicy, now: i64) -> Vec<usize> {
    let reasons = reasons(snapshots, policy, now).into_iter().enumerate();
    let kept = reasons.filter(|(_, reasons)| !reasons.is_empty());
    kept.map(|(number, _)| number).collect()
}

#[test]
fn the_newest_of_each_day_is_kept_and_the_oldest_while_there_is_room() {
    let hours = [-50, -49, -26, -25, -1, 0];
    let snapshots = series(hours.map(|hour| NOON + hour * HOUR));
    let two = reasons(&snapshots, &period(Period::Day, 2), NOON);
    let none = Vec::<String>::new();
    let daily = |day: &str| vec![format!("daily {day}")];
    let expected = [
        none.clone(),
        none.clone(),
        none.clone(),
        daily("2026-11-19"),
        none.clone(),
        daily("2026-11-20"),
    ];
    assert_eq!(two, expected);
    let four = reasons(&snapshots, &period(Period::Day, 4), NOON);
    assert_eq!(four[0], daily("2026-11-18 (oldest)"));
    assert_eq!(four[1], daily("2026-11-18"));
    assert_eq!(kept(&snapshots, &period(Period::Day, 3), NOON), [1, 3, 5]);
    // Three days in one year: the yearly rule keeps the newest and the beginning.
    assert_eq!(kept(&snapshots, &period(Period::Year, 2), NOON), [0, 5]);
    assert_eq!(kept(&snapshots, &period(Period::Year, 1), NOON), [5]);
}

#[test]
fn rules_count_on_their_own_and_all_their_reasons_are_told() {
    let snapshots = series([NOON - DAY, NOON - HOUR, NOON]);
    let policy = RetentionPolicy {
        periods: BTreeMap::from([
            (Period::Hour, Places::Number(1)),
            (Period::Day, Places::All),
        ]),
        ..last(2)
    };
    let reasons = reasons(&snapshots, &policy, NOON);
    assert_eq!(reasons[0], ["daily 2026-11-19"]);
    assert_eq!(reasons[1], ["last"]);
    assert_eq!(
        reasons[2],
        ["last", "hourly 2026-11-20 12:00", "daily 2026-11-20"]
    );
}

#[test]
fn within_counts_from_the_newest_snapshot_and_not_from_now() {
    let snapshots = series([-9, -7, -6, 0].map(|days| NOON + days * DAY));
    let year_later = NOON + 365 * DAY;
    for now in [NOON, year_later] {
        assert_eq!(kept(&snapshots, &within("7d"), now), [1, 2, 3]);
    }
    let weekly = RetentionPolicy {
        within_periods: BTreeMap::from([(Period::Week, "8d".parse().unwrap())]),
        ..RetentionPolicy::default()
    };
    let reasons = reasons(&snapshots, &weekly, NOON);
    // The 13th and the 14th lie in one week.
    assert_eq!(reasons[2], ["weekly 2026-W46 within 8d"]);
    assert_eq!(kept(&snapshots, &weekly, NOON), [2, 3]);
    let younger = kept(&snapshots[1..], &weekly, NOON);
    assert_eq!(younger, [1, 2], "the oldest takes no place of a duration");
}

#[test]
fn what_lies_in_the_future_is_kept_and_takes_no_place() {
    let snapshots = series([NOON - DAY, NOON, NOON + 70 * 365 * DAY]);
    for policy in [last(1), period(Period::Year, 1), within("1h")] {
        let reasons = reasons(&snapshots, &policy, NOON);
        assert!(reasons[0].is_empty());
        assert_eq!(reasons[1].len(), 1);
        assert_eq!(reasons[2], ["dated in the future"]);
    }
    // A machine whose clock has lost its battery forgets nothing.
    assert_eq!(kept(&snapshots, &last(1), 0), [0, 1, 2]);
}

#[test]
fn equal_times_are_ordered_by_their_ids() {
    let snapshots = series([NOON; 4]);
    assert_eq!(kept(&snapshots, &last(2), NOON), [2, 3]);
    let mut turned = snapshots.clone();
    turned.reverse();
    assert_eq!(kept(&turned, &last(2), NOON), [2, 3], "oldest first");
    assert_eq!(kept(&snapshots, &period(Period::Day, 1), NOON), [3]);
}

#[test]
fn interrupted_ones_wait_for_a_whole_one_and_take_no_place() {
    let mut snapshots = series([-4, -3, -2, -1].map(|days| NOON + days * DAY));
    snapshots[0].is_interrupted = true;
    snapshots[2].is_interrupted = true;
    snapshots[3].is_interrupted = true;
    let reasons = reasons(&snapshots, &last(1), NOON);
    assert!(reasons[0].is_empty(), "a whole one came after it");
    assert_eq!(reasons[1], ["last"]);
    let waits = ["interrupted: the next backup goes on from it"];
    assert_eq!(reasons[2], waits);
    assert_eq!(reasons[3], waits);
    // Young ones of a machine whose backups do not end must not push its whole one out.
    assert_eq!(kept(&snapshots, &within("1h"), NOON), [1, 2, 3]);

    // A successor may be in another group, and must have all the paths.
    let mut other = at(4, NOON);
    other.tags.push("x".to_owned());
    other.paths.push(b"/etc".to_vec());
    snapshots.push(other);
    let scope = Scope {
        filter: SnapshotFilter::default(),
        grouping: "host,tags".parse().unwrap(),
    };
    let groups = plan(&snapshots, &last(1), &scope, time(NOON), &TimeZone::UTC);
    let is_kept = |group: &GroupPlan| {
        let decisions = group.decisions.iter();
        decisions.map(Decision::is_kept).collect::<Vec<_>>()
    };
    assert_eq!(is_kept(&groups[0]), [false, true, false, false]);
    assert_eq!(is_kept(&groups[1]), [true]);
    snapshots[4].host = "there".to_owned();
    let groups = plan(&snapshots, &last(1), &scope, time(NOON), &TimeZone::UTC);
    assert_eq!(is_kept(&groups[0]), [false, true, true, true]);
}

#[test]
fn tags_and_protection_keep() {
    let mut snapshots = series([-2, -1, 0].map(|days| NOON + days * DAY));
    snapshots[0].is_protected = true;
    snapshots[1].tags = vec!["a".to_owned(), "b".to_owned()];
    let policy = RetentionPolicy {
        tags: ["b".to_owned(), "c".to_owned()].into(),
        ..RetentionPolicy::default()
    };
    let reasons = reasons(&snapshots, &policy, NOON);
    assert_eq!(reasons[0], ["protected"]);
    assert_eq!(reasons[1], ["tag b"]);
    assert!(reasons[2].is_empty());
}

#[test]
fn groups_are_planned_on_their_own() {
    let mut snapshots = series([-3, -2, -1, 0].map(|days| NOON + days * DAY));
    snapshots[1].host = "there".to_owned();
    snapshots[3].paths = vec![b"/etc".to_vec()];
    let groups = |grouping: &str, filter: SnapshotFilter| {
        let scope = Scope {
            filter,
            grouping: grouping.parse().unwrap(),
        };
        let groups = plan(&snapshots, &last(1), &scope, time(NOON), &TimeZone::UTC);
        let sizes = groups.iter().map(|group| group.decisions.len());
        sizes.collect::<Vec<_>>()
    };
    let all = SnapshotFilter::default;
    assert_eq!(groups("host,paths", all()), [1, 2, 1]);
    assert_eq!(groups("host", all()), [3, 1]);
    assert_eq!(groups("paths", all()), [1, 3]);
    assert_eq!(groups("none", all()), [4]);
    let there = SnapshotFilter {
        hosts: vec!["there".to_owned()],
        ..SnapshotFilter::default()
    };
    assert_eq!(groups("none", there), [1]);
}

#[test]
fn a_group_that_loses_everything_is_noticed() {
    let tag = |tag: &str| RetentionPolicy {
        tags: [tag.to_owned()].into(),
        ..RetentionPolicy::default()
    };
    let loses = |snapshots: &[Snapshot], policy: &RetentionPolicy| {
        let scope = Scope::default();
        let groups = plan(snapshots, policy, &scope, time(NOON), &TimeZone::UTC);
        groups[0].loses_everything()
    };
    let mut snapshots = series([NOON - DAY, NOON]);
    assert!(loses(&snapshots, &tag("x")));
    assert!(!loses(&snapshots, &last(1)));
    // What was interrupted is kept, and is no backup.
    snapshots[1].is_interrupted = true;
    assert!(loses(&snapshots, &tag("x")));
    assert!(!loses(&snapshots[1..], &tag("x")));
    snapshots[0].tags.push("x".to_owned());
    assert!(!loses(&snapshots, &tag("x")));
}

#[test]
fn policies_that_keep_nothing_are_known() {
    assert!(RetentionPolicy::default().is_empty());
    assert!(last(0).is_empty());
    assert!(period(Period::Day, 0).is_empty());
    assert!(!period(Period::Day, 1).is_empty());
    assert!(!within("0h").is_empty());
}

/// Year and month of a day since 1970 (days are counted through, month by month).
fn month_of(day: i64) -> (i64, i64) {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut month, mut left) = (1970, 1, day);
    loop {
        let days = match month {
            2 => 28 + i64::from(is_leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if left < days {
            return (year, month);
        }
        left -= days;
        (year, month) = if month == 12 {
            (year + 1, 1)
        } else {
            (year, month + 1)
        };
    }
}

/// The number of the period that a time lies in.
fn bucket(seconds: i64, period: Period) -> i64 {
    let day = seconds / DAY;
    match period {
        Period::Hour => seconds / HOUR,
        Period::Day => day,
        // 1970 began on a Thursday.
        Period::Week => (day + 3) / 7,
        Period::Month => month_of(day).0 * 12 + month_of(day).1,
        Period::Year => month_of(day).0,
    }
}

/// Is the snapshot kept by the rule, as its definition says it? `whole` are the times and ids of
/// all that count.
fn model_keeps(
    whole: &[(i64, ObjectId)],
    this: (i64, ObjectId),
    period: Period,
    places: u64,
) -> bool {
    let buckets: BTreeSet<i64> = whole.iter().map(|one| bucket(one.0, period)).collect();
    let mine = bucket(this.0, period);
    let newer_buckets = buckets.iter().filter(|&&other| other > mine).count() as u64;
    let is_newest_of_bucket = whole
        .iter()
        .all(|other| bucket(other.0, period) != mine || *other <= this);
    let is_oldest = whole.iter().min() == Some(&this);
    (is_newest_of_bucket && newer_buckets < places)
        || (is_oldest && (buckets.len() as u64) < places)
}

fn any_places() -> impl Strategy<Value = Places> {
    prop_oneof![
        8 => (0u64..12).prop_map(Places::Number),
        1 => Just(Places::All),
    ]
}

fn number_of(places: Places) -> u64 {
    match places {
        Places::Number(number) => number,
        Places::All => u64::MAX,
    }
}

prop_compose! {
    fn any_policy()(
        last in proptest::option::of(any_places()),
        counts in vec(proptest::option::of(any_places()), 5),
        within_days in proptest::option::of(0u32..90),
        within_counts in vec(proptest::option::weighted(0.3, 0u32..400), 5),
        tags in btree_set("[ab]", 0..2),
    ) -> RetentionPolicy {
        let days = |days| CalendarDuration { days, ..CalendarDuration::default() };
        let periods = Period::ALL.into_iter().zip(counts);
        let within_periods = Period::ALL.into_iter().zip(within_counts);
        RetentionPolicy {
            last,
            periods: periods.filter_map(|(period, places)| Some((period, places?))).collect(),
            within: within_days.map(days),
            within_periods: within_periods
                .filter_map(|(period, within)| Some((period, days(within?))))
                .collect(),
            tags,
        }
    }
}

prop_compose! {
    fn any_snapshots()(
        facts in vec(
            (0i64..3 * 365 * 24 * 4, "[abc]{0,1}", 0u8..12, 0u8..12), 1..80,
        ),
    ) -> Vec<Snapshot> {
        let snapshots = facts.into_iter().enumerate().map(|(number, fact)| {
            let (quarters, tag, interrupted, protected) = fact;
            let mut snapshot = at(number, NOON - quarters * HOUR / 4);
            snapshot.tags.extend((!tag.is_empty()).then_some(tag));
            snapshot.is_interrupted = interrupted == 0;
            snapshot.is_protected = protected == 0;
            snapshot
        });
        snapshots.collect()
    }
}

proptest! {
    #[test]
    fn plans_agree_with_the_model(
        snapshots in any_snapshots(), policy in any_policy(), ago in -1i64..400,
    ) {
        // Some lie in the future.
        let now = NOON - ago * DAY;
        let scope = Scope::default();
        let groups = plan(&snapshots, &policy, &scope, time(now), &TimeZone::UTC);
        prop_assert_eq!(groups.len(), 1);
        prop_assert_eq!(groups[0].decisions.len(), snapshots.len());
        let whole: Vec<(i64, ObjectId)> = snapshots
            .iter()
            .filter(|snapshot| !snapshot.is_interrupted && snapshot.time.seconds <= now)
            .map(|snapshot| (snapshot.time.seconds, snapshot.id))
            .collect();
        let past = snapshots.iter().map(|snapshot| snapshot.time.seconds);
        let newest = whole.iter().map(|one| one.0).max();
        let newest = newest.or_else(|| past.filter(|&seconds| seconds <= now).max());
        let newest_whole = snapshots.iter().filter(|snapshot| !snapshot.is_interrupted);
        let newest_whole = newest_whole.map(|snapshot| snapshot.time.seconds).max();
        let is_young = |seconds: i64, within: &CalendarDuration| {
            newest.is_some_and(|newest| seconds >= newest - i64::from(within.days) * DAY)
        };
        for decision in &groups[0].decisions {
            let snapshot = decision.snapshot;
            let seconds = snapshot.time.seconds;
            let this = (seconds, snapshot.id);
            let is_past = seconds <= now;
            let counts = is_past && !snapshot.is_interrupted;
            let newer = whole.iter().filter(|&&other| other > this).count() as u64;
            let by_last = counts && policy.last.is_some_and(|last| newer < number_of(last));
            let by_period = counts && policy.periods.iter().any(|(&period, &places)| {
                model_keeps(&whole, this, period, number_of(places))
            });
            let by_within = is_past && policy.within.iter().any(|within| is_young(seconds, within));
            let by_within_period = counts && policy.within_periods.iter().any(|(&period, within)| {
                let is_newest = whole.iter().all(|&other| {
                    other <= this || bucket(other.0, period) != bucket(seconds, period)
                });
                is_young(seconds, within) && is_newest
            });
            let is_awaited = snapshot.is_interrupted
                && newest_whole.is_none_or(|newest_whole| newest_whole < seconds);
            let expected = by_last || by_period || by_within || by_within_period || is_awaited
                || !is_past || snapshot.is_protected
                || snapshot.tags.iter().any(|tag| policy.tags.contains(tag));
            prop_assert_eq!(decision.is_kept(), expected, "{:?} {:?}", snapshot, decision.reasons);
        }
    }

    /// Forgetting what a policy lets go, and asking it again, changes nothing.
    #[test]
    fn a_policy_is_done_once(snapshots in any_snapshots(), policy in any_policy()) {
        let scope = Scope::default();
        let again = |snapshots: &[Snapshot]| -> Vec<Snapshot> {
            let groups = plan(snapshots, &policy, &scope, time(NOON), &TimeZone::UTC);
            let decisions = groups.into_iter().flat_map(|group| group.decisions);
            let kept = decisions.filter(|decision| decision.is_kept());
            kept.map(|decision| decision.snapshot.clone()).collect()
        };
        let once = again(&snapshots);
        // (What the next backup goes on from may be more, once nothing whole is left.)
        let has_whole = once.iter().any(|snapshot| !snapshot.is_interrupted);
        prop_assume!(has_whole);
        prop_assert_eq!(again(&once), once);
    }
}
