//! The store on a real S3 server.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use support::store_at;
use testkit::conformance;
use testkit::s3_server::VersityGateway;

#[test]
fn a_store_on_s3_keeps_every_rule() {
    let Some(server) = VersityGateway::start() else {
        return;
    };
    let number = std::cell::Cell::new(0);
    conformance::object_store(&|| {
        number.set(number.get() + 1);
        Box::new(store_at(&server, &format!("deep/{}", number.get())))
    });
}
