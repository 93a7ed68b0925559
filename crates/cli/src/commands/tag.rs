//! `onefold tag`: changes the tags of snapshots.

use clap::{Args, Subcommand};
use repository::snapshot::{SnapshotChange, SnapshotFilter, SnapshotSpec};

use crate::change::change;
use crate::events::Summary;
use crate::exit_code::ExitCode;
use crate::selection::parse_spec;
use crate::session::Session;

/// Change the tags of snapshots
///
/// Tags are words to find snapshots by (`--tag` of many verbs) and to keep them by (`forget
/// --keep-tag`). What is stored never changes: a snapshot with other tags gets a new id, and is still
/// found by the ids that it had.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold tag add latest --tag before-upgrade
  onefold tag remove 1a2b3c4d --tag weekly
  onefold tag set 1a2b3c4d 5e6f7a8b --tag yearly --tag offsite
  onefold tag set 1a2b3c4d --none")]
pub struct TagArguments {
    #[command(subcommand)]
    what: What,
}

/// What is to be done to the tags.
#[derive(Debug, Subcommand)]
enum What {
    /// Give snapshots tags, beside those that they have
    Add(TagsArguments),
    /// Take tags away; one that a snapshot does not have is no error
    Remove(TagsArguments),
    /// Give snapshots these tags and take all others away
    Set(SetArguments),
}

/// Snapshots and tags.
#[derive(Debug, Args)]
struct TagsArguments {
    /// Ids, beginnings of ids, or `latest`
    #[arg(value_name = "SNAPSHOT", required = true, value_parser = parse_spec)]
    snapshots: Vec<SnapshotSpec>,

    /// The tag (again: several)
    #[arg(long = "tag", value_name = "TAG", required = true)]
    tags: Vec<String>,
}

/// Snapshots and tags, or none.
#[derive(Debug, Args)]
struct SetArguments {
    /// Ids, beginnings of ids, or `latest`
    #[arg(value_name = "SNAPSHOT", required = true, value_parser = parse_spec)]
    snapshots: Vec<SnapshotSpec>,

    /// The tag (again: several)
    #[arg(long = "tag", value_name = "TAG", required_unless_present = "none")]
    tags: Vec<String>,

    /// No tags at all
    #[arg(long, conflicts_with = "tags")]
    none: bool,
}

pub fn run(session: &Session, arguments: &TagArguments) -> anyhow::Result<ExitCode> {
    let all = SnapshotFilter::default();
    match &arguments.what {
        What::Add(TagsArguments { snapshots, tags }) => {
            let add = SnapshotChange::AddTags(tags.clone());
            change(session, snapshots, &all, &add, Summary::TagAdd)
        }
        What::Remove(TagsArguments { snapshots, tags }) => {
            let remove = SnapshotChange::RemoveTags(tags.clone());
            change(session, snapshots, &all, &remove, Summary::TagRemove)
        }
        What::Set(SetArguments {
            snapshots, tags, ..
        }) => {
            let set = SnapshotChange::SetTags(tags.clone());
            change(session, snapshots, &all, &set, Summary::TagSet)
        }
    }
}
