//! Makes directories out of entries as they come in walk order.
//!
//! Entries wait in a queue until the chunks of their files have places; then they go into the
//! pages of their directory, and a directory that is complete goes into its parent. Pages are
//! stored as soon as they are full, so a directory of a million files takes no more memory
//! than a page. What is stored depends on the entries alone, not on when they settle.

use std::collections::{HashMap, VecDeque};

use engine::fingerprint::{CheckValue, Fingerprinter};
use engine::pipeline::{PendingRecipe, WriteError, Writer};
use engine::recipe::{Recipe, Run, RunJoiner};
use std::sync::Arc;

use crate::listing::join_path;
use crate::progress::Problem;
use crate::tree::{Entry, HardLink, PageWriter};

/// Entries after which the open group is closed, so that the queue stays short even when few
/// of them bring new chunks.
const ENTRIES_PER_GROUP_MAX: u64 = 10_000;

/// Entries after which chunks that wait to be decided (`engine::rewriting`) wait no longer, for the
/// same reason. Seldom, because a window that was cut short decides less well.
const ENTRIES_PER_WINDOW_MAX: u64 = 40_000;

/// What an entry's content is, when it comes in.
#[derive(Debug)]
pub(crate) enum Content {
    /// Known, or none.
    Settled,
    /// That of the same file under an earlier name.
    Linked,
    /// Chunks that may not have a place yet.
    Pending(PendingRecipe),
}

enum Step {
    Enter(Entry),
    Entry(Box<Entry>, Content),
    Leave,
}

struct OpenDirectory {
    entry: Option<Entry>,
    pages: PageWriter,
    runs: RunJoiner,
}

impl OpenDirectory {
    fn new(entry: Option<Entry>) -> Self {
        Self {
            entry,
            pages: PageWriter::new(),
            runs: RunJoiner::default(),
        }
    }
}

/// The content of a file with several names, for its later names.
#[derive(Debug, Clone)]
struct LinkedContent {
    runs: Recipe,
    size: u64,
    check: Option<CheckValue>,
}

/// Builds the tree of a snapshot.
pub(crate) struct TreeBuilder {
    fingerprinter: Arc<Fingerprinter>,
    queue: VecDeque<Step>,
    open: Vec<OpenDirectory>,
    linked: HashMap<HardLink, LinkedContent>,
    entries_in_group: u64,
    entries_in_window: u64,
    refused: Vec<Problem>,
}

impl TreeBuilder {
    pub fn new(fingerprinter: Arc<Fingerprinter>) -> Self {
        Self {
            fingerprinter,
            queue: VecDeque::new(),
            open: vec![OpenDirectory::new(None)],
            linked: HashMap::new(),
            entries_in_group: 0,
            entries_in_window: 0,
            refused: Vec::new(),
        }
    }

    /// Begins a directory below the current one.
    pub fn enter(&mut self, entry: Entry) {
        self.queue.push_back(Step::Enter(entry));
    }

    /// Adds an entry to the current directory.
    pub fn entry(&mut self, entry: Entry, content: Content) {
        self.queue.push_back(Step::Entry(Box::new(entry), content));
    }

    /// Ends the current directory.
    pub fn leave(&mut self) {
        self.queue.push_back(Step::Leave);
    }

    /// Moves on as far as chunks have places.
    pub fn advance(&mut self, writer: &mut Writer) -> Result<(), WriteError> {
        self.entries_in_group += 1;
        self.entries_in_window += 1;
        if self.entries_in_window >= ENTRIES_PER_WINDOW_MAX {
            self.entries_in_window = 0;
            writer.decide_waiting()?;
        }
        if self.entries_in_group >= ENTRIES_PER_GROUP_MAX {
            self.entries_in_group = 0;
            writer.close_group()?;
        }
        self.settle(writer)?;
        Ok(())
    }

    /// Takes in entries as far as chunks have places. Says whether none is left: then pages of what
    /// comes next may be stored.
    pub fn settle(&mut self, writer: &mut Writer) -> Result<bool, WriteError> {
        while let Some(step) = self.queue.front_mut() {
            if let Step::Entry(_, Content::Pending(recipe)) = step
                && !writer.is_settled(recipe)
            {
                return Ok(false);
            }
            if let Some(step) = self.queue.pop_front() {
                self.take(step, writer)?;
            }
        }
        Ok(true)
    }

    /// Completes the tree, waiting for whatever has no place yet, and returns the recipe of the
    /// root directory, and what could not be taken in.
    pub fn finish(mut self, writer: &mut Writer) -> Result<(Recipe, Vec<Problem>), WriteError> {
        while let Some(step) = self.queue.pop_front() {
            self.take(step, writer)?;
        }
        while self.open.len() > 1 {
            self.close_directory(writer)?;
        }
        let root = self.open.pop().expect("the root is open until here");
        let recipe = finish_pages(root.pages, root.runs, writer)?;
        Ok((recipe, self.refused))
    }

    fn take(&mut self, step: Step, writer: &mut Writer) -> Result<(), WriteError> {
        match step {
            Step::Enter(entry) => {
                self.open.push(OpenDirectory::new(Some(entry)));
                Ok(())
            }
            Step::Leave => self.close_directory(writer),
            Step::Entry(mut entry, content) => {
                let is_later_name = matches!(content, Content::Linked);
                if let Content::Pending(recipe) = content {
                    entry.content = match writer.settle(recipe) {
                        Err(error @ WriteError::RecipeTooLong) => {
                            self.refuse(&entry.name, format!("not saved: {error}"));
                            return Ok(());
                        }
                        settled => settled?,
                    };
                }
                if !self.share_links(&mut entry, is_later_name) {
                    let message = "not saved: the file that it is a hard link to could not be read";
                    self.refuse(&entry.name, message.to_owned());
                    return Ok(());
                }
                self.add(&entry, writer)
            }
        }
    }

    /// Remembers the content of a file with several names, or fills it in for a later name. False
    /// when that has no content of its own and the first name's is not known.
    fn share_links(&mut self, entry: &mut Entry, is_later_name: bool) -> bool {
        let Some(link) = entry.hard_link else {
            return true;
        };
        if entry.kind != crate::tree::EntryKind::File {
            return true;
        }
        if let Some(linked) = self.linked.get(&link) {
            entry.content = linked.runs.clone();
            entry.size = linked.size;
            entry.check = linked.check;
        } else if is_later_name {
            return false;
        } else {
            let linked = LinkedContent {
                runs: entry.content.clone(),
                size: entry.size,
                check: entry.check,
            };
            self.linked.insert(link, linked);
        }
        true
    }

    /// Leaves out an entry of the current directory.
    fn refuse(&mut self, name: &[u8], message: String) {
        let directories = self.open.iter().filter_map(|open| open.entry.as_ref());
        let mut path = Vec::new();
        for directory in directories {
            path = join_path(&path, &directory.name);
        }
        self.refused.push(Problem {
            path: join_path(&path, name),
            message,
            is_error: true,
        });
    }

    fn close_directory(&mut self, writer: &mut Writer) -> Result<(), WriteError> {
        let directory = self.open.pop().expect("leave follows enter");
        let content = finish_pages(directory.pages, directory.runs, writer)?;
        let mut entry = directory.entry.expect("only the root has no entry");
        entry.content = content;
        self.add(&entry, writer)
    }

    fn add(&mut self, entry: &Entry, writer: &mut Writer) -> Result<(), WriteError> {
        let directory = self.open.last_mut().expect("a directory is open");
        if let Err(error) = directory.pages.push(&self.fingerprinter, entry) {
            self.refuse(&entry.name, format!("not saved: {error}"));
            return Ok(());
        }
        while let Some(page) = directory.pages.next_page() {
            let run: Run = writer.push_page(&page)?;
            directory.runs.push(run);
        }
        Ok(())
    }
}

fn finish_pages(
    pages: PageWriter,
    mut runs: RunJoiner,
    writer: &mut Writer,
) -> Result<Recipe, WriteError> {
    for page in pages.finish() {
        let run = writer.push_page(&page)?;
        runs.push(run);
    }
    writer.settle(PendingRecipe::from_runs(&runs.finish()))
}
