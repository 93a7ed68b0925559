//! `onefold dump`: writes one file to the standard output.

use clap::Args;
use repository::snapshot::SnapshotSpec;

use crate::arguments::FilterArguments;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
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
    let bytes = repository.dump(&snapshot, &arguments.path.0, &mut out)?;
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Dump {
            snapshot: snapshot.id.to_string(),
            bytes,
        })))?;
    Ok(ExitCode::Done)
}
