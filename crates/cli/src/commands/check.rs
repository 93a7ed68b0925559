//! `onefold check`: is everything that snapshots name there, and is it what was stored?

use std::time::{Duration, Instant};

use clap::Args;
use repository::{CheckOptions, CheckReport};

use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::{self, unless_interrupted};
use crate::progress_display::{Items, watch};
use crate::session::Session;
use crate::units;

/// Check that everything is there and undamaged
///
/// Reads snapshots, directories, the index and the metadata of all containers, and makes sure that
/// every file could be put together. With --read-data, reads and verifies all bytes of all files
/// as well, which takes as long as restoring everything. The exit code is 13 if anything is wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold check
  onefold check --read-data")]
pub struct CheckArguments {
    /// Read and verify all data, not only the structure
    #[arg(long)]
    read_data: bool,
}

pub fn run(session: &Session, arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let options = CheckOptions {
        read_data: arguments.read_data,
    };
    let report = watch(&session.output, Items::Containers, |progress| {
        repository.check(options, progress)
    })?;
    let rest = "the check is not complete";
    let report = unless_interrupted(report, rest)?;
    if interrupt::is_requested() {
        return Err(interrupt::interrupted(rest));
    }
    tell(session, &report, arguments.read_data, started.elapsed())?;
    Ok(if report.problem_count > 0 {
        ExitCode::Damaged
    } else {
        ExitCode::Done
    })
}

fn tell(
    session: &Session,
    report: &CheckReport,
    is_data_read: bool,
    elapsed: Duration,
) -> anyhow::Result<()> {
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Check {
            problems: report.problem_count,
            losses: report.losses,
            snapshots: report.snapshots,
            files: report.files,
            containers: report.containers,
            chunks: report.chunks,
            bytes_verified: report.bytes_verified,
            is_data_read,
            seconds: elapsed.as_secs_f64(),
        })))?;
    session
        .output
        .summary(&text(report, is_data_read, elapsed))?;
    Ok(())
}

fn text(report: &CheckReport, is_data_read: bool, elapsed: Duration) -> String {
    let counted = units::counted;
    let mut text = format!(
        "Checked {}, {}, {} with {} in {}",
        counted(report.snapshots, "snapshot", "snapshots"),
        counted(report.files, "file", "files"),
        counted(report.containers, "container", "containers"),
        counted(report.chunks, "chunk", "chunks"),
        units::duration(elapsed),
    );
    text.push_str(&if is_data_read {
        format!(
            "; read and verified {}\n",
            units::bytes(report.bytes_verified)
        )
    } else {
        " (structure only: --read-data reads the data as well)\n".to_owned()
    });
    text.push_str(&match (report.problem_count, report.losses) {
        (0, _) => "No problems were found.".to_owned(),
        (problems, 0) => format!(
            "{} found; nothing is lost.",
            counted(problems, "problem", "problems")
        ),
        (problems, losses) => format!(
            "{} found, {} of them with a loss of data.",
            counted(problems, "problem", "problems"),
            units::count(losses),
        ),
    });
    text
}
