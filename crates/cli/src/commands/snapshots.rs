//! `onefold snapshots`: lists what was backed up.

use std::io::Write;

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width};
use repository::snapshot::{Snapshot, SnapshotList};

use crate::arguments::FilterArguments;
use crate::events::{Event, SnapshotEvent, Summary};
use crate::exit_code::ExitCode;
use crate::names;
use crate::session::Session;
use crate::times;
use crate::units;

/// Headings of the table.
const COLUMNS: [&str; 7] = ["ID", "TIME", "HOST", "TAGS", "PATHS", "SIZE", "NEW"];
/// Those of host, tags and paths. On a narrow terminal these break into several lines, while ids,
/// times and sizes stay whole.
const NAMES: std::ops::RangeInclusive<usize> = 2..=4;
/// Width that names have at least, if they need it.
const NAME_COLUMNS_MIN: u16 = 12;
/// Blank space after each column.
const GAP_COLUMNS: u16 = 2;

/// List the snapshots
///
/// A `!` after the id marks a snapshot that is partial: some files could not be read when it was
/// made. A `…` marks what an interrupted backup left behind, which is never `latest`. `NEW` is what a snapshot added to the repository, before compression.
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
    for unreadable in &list.unreadable {
        let id = unreadable.id.short();
        let error = &unreadable.error;
        session
            .output
            .warning(&format!("snapshot {id} can't be read: {error}"));
    }
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
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(COLUMNS);
    for snapshot in snapshots {
        table.add_row(row(snapshot, is_verbose));
    }
    let widths = table.column_max_content_widths();
    for (column, width) in table.column_iter_mut().zip(widths) {
        column.set_padding((0, GAP_COLUMNS));
        column.set_constraint(if NAMES.contains(&column.index) {
            let least = width.min(NAME_COLUMNS_MIN) + GAP_COLUMNS;
            ColumnConstraint::LowerBoundary(Width::Fixed(least))
        } else {
            ColumnConstraint::ContentWidth
        });
    }
    let mut out = session.output.results();
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    out.flush()?;
    drop(out);
    for snapshot in snapshots.iter().filter(|snapshot| snapshot.is_interrupted) {
        session.output.note(&format!(
            "… {} was interrupted: not all files of its paths are in it",
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

fn row(snapshot: &Snapshot, is_verbose: bool) -> Row {
    let mut id = if is_verbose {
        snapshot.id.to_string()
    } else {
        snapshot.id.short()
    };
    if !snapshot.errors.is_empty() {
        id.push_str(" !");
    }
    if snapshot.is_interrupted {
        id.push_str(" …");
    }
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
