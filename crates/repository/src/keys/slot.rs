//! Key slots: the secrets of a repository wrapped for one holder (docs/format/v1.md, §5).
//!
//! Enters: the bytes of an object `keys/ID`, at most 64 KiB of payload, from a store that may
//! be hostile. Leaves: [`Secrets`], or an error that tells damage (the checksum), a password
//! that does not fit (the seal under an intact checksum) and what this version can't read apart.
//!
//! A slot under a password is AES-256-GCM with a zero nonce: its key comes from a random salt
//! and is used once. Header, repository and slot id are authenticated with it, so a slot can't
//! be moved to another repository or asked for less work than it was made with. A label (version
//! 2) is sealed on its own. A slot of version 3 has a key pair, so that a new epoch can be sealed for its
//! holder by others (`epoch.rs`).

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use engine::format::{DecodeError, Decoder, SEAL_TAG_BYTES};
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};
use zeroize::Zeroizing;

use super::KeyError;
use super::exchange::public_key;
use super::label::{self, LABEL_BYTES_MAX, LabelError, SlotLabel, StoredLabel};
use super::password::{Argon2Cost, Password, SALT_BYTES, StretchError, stretch};
use super::secrets::{Secret, Secrets, random_secret};

const MAGIC: &[u8; 8] = b"1FOLDKEY";
/// Without a label.
const VERSION: u32 = 1;
/// With one. Read, and not written any more.
#[cfg(test)]
const VERSION_LABELLED: u32 = 2;
/// With a label and a key pair of its own: its secret among those wrapped, its public key in the label.
const VERSION_PAIRED: u32 = 3;
const HEADER_BYTES: usize = 64;
const CHECKSUM_BYTES: usize = 16;
const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// Limit of a whole slot object in bytes.
pub(super) const SLOT_BYTES_MAX: u64 =
    (HEADER_BYTES + PAYLOAD_BYTES_MAX + LABEL_BYTES_MAX + CHECKSUM_BYTES) as u64;

/// Least bytes of a payload: a count of no secrets.
const PLAIN_BYTES_MIN: usize = 2;

/// Length of the associated data: header, repository id, slot id.
const ASSOCIATED_BYTES: usize = HEADER_BYTES + 2 * ObjectId::BYTES;

/// What it takes to open a slot; the number is its stored type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlotLock {
    /// Nothing: anybody who reads it holds the secrets (unencrypted repositories).
    Plain,
    /// A password, stretched at this cost.
    Password(Argon2Cost),
}

impl SlotLock {
    /// What a guess at its password costs; nothing where there is none.
    #[must_use]
    pub fn cost(self) -> Option<Argon2Cost> {
        match self {
            SlotLock::Plain => None,
            SlotLock::Password(cost) => Some(cost),
        }
    }

    fn number(self) -> u8 {
        match self {
            SlotLock::Plain => 0,
            SlotLock::Password(_) => 1,
        }
    }
}

/// What a slot under a password is made of.
struct Sealing {
    plain: Zeroizing<Vec<u8>>,
    lock: SlotLock,
    version: u32,
    /// Sealed; empty where there is none.
    label: Vec<u8>,
    salt: [u8; SALT_BYTES],
}

/// A key slot as it is stored.
pub struct KeySlot {
    id: ObjectId,
    lock: SlotLock,
    header: [u8; HEADER_BYTES],
    payload: Zeroizing<Vec<u8>>,
    /// Sealed; empty where there is none.
    label: Vec<u8>,
}

impl fmt::Debug for KeySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySlot")
            .field("id", &self.id)
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}

impl KeySlot {
    /// Wraps `secrets` under a password, without a label. `id` must be new and random.
    ///
    /// # Errors
    /// [`KeyError::EmptyPassword`], [`KeyError::RefusedCost`], [`KeyError::OutOfMemory`].
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe can go on then.
    pub fn seal_password(
        secrets: &Secrets,
        password: &Password,
        cost: Argon2Cost,
        repository: ObjectId,
        id: ObjectId,
    ) -> Result<Self, KeyError> {
        let sealing = Sealing {
            plain: secrets.encode(),
            lock: SlotLock::Password(cost),
            version: VERSION,
            label: Vec::new(),
            salt: random_salt(),
        };
        Self::seal(sealing, password, repository, id)
    }

    /// The same with a label, and with a key pair of its own: others can hand new epochs to its holder.
    ///
    /// # Errors
    /// As [`KeySlot::seal_password`], and [`KeyError::LongLabel`].
    ///
    /// # Panics
    /// As [`KeySlot::seal_password`].
    pub fn seal_labelled(
        secrets: &Secrets,
        password: &Password,
        cost: Argon2Cost,
        repository: ObjectId,
        id: ObjectId,
        label: &SlotLabel,
    ) -> Result<Self, KeyError> {
        let slot_key = random_secret();
        let sealing = Sealing {
            plain: secrets.encode_with(Some(&slot_key)),
            lock: SlotLock::Password(cost),
            version: VERSION_PAIRED,
            label: Self::paired_label(secrets, repository, id, label, &slot_key)?,
            salt: random_salt(),
        };
        Self::seal(sealing, password, repository, id)
    }

    /// The sealed label of a slot with this secret of its own.
    fn paired_label(
        secrets: &Secrets,
        repository: ObjectId,
        id: ObjectId,
        label: &SlotLabel,
        slot_key: &Secret,
    ) -> Result<Vec<u8>, KeyError> {
        let stored = StoredLabel {
            label: label.clone(),
            rotates: Some((public_key(slot_key), secrets.newest_epoch())),
        };
        let key = ObjectKey::new(ObjectKind::Key, id);
        label::seal(&secrets.vault(repository, true), key, &stored)
            .map_err(|reason| KeyError::LongLabel { reason })
    }

    fn seal(
        sealing: Sealing,
        password: &Password,
        repository: ObjectId,
        id: ObjectId,
    ) -> Result<Self, KeyError> {
        if password.is_empty() {
            return Err(KeyError::EmptyPassword);
        }
        let Sealing {
            plain,
            lock,
            version,
            label,
            salt,
        } = sealing;
        let cost = lock
            .cost()
            .expect("who seals under a password says at which cost");
        let payload_bytes = plain.len() + SEAL_TAG_BYTES;
        let header = header(version, lock, &salt, payload_bytes, label.len());
        let sealing_key = password_key(id, password, &salt, cost)?;
        // With room for the tag, so that no unwiped copy is left behind by growing.
        let mut payload = Zeroizing::new(Vec::with_capacity(payload_bytes));
        payload.extend_from_slice(&plain);
        let tag = sealing_key
            .seal_in_place_separate_tag(
                zero_nonce(),
                associated(&header, repository, id),
                &mut payload,
            )
            .expect("a slot is far below AES-GCM's 64 GiB");
        payload.extend_from_slice(tag.as_ref());
        Ok(Self {
            id,
            lock,
            header,
            payload,
            label,
        })
    }

    /// Puts `secrets` in the clear, for an unencrypted repository. `id` must be new and random.
    #[must_use]
    pub fn seal_plain(secrets: &Secrets, repository: ObjectId, id: ObjectId) -> Self {
        let payload = secrets.encode();
        Self {
            id,
            lock: SlotLock::Plain,
            header: header(
                VERSION,
                SlotLock::Plain,
                &plain_salt(repository),
                payload.len(),
                0,
            ),
            payload,
            label: Vec::new(),
        }
    }

    /// Reads the stored form of slot `id`.
    ///
    /// # Errors
    /// [`KeyError::DamagedSlot`], [`KeyError::UnsupportedSlot`] or [`KeyError::RefusedCost`].
    pub fn parse(id: ObjectId, bytes: &[u8]) -> Result<Self, KeyError> {
        let damaged = |reason| KeyError::DamagedSlot { slot: id, reason };
        let covered = checked(bytes).map_err(damaged)?;
        let mut decoder = Decoder::new(covered);
        let version = read_frame(&mut decoder).map_err(damaged)?;
        if !(VERSION..=VERSION_PAIRED).contains(&version) {
            return Err(unsupported(id, format!("it is of version {version}")));
        }
        let number = decoder.u8().map_err(damaged)?;
        // A label stands beside a password only.
        if number > 1 || (number == 0 && version != VERSION) {
            return Err(unsupported(id, format!("it is of type {number}")));
        }
        let rest = read_rest(&mut decoder, version).map_err(damaged)?;
        let Rest {
            cost,
            payload,
            label,
        } = rest;
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&covered[..HEADER_BYTES]);
        let lock = if number == 0 {
            // The cost, and what follows the repository id in the place of the salt.
            let mut reserved = header[16..28].iter().chain(&header[48..]);
            if !reserved.all(|&byte| byte == 0) {
                let reason = DecodeError::new("it is in the clear and yet has a cost or a salt");
                return Err(damaged(reason));
            }
            SlotLock::Plain
        } else {
            cost.check()
                .map_err(|reason| KeyError::RefusedCost { slot: id, reason })?;
            SlotLock::Password(cost)
        };
        Ok(Self {
            id,
            lock,
            header,
            payload: Zeroizing::new(payload.to_vec()),
            label: label.to_vec(),
        })
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let length = HEADER_BYTES + self.payload.len() + self.label.len() + CHECKSUM_BYTES;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.extend_from_slice(&self.header);
        bytes.extend_from_slice(&self.payload);
        bytes.extend_from_slice(&self.label);
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(&checksum.as_bytes()[..CHECKSUM_BYTES]);
        bytes
    }

    /// Stores the slot durably.
    ///
    /// # Errors
    /// [`KeyError::Store`].
    pub fn write(&self, store: &dyn ObjectStore) -> Result<(), KeyError> {
        store.put(&self.key(), &self.encode())?;
        Ok(())
    }

    /// Reads and parses slot `id`.
    ///
    /// # Errors
    /// [`KeyError::Store`], and as [`KeySlot::parse`].
    pub fn read(store: &dyn ObjectStore, id: ObjectId) -> Result<Self, KeyError> {
        let bytes = store.get(&ObjectKey::new(ObjectKind::Key, id), SLOT_BYTES_MAX)?;
        Self::parse(id, &Zeroizing::new(bytes))
    }

    /// The object that it is, or is to be.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(ObjectKind::Key, self.id)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// What it takes to open it.
    #[must_use]
    pub fn lock(&self) -> SlotLock {
        self.lock
    }

    /// Its label, if it has one. Any slot's secrets open it.
    ///
    /// # Errors
    /// When it is damaged, or sealed with a secret that is not at hand.
    pub fn label(
        &self,
        repository: ObjectId,
        secrets: &Secrets,
    ) -> Result<Option<SlotLabel>, LabelError> {
        let stored = self.stored_label(repository, secrets)?;
        Ok(stored.map(|stored| stored.label))
    }

    /// The same, with what others need to hand new epochs to its holder.
    pub(crate) fn stored_label(
        &self,
        repository: ObjectId,
        secrets: &Secrets,
    ) -> Result<Option<StoredLabel>, LabelError> {
        if self.label.is_empty() {
            return Ok(None);
        }
        let vault = secrets.vault(repository, true);
        let mut stored = label::open(&vault, self.key(), &self.label)?;
        if self.version() < VERSION_PAIRED {
            // It has no such pair, whatever the label says.
            stored.rotates = None;
        }
        Ok(Some(stored))
    }

    fn version(&self) -> u32 {
        let [a, b, c, d] = [8, 9, 10, 11].map(|at| self.header[at]);
        u32::from_le_bytes([a, b, c, d])
    }

    /// Opens a slot of `repository` that is in the clear.
    ///
    /// # Errors
    /// [`KeyError::PasswordRequired`] when it is not; [`KeyError::ForeignSlot`] when it is that
    /// of another repository; [`KeyError::UnsupportedSlot`].
    pub fn open_plain(&self, repository: ObjectId) -> Result<Secrets, KeyError> {
        match self.lock {
            SlotLock::Password(_) => Err(KeyError::PasswordRequired),
            SlotLock::Plain if self.header[32..] != plain_salt(repository) => {
                Err(KeyError::ForeignSlot { slot: self.id })
            }
            SlotLock::Plain => {
                Secrets::decode(&self.payload).map_err(|reason| self.unsupported(reason))
            }
        }
    }

    /// Opens a slot of `repository` with a password. Takes as long as its cost says.
    ///
    /// # Errors
    /// [`KeyError::WrongPassword`]; [`KeyError::NotEncrypted`] when it is in the clear;
    /// [`KeyError::OutOfMemory`]; [`KeyError::UnsupportedSlot`].
    pub fn open_password(
        &self,
        repository: ObjectId,
        password: &Password,
    ) -> Result<Secrets, KeyError> {
        Ok(self.open_with_key(repository, password)?.0)
    }

    /// The same, with the slot's own secret, where it has one.
    ///
    /// # Errors
    /// As [`KeySlot::open_password`].
    pub(crate) fn open_with_key(
        &self,
        repository: ObjectId,
        password: &Password,
    ) -> Result<(Secrets, Option<Secret>), KeyError> {
        let SlotLock::Password(cost) = self.lock else {
            return Err(KeyError::NotEncrypted);
        };
        let mut salt = [0; SALT_BYTES];
        salt.copy_from_slice(&self.header[32..]);
        let sealing_key = password_key(self.id, password, &salt, cost)?;
        let mut opened = self.payload.clone();
        let plain = sealing_key
            .open_in_place(
                zero_nonce(),
                associated(&self.header, repository, self.id),
                &mut opened,
            )
            .map_err(|_| KeyError::WrongPassword {
                slots_tried: 1,
                unusable: Vec::new(),
            })?;
        let decoded = match self.version() {
            VERSION_PAIRED => Secrets::decode_with(plain),
            _ => Secrets::decode(plain).map(|secrets| (secrets, None)),
        };
        decoded.map_err(|reason| self.unsupported(reason))
    }

    fn unsupported(&self, reason: DecodeError) -> KeyError {
        KeyError::UnsupportedSlot {
            slot: self.id,
            reason,
        }
    }
}

fn unsupported(slot: ObjectId, reason: String) -> KeyError {
    KeyError::UnsupportedSlot {
        slot,
        reason: DecodeError::new(reason),
    }
}

/// The bytes that the checksum at the end covers, once it matches. The checksum stands at the
/// end in every version, so that damage is told from a newer version.
fn checked(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let covered_bytes = bytes
        .len()
        .checked_sub(CHECKSUM_BYTES)
        .filter(|&length| length >= HEADER_BYTES)
        .ok_or_else(|| DecodeError::new(format!("it has only {} bytes", bytes.len())))?;
    let (covered, checksum) = bytes.split_at(covered_bytes);
    if blake3::hash(covered).as_bytes()[..CHECKSUM_BYTES] != *checksum {
        return Err(DecodeError::new("its checksum does not match its bytes"));
    }
    Ok(covered)
}

/// Checks the magic; returns the version.
fn read_frame(decoder: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    if decoder.take(MAGIC.len())? != MAGIC {
        return Err(DecodeError::new("it does not begin like a key slot"));
    }
    decoder.u32()
}

/// What follows the slot type.
struct Rest<'a> {
    cost: Argon2Cost,
    payload: &'a [u8],
    label: &'a [u8],
}

fn read_rest<'a>(decoder: &mut Decoder<'a>, version: u32) -> Result<Rest<'a>, DecodeError> {
    Decoder::new(decoder.take(1)?).finish_zero()?;
    let label_bytes = usize::from(decoder.u16()?);
    let fits = match version {
        VERSION => label_bytes == 0,
        _ => (1..=LABEL_BYTES_MAX).contains(&label_bytes),
    };
    if !fits {
        let reason = format!("a label of {label_bytes} bytes is announced");
        return Err(DecodeError::new(reason));
    }
    let cost = Argon2Cost {
        memory_kib: decoder.u32()?,
        passes: decoder.u32()?,
        lanes: decoder.u32()?,
    };
    let length = decoder.u32()? as usize;
    decoder.take(SALT_BYTES)?;
    let rest = decoder.rest();
    let is_there = rest.len().checked_sub(label_bytes) == Some(length);
    if !is_there || !(PLAIN_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&length) {
        return Err(DecodeError::new(format!(
            "a payload of {length} bytes and a label of {label_bytes} are announced, {} are there",
            rest.len()
        )));
    }
    let (payload, label) = rest.split_at(length);
    Ok(Rest {
        cost,
        payload,
        label,
    })
}

fn random_salt() -> [u8; SALT_BYTES] {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).expect("the operating system gives random bytes");
    salt
}

fn header(
    version: u32,
    lock: SlotLock,
    salt: &[u8; SALT_BYTES],
    payload_bytes: usize,
    label_bytes: usize,
) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12] = lock.number();
    header[14..16].copy_from_slice(&(label_bytes as u16).to_le_bytes());
    if let SlotLock::Password(cost) = lock {
        header[16..20].copy_from_slice(&cost.memory_kib.to_le_bytes());
        header[20..24].copy_from_slice(&cost.passes.to_le_bytes());
        header[24..28].copy_from_slice(&cost.lanes.to_le_bytes());
    }
    header[28..32].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
    header[32..].copy_from_slice(salt);
    header
}

/// What stands in the place of the salt in a slot in the clear: the repository that it is of,
/// so that one left over by an `init` that was cut off is not taken for a later repository's.
fn plain_salt(repository: ObjectId) -> [u8; SALT_BYTES] {
    let mut salt = [0; SALT_BYTES];
    salt[..ObjectId::BYTES].copy_from_slice(&repository.0);
    salt
}

fn password_key(
    slot: ObjectId,
    password: &Password,
    salt: &[u8; SALT_BYTES],
    cost: Argon2Cost,
) -> Result<LessSafeKey, KeyError> {
    let key = stretch(password, salt, cost).map_err(|error| match error {
        StretchError::Refused(reason) => KeyError::RefusedCost { slot, reason },
        StretchError::OutOfMemory => KeyError::OutOfMemory {
            slot,
            memory_kib: cost.memory_kib,
        },
    })?;
    let unbound = UnboundKey::new(&AES_256_GCM, &*key).expect("AES-256 takes a key of 32 bytes");
    Ok(LessSafeKey::new(unbound))
}

fn zero_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn associated(
    header: &[u8; HEADER_BYTES],
    repository: ObjectId,
    slot: ObjectId,
) -> Aad<[u8; ASSOCIATED_BYTES]> {
    let mut associated = [0; ASSOCIATED_BYTES];
    associated[..HEADER_BYTES].copy_from_slice(header);
    associated[HEADER_BYTES..HEADER_BYTES + 16].copy_from_slice(&repository.0);
    associated[HEADER_BYTES + 16..].copy_from_slice(&slot.0);
    Aad::from(associated)
}

const _: () = assert!(HEADER_BYTES == 32 + SALT_BYTES);
const _: () = assert!(ObjectId::BYTES == 16);
const _: () = assert!(LABEL_BYTES_MAX <= u16::MAX as usize);

#[cfg(test)]
mod tests;
