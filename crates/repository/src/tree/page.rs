//! Pages: runs of entries that are stored as one chunk (docs/format/v1.md, §9).
//!
//! Page: `u8 version`, the table of containers that its recipes name, varint count, entries.
//! Pages end where the hash of a name says so, once they are long enough: a changed entry
//! changes its own page, and rarely the next, whatever the size of the directory. The bytes
//! depend on nothing but the entries and the key of the hash.

use std::collections::VecDeque;

use engine::fingerprint::Fingerprinter;
use engine::format::{DecodeError, Decoder, put_varint, varint_bytes};
use engine::recipe::ContainerTable;

use super::TreeError;
use super::entry::Entry;

/// Pages shorter than this do not end at a name's hash.
pub const PAGE_BYTES_MIN: usize = 8 << 10;

/// Pages of several entries are at most this long.
pub const PAGE_BYTES_MAX: usize = 256 << 10;

/// A page that holds a single entry is at most this long.
pub const LONE_ENTRY_PAGE_BYTES_MAX: usize = 1 << 20;

/// One in so many names ends a page.
const NAMES_PER_END: u32 = 64;

/// The only version of pages so far.
const PAGE_VERSION: u8 = 1;

/// Bytes of a stored container id.
const CONTAINER_ID_BYTES: usize = 16;

/// The shortest stored entry: its length, a name of one byte, a type.
const ENTRY_BYTES_MIN: usize = 1 + 3 + 3;

const _: () = assert!(PAGE_BYTES_MIN < PAGE_BYTES_MAX);
const _: () = assert!(PAGE_BYTES_MAX < LONE_ENTRY_PAGE_BYTES_MAX);

/// Makes pages of the entries of one directory.
#[derive(Debug, Default)]
pub struct PageWriter {
    open: OpenPage,
    name_before: Option<Vec<u8>>,
    finished: VecDeque<Vec<u8>>,
}

impl PageWriter {
    /// A writer without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next entry; [`PageWriter::next_page`] may have pages after it.
    ///
    /// # Errors
    /// When the entry can't be stored; then it is left out and the writer goes on without it.
    pub fn push(&mut self, fingerprinter: &Fingerprinter, entry: &Entry) -> Result<(), TreeError> {
        entry.check().map_err(|reason| TreeError::Invalid {
            name: entry.name.clone(),
            reason,
        })?;
        if let Some(before) = &self.name_before
            && *before >= entry.name
        {
            return Err(TreeError::OutOfOrder {
                name: entry.name.clone(),
                before: before.clone(),
            });
        }
        let mark = self.open.mark();
        self.open.push(entry);
        if self.open.bytes() > PAGE_BYTES_MAX {
            let mut lone = OpenPage::default();
            lone.push(entry);
            self.open.roll_back(mark);
            if lone.bytes() > LONE_ENTRY_PAGE_BYTES_MAX {
                return Err(TreeError::TooLarge {
                    name: entry.name.clone(),
                    bytes: lone.bytes(),
                });
            }
            self.finish_open_page();
            self.open = lone;
        }
        let ends = fingerprinter
            .name_hash(&entry.name)
            .is_multiple_of(NAMES_PER_END);
        if ends && self.open.bytes() >= PAGE_BYTES_MIN {
            self.finish_open_page();
        }
        self.name_before = Some(entry.name.clone());
        Ok(())
    }

    /// The next page that is complete, if there is one.
    pub fn next_page(&mut self) -> Option<Vec<u8>> {
        self.finished.pop_front()
    }

    /// The remaining pages: none for a directory without entries.
    #[must_use]
    pub fn finish(mut self) -> VecDeque<Vec<u8>> {
        self.finish_open_page();
        self.finished
    }

    fn finish_open_page(&mut self) {
        if self.open.entry_count > 0 {
            self.finished
                .push_back(std::mem::take(&mut self.open).finish());
        }
    }
}

/// A page that still grows.
#[derive(Debug, Default)]
struct OpenPage {
    table: ContainerTable,
    entry_count: u64,
    entries: Vec<u8>,
}

/// The state of a page before an entry that may have to leave it again.
struct PageMark {
    containers: usize,
    entry_count: u64,
    entries_bytes: usize,
}

impl OpenPage {
    fn push(&mut self, entry: &Entry) {
        entry.encode(&mut self.table, &mut self.entries);
        self.entry_count += 1;
    }

    /// Length of the page if it ended here.
    fn bytes(&self) -> usize {
        let containers = self.table.containers().len();
        1 + varint_bytes(containers as u64)
            + containers * CONTAINER_ID_BYTES
            + varint_bytes(self.entry_count)
            + self.entries.len()
    }

    fn mark(&self) -> PageMark {
        PageMark {
            containers: self.table.containers().len(),
            entry_count: self.entry_count,
            entries_bytes: self.entries.len(),
        }
    }

    fn roll_back(&mut self, mark: PageMark) {
        let mut table = ContainerTable::default();
        for container in &self.table.containers()[..mark.containers] {
            table.number_of(*container);
        }
        self.table = table;
        self.entry_count = mark.entry_count;
        self.entries.truncate(mark.entries_bytes);
    }

    fn finish(self) -> Vec<u8> {
        let mut page = Vec::with_capacity(self.bytes());
        page.push(PAGE_VERSION);
        self.table.encode(&mut page);
        put_varint(&mut page, self.entry_count);
        page.extend_from_slice(&self.entries);
        page
    }
}

/// The entries of one page, in strictly ascending order of their names.
///
/// # Errors
/// When the bytes are not a page of this version or break one of its rules.
pub fn decode_page(page: &[u8]) -> Result<Vec<Entry>, DecodeError> {
    if page.len() > LONE_ENTRY_PAGE_BYTES_MAX {
        return Err(DecodeError::new(format!(
            "a directory page of {} bytes exceeds the limit of {LONE_ENTRY_PAGE_BYTES_MAX}",
            page.len()
        )));
    }
    let mut decoder = Decoder::new(page);
    let version = decoder.u8()?;
    if version != PAGE_VERSION {
        return Err(DecodeError::new(format!(
            "a directory page has version {version}, this program knows {PAGE_VERSION}"
        )));
    }
    let table = ContainerTable::decode(&mut decoder)?;
    let count = decoder.count(ENTRY_BYTES_MIN, "directory entries")?;
    if count == 0 {
        return Err(DecodeError::new("a directory page has no entries"));
    }
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let entry = Entry::decode(&mut decoder, &table)?;
        if let Some(before) = entries.last() {
            check_order(&before.name, &entry.name)?;
        }
        entries.push(entry);
    }
    decoder.finish()?;
    Ok(entries)
}

fn check_order(before: &[u8], name: &[u8]) -> Result<(), DecodeError> {
    if before < name {
        return Ok(());
    }
    Err(DecodeError::new(format!(
        "entry '{}' stands after '{}'",
        name.escape_ascii(),
        before.escape_ascii()
    )))
}

/// Reads the pages of one directory, one after the other, and checks their common order.
#[derive(Debug, Default)]
pub struct DirectoryReader {
    name_before: Option<Vec<u8>>,
}

impl DirectoryReader {
    /// A reader before the first page.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The entries of the next page.
    ///
    /// # Errors
    /// As [`decode_page`], and when the page does not continue the one before.
    pub fn page(&mut self, page: &[u8]) -> Result<Vec<Entry>, DecodeError> {
        let entries = decode_page(page)?;
        if let (Some(before), Some(first)) = (&self.name_before, entries.first()) {
            check_order(before, &first.name)?;
        }
        self.name_before = entries.last().map(|last| last.name.clone());
        Ok(entries)
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
