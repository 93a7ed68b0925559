//! Chunks stored as deltas, asked for at random: the right bytes, or the right word about what is wrong.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::sync::Arc;
use std::thread;

use common::{engine_on, noise, small_settings, text};
use engine::Engine;
use engine::container::{
    ChunkAddress, ContainerKind, DELTA_DEPTH_MAX, Delta, DeltaMethod, Section,
};
use engine::object::MemoryStore;
use engine::restore::{ReadError, WantedChunks};
use testkit::deltas::{Filling, HandChunk, Storeroom, container, place, store_container};

fn scene() -> (Arc<MemoryStore>, Engine) {
    let store = Arc::new(MemoryStore::new());
    let engine = engine_on(Arc::clone(&store) as _, small_settings(2), true);
    (store, engine)
}

#[test]
fn chunks_come_in_any_order_and_to_any_thread() {
    let (store, engine) = scene();
    let filling = Filling {
        containers: 4,
        chunks: 40,
        depth_max: DELTA_DEPTH_MAX,
    };
    let room = Storeroom::random(&engine, 1, filling);
    assert!(room.chunks.iter().any(|(_, _, depth)| *depth > 3));
    let reader = engine.reader().unwrap();
    let all = |skip: usize| {
        let count = room.chunks.len();
        for number in 0..count {
            let (place, bytes, _) = &room.chunks[(number * 7 + skip) % count];
            assert_eq!(&reader.chunk(*place).unwrap()[..], bytes, "{place}");
        }
    };
    store.reset_counts();
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || all(thread * 11));
        }
    });
    // Groups of five; the cache holds all of them.
    let groups = (room.chunks.len() / 5) as u64;
    assert_eq!(store.counts().ranges, groups);
    let sparing = engine_on(store, small_settings(2), true);
    let sparing =
        engine::restore::Reader::new(Arc::clone(sparing.reader().unwrap().containers()), 0);
    for (place, bytes, _) in &room.chunks {
        assert_eq!(&sparing.chunk(*place).unwrap()[..], bytes, "{place}");
    }
}

#[test]
fn chunks_are_the_same_whatever_else_is_wanted() {
    let (store, engine) = scene();
    let filling = Filling {
        containers: 4,
        chunks: 40,
        depth_max: 2,
    };
    let room = Storeroom::random(&engine, 3, filling);
    let groups = (room.chunks.len() / 5) as u64;
    for known_every in [1, 3, usize::MAX] {
        let reader = engine.reader().unwrap();
        let wanted = WantedChunks::default();
        let count = room.chunks.len();
        let in_order = (0..count).map(|number| number * 7 % count);
        for number in in_order.clone().step_by(known_every) {
            wanted.add(room.chunks[number].0);
        }
        store.reset_counts();
        for number in in_order {
            let (place, bytes, _) = &room.chunks[number];
            let read = reader.chunk_among(*place, &wanted).unwrap();
            assert_eq!(&read[..], bytes, "{place}");
            wanted.remove(*place);
        }
        // What is known is decompressed at once; a guess that was too short costs one read more.
        let ranges = store.counts().ranges;
        match known_every {
            1 => assert_eq!(ranges, groups),
            _ => assert!((groups..=2 * groups).contains(&ranges), "{ranges} reads"),
        }
    }
}

#[test]
fn a_stream_of_deltas_is_read_in_order() {
    let (_, engine) = scene();
    let filling = Filling {
        containers: 3,
        chunks: 30,
        depth_max: 5,
    };
    let room = Storeroom::random(&engine, 2, filling);
    let reader = engine.reader().unwrap();
    let numbers = (0..room.chunks.len()).rev().chain(20..60);
    let (recipe, expected) = room.stream(numbers);
    let mut stream = reader.stream(&recipe);
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut read).unwrap();
    assert!(read == expected);
}

/// A chain of deltas, one a container of deltas, on a chunk of container 1.
fn chain(engine: &Engine, depth: u8) -> Vec<Vec<u8>> {
    let mut chunks = vec![text(1, 5000)];
    let whole = vec![vec![HandChunk::whole(chunks[0].clone())]];
    store_container(engine, container(1), ContainerKind::Data, &whole, |_| {});
    for depth in 1..=depth {
        let base = chunks.last().unwrap();
        let mut chunk = base.clone();
        chunk.splice(100..110, noise(u64::from(depth), 20));
        let base = (place(depth, 0), &base[..]);
        let delta = HandChunk::delta(chunk.clone(), base, DeltaMethod::Instructions, depth);
        let groups = [vec![delta]];
        store_container(
            engine,
            container(depth + 1),
            ContainerKind::Deltas,
            &groups,
            |_| {},
        );
        chunks.push(chunk);
    }
    chunks
}

#[test]
fn a_chain_of_any_depth_is_followed() {
    let (_, engine) = scene();
    let chunks = chain(&engine, DELTA_DEPTH_MAX);
    let reader = engine.reader().unwrap();
    for (depth, chunk) in chunks.iter().enumerate() {
        let read = reader.chunk(place(depth as u8 + 1, 0)).unwrap();
        assert_eq!(&read[..], chunk, "depth {depth}");
    }
}

#[test]
fn what_is_wrong_with_a_chain_is_named() {
    let lost = |what: &dyn Fn(&MemoryStore)| {
        let (store, engine) = scene();
        chain(&engine, 5);
        what(&store);
        let reader = engine.reader().unwrap();
        let error = reader.chunk(place(6, 0)).unwrap_err();
        assert!(error.is_damage(), "{error}");
        let ReadError::Base { chunk, .. } = &error else {
            panic!("{error}");
        };
        assert!(reader.chunk(place(1, 0)).is_ok() || reader.chunk(place(2, 0)).is_err());
        (*chunk, error.to_string())
    };
    // The root, and a delta on the way: missing, and damaged.
    for number in [1, 3] {
        let key = container(number).own_object();
        let (chunk, message) = lost(&|store| drop(store.remove_raw(&key)));
        assert_eq!(chunk, place(number + 1, 0));
        assert!(message.contains(&key.to_string()), "{message}");
        let damage = |store: &MemoryStore| assert!(store.corrupt(&key, |bytes| bytes[5] ^= 1));
        let (chunk, message) = lost(&damage);
        assert_eq!(chunk, place(6, 0));
        assert!(message.contains(&key.to_string()), "{message}");
    }
}

/// One delta to a chunk of `base_kind`, in metadata that `change` changes.
fn wrong(
    base_kind: ContainerKind,
    change: impl FnOnce(&mut Section),
) -> Result<Vec<u8>, ReadError> {
    let (_, engine) = scene();
    let base = text(1, 3000);
    let mut chunk = base.clone();
    chunk.splice(50..60, *b"other words");
    let whole = vec![vec![HandChunk::whole(base.clone())]];
    store_container(&engine, container(1), base_kind, &whole, |_| {});
    let base = (place(1, 0), &base[..]);
    let delta = HandChunk::delta(chunk, base, DeltaMethod::Instructions, 1);
    store_container(
        &engine,
        container(2),
        ContainerKind::Deltas,
        &[vec![delta]],
        change,
    );
    let reader = engine.reader().unwrap();
    reader.chunk(place(2, 0)).map(|bytes| bytes.to_vec())
}

fn set(section: &mut Section, change: impl FnOnce(&mut Delta)) {
    change(section.deltas[0].as_mut().unwrap());
}

#[test]
fn wrong_metadata_is_an_error() {
    let data = ContainerKind::Data;
    assert!(wrong(data, |_| {}).is_ok());
    let is_base = |outcome: Result<_, ReadError>, is: fn(&ReadError) -> bool| match outcome {
        Err(ReadError::Base { error, .. }) => assert!(is(&error), "{error}"),
        other => panic!("{other:?}"),
    };
    let slot = wrong(data, |section| {
        set(section, |delta| delta.base = place(1, 1))
    });
    is_base(slot, |error| matches!(error, ReadError::NoChunk(_)));
    let gone = wrong(data, |section| {
        set(section, |delta| delta.base = place(9, 0))
    });
    is_base(gone, |error| matches!(error, ReadError::Object(_)));
    let page = wrong(ContainerKind::Metadata, |_| {});
    is_base(page, |error| matches!(error, ReadError::NotData(_)));
    for change in [
        (|section| set(section, |delta| delta.method = DeltaMethod::Prefix)) as fn(&mut Section),
        |section| section.lengths[0] += 1,
        |section| section.lengths[0] = 1,
        |section| section.lengths[0] = 16 << 20,
        |section| section.fingerprints[0].0[5] ^= 1,
    ] {
        let error = wrong(data, change).unwrap_err();
        assert!(matches!(error, ReadError::Object(_)), "{error}");
        let key = container(2).own_object().to_string();
        assert!(
            error.is_damage() && error.to_string().contains(&key),
            "{error}"
        );
    }
}

#[test]
fn a_circle_of_bases_is_an_error() {
    let (_, engine) = scene();
    let bytes = text(1, 3000);
    let delta = |base: ChunkAddress, depth| {
        HandChunk::delta(
            bytes.clone(),
            (base, &bytes),
            DeltaMethod::Instructions,
            depth,
        )
    };
    let deltas = ContainerKind::Deltas;
    store_container(
        &engine,
        container(1),
        deltas,
        &[vec![delta(place(2, 0), 31)]],
        |_| {},
    );
    store_container(
        &engine,
        container(2),
        deltas,
        &[vec![delta(place(1, 0), 31)]],
        |_| {},
    );
    let reader = engine.reader().unwrap();
    for number in [1, 2] {
        let error = reader.chunk(place(number, 0)).unwrap_err();
        let ReadError::Base { error, .. } = error else {
            panic!("{error}");
        };
        assert!(matches!(*error, ReadError::TooDeep { .. }), "{error}");
    }
    let error = reader.chunk(place(1, 7)).unwrap_err();
    assert!(matches!(error, ReadError::NoChunk(_)));
}
