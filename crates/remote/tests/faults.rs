//! A network that fails: what is repeated, what is told, and that nothing is mixed up.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, PutOutcome, StoreError};
use remote::{RemoteError, RemoteErrorKind, RemoteSettings, RemoteStore};
use support::faulty_proxy::{Fault, FaultyProxy};
use support::{store_at, store_with};
use testkit::generate::random_bytes;
use testkit::s3_server::VersityGateway;

fn settings() -> RemoteSettings {
    RemoteSettings {
        retry_delay: Duration::from_millis(2),
        retry_delay_max: Duration::from_millis(20),
        retries: 100,
        ..RemoteSettings::default()
    }
}

fn key(kind: ObjectKind, number: u8) -> ObjectKey {
    ObjectKey::new(kind, ObjectId([number; ObjectId::BYTES]))
}

/// A store behind a proxy that fails most connections, after it has been reached once.
fn shaky(
    server: &VersityGateway,
    seed: u64,
    prefix: &str,
    cut_max: u64,
) -> (FaultyProxy, RemoteStore) {
    let mut connections = 0;
    let plan = Box::new(move |random: &mut testkit::random::Random| {
        connections += 1;
        match random.below(10) {
            // The first connection is good, so that the server counts as reached.
            _ if connections == 1 => Fault::CutAfter(2000),
            0 | 1 => Fault::Closed,
            2 | 3 => Fault::Busy,
            _ => Fault::CutAfter(1000 + random.below(cut_max)),
        }
    });
    let proxy = FaultyProxy::start(server.address(), seed, plan);
    let store = store_with(&proxy.url(), prefix, settings());
    let asked = key(ObjectKind::Snapshot, 0xee);
    assert!(store.get(&asked, 1).unwrap_err().is_missing());
    (proxy, store)
}

#[test]
fn a_shaky_line_loses_and_mixes_nothing() {
    let Some(server) = VersityGateway::start() else {
        return;
    };
    for seed in 1..4 {
        let prefix = format!("shaky-{seed}");
        let (proxy, store) = shaky(&server, seed, &prefix, 1_500_000);
        let objects: Vec<_> = (0..12u8)
            .map(|number| {
                let bytes = random_bytes(u64::from(number), 40_000 * usize::from(number));
                (key(ObjectKind::Container, number), bytes)
            })
            .collect();
        for (key, bytes) in &objects {
            store.put(key, bytes).unwrap();
        }
        let honest = store_at(&server, &prefix);
        for (key, bytes) in &objects {
            assert_eq!(&honest.get(key, u64::MAX).unwrap(), bytes);
            assert_eq!(&store.get(key, u64::MAX).unwrap(), bytes);
            let tail = store.get_tail(key, 30_000).unwrap();
            assert_eq!(tail.bytes, bytes[bytes.len().saturating_sub(30_000)..]);
            if bytes.len() > 1000 {
                let range = store.get_range(key, 500, bytes.len() - 1000).unwrap();
                assert_eq!(range, bytes[500..bytes.len() - 500]);
            }
        }
        let mut listed = BTreeSet::new();
        store
            .list(ObjectKind::Container, &mut |id, _| {
                listed.insert(id);
            })
            .unwrap();
        assert_eq!(listed.len(), objects.len());
        store.delete(&objects[3].0).unwrap();
        assert!(honest.get(&objects[3].0, 1).unwrap_err().is_missing());
        assert!(proxy.faults() > 10, "{}", proxy.faults());
        assert!(store.counts().retries > 10, "{:?}", store.counts());
    }
}

#[test]
fn objects_in_parts_come_through_a_shaky_line() {
    let Some(server) = VersityGateway::start() else {
        return;
    };
    let (_proxy, store) = shaky(&server, 7, "parts", 40_000_000);
    let bytes = random_bytes(7, 30 << 20);
    let key = key(ObjectKind::Index, 1);
    let mut writer = store.create(&key).unwrap();
    for part in bytes.chunks(1 << 20) {
        writer.write(part).unwrap();
    }
    writer.finish().unwrap();
    assert!(store_at(&server, "parts").get(&key, u64::MAX).unwrap() == bytes);
    assert!(store.counts().retries > 0);
}

#[test]
fn an_answer_that_was_lost_does_not_change_who_created() {
    let Some(server) = VersityGateway::start() else {
        return;
    };
    let mut unsure = 0;
    for seed in 10..14 {
        // Most connections break around the answer of a small put.
        let (_proxy, store) = shaky(&server, seed, &format!("created-{seed}"), 2000);
        for number in 0..8 {
            let key = key(ObjectKind::Key, number);
            let before = store.counts().retries;
            assert_eq!(
                store.put_if_absent(&key, b"mine").unwrap(),
                PutOutcome::Created
            );
            unsure += store.counts().retries - before;
            assert_eq!(
                store.put_if_absent(&key, b"theirs").unwrap(),
                PutOutcome::Exists
            );
        }
    }
    assert!(unsure > 0);
}

#[test]
fn who_gives_up_says_what_to_look_at() {
    let Some(server) = VersityGateway::start() else {
        return;
    };
    let faults: [fn() -> Fault; 3] = [|| Fault::Closed, || Fault::Busy, || Fault::Silent];
    for fault in faults {
        let proxy = FaultyProxy::start(server.address(), 1, Box::new(move |_| fault()));
        let settings = RemoteSettings {
            transfer_timeout: Duration::from_millis(100),
            request_timeout: Duration::from_millis(100),
            ..settings()
        };
        let store = store_with(&proxy.url(), "nothing", settings);
        let error = store.put(&key(ObjectKind::Container, 1), b"x").unwrap_err();
        let message = error.to_string();
        assert!(message.contains(&store.location()), "{message}");
        assert!(!message.contains(VersityGateway::SECRET_KEY), "{message}");
        let StoreError::Io { source, .. } = error else {
            panic!("{message}");
        };
        let error = RemoteError::find(&source).unwrap();
        assert_eq!(error.kind, RemoteErrorKind::Unreachable, "{message}");
        let tries = proxy.faults();
        assert_eq!(tries, 1 + RemoteSettings::FIRST_RETRIES as u64, "{message}");
    }
}

#[test]
fn refusals_are_not_repeated() {
    let Some(server) = VersityGateway::start() else {
        return;
    };
    let wrong = |name: &str| match name {
        "AWS_SECRET_ACCESS_KEY" => Some("wrong".to_owned()),
        name => support::credentials(name),
    };
    let address = support::address(&server.url(), "x");
    let store = RemoteStore::open_in(&address, settings(), &wrong).unwrap();
    let Err(StoreError::Io { source, .. }) = store.put(&key(ObjectKind::Key, 1), b"x") else {
        panic!("a wrong secret is taken");
    };
    assert_eq!(
        RemoteError::find(&source).unwrap().kind,
        RemoteErrorKind::Denied
    );
    assert_eq!(store.counts().retries, 0);
}
