//! `onefold restore`: brings files of a snapshot back.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use repository::snapshot::Snapshot;
use repository::{Overwrite, RestoreOptions, RestoreReport};

use crate::arguments::FilterArguments;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::unless_interrupted;
use crate::names;
use crate::progress_display::{Items, watch};
use crate::selection::SnapshotPath;
use crate::session::Session;
use crate::units;

/// Restore files of a snapshot
///
/// Without a PATH, everything is restored below TARGET under its whole path; with a PATH, the
/// contents of that directory (or that file) are restored into TARGET. TARGET is created where it
/// is missing. Every byte is verified. Files that can't be restored are named, all others are
/// restored, and the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold restore latest /tmp/restored
  onefold restore latest:/home/me/documents ~/documents
  onefold restore 1a2b3c4d /tmp/restored --include '*.pdf' --exclude /home/me/old")]
pub struct RestoreArguments {
    /// An id, the beginning of one, or `latest`; with `:PATH`, only that part of it
    #[arg(value_name = "SNAPSHOT[:PATH]", value_parser = SnapshotPath::parser())]
    snapshot: SnapshotPath,

    /// The directory that files are restored into
    #[arg(value_name = "TARGET")]
    target: PathBuf,

    /// Restore only what matches this pattern, and what is below it
    #[arg(short, long, value_name = "PATTERN")]
    include: Vec<String>,

    /// Leave out what matches this pattern
    #[arg(short, long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// Replace files that stand in the way; without this they stay as they are
    #[arg(long)]
    overwrite: bool,

    /// Go by the numbers of owners and groups, not by their names
    #[arg(long)]
    numeric_ids: bool,

    /// Say what would be restored, and write nothing
    #[arg(short = 'n', long)]
    dry_run: bool,

    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &RestoreArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let filter = arguments.filter.filter();
    let snapshot = session.snapshot(&repository, &arguments.snapshot.spec, &filter)?;
    let options = arguments.options();
    let path = arguments.snapshot.path.as_deref();
    let mut errors = 0;
    let report = watch(&session.output, Items::Files, |progress| {
        let report = repository.restore(&snapshot, path, &arguments.target, &options, progress);
        errors = progress.errors.load(std::sync::atomic::Ordering::Relaxed);
        report
    })?;
    let report = unless_interrupted(report, "the target holds what was restored so far")?;
    tell(session, &snapshot, arguments, &report, started.elapsed())?;
    Ok(if report.failed > 0 || errors > 0 {
        ExitCode::Partial
    } else {
        ExitCode::Done
    })
}

impl RestoreArguments {
    fn options(&self) -> RestoreOptions {
        RestoreOptions {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            overwrite: if self.overwrite {
                Overwrite::Always
            } else {
                Overwrite::Never
            },
            numeric_ids: self.numeric_ids,
            dry_run: self.dry_run,
        }
    }
}

fn tell(
    session: &Session,
    snapshot: &Snapshot,
    arguments: &RestoreArguments,
    report: &RestoreReport,
    elapsed: Duration,
) -> anyhow::Result<()> {
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Restore {
            snapshot: snapshot.id.to_string(),
            files: report.files,
            directories: report.directories,
            other_entries: report.others,
            bytes: report.bytes,
            failed: report.failed,
            incomplete_metadata: report.incomplete_metadata,
            containers_read: report.containers_read,
            containers: report.containers,
            is_dry_run: arguments.dry_run,
            seconds: elapsed.as_secs_f64(),
        })))?;
    session
        .output
        .summary(&text(snapshot, arguments, report, elapsed))?;
    Ok(())
}

fn text(
    snapshot: &Snapshot,
    arguments: &RestoreArguments,
    report: &RestoreReport,
    elapsed: Duration,
) -> String {
    let counted = units::counted;
    let mut lines = vec![format!(
        "{} {} ({}), {}, {} of snapshot {} to {} in {}",
        if arguments.dry_run {
            "Would restore"
        } else {
            "Restored"
        },
        counted(report.files, "file", "files"),
        units::bytes(report.bytes),
        counted(report.directories, "directory", "directories"),
        counted(report.others, "other entry", "other entries"),
        snapshot.id.short(),
        names::escaped_path(&arguments.target),
        units::duration(elapsed),
    )];
    if report.incomplete_metadata > 0 {
        lines.push(format!(
            "{} without some metadata",
            counted(
                report.incomplete_metadata,
                "entry was restored",
                "entries were restored"
            ),
        ));
    }
    if report.failed > 0 {
        lines.push(format!(
            "{} could not be restored",
            counted(
                report.failed,
                "file or other entry",
                "files and other entries"
            ),
        ));
    }
    lines.join("\n")
}
