//! The passwords of a repository: which there are, and how one comes and goes.
//!
//! Enters: a store and a password. Leaves: key slots (`keys/ID`, docs/format/v1.md, §5), each with
//! all secrets under a password of its own.
//!
//! At every instant of a crash the repository opens with a password that somebody knows: a new slot
//! is durable, and has been opened again, before an old one is removed; the last slot is never
//! removed, and the one that opened the repository only when that is asked for.
//!
//! Whoever knew a password may have kept the secrets themselves: removing a slot keeps out who has
//! only the password.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use engine::format::Vault;
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};

use crate::config::{Config, Encryption, UnverifiedConfig};
use crate::keys::{
    Argon2Cost, Epoch, Epochs, FIRST_EPOCH, KEY_SLOTS_MAX, KeyError, KeySlot, LockedOut, Member,
    OpenedSecrets, Password, ROTATIONS_MAX, Secret, Secrets, SlotLabel, SlotLock, epoch_of, fits,
    id_of, next_rotation, open_secrets, random_secret, read_slots, recipient_of, remove_slot,
};
use crate::repository::RepositoryError;
use crate::timestamp::Timestamp;

/// How often keys are looked at again, when they change meanwhile.
const ROTATION_ROUNDS_MAX: usize = 8;

/// The key slots of a repository, opened with one of them.
pub struct Keyring {
    store: Arc<dyn ObjectStore>,
    config: Config,
    secrets: Secrets,
    slot_key: Option<Secret>,
    opened_by: ObjectId,
    locked_out: Option<LockedOut>,
    warnings: Vec<String>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("location", &self.store.location())
            .field("opened_by", &self.opened_by)
            .finish_non_exhaustive()
    }
}

/// What is known of a key slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// Its id.
    pub id: ObjectId,
    /// What it takes to open it.
    pub lock: SlotLock,
    /// Its label; nothing where it was made without one.
    pub label: Option<SlotLabel>,
    /// Did it open the repository now?
    pub is_current: bool,
    /// Does it open what is stored from now on? Nobody can tell of a key that an older version made.
    pub opens_newest: Option<bool>,
}

/// An epoch of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochInfo {
    /// Its number.
    pub epoch: u32,
    /// When it was begun; unknown of the first.
    pub created: Option<Timestamp>,
    /// The keys that it was begun for; unknown of the first.
    pub slots: Vec<ObjectId>,
    /// Is new data sealed in it?
    pub is_newest: bool,
    /// Can the key that opened the repository read what is sealed in it?
    pub is_open: bool,
}

/// What a rotation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The epoch that new data is sealed in.
    pub epoch: u32,
    /// The keys that can read it.
    pub slots: Vec<ObjectId>,
    /// The keys that can't: nobody could hand it to them.
    pub left_out: Vec<ObjectId>,
}

impl Keyring {
    /// Opens a repository for its keys.
    ///
    /// # Errors
    /// As [`crate::Repository::open`].
    pub fn open(
        store: Arc<dyn ObjectStore>,
        password: Option<&Password>,
    ) -> Result<Self, RepositoryError> {
        let unverified = UnverifiedConfig::read(store.as_ref())?;
        let OpenedSecrets {
            secrets,
            slot,
            slot_key,
            locked_out,
            warnings,
        } = open_secrets(
            store.as_ref(),
            unverified.id(),
            unverified.encryption(),
            password,
        )?;
        let config = unverified.authenticate(&secrets)?;
        Ok(Self {
            store,
            config,
            secrets,
            slot_key,
            opened_by: slot,
            locked_out,
            warnings: told(&warnings, locked_out),
        })
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What the repository's parts are sealed by.
    pub(crate) fn vault(&self) -> Vault {
        let Config { id, encryption, .. } = &self.config;
        self.secrets.vault(*id, encryption.is_padded())
    }

    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Its configuration was replaced.
    pub(crate) fn set_config(&mut self, config: Config) {
        self.config = config;
    }

    /// The slot that opened it.
    #[must_use]
    pub fn opened_by(&self) -> ObjectId {
        self.opened_by
    }

    /// What a person should be told of slots that could not be tried.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The slots that can be used, in order of their making, and what is wrong with each of the
    /// others (and with labels that can't be read).
    ///
    /// # Errors
    /// When the store can't list them.
    pub fn list(&self) -> Result<(Vec<KeyInfo>, Vec<String>), RepositoryError> {
        let slots = read_slots(self.store.as_ref())?;
        let epochs = Epochs::load(self.store.as_ref())?;
        let mut problems: Vec<String> = slots.unusable.iter().map(ToString::to_string).collect();
        problems.extend(epochs.damaged.iter().map(|(epoch, reason)| {
            let (epoch, reason) = (*epoch, reason.clone());
            KeyError::DamagedEpoch { epoch, reason }.to_string()
        }));
        let mut keys = Vec::new();
        for slot in slots.usable {
            if !self.counts(&slot) {
                let (slot, encryption) = (slot.id(), self.config.encryption);
                problems.push(KeyError::MisplacedSlot { slot, encryption }.to_string());
                continue;
            }
            let stored = slot.stored_label(self.config.id, &self.secrets);
            let stored = stored.unwrap_or_else(|error| {
                problems.push(format!("the label of key slot {}: {error}", slot.id()));
                None
            });
            let made_in = stored.as_ref().and_then(|stored| stored.rotates);
            keys.push(KeyInfo {
                id: slot.id(),
                lock: slot.lock(),
                label: stored.map(|stored| stored.label),
                is_current: slot.id() == self.opened_by,
                opens_newest: opens_newest(&epochs, slot.id(), made_in.map(|(_, epoch)| epoch)),
            });
        }
        keys.sort_by_key(|key| (key.label.as_ref().map(|label| label.created), key.id));
        Ok((keys, problems))
    }

    /// The epochs, the oldest first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn epochs(&self) -> Result<Vec<EpochInfo>, RepositoryError> {
        let mut epochs = vec![EpochInfo {
            epoch: FIRST_EPOCH,
            created: None,
            slots: Vec::new(),
            is_newest: false,
            is_open: true,
        }];
        for rotation in Epochs::load(self.store.as_ref())?.rotations {
            let epoch = rotation.epoch();
            // A key that came while an epoch was begun has an object of its own.
            if let Some(last) = epochs.last_mut().filter(|last| last.epoch == epoch) {
                last.slots.extend(rotation.slots());
                continue;
            }
            epochs.push(EpochInfo {
                epoch,
                created: Some(Timestamp {
                    seconds: rotation.created(),
                    nanoseconds: 0,
                }),
                slots: rotation.slots().collect(),
                is_newest: false,
                is_open: self.secrets.has_epoch(epoch),
            });
        }
        if let Some(newest) = epochs.last_mut() {
            newest.is_newest = true;
        }
        Ok(epochs)
    }

    /// Begins a new epoch: what is stored from now on is sealed under a new secret, which every key that is
    /// there can open, by its own key pair, and nobody else. When this returns, the epoch is durable, this key
    /// has opened it once, and no key came or went meanwhile.
    ///
    /// Keys that can't be handed the secret are left out if `leaves_out`, and an error otherwise.
    ///
    /// # Errors
    /// [`KeyError::Unpaired`], [`KeyError::LockedOut`], [`KeyError::NoPasswords`], [`KeyError::NoEpochs`],
    /// [`KeyError::Restless`]; when the repository may not be written to, or the store fails.
    pub fn rotate(&self, leaves_out: bool) -> Result<Rotation, RepositoryError> {
        self.check_changeable()?;
        let mut secrets = self.secrets.clone();
        for _ in 0..ROTATION_ROUNDS_MAX {
            let epochs = self.take_epochs(&mut secrets)?;
            if epochs.rotations.len() >= ROTATIONS_MAX {
                return Err(KeyError::NoEpochs.into());
            }
            let (members, left_out) = self.members(&secrets)?;
            let is_in = members.iter().any(|member| member.slot == self.opened_by);
            let may_leave_out = leaves_out && is_in;
            if !left_out.is_empty() && !may_leave_out {
                let slots = left_out;
                return Err(KeyError::Unpaired { slots }.into());
            }
            let id = next_rotation(secrets.newest_epoch().max(epochs.newest_damaged))
                .ok_or(KeyError::NoEpochs)?;
            secrets.add_epoch(epoch_of(id), random_secret());
            self.hand_over(&secrets, id, &members)?;
            if !self.gets(epoch_of(id), &secrets)? {
                self.store.delete(&ObjectKey::new(ObjectKind::Epoch, id))?;
                return Err(KeyError::NotVerified { slot: id }.into());
            }
            let before = epochs.rotation_ids();
            if let Some(slots) = self.settle(&secrets, id, before, members)? {
                let epoch = epoch_of(id);
                return Ok(Rotation {
                    epoch,
                    slots,
                    left_out,
                });
            }
        }
        let rounds = ROTATION_ROUNDS_MAX;
        Err(KeyError::Restless { rounds }.into())
    }

    /// Takes into `secrets` what this slot has of all epochs that are there.
    fn take_epochs(&self, secrets: &mut Secrets) -> Result<Epochs, RepositoryError> {
        let epochs = Epochs::load(self.store.as_ref())?;
        let slot_key = self.slot_key.as_ref();
        epochs.extend(self.config.id, secrets, self.opened_by, slot_key);
        match epochs.newer_than(secrets) {
            None => Ok(epochs),
            Some(newer) => Err(KeyError::LockedOut(LockedOut {
                slot: self.opened_by,
                epoch: secrets.newest_epoch(),
                since: newer.created(),
                is_damaged: false,
            })
            .into()),
        }
    }

    /// Looks again after an epoch was begun by object `id`, beside those that were there `before`, for these
    /// members. Whoever adds or removes a key, or begins an epoch, looks again after writing, and so do we: of
    /// two at the same time at least one sees the other. Who came is handed the epoch, too; when somebody is
    /// gone, or has begun another epoch, this one is not the last, and nothing is returned.
    fn settle(
        &self,
        secrets: &Secrets,
        id: ObjectId,
        before: Vec<ObjectId>,
        members: Vec<Member>,
    ) -> Result<Option<Vec<ObjectId>>, RepositoryError> {
        let mut known = before;
        known.push(id);
        let mut slots: BTreeSet<ObjectId> = members.iter().map(|member| member.slot).collect();
        for _ in 0..ROTATION_ROUNDS_MAX {
            known.sort_unstable();
            let (now, _) = self.members(secrets)?;
            let is_there = |slot: &ObjectId| now.iter().any(|member| member.slot == *slot);
            if Epochs::load(self.store.as_ref())?.rotation_ids() != known
                || !slots.iter().all(is_there)
            {
                return Ok(None);
            }
            let came = |member: &&Member| !slots.contains(&member.slot);
            let came: Vec<Member> = now.iter().filter(came).copied().collect();
            if came.is_empty() {
                return Ok(Some(slots.into_iter().collect()));
            }
            let again = id_of(epoch_of(id));
            self.hand_over(secrets, again, &came)?;
            known.push(again);
            slots.extend(came.iter().map(|member| member.slot));
        }
        Ok(None)
    }

    /// The slots that a new epoch can be handed to, in order of their ids, and those that it can't.
    fn members(&self, secrets: &Secrets) -> Result<(Vec<Member>, Vec<ObjectId>), RepositoryError> {
        let slots = read_slots(self.store.as_ref())?;
        let (mut members, mut left_out) = (Vec::new(), Vec::new());
        for slot in &slots.usable {
            if !self.counts(slot) {
                continue;
            }
            let stored = slot.stored_label(self.config.id, secrets).ok().flatten();
            match stored.and_then(|stored| stored.rotates) {
                Some((public, made_in)) => members.push(Member {
                    slot: slot.id(),
                    public,
                    made_in,
                    is_write_only: false,
                }),
                None => left_out.push(slot.id()),
            }
        }
        Ok((members, left_out))
    }

    /// Stores the object `id` that holds its epoch's secret for these slots.
    fn hand_over(
        &self,
        secrets: &Secrets,
        id: ObjectId,
        members: &[Member],
    ) -> Result<(), RepositoryError> {
        let repository = self.config.id;
        let pair_of = |epoch| secrets.recipient(repository, epoch);
        let secret = secrets.epoch(epoch_of(id)).ok_or(KeyError::NoEpochs)?;
        let public = recipient_of(secrets, repository, epoch_of(id)).ok_or(KeyError::NoEpochs)?;
        let now = Timestamp::now().seconds;
        let epoch = Epoch::rotate(repository, id, now, &pair_of, (secret, public), members);
        let epoch = epoch.ok_or_else(|| KeyError::Unpaired {
            slots: members.iter().map(|member| member.slot).collect(),
        })?;
        self.store.put(&epoch.key(), &epoch.encode())?;
        Ok(())
    }

    /// Does this slot get the secret of an epoch from what is stored?
    fn gets(&self, epoch: u32, secrets: &Secrets) -> Result<bool, RepositoryError> {
        let mut read = self.secrets.clone();
        self.take_epochs(&mut read)?;
        Ok(read.epoch(epoch) == secrets.epoch(epoch))
    }

    /// Is it a slot that may open this repository?
    fn counts(&self, slot: &KeySlot) -> bool {
        fits(slot.lock(), self.config.encryption)
            && (slot.lock() != SlotLock::Plain || slot.open_plain(self.config.id).is_ok())
    }

    /// The slot whose id begins with these hexadecimal digits, one that can't be used included.
    ///
    /// # Errors
    /// [`KeyError::NoSuchSlot`], [`KeyError::AmbiguousSlot`]; when the store can't list them.
    pub fn find(&self, prefix: &str) -> Result<ObjectId, RepositoryError> {
        let asked = prefix.to_ascii_lowercase();
        let mut ids = Vec::new();
        self.store
            .list(ObjectKind::Key, &mut |id, _| ids.push(id))?;
        let begins = |id: &&ObjectId| id.to_string().starts_with(&asked);
        let matches: Vec<&ObjectId> = ids.iter().filter(begins).collect();
        match matches[..] {
            [id] => Ok(*id),
            [] => {
                let count = ids.len();
                Err(KeyError::NoSuchSlot { asked, count }.into())
            }
            _ => Err(KeyError::AmbiguousSlot { asked }.into()),
        }
    }

    /// Adds a password. When this returns, its slot is durable and has been opened once. It takes as
    /// long as `cost` says, twice.
    ///
    /// # Errors
    /// [`KeyError::NoPasswords`], [`KeyError::NoRoom`], [`KeyError::EmptyPassword`],
    /// [`KeyError::LongLabel`], [`KeyError::NotVerified`]; when the repository may not be written
    /// to, or the store fails.
    pub fn add(
        &self,
        password: &Password,
        cost: Argon2Cost,
        label: &SlotLabel,
    ) -> Result<ObjectId, RepositoryError> {
        self.check_changeable()?;
        let mut count = 0;
        self.store.list(ObjectKind::Key, &mut |_, _| count += 1)?;
        if count >= KEY_SLOTS_MAX {
            return Err(KeyError::NoRoom.into());
        }
        let (store, repository) = (self.store.as_ref(), self.config.id);
        let mut secrets = self.secrets.clone();
        for _ in 0..ROTATION_ROUNDS_MAX {
            let id = ObjectId::random();
            let slot = KeySlot::seal_labelled(&secrets, password, cost, repository, id, label)?;
            slot.write(store)?;
            if !self.opens(&secrets, id, password) {
                store.delete(&ObjectKey::new(ObjectKind::Key, id))?;
                return Err(KeyError::NotVerified { slot: id }.into());
            }
            // Somebody may have begun an epoch meanwhile, who did not see this slot yet.
            let known = secrets.newest_epoch();
            let taken = self.take_epochs(&mut secrets);
            if taken.is_ok() && secrets.newest_epoch() == known {
                return Ok(id);
            }
            store.delete(&ObjectKey::new(ObjectKind::Key, id))?;
            taken?;
        }
        let rounds = ROTATION_ROUNDS_MAX;
        Err(KeyError::Restless { rounds }.into())
    }

    /// Does the stored slot give these secrets for that password?
    fn opens(&self, secrets: &Secrets, id: ObjectId, password: &Password) -> bool {
        let read = KeySlot::read(self.store.as_ref(), id);
        let opened = read.and_then(|slot| slot.open_password(self.config.id, password));
        opened.is_ok_and(|opened| *opened.encode() == *secrets.encode())
    }

    /// Removes a slot; the one that opened the repository only if `is_forced`.
    ///
    /// # Errors
    /// [`KeyError::NoPasswords`], [`KeyError::SlotInUse`], [`KeyError::LastSlot`]; when the
    /// repository may not be written to, or the store fails.
    pub fn remove(&self, slot: ObjectId, is_forced: bool) -> Result<(), RepositoryError> {
        self.check_changeable()?;
        if slot == self.opened_by && !is_forced {
            // That it is the last one is the better reason.
            let (keys, _) = self.list()?;
            return Err(match keys.len() {
                1 => KeyError::LastSlot { slot },
                _ => KeyError::SlotInUse { slot },
            }
            .into());
        }
        Ok(remove_slot(
            self.store.as_ref(),
            self.config.encryption,
            slot,
        )?)
    }

    /// Can passwords be added and removed here? Touches nothing.
    ///
    /// # Errors
    /// [`KeyError::NoPasswords`]; when the repository may not be written to.
    pub fn check_changeable(&self) -> Result<(), RepositoryError> {
        self.config.check_writable()?;
        // Where the newest epoch is damaged, another one must be begun.
        if let Some(locked_out) = self.locked_out.filter(|it| !it.is_damaged) {
            return Err(KeyError::LockedOut(locked_out).into());
        }
        match self.config.encryption {
            Encryption::None => Err(KeyError::NoPasswords.into()),
            Encryption::Aes256Gcm => Ok(()),
        }
    }
}

/// What a person should be told of the keys after opening.
pub(crate) fn told(warnings: &[KeyError], locked_out: Option<LockedOut>) -> Vec<String> {
    let warnings = warnings.iter().map(ToString::to_string);
    warnings
        .chain(locked_out.map(|locked_out| locked_out.to_string()))
        .collect()
}

/// Whether a slot that was made in epoch `made_in` opens the newest one.
fn opens_newest(epochs: &Epochs, slot: ObjectId, made_in: Option<u32>) -> Option<bool> {
    let Some(newest) = epochs.rotations.last().map(Epoch::epoch) else {
        return Some(true);
    };
    let mut of_newest = epochs.rotations.iter();
    if of_newest
        .any(|rotation| rotation.epoch() == newest && rotation.slots().any(|member| member == slot))
    {
        return Some(true);
    }
    made_in.map(|made_in| made_in >= newest)
}
