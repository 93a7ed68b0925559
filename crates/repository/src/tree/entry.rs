//! One entry of a directory and its stored form (docs/format/v1.md, §9).
//!
//! What enters is a name, a type, metadata, and where the content lies; what leaves is a
//! field list. Fields with an even tag are left out when they are zero or empty. The rules of
//! [`Entry::check`] hold for everything that is written and everything that is read.

use engine::fingerprint::CheckValue;
use engine::format::{
    DecodeError, Decoder, FieldList, FieldWriter, UnknownFields, put_bytes, put_varint,
};
use engine::recipe::{ContainerTable, Recipe};

use crate::timestamp::Timestamp;

/// The permission, set-id and sticky bits.
const MODE_BITS: u32 = 0o7777;

/// Tags of the fields.
mod tag {
    pub const NAME: u64 = 1;
    pub const MODE: u64 = 2;
    pub const TYPE: u64 = 3;
    pub const OWNER: u64 = 4;
    pub const RECIPE: u64 = 5;
    pub const OWNER_NAMES: u64 = 6;
    pub const TARGET: u64 = 7;
    pub const MODIFIED: u64 = 8;
    pub const DEVICE: u64 = 9;
    pub const CHANGED: u64 = 10;
    pub const HARD_LINK: u64 = 11;
    pub const INODE: u64 = 12;
    pub const SIZE: u64 = 14;
    pub const CHECK: u64 = 16;
    pub const ATTRIBUTES: u64 = 18;
}

/// A file, directory or other thing that a directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, as the bytes that the file system has.
    pub name: Vec<u8>,
    /// Its type, and what only entries of that type have.
    pub kind: EntryKind,
    /// What files and all other types have.
    pub metadata: Metadata,
    /// Length of a file's content in bytes, holes included; zero for other types.
    pub size: u64,
    /// A file's content or a directory's pages; empty for other types.
    pub content: Recipe,
    /// Check value of a file's content.
    pub check: Option<CheckValue>,
    /// Present when the entry had several names.
    pub hard_link: Option<HardLink>,
    /// Fields of a later version, kept as they are.
    pub unknown: UnknownFields,
}

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// What it points to, not interpreted.
        target: Vec<u8>,
    },
    /// A named pipe.
    Fifo,
    /// A character device.
    CharacterDevice {
        /// Number of the driver.
        major: u32,
        /// Number of the device at that driver.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// Number of the driver.
        major: u32,
        /// Number of the device at that driver.
        minor: u32,
    },
}

impl EntryKind {
    /// The stored number of the type.
    fn number(&self) -> u8 {
        match self {
            EntryKind::File => 1,
            EntryKind::Directory => 2,
            EntryKind::Symlink { .. } => 3,
            EntryKind::Fifo => 4,
            EntryKind::CharacterDevice { .. } => 5,
            EntryKind::BlockDevice { .. } => 6,
        }
    }

    /// Do entries of this type have a recipe?
    fn has_recipe(&self) -> bool {
        matches!(self, EntryKind::File | EntryKind::Directory)
    }
}

/// What is known about an entry of any type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Permission, set-id and sticky bits: 12 bits.
    pub mode: u32,
    /// Number of the owner.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
    /// Name of the owner, empty when unknown.
    pub user: Vec<u8>,
    /// Name of the group, empty when unknown.
    pub group: Vec<u8>,
    /// When the content was modified last.
    pub modified: Timestamp,
    /// When content or metadata were changed last (ctime).
    pub changed: Timestamp,
    /// Number of the inode.
    pub inode: u64,
    /// Extended attributes, POSIX ACLs among them, ascending by name: (name, value).
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Which file an entry is another name of: entries of one snapshot with equal values are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HardLink {
    /// The device that the file lay on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

/// Checks that `name` can name an entry: not empty, no `/`, no NUL, not `.` or `..`.
///
/// # Errors
/// The rule that it breaks.
pub fn check_name(name: &[u8]) -> Result<(), DecodeError> {
    if name.is_empty() {
        return Err(DecodeError::new("a name is empty"));
    }
    if name == b"." || name == b".." || name.contains(&b'/') || name.contains(&0) {
        return Err(DecodeError::new(format!(
            "'{}' is not a name of an entry",
            name.escape_ascii()
        )));
    }
    Ok(())
}

impl Entry {
    /// An entry without content, of a name that the caller checks or takes from a directory.
    #[must_use]
    pub fn new(name: Vec<u8>, kind: EntryKind, metadata: Metadata) -> Self {
        Self {
            name,
            kind,
            metadata,
            size: 0,
            content: Recipe::default(),
            check: None,
            hard_link: None,
            unknown: UnknownFields::default(),
        }
    }

    /// Checks every rule of the format that the types do not express.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), DecodeError> {
        check_name(&self.name)?;
        if self.metadata.mode > MODE_BITS {
            let mode = self.metadata.mode;
            return Err(DecodeError::new(format!("mode {mode:o} exceeds 12 bits")));
        }
        for time in [self.metadata.modified, self.metadata.changed] {
            if time.nanoseconds > 999_999_999 {
                return Err(DecodeError::new("a time has a second of nanoseconds"));
            }
        }
        self.check_attributes()?;
        self.check_content()?;
        if let EntryKind::Symlink { target } = &self.kind
            && (target.is_empty() || target.contains(&0))
        {
            return Err(DecodeError::new(
                "the target of a symlink is empty or has a NUL",
            ));
        }
        if self.hard_link.is_some() && self.kind == EntryKind::Directory {
            return Err(DecodeError::new("a directory is marked as a hard link"));
        }
        Ok(())
    }

    fn check_attributes(&self) -> Result<(), DecodeError> {
        let mut before: &[u8] = b"";
        for (name, _) in &self.metadata.attributes {
            if name.as_slice() <= before || name.contains(&0) {
                return Err(DecodeError::new(format!(
                    "extended attribute '{}' is out of order or has no proper name",
                    name.escape_ascii()
                )));
            }
            before = name;
        }
        Ok(())
    }

    fn check_content(&self) -> Result<(), DecodeError> {
        let is_file = self.kind == EntryKind::File;
        if !self.kind.has_recipe() && self.content != Recipe::default() {
            return Err(DecodeError::new(
                "an entry has content that its type can't have",
            ));
        }
        if !is_file && (self.size != 0 || self.check.is_some()) {
            return Err(DecodeError::new("only files have a size and a check value"));
        }
        if is_file && self.size != self.content.stream_bytes() {
            return Err(DecodeError::new(format!(
                "a file's size is {}, but its recipe makes {} bytes",
                self.size,
                self.content.stream_bytes()
            )));
        }
        if self.size == 0 && self.check.is_some() {
            return Err(DecodeError::new("an empty file has a check value"));
        }
        Ok(())
    }

    /// Appends the stored form, length first, entering containers into `table`. What breaks
    /// [`Entry::check`] is stored as it is: check first.
    pub fn encode(&self, table: &mut ContainerTable, out: &mut Vec<u8>) {
        let metadata = &self.metadata;
        let mut fields = FieldWriter::new();
        fields.field(tag::NAME, |value| value.extend_from_slice(&self.name));
        if metadata.mode != 0 {
            fields.varint(tag::MODE, u64::from(metadata.mode));
        }
        fields.field(tag::TYPE, |value| value.push(self.kind.number()));
        if (metadata.uid, metadata.gid) != (0, 0) {
            let owner = (u64::from(metadata.uid), u64::from(metadata.gid));
            fields.field(tag::OWNER, |value| put_pair(value, owner));
        }
        if self.kind.has_recipe() {
            fields.field(tag::RECIPE, |value| self.content.encode(table, value));
        }
        if !(metadata.user.is_empty() && metadata.group.is_empty()) {
            fields.field(tag::OWNER_NAMES, |value| {
                put_bytes(value, &metadata.user);
                put_bytes(value, &metadata.group);
            });
        }
        for (tag, time) in [
            (tag::MODIFIED, metadata.modified),
            (tag::CHANGED, metadata.changed),
        ] {
            if time != Timestamp::default() {
                fields.field(tag, |value| time.encode(value));
            }
        }
        self.encode_kind(&mut fields);
        if let Some(HardLink { device, inode }) = self.hard_link {
            fields.field(tag::HARD_LINK, |value| put_pair(value, (device, inode)));
        }
        for (tag, number) in [(tag::INODE, metadata.inode), (tag::SIZE, self.size)] {
            if number != 0 {
                fields.varint(tag, number);
            }
        }
        if let Some(CheckValue(check)) = self.check {
            fields.field(tag::CHECK, |value| value.extend_from_slice(&check));
        }
        if !metadata.attributes.is_empty() {
            fields.field(tag::ATTRIBUTES, |value| {
                for (name, content) in &metadata.attributes {
                    put_bytes(value, name);
                    put_bytes(value, content);
                }
            });
        }
        fields.unknown(&self.unknown);
        let mut list = Vec::with_capacity(128);
        fields.finish(&mut list);
        put_bytes(out, &list);
    }

    fn encode_kind(&self, fields: &mut FieldWriter) {
        match &self.kind {
            EntryKind::File | EntryKind::Directory | EntryKind::Fifo => {}
            EntryKind::Symlink { target } => {
                fields.field(tag::TARGET, |value| value.extend_from_slice(target));
            }
            EntryKind::CharacterDevice { major, minor }
            | EntryKind::BlockDevice { major, minor } => {
                let numbers = (u64::from(*major), u64::from(*minor));
                fields.field(tag::DEVICE, |value| put_pair(value, numbers));
            }
        }
    }

    /// Reads the stored form from the front of `decoder`.
    ///
    /// # Errors
    /// When it is cut off, names a container that is not in `table`, lacks a field, has one
    /// that its type can't have, or breaks a rule of [`Entry::check`].
    pub fn decode(decoder: &mut Decoder<'_>, table: &ContainerTable) -> Result<Self, DecodeError> {
        let mut fields = FieldList::new(decoder.bytes()?);
        let mut read = FieldsRead::default();
        while let Some(field) = fields.next_field()? {
            let mut value = Decoder::new(field.value);
            match field.tag {
                tag::NAME => read.name = value.take(field.value.len())?.to_vec(),
                tag::MODE => read.metadata.mode = narrow(value.varint()?)?,
                tag::TYPE => read.number = value.u8()?,
                tag::OWNER => {
                    read.metadata.uid = narrow(value.varint()?)?;
                    read.metadata.gid = narrow(value.varint()?)?;
                }
                tag::RECIPE => read.recipe = Some(Recipe::decode(&mut value, table)?),
                tag::OWNER_NAMES => {
                    read.metadata.user = value.bytes()?.to_vec();
                    read.metadata.group = value.bytes()?.to_vec();
                }
                tag::TARGET => read.target = Some(value.take(field.value.len())?.to_vec()),
                tag::MODIFIED => read.metadata.modified = Timestamp::decode(&mut value)?,
                tag::DEVICE => {
                    read.device = Some((narrow(value.varint()?)?, narrow(value.varint()?)?));
                }
                tag::CHANGED => read.metadata.changed = Timestamp::decode(&mut value)?,
                tag::HARD_LINK => {
                    let (device, inode) = (value.varint()?, value.varint()?);
                    read.hard_link = Some(HardLink { device, inode });
                }
                tag::INODE => read.metadata.inode = value.varint()?,
                tag::SIZE => read.size = value.varint()?,
                tag::CHECK => read.check = Some(CheckValue(value.array()?)),
                tag::ATTRIBUTES => {
                    while !value.is_empty() {
                        let (name, content) = (value.bytes()?.to_vec(), value.bytes()?.to_vec());
                        read.metadata.attributes.push((name, content));
                    }
                }
                _ => {
                    read.unknown.keep(field)?;
                    continue;
                }
            }
            value.finish()?;
        }
        let entry = read.entry()?;
        entry.check()?;
        Ok(entry)
    }
}

/// What the fields of an entry said, before it is known whether they belong together.
#[derive(Default)]
struct FieldsRead {
    name: Vec<u8>,
    number: u8,
    metadata: Metadata,
    recipe: Option<Recipe>,
    target: Option<Vec<u8>>,
    device: Option<(u32, u32)>,
    hard_link: Option<HardLink>,
    size: u64,
    check: Option<CheckValue>,
    unknown: UnknownFields,
}

impl FieldsRead {
    fn entry(self) -> Result<Entry, DecodeError> {
        let kind = match (self.number, self.target, self.device) {
            (1, None, None) => EntryKind::File,
            (2, None, None) => EntryKind::Directory,
            (3, Some(target), None) => EntryKind::Symlink { target },
            (4, None, None) => EntryKind::Fifo,
            (5, None, Some((major, minor))) => EntryKind::CharacterDevice { major, minor },
            (6, None, Some((major, minor))) => EntryKind::BlockDevice { major, minor },
            (1..=6, ..) => {
                let reason = "an entry lacks a target or device, or has one that its type can't";
                return Err(DecodeError::new(reason));
            }
            (0, ..) => return Err(DecodeError::new("an entry has no type")),
            (number, ..) => {
                return Err(DecodeError::new(format!(
                    "entries of type {number} are not known"
                )));
            }
        };
        if self.recipe.is_some() != kind.has_recipe() {
            return Err(DecodeError::new(
                "a recipe is missing or stands where none belongs",
            ));
        }
        Ok(Entry {
            name: self.name,
            kind,
            metadata: self.metadata,
            size: self.size,
            content: self.recipe.unwrap_or_default(),
            check: self.check,
            hard_link: self.hard_link,
            unknown: self.unknown,
        })
    }
}

fn put_pair(out: &mut Vec<u8>, (first, second): (u64, u64)) {
    put_varint(out, first);
    put_varint(out, second);
}

fn narrow(value: u64) -> Result<u32, DecodeError> {
    u32::try_from(value).map_err(|_| DecodeError::new(format!("{value} exceeds 32 bits")))
}

#[cfg(test)]
#[path = "entry_tests.rs"]
pub(super) mod tests;
