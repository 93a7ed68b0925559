//! `onefold diff`: what changed from one snapshot to another.

use std::io::{self, Write};

use clap::Args;
use repository::snapshot::SnapshotSpec;
use repository::{Change, DiffSummary, Difference};

use crate::arguments::FilterArguments;
use crate::events::{DifferenceEvent, Event, PathText, Summary};
use crate::exit_code::ExitCode;
use crate::names;
use crate::output::write_json;
use crate::selection::parse_spec;
use crate::session::Session;
use crate::units;

/// Show what changed between two snapshots
///
/// Prints a line for each path that differs, and the counts on the standard error output.
#[derive(Debug, Args)]
#[command(after_help = "\
Signs:
  +  it is in the second snapshot only
  -  it is in the first only
  M  its content differs
  U  its metadata alone differs (permissions, owner, times, attributes)
  T  it is of another type

Examples:
  onefold diff 1a2b3c4d latest
  onefold diff 1a2b3c4d 5e6f7a8b --json")]
pub struct DiffArguments {
    /// An id, the beginning of one, or `latest`
    #[arg(value_name = "BEFORE", value_parser = parse_spec)]
    before: SnapshotSpec,

    /// The same
    #[arg(value_name = "AFTER", value_parser = parse_spec)]
    after: SnapshotSpec,

    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let repository = session.open()?;
    let filter = arguments.filter.filter();
    let before = session.snapshot(&repository, &arguments.before, &filter)?;
    let after = session.snapshot(&repository, &arguments.after, &filter)?;
    let mut out = session.output.results();
    let mut written = Ok(());
    let is_json = session.output.is_json();
    let escapes = session.output.escapes_names();
    let summary = repository.diff(&before, &after, &mut |difference| {
        if written.is_ok() {
            written = print(&mut out, &difference, is_json, escapes);
        }
    })?;
    written?;
    out.flush()?;
    drop(out);
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Diff {
            before: before.id.to_string(),
            after: after.id.to_string(),
            added: summary.added,
            removed: summary.removed,
            changed: summary.changed,
            metadata_changed: summary.metadata_changed,
            bytes_added: summary.bytes_added,
            bytes_removed: summary.bytes_removed,
        })))?;
    session.output.note(&text(&summary));
    Ok(ExitCode::Done)
}

fn print(
    out: &mut impl Write,
    difference: &Difference,
    is_json: bool,
    escapes: bool,
) -> io::Result<()> {
    if is_json {
        let mut line = Vec::new();
        write_json(&mut line, &Event::Difference(event(difference)))?;
        return out.write_all(&line);
    }
    write!(out, "{} ", sign(difference.change))?;
    if escapes {
        out.write_all(names::escaped(&difference.path).as_bytes())?;
    } else {
        out.write_all(&difference.path)?;
    }
    out.write_all(b"\n")
}

fn sign(change: Change) -> char {
    match change {
        Change::Added => '+',
        Change::Removed => '-',
        Change::Changed { kind: true, .. } => 'T',
        Change::Changed { content: true, .. } => 'M',
        Change::Changed { .. } => 'U',
    }
}

fn event(difference: &Difference) -> DifferenceEvent {
    let (name, content, metadata, kind) = match difference.change {
        Change::Added => ("added", false, false, false),
        Change::Removed => ("removed", false, false, false),
        Change::Changed {
            content,
            metadata,
            kind,
        } => ("changed", content, metadata, kind),
    };
    DifferenceEvent {
        path: PathText::new(&difference.path),
        change: name,
        is_directory: difference.is_directory,
        is_content_changed: content,
        is_metadata_changed: metadata,
        is_type_changed: kind,
        bytes_before: difference.size_before,
        bytes_after: difference.size_after,
    }
}

fn text(summary: &DiffSummary) -> String {
    format!(
        "{} added ({}), {} removed ({}), {} changed, {} with other metadata only",
        units::count(summary.added),
        units::bytes(summary.bytes_added),
        units::count(summary.removed),
        units::bytes(summary.bytes_removed),
        units::count(summary.changed),
        units::count(summary.metadata_changed),
    )
}
