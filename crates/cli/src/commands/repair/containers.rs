//! `onefold repair containers`: what is whole of damaged containers, to new ones.

use std::time::{Duration, Instant};

use clap::Args;
use repository::files::host_name;
use repository::{RepairContainersOptions, RepairContainersReport};

use super::unless_stopped;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::progress_display::{Items, watch};
use crate::repair_events::{RepairContainersSummary, RepairedEvent};
use crate::session::Session;
use crate::units;

/// Move what is whole of damaged containers to new ones, and name the files that are lost
///
/// Reads all data. The damaged containers are condemned: new backups store again what was in them, and a prune deletes
/// them once no snapshot needs what is lost of them. Nothing is deleted before that. If there is a copy of the
/// repository elsewhere, copy damaged containers back from there instead: then nothing is lost. The exit code is 13 if
/// something is lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold repair containers --dry-run
  onefold repair containers")]
pub struct RepairContainersArguments {
    /// Only say what would be done
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub fn run(session: &Session, arguments: &RepairContainersArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let options = RepairContainersOptions {
        host: host_name(),
        dry_run: arguments.dry_run,
    };
    let report = watch(&session.output, Items::Containers, |progress| {
        repository.repair_containers(&options, progress)
    })?;
    let report = unless_stopped(report)?;
    tell(session, &report, options.dry_run, started.elapsed())?;
    Ok(match report.chunks_lost + report.unreadable {
        0 => ExitCode::Done,
        _ => ExitCode::Damaged,
    })
}

fn tell(
    session: &Session,
    report: &RepairContainersReport,
    is_dry_run: bool,
    elapsed: Duration,
) -> anyhow::Result<()> {
    for found in &report.snapshots {
        let event = Event::Repaired(RepairedEvent::new(found));
        session.output.event(&event)?;
    }
    let summary = RepairContainersSummary {
        containers: report.containers,
        bytes: report.bytes,
        damaged: report.damaged,
        unreadable: report.unreadable,
        chunks_kept: report.chunks_kept,
        chunks_lost: report.chunks_lost,
        containers_written: report.objects_written,
        bytes_written: report.bytes_written,
        condemned: report.condemned,
        snapshots_damaged: report.snapshots.len() as u64,
        is_dry_run,
        seconds: elapsed.as_secs_f64(),
    };
    let event = Event::Summary(Box::new(Summary::RepairContainers(summary)));
    session.output.event(&event)?;
    session.output.summary(&text(report, is_dry_run, elapsed))?;
    Ok(())
}

fn text(report: &RepairContainersReport, is_dry_run: bool, elapsed: Duration) -> String {
    let counted = units::counted;
    let mut lines = vec![format!(
        "Read {} in {} ({}): {} damaged.",
        counted(report.containers, "container", "containers"),
        units::duration(elapsed),
        units::bytes(report.bytes),
        report.damaged,
    )];
    if report.damaged == 0 {
        return lines.remove(0);
    }
    lines.push(format!(
        "{} {} that are whole, {} lost.",
        if is_dry_run { "Would move" } else { "Moved" },
        counted(report.chunks_kept, "chunk", "chunks"),
        units::count(report.chunks_lost),
    ));
    if report.unreadable > 0 {
        lines.push(format!(
            "{} can't be read at all: the end that says what is in it is damaged or cut off.",
            counted(report.unreadable, "container", "containers"),
        ));
    }
    for found in &report.snapshots {
        let event = RepairedEvent::new(found);
        lines.push(format!(
            "{} is not whole: {} damaged.",
            found.id.short(),
            counted(
                event.files_lost + event.directories_damaged,
                "path is",
                "paths are"
            ),
        ));
    }
    lines.push(match is_dry_run {
        true => "Nothing was changed: this was a dry run.".to_owned(),
        false => "The damaged containers are condemned. Next: a new backup with --force stores again what the files still have; `onefold repair snapshots --forget` takes it from there and drops what is lost; then `onefold prune` deletes the damaged containers.".to_owned(),
    });
    lines.join("\n")
}
