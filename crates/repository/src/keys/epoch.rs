//! Epoch objects `epochs/ID`: the secret of one epoch, sealed for each who may have it
//! (docs/format/v1.md, §5.2).
//!
//! Two kinds. A *rotation* begins a new epoch for the keys that are there: whoever holds the epoch
//! before seals the new data secret for the key pair of each full slot, and the new epoch's public
//! key for each slot that can only write. A *run* of a client that can only write is an epoch of its
//! own, whose data secret it seals for the public key of the newest rotation and forgets.
//!
//! An epoch may have several rotation objects: a key that comes while it is begun gets one of its own.
//! The first four bytes of the object's id are its epoch, so that a listing says which there are
//! and nothing is read until it is needed.

use engine::format::{DecodeError, Decoder, is_writer_epoch};
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use zeroize::Zeroizing;

use super::KEY_SLOTS_MAX;
use super::exchange::{self, From, PublicKey, SEALED_BYTES, Sender};
use super::secrets::{FIRST_EPOCH, Secret};

const MAGIC: &[u8; 8] = b"1FOLDEPO";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = ObjectId::BYTES + 4 + SEALED_BYTES;
const CHECKSUM_BYTES: usize = 16;

/// Limit of an epoch object in bytes.
pub(super) const EPOCH_BYTES_MAX: u64 =
    (HEADER_BYTES + KEY_SLOTS_MAX * ENTRY_BYTES + CHECKSUM_BYTES) as u64;

/// What an entry is authenticated with: the repository, the object, its header, the slot, what it holds.
const ABOUT_CONTEXT: &[u8; 16] = b"onefold v1 epoch";

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The data secret of the epoch.
    Secret = 1,
    /// The public key that runs of clients that can only write are sealed for in this epoch.
    PublicKey = 2,
}

/// For whom something was sealed, or, in a run, by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    slot: ObjectId,
    /// The epoch whose key pair it rests on: of a rotation the sender's, which the slot was made with; of a
    /// run the recipient's.
    before: u32,
    sealed: [u8; SEALED_BYTES],
}

/// An epoch object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    id: ObjectId,
    /// When it was made, in seconds since 1970, by its maker's clock.
    created: i64,
    entries: Vec<Entry>,
}

/// What an epoch object says of itself.
struct Head {
    repository: ObjectId,
    id: ObjectId,
    created: i64,
    count: usize,
}

impl Head {
    fn bytes(&self) -> [u8; HEADER_BYTES] {
        let epoch = epoch_of(self.id);
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12] = kind_of(epoch);
        header[16..20].copy_from_slice(&epoch.to_le_bytes());
        header[20..24].copy_from_slice(&(self.count as u32).to_le_bytes());
        header[24..32].copy_from_slice(&self.created.to_le_bytes());
        header
    }

    fn about(&self, slot: ObjectId, before: u32, holds: Holds) -> Vec<u8> {
        let mut about = ABOUT_CONTEXT.to_vec();
        about.extend_from_slice(&self.repository.0);
        about.extend_from_slice(&self.id.0);
        about.extend_from_slice(&self.bytes());
        about.extend_from_slice(&slot.0);
        about.extend_from_slice(&before.to_le_bytes());
        about.push(holds as u8);
        about
    }
}

/// The number of the kind of object that an epoch has.
fn kind_of(epoch: u32) -> u8 {
    if is_writer_epoch(epoch) { 2 } else { 1 }
}

/// The epoch that an object of this id holds the secret of.
pub(crate) fn epoch_of(id: ObjectId) -> u32 {
    let [a, b, c, d, ..] = id.0;
    u32::from_be_bytes([a, b, c, d])
}

/// A new id for an object of that epoch.
pub(crate) fn id_of(epoch: u32) -> ObjectId {
    let mut id = ObjectId::random();
    id.0[..4].copy_from_slice(&epoch.to_be_bytes());
    id
}

/// Whom a rotation takes along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub slot: ObjectId,
    pub public: PublicKey,
    /// The newest epoch that the slot was made with.
    pub made_in: u32,
    pub is_write_only: bool,
}

impl Epoch {
    /// Begins epoch `id` for `members`, as a holder of the pairs of the epochs that they were made in.
    /// Nothing comes of it when one is not held, or a member's public key is not one.
    pub(crate) fn rotate(
        repository: ObjectId,
        id: ObjectId,
        created: i64,
        pair_of: &dyn Fn(u32) -> Option<Secret>,
        new: (&Secret, PublicKey),
        members: &[Member],
    ) -> Option<Self> {
        let (secret, public) = new;
        let count = members.len();
        let head = Head {
            repository,
            id,
            created,
            count,
        };
        let mut entries = Vec::with_capacity(count);
        for member in members {
            let (holds, value) = match member.is_write_only {
                false => (Holds::Secret, secret),
                true => (Holds::PublicKey, &Zeroizing::new(public.0)),
            };
            let (slot, before) = (member.slot, member.made_in);
            let about = head.about(slot, before, holds);
            let sender = pair_of(before)?;
            let sealed = exchange::seal(value, member.public, &Sender::Pair(&sender), &about)?;
            entries.push(Entry {
                slot,
                before,
                sealed,
            });
        }
        Some(Self {
            id,
            created,
            entries,
        })
    }

    /// The epoch of a run of slot `writer`: its secret for the holders of the epoch `before`, whose
    /// public key is given, proven by what all clients know.
    #[cfg(test)]
    pub(crate) fn begin_run(
        repository: ObjectId,
        id: ObjectId,
        created: i64,
        to: (u32, PublicKey),
        secret: &Secret,
        by: (ObjectId, &Secret),
    ) -> Option<Self> {
        let (before, public) = to;
        let (slot, shared) = by;
        let head = Head {
            repository,
            id,
            created,
            count: 1,
        };
        let about = head.about(slot, before, Holds::Secret);
        let sealed = exchange::seal(secret, public, &Sender::Shared(shared), &about)?;
        let entry = Entry {
            slot,
            before,
            sealed,
        };
        Some(Self {
            id,
            created,
            entries: vec![entry],
        })
    }

    /// Its epoch.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        epoch_of(self.id)
    }

    /// When it was made, in seconds since 1970.
    #[must_use]
    pub fn created(&self) -> i64 {
        self.created
    }

    /// The slots that it was made for; of a run the one that made it.
    pub fn slots(&self) -> impl Iterator<Item = ObjectId> {
        self.entries.iter().map(|entry| entry.slot)
    }

    /// The epoch that a slot's entry rests on; of a run the one that it is sealed for.
    pub(super) fn before(&self, slot: ObjectId) -> Option<u32> {
        Some(self.entry(slot)?.before)
    }

    fn entry(&self, slot: ObjectId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.slot == slot)
    }

    fn about(&self, repository: ObjectId, entry: &Entry, holds: Holds) -> Vec<u8> {
        let head = Head {
            repository,
            id: self.id,
            created: self.created,
            count: self.entries.len(),
        };
        head.about(entry.slot, entry.before, holds)
    }

    /// What a rotation holds for a slot, by the slot's secret and the public key of the epoch that its entry
    /// rests on.
    pub(super) fn open(
        &self,
        repository: ObjectId,
        slot: ObjectId,
        slot_key: &Secret,
        holder: PublicKey,
        holds: Holds,
    ) -> Option<Secret> {
        let entry = self.entry(slot)?;
        let about = self.about(repository, entry, holds);
        exchange::open(&entry.sealed, slot_key, &From::Holder(holder), &about)
    }

    /// The secret of a run, by the pairs of epochs and what all clients know.
    pub(super) fn open_run(
        &self,
        repository: ObjectId,
        pair_of: &dyn Fn(u32) -> Option<Secret>,
        shared: &Secret,
    ) -> Option<Secret> {
        let [entry] = &self.entries[..] else {
            return None;
        };
        let about = self.about(repository, entry, Holds::Secret);
        let pair = pair_of(entry.before)?;
        exchange::open(&entry.sealed, &pair, &From::Shared(shared), &about)
    }

    /// The object that it is, or is to be.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(ObjectKind::Epoch, self.id)
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = Head {
            repository: ObjectId([0; 16]), // It is not in the header.
            id: self.id,
            created: self.created,
            count: self.entries.len(),
        };
        let mut bytes = head.bytes().to_vec();
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.slot.0);
            bytes.extend_from_slice(&entry.before.to_le_bytes());
            bytes.extend_from_slice(&entry.sealed);
        }
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(&checksum.as_bytes()[..CHECKSUM_BYTES]);
        bytes
    }

    /// Reads the stored form of object `id`.
    ///
    /// # Errors
    /// When the bytes are damaged, or of a version that is not known.
    pub fn parse(id: ObjectId, bytes: &[u8]) -> Result<Self, DecodeError> {
        let covered = bytes
            .len()
            .checked_sub(CHECKSUM_BYTES)
            .filter(|&length| length >= HEADER_BYTES)
            .ok_or_else(|| DecodeError::new(format!("it has only {} bytes", bytes.len())))?;
        let (covered, checksum) = bytes.split_at(covered);
        if blake3::hash(covered).as_bytes()[..CHECKSUM_BYTES] != *checksum {
            return Err(DecodeError::new("its checksum does not match its bytes"));
        }
        let mut decoder = Decoder::new(covered);
        if decoder.take(MAGIC.len())? != MAGIC {
            return Err(DecodeError::new("it does not begin like an epoch"));
        }
        let version = decoder.u32()?;
        if version != VERSION {
            return Err(DecodeError::new(format!("it is of version {version}")));
        }
        let kind = decoder.u8()?;
        Decoder::new(decoder.take(3)?).finish_zero()?;
        let epoch = decoder.u32()?;
        if epoch != epoch_of(id) || kind != kind_of(epoch) || epoch <= FIRST_EPOCH {
            return Err(DecodeError::new(format!(
                "it is of kind {kind} and names epoch {epoch}, which is not that of its id"
            )));
        }
        let count = decoder.u32()? as usize;
        let created = i64::from_le_bytes(decoder.array()?);
        let most = if kind == 1 { KEY_SLOTS_MAX } else { 1 };
        if !(1..=most).contains(&count) || decoder.rest().len() != count * ENTRY_BYTES {
            return Err(DecodeError::new(format!(
                "{count} entries are announced in {} bytes",
                decoder.rest().len()
            )));
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let slot = ObjectId(decoder.array()?);
            let before = decoder.u32()?;
            if before < FIRST_EPOCH || is_writer_epoch(before) || before >= epoch {
                return Err(DecodeError::new(format!("it rests on epoch {before}")));
            }
            let sealed = decoder.array()?;
            entries.push(Entry {
                slot,
                before,
                sealed,
            });
        }
        Ok(Self {
            id,
            created,
            entries,
        })
    }
}

const _: () = assert!(HEADER_BYTES == 24 + 8);

#[cfg(test)]
mod tests;
