//! The names in a directory, sorted.
//!
//! All names of one directory are held at once, because the walk is in the order of names:
//! 16 bytes a name beside the name itself.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use super::directory::OpenDirectory;

/// Names in ascending byte order, each once, handed out one by one.
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    /// (start, end) of each name in `bytes`.
    spans: Vec<(usize, usize)>,
    next: usize,
}

impl Names {
    /// Adds a name; [`Names::sort`] puts it into its place.
    pub fn push(&mut self, name: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.spans.push((start, self.bytes.len()));
    }

    /// Brings the names into order and drops those that stand twice.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let name = |span: &(usize, usize)| &bytes[span.0..span.1];
        self.spans
            .sort_unstable_by(|left, right| name(left).cmp(name(right)));
        self.spans.dedup_by(|left, right| name(left) == name(right));
    }

    /// Is this name among them? They must be sorted.
    pub fn contains(&self, wanted: &[u8]) -> bool {
        self.spans
            .binary_search_by(|span| self.bytes[span.0..span.1].cmp(wanted))
            .is_ok()
    }

    /// Keeps only the names that `keep` wants.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let bytes = &self.bytes;
        self.spans.retain(|span| keep(&bytes[span.0..span.1]));
    }

    /// The next name.
    pub fn next_name(&mut self) -> Option<&OsStr> {
        let (start, end) = *self.spans.get(self.next)?;
        self.next += 1;
        Some(OsStr::from_bytes(&self.bytes[start..end]))
    }

    /// Gives up the names that were not handed out.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn push_entry(&mut self, name: &[u8]) {
        if name != b"." && name != b".." {
            self.push(name);
        }
    }
}

/// Appends all names in a directory but `.` and `..`, unsorted. What was read before an error
/// stays in `names`.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn list(directory: &OpenDirectory, names: &mut Names) -> Result<(), Errno> {
    use rustix::fs::{RawDir, SeekFrom};

    /// Room for some hundred names a call.
    const BUFFER_BYTES: usize = 32 << 10;

    if !directory.may_list() {
        return Err(Errno::ACCESS);
    }
    rustix::fs::seek(directory, SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        names.push_entry(entry?.file_name().to_bytes());
    }
    Ok(())
}

/// Appends all names in a directory but `.` and `..`, unsorted. What was read before an error
/// stays in `names`.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn list(directory: &OpenDirectory, names: &mut Names) -> Result<(), Errno> {
    if !directory.may_list() {
        return Err(Errno::ACCESS);
    }
    for entry in rustix::fs::Dir::read_from(directory)? {
        names.push_entry(entry?.file_name().to_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_byte_order_each_once() {
        let mut names = Names::default();
        for name in [&b"b"[..], b"a\xff", b"a", b"B", b"b", b"a.b"] {
            names.push(name);
        }
        names.sort();
        assert!(names.contains(b"a.b") && !names.contains(b"c"));
        names.retain(|name| name != b"a");
        let mut sorted = Vec::new();
        while let Some(name) = names.next_name() {
            sorted.push(name.as_bytes().to_vec());
        }
        assert_eq!(sorted, [&b"B"[..], b"a.b", b"a\xff", b"b"]);
    }
}
