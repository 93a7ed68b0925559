//! What tests of stores on servers share.
#![allow(dead_code)]

pub mod fake_server;
pub mod faulty_proxy;

use std::ffi::OsStr;

use remote::{Address, Location, RemoteSettings, RemoteStore};
use testkit::s3_server::VersityGateway;

/// An address on that server.
pub fn address(url: &str, prefix: &str) -> Address {
    let text = format!("s3:{url}/{}/{prefix}", VersityGateway::BUCKET);
    match Location::parse(OsStr::new(&text)).unwrap() {
        Location::Remote(address) => address,
        Location::Directory(path) => panic!("{} is no address", path.display()),
    }
}

/// The credentials of the server.
pub fn credentials(name: &str) -> Option<String> {
    match name {
        "AWS_ACCESS_KEY_ID" => Some(VersityGateway::ACCESS_KEY.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(VersityGateway::SECRET_KEY.to_owned()),
        _ => None,
    }
}

/// A store below a prefix of the server's bucket.
pub fn store_at(server: &VersityGateway, prefix: &str) -> RemoteStore {
    store_with(&server.url(), prefix, RemoteSettings::default())
}

/// A store at that URL.
pub fn store_with(url: &str, prefix: &str, settings: RemoteSettings) -> RemoteStore {
    RemoteStore::open_in(&address(url, prefix), settings, &credentials).unwrap()
}
