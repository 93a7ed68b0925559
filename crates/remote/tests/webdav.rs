//! The store on a WebDAV server, where somebody has one:
//! `wsgidav --host 127.0.0.1 --port 8081 --root DIRECTORY --auth anonymous`, and
//! `ONEFOLD_TEST_WEBDAV=webdav:http://127.0.0.1:8081/x cargo test -p onefold-remote --test webdav -- --ignored`.
#![allow(missing_docs, clippy::unwrap_used)]
#![cfg(feature = "webdav")]

use std::cell::Cell;
use std::env;
use std::ffi::OsStr;

use remote::{Location, RemoteSettings, RemoteStore};
use testkit::conformance;

#[test]
#[ignore = "needs a WebDAV server, in ONEFOLD_TEST_WEBDAV"]
fn a_store_on_webdav_keeps_every_rule() {
    let address = env::var("ONEFOLD_TEST_WEBDAV").expect("the address of a server");
    let number = Cell::new(0);
    conformance::object_store(&|| {
        number.set(number.get() + 1);
        let address = format!("{address}/{}", number.get());
        let Location::Remote(address) = Location::parse(OsStr::new(&address)).unwrap() else {
            panic!("no address");
        };
        Box::new(RemoteStore::open(&address, RemoteSettings::default()).unwrap())
    });
}
