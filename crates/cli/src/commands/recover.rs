//! `onefold recover`: what no snapshot names any more, or never did.

use std::time::{Duration, Instant};

use clap::Args;
use repository::files::host_name;
use repository::{RecoverOptions, RecoverReport, RepairError};

use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt;
use crate::progress_display::{Items, watch};
use crate::repair_events::RecoverSummary;
use crate::session::Session;
use crate::units;

/// Find directories that no snapshot names, and make a snapshot of them
///
/// Shows what interrupted backups left, and finds the directories that no snapshot reaches: of a backup that died before
/// its snapshot was written, or of a snapshot that was deleted and not pruned yet. The new snapshot has the tag
/// `recovered` and is marked as interrupted (`…`), for nobody knows whether it is all there was. Several directories come
/// below it as `found-0001` and so on: their own names are not known. Files that are not whole are left out and named.
/// Contents of files that an interrupted backup had stored need no recovery: the next backup finds them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold recover --dry-run        what is there that no snapshot names?
  onefold recover                  make a snapshot of it")]
pub struct RecoverArguments {
    /// Only say what there is
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub fn run(session: &Session, arguments: &RecoverArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let options = RecoverOptions {
        host: host_name(),
        dry_run: arguments.dry_run,
    };
    let report = watch(&session.output, Items::Containers, |progress| {
        repository.recover(&options, progress)
    })?;
    let report = match report {
        Err(RepairError::Interrupted) => {
            return Err(interrupt::interrupted("nothing was changed; run it again"));
        }
        report => report?,
    };
    let summary = RecoverSummary {
        snapshot: report.snapshot.map(|id| id.to_string()),
        dead_runs: report
            .dead_runs
            .iter()
            .map(|run| run.id.to_string())
            .collect(),
        containers_uncovered: report.containers_uncovered,
        bytes_uncovered: report.bytes_uncovered,
        pages: report.pages,
        directories: report.directories,
        directories_left: report.directories_left,
        files: report.files,
        bytes: report.files_bytes,
        files_lost: report.losses.len() as u64,
        is_dry_run: options.dry_run,
        seconds: started.elapsed().as_secs_f64(),
    };
    let event = Event::Summary(Box::new(Summary::Recover(summary)));
    session.output.event(&event)?;
    for loss in &report.losses {
        let path = String::from_utf8_lossy(&loss.path);
        session.output.note(&format!("{path}: {}", loss.message));
    }
    let text = text(&report, options.dry_run, started.elapsed());
    session.output.summary(&text)?;
    Ok(match report.losses.is_empty() {
        true => ExitCode::Done,
        false => ExitCode::Damaged,
    })
}

fn text(report: &RecoverReport, is_dry_run: bool, elapsed: Duration) -> String {
    let counted = units::counted;
    let mut lines = Vec::new();
    for run in &report.dead_runs {
        lines.push(format!(
            "A {} on {} has died (run {}): `onefold prune` waits for it no longer.",
            run.kind.name(),
            run.host,
            run.id.short(),
        ));
    }
    if report.containers_uncovered > 0 {
        lines.push(format!(
            "Interrupted backups left {} ({}): the next backup uses what is in them.",
            counted(report.containers_uncovered, "container", "containers"),
            units::bytes(report.bytes_uncovered),
        ));
    }
    let found = format!(
        "{} with {} ({})",
        counted(report.directories, "directory", "directories"),
        counted(report.files, "file", "files"),
        units::bytes(report.files_bytes),
    );
    let elapsed = units::duration(elapsed);
    lines.push(match (report.directories, report.snapshot) {
        (0, _) => format!("No snapshot lacks any directory: nothing to recover ({elapsed})."),
        (_, Some(id)) => format!("Recovered {found} as snapshot {} in {elapsed}.", id.short()),
        (_, None) => format!("Would recover {found}; found in {elapsed}."),
    });
    if report.directories_left > 0 {
        lines.push(format!(
            "{} had no room: run it again.",
            counted(report.directories_left, "directory", "directories"),
        ));
    }
    if is_dry_run && report.directories > 0 {
        lines.push("Nothing was changed: this was a dry run.".to_owned());
    }
    lines.join("\n")
}
