//! Every object store that the engine brings obeys the rules of `ObjectStore`.
#![allow(missing_docs)]

use std::cell::RefCell;

use engine::object::{LocalStore, MemoryStore};
use testkit::{CrashDisk, conformance};

#[test]
fn memory_store() {
    conformance::object_store(&|| Box::new(MemoryStore::new()));
}

#[test]
fn local_store_created() {
    let directories = RefCell::new(Vec::new());
    conformance::object_store(&|| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = LocalStore::create(directory.path()).expect("create");
        directories.borrow_mut().push(directory);
        Box::new(store)
    });
}

#[test]
fn local_store_opened_without_layout() {
    let directories = RefCell::new(Vec::new());
    conformance::object_store(&|| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = LocalStore::open(directory.path()).expect("open");
        directories.borrow_mut().push(directory);
        Box::new(store)
    });
}

#[test]
fn local_store_on_the_crash_disk() {
    conformance::object_store(&|| {
        let store = LocalStore::create_with_filesystem(CrashDisk::new(0), "crash disk");
        Box::new(store.expect("create"))
    });
}
