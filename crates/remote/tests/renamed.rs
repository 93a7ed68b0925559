//! Services that show objects from their first byte: servers that fail in the middle of a write, of a rename, of a
//! listing.
#![allow(missing_docs, clippy::unwrap_used)]
#![cfg(feature = "webdav")]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore as _, StoreError};
use remote::{CachingStore, Location, RemoteSettings, RemoteStore};
use support::fake_server::{self, Files, Request, start_webdav};

fn store(server: SocketAddr) -> RemoteStore {
    let text = format!("webdav:http://{server}/place");
    let Location::Remote(address) = Location::parse(OsStr::new(&text)).unwrap() else {
        panic!("no address");
    };
    let settings = RemoteSettings {
        retries: 4,
        retry_delay: Duration::from_millis(2),
        retry_delay_max: Duration::from_millis(20),
        ..RemoteSettings::default()
    };
    RemoteStore::open_in(&address, settings, &|_| None).unwrap()
}

fn key(kind: ObjectKind, number: u8) -> ObjectKey {
    ObjectKey::new(kind, ObjectId([number; ObjectId::BYTES]))
}

/// True for the first `times` calls.
fn first(times: u32) -> impl Fn() -> bool + Send + Sync {
    let left = AtomicU32::new(times);
    move || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .is_ok()
    }
}

fn names(files: &Files) -> Vec<String> {
    files.files.keys().cloned().collect()
}

/// Takes a part of what is put, and says that it has it.
fn cut(request: &Request, files: &mut Files) -> Option<(u16, Vec<u8>)> {
    let part = request.body[..request.body.len() / 2].to_vec();
    files.files.insert(request.path.clone(), part);
    Some((201, Vec::new()))
}

#[test]
fn what_the_server_has_not_whole_is_sent_again() {
    for (cuts, succeeds) in [(2, true), (u32::MAX, false)] {
        let is_cut = first(cuts);
        let (server, files) = start_webdav(Box::new(move |request, files| {
            let is_put = request.method == "PUT";
            (is_put && is_cut()).then(|| cut(request, files))?
        }));
        let store = store(server);
        let key = key(ObjectKind::Container, 7);
        let outcome = store.put(&key, &[7; 1000]);
        assert_eq!(outcome.is_ok(), succeeds, "{outcome:?}");
        let files = files.lock().unwrap();
        let expected = match succeeds {
            true => vec![format!("/place/{key}")],
            false => Vec::new(),
        };
        assert_eq!(names(&files), expected);
        assert!(files.files.values().all(|bytes| bytes.len() == 1000));
    }
}

#[test]
fn a_rename_whose_answer_was_lost_is_done() {
    for loses in [false, true] {
        let is_lost = first(1);
        let (server, files) = start_webdav(Box::new(move |request, files| {
            if request.method != "MOVE" || !is_lost() {
                return None;
            }
            // Either it was done, or what was to be renamed is gone.
            match loses {
                true => files.files.clear(),
                false => drop(files.answer(request)),
            }
            Some((503, Vec::new()))
        }));
        let store = store(server);
        let key = key(ObjectKind::Snapshot, 7);
        match store.put(&key, &[7; 1000]) {
            Ok(()) => assert!(!loses),
            Err(StoreError::Io { .. }) => assert!(loses),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(names(&files.lock().unwrap()).len(), usize::from(!loses));
    }
}

#[test]
fn a_directory_that_fails_once_is_listed_nevertheless() {
    for (fails, succeeds) in [(2, true), (u32::MAX, false)] {
        let is_failing = first(fails);
        let (server, _) = start_webdav(Box::new(move |request, _| {
            let is_asked = request.method == "PROPFIND" && request.headers["depth"] != "0";
            let is_deep = request.path.starts_with("/place/containers/0");
            (is_asked && is_deep && is_failing()).then_some((503, Vec::new()))
        }));
        let store = store(server);
        for number in 0..40 {
            store
                .put(&key(ObjectKind::Container, number), b"x")
                .unwrap();
        }
        let mut listed = BTreeSet::new();
        let outcome = store.list(ObjectKind::Container, &mut |id, bytes| {
            assert_eq!(bytes, 1);
            listed.insert(id);
        });
        assert_eq!(outcome.is_ok(), succeeds, "{outcome:?}");
        assert_eq!(listed.len() == 40, succeeds, "{}", listed.len());
    }
}

#[test]
fn what_is_not_found_in_the_middle_of_a_listing_is_no_end() {
    let page = "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>true</IsTruncated>\
        <NextContinuationToken>next</NextContinuationToken></ListBucketResult>";
    let missing = "<Error><Code>NoSuchBucket</Code><Message>gone</Message></Error>";
    let server = fake_server::start(Box::new(move |request| {
        match request.path.contains("continuation-token=next") {
            true => (404, missing.as_bytes().to_vec()),
            false => (200, page.as_bytes().to_vec()),
        }
    }));
    let store = support::store_with(
        &format!("http://{server}"),
        "place",
        RemoteSettings::default(),
    );
    for kind in [ObjectKind::Container, ObjectKind::Snapshot] {
        let error = store.list(kind, &mut |_, _| {}).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
    }
}

#[test]
fn what_replaces_an_object_is_never_lost() {
    for (fails, succeeds) in [(7, true), (u32::MAX, false)] {
        let is_failing = first(fails);
        let (server, files) = start_webdav(Box::new(move |request, files| {
            if request.method != "MOVE" || !request.headers["destination"].ends_with("/config") {
                return None;
            }
            // What was there goes first.
            files.files.remove("/place/config");
            is_failing().then_some((503, Vec::new()))
        }));
        let store = store(server);
        let old = b"old".to_vec();
        let config = "/place/config".to_owned();
        files.lock().unwrap().files.insert(config.clone(), old);
        let directory = tempfile::TempDir::new().unwrap();
        let store = CachingStore::new(Arc::new(store), directory.path(), 1 << 20).unwrap();
        let outcome = store.replace(&ObjectKey::CONFIG, b"new");
        let files = files.lock().unwrap();
        let there = names(&files);
        assert!(files.files.values().all(|bytes| bytes == b"new"));
        assert_eq!(there.len(), 1, "{there:?}");
        match outcome {
            Ok(()) => assert!(succeeds && there[0] == config),
            Err(error) => {
                let kept = there[0].strip_prefix("/place/").unwrap();
                assert!(!succeeds && error.to_string().contains(kept), "{error}");
            }
        }
    }
}

#[test]
fn a_server_that_ignores_ranges_takes_no_memory() {
    const OBJECT_BYTES: usize = 32 << 20;
    let server = fake_server::start(Box::new(|_| (200, vec![7; OBJECT_BYTES])));
    let store = support::store_with(
        &format!("http://{server}"),
        "place",
        RemoteSettings::default(),
    );
    let key = key(ObjectKind::Container, 1);
    for error in [
        store.get_range(&key, 0, 10).unwrap_err(),
        store.get_tail(&key, 10).unwrap_err(),
    ] {
        assert!(error.to_string().contains("more"), "{error}");
    }
}
