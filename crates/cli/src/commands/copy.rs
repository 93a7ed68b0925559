//! `onefold copy`: brings snapshots into another repository.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use remote::Location;
use repository::copy::Outcome;
use repository::files::host_name;
use repository::progress::Problem;
use repository::snapshot::{Snapshot, SnapshotSpec};
use repository::{CopyError, CopyOptions, CopyReport, Repository};

use crate::arguments::{FilterArguments, location_parser};
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::unless_interrupted;
use crate::progress_display::{Items, watch};
use crate::selection::parse_spec;
use crate::session::Session;
use crate::units;

/// Copy snapshots to another repository
///
/// All snapshots are copied, or those that are named, or those that the filters let through; what was copied before is not
/// copied again. Everything in them and all that they say of themselves stays as it is; keys, parameters and passwords are
/// those of the other repository, which must be there. Every byte is verified. Snapshots that are damaged are named, the
/// others are copied, and the exit code is 13. A copy that was interrupted goes on when it is run again.
///
/// The password of the other repository comes from --to-password-file, --to-password-command or ONEFOLD_TO_PASSWORD, or is
/// asked for.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold -r /mnt/disk/backup copy --to /mnt/other/backup
  onefold copy latest --host laptop --to /mnt/other/backup
  onefold -r /mnt/other/backup init --cut-like /mnt/disk/backup    first: chunks are then kept as they are
  onefold copy 1a2b3c4d 5e6f7a8b --to /mnt/other/backup")]
pub struct CopyArguments {
    /// Ids, beginnings of ids, or `latest` [default: all that the filters let through]
    #[arg(value_name = "SNAPSHOT", value_parser = parse_spec)]
    snapshots: Vec<SnapshotSpec>,

    /// The repository that snapshots are copied to: a directory, or an address on a server
    #[arg(long, value_name = "REPOSITORY", value_parser = location_parser())]
    to: Location,

    /// Read the password of that repository from this file
    #[arg(long, value_name = "FILE", conflicts_with = "to_password_command")]
    to_password_file: Option<PathBuf>,

    /// Run this command (by `sh -c`) and take its output as the password of that repository
    #[arg(long, value_name = "COMMAND")]
    to_password_command: Option<String>,

    /// Copy what was copied before once more, and read all of it: when the other repository has lost something
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &CopyArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let from = session.sharing_memory();
    let source = from.open()?;
    let target = from
        .beside(
            &arguments.to,
            arguments.to_password_file.as_deref(),
            arguments.to_password_command.as_deref(),
            crate::password::TO_PASSWORD_VARIABLE,
        )
        .open()?;
    let (snapshots, unreadable) = chosen(session, arguments, &source)?;
    if !source.cuts_like(&target) {
        session.output.note(
            "The repositories cut files otherwise, so their contents are cut again \
             (`init --cut-like` makes one in which chunks stay as they are).",
        );
    }
    let options = CopyOptions {
        host: host_name(),
        force: arguments.force,
    };
    let report = watch(&session.output, Items::Files, |progress| {
        let mut told = |snapshot: &Snapshot, outcome: &Outcome, error: Option<&CopyError>| {
            tell(session, snapshot, outcome, error);
        };
        source.copy_to(&target, &snapshots, &options, progress, &mut told)
    })?;
    let rest = "snapshots that were named as copied are; run it again for the others, it goes on from what is stored";
    let report = unless_interrupted(report, rest)?;
    conclude(session, &report, unreadable, started.elapsed())?;
    Ok(if report.failed > 0 || unreadable > 0 {
        ExitCode::Damaged
    } else {
        ExitCode::Done
    })
}

/// The snapshots that are to be copied, and how many can't be read.
fn chosen(
    session: &Session,
    arguments: &CopyArguments,
    source: &Repository,
) -> anyhow::Result<(Vec<Snapshot>, u64)> {
    let filter = arguments.filter.filter();
    if arguments.snapshots.is_empty() {
        let mut list = source.snapshots()?;
        session.tell_unreadable(&list);
        list.snapshots.retain(|snapshot| filter.matches(snapshot));
        return Ok((list.snapshots, list.unreadable.len() as u64));
    }
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for spec in &arguments.snapshots {
        let snapshot = session.snapshot(source, spec, &filter)?;
        if snapshots.iter().all(|other| other.id != snapshot.id) {
            snapshots.push(snapshot);
        }
    }
    Ok((snapshots, 0))
}

/// Says what became of a snapshot.
fn tell(session: &Session, snapshot: &Snapshot, outcome: &Outcome, error: Option<&CopyError>) {
    let copy = match outcome {
        Outcome::Copied(id) | Outcome::WasThere(id) => Some(id.to_string()),
        Outcome::Failed => None,
    };
    let is_new = matches!(outcome, Outcome::Copied(_));
    // Nobody reading events is no reason to stop.
    let _ = session.output.event(&Event::Copied {
        snapshot: snapshot.id.to_string(),
        copy,
        is_new,
    });
    let id = snapshot.id.short();
    match (outcome, error) {
        (Outcome::Copied(copy), _) => {
            session
                .output
                .note(&format!("{id} is copied as {}", copy.short()));
        }
        (Outcome::WasThere(copy), _) if session.output.is_verbose() => {
            session
                .output
                .note(&format!("{id} was there as {}", copy.short()));
        }
        (Outcome::Failed, Some(error)) => session.output.problem(&Problem {
            path: format!("snapshots/{}", snapshot.id).into_bytes(),
            message: format!("not copied: {error}"),
            is_error: true,
        }),
        _ => {}
    }
}

fn conclude(
    session: &Session,
    report: &CopyReport,
    unreadable: u64,
    elapsed: Duration,
) -> anyhow::Result<()> {
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Copy {
            copied: report.copied,
            there: report.there,
            failed: report.failed,
            unreadable,
            is_cut_again: report.is_cut_again,
            files: report.files,
            files_kept: report.files_kept,
            directories_kept: report.directories_kept,
            bytes_read: report.bytes_read,
            bytes_new: report.bytes_new,
            bytes_stored: report.bytes_stored,
            containers_read: report.containers_read,
            seconds: elapsed.as_secs_f64(),
        })))?;
    let counted = |count| units::counted(count, "snapshot", "snapshots");
    let mut text = format!(
        "Copied {} in {} ({} read, {} new, {} stored); {} there already",
        counted(report.copied),
        units::duration(elapsed),
        units::bytes(report.bytes_read),
        units::bytes(report.bytes_new),
        units::bytes(report.bytes_stored),
        units::counted(report.there, "was", "were"),
    );
    if report.failed > 0 {
        text.push_str(&format!("\n{} could not be copied", counted(report.failed)));
    }
    session.output.summary(&text)?;
    Ok(())
}
