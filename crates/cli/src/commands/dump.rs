//! `onefold dump`: writes one file to the standard output.

use std::io::{self, IsTerminal};

use clap::Args;
use repository::Progress;
use repository::snapshot::SnapshotSpec;

use crate::arguments::FilterArguments;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::unless_interrupted;
use crate::progress_display::{Items, watch};
use crate::selection::{InnerPath, parse_spec};
use crate::session::Session;

/// Write one file of a snapshot to the standard output
///
/// Every byte is verified before it is written. With --json, events go to the standard error
/// output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold dump latest /home/me/notes.txt
  onefold dump latest all.sql | psql
  onefold dump 1a2b3c4d photos.tar | tar -t")]
pub struct DumpArguments {
    /// An id, the beginning of one, or `latest`
    #[arg(value_name = "SNAPSHOT", value_parser = parse_spec)]
    snapshot: SnapshotSpec,

    /// The file
    #[arg(value_name = "PATH", value_parser = InnerPath::parser())]
    path: InnerPath,

    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &DumpArguments) -> anyhow::Result<ExitCode> {
    let repository = session.open()?;
    let filter = arguments.filter.filter();
    let snapshot = session.snapshot(&repository, &arguments.snapshot, &filter)?;
    let mut out = session.output.results();
    let mut dump =
        |progress: &Progress| repository.dump(&snapshot, &arguments.path.0, &mut out, progress);
    let report = if io::stdout().is_terminal() {
        dump(&Progress::default())? // A bar would stand in the middle of the text.
    } else {
        let outcome = watch(&session.output, Items::Files, dump)?;
        unless_interrupted(outcome, "the output ends in the middle of the file")?
    };
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Dump {
            snapshot: snapshot.id.to_string(),
            bytes: report.bytes,
            containers_read: report.containers_read,
        })))?;
    Ok(ExitCode::Done)
}
