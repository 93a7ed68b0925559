//! A tree without what is lost of it.
//!
//! Enters: the recipe of a root directory. Leaves: whether all of the tree is whole; if not, the recipe of a tree that
//! is: with the files that can be read, those whose lost chunks are stored elsewhere as well, and of the others, where
//! that is wanted, what is left of them under the name `NAME.damaged`, zeros in the place of the rest.
//!
//! Method: a first pass finds out which directories are whole with all below them, each once, whatever number of
//! snapshots share it. Those keep their pages. A second pass makes the others again. A chunk that is lost where a
//! recipe says is looked for by its full fingerprint, which its container's metadata names; a file made up so must have
//! the check value that it had when it was backed up. A file of that size and check value in whatever snapshot has the
//! same content: where it is whole, its recipe serves, whatever is known of the lost chunks.
//!
//! Memory: a hash of 16 bytes a directory, the runs of one file, and a page for each level of the deepest path.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use engine::container::{ChunkAddress, Slot};
use engine::fingerprint::{CheckValue, Fingerprint, Fingerprinter};
use engine::pipeline::{PendingRecipe, Writer};
use engine::recipe::{ContainerTable, Recipe, Run, RunJoiner};
use engine::restore::{ReadError, Reader};

use super::health::Health;
use super::streams::{Left, Piece, joined};
use super::{Loss, RepairError};
use crate::listing::{DirectoryEntries, ListError, join_path};
use crate::progress::Progress;
use crate::tree::{DirectoryReader, Entry, EntryKind, PageWriter};

/// What the name of a file ends with of which only parts are left.
pub(super) const DAMAGED_SUFFIX: &[u8] = b".damaged";

/// Longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;

/// What is left of a tree.
#[derive(Debug, Default)]
pub(super) struct LeftOfTree {
    pub root: Recipe,
    pub losses: Vec<Loss>,
    /// Files that are whole again.
    pub files_relinked: u64,
}

/// Makes trees without what is lost.
pub(super) struct TreeRepair<'a> {
    pub(super) reader: &'a Reader,
    pub(super) health: &'a Health,
    progress: &'a Progress,
    fingerprinter: Arc<Fingerprinter>,
    keep_parts: bool,
    /// Size and check value of files that are not whole, and recipes of whole ones that are the same.
    wanted: HashSet<(u64, CheckValue)>,
    same: HashMap<(u64, CheckValue), Recipe>,
    /// Directories that were looked at, and whether all below them is whole: strictly, and otherwise.
    seen: [HashMap<[u8; 16], bool>; 2],
    /// Where lost chunks are stored elsewhere.
    pub(super) elsewhere: HashMap<Fingerprint, Option<ChunkAddress>>,
}

/// A directory in the first pass.
struct Looked {
    hash: [u8; 16],
    path: Vec<u8>,
    entries: DirectoryEntries,
    is_whole: bool,
}

/// A directory in the second pass.
struct Open {
    path: Vec<u8>,
    entry: Option<Entry>,
    pages: VecDeque<Piece>,
    order: DirectoryReader,
    entries: VecDeque<Entry>,
    made: PageWriter,
    runs: RunJoiner,
    /// Entries under new names, whose turn has not come.
    renamed: BTreeMap<Vec<u8>, Entry>,
}

fn hash_of(recipe: &Recipe) -> [u8; 16] {
    let mut table = ContainerTable::default();
    let mut bytes = Vec::new();
    recipe.encode(&mut table, &mut bytes);
    table.encode(&mut bytes);
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
    hash
}

/// False for damage; what may come back is an error.
pub(super) fn unless_damaged(error: ReadError) -> Result<(), RepairError> {
    match error.is_damage() {
        true => Ok(()),
        false => Err(RepairError::Read(Box::new(error))),
    }
}

impl<'a> TreeRepair<'a> {
    pub fn new(
        reader: &'a Reader,
        health: &'a Health,
        fingerprinter: &Arc<Fingerprinter>,
        progress: &'a Progress,
        keep_parts: bool,
    ) -> Self {
        Self {
            reader,
            health,
            progress,
            fingerprinter: Arc::clone(fingerprinter),
            keep_parts,
            wanted: HashSet::new(),
            same: HashMap::new(),
            seen: Default::default(),
            elsewhere: HashMap::new(),
        }
    }

    fn check_stop(&self) -> Result<(), RepairError> {
        match self.progress.is_cancelled() {
            true => Err(RepairError::Interrupted),
            false => Ok(()),
        }
    }

    /// Is a tree whole? Where `is_strict`, none of it may lie in condemned objects.
    pub fn is_whole(&mut self, root: &Recipe, is_strict: bool) -> Result<bool, RepairError> {
        if let Some(is_whole) = self.seen[usize::from(is_strict)].get(&hash_of(root)) {
            return Ok(*is_whole);
        }
        let mut stack = vec![self.look(root, Vec::new(), is_strict)?];
        loop {
            self.check_stop()?;
            let top = stack.last_mut().expect("it ends with the root");
            match top.entries.next() {
                Some(Ok(entry)) if entry.kind == EntryKind::Directory => {
                    match self.seen[usize::from(is_strict)].get(&hash_of(&entry.content)) {
                        Some(is_whole) => top.is_whole &= is_whole,
                        None => {
                            let path = join_path(&top.path, &entry.name);
                            stack.push(self.look(&entry.content, path, is_strict)?);
                        }
                    }
                }
                Some(Ok(entry)) if entry.kind == EntryKind::File => {
                    if !self.is_file_whole(&entry, is_strict)? {
                        top.is_whole = false;
                        let check = entry.check.map(|check| (entry.size, check));
                        self.wanted.extend(check.filter(|_| !is_strict));
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(ListError::Read { error, .. })) => {
                    unless_damaged(error)?;
                    top.is_whole = false;
                }
                Some(Err(_)) => top.is_whole = false,
                None => {
                    let Looked { hash, is_whole, .. } = stack.pop().expect("it was the last");
                    self.seen[usize::from(is_strict)].insert(hash, is_whole);
                    match stack.last_mut() {
                        Some(parent) => parent.is_whole &= is_whole,
                        None => return Ok(is_whole),
                    }
                }
            }
        }
    }

    /// Looks in these trees for whole files that are the same as those that were found not to be whole. What lies in
    /// condemned objects does not count: new snapshots must not rest on it.
    pub fn find_same(&mut self, roots: &[&Recipe]) -> Result<(), RepairError> {
        let mut visited = HashSet::new();
        let mut waiting: Vec<Recipe> = roots.iter().copied().cloned().collect();
        while let Some(recipe) = waiting.pop() {
            if self.wanted.len() == self.same.len() {
                break;
            }
            if !visited.insert(hash_of(&recipe)) {
                continue;
            }
            self.check_stop()?;
            for entry in DirectoryEntries::new(self.reader, &recipe, b"") {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(ListError::Read { error, .. }) => {
                        unless_damaged(error)?;
                        break;
                    }
                    Err(_) => break,
                };
                if entry.kind == EntryKind::Directory {
                    waiting.push(entry.content);
                    continue;
                }
                let Some(check) = entry.check else { continue };
                let key = (entry.size, check);
                let is_wanted = self.wanted.contains(&key) && !self.same.contains_key(&key);
                if is_wanted && self.is_file_whole(&entry, true)? {
                    self.same.insert(key, entry.content);
                }
            }
        }
        Ok(())
    }

    fn look(&self, recipe: &Recipe, path: Vec<u8>, is_strict: bool) -> Result<Looked, RepairError> {
        self.progress.set_current(&path);
        Ok(Looked {
            hash: hash_of(recipe),
            entries: DirectoryEntries::new(self.reader, recipe, &path),
            path,
            is_whole: self.is_stream_whole(recipe, is_strict)?.is_some(),
        })
    }

    fn is_file_whole(&self, entry: &Entry, is_strict: bool) -> Result<bool, RepairError> {
        let found = self.is_stream_whole(&entry.content, is_strict)?;
        Ok(found.is_some_and(|(bytes, check)| {
            bytes == entry.size && entry.check.is_none_or(|expected| expected == check)
        }))
    }

    /// Length and check value of a stream all of whose chunks can be read.
    fn is_stream_whole(
        &self,
        recipe: &Recipe,
        is_strict: bool,
    ) -> Result<Option<(u64, CheckValue)>, RepairError> {
        let (mut is_whole, mut failure) = (true, None);
        let mut note = |_: &Run, located: Option<&engine::restore::LocatedRun>| {
            if let Some(located) = located.filter(|_| is_whole) {
                match self.health.is_run_whole(self.reader, located, is_strict) {
                    Ok(is_so) => is_whole = is_so,
                    Err(error) => failure = Some(error),
                }
            }
        };
        let visited = self.reader.visit_runs(recipe, &mut note);
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        match visited {
            Ok(found) => Ok(is_whole.then_some(found)),
            Err(error) => unless_damaged(error).map(|()| None),
        }
    }

    /// The tree again, without what is lost of it. What is new of it is stored by `writer`, and not durable yet.
    pub fn rebuild(
        &mut self,
        root: &Recipe,
        writer: &mut Writer,
    ) -> Result<LeftOfTree, RepairError> {
        let mut left = LeftOfTree::default();
        let mut stack = vec![self.open(root, Vec::new(), None, writer)?];
        loop {
            self.check_stop()?;
            let top = stack.last_mut().expect("it ends with the root");
            if let Some(entry) = top.entries.pop_front() {
                let path = join_path(&top.path, &entry.name);
                self.progress.set_current(&path);
                match entry.kind {
                    EntryKind::Directory if !self.is_whole(&entry.content, false)? => {
                        let content = entry.content.clone();
                        stack.push(self.open(&content, path, Some(entry), writer)?);
                    }
                    EntryKind::File if !self.is_file_whole(&entry, false)? => {
                        if let Some(entry) = self.file(entry, path, writer, &mut left)? {
                            self.push(top, entry, writer, &mut left)?;
                        }
                    }
                    _ => self.push(top, entry, writer, &mut left)?,
                }
                continue;
            }
            if let Some(piece) = top.pages.pop_front() {
                self.page(top, piece, writer, &mut left)?;
                continue;
            }
            let mut done = stack.pop().expect("it was the last");
            for (_, entry) in std::mem::take(&mut done.renamed) {
                self.store(&mut done, &entry, writer, &mut left)?;
            }
            for page in std::mem::take(&mut done.made).finish() {
                done.runs.push(writer.push_page(&page)?);
            }
            let runs = PendingRecipe::from_runs(&done.runs.finish());
            let recipe = writer.settle(runs)?;
            let (Some(parent), Some(mut entry)) = (stack.last_mut(), done.entry) else {
                left.root = recipe;
                return Ok(left);
            };
            entry.content = recipe;
            self.push(parent, entry, writer, &mut left)?;
        }
    }

    fn open(
        &mut self,
        recipe: &Recipe,
        path: Vec<u8>,
        entry: Option<Entry>,
        writer: &mut Writer,
    ) -> Result<Open, RepairError> {
        let mut pieces = Vec::new();
        self.pieces(recipe, writer, &mut pieces)?;
        Ok(Open {
            path,
            entry,
            pages: pieces.into(),
            order: DirectoryReader::new(),
            entries: VecDeque::new(),
            made: PageWriter::new(),
            runs: RunJoiner::default(),
            renamed: BTreeMap::new(),
        })
    }

    /// Reads the pages of a part of a directory.
    fn page(
        &mut self,
        top: &mut Open,
        piece: Piece,
        writer: &mut Writer,
        left: &mut LeftOfTree,
    ) -> Result<(), RepairError> {
        let lose = |path: &[u8], left: &mut LeftOfTree, why: &str| {
            let message = format!(
                "a part of the directory can't be read, and nobody knows what was in it: {why}"
            );
            left.losses.push(Loss::directory(path, message));
        };
        let run = match piece {
            Piece::Run(run) => run,
            Piece::Lost(bytes) => {
                lose(&top.path, left, &format!("{bytes} bytes are lost"));
                return Ok(());
            }
        };
        let Run::Slots {
            container,
            first: Slot(first),
            count,
            ..
        } = run
        else {
            return Ok(());
        };
        for slot in (first..=u16::MAX).take(count as usize).map(Slot) {
            let address = ChunkAddress { container, slot };
            let page = match self.reader.chunk(address) {
                Ok(page) => Ok(page),
                Err(error) => {
                    let message = error.to_string();
                    unless_damaged(error)?;
                    match self.found_elsewhere(address, writer)? {
                        Some(other) => self.reader.chunk(other).map_err(|error| error.to_string()),
                        None => Err(message),
                    }
                }
            };
            let entries = page.and_then(|page| {
                let entries = top.order.page(&page);
                entries.map_err(|reason| reason.to_string())
            });
            match entries {
                Ok(entries) => top.entries.extend(entries),
                Err(message) => lose(&top.path, left, &message),
            }
        }
        Ok(())
    }

    /// What becomes of a file that is not whole: nothing where it is left out.
    fn file(
        &mut self,
        mut entry: Entry,
        path: Vec<u8>,
        writer: &mut Writer,
        left: &mut LeftOfTree,
    ) -> Result<Option<Entry>, RepairError> {
        let same = entry.check.map(|check| (entry.size, check));
        if let Some(recipe) = same.and_then(|same| self.same.get(&same)) {
            entry.content = recipe.clone();
            left.files_relinked += 1;
            return Ok(Some(entry));
        }
        let mut pieces = Vec::new();
        self.pieces(&entry.content, writer, &mut pieces)?;
        let Left { runs, lost_bytes } = joined(pieces);
        let made = Recipe::Runs(runs.clone());
        let checked = self.is_stream_whole(&made, false)?;
        let is_same = checked.is_some_and(|(bytes, check)| {
            bytes == entry.size && entry.check.is_none_or(|expected| expected == check)
        });
        if lost_bytes == 0 && is_same {
            entry.content = writer.settle(PendingRecipe::from_runs(&runs))?;
            left.files_relinked += 1;
            return Ok(Some(entry));
        }
        let readable = made.stream_bytes() - lost_bytes;
        let mut loss = Loss {
            bytes_readable: readable,
            bytes_lost: lost_bytes,
            ..Loss::directory(&path, String::new())
        };
        loss.is_directory = false;
        let name = [&entry.name[..], DAMAGED_SUFFIX].concat();
        let what = match lost_bytes {
            0 => "its chunks are not those that were backed up".to_owned(),
            _ => format!("{lost_bytes} of {} bytes are lost", entry.size),
        };
        let is_kept = self.keep_parts
            && readable > 0
            && name.len() <= NAME_BYTES_MAX
            && checked.is_some_and(|(bytes, _)| bytes == entry.size);
        loss.is_kept = is_kept;
        loss.message = match is_kept {
            true => format!(
                "{what}; what is left is kept as {}, with zeros for the rest",
                String::from_utf8_lossy(&name)
            ),
            false => format!("{what}; it is left out"),
        };
        left.losses.push(loss);
        if !is_kept {
            return Ok(None);
        }
        entry.content = writer.settle(PendingRecipe::from_runs(&runs))?;
        entry.check = checked.map(|(_, check)| check);
        // Its other names come with what is left of it as well.
        entry.name = name;
        Ok(Some(entry))
    }

    /// Adds an entry; one under a new name waits for its turn.
    fn push(
        &self,
        top: &mut Open,
        entry: Entry,
        writer: &mut Writer,
        left: &mut LeftOfTree,
    ) -> Result<(), RepairError> {
        let is_file = entry.kind == EntryKind::File;
        if is_file && entry.name.ends_with(DAMAGED_SUFFIX) && !top.renamed.contains_key(&entry.name)
        {
            // Whether it had that name before or has it now: it comes where it belongs.
            top.renamed.insert(entry.name.clone(), entry);
            return Ok(());
        }
        while let Some((name, _)) = top.renamed.first_key_value()
            && *name < entry.name
        {
            let (_, earlier) = top.renamed.pop_first().expect("there is a first one");
            self.store(top, &earlier, writer, left)?;
        }
        if let Some(mut other) = top.renamed.remove(&entry.name) {
            while other.name == entry.name || top.renamed.contains_key(&other.name) {
                other.name.push(b'~');
            }
            top.renamed.insert(other.name.clone(), other);
        }
        self.store(top, &entry, writer, left)
    }

    fn store(
        &self,
        top: &mut Open,
        entry: &Entry,
        writer: &mut Writer,
        left: &mut LeftOfTree,
    ) -> Result<(), RepairError> {
        if let Err(error) = top.made.push(&self.fingerprinter, entry) {
            let path = join_path(&top.path, &entry.name);
            left.losses.push(Loss::directory(&path, error.to_string()));
            return Ok(());
        }
        while let Some(page) = top.made.next_page() {
            top.runs.push(writer.push_page(&page)?);
        }
        Ok(())
    }
}
