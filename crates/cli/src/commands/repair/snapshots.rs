//! `onefold repair snapshots`: of damaged snapshots new ones, without what is lost.

use std::time::{Duration, Instant};

use clap::Args;
use repository::files::host_name;
use repository::snapshot::{SnapshotFilter, SnapshotSpec};
use repository::{
    RepairSnapshotsOptions, RepairSnapshotsReport, RepairedSnapshot, SnapshotOutcome,
};

use super::unless_stopped;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::progress_display::{Items, watch};
use crate::repair_events::{RepairSnapshotsSummary, RepairedEvent};
use crate::session::Session;
use crate::units;

/// Make new snapshots of damaged ones, without the files that are lost
///
/// Reads all data first, to know what is lost. Of each damaged snapshot a new one is made in which every file can be
/// read; files that are lost are named, with their bytes, and listed in it. What is lost in its place and stored
/// elsewhere as well (after a new backup of the same files, say) is taken from there. The damaged snapshot stays, unless
/// --forget is given. Doubtful snapshots (`?`) that are whole are cleared of the doubt. The exit code is 13 if something
/// is lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold repair snapshots --dry-run        what is lost?
  onefold repair snapshots                  new snapshots beside the damaged ones
  onefold repair snapshots --forget         in their place
  onefold repair snapshots --keep-parts 3f2a")]
pub struct RepairSnapshotsArguments {
    /// Snapshots by their ids, or the beginnings of them [default: all]
    #[arg(value_name = "SNAPSHOT")]
    snapshots: Vec<String>,

    /// Keep what is left of a damaged file as NAME.damaged, with zeros for what is lost
    #[arg(long)]
    keep_parts: bool,

    /// Put the new snapshot in the place of the damaged one; protected ones stay
    #[arg(long)]
    forget: bool,

    /// Do not read the data of containers: only what is missing, or can be seen to be damaged without that, counts
    #[arg(long)]
    skip_data: bool,

    /// Only say what would be done
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub fn run(session: &Session, arguments: &RepairSnapshotsArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let list = repository.snapshots()?;
    let mut snapshots = Vec::new();
    for text in &arguments.snapshots {
        let spec: SnapshotSpec = text.parse()?;
        snapshots.push(list.find(&spec, &SnapshotFilter::default())?.id);
    }
    let options = RepairSnapshotsOptions {
        host: host_name(),
        snapshots,
        keep_parts: arguments.keep_parts,
        forget: arguments.forget,
        skip_data: arguments.skip_data,
        dry_run: arguments.dry_run,
    };
    let report = watch(&session.output, Items::Containers, |progress| {
        repository.repair_snapshots(&options, progress)
    })?;
    let report = unless_stopped(report)?;
    let has_losses = tell(session, &report, options.dry_run, started.elapsed())?;
    Ok(match has_losses {
        true => ExitCode::Damaged,
        false => ExitCode::Done,
    })
}

/// Says what became of the snapshots; is something lost?
fn tell(
    session: &Session,
    report: &RepairSnapshotsReport,
    is_dry_run: bool,
    elapsed: Duration,
) -> anyhow::Result<bool> {
    let mut summary = RepairSnapshotsSummary {
        unreadable: report.unreadable,
        containers_damaged: report.containers_damaged,
        is_dry_run,
        seconds: elapsed.as_secs_f64(),
        ..RepairSnapshotsSummary::default()
    };
    let mut lines = Vec::new();
    for found in &report.snapshots {
        let event = RepairedEvent::new(found);
        summary.add(&event);
        lines.extend(line(found, &event, is_dry_run));
        session.output.event(&Event::Repaired(event))?;
    }
    let has_losses =
        summary.files_lost + summary.files_kept_in_part + summary.directories_damaged > 0;
    let counted = units::counted;
    lines.push(format!(
        "Looked at {} in {}: {}.",
        counted(summary.snapshots, "snapshot", "snapshots"),
        units::duration(elapsed),
        match (summary.snapshots - summary.whole, has_losses) {
            (0, _) => "all are whole".to_owned(),
            (_, false) => "nothing is lost".to_owned(),
            (damaged, true) => format!(
                "{} not whole, with {} of which {} are lost",
                match damaged {
                    1 => "1 is".to_owned(),
                    _ => format!("{} are", units::count(damaged)),
                },
                counted(
                    summary.files_lost + summary.files_kept_in_part,
                    "damaged file",
                    "damaged files"
                ),
                units::bytes(summary.bytes_lost),
            ),
        },
    ));
    if is_dry_run && summary.whole < summary.snapshots {
        lines.push("Nothing was changed: this was a dry run.".to_owned());
    }
    if report.containers_damaged > 0 {
        lines.push(format!(
            "{}: `onefold repair containers` moves what is whole of them.",
            match report.containers_damaged {
                1 => "1 container is damaged".to_owned(),
                damaged => format!("{} containers are damaged", units::count(damaged)),
            },
        ));
    }
    session
        .output
        .event(&Event::Summary(Box::new(Summary::RepairSnapshots(summary))))?;
    session.output.summary(&lines.join("\n"))?;
    Ok(has_losses || report.unreadable > 0)
}

/// What became of a snapshot that is not simply whole.
fn line(found: &RepairedSnapshot, event: &RepairedEvent, is_dry_run: bool) -> Option<String> {
    let id = found.id.short();
    let new = found.new.map(|new| new.short());
    let new = new.as_deref().unwrap_or("a new snapshot");
    let lost = || {
        let mut parts = Vec::new();
        let mut part = |count, one, many, what: &str| {
            if count > 0 {
                parts.push(format!("{}{what}", units::counted(count, one, many)));
            }
        };
        part(event.files_lost, "file", "files", " lost");
        part(event.files_kept_in_part, "file", "files", " kept in part");
        part(
            event.directories_damaged,
            "directory",
            "directories",
            " damaged",
        );
        part(event.files_relinked, "file", "files", " whole again");
        parts.join(", ")
    };
    Some(match found.outcome {
        SnapshotOutcome::Whole => return None,
        SnapshotOutcome::Cleared if is_dry_run => {
            format!("{id} is whole: the doubt would be cleared")
        }
        SnapshotOutcome::Cleared => format!("{id} is whole, and doubtful no more: it is {new} now"),
        SnapshotOutcome::StillDoubtful => format!(
            "{id} stays doubtful: a part of it lies in containers that are condemned; run it again after `onefold prune`"
        ),
        SnapshotOutcome::Repaired if is_dry_run => format!("{id} is damaged: {}", lost()),
        SnapshotOutcome::Repaired if found.is_forgotten => {
            format!(
                "{id} was damaged, and {new} has taken its place: {}",
                lost()
            )
        }
        SnapshotOutcome::Repaired => {
            format!("{id} is damaged, and {new} has what is left: {}", lost())
        }
        SnapshotOutcome::WasRepaired => {
            format!(
                "{id} is damaged, and {new} has had what is left already: {}",
                lost()
            )
        }
    })
}
