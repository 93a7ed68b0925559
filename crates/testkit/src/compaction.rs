//! Packs live slots of several containers into one object, as a later compaction will: for
//! tests of what reads such objects (docs/format/v1.md, §6 and §7).
//!
//! Ids and slots are kept, what is not live leaves a gap, and a remap says where the logical
//! containers lie now.

use engine::Engine;
use engine::container::{
    Compression, ContainerId, Features, Group, ObjectMetadata, PADDING_PIECE, Remap, Section,
};
use engine::format::{LENGTH_TAG_BYTES, ObjectSealer, SEAL_TAG_BYTES, padme, write_document};
use engine::object::{ObjectId, ObjectKey, ObjectKind};

/// Chunks in a group of a compacted object: few, so that sections have several groups.
const CHUNKS_PER_GROUP: usize = 7;

/// Moves what `is_live` keeps of `containers` into one object of the given id, writes the remap,
/// and deletes the objects that it replaces.
///
/// # Panics
/// When anything fails.
pub fn compact(
    engine: &Engine,
    containers: &[ContainerId],
    object: ObjectId,
    remap: ObjectId,
    is_live: &dyn Fn(ContainerId, usize) -> bool,
) {
    let key = ObjectKey::new(ObjectKind::Container, object);
    let sealer = engine.vault().new_object(key);
    let mut data = Vec::new();
    let mut groups_before = 0;
    let sections = containers
        .iter()
        .map(|&id| {
            let section = compact_section(engine, id, &sealer, &mut data, groups_before, is_live);
            groups_before += section.groups.len() as u32;
            section
        })
        .collect();
    let mut metadata = ObjectMetadata { sections }.encode();
    let filled_bytes = data.len() + metadata.len() + SEAL_TAG_BYTES + LENGTH_TAG_BYTES;
    let padding_bytes = match engine.vault().is_padded() {
        true => padme(filled_bytes as u64) as usize - filled_bytes,
        false => 0,
    };
    if padding_bytes >= SEAL_TAG_BYTES {
        let start = data.len();
        data.resize(start + padding_bytes - SEAL_TAG_BYTES, 0);
        sealer.seal(PADDING_PIECE, &mut data, start);
    } else {
        metadata.resize(metadata.len() + padding_bytes, 0);
    }
    let start = data.len();
    data.extend_from_slice(&metadata);
    sealer.seal(1, &mut data, start);
    let tag = sealer.length_tag((data.len() - start) as u32);
    data.extend_from_slice(&tag);
    engine
        .store()
        .put(&key, &data)
        .expect("the object is stored");

    let mut moved: Vec<_> = containers.iter().map(|&id| (id, object)).collect();
    moved.sort_unstable();
    let generation = 1;
    let body = Remap { generation, moved }.encode();
    let remap = ObjectKey::new(ObjectKind::Remap, remap);
    write_document(engine.store().as_ref(), engine.vault(), remap, &body)
        .expect("the remap is stored");
    for id in containers {
        engine
            .store()
            .delete(&id.own_object())
            .expect("the old object is deleted");
    }
}

fn compact_section(
    engine: &Engine,
    id: ContainerId,
    sealer: &ObjectSealer,
    data: &mut Vec<u8>,
    groups_before: u32,
    is_live: &dyn Fn(ContainerId, usize) -> bool,
) -> Section {
    let reader = engine.reader().expect("remaps are readable");
    let loaded = reader
        .containers()
        .section(id)
        .expect("the container is readable");
    let old = &loaded.section;
    let mut plain = Vec::new();
    let all: Vec<usize> = (0..old.groups.len()).collect();
    reader
        .containers()
        .read_groups(&loaded, &all, &mut |_, group| {
            plain.extend(group.expect("the group is readable"));
        });
    let mut chunks = Vec::new();
    let mut offset = 0;
    for chunk in 0..old.chunk_count() {
        let end = offset + old.stored_bytes(chunk) as usize;
        if is_live(id, chunk) {
            chunks.push((chunk, &plain[offset..end]));
        }
        offset = end;
    }
    let mut groups = Vec::new();
    for members in chunks.chunks(CHUNKS_PER_GROUP) {
        let start = data.len();
        members
            .iter()
            .for_each(|(_, bytes)| data.extend_from_slice(bytes));
        let number = groups_before + groups.len() as u32;
        let plain_bytes = (data.len() - start) as u64;
        sealer.seal(3 + number, data, start);
        groups.push(Group {
            offset: start as u64,
            sealed_bytes: (data.len() - start) as u32,
            compression: Compression::Stored,
            number,
            first_chunk: groups.iter().map(|group: &Group| group.chunk_count).sum(),
            chunk_count: members.len() as u32,
            plain_bytes,
        });
    }
    let live = || chunks.iter().map(|&(chunk, _)| chunk);
    let mut features = Features::new(old.features.per_chunk());
    live().for_each(|chunk| features.push(old.features.of(chunk).unwrap_or_default()));
    Section {
        id,
        kind: old.kind,
        slots: live().map(|chunk| old.slots[chunk]).collect(),
        lengths: live().map(|chunk| old.lengths[chunk]).collect(),
        fingerprints: live().map(|chunk| old.fingerprints[chunk]).collect(),
        markers: live()
            .filter_map(|chunk| old.markers.get(chunk).copied())
            .collect(),
        deltas: live()
            .filter_map(|chunk| old.deltas.get(chunk).copied())
            .collect(),
        features,
        groups,
    }
}
