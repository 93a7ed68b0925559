//! Imports a tar as a snapshot: as if what it holds had been backed up from a disk.
//!
//! ```text
//! members, in any order ──▶ contents: cut, stored, each alone   ──▶ at the end: the tree,
//!                           the rest: a sorted table in memory       parents first, by name
//! ```
//!
//! The contents of a file are cut as a backup cuts the file, holes apart, so that its chunks are those of a backup.
//! A tree is stored in the order of its names, and members come in any other: so what is known of a member waits in a
//! table, in its stored form, some 250 bytes for each. What a tar may say twice counts as it says it last.
//!
//! Nothing leaves the tree: a path with `..` in it, or below something that is no directory, ends the import, and there
//! is no snapshot. What was stored until then is used by the next one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;

use engine::format::Decoder;
use engine::pipeline::{IncomingStream, PendingRecipe, Writer};
use engine::recipe::ContainerTable;

use super::stream::CountedStream;
use super::tree_builder::{Content, TreeBuilder};
use super::{BackupError, BackupOptions, BackupReport, RunningBackup};
use crate::files::OwnerNames;
use crate::listing::path_parts;
use crate::progress::{Problem, Progress};
use crate::repository::Repository;
use crate::snapshot::Summary;
use crate::tar::{Extent, Member, MemberKind, TarError, TarReader};
use crate::timestamp::Timestamp;
use crate::tree::{Entry, EntryKind, HardLink, Metadata};

/// Between the parts of a path in the table: the least byte, and one that no name has, so that the table's order is
/// that of a tree: a directory, then what is in it, then its next neighbour.
const BETWEEN: u8 = 0;

/// Members after which the open group is closed, so that few wait for the places of their chunks.
const MEMBERS_PER_GROUP_MAX: u64 = 10_000;

/// Links that are followed from one to the next.
const LINKS_MAX: usize = 64;

/// Mode of directories that no member tells of.
const DIRECTORY_MODE: u32 = 0o755;

/// How an archive is to be imported.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Host, tags, and how to store; what concerns files of a disk is passed over.
    pub backup: BackupOptions,
    /// When what the archive holds was so; now when not given.
    pub time: Option<Timestamp>,
    /// The absolute path under which the members are put.
    pub path: Vec<u8>,
}

impl Repository {
    /// Imports a tar. Members that can't be stored are reported to `progress`, listed in the snapshot, and counted in
    /// the report.
    ///
    /// # Errors
    /// When no snapshot was written.
    pub fn import_tar(
        &self,
        archive: &mut dyn Read,
        options: &ImportOptions,
        progress: &Progress,
    ) -> Result<BackupReport, BackupError> {
        let mut run = RunningBackup::begin(self, &options.backup, progress)?;
        let started = run.snapshot.time;
        run.snapshot.time = options.time.unwrap_or(started);
        let parts: Vec<&[u8]> = path_parts(&options.path).collect();
        run.snapshot.paths = vec![[b"/", parts.join(&b'/').as_slice()].concat()];
        let mut writer = run.engine.writer()?;
        let mut source = CountedStream {
            stream: archive,
            progress,
            registration: run.registration.clone(),
        };
        let mut members = Members {
            prefix: parts.iter().map(|part| part.to_vec()).collect(),
            ..Members::default()
        };
        let read = run
            .read_members(&mut source, &mut members, &mut writer)
            .and_then(|()| run.store_tree(members, &mut writer, started));
        match read {
            Ok(()) => run.commit(writer, true),
            Err(error @ BackupError::Archive(_)) => {
                // What came before is there for the next attempt.
                run.snapshot.summary = Summary::default();
                match run.commit(writer, false) {
                    Err(BackupError::Interrupted(_)) if !progress.is_cancelled() => Err(error),
                    outcome => outcome,
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// What is known of a path.
enum Item {
    /// Its entry, in its stored form.
    Entry(Box<[u8]>),
    /// It is another name of what has that key.
    Link(Vec<u8>),
}

/// What was read of an archive.
#[derive(Default)]
struct Members {
    prefix: Vec<Vec<u8>>,
    items: BTreeMap<Vec<u8>, Item>,
    /// The containers that the stored forms name.
    table: ContainerTable,
    /// Members whose turn to enter the table comes when their chunks have places.
    waiting: VecDeque<(Vec<u8>, Waiting)>,
    in_group: u64,
    replaced: u64,
    has_absolute: bool,
}

enum Waiting {
    Entry(Box<Entry>, Option<PendingRecipe>),
    Link(Vec<u8>),
}

impl Members {
    /// The key of a member's path; nothing for the root itself.
    fn key(&self, path: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let mut parts: Vec<&[u8]> = self.prefix.iter().map(Vec::as_slice).collect();
        let before = parts.len();
        for part in path_parts(path) {
            if part == b".." {
                return Err("its path leads out of the archive by '..'".to_owned());
            }
            if part.contains(&0) {
                return Err("its path has a NUL".to_owned());
            }
            parts.push(part);
        }
        Ok((parts.len() > before).then(|| parts.join(&BETWEEN)))
    }

    /// Takes in members whose chunks have places.
    fn settle(&mut self, writer: &mut Writer, all: bool) -> Result<(), BackupError> {
        while let Some((_, waiting)) = self.waiting.front_mut() {
            if let Waiting::Entry(_, Some(recipe)) = waiting
                && !all
                && !writer.is_settled(recipe)
            {
                break;
            }
            let Some((key, waiting)) = self.waiting.pop_front() else {
                break;
            };
            match waiting {
                Waiting::Link(target) => self.insert(key, Item::Link(target)),
                Waiting::Entry(mut entry, recipe) => {
                    if let Some(recipe) = recipe {
                        entry.content = writer.settle(recipe)?;
                    }
                    let item = self.encoded(&entry);
                    self.insert(key, item);
                }
            }
        }
        Ok(())
    }

    fn encoded(&mut self, entry: &Entry) -> Item {
        let mut bytes = Vec::new();
        entry.encode(&mut self.table, &mut bytes);
        Item::Entry(bytes.into_boxed_slice())
    }

    fn decoded(&self, bytes: &[u8]) -> Entry {
        let entry = Entry::decode(&mut Decoder::new(bytes), &self.table);
        entry.expect("what was encoded a moment ago is decoded")
    }

    fn insert(&mut self, key: Vec<u8>, item: Item) {
        let is_directory = |members: &Self, item: &Item| match item {
            Item::Entry(bytes) => members.decoded(bytes).kind == EntryKind::Directory,
            Item::Link(_) => false,
        };
        if let Some(before) = self.items.get(&key)
            && !(is_directory(self, before) && is_directory(self, &item))
        {
            self.replaced += 1;
        }
        self.items.insert(key, item);
    }

    /// Makes entries of the links: names of one file have the same number. Returns what could not be.
    fn resolve_links(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let links = self.items.iter();
        let links = links.filter(|(_, item)| matches!(item, Item::Link(_)));
        let links: Vec<Vec<u8>> = links.map(|(key, _)| key.clone()).collect();
        let mut numbers: HashMap<Vec<u8>, u64> = HashMap::new();
        let mut made = Vec::new();
        for key in links {
            let Some((target, mut entry)) = self.target_of(&key) else {
                problems.push(Problem {
                    path: shown(&key),
                    message: "not imported: the archive has no file that it is another name of"
                        .to_owned(),
                    is_error: true,
                });
                self.items.remove(&key);
                continue;
            };
            let next = numbers.len() as u64 + 1;
            let inode = *numbers.entry(target.clone()).or_insert(next);
            entry.hard_link = Some(HardLink { device: 0, inode });
            let first = self.encoded(&entry);
            entry.name = name_of(&key).to_vec();
            let other = self.encoded(&entry);
            made.push((target, first));
            made.push((key, other));
        }
        // Only now: links to links are followed through links.
        self.items.extend(made);
        problems
    }

    /// What a link leads to in the end.
    fn target_of(&self, key: &[u8]) -> Option<(Vec<u8>, Entry)> {
        let mut key = key.to_vec();
        for _ in 0..LINKS_MAX {
            match self.items.get(&key)? {
                Item::Link(target) => key.clone_from(target),
                Item::Entry(bytes) => {
                    let entry = self.decoded(bytes);
                    return (entry.kind != EntryKind::Directory).then_some((key, entry));
                }
            }
        }
        None
    }
}

fn name_of(key: &[u8]) -> &[u8] {
    key.rsplit(|&byte| byte == BETWEEN).next().unwrap_or(key)
}

/// The path of a key.
fn shown(key: &[u8]) -> Vec<u8> {
    let mut path = vec![b'/'];
    path.extend(
        key.iter()
            .map(|&byte| if byte == BETWEEN { b'/' } else { byte }),
    );
    path
}

fn refuse(member: &Member, reason: String) -> BackupError {
    BackupError::Archive(TarError::Member {
        path: member.path.clone(),
        offset: member.offset,
        reason,
    })
}

impl RunningBackup<'_> {
    fn read_members(
        &mut self,
        source: &mut dyn Read,
        members: &mut Members,
        writer: &mut Writer,
    ) -> Result<(), BackupError> {
        writer.count_stream_threads();
        let mut tar = TarReader::new(source, OwnerNames::of_system());
        while let Some(member) = tar.next_member()? {
            self.progress.set_current(&member.path);
            let before = writer.totals().bytes_new;
            self.take_member(member, &mut tar, members, writer)?;
            let new = writer.totals().bytes_new - before;
            Progress::add(&self.progress.bytes_new, new);
            members.in_group += 1;
            if members.in_group >= MEMBERS_PER_GROUP_MAX {
                members.in_group = 0;
                writer.decide_waiting()?;
                writer.close_group()?;
            }
            members.settle(writer, false)?;
        }
        writer.flush()?;
        members.settle(writer, true)
    }

    fn take_member(
        &mut self,
        member: Member,
        tar: &mut TarReader<'_>,
        members: &mut Members,
        writer: &mut Writer,
    ) -> Result<(), BackupError> {
        if member.path.is_empty() {
            return Err(refuse(&member, "it has no name".to_owned()));
        }
        members.has_absolute |= member.path.starts_with(b"/");
        let key = members.key(&member.path);
        let Some(key) = key.map_err(|reason| refuse(&member, reason))? else {
            return Ok(()); // The root has no entry of its own.
        };
        for note in &member.notes {
            self.record(&Problem {
                path: shown(&key),
                message: note.clone(),
                is_error: true,
            });
        }
        let kind = match member.kind.clone() {
            MemberKind::Entry(kind) => kind,
            MemberKind::HardLink(target) => {
                let target_key = members.key(&target);
                let target_key = target_key.map_err(|reason| refuse(&member, reason))?;
                // A file is another name of itself.
                if let Some(target) = target_key
                    && target != key
                {
                    members.waiting.push_back((key, Waiting::Link(target)));
                }
                return Ok(());
            }
            MemberKind::Unknown(kind) => {
                // A volume's label is no member.
                self.record(&Problem {
                    path: shown(&key),
                    is_error: kind != "V",
                    message: format!("not imported: members of type '{kind}' are not known"),
                });
                return Ok(());
            }
        };
        let mut entry = Entry::new(name_of(&key).to_vec(), kind, member.metadata.clone());
        entry
            .check()
            .map_err(|error| refuse(&member, error.to_string()))?;
        let recipe = match entry.kind {
            EntryKind::File => Some(self.store_content(&member, &mut entry, tar, writer)?),
            _ => None,
        };
        members
            .waiting
            .push_back((key, Waiting::Entry(Box::new(entry), recipe)));
        Ok(())
    }

    /// Stores the contents of a file.
    fn store_content(
        &mut self,
        member: &Member,
        entry: &mut Entry,
        tar: &mut TarReader<'_>,
        writer: &mut Writer,
    ) -> Result<PendingRecipe, BackupError> {
        let fingerprinter = Arc::clone(self.engine.fingerprinter());
        let mut incoming = IncomingStream::new(&fingerprinter);
        let whole = [Extent {
            offset: 0,
            bytes: member.size,
        }];
        let extents = member.sparse.as_deref().unwrap_or(&whole);
        let mut end = 0;
        for extent in extents {
            if extent.offset > end {
                incoming.hole(extent.offset - end);
            }
            let mut part = MemberPart {
                tar: &mut *tar,
                left: extent.bytes,
                error: None,
            };
            let stored = writer.store_part(&mut incoming, &mut part, Some(extent.bytes), None);
            if let Some(error) = part.error {
                return Err(error.into());
            }
            self.snapshot.summary.bytes_read += stored?;
            end = extent.offset + extent.bytes;
        }
        if member.size > end {
            incoming.hole(member.size - end);
        }
        let (recipe, check) = incoming.take(&fingerprinter);
        entry.size = member.size;
        entry.check = (entry.size > 0).then_some(check);
        Ok(recipe)
    }

    /// Stores what was read as a tree.
    fn store_tree(
        &mut self,
        mut members: Members,
        writer: &mut Writer,
        now: Timestamp,
    ) -> Result<(), BackupError> {
        for problem in members.resolve_links() {
            self.record(&problem);
        }
        self.tell_notes(&members);
        let mut tree = TreeBuilder::new(Arc::clone(self.engine.fingerprinter()));
        let mut open: Vec<Vec<u8>> = Vec::new();
        let mut last_file: Option<Vec<u8>> = None;
        for (key, item) in std::mem::take(&mut members.items) {
            let Item::Entry(bytes) = item else {
                continue; // Links are entries by now.
            };
            if let Some(file) = &last_file
                && key.starts_with(file)
                && key.get(file.len()) == Some(&BETWEEN)
            {
                return Err(BackupError::Archive(TarError::NotADirectory {
                    path: shown(&key),
                    above: shown(file),
                }));
            }
            let mut parents: Vec<&[u8]> = key.split(|&byte| byte == BETWEEN).collect();
            parents.pop();
            while open.len() > parents.len() || open.iter().zip(&parents).any(|(a, b)| a != b) {
                tree.leave();
                open.pop();
            }
            for parent in &parents[open.len()..] {
                self.snapshot.summary.directories += 1;
                tree.enter(unmentioned_directory(parent, now));
                open.push(parent.to_vec());
            }
            let entry = members.decoded(&bytes);
            if entry.kind == EntryKind::Directory {
                self.snapshot.summary.directories += 1;
                open.push(entry.name.clone());
                tree.enter(entry);
                last_file = None;
            } else {
                match entry.kind {
                    EntryKind::File => self.count_file(&entry, Some(true)),
                    _ => self.snapshot.summary.other_entries += 1,
                }
                tree.entry(entry, Content::Settled);
                last_file = Some(key);
            }
            tree.advance(writer)?;
        }
        for _ in open {
            tree.leave();
        }
        let (root, refused) = tree.finish(writer)?;
        for problem in refused {
            self.record(&problem);
        }
        self.snapshot.root = root;
        Ok(())
    }

    /// What is worth knowing of an archive, and no error.
    fn tell_notes(&mut self, members: &Members) {
        let mut note = |message: String| {
            self.record(&Problem {
                path: b"/".to_vec(),
                message,
                is_error: false,
            });
        };
        if members.replaced > 0 {
            note(format!(
                "{} members are in the archive again: what comes last counts",
                members.replaced
            ));
        }
        if members.has_absolute {
            note("members with absolute paths were taken as if they began without '/'".to_owned());
        }
    }
}

/// A directory that no member tells of.
fn unmentioned_directory(name: &[u8], now: Timestamp) -> Entry {
    let metadata = Metadata {
        mode: DIRECTORY_MODE,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        modified: now,
        ..Metadata::default()
    };
    Entry::new(name.to_vec(), EntryKind::Directory, metadata)
}

/// A part of a member's contents.
struct MemberPart<'a, 'b> {
    tar: &'a mut TarReader<'b>,
    left: u64,
    /// Why it can't be read.
    error: Option<TarError>,
}

impl Read for MemberPart<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = count.min(buffer.len());
        match self.tar.read_content(&mut buffer[..count]) {
            Ok(count) => {
                self.left -= count as u64;
                Ok(count)
            }
            Err(error) => {
                self.error = Some(error);
                Err(io::Error::other("the archive can't be read"))
            }
        }
    }
}
