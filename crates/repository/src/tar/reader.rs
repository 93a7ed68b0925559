//! Reads a tar from a stream, member by member.
//!
//! Enters: any bytes. Leave: members in their order, each with what headers and records say of it, then its contents.
//! A checksum that is wrong, an end that comes too early, a number that is none, a map of holes that does not agree
//! with its file: all end the reading with an error that says where. Memory: the records of one member, at most
//! [`RECORDS_BYTES_MAX`](super::RECORDS_BYTES_MAX), its map of holes, and those records that hold for all members.

mod fields;
mod records;

use std::io::{self, Read};

use super::sparse::{self, Extent, MapReader};
use super::{BLOCK_BYTES, Block, PATH_BYTES_MAX, RECORDS_BYTES_MAX, TarError, header};
use crate::files::OwnerNames;
use crate::timestamp::Timestamp;
use crate::tree::{EntryKind, Metadata};
use fields::{attributes, extents_of, has_magic, kind_of, number, old_parts, path_of};
use records::Records;

/// How compressed streams begin, what that is called, and what decompresses it.
const COMPRESSED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"\x1f\x9d", "compress", "gzip -dc"),
];

/// Bytes read at once of what is passed over.
const SKIP_BYTES: usize = 64 << 10;

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberKind {
    /// A file, a directory, a link, a device.
    Entry(EntryKind),
    /// Another name of the member of that path.
    HardLink(Vec<u8>),
    /// Something that this format has and a tree has no place for; a word on what.
    Unknown(String),
}

/// A member of a tar.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its path as it stands there.
    pub path: Vec<u8>,
    /// Where its header is, in bytes from the beginning of the archive.
    pub offset: u64,
    /// What it is.
    pub kind: MemberKind,
    /// What else is known of it.
    pub metadata: Metadata,
    /// Length of its contents in bytes, with holes.
    pub size: u64,
    /// Its parts that are not holes, where it has holes.
    pub sparse: Option<Vec<Extent>>,
    /// What of it could not be understood, and is left out.
    pub notes: Vec<String>,
}

/// A tar that is read.
pub struct TarReader<'a> {
    source: &'a mut dyn Read,
    /// How far it is read.
    offset: u64,
    /// Bytes of the current member that are left, and those that fill its last block.
    content_left: u64,
    padding: u64,
    /// Records of all members that follow.
    global: Records,
    names: OwnerNames,
    is_first: bool,
}

/// What stands in front of a member's own header.
#[derive(Default)]
struct Prelude {
    records: Records,
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    is_there: bool,
}

impl<'a> TarReader<'a> {
    /// Begins to read. Names in ACLs are looked up in `names`.
    pub fn new(source: &'a mut dyn Read, names: OwnerNames) -> Self {
        Self {
            source,
            offset: 0,
            content_left: 0,
            padding: 0,
            global: Records::default(),
            names,
            is_first: true,
        }
    }

    /// Bytes of the archive read so far.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next member; what is left of the one before is passed over. Nothing at the archive's end.
    ///
    /// # Errors
    /// Where it is no tar, or cut off.
    pub fn next_member(&mut self) -> Result<Option<Member>, TarError> {
        self.skip_content()?;
        let mut prelude = Prelude::default();
        loop {
            let offset = self.offset;
            let block = self.header_block(&prelude)?;
            if header::is_zero(&block) {
                if prelude.is_there {
                    let reason = "records or a long name come before it, and no member".to_owned();
                    return Err(TarError::Header { offset, reason });
                }
                self.end()?;
                return Ok(None);
            }
            if !header::has_right_checksum(&block) {
                let reason = "its checksum is wrong".to_owned();
                return Err(TarError::Header { offset, reason });
            }
            let fail = |reason: String| TarError::Header { offset, reason };
            let size = number(&block, header::SIZE, "size").map_err(fail)?;
            match block[header::TYPE] {
                b'x' | b'X' => {
                    let bytes = self.metadata_content(size, RECORDS_BYTES_MAX, offset)?;
                    prelude.records.take(&bytes).map_err(fail)?;
                }
                b'g' => {
                    let bytes = self.metadata_content(size, RECORDS_BYTES_MAX, offset)?;
                    self.global.take(&bytes).map_err(fail)?;
                    continue;
                }
                kind @ (b'L' | b'K') => {
                    let limit = PATH_BYTES_MAX as u64 + 1;
                    let bytes = self.metadata_content(size, limit, offset)?;
                    let name = Some(header::text(&bytes).to_vec());
                    match kind {
                        b'L' => prelude.path = name,
                        _ => prelude.link = name,
                    }
                }
                _ => return self.member(&block, offset, size, prelude).map(Some),
            }
            prelude.is_there = true;
        }
    }

    fn header_block(&mut self, prelude: &Prelude) -> Result<Block, TarError> {
        let mut block = [0; BLOCK_BYTES];
        let what = match prelude.is_there {
            true => "where a member's header should be",
            false => "without the two empty blocks that end an archive",
        };
        let count = self.fill(&mut block)?;
        if self.is_first {
            self.is_first = false;
            let is_compressed =
                |(magic, ..): &&(&[u8], &str, &str)| block[..count].starts_with(magic);
            if let Some(&(_, name, program)) = COMPRESSED.iter().find(is_compressed) {
                return Err(TarError::Compressed { name, program });
            }
        }
        match count {
            BLOCK_BYTES => Ok(block),
            _ => Err(TarError::CutOff {
                offset: self.offset,
                what,
            }),
        }
    }

    /// Reads on behind the block that ends an archive: another one follows, and then at most what fills a record.
    fn end(&mut self) -> Result<(), TarError> {
        let mut block = [0; BLOCK_BYTES];
        let offset = self.offset;
        if self.fill(&mut block)? != BLOCK_BYTES {
            return Err(TarError::CutOff {
                offset: self.offset,
                what: "after the first of the two empty blocks that end an archive",
            });
        }
        if !header::is_zero(&block) {
            let reason = "an empty block comes before it".to_owned();
            return Err(TarError::Header { offset, reason });
        }
        // Whoever writes into a pipe must be able to write it all.
        let mut rest = vec![0; SKIP_BYTES];
        loop {
            let offset = self.offset;
            match self.fill(&mut rest)? {
                0 => return Ok(()),
                count if rest[..count].iter().all(|&byte| byte == 0) => {}
                _ => {
                    let reason = "it comes behind the end of the archive (several archives behind \
                                  one another are to be imported one by one)";
                    return Err(TarError::Header {
                        offset,
                        reason: reason.to_owned(),
                    });
                }
            }
        }
    }

    /// Fills a buffer; says how much of it, which is less than all at the end alone.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.source.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    /// Contents that say something about other members.
    fn metadata_content(
        &mut self,
        size: u64,
        limit: u64,
        offset: u64,
    ) -> Result<Vec<u8>, TarError> {
        if size > limit {
            let reason = format!(
                "it announces {size} bytes of records or a name, at most {limit} make sense"
            );
            return Err(TarError::Header { offset, reason });
        }
        let mut bytes = vec![0; (size as usize).next_multiple_of(BLOCK_BYTES)];
        if self.fill(&mut bytes)? != bytes.len() {
            return Err(self.cut_off());
        }
        bytes.truncate(size as usize);
        Ok(bytes)
    }

    fn cut_off(&self) -> TarError {
        TarError::CutOff {
            offset: self.offset,
            what: "in the middle of a member",
        }
    }

    /// Makes a member of its own header and what came before.
    fn member(
        &mut self,
        block: &Block,
        offset: u64,
        header_size: u64,
        prelude: Prelude,
    ) -> Result<Member, TarError> {
        let mut records = self.global.clone();
        records.values.extend(prelude.records.values);
        records.extents = prelude.records.extents;
        let path = path_of(block, &records, prelude.path);
        let fail = |reason: String| TarError::Member {
            path: path.clone(),
            offset,
            reason,
        };
        if path.len() > PATH_BYTES_MAX {
            return Err(fail(format!("a path of more than {PATH_BYTES_MAX} bytes")));
        }
        let stored = records.number("size").map_err(fail)?.unwrap_or(header_size);
        let mut notes = Vec::new();
        let metadata = self.metadata(block, &records, &mut notes).map_err(fail)?;
        let kind = kind_of(block, &records, prelude.link, &path).map_err(fail)?;
        // Some archives (of cpio's kind) give links the contents of their files: those are passed over.
        let is_file = kind == MemberKind::Entry(EntryKind::File);
        let content = match kind {
            MemberKind::HardLink(_) | MemberKind::Unknown(_) => stored,
            _ if is_file => stored,
            // GNU's incremental archives list a directory's names.
            _ if block[header::TYPE] == b'D' => stored,
            // A directory's size is what it may grow to, and no contents.
            _ => 0,
        };
        self.content_left = content;
        let whole = content.checked_next_multiple_of(BLOCK_BYTES as u64);
        let whole = whole.ok_or_else(|| fail("a size beyond 64 bits".to_owned()))?;
        self.padding = whole - content;
        let (size, sparse) = match is_file {
            true => self
                .sparse(block, &records, stored)
                .map_err(|error| match error {
                    SparseError::Wrong(reason) => fail(reason),
                    SparseError::Tar(error) => error,
                })?,
            false => (0, None),
        };
        Ok(Member {
            path,
            offset,
            kind,
            metadata,
            size,
            sparse,
            notes,
        })
    }

    fn metadata(
        &self,
        block: &Block,
        records: &Records,
        notes: &mut Vec<String>,
    ) -> Result<Metadata, String> {
        let id = |key: &'static str, field| -> Result<u32, String> {
            let number = match records.number(key)? {
                Some(number) => number,
                None => number(block, field, key)?,
            };
            u32::try_from(number).map_err(|_| format!("its {key} is beyond 32 bits"))
        };
        let seconds = header::number(&block[header::TIME]).ok_or("its time is no number")?;
        let modified = Timestamp {
            seconds,
            nanoseconds: 0,
        };
        let name = |key: &[u8], field: std::ops::Range<usize>| match records.get(key) {
            Some(name) => name.to_vec(),
            None if has_magic(block) => header::text(&block[field]).to_vec(),
            None => Vec::new(),
        };
        let mode = number(block, header::MODE, "mode")?;
        Ok(Metadata {
            mode: (mode & 0o7777) as u32,
            uid: id("uid", header::UID)?,
            gid: id("gid", header::GID)?,
            user: name(b"uname", header::USER),
            group: name(b"gname", header::GROUP),
            modified: records.time("mtime")?.unwrap_or(modified),
            changed: records.time("ctime")?.unwrap_or_default(),
            inode: 0,
            attributes: attributes(records, &self.names, notes),
        })
    }

    /// The size of a file with its holes, and its parts that are none.
    fn sparse(
        &mut self,
        block: &Block,
        records: &Records,
        stored: u64,
    ) -> Result<(u64, Option<Vec<Extent>>), SparseError> {
        let (map, size) = if block[header::TYPE] == b'S' {
            self.old_map(block)?
        } else if records.number("GNU.sparse.major")? == Some(1) {
            let size = records.number("GNU.sparse.realsize")?;
            (
                self.map_in_front()?,
                size.ok_or("its size with holes is missing")?,
            )
        } else if let Some(text) = records.get(b"GNU.sparse.map") {
            let numbers: Vec<&[u8]> = text.split(|&byte| byte == b',').collect();
            let size = records.number("GNU.sparse.size")?;
            (
                extents_of(&numbers)?,
                size.ok_or("its size with holes is missing")?,
            )
        } else if let Some(size) = records.number("GNU.sparse.size")? {
            let numbers: Vec<&[u8]> = records.extents.iter().map(Vec::as_slice).collect();
            (extents_of(&numbers)?, size)
        } else {
            return Ok((stored, None));
        };
        if i64::try_from(size).is_err() {
            return Err("its size is beyond 63 bits".to_owned().into());
        }
        Ok((size, Some(sparse::checked(&map, size, self.content_left)?)))
    }

    /// The map of a member of type `S`: four parts in the header, and 21 in each block behind it.
    fn old_map(&mut self, block: &Block) -> Result<(Vec<Extent>, u64), SparseError> {
        let size = number(block, 483..495, "size with holes")?;
        let mut map = Vec::new();
        old_parts(&block[386..482], &mut map)?;
        let mut is_extended = block[482] != 0;
        while is_extended {
            let mut more = [0; BLOCK_BYTES];
            if self.fill(&mut more).map_err(TarError::from)? != BLOCK_BYTES {
                return Err(self.cut_off().into());
            }
            old_parts(&more[..504], &mut map)?;
            is_extended = more[504] != 0;
        }
        Ok((map, size))
    }

    /// The map in front of the contents.
    fn map_in_front(&mut self) -> Result<Vec<Extent>, SparseError> {
        let mut reader = MapReader::default();
        loop {
            if self.content_left < BLOCK_BYTES as u64 {
                return Err("its map of holes is cut off".to_owned().into());
            }
            let mut block = [0; BLOCK_BYTES];
            if self.fill(&mut block).map_err(TarError::from)? != BLOCK_BYTES {
                return Err(self.cut_off().into());
            }
            self.content_left -= BLOCK_BYTES as u64;
            if reader.take(&block)? {
                return Ok(reader.finish());
            }
        }
    }

    /// Reads on in the contents of the current member, without holes; 0 at their end.
    ///
    /// # Errors
    /// When the archive is cut off.
    pub fn read_content(&mut self, buffer: &mut [u8]) -> Result<usize, TarError> {
        let left = usize::try_from(self.content_left).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        loop {
            match self.source.read(&mut buffer[..wanted]) {
                Ok(0) => return Err(self.cut_off()),
                Ok(count) => {
                    self.offset += count as u64;
                    self.content_left -= count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn skip_content(&mut self) -> Result<(), TarError> {
        let mut left = self.content_left.saturating_add(self.padding);
        let mut buffer = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(SKIP_BYTES)];
        while left > 0 {
            let count = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            if self.fill(&mut buffer[..count])? != count {
                return Err(self.cut_off());
            }
            left -= count as u64;
        }
        (self.content_left, self.padding) = (0, 0);
        Ok(())
    }
}

/// Why a map of holes can't be had.
enum SparseError {
    Wrong(String),
    Tar(TarError),
}

impl From<String> for SparseError {
    fn from(reason: String) -> Self {
        SparseError::Wrong(reason)
    }
}

impl From<&str> for SparseError {
    fn from(reason: &str) -> Self {
        SparseError::Wrong(reason.to_owned())
    }
}

impl From<TarError> for SparseError {
    fn from(error: TarError) -> Self {
        SparseError::Tar(error)
    }
}

#[cfg(test)]
mod tests;
