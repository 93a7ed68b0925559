//! Which epochs there are, and which of their secrets a slot gives (docs/format/v1.md, §5.2).
//!
//! Enters: the listing of `epochs/`, the secrets of a slot. Leaves: the data secrets of all epochs
//! that the slot has a part in, and a way to look up others when something sealed in them is met
//! ([`EpochFinder`]): the epochs of clients that can only write, of which there may be thousands, and
//! rotations that came after the repository was opened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine::format::{DecodeError, is_writer_epoch};
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, StoreError};

use super::epoch::{EPOCH_BYTES_MAX, Epoch, Holds, epoch_of, id_of};
use super::exchange::{PublicKey, public_key};
use super::secrets::{Secret, Secrets};

/// Most rotation objects that count, the newest ones. Each is read when a repository is opened.
pub(crate) const ROTATIONS_MAX: usize = 512;

/// Bits of an epoch's number that are random: the others count, so that a later rotation has the
/// higher number, and of two at the same time the numbers differ.
const RANDOM_BITS: u32 = 16;

/// What there is under `epochs/`.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// Rotations, ascending by epoch.
    pub rotations: Vec<Epoch>,
    /// Objects that can't be read, and why.
    pub damaged: Vec<(ObjectId, DecodeError)>,
    /// The newest epoch of those; 0 if there are none.
    pub newest_damaged: u32,
    /// Epochs of clients that can only write.
    pub runs: usize,
}

impl Epochs {
    /// Lists all, and reads the rotations.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn load(store: &dyn ObjectStore) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let mut ids = Vec::new();
        store.list(
            ObjectKind::Epoch,
            &mut |id, _| match is_writer_epoch(epoch_of(id)) {
                true => found.runs += 1,
                false => ids.push(id),
            },
        )?;
        ids.sort_unstable();
        let older = ids.len().saturating_sub(ROTATIONS_MAX);
        for id in ids.split_off(older) {
            match read(store, id)? {
                Some(Ok(epoch)) => found.rotations.push(epoch),
                Some(Err(reason)) => {
                    found.newest_damaged = found.newest_damaged.max(epoch_of(id));
                    found.damaged.push((id, reason));
                }
                None => {}
            }
        }
        Ok(found)
    }

    /// The ids of the rotations, ascending.
    pub fn rotation_ids(&self) -> Vec<ObjectId> {
        let keys = self.rotations.iter().map(Epoch::key);
        keys.map(|key| key.id).collect()
    }

    /// Takes into `secrets` the data secrets of all rotations that a slot has a part in.
    pub fn extend(
        &self,
        repository: ObjectId,
        secrets: &mut Secrets,
        slot: ObjectId,
        slot_key: Option<&Secret>,
    ) {
        let Some(slot_key) = slot_key else {
            return;
        };
        for rotation in &self.rotations {
            if secrets.has_epoch(rotation.epoch()) {
                continue;
            }
            let before = rotation.before(slot);
            let Some(pair) = before.and_then(|before| secrets.recipient(repository, before)) else {
                continue;
            };
            let holder = public_key(&pair);
            let opened = rotation.open(repository, slot, slot_key, holder, Holds::Secret);
            if let Some(secret) = opened {
                secrets.add_epoch(rotation.epoch(), secret);
            }
        }
    }

    /// The newest rotation that was made without this slot's holder, if one is newer than what it has.
    pub fn newer_than(&self, secrets: &Secrets) -> Option<&Epoch> {
        let newest = self.rotations.last()?;
        (newest.epoch() > secrets.newest_epoch()).then_some(newest)
    }
}

/// The epoch object of that id; nothing when it is gone.
fn read(
    store: &dyn ObjectStore,
    id: ObjectId,
) -> Result<Option<Result<Epoch, DecodeError>>, StoreError> {
    let key = ObjectKey::new(ObjectKind::Epoch, id);
    match store.get(&key, EPOCH_BYTES_MAX) {
        Ok(bytes) => Ok(Some(Epoch::parse(id, &bytes))),
        Err(error) if error.is_missing() => Ok(None),
        Err(StoreError::TooLong { object_bytes, .. }) => Ok(Some(Err(DecodeError::new(format!(
            "it has {object_bytes} bytes, at most {EPOCH_BYTES_MAX} make sense"
        ))))),
        Err(error) => Err(error),
    }
}

/// The id of the rotation after epoch `before`; nothing when numbers are used up.
pub(crate) fn next_rotation(before: u32) -> Option<ObjectId> {
    let counted = (before >> RANDOM_BITS).checked_add(1)?;
    if is_writer_epoch(counted << RANDOM_BITS) || counted > u32::MAX >> RANDOM_BITS {
        return None;
    }
    let random = u32::from_be_bytes(ObjectId::random().0[..4].try_into().ok()?);
    let epoch = counted << RANDOM_BITS | random & ((1 << RANDOM_BITS) - 1);
    Some(id_of(epoch))
}

/// Looks up the secrets of epochs that a repository was not opened with.
pub(crate) struct EpochFinder {
    pub store: Arc<dyn ObjectStore>,
    pub repository: ObjectId,
    pub slot: ObjectId,
    pub slot_key: Option<Secret>,
    /// The secrets that are known, more of them over time.
    pub secrets: Mutex<Secrets>,
    /// Ids of the epoch objects that were listed.
    pub listed: Mutex<BTreeMap<u32, ObjectId>>,
}

impl EpochFinder {
    /// The data secret of an epoch, if its holder may have it. Reads the store.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn find(&self, epoch: u32) -> Result<Option<Secret>, StoreError> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if !listed.contains_key(&epoch) {
            let store = self.store.as_ref();
            let mut now = BTreeMap::new();
            store.list(ObjectKind::Epoch, &mut |id, _| {
                // Of two objects the same number is not to be had; if somebody forged one, its seal tells.
                now.insert(epoch_of(id), id);
            })?;
            *listed = now;
        }
        let Some(&id) = listed.get(&epoch) else {
            return Ok(None);
        };
        drop(listed);
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_writer_epoch(epoch) {
            let epochs = Epochs::load(self.store.as_ref())?;
            let slot_key = self.slot_key.as_ref();
            epochs.extend(self.repository, &mut secrets, self.slot, slot_key);
            return Ok(secrets.epoch(epoch).cloned());
        }
        let Some(Ok(run)) = read(self.store.as_ref(), id)? else {
            return Ok(None);
        };
        let shared = secrets.shared_by_clients(self.repository);
        let pair_of = |epoch| secrets.recipient(self.repository, epoch);
        Ok(run.open_run(self.repository, &pair_of, &shared))
    }
}

/// The public key of an epoch, for which runs of clients that can only write are sealed.
pub(crate) fn recipient_of(
    secrets: &Secrets,
    repository: ObjectId,
    epoch: u32,
) -> Option<PublicKey> {
    secrets
        .recipient(repository, epoch)
        .map(|pair| public_key(&pair))
}

#[cfg(test)]
mod tests;
