//! `onefold forget`: removes snapshots by a policy, or by their ids.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use clap::Args;
use comfy_table::{Cell, Row};
use repository::Repository;
use repository::retention::{
    CalendarDuration, Decision, GroupKey, GroupPlan, Grouping, Period, Places, RetentionPolicy,
    Scope, TimeZone, plan,
};
use repository::snapshot::{SnapshotFilter, SnapshotList, SnapshotSpec};
use repository::timestamp::Timestamp;

use crate::arguments::FilterArguments;
use crate::commands::snapshots::marks;
use crate::events::{DecisionEvent, Event, PathTexts, ReasonEvent, Summary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::names;
use crate::selection::parse_spec;
use crate::session::Session;
use crate::table;
use crate::times;
use crate::units;

/// What there is to choose from, for who gave nothing.
const HINT_RULES: &str = "give a rule such as --keep-daily 7 --keep-weekly 4 (with --dry-run to see what it would do), or the ids of the snapshots to forget";

/// Remove snapshots: those that no rule keeps, or those that are named
///
/// Snapshots are grouped by host and paths, and the rules hold for each group on its own; a snapshot
/// is kept when any rule keeps it. Hours, days, weeks (from Monday on), months and years are those of the
/// calendar in the local time zone; the newest snapshot of each is kept. While a rule has places
/// left, the oldest snapshot takes one. Always kept are protected snapshots, what an interrupted
/// backup left until a whole one follows, and what is dated in the future.
///
/// Only the snapshots are removed: what they alone used stays stored until `prune` deletes it. What can't
/// be read is left as it is, and named; the exit code is 13 then. See docs/guide/forget.md.
#[derive(Debug, Args)]
#[command(
    override_usage = "\
onefold forget [OPTIONS] --keep-…
       onefold forget [OPTIONS] <SNAPSHOT>...",
    after_help = "\
Examples:
  onefold forget --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --keep-yearly all --dry-run
  onefold forget --keep-last 3 --host laptop
  onefold forget --keep-within 14d --keep-within-weekly 6m --keep-tag keep
  onefold forget 1a2b3c4d 5e6f7a8b"
)]
pub struct ForgetArguments {
    /// Forget these: ids, beginnings of ids, or `latest`
    #[arg(
        value_name = "SNAPSHOT",
        value_parser = parse_spec,
        conflicts_with_all = ["hosts", "paths", "tags", "unsafe_allow_remove_all"],
    )]
    snapshots: Vec<SnapshotSpec>,

    /// Remove nothing, and say what would be removed
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// What makes a group, that the rules hold for: some of host, paths, tags; or `none`
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "host,paths",
        value_parser = parse_grouping,
    )]
    group_by: Grouping,

    /// Go on even where no whole snapshot of a group would be left; with --host, --path or --tag,
    /// no rule is needed then
    #[arg(long)]
    unsafe_allow_remove_all: bool,

    #[command(flatten)]
    filter: FilterArguments,

    // Last, for its heading holds for all arguments after it.
    #[command(flatten)]
    rules: RuleArguments,
}

/// What is kept.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Rules (COUNT is a number, or `all`; DURATION is like 12h, 7d, 4w, 6m, 1y6m)"
)]
struct RuleArguments {
    /// Keep the newest snapshots
    #[arg(long, value_name = "COUNT", value_parser = parse_places, conflicts_with = "snapshots")]
    keep_last: Option<Places>,

    /// Keep the newest snapshot of each of the last hours that have one
    #[arg(long, value_name = "COUNT", value_parser = parse_places, conflicts_with = "snapshots")]
    keep_hourly: Option<Places>,

    /// The same for days
    #[arg(long, value_name = "COUNT", value_parser = parse_places, conflicts_with = "snapshots")]
    keep_daily: Option<Places>,

    /// The same for weeks
    #[arg(long, value_name = "COUNT", value_parser = parse_places, conflicts_with = "snapshots")]
    keep_weekly: Option<Places>,

    /// The same for months
    #[arg(long, value_name = "COUNT", value_parser = parse_places, conflicts_with = "snapshots")]
    keep_monthly: Option<Places>,

    /// The same for years
    #[arg(long, value_name = "COUNT", value_parser = parse_places, conflicts_with = "snapshots")]
    keep_yearly: Option<Places>,

    /// Keep all that are at most so much older than the newest snapshot of the group
    #[arg(long, value_name = "DURATION", conflicts_with = "snapshots")]
    keep_within: Option<CalendarDuration>,

    /// Of those that are at most so much older, keep the newest of each hour
    #[arg(long, value_name = "DURATION", conflicts_with = "snapshots")]
    keep_within_hourly: Option<CalendarDuration>,

    /// The same for days
    #[arg(long, value_name = "DURATION", conflicts_with = "snapshots")]
    keep_within_daily: Option<CalendarDuration>,

    /// The same for weeks
    #[arg(long, value_name = "DURATION", conflicts_with = "snapshots")]
    keep_within_weekly: Option<CalendarDuration>,

    /// The same for months
    #[arg(long, value_name = "DURATION", conflicts_with = "snapshots")]
    keep_within_monthly: Option<CalendarDuration>,

    /// The same for years
    #[arg(long, value_name = "DURATION", conflicts_with = "snapshots")]
    keep_within_yearly: Option<CalendarDuration>,

    /// Keep all with this tag (again: with any of these)
    #[arg(long = "keep-tag", value_name = "TAG", conflicts_with = "snapshots")]
    keep_tags: Vec<String>,
}

fn parse_places(text: &str) -> Result<Places, String> {
    match text {
        "all" | "unlimited" => Ok(Places::All),
        _ => text
            .parse()
            .map(Places::Number)
            .map_err(|_| "a number or `all` is wanted".to_owned()),
    }
}

fn parse_grouping(text: &str) -> Result<Grouping, String> {
    text.parse::<Grouping>().map_err(|error| error.to_string())
}

impl RuleArguments {
    fn policy(&self) -> RetentionPolicy {
        let counts = [
            self.keep_hourly,
            self.keep_daily,
            self.keep_weekly,
            self.keep_monthly,
            self.keep_yearly,
        ];
        let within = [
            self.keep_within_hourly,
            self.keep_within_daily,
            self.keep_within_weekly,
            self.keep_within_monthly,
            self.keep_within_yearly,
        ];
        RetentionPolicy {
            last: self.keep_last,
            periods: by_period(counts),
            within: self.keep_within,
            within_periods: by_period(within),
            tags: self.keep_tags.iter().cloned().collect(),
        }
    }
}

fn by_period<T>(values: [Option<T>; 5]) -> BTreeMap<Period, T> {
    let periods = Period::ALL.into_iter().zip(values);
    periods
        .filter_map(|(period, value)| Some((period, value?)))
        .collect()
}

pub fn run(session: &Session, arguments: &ForgetArguments) -> anyhow::Result<ExitCode> {
    let policy = arguments.rules.policy();
    let filter = arguments.filter.filter();
    if arguments.snapshots.is_empty() {
        check_rules(&policy, &filter, arguments.unsafe_allow_remove_all)?;
    }
    let repository = session.open()?;
    let list = repository.snapshots()?;
    session.tell_unreadable(&list);
    let groups = if arguments.snapshots.is_empty() {
        let scope = Scope {
            filter,
            grouping: arguments.group_by,
        };
        let now = Timestamp::now();
        let groups = plan(&list.snapshots, &policy, &scope, now, &TimeZone::system());
        if !arguments.unsafe_allow_remove_all {
            refuse_losses(&groups)?;
        }
        groups
    } else {
        named(&list, &arguments.snapshots)?
    };
    forget(session, &repository, &list, &groups, arguments)
}

/// Without any rule everything would go: that must be said, and what "everything" is.
fn check_rules(
    policy: &RetentionPolicy,
    filter: &SnapshotFilter,
    may_remove_all: bool,
) -> anyhow::Result<()> {
    if !policy.is_empty() || (may_remove_all && *filter != SnapshotFilter::default()) {
        return Ok(());
    }
    let message = if may_remove_all {
        "neither a rule says what to keep, nor a filter what to forget"
    } else {
        "no rule says what to keep, and no snapshot is named"
    };
    Err(Failure::usage(message).with_hint(HINT_RULES).into())
}

fn refuse_losses(groups: &[GroupPlan<'_>]) -> anyhow::Result<()> {
    let lost = groups.iter().filter(|group| group.loses_everything());
    let lost: Vec<String> = lost.map(|group| described(&group.key)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let message = format!(
        "no whole snapshot would be left of {}: nothing was forgotten",
        lost.join("; of ")
    );
    Err(Failure::new(ExitCode::Failed, message)
        .with_hint(
            "add a rule such as --keep-last 1, or, if that is what you want, --unsafe-allow-remove-all",
        )
        .into())
}

/// The snapshots that are named, as one group of which nothing is kept.
fn named<'a>(list: &'a SnapshotList, specs: &[SnapshotSpec]) -> anyhow::Result<Vec<GroupPlan<'a>>> {
    let mut seen = BTreeSet::new();
    let mut decisions = Vec::new();
    for spec in specs {
        let snapshot = list.find(spec, &SnapshotFilter::default())?;
        if seen.insert(snapshot.id) {
            let reasons = Vec::new();
            decisions.push(Decision { snapshot, reasons });
        }
    }
    decisions.sort_by_key(|decision| (decision.snapshot.time, decision.snapshot.id));
    let key = GroupKey::default();
    Ok(vec![GroupPlan { key, decisions }])
}

fn forget(
    session: &Session,
    repository: &Repository,
    list: &SnapshotList,
    groups: &[GroupPlan<'_>],
    arguments: &ForgetArguments,
) -> anyhow::Result<ExitCode> {
    let decisions = groups.iter().flat_map(|group| &group.decisions);
    let (kept, going): (Vec<_>, Vec<_>) = decisions.partition(|decision| decision.is_kept());
    let snapshots: Vec<_> = going.iter().map(|decision| decision.snapshot).collect();
    repository.check_forgettable(&snapshots)?;
    tell_plan(session, groups, arguments)?;
    if !arguments.dry_run {
        repository.forget(list, &snapshots)?;
    }
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Forget {
            groups: groups.len() as u64,
            snapshots: (kept.len() + going.len()) as u64,
            kept: kept.len() as u64,
            forgotten: going.len() as u64,
            unreadable: list.unreadable.len() as u64,
            is_dry_run: arguments.dry_run,
        })))?;
    let text = text(kept.len(), going.len(), arguments);
    session.output.summary(&text)?;
    Ok(if list.unreadable.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::Damaged
    })
}

fn text(kept: usize, going: usize, arguments: &ForgetArguments) -> String {
    if kept + going == 0 {
        return "No snapshot fits: nothing to forget.".to_owned();
    }
    let would = if arguments.dry_run {
        "Would forget"
    } else {
        "Forgot"
    };
    let mut text = format!(
        "{would} {}",
        units::counted(going as u64, "snapshot", "snapshots")
    );
    if arguments.snapshots.is_empty() {
        text.push_str(&format!(" and keep {}", units::count(kept as u64)));
    }
    text.push('.');
    if going > 0 && !arguments.dry_run {
        text.push_str(" What they alone used stays stored until `onefold prune`.");
    }
    text
}

/// Says what becomes of each snapshot, and why.
fn tell_plan(
    session: &Session,
    groups: &[GroupPlan<'_>],
    arguments: &ForgetArguments,
) -> anyhow::Result<()> {
    if session.output.is_json() {
        for (group, number) in groups.iter().zip(1..) {
            for decision in &group.decisions {
                let event = Event::Decision(Box::new(event_of(decision, number)));
                session.output.event(&event)?;
            }
        }
        return Ok(());
    }
    // With --quiet, a table is what a dry run is for.
    if session.output.is_quiet() && !arguments.dry_run {
        return Ok(());
    }
    let mut out = session.output.results();
    for group in groups {
        if arguments.snapshots.is_empty() {
            let kept = group.decisions.iter().filter(|decision| decision.is_kept());
            writeln!(
                out,
                "{}: keeps {} of {}",
                described(&group.key),
                units::count(kept.count() as u64),
                units::counted(group.decisions.len() as u64, "snapshot", "snapshots"),
            )?;
        }
        for line in lines(group) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}

/// The table of a group: what all have in common has no column.
fn lines(group: &GroupPlan<'_>) -> Vec<String> {
    let columns = [
        ("", true),
        ("ID", true),
        ("TIME", true),
        ("HOST", group.key.host.is_none()),
        ("TAGS", group.key.tags.is_none()),
        ("PATHS", group.key.paths.is_none()),
        ("WHY", true),
    ];
    let is_shown = columns.map(|(_, is_shown)| is_shown);
    let headings = columns.into_iter().filter(|(_, is_shown)| *is_shown);
    let headings: Vec<&str> = headings.map(|(heading, _)| heading).collect();
    let rows = group.decisions.iter().map(|decision| {
        let cells = cells(decision).into_iter().zip(is_shown);
        let shown = cells.filter(|(_, is_shown)| *is_shown);
        Row::from(shown.map(|(cell, _)| cell).collect::<Vec<_>>())
    });
    let flexible: Vec<usize> = (3..headings.len()).collect();
    table::lines(&headings, rows.collect(), &flexible)
}

fn cells(decision: &Decision<'_>) -> [Cell; 7] {
    let snapshot = decision.snapshot;
    let escaped = |items: Vec<&[u8]>| {
        let lines: Vec<String> = items.into_iter().map(names::escaped).collect();
        Cell::new(lines.join("\n"))
    };
    let reasons = decision.reasons.iter();
    let reasons: Vec<String> = reasons
        .map(|reason| names::escaped_text(&reason.to_string()))
        .collect();
    [
        Cell::new(if decision.is_kept() { "keep" } else { "forget" }),
        Cell::new(snapshot.id.short() + &marks(snapshot)),
        Cell::new(times::local(snapshot.time)),
        Cell::new(names::escaped(snapshot.host.as_bytes())),
        escaped(snapshot.tags.iter().map(String::as_bytes).collect()),
        escaped(snapshot.paths.iter().map(Vec::as_slice).collect()),
        Cell::new(reasons.join(", ")),
    ]
}

/// A group for a person.
fn described(key: &GroupKey) -> String {
    let joined = |names: Vec<String>| match names.len() {
        0 => "none".to_owned(),
        _ => names.join(", "),
    };
    let mut parts = Vec::new();
    if let Some(host) = &key.host {
        parts.push(format!("host {}", names::escaped(host.as_bytes())));
    }
    if let Some(paths) = &key.paths {
        let paths = paths.iter().map(|path| names::escaped(path));
        parts.push(format!("paths {}", joined(paths.collect())));
    }
    if let Some(tags) = &key.tags {
        let tags = tags.iter().map(|tag| names::escaped(tag.as_bytes()));
        parts.push(format!("tags {}", joined(tags.collect())));
    }
    if parts.is_empty() {
        return "all snapshots".to_owned();
    }
    parts.join(", ")
}

fn event_of(decision: &Decision<'_>, group: u64) -> DecisionEvent {
    let snapshot = decision.snapshot;
    let reasons = decision.reasons.iter().map(|reason| ReasonEvent {
        rule: reason.rule(),
        detail: reason.detail(),
        text: reason.to_string(),
    });
    DecisionEvent {
        snapshot: snapshot.id.to_string(),
        time: times::universal(snapshot.time),
        host: snapshot.host.clone(),
        paths: PathTexts::new(&snapshot.paths),
        tags: snapshot.tags.clone(),
        is_interrupted: snapshot.is_interrupted,
        is_protected: snapshot.is_protected,
        group,
        is_kept: decision.is_kept(),
        reasons: reasons.collect(),
    }
}
