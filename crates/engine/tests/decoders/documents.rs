//! Sealed documents: the frame around snapshots and remaps (docs/format/v1.md, §3.1).

use engine::format::{open_document, seal_document};
use engine::object::{ObjectId, ObjectKey, ObjectKind};

use super::vault;

/// Bodies above this are not compressed again: it would take long and show nothing.
const BODY_BYTES_AGAIN: usize = 1 << 20;

/// The object of all documents here.
const KEY: ObjectKey = ObjectKey {
    kind: ObjectKind::Snapshot,
    id: ObjectId([2; 16]),
};

/// What stands inside of the seal: length, form, stored body, zeros.
pub fn plaintext(bytes: &[u8]) {
    object(&seal(bytes));
}

/// A whole object.
pub fn object(bytes: &[u8]) {
    let vault = vault();
    let Ok(body) = open_document(&vault, KEY, bytes.to_vec()) else {
        return;
    };
    if body.len() <= BODY_BYTES_AGAIN {
        let again = seal_document(&vault, KEY, &body).expect("it is small");
        assert_eq!(open_document(&vault, KEY, again).expect("it opens"), body);
    }
}

fn seal(plaintext: &[u8]) -> Vec<u8> {
    let sealer = vault().new_object(KEY);
    let mut object = sealer.nonce(0).to_vec();
    object.extend_from_slice(plaintext);
    sealer.seal(0, &mut object, 12);
    object
}

pub fn object_samples() -> Vec<Vec<u8>> {
    let text = b"a body that repeats itself, ".repeat(40);
    [&b""[..], b"short", &text]
        .iter()
        .map(|body| seal_document(&vault(), KEY, body).expect("it is small"))
        .collect()
}

pub fn plaintext_samples() -> Vec<Vec<u8>> {
    let sealer = vault().new_object(KEY);
    let open = |mut object: Vec<u8>| {
        let plain = sealer.open_slice(0, &mut object[12..]).expect("it opens");
        [&*plain, &[0; 3]].concat()
    };
    object_samples().into_iter().map(open).collect()
}
