//! The configuration and key slots: what is read before anything can be trusted
//! (docs/format/v1.md, §4 and §5).

use engine::object::ObjectId;
use repository::config::{Config, Encryption, Features, UnverifiedConfig};
use repository::keys::{Argon2Cost, Epoch, KeySlot, Password, SlotLabel, SlotLock};

use super::{AUTHORITY, REPOSITORY, secrets};

/// Passwords are tried where that costs no more than this, in KiB over all passes.
const WORK_KIB_MAX: u64 = 64;

/// The slot that all slots here are.
const SLOT: ObjectId = ObjectId([2; 16]);

/// Header and body; authentication and checksum are added.
pub fn config(bytes: &[u8]) {
    let _ = UnverifiedConfig::parse(bytes);
    let mut object = bytes.to_vec();
    let config_key = blake3::derive_key("onefold v1 config", &AUTHORITY);
    object.extend_from_slice(blake3::keyed_hash(&config_key, bytes).as_bytes());
    let checksum = blake3::hash(&object);
    object.extend_from_slice(checksum.as_bytes());
    let Ok(unverified) = UnverifiedConfig::parse(&object) else {
        return;
    };
    let config = unverified
        .authenticate(&secrets())
        .expect("we have authenticated it");
    assert!(config.validate().is_ok());
    let again = config.encode(&secrets()).expect("it was stored before");
    let again = UnverifiedConfig::parse(&again)
        .and_then(|unverified| unverified.authenticate(&secrets()))
        .expect("our own is read");
    assert_eq!(again, config);
}

pub fn config_samples() -> Vec<Vec<u8>> {
    let encrypted = Config::new(
        REPOSITORY,
        Encryption::Aes256Gcm,
        1_700_000_000,
        "onefold 0.1.0",
    );
    let mut open = Config::new(REPOSITORY, Encryption::None, -1, "");
    open.features = Features {
        compatible: u64::MAX,
        read_only_compatible: 1,
        incompatible: Features::MULTI_SECTION,
    };
    [encrypted, open]
        .iter()
        .map(|config| {
            let mut object = config.encode(&secrets()).expect("it is possible");
            object.truncate(object.len() - 64);
            object
        })
        .collect()
}

/// A slot without its checksum, which is added. Slots have one form, and so have the secrets
/// in a slot in the clear.
pub fn key_slot(bytes: &[u8]) {
    let _ = KeySlot::parse(SLOT, bytes);
    let mut object = bytes.to_vec();
    object.extend_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    let Ok(slot) = KeySlot::parse(SLOT, &object) else {
        return;
    };
    assert_eq!(*slot.encode(), object);
    match slot.lock() {
        SlotLock::Plain => {
            if let Ok(secrets) = slot.open_plain(REPOSITORY) {
                let again = KeySlot::seal_plain(&secrets, REPOSITORY, SLOT);
                assert_eq!(*again.encode(), object);
            }
        }
        SlotLock::Password(cost) => {
            if cost.work_kib() <= WORK_KIB_MAX {
                let _ = slot.open_password(REPOSITORY, &password());
                let _ = slot.label(REPOSITORY, &secrets());
            }
        }
    }
}

/// The epoch whose object all epochs here are.
const EPOCH: u32 = 0x0001_0002;

fn epoch_id() -> ObjectId {
    let mut id = ObjectId([3; 16]);
    id.0[..4].copy_from_slice(&EPOCH.to_be_bytes());
    id
}

/// An epoch without its checksum, which is added. Epochs have one form.
pub fn epoch(bytes: &[u8]) {
    let _ = Epoch::parse(epoch_id(), bytes);
    let mut object = bytes.to_vec();
    object.extend_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    if let Ok(epoch) = Epoch::parse(epoch_id(), &object) {
        assert_eq!(epoch.encode(), object);
        assert_eq!(epoch.epoch(), EPOCH);
        assert!(epoch.slots().count() > 0);
    }
}

/// A rotation for one slot and one for two: what is sealed in them is anything.
pub fn epoch_samples() -> Vec<Vec<u8>> {
    let sample = |count: u8| {
        let mut bytes = b"1FOLDEPO\x01\0\0\0\x01\0\0\0".to_vec();
        bytes.extend_from_slice(&EPOCH.to_le_bytes());
        bytes.extend_from_slice(&u32::from(count).to_le_bytes());
        bytes.extend_from_slice(&1_795_000_000i64.to_le_bytes());
        for entry in 0..count {
            bytes.extend_from_slice(&[entry; 16]);
            bytes.extend_from_slice(&1u32.to_le_bytes());
            bytes.extend_from_slice(&[7; 80]);
        }
        let checksum = blake3::hash(&bytes);
        let object = [&bytes[..], &checksum.as_bytes()[..16]].concat();
        assert!(Epoch::parse(epoch_id(), &object).is_ok(), "a sample");
        bytes
    };
    vec![sample(1), sample(2)]
}

fn password() -> Password {
    Password::new("correct horse battery staple")
}

pub fn key_slot_samples() -> Vec<Vec<u8>> {
    let cost = Argon2Cost {
        memory_kib: 16,
        passes: 1,
        lanes: 2,
    };
    let mut several_epochs = secrets();
    assert_eq!(several_epochs.begin_epoch(), Some(2));
    assert_eq!(several_epochs.begin_epoch(), Some(3));
    let sealed = KeySlot::seal_password(&secrets(), &password(), cost, REPOSITORY, SLOT);
    let label = SlotLabel::default();
    let labelled = KeySlot::seal_labelled(&secrets(), &password(), cost, REPOSITORY, SLOT, &label);
    let slots = [
        labelled.expect("the label is short"),
        KeySlot::seal_plain(&secrets(), REPOSITORY, SLOT),
        KeySlot::seal_plain(&several_epochs, REPOSITORY, SLOT),
        sealed.expect("the cost is small"),
    ];
    slots
        .iter()
        .map(|slot| {
            let object = slot.encode();
            object[..object.len() - 16].to_vec()
        })
        .collect()
}
