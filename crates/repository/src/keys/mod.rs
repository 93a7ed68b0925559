//! Keys: the secrets of a repository and the slots that wrap them (docs/format/v1.md, §3, §5).
//!
//! Enters: the objects under `keys/`, and a password or none. Leaves: [`Secrets`].
//!
//! Rules of opening:
//! * What `config` says about encryption decides which slots count. Slots in the clear are
//!   never used in an encrypted repository, and a password that was given for an unencrypted
//!   one is an error: otherwise whoever writes to the store could put an empty, unencrypted
//!   repository in the place of ours and read all that is backed up from then on.
//! * A slot that can't be used does not keep another from opening, and is reported.
//! * Cheap slots are tried first, at most [`KEY_SLOTS_MAX`], each within the bounds of
//!   [`Argon2Cost`]: a hostile slot costs seconds, and only when no honest one opens.
//!
//! `config` is not authentic until the secrets that come out of here have authenticated it.

mod epoch;
mod epochs;
mod exchange;
mod label;
mod password;
mod secrets;
mod slot;

pub use epoch::Epoch;
pub(crate) use epoch::{Member, epoch_of, id_of};
pub(crate) use epochs::{EpochFinder, Epochs, ROTATIONS_MAX, next_rotation, recipient_of};
pub use exchange::PublicKey;
pub use label::{LabelError, SlotLabel};
pub use password::{Argon2Cost, Password};
pub(crate) use secrets::random_secret;
pub use secrets::{FIRST_EPOCH, Secret, Secrets};
pub use slot::{KeySlot, SlotLock};

use std::fmt;

use engine::format::DecodeError;
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, StoreError};
use zeroize::Zeroizing;

use crate::config::Encryption;

/// Most key slots of a repository.
pub const KEY_SLOTS_MAX: usize = 64;

/// Why secrets could not be had from, or put into, key slots.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The store could not give or take a slot.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bytes of a slot are not what was written.
    #[error("key slot {slot} is damaged: {reason}")]
    DamagedSlot {
        /// Which slot.
        slot: ObjectId,
        /// What is wrong.
        reason: DecodeError,
    },
    /// The bytes of an epoch are not what was written.
    #[error("epoch {epoch} is damaged: {reason}")]
    DamagedEpoch {
        /// Which object.
        epoch: ObjectId,
        /// What is wrong.
        reason: DecodeError,
    },
    /// The key that opened the repository has no part in its newest epoch.
    #[error("{0}; nothing is written with it")]
    LockedOut(LockedOut),
    /// Slots without a key pair can't be handed a new epoch.
    #[error("{}", unpaired(slots))]
    Unpaired {
        /// Which slots.
        slots: Vec<ObjectId>,
    },
    /// Others change keys or begin epochs again and again.
    #[error("the keys changed {rounds} times while they were looked at: try again later")]
    Restless {
        /// How often.
        rounds: usize,
    },
    /// There is no room for another epoch.
    #[error("the secrets were changed so often that there is no room for another change")]
    NoEpochs,
    /// A slot of a version, type or content that this version does not know.
    #[error("key slot {slot} can't be used by this version of onefold: {reason}")]
    UnsupportedSlot {
        /// Which slot.
        slot: ObjectId,
        /// What is not known.
        reason: DecodeError,
    },
    /// A slot asks for more, or less, work than makes sense.
    #[error("key slot {slot} is refused: {reason}")]
    RefusedCost {
        /// Which slot.
        slot: ObjectId,
        /// The bound that it breaks.
        reason: DecodeError,
    },
    /// This machine has not the memory that a slot was made with.
    #[error("key slot {slot} takes {memory_kib} KiB of memory to open, which can't be had here")]
    OutOfMemory {
        /// Which slot.
        slot: ObjectId,
        /// Memory asked for.
        memory_kib: u32,
    },
    /// A slot in the clear in an encrypted repository, or one under a password in an
    /// unencrypted one.
    #[error("key slot {slot} is not used: {}", misplaced(*.encryption))]
    MisplacedSlot {
        /// Which slot.
        slot: ObjectId,
        /// What the configuration says.
        encryption: Encryption,
    },
    /// A slot in the clear that was made for another repository; an `init` that was cut off
    /// leaves one behind.
    #[error("key slot {slot} is not used: it belongs to another repository")]
    ForeignSlot {
        /// Which slot.
        slot: ObjectId,
    },
    /// An empty password protects nothing.
    #[error("the password is empty")]
    EmptyPassword,
    /// Intact slots are there, and the password opens none.
    #[error("wrong password ({slots_tried} key slots tried){}", Listed(unusable))]
    WrongPassword {
        /// Intact slots under a password.
        slots_tried: usize,
        /// Slots that could not be tried; one of them might open.
        unusable: Vec<KeyError>,
    },
    /// The repository is encrypted and no password was given.
    #[error("the repository is encrypted: a password is needed")]
    PasswordRequired,
    /// A password was given for a repository that is not encrypted.
    #[error(
        "a password was given, but the repository is not encrypted: if it should be, somebody has replaced it; if not, give no password"
    )]
    NotEncrypted,
    /// There is no slot at all.
    #[error("{location} holds no key slot: without one, nothing in it can be read")]
    NoSlots {
        /// The store, for a person.
        location: String,
    },
    /// There are slots, and none can be tried.
    #[error("no key slot can be used{}", Listed(unusable))]
    NoUsableSlot {
        /// What is wrong with each.
        unusable: Vec<KeyError>,
    },
    /// More slots than anybody needs.
    #[error("{count} key slots are there, at most {KEY_SLOTS_MAX} make sense")]
    TooManySlots {
        /// How many.
        count: usize,
    },
    /// What a slot is to be labelled with is too long.
    #[error("the label of a key slot is too long: {reason}")]
    LongLabel {
        /// How long it may be.
        reason: DecodeError,
    },
    /// There is no room for another slot.
    #[error("there are {KEY_SLOTS_MAX} key slots already, and no room for more: remove one first")]
    NoRoom,
    /// Passwords were to be changed where there are none.
    #[error("the repository is not encrypted: it has no passwords that could be changed")]
    NoPasswords,
    /// A slot that was just written does not give the secrets back.
    #[error(
        "what was just stored ({slot}) does not open again: it was taken back, nothing has changed"
    )]
    NotVerified {
        /// Which slot.
        slot: ObjectId,
    },
    /// No slot is the one that was asked for.
    #[error("no key {asked}: the ids of the {count} that are there begin otherwise")]
    NoSuchSlot {
        /// What was asked for.
        asked: String,
        /// How many there are.
        count: usize,
    },
    /// Several slots begin with the prefix.
    #[error("{asked} is the beginning of several keys")]
    AmbiguousSlot {
        /// The prefix.
        asked: String,
    },
    /// The slot that opened the repository is not removed just so.
    #[error("key slot {slot} is not removed: it is the one that this password opens")]
    SlotInUse {
        /// Which slot.
        slot: ObjectId,
    },
    /// Without this slot, nobody could open the repository any more.
    #[error("key slot {slot} is not removed: no other slot can be used")]
    LastSlot {
        /// Which slot.
        slot: ObjectId,
    },
}

impl KeyError {
    /// The slot that it is about, if it is about one.
    #[must_use]
    pub fn slot(&self) -> Option<ObjectId> {
        match self {
            KeyError::DamagedSlot { slot, .. }
            | KeyError::UnsupportedSlot { slot, .. }
            | KeyError::RefusedCost { slot, .. }
            | KeyError::OutOfMemory { slot, .. }
            | KeyError::MisplacedSlot { slot, .. }
            | KeyError::ForeignSlot { slot }
            | KeyError::NotVerified { slot }
            | KeyError::SlotInUse { slot }
            | KeyError::LastSlot { slot } => Some(*slot),
            _ => None,
        }
    }

    /// Does this mean that stored bytes are gone or wrong?
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            KeyError::DamagedSlot { .. }
            | KeyError::DamagedEpoch { .. }
            | KeyError::NoSlots { .. } => true,
            KeyError::Store(error) => {
                !matches!(error, StoreError::Io { .. } | StoreError::Full { .. })
            }
            KeyError::NoUsableSlot { unusable } => unusable.iter().any(KeyError::is_damage),
            _ => false,
        }
    }
}

fn misplaced(encryption: Encryption) -> &'static str {
    match encryption {
        Encryption::None => "it is under a password, but the repository is not encrypted",
        Encryption::Aes256Gcm => {
            "it is in the clear, but the repository is encrypted; onefold never writes such a slot"
        }
    }
}

fn unpaired(slots: &[ObjectId]) -> String {
    let slots: Vec<String> = slots.iter().map(ObjectId::short).collect();
    format!(
        "these keys can't be handed new secrets, for an older version made them, or their labels can't be read: {}",
        slots.join(", ")
    )
}

/// Prints slots that could not be used, each after a semicolon.
struct Listed<'a>(&'a [KeyError]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|error| write!(f, "; {error}"))
    }
}

/// The slots of a repository.
#[derive(Debug)]
pub struct Slots {
    /// Those that are intact and known, in ascending order of their ids.
    pub usable: Vec<KeySlot>,
    /// What is wrong with each of the others.
    pub unusable: Vec<KeyError>,
}

/// Lists and reads every key slot. A slot that vanishes meanwhile is passed over.
///
/// # Errors
/// [`KeyError::Store`] when they can't be listed, [`KeyError::TooManySlots`].
pub fn read_slots(store: &dyn ObjectStore) -> Result<Slots, KeyError> {
    let mut ids = Vec::new();
    let mut count = 0;
    store.list(ObjectKind::Key, &mut |id, _| {
        count += 1;
        if ids.len() < KEY_SLOTS_MAX {
            ids.push(id);
        }
    })?;
    if count > KEY_SLOTS_MAX {
        return Err(KeyError::TooManySlots { count });
    }
    ids.sort_unstable();
    let mut slots = Slots {
        usable: Vec::new(),
        unusable: Vec::new(),
    };
    for id in ids {
        match KeySlot::read(store, id) {
            Ok(slot) => slots.usable.push(slot),
            Err(KeyError::Store(error)) if error.is_missing() => {}
            Err(error) => slots.unusable.push(error),
        }
    }
    Ok(slots)
}

/// Secrets that a slot gave.
#[derive(Debug)]
pub struct OpenedSecrets {
    /// All secrets of the repository.
    pub secrets: Secrets,
    /// The slot that opened.
    pub slot: ObjectId,
    /// The slot's own secret; slots of older versions, and those in the clear, have none.
    pub slot_key: Option<Secret>,
    /// The newest epoch, when this slot has no part in it.
    pub locked_out: Option<LockedOut>,
    /// What is wrong with other slots, to be told to the person.
    pub warnings: Vec<KeyError>,
}

/// An epoch that was begun without the slot that opened the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockedOut {
    /// The slot.
    pub slot: ObjectId,
    /// Its newest epoch.
    pub epoch: u32,
    /// When the newest of all was begun, in seconds since 1970.
    pub since: i64,
    /// The newest is damaged, so that nobody knows who has it.
    pub is_damaged: bool,
}

impl fmt::Display for LockedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slot = self.slot.short();
        if self.is_damaged {
            return f.write_str(
                "the newest secret can't be read: nothing is stored under the one before it, which a key that was removed may have",
            );
        }
        write!(
            f,
            "the secrets were changed (`key rotate`) without the key {slot}: it reads what was stored before, nothing newer"
        )
    }
}

/// Opens a slot of `repository`, whose configuration says `encryption`. Takes as long as the
/// slots' costs say, some tenths of a second for each that is tried.
///
/// # Errors
/// [`KeyError::PasswordRequired`] and [`KeyError::NotEncrypted`] before the store is asked;
/// [`KeyError::WrongPassword`] when slots could be tried; [`KeyError::NoSlots`] and
/// [`KeyError::NoUsableSlot`] when not; [`KeyError::Store`], [`KeyError::TooManySlots`].
pub fn open_secrets(
    store: &dyn ObjectStore,
    repository: ObjectId,
    encryption: Encryption,
    password: Option<&Password>,
) -> Result<OpenedSecrets, KeyError> {
    match (encryption, password) {
        (Encryption::None, Some(_)) => return Err(KeyError::NotEncrypted),
        (Encryption::Aes256Gcm, None) => return Err(KeyError::PasswordRequired),
        (Encryption::Aes256Gcm, Some(password)) if password.is_empty() => {
            return Err(KeyError::EmptyPassword);
        }
        _ => {}
    }
    let Slots {
        mut usable,
        mut unusable,
    } = read_slots(store)?;
    if usable.is_empty() && unusable.is_empty() {
        let location = store.location();
        return Err(KeyError::NoSlots { location });
    }
    usable.retain(|slot| {
        let fits = fits(slot.lock(), encryption);
        if !fits {
            let slot = slot.id();
            unusable.push(KeyError::MisplacedSlot { slot, encryption });
        }
        fits
    });
    usable.sort_by_key(|slot| (work_kib(slot.lock()), slot.id()));

    let mut slots_tried = 0;
    for slot in &usable {
        let outcome = match password {
            None => slot.open_plain(repository).map(|secrets| (secrets, None)),
            Some(password) => slot.open_with_key(repository, password),
        };
        match outcome {
            Ok((secrets, slot_key)) => {
                let opened = OpenedSecrets {
                    secrets,
                    slot: slot.id(),
                    slot_key,
                    locked_out: None,
                    warnings: unusable,
                };
                return match encryption {
                    // Its secrets are no secrets, and never change.
                    Encryption::None => Ok(opened),
                    Encryption::Aes256Gcm => with_epochs(opened, store, repository),
                };
            }
            Err(KeyError::WrongPassword { .. }) => slots_tried += 1,
            Err(error) => unusable.push(error),
        }
    }
    Err(if slots_tried > 0 {
        KeyError::WrongPassword {
            slots_tried,
            unusable,
        }
    } else {
        KeyError::NoUsableSlot { unusable }
    })
}

/// Adds what later epochs hold for the slot that opened.
fn with_epochs(
    mut opened: OpenedSecrets,
    store: &dyn ObjectStore,
    repository: ObjectId,
) -> Result<OpenedSecrets, KeyError> {
    let epochs = Epochs::load(store)?;
    let slot_key = opened.slot_key.as_ref();
    epochs.extend(repository, &mut opened.secrets, opened.slot, slot_key);
    opened.locked_out = epochs.newer_than(&opened.secrets).map(|newer| LockedOut {
        slot: opened.slot,
        epoch: opened.secrets.newest_epoch(),
        since: newer.created(),
        is_damaged: false,
    });
    if opened.locked_out.is_none() && epochs.newest_damaged > opened.secrets.newest_epoch() {
        opened.locked_out = Some(LockedOut {
            slot: opened.slot,
            epoch: opened.secrets.newest_epoch(),
            since: 0,
            is_damaged: true,
        });
    }
    let damaged = epochs.damaged.into_iter();
    let damaged = damaged.map(|(epoch, reason)| KeyError::DamagedEpoch { epoch, reason });
    opened.warnings.extend(damaged);
    Ok(opened)
}

pub(crate) fn fits(lock: SlotLock, encryption: Encryption) -> bool {
    match lock {
        SlotLock::Plain => encryption == Encryption::None,
        SlotLock::Password(_) => encryption == Encryption::Aes256Gcm,
    }
}

fn work_kib(lock: SlotLock) -> u64 {
    match lock {
        SlotLock::Plain => 0,
        SlotLock::Password(cost) => cost.work_kib(),
    }
}

/// Removes a slot, unless it is the only one that can be used: whether the others open with a
/// password that somebody still knows can't be seen from here. If somebody else removes the others
/// at the same moment, the slot is put back.
///
/// # Errors
/// [`KeyError::LastSlot`], [`KeyError::Store`], [`KeyError::TooManySlots`].
pub fn remove_slot(
    store: &dyn ObjectStore,
    encryption: Encryption,
    slot: ObjectId,
) -> Result<(), KeyError> {
    let has_others = || -> Result<bool, KeyError> {
        let slots = read_slots(store)?.usable;
        let is_other = |other: &KeySlot| other.id() != slot && fits(other.lock(), encryption);
        Ok(slots.iter().any(is_other))
    };
    if !has_others()? {
        return Err(KeyError::LastSlot { slot });
    }
    let key = ObjectKey::new(ObjectKind::Key, slot);
    let bytes = match store.get(&key, slot::SLOT_BYTES_MAX) {
        Ok(bytes) => Some(Zeroizing::new(bytes)),
        // It is none that anybody could use.
        Err(StoreError::TooLong { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    store.delete(&key)?;
    match bytes {
        Some(bytes) if !has_others()? => {
            store.put(&key, &bytes)?;
            Err(KeyError::LastSlot { slot })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
