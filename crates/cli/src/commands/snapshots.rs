//! `onefold snapshots`: lists what was backed up.

use std::io::Write;

use clap::Args;
use comfy_table::{Cell, CellAlignment, Row};
use repository::snapshot::{Snapshot, SnapshotList};

use crate::arguments::FilterArguments;
use crate::events::{Event, SnapshotEvent, Summary};
use crate::exit_code::ExitCode;
use crate::names;
use crate::session::Session;
use crate::table;
use crate::times;
use crate::units;

/// Headings of the table.
const COLUMNS: [&str; 7] = ["ID", "TIME", "HOST", "TAGS", "PATHS", "SIZE", "NEW"];
/// Those of host, tags and paths, which may break into several lines.
const NAMES: [usize; 3] = [2, 3, 4];

/// List the snapshots
///
/// A `!` after the id marks a snapshot that is partial: some files could not be read when it was
/// made. A `…` marks what an interrupted backup left behind, which is never `latest`. A `*` marks one
/// that is protected. `NEW` is what a snapshot added to the repository, before compression.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold snapshots
  onefold snapshots --host laptop --tag weekly
  onefold snapshots --json | jq 'select(.event == \"snapshot\") | .snapshot'")]
pub struct SnapshotsArguments {
    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &SnapshotsArguments) -> anyhow::Result<ExitCode> {
    let repository = session.open()?;
    let mut list = repository.snapshots()?;
    let total = list.snapshots.len();
    let filter = arguments.filter.filter();
    list.snapshots.retain(|snapshot| filter.matches(snapshot));
    session.tell_unreadable(&list);
    if session.output.is_json() {
        print_events(session, &list)?;
    } else {
        print_table(session, &list.snapshots, total)?;
    }
    Ok(if list.unreadable.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::Damaged
    })
}

fn print_events(session: &Session, list: &SnapshotList) -> anyhow::Result<()> {
    for snapshot in &list.snapshots {
        let event = Event::Snapshot(Box::new(SnapshotEvent::new(snapshot)));
        session.output.event(&event)?;
    }
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Snapshots {
            snapshots: list.snapshots.len() as u64,
            unreadable: list.unreadable.len() as u64,
        })))?;
    Ok(())
}

fn print_table(session: &Session, snapshots: &[Snapshot], total: usize) -> anyhow::Result<()> {
    if snapshots.is_empty() {
        session.output.note(match total {
            0 => "There are no snapshots yet.",
            _ => "No snapshot fits.",
        });
        return Ok(());
    }
    let is_verbose = session.output.is_verbose();
    let rows = snapshots.iter().map(|snapshot| row(snapshot, is_verbose));
    let mut out = session.output.results();
    for line in table::lines(&COLUMNS, rows.collect(), &NAMES) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    drop(out);
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.is_interrupted) {
        session.output.note(&format!(
            "… {} was interrupted: not all files of its paths are in it",
            snapshot.id.short(),
        ));
    }
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.is_doubtful) {
        session.output.note(&format!(
            "? {} is doubtful: its backup was taken for dead by a prune; `onefold repair snapshots` looks whether all of it is there, and clears the doubt",
            snapshot.id.short(),
        ));
    }
    let partial = snapshots
        .iter()
        .filter(|snapshot| !snapshot.errors.is_empty());
    for snapshot in partial {
        session.output.note(&format!(
            "! {} is partial: {} could not be read when it was made",
            snapshot.id.short(),
            units::counted(snapshot.errors.count, "file", "files"),
        ));
        if is_verbose {
            tell_errors(session, snapshot);
        }
    }
    Ok(())
}

/// What marks a snapshot after its id: partial, interrupted, protected, doubtful.
pub fn marks(snapshot: &Snapshot) -> String {
    let marks = [
        (!snapshot.errors.is_empty(), " !"),
        (snapshot.is_interrupted, " …"),
        (snapshot.is_protected, " *"),
        (snapshot.is_doubtful, " ?"),
    ];
    let marks = marks.into_iter().filter(|(is_so, _)| *is_so);
    marks.map(|(_, mark)| mark).collect()
}

fn row(snapshot: &Snapshot, is_verbose: bool) -> Row {
    let mut id = if is_verbose {
        snapshot.id.to_string()
    } else {
        snapshot.id.short()
    };
    id.push_str(&marks(snapshot));
    let lines = |items: Vec<String>| items.join("\n");
    let paths = snapshot.paths.iter().map(|path| names::escaped(path));
    let tags = snapshot
        .tags
        .iter()
        .map(|tag| names::escaped(tag.as_bytes()));
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    Row::from(vec![
        Cell::new(id),
        Cell::new(times::local(snapshot.time)),
        Cell::new(names::escaped(snapshot.host.as_bytes())),
        Cell::new(lines(tags.collect())),
        Cell::new(lines(paths.collect())),
        right(units::bytes(snapshot.summary.files_bytes)),
        right(units::bytes(snapshot.summary.bytes_new)),
    ])
}

fn tell_errors(session: &Session, snapshot: &Snapshot) {
    for error in &snapshot.errors.listed {
        let path = names::escaped(&error.path);
        session
            .output
            .note(&format!("    {path}: {}", error.message));
    }
}
