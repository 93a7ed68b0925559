//! `onefold protect`: keeps snapshots from being forgotten.

use clap::Args;
use repository::snapshot::{SnapshotChange, SnapshotSpec};

use crate::arguments::FilterArguments;
use crate::change::change;
use crate::events::Summary;
use crate::exit_code::ExitCode;
use crate::selection::parse_spec;
use crate::session::Session;

/// Keep snapshots from being forgotten
///
/// No policy of `forget` removes a protected snapshot, and neither does naming it: take the protection
/// away first (`unprotect`). It guards against mistakes, not against somebody who may write to the
/// repository's disk. The snapshot gets a new id, and is still found by the ids that it had.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold protect latest
  onefold protect latest --host laptop
  onefold protect 1a2b3c4d 5e6f7a8b")]
pub struct ProtectArguments {
    /// Ids, beginnings of ids, or `latest`
    #[arg(value_name = "SNAPSHOT", required = true, value_parser = parse_spec)]
    snapshots: Vec<SnapshotSpec>,

    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &ProtectArguments) -> anyhow::Result<ExitCode> {
    change(
        session,
        &arguments.snapshots,
        &arguments.filter.filter(),
        &SnapshotChange::Protect,
        Summary::Protect,
    )
}
