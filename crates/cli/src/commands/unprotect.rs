//! `onefold unprotect`: lets protected snapshots be forgotten again.

use clap::Args;
use repository::snapshot::{SnapshotChange, SnapshotSpec};

use crate::arguments::FilterArguments;
use crate::change::change;
use crate::events::Summary;
use crate::exit_code::ExitCode;
use crate::selection::parse_spec;
use crate::session::Session;

/// Let protected snapshots be forgotten again
///
/// They are treated like any other from then on: nothing is forgotten by this alone. The snapshot
/// gets a new id, and is still found by the ids that it had.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold unprotect latest
  onefold unprotect 1a2b3c4d 5e6f7a8b")]
pub struct UnprotectArguments {
    /// Ids, beginnings of ids, or `latest`
    #[arg(value_name = "SNAPSHOT", required = true, value_parser = parse_spec)]
    snapshots: Vec<SnapshotSpec>,

    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &UnprotectArguments) -> anyhow::Result<ExitCode> {
    change(
        session,
        &arguments.snapshots,
        &arguments.filter.filter(),
        &SnapshotChange::Unprotect,
        Summary::Unprotect,
    )
}
