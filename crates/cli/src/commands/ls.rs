//! `onefold ls`: lists what a snapshot holds.

use std::io::{self, Write};
use std::ops::ControlFlow;

use clap::Args;
use repository::snapshot::{Snapshot, SnapshotSpec};
use repository::tree::{Entry, EntryKind};
use repository::{ListError, SnapshotTree};

use crate::arguments::FilterArguments;
use crate::events::{EntryEvent, Event, PathText, Summary};
use crate::exit_code::ExitCode;
use crate::names;
use crate::output::write_json;
use crate::selection::{InnerPath, parse_spec};
use crate::session::Session;
use crate::times;
use crate::units;

/// List the files of a snapshot
///
/// Without a PATH, lists the directories that were backed up. On a terminal, bytes of names that
/// can't be shown are escaped; with -0, names are as they are, each with a zero byte after it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold ls latest
  onefold ls latest /home/me/documents -l
  onefold ls 1a2b3c4d / -R -0 | grep -z '\\.pdf$' | tr '\\0' '\\n'")]
pub struct LsArguments {
    /// An id, the beginning of one, or `latest`
    #[arg(value_name = "SNAPSHOT", value_parser = parse_spec)]
    snapshot: SnapshotSpec,

    /// A directory or file in it
    #[arg(value_name = "PATH", value_parser = InnerPath::parser())]
    path: Option<InnerPath>,

    /// Show type, permissions, owner, group, size and time as well
    #[arg(short, long)]
    long: bool,

    /// List directories below as well
    #[arg(short = 'R', long)]
    recursive: bool,

    /// End names with a zero byte, and escape nothing
    #[arg(short = '0', long)]
    null: bool,

    #[command(flatten)]
    filter: FilterArguments,
}

pub fn run(session: &Session, arguments: &LsArguments) -> anyhow::Result<ExitCode> {
    let repository = session.open()?;
    let filter = arguments.filter.filter();
    let snapshot = session.snapshot(&repository, &arguments.snapshot, &filter)?;
    let tree = repository.tree(&snapshot)?;
    let mut listing = Listing {
        out: Box::new(session.output.results()),
        manner: Manner::of(session, arguments),
        is_long: arguments.long,
        entries: 0,
    };
    match &arguments.path {
        Some(InnerPath(path)) => listing.list(&tree, path, arguments.recursive)?,
        None => {
            for path in sources(&snapshot, &tree)? {
                listing.list(&tree, &path, arguments.recursive)?;
            }
        }
    }
    listing.out.flush()?;
    let entries = listing.entries;
    drop(listing);
    session.output.event(&Event::Summary(Box::new(Summary::Ls {
        snapshot: snapshot.id.to_string(),
        entries,
    })))?;
    Ok(ExitCode::Done)
}

/// The paths that were backed up, but for those that could not be read.
fn sources(snapshot: &Snapshot, tree: &SnapshotTree) -> Result<Vec<Vec<u8>>, ListError> {
    let mut found = Vec::new();
    for path in &snapshot.paths {
        let path = names::snapshot_path(path);
        match tree.entry(&path) {
            Ok(_) => found.push(path),
            Err(ListError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// How an entry is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// A line, with what a terminal can't show escaped.
    Escaped,
    /// A line, as it is.
    Raw,
    /// As it is, and a zero byte.
    Null,
    /// An event.
    Json,
}

impl Manner {
    fn of(session: &Session, arguments: &LsArguments) -> Self {
        if session.output.is_json() {
            Manner::Json
        } else if arguments.null {
            Manner::Null
        } else if session.output.escapes_names() {
            Manner::Escaped
        } else {
            Manner::Raw
        }
    }
}

struct Listing {
    out: Box<dyn Write>,
    manner: Manner,
    is_long: bool,
    entries: u64,
}

impl Listing {
    fn list(&mut self, tree: &SnapshotTree, path: &[u8], recursive: bool) -> anyhow::Result<()> {
        let mut written = Ok(());
        tree.visit(path, recursive, &mut |path, entry| {
            self.entries += 1;
            written = self.print(path, entry);
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        Ok(written?)
    }

    fn print(&mut self, path: &[u8], entry: &Entry) -> io::Result<()> {
        if self.manner == Manner::Json {
            let mut line = Vec::new();
            write_json(&mut line, &Event::Entry(Box::new(event(path, entry))))?;
            return self.out.write_all(&line);
        }
        if self.is_long {
            write!(self.out, "{}", details(entry))?;
        }
        self.name(path)?;
        if let (true, EntryKind::Symlink { target }) = (self.is_long, &entry.kind) {
            self.out.write_all(b" -> ")?;
            self.name(target)?;
        }
        let end: &[u8] = if self.manner == Manner::Null {
            b"\0"
        } else {
            b"\n"
        };
        self.out.write_all(end)
    }

    fn name(&mut self, name: &[u8]) -> io::Result<()> {
        match self.manner {
            Manner::Escaped => self.out.write_all(names::escaped(name).as_bytes()),
            _ => self.out.write_all(name),
        }
    }
}

/// What `-l` shows before the name.
fn details(entry: &Entry) -> String {
    let metadata = &entry.metadata;
    let owner = |name: &[u8], number: u32| match name {
        [] => number.to_string(),
        name => names::escaped(name),
    };
    let size = match &entry.kind {
        EntryKind::File => units::bytes(entry.size),
        EntryKind::CharacterDevice { major, minor } | EntryKind::BlockDevice { major, minor } => {
            format!("{major}, {minor}")
        }
        _ => "-".to_owned(),
    };
    format!(
        "{} {:<8} {:<8} {:>10} {}  ",
        mode_text(&entry.kind, metadata.mode),
        owner(&metadata.user, metadata.uid),
        owner(&metadata.group, metadata.gid),
        size,
        times::local(metadata.modified),
    )
}

/// `drwxr-xr-x`, as `ls` shows it.
fn mode_text(kind: &EntryKind, mode: u32) -> String {
    let mut text = String::with_capacity(10);
    text.push(match kind {
        EntryKind::File => '-',
        EntryKind::Directory => 'd',
        EntryKind::Symlink { .. } => 'l',
        EntryKind::Fifo => 'p',
        EntryKind::CharacterDevice { .. } => 'c',
        EntryKind::BlockDevice { .. } => 'b',
    });
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// The name of a type in events.
fn kind_name(kind: &EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink { .. } => "symlink",
        EntryKind::Fifo => "fifo",
        EntryKind::CharacterDevice { .. } => "character_device",
        EntryKind::BlockDevice { .. } => "block_device",
    }
}

fn event(path: &[u8], entry: &Entry) -> EntryEvent {
    let metadata = &entry.metadata;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    EntryEvent {
        path: PathText::new(path),
        kind: kind_name(&entry.kind),
        bytes: entry.size,
        mode: format!("{:04o}", metadata.mode),
        uid: metadata.uid,
        gid: metadata.gid,
        user: text(&metadata.user),
        group: text(&metadata.group),
        modified: times::universal(metadata.modified),
        inode: metadata.inode,
        is_hard_link: entry.hard_link.is_some(),
        target: match &entry.kind {
            EntryKind::Symlink { target } => Some(text(target)),
            _ => None,
        },
        device: match entry.kind {
            EntryKind::CharacterDevice { major, minor }
            | EntryKind::BlockDevice { major, minor } => Some([major, minor]),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_look_like_those_of_ls() {
        let cases = [
            (EntryKind::File, 0o644, "-rw-r--r--"),
            (EntryKind::Directory, 0o1777, "drwxrwxrwt"),
            (EntryKind::File, 0o4711, "-rws--x--x"),
            (EntryKind::Fifo, 0o2640, "prw-r-S---"),
        ];
        for (kind, mode, text) in cases {
            assert_eq!(mode_text(&kind, mode), text);
        }
    }
}
