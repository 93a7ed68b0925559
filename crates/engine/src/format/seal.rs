//! Sealing of objects (docs/format/v1.md, §3): every piece of an object is encrypted and
//! authenticated on its own with AES-256-GCM.
//!
//! The key is derived for each object from the secret of its epoch and the object's id, the
//! nonce is a counter (the piece number), and the associated data names repository, kind,
//! object and piece: a piece can't be moved, swapped or reused elsewhere without notice.
//! An object id is random and sealed once, so no (key, nonce) pair ever repeats.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::object::{ObjectId, ObjectKey, ObjectKind, StoreError};

/// Bytes that sealing adds to a piece.
pub const SEAL_TAG_BYTES: usize = 16;

/// Bytes of the length tag at the end of containers and index runs (MACS, §III-B):
/// nonce (12), sealed length (4), authentication (16).
pub const LENGTH_TAG_BYTES: usize = 32;

/// Derivation context of object keys.
const OBJECT_KEY_CONTEXT: &str = "onefold v1 object key";

/// Why sealed bytes do not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The bytes are damaged, of another object or place, or sealed under another key.
    #[error("the seal does not match the bytes")]
    NotAuthentic,
    /// Not even the header is that of such an object.
    #[error("the header is not one of this kind of object")]
    BadHeader,
    /// There is no secret for the epoch that the header names.
    #[error("no secret for epoch {epoch}")]
    UnknownEpoch {
        /// The epoch named.
        epoch: u32,
    },
    /// The secret of the epoch that the header names could not be looked up just now.
    #[error("the secret of epoch {epoch} can't be had: {reason}")]
    Unreachable {
        /// The epoch named.
        epoch: u32,
        /// What the store said.
        reason: io::ErrorKind,
    },
}

/// The secret of an epoch.
type Secret = Zeroizing<[u8; 32]>;

/// Looks up the secret of an epoch that a vault was not made with; nothing where there is none for its
/// holder. It may read the store.
pub type FindSecret = Box<dyn Fn(u32) -> Result<Option<Secret>, StoreError> + Send + Sync>;

/// Epochs from here on are those of clients that can only write (docs/format/v1.md, §5.2): one for each of
/// their runs. What is sealed in one is read, and trusted no further than the client that wrote it.
pub const WRITER_EPOCHS_FROM: u32 = 1 << 31;

/// Does a client that can only write seal in that epoch?
#[must_use]
pub fn is_writer_epoch(epoch: u32) -> bool {
    epoch >= WRITER_EPOCHS_FROM
}

/// The data secrets of a repository: makes the sealer of each object.
pub struct Vault {
    repository: [u8; 16],
    secrets: BTreeMap<u32, Secret>,
    padded: bool,
    /// Looks up others, which are kept once found.
    find: Option<FindSecret>,
    found: Mutex<BTreeMap<u32, Secret>>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault")
            .field("repository", &ObjectId(self.repository))
            .field("epochs", &self.secrets.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Vault {
    /// A vault for the objects of `repository`. `padded` says whether object lengths are hidden
    /// (encrypted repositories).
    ///
    /// # Panics
    /// Without any secret: a repository has at least the one of its first epoch.
    #[must_use]
    pub fn new(
        repository: ObjectId,
        secrets: BTreeMap<u32, Zeroizing<[u8; 32]>>,
        padded: bool,
    ) -> Self {
        assert!(!secrets.is_empty(), "a vault needs the secret of an epoch");
        Self {
            repository: repository.0,
            secrets,
            padded,
            find: None,
            found: Mutex::default(),
        }
    }

    /// The same, which looks up the secrets of other epochs when they are needed to open something. New
    /// objects are sealed in the newest epoch that the vault was made with.
    #[must_use]
    pub fn finding(mut self, find: FindSecret) -> Self {
        self.find = Some(find);
        self
    }

    /// The epoch that new objects are sealed in.
    ///
    /// # Panics
    /// Never: there is a secret, [`Vault::new`] sees to it.
    #[must_use]
    pub fn sealing_epoch(&self) -> u32 {
        let (&epoch, _) = self
            .secrets
            .last_key_value()
            .expect("Vault::new asserts a secret");
        epoch
    }

    /// The secret of an epoch, looked up if need be.
    fn secret(&self, epoch: u32) -> Result<Secret, SealError> {
        if let Some(secret) = self.secrets.get(&epoch) {
            return Ok(secret.clone());
        }
        let Some(find) = &self.find else {
            return Err(SealError::UnknownEpoch { epoch });
        };
        // Held while it is looked up: what several threads want is read once.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(secret) = found.get(&epoch) {
            return Ok(secret.clone());
        }
        match find(epoch) {
            Ok(Some(secret)) => {
                found.insert(epoch, secret.clone());
                Ok(secret)
            }
            Ok(None) => Err(SealError::UnknownEpoch { epoch }),
            Err(error) => {
                let reason = match &error {
                    StoreError::Io { source, .. } => source.kind(),
                    _ => io::ErrorKind::Other,
                };
                Err(SealError::Unreachable { epoch, reason })
            }
        }
    }

    /// Are object lengths hidden by padding?
    #[must_use]
    pub fn is_padded(&self) -> bool {
        self.padded
    }

    /// The sealer of a new object, in the newest epoch.
    #[must_use]
    pub fn new_object(&self, key: ObjectKey) -> ObjectSealer {
        let (&epoch, secret) = self
            .secrets
            .last_key_value()
            .expect("Vault::new asserts a secret");
        self.sealer(key, epoch, secret)
    }

    /// The sealer of an object that is there, by the nonce in its header.
    ///
    /// # Errors
    /// [`SealError::BadHeader`] or [`SealError::UnknownEpoch`].
    pub fn object(&self, key: ObjectKey, header_nonce: &[u8]) -> Result<ObjectSealer, SealError> {
        let Some((magic, rest)) = header_nonce.split_first_chunk::<4>() else {
            return Err(SealError::BadHeader);
        };
        let Some((epoch, piece)) = rest.split_first_chunk::<4>() else {
            return Err(SealError::BadHeader);
        };
        if *magic != magic_of(key.kind) || piece != [0; 4] {
            return Err(SealError::BadHeader);
        }
        let epoch = u32::from_le_bytes(*epoch);
        let secret = self.secret(epoch)?;
        Ok(self.sealer(key, epoch, &secret))
    }

    fn sealer(&self, key: ObjectKey, epoch: u32, secret: &[u8; 32]) -> ObjectSealer {
        let mut hasher = blake3::Hasher::new_derive_key(OBJECT_KEY_CONTEXT);
        hasher.update(secret);
        hasher.update(&self.repository);
        hasher.update(&[key.kind as u8]);
        hasher.update(&key.id.0);
        let object_key = Zeroizing::new(*hasher.finalize().as_bytes());
        let unbound =
            UnboundKey::new(&AES_256_GCM, &*object_key).expect("AES-256 takes a key of 32 bytes");
        let mut associated = [0u8; 37];
        associated[..16].copy_from_slice(&self.repository);
        associated[16] = key.kind as u8;
        associated[17..33].copy_from_slice(&key.id.0);
        ObjectSealer {
            key: LessSafeKey::new(unbound),
            magic: magic_of(key.kind),
            epoch,
            associated,
        }
    }
}

/// The first four bytes of every nonce of a kind of object; the last digit is its version.
fn magic_of(kind: ObjectKind) -> [u8; 4] {
    match kind {
        ObjectKind::Config => *b"1FG1",
        ObjectKind::Key => *b"1FK1",
        ObjectKind::Container => *b"1FC1",
        ObjectKind::Index => *b"1FI1",
        ObjectKind::Snapshot => *b"1FS1",
        ObjectKind::Remap => *b"1FR1",
        ObjectKind::Run => *b"1FU1",
        ObjectKind::Condemned => *b"1FD1",
        ObjectKind::Expired => *b"1FE1",
        ObjectKind::Epoch => *b"1FO1",
    }
}

/// Seals and opens the pieces of one object.
pub struct ObjectSealer {
    key: LessSafeKey,
    magic: [u8; 4],
    epoch: u32,
    associated: [u8; 37],
}

impl fmt::Debug for ObjectSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectSealer")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl ObjectSealer {
    /// The epoch that its object is sealed in.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The nonce of a piece; that of piece 0 stands in the object as its header.
    #[must_use]
    pub fn nonce(&self, piece: u32) -> [u8; 12] {
        let mut nonce = [0u8; 12];
        nonce[..4].copy_from_slice(&self.magic);
        nonce[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        nonce[8..].copy_from_slice(&piece.to_le_bytes());
        nonce
    }

    fn associated(&self, piece: u32) -> Aad<[u8; 37]> {
        let mut associated = self.associated;
        associated[33..].copy_from_slice(&piece.to_le_bytes());
        Aad::from(associated)
    }

    /// Seals `plain[from..]` in place and appends the tag.
    ///
    /// # Panics
    /// When `from` is past the end, or the piece exceeds AES-GCM's 64 GiB.
    pub fn seal(&self, piece: u32, buffer: &mut Vec<u8>, from: usize) {
        let nonce = Nonce::assume_unique_for_key(self.nonce(piece));
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, self.associated(piece), &mut buffer[from..])
            .expect("a piece is far below AES-GCM's 64 GiB");
        buffer.extend_from_slice(tag.as_ref());
    }

    /// Opens a sealed piece in place; what is left of `sealed` is its plaintext.
    ///
    /// # Errors
    /// [`SealError::NotAuthentic`].
    pub fn open(&self, piece: u32, sealed: &mut Vec<u8>) -> Result<(), SealError> {
        let length = self.open_slice(piece, sealed)?.len();
        sealed.truncate(length);
        Ok(())
    }

    /// Opens a sealed piece in place and returns the plaintext at its front.
    ///
    /// # Errors
    /// [`SealError::NotAuthentic`].
    pub fn open_slice<'a>(
        &self,
        piece: u32,
        sealed: &'a mut [u8],
    ) -> Result<&'a mut [u8], SealError> {
        let nonce = Nonce::assume_unique_for_key(self.nonce(piece));
        self.key
            .open_in_place(nonce, self.associated(piece), sealed)
            .map_err(|_| SealError::NotAuthentic)
    }

    /// The 32-byte length tag (MACS, §III-B) that ends a container or an index run:
    /// the nonce of piece 0, the sealed length, its authentication.
    #[must_use]
    pub fn length_tag(&self, length: u32) -> [u8; LENGTH_TAG_BYTES] {
        let mut sealed = length.to_le_bytes().to_vec();
        self.seal(0, &mut sealed, 0);
        let mut tag = [0u8; LENGTH_TAG_BYTES];
        tag[..12].copy_from_slice(&self.nonce(0));
        tag[12..].copy_from_slice(&sealed);
        tag
    }

    /// Opens the length in a tag whose nonce made this sealer.
    ///
    /// # Errors
    /// [`SealError::NotAuthentic`].
    pub fn open_length_tag(&self, tag: &[u8; LENGTH_TAG_BYTES]) -> Result<u32, SealError> {
        let mut sealed = [0u8; 20];
        sealed.copy_from_slice(&tag[12..]);
        let plain = self.open_slice(0, &mut sealed)?;
        let mut length = [0u8; 4];
        length.copy_from_slice(plain);
        Ok(u32::from_le_bytes(length))
    }
}

const _: () = assert!(LENGTH_TAG_BYTES == 12 + 4 + SEAL_TAG_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> Vault {
        let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32])), (2, Zeroizing::new([8; 32]))]);
        Vault::new(ObjectId([1; 16]), secrets, true)
    }

    fn key(id: u8) -> ObjectKey {
        ObjectKey::new(ObjectKind::Container, ObjectId([id; 16]))
    }

    #[test]
    fn pieces_open_only_where_they_were_sealed() {
        let vault = vault();
        let sealer = vault.new_object(key(1));
        let mut sealed = b"head chunk".to_vec();
        sealer.seal(3, &mut sealed, 5);
        let piece = sealed[5..].to_vec();
        assert_eq!(piece.len(), 5 + SEAL_TAG_BYTES);

        let opener = vault.object(key(1), &sealer.nonce(0)).unwrap();
        let mut open = piece.clone();
        opener.open(3, &mut open).unwrap();
        assert_eq!(open, b"chunk");
        assert_eq!(
            opener.open(4, &mut piece.clone()),
            Err(SealError::NotAuthentic)
        );
        let other = vault.object(key(2), &sealer.nonce(0)).unwrap();
        assert_eq!(
            other.open(3, &mut piece.clone()),
            Err(SealError::NotAuthentic)
        );
        for bit in 0..piece.len() * 8 {
            let mut damaged = piece.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(3, &mut damaged), Err(SealError::NotAuthentic));
        }
        assert_eq!(
            opener.open(3, &mut vec![0; 3]),
            Err(SealError::NotAuthentic)
        );
    }

    #[test]
    fn headers_are_checked() {
        let vault = vault();
        let nonce = vault.new_object(key(1)).nonce(0);
        assert_eq!(nonce[4], 2, "the newest epoch seals");
        let run = ObjectKey::new(ObjectKind::Index, ObjectId([1; 16]));
        assert_eq!(vault.object(run, &nonce).unwrap_err(), SealError::BadHeader);
        assert_eq!(
            vault.object(key(1), &nonce[..7]).unwrap_err(),
            SealError::BadHeader
        );
        let mut later = nonce;
        later[4] = 9;
        assert_eq!(
            vault.object(key(1), &later).unwrap_err(),
            SealError::UnknownEpoch { epoch: 9 }
        );
    }

    #[test]
    fn secrets_of_other_epochs_are_looked_up_once() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicU32, Ordering};
        let lookups = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&lookups);
        let vault = vault().finding(Box::new(move |epoch| {
            counted.fetch_add(1, Ordering::Relaxed);
            match epoch {
                9 => Ok(Some(Zeroizing::new([9; 32]))),
                10 => Ok(None),
                _ => Err(StoreError::Io {
                    action: "read",
                    subject: "an epoch".to_owned(),
                    location: "here".to_owned(),
                    source: io::ErrorKind::TimedOut.into(),
                }),
            }
        }));
        let writer = Vault::new(
            ObjectId([1; 16]),
            BTreeMap::from([(9, Zeroizing::new([9; 32]))]),
            true,
        );
        let sealer = writer.new_object(key(1));
        let mut sealed = b"chunk".to_vec();
        sealer.seal(0, &mut sealed, 0);
        for _ in 0..3 {
            let opener = vault.object(key(1), &sealer.nonce(0)).unwrap();
            assert_eq!(opener.epoch(), 9);
            opener.open(0, &mut sealed.clone()).unwrap();
        }
        assert_eq!(lookups.load(Ordering::Relaxed), 1);
        assert_eq!(vault.sealing_epoch(), 2, "what was found seals nothing");
        let mut other = sealer.nonce(0);
        other[4] = 10;
        let unknown = SealError::UnknownEpoch { epoch: 10 };
        assert_eq!(vault.object(key(1), &other).unwrap_err(), unknown);
        other[4] = 11;
        let unreachable = SealError::Unreachable {
            epoch: 11,
            reason: io::ErrorKind::TimedOut,
        };
        assert_eq!(vault.object(key(1), &other).unwrap_err(), unreachable);
    }

    #[test]
    fn length_tags() {
        let vault = vault();
        let sealer = vault.new_object(key(1));
        let tag = sealer.length_tag(1234);
        let opener = vault.object(key(1), &tag[..12]).unwrap();
        assert_eq!(opener.open_length_tag(&tag), Ok(1234));
        let mut damaged = tag;
        damaged[13] ^= 1;
        assert_eq!(
            opener.open_length_tag(&damaged),
            Err(SealError::NotAuthentic)
        );
    }
}
