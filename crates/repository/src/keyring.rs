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

use std::fmt;
use std::sync::Arc;

use engine::format::Vault;
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};

use crate::config::{Config, Encryption, UnverifiedConfig};
use crate::keys::{
    Argon2Cost, KEY_SLOTS_MAX, KeyError, KeySlot, OpenedSecrets, Password, Secrets, SlotLabel,
    SlotLock, fits, open_secrets, read_slots, remove_slot,
};
use crate::repository::RepositoryError;

/// The key slots of a repository, opened with one of them.
pub struct Keyring {
    store: Arc<dyn ObjectStore>,
    config: Config,
    secrets: Secrets,
    opened_by: ObjectId,
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
            opened_by: slot,
            warnings: warnings.iter().map(ToString::to_string).collect(),
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
        let mut problems: Vec<String> = slots.unusable.iter().map(ToString::to_string).collect();
        let mut keys = Vec::new();
        for slot in slots.usable {
            if !self.counts(&slot) {
                let (slot, encryption) = (slot.id(), self.config.encryption);
                problems.push(KeyError::MisplacedSlot { slot, encryption }.to_string());
                continue;
            }
            let label = slot.label(self.config.id, &self.secrets);
            let label = label.unwrap_or_else(|error| {
                problems.push(format!("the label of key slot {}: {error}", slot.id()));
                None
            });
            keys.push(KeyInfo {
                id: slot.id(),
                lock: slot.lock(),
                label,
                is_current: slot.id() == self.opened_by,
            });
        }
        keys.sort_by_key(|key| (key.label.as_ref().map(|label| label.created), key.id));
        Ok((keys, problems))
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
        let (repository, id) = (self.config.id, ObjectId::random());
        let slot = KeySlot::seal_labelled(&self.secrets, password, cost, repository, id, label)?;
        slot.write(self.store.as_ref())?;
        if !self.opens(id, password) {
            self.store.delete(&ObjectKey::new(ObjectKind::Key, id))?;
            return Err(KeyError::NotVerified { slot: id }.into());
        }
        Ok(id)
    }

    /// Does the stored slot give these secrets for that password?
    fn opens(&self, id: ObjectId, password: &Password) -> bool {
        let read = KeySlot::read(self.store.as_ref(), id);
        let opened = read.and_then(|slot| slot.open_password(self.config.id, password));
        opened.is_ok_and(|secrets| *secrets.encode() == *self.secrets.encode())
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
        match self.config.encryption {
            Encryption::None => Err(KeyError::NoPasswords.into()),
            Encryption::Aes256Gcm => Ok(()),
        }
    }
}
