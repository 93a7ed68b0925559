//! Containers and remaps (docs/format/v1.md, §6 and §7).

use std::sync::Arc;

use engine::container::{
    ChunkAddress, Compression, CompressionLevel, Compressor, ContainerBuilder, ContainerId,
    ContainerKind, ContainerReader, Delta, DeltaMethod, GROUP_BYTES_MAX, Group, LoadedSection,
    NewChunk, ObjectMetadata, Remap, RemapSet, Section, Slot, decompress,
};
use engine::fingerprint::Fingerprint;
use engine::format::{Decoder, SEAL_TAG_BYTES, put_bytes, write_document};
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind};
use engine::restore::{Reader, wrong_bases};
use engine::similarity::delta::DeltaEncoder;
use engine::similarity::prefix::PrefixEncoder;

use super::{container_reader, fingerprinter, vault};

/// The object, and the logical container, of all containers here.
const CONTAINER: ContainerId = ContainerId(ObjectId([2; 16]));

/// Groups are sealed until an object has so many bytes; announced lengths may be far longer.
const DATA_BYTES_MAX: usize = 1 << 20;

/// Chunks of a container that are read one by one.
const CHUNKS_READ_MAX: usize = 50;

/// A metadata region: what it says agrees with itself and survives another encoding.
pub fn metadata(bytes: &[u8]) {
    let Ok(metadata) = ObjectMetadata::decode(bytes) else {
        return;
    };
    let again = metadata.encode();
    assert_eq!(ObjectMetadata::decode(&again), Ok(metadata.clone()));
    let mut data_end = 0;
    for section in &metadata.sections {
        assert!(metadata.section(section.id).is_some());
        for group in &section.groups {
            assert_eq!(group.offset, data_end, "groups follow each other");
            data_end += u64::from(group.sealed_bytes);
        }
        check_section(section);
    }
    assert_eq!(metadata.data_bytes(), data_end);
}

fn check_section(section: &Section) {
    let chunks = section.chunk_count();
    assert_eq!(section.lengths.len(), chunks);
    assert_eq!(section.fingerprints.len(), chunks);
    assert!(section.memory_bytes() >= chunks * Fingerprint::BYTES);
    for (chunk, &slot) in section.slots.iter().enumerate() {
        assert_eq!(section.chunk_in(slot), Some(chunk));
        let group = &section.groups[section.group_of(chunk)];
        let first = group.first_chunk as usize;
        assert!((first..first + group.chunk_count as usize).contains(&chunk));
    }
    for first in [0, 1, u16::MAX].map(Slot) {
        for count in [0, 1, 2, u32::MAX] {
            let found = section.chunks_in(first, count);
            assert!(found.is_none_or(|found| found.end <= chunks));
        }
    }
}

pub fn metadata_samples() -> Vec<Vec<u8>> {
    let plain = ObjectMetadata {
        sections: vec![sample_container().0],
    };
    let second = section_with_gaps(&plain);
    let sections = vec![plain.sections[0].clone(), second];
    let several = ObjectMetadata { sections };
    let padded = [several.encode(), vec![0; 15]].concat();
    let deltas = ObjectMetadata {
        sections: vec![delta_container().0],
    };
    vec![plain.encode(), padded, deltas.encode()]
}

/// A section as compaction leaves it, to stand after those of `before`.
fn section_with_gaps(before: &ObjectMetadata) -> Section {
    let group = |number, offset, first_chunk, plain_bytes| Group {
        offset: before.data_bytes() + offset,
        sealed_bytes: 100,
        compression: Compression::Zstd,
        number,
        first_chunk,
        chunk_count: 2,
        plain_bytes,
    };
    let groups_before = before.sections.iter().map(|section| section.groups.len());
    let number = groups_before.sum::<usize>() as u32;
    Section {
        id: ContainerId(ObjectId([3; 16])),
        kind: ContainerKind::Metadata,
        slots: [3, 4, 900, 65_534].map(Slot).to_vec(),
        lengths: vec![200, 5000, 1, 1 << 20],
        fingerprints: (0..4).map(|byte| Fingerprint([byte; 32])).collect(),
        markers: vec![7, 0, 255, 1],
        deltas: Vec::new(),
        features: Default::default(),
        groups: vec![
            group(number, 0, 0, 5200),
            group(number + 1, 100, 2, (1 << 20) + 1),
        ],
    }
}

/// A group as it stands behind its seal: `u8` compression, `u32` length, stored bytes.
pub fn group(bytes: &[u8]) {
    let mut decoder = Decoder::new(bytes);
    let (Ok(number), Ok(length)) = (decoder.u8(), decoder.u32()) else {
        return;
    };
    let Some(compression) = Compression::from_number(number) else {
        return;
    };
    let plain_bytes = u64::from(length).min(GROUP_BYTES_MAX) as usize;
    let Ok(plain) = decompress(compression, decoder.rest(), plain_bytes) else {
        return;
    };
    assert_eq!(plain.len(), plain_bytes);
    if let Some(small) = Compressor::new(CompressionLevel::DEFAULT).compress(&plain) {
        let again = decompress(Compression::Zstd, &small, plain_bytes);
        assert_eq!(again, Ok(plain));
    }
}

pub fn group_samples() -> Vec<Vec<u8>> {
    let text = b"the same words again ".repeat(300);
    let small = Compressor::new(CompressionLevel::DEFAULT)
        .compress(&text)
        .expect("text compresses");
    let sample = |compression: Compression, stored: &[u8]| {
        let length = text.len() as u32;
        [&[compression as u8][..], &length.to_le_bytes(), stored].concat()
    };
    vec![
        sample(Compression::Zstd, &small),
        sample(Compression::Stored, &text),
    ]
}

/// `bytes` metadata, then the plaintexts of groups: sealed as the metadata says and read.
pub fn sealed(bytes: &[u8]) {
    let mut decoder = Decoder::new(bytes);
    if let Ok(metadata) = decoder.bytes() {
        read_object(seal(metadata, decoder.rest()));
    }
}

/// A whole object, seals included.
pub fn object(bytes: &[u8]) {
    read_object(bytes.to_vec());
}

fn read_object(object: Vec<u8>) {
    let store = Arc::new(MemoryStore::new());
    let key = CONTAINER.own_object();
    let object_bytes = object.len() as u64;
    store.insert_raw(key, object);
    let reader = container_reader(store);
    let verified = reader.verify_object(key);
    let Ok((metadata, summary)) = reader.object(key) else {
        assert!(verified.is_err() && reader.section(CONTAINER).is_err());
        return;
    };
    assert_eq!(summary.object_bytes, object_bytes);
    assert!(summary.filled_bytes() <= object_bytes);
    let is_verified = verified.is_ok();
    assert!(verified.is_ok_and(|whole| whole == summary) || !is_verified);
    let Ok(loaded) = reader.section(CONTAINER) else {
        assert!(metadata.section(CONTAINER).is_none());
        return;
    };
    read_groups(&reader, &loaded, is_verified);
    read_chunks(reader, &loaded);
}

/// Every chunk, also one stored as a delta: it is the chunk of its fingerprint, or an error.
fn read_chunks(containers: ContainerReader, loaded: &LoadedSection) {
    let reader = Reader::new(Arc::new(containers), 1 << 20);
    let section = &loaded.section;
    let wrong = wrong_bases(reader.containers(), section);
    for chunk in 0..section.chunk_count().min(CHUNKS_READ_MAX) {
        let read = reader.chunk(section.address(chunk));
        assert!(read.is_err() || wrong.iter().all(|wrong| wrong.chunk != chunk));
        if let Ok(bytes) = read {
            let fingerprint = fingerprinter().fingerprint(section.kind, &bytes);
            assert_eq!(fingerprint, section.fingerprints[chunk]);
            assert_eq!(bytes.len(), section.lengths[chunk] as usize);
        }
    }
}

fn read_groups(reader: &ContainerReader, loaded: &LoadedSection, is_verified: bool) {
    let groups: Vec<usize> = (0..loaded.section.groups.len()).collect();
    let mut visited = Vec::new();
    reader.read_groups(loaded, &groups, &mut |index, plain| {
        visited.push(index);
        assert!(plain.is_ok() || !is_verified, "group {index}");
        let places = loaded.section.places_in(index);
        let chunks = places.first()..places.first() + places.count();
        assert!(
            plain.is_ok_and(|plain| places.of_all(&chunks) == (0..plain.len())) || !is_verified
        );
    });
    assert_eq!(visited, groups);
}

fn seal(metadata: &[u8], data: &[u8]) -> Vec<u8> {
    let sealer = vault().new_object(CONTAINER.own_object());
    let mut object = Vec::new();
    let mut data = data;
    let decoded = ObjectMetadata::decode(metadata).map_or(Vec::new(), |decoded| decoded.sections);
    for group in decoded.iter().flat_map(|section| &section.groups) {
        let length = group.sealed_bytes as usize - SEAL_TAG_BYTES;
        let start = object.len();
        if start + length > DATA_BYTES_MAX {
            break;
        }
        let (here, rest) = data.split_at(length.min(data.len()));
        data = rest;
        object.extend_from_slice(here);
        object.resize(start + length, 0);
        sealer.seal(3 + group.number, &mut object, start);
    }
    let start = object.len();
    object.extend_from_slice(metadata);
    sealer.seal(1, &mut object, start);
    let tag = sealer.length_tag((object.len() - start) as u32);
    object.extend_from_slice(&tag);
    object
}

/// The only section of a small container, and the plaintexts of its groups as stored.
fn sample_container() -> (Section, Vec<u8>) {
    let kind = ContainerKind::Data;
    let mut builder = ContainerBuilder::new(&vault(), kind, 1 << 20);
    let mut compressor = Compressor::new(CompressionLevel::DEFAULT);
    let mut data = Vec::new();
    for number in 0u8..3 {
        let chunks = [vec![number; 700], b"words and words ".repeat(90)];
        let entries = chunks
            .each_ref()
            .map(|chunk| (fingerprinter().fingerprint(kind, chunk), chunk.len() as u32));
        let plain = chunks.concat();
        let small = compressor.compress(&plain).filter(|_| number > 0);
        let (stored, compression) = match small {
            Some(small) => (small, Compression::Zstd),
            None => (plain, Compression::Stored),
        };
        builder.push_group(&stored, compression, &entries);
        data.extend_from_slice(&stored);
    }
    let mut section = Section::clone(&builder.finish(true).section);
    section.id = CONTAINER;
    (section, data)
}

/// A container of deltas, by both methods, to a whole chunk of its own and to each other; and the
/// plaintexts of its groups as stored.
fn delta_container() -> (Section, Vec<u8>) {
    let kind = ContainerKind::Deltas;
    let mut builder = ContainerBuilder::new(&vault(), kind, 1 << 20).with_features(3);
    let mut prefix = PrefixEncoder::new(CompressionLevel::DEFAULT);
    let mut base = b"words and other words ".repeat(60);
    let mut data = Vec::new();
    for number in 0u8..6 {
        let mut chunk = base.clone();
        let at = usize::from(number) * 100;
        chunk.splice(at..at + 4, [number; 9]);
        let mut stored = Vec::new();
        let method = match number % 2 {
            0 => DeltaMethod::Prefix,
            _ => DeltaMethod::Instructions,
        };
        let is_delta = match method {
            DeltaMethod::Prefix => prefix.encode(&base, &chunk, 500, &mut stored),
            DeltaMethod::Instructions => {
                DeltaEncoder::new().encode(&base, &chunk, 500, &mut stored)
            }
        };
        assert!(is_delta, "the chunk is like its base");
        let delta = Delta {
            // The id of the container once it is sealed.
            base: ChunkAddress {
                container: CONTAINER,
                slot: Slot(u16::from(number.saturating_sub(1))),
            },
            stored_bytes: stored.len() as u32,
            method,
            depth: number.max(1),
        };
        let is_root = number == 0;
        if is_root {
            stored.clone_from(&chunk);
        }
        let new = NewChunk {
            fingerprint: fingerprinter().fingerprint(kind, &chunk),
            length: chunk.len() as u32,
            delta: (!is_root).then_some(delta),
            features: if is_root { vec![7, 8, 9] } else { Vec::new() },
            last_byte: 0,
        };
        builder.push_chunks(&stored, Compression::Stored, &[new]);
        data.extend_from_slice(&stored);
        base = chunk;
    }
    let mut section = Section::clone(&builder.finish(true).section);
    section.id = CONTAINER;
    (section, data)
}

pub fn sealed_samples() -> Vec<Vec<u8>> {
    let sample = |(section, data): (Section, Vec<u8>)| {
        let metadata = ObjectMetadata {
            sections: vec![section],
        };
        let mut sample = Vec::new();
        put_bytes(&mut sample, &metadata.encode());
        sample.extend_from_slice(&data);
        sample
    };
    vec![sample(sample_container()), sample(delta_container())]
}

pub fn object_samples() -> Vec<Vec<u8>> {
    let sample = |(section, data): (Section, Vec<u8>)| {
        let metadata = ObjectMetadata {
            sections: vec![section],
        };
        seal(&metadata.encode(), &data)
    };
    vec![sample(sample_container()), sample(delta_container())]
}

/// The body of a remap: it has one form, and a set of remaps takes it.
pub fn remap(bytes: &[u8]) {
    let Ok(remap) = Remap::decode(bytes) else {
        return;
    };
    assert_eq!(remap.encode(), bytes);
    let store = MemoryStore::new();
    let key = ObjectKey::new(ObjectKind::Remap, ObjectId([2; 16]));
    write_document(&store, &vault(), key, bytes).expect("memory takes it");
    let set = RemapSet::load(&store, &vault()).expect("it decodes");
    assert_eq!(set.generation(), remap.generation);
    for &(logical, object) in &remap.moved {
        assert_eq!(set.object_of(logical).id, object);
    }
}

pub fn remap_samples() -> Vec<Vec<u8>> {
    let moved = (0..20u8).map(|number| {
        let logical = ContainerId(ObjectId([number; 16]));
        (logical, ObjectId([number / 3 + 100; 16]))
    });
    let remap = Remap {
        generation: 300,
        moved: moved.collect(),
    };
    let empty = Remap {
        generation: 0,
        moved: Vec::new(),
    };
    vec![remap.encode(), empty.encode()]
}
