//! Sealed documents: small objects that are one piece (docs/format/v1.md, §3.1).
//!
//! Snapshots and remaps are documents: `nonce ‖ sealed(u32 body length ‖ body ‖ zeros) ‖ tag`,
//! the object's length rounded up by Padmé in encrypted repositories.

use crate::object::{ObjectKey, ObjectStore};

use super::decode::{DecodeError, Decoder};
use super::padme::padme;
use super::seal::{SEAL_TAG_BYTES, Vault};
use super::{InObject, ObjectError};

/// Limit of a whole document object in bytes.
pub const DOCUMENT_BYTES_MAX: u64 = 64 << 20;

/// Bytes before and after the plaintext: the nonce and the tag.
const FRAME_BYTES: usize = 12 + SEAL_TAG_BYTES;

/// Limit of the body once decompressed.
const BODY_BYTES_MAX: usize = 256 << 20;

/// The stored form of a document.
///
/// # Errors
/// When it would exceed [`DOCUMENT_BYTES_MAX`].
pub fn seal_document(vault: &Vault, key: ObjectKey, body: &[u8]) -> Result<Vec<u8>, DecodeError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(DecodeError::new(format!(
            "a body of {} bytes exceeds the limit of {BODY_BYTES_MAX}",
            body.len()
        )));
    }
    let compressed = zstd::bulk::compress(body, 3)
        .map_err(|error| DecodeError::new(format!("compression failed: {error}")))?;
    let (form, stored) = if compressed.len() < body.len() {
        (1u8, compressed.as_slice())
    } else {
        (0u8, body)
    };
    let plain_bytes = 4 + 1 + stored.len();
    let object_bytes = (plain_bytes + FRAME_BYTES) as u64;
    let padded_bytes = if vault.is_padded() {
        padme(object_bytes)
    } else {
        object_bytes
    };
    if padded_bytes > DOCUMENT_BYTES_MAX {
        return Err(DecodeError::new(format!(
            "a document of {padded_bytes} bytes exceeds the limit of {DOCUMENT_BYTES_MAX}"
        )));
    }
    let sealer = vault.new_object(key);
    let mut object = Vec::with_capacity(padded_bytes as usize);
    object.extend_from_slice(&sealer.nonce(0));
    object.extend_from_slice(&((1 + stored.len()) as u32).to_le_bytes());
    object.push(form);
    object.extend_from_slice(stored);
    object.resize(padded_bytes as usize - SEAL_TAG_BYTES, 0);
    sealer.seal(0, &mut object, 12);
    Ok(object)
}

/// Opens the stored form of a document and returns its body.
///
/// # Errors
/// When the bytes are not those that were sealed under this key.
pub fn open_document(
    vault: &Vault,
    key: ObjectKey,
    object: Vec<u8>,
) -> Result<Vec<u8>, ObjectError> {
    Ok(open_document_and_epoch(vault, key, object)?.0)
}

/// The same, and the epoch that it was sealed in: what comes from clients that can only write does not
/// count everywhere ([`super::is_writer_epoch`]).
fn open_document_and_epoch(
    vault: &Vault,
    key: ObjectKey,
    mut object: Vec<u8>,
) -> Result<(Vec<u8>, u32), ObjectError> {
    if object.len() < FRAME_BYTES {
        let reason = DecodeError::new(format!("it has only {} bytes", object.len()));
        return Err(reason).in_object(key, "document");
    }
    let sealer = vault
        .object(key, &object[..12])
        .in_object(key, "document header")?;
    let plain = sealer
        .open_slice(0, &mut object[12..])
        .in_object(key, "document")?;
    let body = body_of(plain).in_object(key, "document")?;
    Ok((body, sealer.epoch()))
}

fn body_of(plain: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(plain);
    let length = decoder.u32()? as usize;
    let mut body = Decoder::new(decoder.take(length)?);
    decoder.finish_zero()?;
    match body.u8()? {
        0 => Ok(body.rest().to_vec()),
        1 => decompress(body.rest()),
        form => Err(DecodeError::new(format!("form {form} is not known"))),
    }
}

fn decompress(frame: &[u8]) -> Result<Vec<u8>, DecodeError> {
    use std::io::Read;
    let unreadable = |error| DecodeError::new(format!("it does not decompress: {error}"));
    let mut body = Vec::new();
    zstd::stream::read::Decoder::new(frame)
        .map_err(unreadable)?
        .take(BODY_BYTES_MAX as u64 + 1)
        .read_to_end(&mut body)
        .map_err(unreadable)?;
    if body.len() > BODY_BYTES_MAX {
        return Err(DecodeError::new("it decompresses to more than its limit"));
    }
    Ok(body)
}

/// Seals `body` and stores it durably.
///
/// # Errors
/// When the store fails or the document is too large.
pub fn write_document(
    store: &dyn ObjectStore,
    vault: &Vault,
    key: ObjectKey,
    body: &[u8],
) -> Result<u64, ObjectError> {
    let object = seal_document(vault, key, body).in_object(key, "document")?;
    store.put(&key, &object)?;
    Ok(object.len() as u64)
}

/// Reads a document and returns its body.
///
/// # Errors
/// When it is missing, unreadable or damaged.
pub fn read_document(
    store: &dyn ObjectStore,
    vault: &Vault,
    key: ObjectKey,
) -> Result<Vec<u8>, ObjectError> {
    Ok(read_document_and_epoch(store, vault, key)?.0)
}

/// Reads a document and returns its body and the epoch that it was sealed in.
///
/// # Errors
/// As [`read_document`].
pub fn read_document_and_epoch(
    store: &dyn ObjectStore,
    vault: &Vault,
    key: ObjectKey,
) -> Result<(Vec<u8>, u32), ObjectError> {
    let object = store.get(&key, DOCUMENT_BYTES_MAX)?;
    open_document_and_epoch(vault, key, object)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::object::{ObjectId, ObjectKind};
    use zeroize::Zeroizing;

    #[test]
    fn bodies_come_back_and_damage_is_seen() {
        for padded in [false, true] {
            let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
            let vault = Vault::new(ObjectId([1; 16]), secrets, padded);
            let key = ObjectKey::new(ObjectKind::Snapshot, ObjectId([2; 16]));
            for body in [&b""[..], b"x", &[5; 5000]] {
                let object = seal_document(&vault, key, body).unwrap();
                let opened = open_document(&vault, key, object.clone()).unwrap();
                assert_eq!(opened, body);
                for place in 0..object.len() {
                    let mut damaged = object.clone();
                    damaged[place] ^= 0x10;
                    assert!(open_document(&vault, key, damaged).is_err(), "byte {place}");
                    assert!(open_document(&vault, key, object[..place].to_vec()).is_err());
                }
                let mut longer = object.clone();
                longer.push(0);
                assert!(open_document(&vault, key, longer).is_err());
            }
        }
    }
}
