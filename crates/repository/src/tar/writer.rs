//! Writes a tar, member by member.

use std::io::{self, Write};

use super::sparse::{self, Extent};
use super::{BLOCK_BYTES, Block, acl, header, pax};
use crate::timestamp::Timestamp;
use crate::tree::{Entry, EntryKind};

/// A tar is a multiple of so many bytes, as tape drives had it.
const RECORD_BYTES: u64 = 20 * BLOCK_BYTES as u64;

/// The attributes that are ACLs, and the records that have them as text.
pub const ACLS: [(&[u8], &[u8]); 2] = [
    (b"system.posix_acl_access", b"SCHILY.acl.access"),
    (b"system.posix_acl_default", b"SCHILY.acl.default"),
];

/// In front of the name of an extended attribute.
pub const ATTRIBUTE_KEY: &[u8] = b"SCHILY.xattr.";

/// Zeros to fill up with.
const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// A member that is to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewMember<'a> {
    /// Its path, which does not begin with `/`; that of a directory does not end with one.
    pub path: &'a [u8],
    /// What it is.
    pub entry: &'a Entry,
    /// The member that it is another name of.
    pub link: Option<&'a [u8]>,
    /// Its parts that are not holes, if it has holes.
    pub sparse: Option<&'a [Extent]>,
}

/// A tar on its way to `out`.
pub struct TarWriter<'a> {
    out: &'a mut dyn Write,
    written_bytes: u64,
}

impl<'a> TarWriter<'a> {
    /// A tar without members.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            written_bytes: 0,
        }
    }

    /// Begins a member: its stored bytes follow by [`TarWriter::content`], then [`TarWriter::fill`].
    pub fn member(&mut self, member: &NewMember<'_>) -> io::Result<()> {
        self.content(&encode(member))
    }

    /// Bytes of the member.
    pub fn content(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Fills the last block of a member up.
    pub fn fill(&mut self) -> io::Result<()> {
        let over = (self.written_bytes % BLOCK_BYTES as u64) as usize;
        match over {
            0 => Ok(()),
            over => self.content(&ZEROS[over..]),
        }
    }

    /// Ends it. Returns its length in bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        for _ in 0..2 {
            self.content(&ZEROS)?;
        }
        while !self.written_bytes.is_multiple_of(RECORD_BYTES) {
            self.content(&ZEROS)?;
        }
        self.out.flush()?;
        Ok(self.written_bytes)
    }
}

/// The headers of a member, and its map of holes.
fn encode(member: &NewMember<'_>) -> Vec<u8> {
    let map = member
        .sparse
        .filter(|_| member.link.is_none())
        .map(|map| sparse::encode(map, member.entry.size));
    let mut built = Headers {
        block: header::empty(),
        records: Vec::new(),
        is_binary: false,
    };
    built.names(member, map.is_some());
    built.metadata(member.entry);
    built.kind(member);
    let stored = match (member.sparse, &map) {
        (Some(extents), Some(map)) => {
            let data: u64 = extents.iter().map(|extent| extent.bytes).sum();
            map.len() as u64 + data
        }
        _ if member.link.is_some() => 0,
        _ => member.entry.size,
    };
    built.number(header::SIZE, b"size", stored);
    if map.is_some() {
        let size = member.entry.size.to_string();
        built.record(b"GNU.sparse.major", b"1");
        built.record(b"GNU.sparse.minor", b"0");
        built.record(b"GNU.sparse.realsize", size.as_bytes());
        built.record(b"GNU.sparse.name", member.path);
    }
    built.finish(map)
}

/// The headers of a member while they are made.
struct Headers {
    block: Block,
    records: Vec<u8>,
    /// A name in the records is no text.
    is_binary: bool,
}

impl Headers {
    fn record(&mut self, key: &[u8], value: &[u8]) {
        pax::put_record(&mut self.records, key, value);
    }

    /// A number, in the header and, where that has no octal room for it, in the records.
    fn number(&mut self, field: std::ops::Range<usize>, key: &[u8], value: u64) {
        if !header::put_number(&mut self.block[field], value) {
            self.record(key, value.to_string().as_bytes());
        }
    }

    /// A name that belongs into a field of the header, or, where that has no room for it or it is text of other
    /// letters than ASCII's, into the records: those are UTF-8, and what a header has is read in some locale. What is
    /// no text stays in the header, if it can.
    fn name(&mut self, field: std::ops::Range<usize>, key: &[u8], name: &[u8]) {
        let fits = header::put_text(&mut self.block[field], name);
        let is_text = std::str::from_utf8(name).is_ok();
        if fits && (name.is_ascii() || !is_text) {
            return;
        }
        self.is_binary |= !is_text;
        self.record(key, name);
    }

    fn names(&mut self, member: &NewMember<'_>, is_sparse: bool) {
        let mut path = member.path.to_vec();
        if member.entry.kind == EntryKind::Directory {
            path.push(b'/');
        }
        if is_sparse {
            path = sparse_path(member.path);
        }
        match split(&path) {
            Some((prefix, name)) if path.is_ascii() => {
                header::put_text(&mut self.block[header::PREFIX], prefix);
                header::put_text(&mut self.block[header::NAME], name);
            }
            _ => self.name(header::NAME, b"path", &path),
        }
        let target = match (&member.entry.kind, member.link) {
            (_, Some(link)) => Some(link),
            (EntryKind::Symlink { target }, None) => Some(target.as_slice()),
            _ => None,
        };
        if let Some(target) = target {
            self.name(header::LINK, b"linkpath", target);
        }
    }

    fn metadata(&mut self, entry: &Entry) {
        let metadata = &entry.metadata;
        header::put_number(&mut self.block[header::MODE], u64::from(metadata.mode));
        self.number(header::UID, b"uid", u64::from(metadata.uid));
        self.number(header::GID, b"gid", u64::from(metadata.gid));
        self.name(header::USER, b"uname", &metadata.user);
        self.name(header::GROUP, b"gname", &metadata.group);
        self.time(metadata.modified);
        if metadata.changed != Timestamp::default() {
            self.record(b"ctime", pax::time_text(metadata.changed).as_bytes());
        }
        for (name, value) in &metadata.attributes {
            let known = ACLS.iter().find(|(attribute, _)| attribute == name);
            match known.and_then(|(_, key)| Some((key, acl::text(value)?))) {
                Some((key, text)) => self.record(key, text.as_bytes()),
                None => {
                    let key = [ATTRIBUTE_KEY, &pax::attribute_key(name)].concat();
                    self.record(&key, value);
                }
            }
        }
    }

    fn time(&mut self, time: Timestamp) {
        let field = &mut self.block[header::TIME];
        let is_told = match u64::try_from(time.seconds) {
            Ok(seconds) => header::put_number(field, seconds) && time.nanoseconds == 0,
            Err(_) => {
                header::put_number(field, 0);
                false
            }
        };
        if !is_told {
            self.record(b"mtime", pax::time_text(time).as_bytes());
        }
    }

    fn kind(&mut self, member: &NewMember<'_>) {
        for field in [header::MAJOR, header::MINOR] {
            header::put_number(&mut self.block[field], 0);
        }
        let kind = match &member.entry.kind {
            _ if member.link.is_some() => b'1',
            EntryKind::File => b'0',
            EntryKind::Directory => b'5',
            EntryKind::Symlink { .. } => b'2',
            EntryKind::Fifo => b'6',
            EntryKind::CharacterDevice { .. } => b'3',
            EntryKind::BlockDevice { .. } => b'4',
        };
        self.block[header::TYPE] = kind;
        if let EntryKind::CharacterDevice { major, minor }
        | EntryKind::BlockDevice { major, minor } = member.entry.kind
        {
            self.number(header::MAJOR, b"SCHILY.devmajor", u64::from(major));
            self.number(header::MINOR, b"SCHILY.devminor", u64::from(minor));
        }
    }

    fn finish(mut self, map: Option<Vec<u8>>) -> Vec<u8> {
        header::seal(&mut self.block);
        let mut out = Vec::new();
        if !self.records.is_empty() {
            let mut records = Vec::new();
            if self.is_binary {
                pax::put_record(&mut records, b"hdrcharset", b"BINARY");
            }
            records.append(&mut self.records);
            let mut block = header::empty();
            block[header::NAME.start..][..b"PaxHeader".len()].copy_from_slice(b"PaxHeader");
            for (field, value) in [
                (header::MODE, 0o644),
                (header::UID, 0),
                (header::GID, 0),
                (header::TIME, 0),
                (header::MAJOR, 0),
                (header::MINOR, 0),
            ] {
                header::put_number(&mut block[field], value);
            }
            header::put_number(&mut block[header::SIZE], records.len() as u64);
            block[header::TYPE] = b'x';
            header::seal(&mut block);
            records.resize(records.len().next_multiple_of(BLOCK_BYTES), 0);
            out.extend_from_slice(&block);
            out.append(&mut records);
        }
        out.extend_from_slice(&self.block);
        out.extend(map.into_iter().flatten());
        out
    }
}

/// The name under which a reader that knows no holes finds what is left of a file (GNU tar's own).
fn sparse_path(path: &[u8]) -> Vec<u8> {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    let (directory, name) = match slash {
        Some(slash) => (&path[..=slash], &path[slash + 1..]),
        None => (&b""[..], path),
    };
    [directory, b"GNUSparseFile.0/", name].concat()
}

/// A path in two parts that a header has room for.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    if path.len() <= header::NAME.len() {
        return Some((b"", path));
    }
    // The slash between them is not stored; the second part is not empty.
    let last = path.len() - 1;
    let from = path.len() - header::NAME.len() - 1;
    let slash = (from..last.min(header::PREFIX.len() + 1)).find(|&place| path[place] == b'/')?;
    Some((&path[..slash], &path[slash + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_where_both_parts_fit() {
        assert_eq!(split(b"a/b"), Some((&b""[..], &b"a/b"[..])));
        let long = [&[b'd'; 150][..], b"/", &[b'f'; 100]].concat();
        let (prefix, name) = split(&long).unwrap();
        assert_eq!((prefix.len(), name.len()), (150, 100));
        assert_eq!(
            split(&[&[b'd'; 150][..], b"/", &[b'f'; 101]].concat()),
            None
        );
        assert_eq!(split(&[&[b'd'; 156][..], b"/", &[b'f'; 10]].concat()), None);
        assert_eq!(
            split(&[&[b'd'; 155][..], b"/", &[b'f'; 10]].concat())
                .unwrap()
                .0
                .len(),
            155
        );
        let directory = [&[b'd'; 110][..], b"/"].concat();
        assert_eq!(split(&directory), None);
    }

    #[test]
    fn an_archive_is_whole_records() {
        let mut out = Vec::new();
        assert_eq!(TarWriter::new(&mut out).finish().unwrap(), RECORD_BYTES);
        assert_eq!(out, [0; RECORD_BYTES as usize]);
    }
}
