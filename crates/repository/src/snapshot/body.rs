//! The stored body of a snapshot: a field list (docs/format/v1.md, §10).
//!
//! Every field but the root may be absent, which is the same as empty or zero; empty ones are
//! not written.

use engine::format::{DecodeError, Decoder, FieldList, FieldWriter, put_bytes, put_varint};
use engine::object::ObjectId;
use engine::recipe::{ContainerTable, Recipe};

use super::{
    DiskState, ERRORS_LISTED_MAX, ListedError, Origin, Snapshot, SnapshotError, SnapshotErrors,
    Summary,
};
use crate::timestamp::Timestamp;

/// Limit of the body in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Most paths in a snapshot, and most patterns of what is left out.
const PATHS_MAX: u64 = 1 << 20;
/// Most tags of a snapshot.
const TAGS_MAX: u64 = 1 << 10;
/// Most earlier forms of a snapshot that it names.
pub(super) const REPLACES_MAX: usize = 1 << 10;

/// Tags of the fields.
mod tag {
    pub const ROOT: u64 = 1;
    pub const TIME: u64 = 2;
    pub const INTERRUPTED: u64 = 3;
    pub const HOST: u64 = 4;
    pub const USER: u64 = 6;
    pub const PATHS: u64 = 8;
    pub const TAGS: u64 = 10;
    pub const PARENT: u64 = 12;
    pub const RUN: u64 = 14;
    pub const REMAP_GENERATION: u64 = 16;
    pub const SUMMARY: u64 = 18;
    pub const ERRORS: u64 = 20;
    pub const PROGRAM: u64 = 22;
    pub const EXCLUDES: u64 = 24;
    pub const REWRITTEN: u64 = 26;
    pub const REPLACES: u64 = 28;
    pub const PROTECTED: u64 = 30;
    pub const DISK: u64 = 36;
    pub const COPY_OF: u64 = 38;
    pub const REPAIRED: u64 = 40;
}

pub(super) fn encode(snapshot: &Snapshot) -> Result<Vec<u8>, SnapshotError> {
    check_limits(snapshot)?;
    let mut fields = FieldWriter::new();
    fields.field(tag::ROOT, |out| put_root(out, &snapshot.root));
    fields.field(tag::TIME, |out| snapshot.time.encode(out));
    if snapshot.is_interrupted {
        fields.field(tag::INTERRUPTED, |_| ());
    }
    put_text(&mut fields, tag::HOST, &snapshot.host);
    fields.field(tag::USER, |out| {
        put_bytes(out, snapshot.user.as_bytes());
        put_varint(out, u64::from(snapshot.uid));
        put_varint(out, u64::from(snapshot.gid));
    });
    put_list(&mut fields, tag::PATHS, &snapshot.paths);
    put_list(&mut fields, tag::TAGS, &snapshot.tags);
    for (tag, id) in [(tag::PARENT, snapshot.parent), (tag::RUN, snapshot.run)] {
        if let Some(id) = id {
            fields.field(tag, |out| out.extend_from_slice(&id.0));
        }
    }
    if snapshot.remap_generation != 0 {
        fields.varint(tag::REMAP_GENERATION, snapshot.remap_generation);
    }
    fields.field(tag::SUMMARY, |out| {
        for value in numbers_of(&snapshot.summary) {
            put_varint(out, value);
        }
    });
    if !snapshot.errors.is_empty() {
        fields.field(tag::ERRORS, |out| put_errors(out, &snapshot.errors));
    }
    put_text(&mut fields, tag::PROGRAM, &snapshot.program);
    put_list(&mut fields, tag::EXCLUDES, &snapshot.excludes);
    let rewritten = [
        snapshot.summary.chunks_rewritten,
        snapshot.summary.bytes_rewritten,
    ];
    if rewritten != [0; 2] {
        fields.field(tag::REWRITTEN, |out| {
            for number in rewritten {
                put_varint(out, number);
            }
        });
    }
    if !snapshot.replaces.is_empty() {
        fields.field(tag::REPLACES, |out| {
            put_varint(out, snapshot.replaces.len() as u64);
            for id in &snapshot.replaces {
                out.extend_from_slice(&id.0);
            }
        });
    }
    if snapshot.is_protected {
        fields.field(tag::PROTECTED, |_| ());
    }
    if let Some(disk) = &snapshot.disk {
        fields.field(tag::DISK, |out| {
            out.extend_from_slice(&disk.volume);
            out.extend_from_slice(&disk.generation_id);
            put_varint(out, u64::from(disk.generation));
        });
    }
    if let Some(origin) = &snapshot.copy_of {
        fields.field(tag::COPY_OF, |out| {
            out.extend_from_slice(&origin.repository.0);
            out.extend_from_slice(&origin.snapshot.0);
        });
    }
    if let Some(id) = snapshot.repaired {
        fields.field(tag::REPAIRED, |out| out.extend_from_slice(&id.0));
    }
    fields.unknown(&snapshot.unknown);
    let mut out = Vec::new();
    fields.finish(&mut out);
    at_most(
        BODY_BYTES_MAX as u64,
        "bytes of paths and the like",
        out.len(),
    )?;
    Ok(out)
}

fn check_limits(snapshot: &Snapshot) -> Result<(), SnapshotError> {
    let errors = &snapshot.errors;
    at_most(PATHS_MAX, "paths", snapshot.paths.len())?;
    at_most(PATHS_MAX, "exclude patterns", snapshot.excludes.len())?;
    at_most(TAGS_MAX, "tags", snapshot.tags.len())?;
    let replaces = snapshot.replaces.len();
    at_most(REPLACES_MAX as u64, "earlier forms", replaces)?;
    let listed_max = errors.count.min(ERRORS_LISTED_MAX as u64);
    at_most(listed_max, "errors listed", errors.listed.len())
}

fn at_most(limit: u64, what: &'static str, count: usize) -> Result<(), SnapshotError> {
    let count = count as u64;
    if count <= limit {
        Ok(())
    } else {
        Err(SnapshotError::TooLarge { what, count, limit })
    }
}

fn put_root(out: &mut Vec<u8>, root: &Recipe) {
    let mut table = ContainerTable::default();
    let mut recipe = Vec::new();
    root.encode(&mut table, &mut recipe);
    table.encode(out);
    out.extend_from_slice(&recipe);
}

fn put_text(fields: &mut FieldWriter, tag: u64, text: &str) {
    if !text.is_empty() {
        fields.field(tag, |out| out.extend_from_slice(text.as_bytes()));
    }
}

fn put_list(fields: &mut FieldWriter, tag: u64, items: &[impl AsRef<[u8]>]) {
    if items.is_empty() {
        return;
    }
    fields.field(tag, |out| {
        put_varint(out, items.len() as u64);
        for item in items {
            put_bytes(out, item.as_ref());
        }
    });
}

fn put_errors(out: &mut Vec<u8>, errors: &SnapshotErrors) {
    put_varint(out, errors.count);
    put_varint(out, errors.listed.len() as u64);
    for error in &errors.listed {
        put_bytes(out, &error.path);
        put_bytes(out, error.message.as_bytes());
    }
}

/// The numbers of a summary in the order in which they are stored.
fn numbers_of(summary: &Summary) -> [u64; 13] {
    [
        summary.files,
        summary.directories,
        summary.other_entries,
        summary.files_bytes,
        summary.files_new,
        summary.files_changed,
        summary.files_unmodified,
        summary.bytes_read,
        summary.bytes_new,
        summary.bytes_stored,
        summary.chunks,
        summary.chunks_new,
        summary.milliseconds,
    ]
}

pub(super) fn decode(id: ObjectId, body: &[u8]) -> Result<Snapshot, DecodeError> {
    let mut snapshot = Snapshot {
        id,
        ..Snapshot::default()
    };
    let mut has_root = false;
    let mut fields = FieldList::new(body);
    while let Some(field) = fields.next_field()? {
        let mut value = Decoder::new(field.value);
        match field.tag {
            tag::ROOT => {
                has_root = true;
                let table = ContainerTable::decode(&mut value)?;
                snapshot.root = Recipe::decode(&mut value, &table)?;
            }
            tag::TIME => snapshot.time = Timestamp::decode(&mut value)?,
            tag::INTERRUPTED => snapshot.is_interrupted = true,
            tag::HOST => snapshot.host = whole_text(&mut value)?,
            tag::USER => {
                value.text()?.clone_into(&mut snapshot.user);
                snapshot.uid = read_u32(&mut value, "a user's number")?;
                snapshot.gid = read_u32(&mut value, "a group's number")?;
            }
            tag::PATHS => snapshot.paths = read_list(&mut value, PATHS_MAX, "paths", bytes)?,
            tag::TAGS => snapshot.tags = read_list(&mut value, TAGS_MAX, "tags", text)?,
            tag::PARENT => snapshot.parent = Some(ObjectId(value.array()?)),
            tag::RUN => snapshot.run = Some(ObjectId(value.array()?)),
            tag::REMAP_GENERATION => snapshot.remap_generation = value.varint()?,
            tag::SUMMARY => read_summary(&mut value, &mut snapshot.summary)?,
            tag::REWRITTEN => {
                snapshot.summary.chunks_rewritten = value.varint()?;
                snapshot.summary.bytes_rewritten = value.varint()?;
            }
            tag::DISK => {
                snapshot.disk = Some(DiskState {
                    volume: value.array()?,
                    generation_id: value.array()?,
                    generation: read_u32(&mut value, "a generation")?,
                });
            }
            tag::COPY_OF => {
                snapshot.copy_of = Some(Origin {
                    repository: ObjectId(value.array()?),
                    snapshot: ObjectId(value.array()?),
                });
            }
            tag::ERRORS => snapshot.errors = read_errors(&mut value)?,
            tag::PROGRAM => snapshot.program = whole_text(&mut value)?,
            tag::EXCLUDES => {
                snapshot.excludes = read_list(&mut value, PATHS_MAX, "exclude patterns", text)?;
            }
            tag::REPLACES => {
                let limit = REPLACES_MAX as u64;
                snapshot.replaces = read_list(&mut value, limit, "earlier forms", id_of)?;
            }
            tag::PROTECTED => snapshot.is_protected = true,
            tag::REPAIRED => snapshot.repaired = Some(ObjectId(value.array()?)),
            _ => {
                snapshot.unknown.keep(field)?;
                continue;
            }
        }
        value.finish()?;
    }
    if has_root {
        Ok(snapshot)
    } else {
        Err(DecodeError::new("it has no root directory"))
    }
}

/// A field that is one text has no length of its own.
fn whole_text(value: &mut Decoder<'_>) -> Result<String, DecodeError> {
    let bytes = value.take(value.rest().len())?;
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::new("a text is not UTF-8"))?;
    Ok(text.to_owned())
}

fn bytes(value: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(value.bytes()?.to_vec())
}

fn text(value: &mut Decoder<'_>) -> Result<String, DecodeError> {
    Ok(value.text()?.to_owned())
}

fn id_of(value: &mut Decoder<'_>) -> Result<ObjectId, DecodeError> {
    Ok(ObjectId(value.array()?))
}

fn read_u32(value: &mut Decoder<'_>, what: &str) -> Result<u32, DecodeError> {
    Ok(value.varint_at_most(u64::from(u32::MAX), what)? as u32)
}

fn read_list<T>(
    value: &mut Decoder<'_>,
    limit: u64,
    what: &str,
    item: impl Fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    value.clone().varint_at_most(limit, what)?;
    let count = value.count(1, what)?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(item(value)?);
    }
    Ok(items)
}

fn read_summary(value: &mut Decoder<'_>, summary: &mut Summary) -> Result<(), DecodeError> {
    let mut next = || value.varint();
    *summary = Summary {
        files: next()?,
        directories: next()?,
        other_entries: next()?,
        files_bytes: next()?,
        files_new: next()?,
        files_changed: next()?,
        files_unmodified: next()?,
        bytes_read: next()?,
        bytes_new: next()?,
        bytes_stored: next()?,
        chunks: next()?,
        chunks_new: next()?,
        milliseconds: next()?,
        ..*summary
    };
    Ok(())
}

fn read_errors(value: &mut Decoder<'_>) -> Result<SnapshotErrors, DecodeError> {
    let count = value.varint()?;
    let listed_max = count.min(ERRORS_LISTED_MAX as u64);
    let listed = read_list(value, listed_max, "errors listed", |value| {
        Ok(ListedError {
            path: bytes(value)?,
            message: text(value)?,
        })
    })?;
    Ok(SnapshotErrors { count, listed })
}
