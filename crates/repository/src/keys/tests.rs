//! Tests of opening a repository: which slots count, in every mixture of good and bad ones.

use engine::object::MemoryStore;

use super::*;
use crate::config::{Config, ConfigError, UnverifiedConfig};

const REPOSITORY: ObjectId = ObjectId([0xaa; 16]);
const SMALL: Argon2Cost = Argon2Cost {
    memory_kib: 8,
    passes: 1,
    lanes: 1,
};

fn id(number: u8) -> ObjectId {
    ObjectId([number; 16])
}

fn add_password(store: &MemoryStore, secrets: &Secrets, number: u8, password: &str) {
    add_cost(store, secrets, number, password, SMALL);
}

fn add_cost(store: &MemoryStore, secrets: &Secrets, number: u8, password: &str, cost: Argon2Cost) {
    let password = Password::new(password);
    KeySlot::seal_password(secrets, &password, cost, REPOSITORY, id(number))
        .unwrap()
        .write(store)
        .unwrap();
}

fn damage(store: &MemoryStore, number: u8) {
    let key = ObjectKey::new(ObjectKind::Key, id(number));
    assert!(store.corrupt(&key, |bytes| bytes[70] ^= 1));
}

fn open(store: &MemoryStore, password: &str) -> Result<OpenedSecrets, KeyError> {
    let password = Password::new(password);
    open_secrets(store, REPOSITORY, Encryption::Aes256Gcm, Some(&password))
}

#[test]
fn the_slot_that_fits_opens() {
    let store = MemoryStore::new();
    let secrets = Secrets::random();
    for (number, password) in [(1, "one"), (2, "two"), (3, "three")] {
        add_password(&store, &secrets, number, password);
    }
    for (number, password) in [(1, "one"), (2, "two"), (3, "three")] {
        let opened = open(&store, password).unwrap();
        assert_eq!(opened.slot, id(number));
        assert_eq!(*opened.secrets.encode(), *secrets.encode());
        assert!(opened.warnings.is_empty());
    }
    let error = open(&store, "four").unwrap_err();
    assert!(
        matches!(error, KeyError::WrongPassword { slots_tried: 3, .. }),
        "{error}"
    );
    assert!(matches!(open(&store, ""), Err(KeyError::EmptyPassword)));
}

#[test]
fn a_damaged_slot_is_a_warning_while_another_opens() {
    let store = MemoryStore::new();
    let secrets = Secrets::random();
    add_password(&store, &secrets, 1, "one");
    add_password(&store, &secrets, 2, "two");
    damage(&store, 1);
    let opened = open(&store, "two").unwrap();
    let [KeyError::DamagedSlot { slot, .. }] = opened.warnings[..] else {
        panic!("{:?}", opened.warnings);
    };
    assert_eq!(slot, id(1));

    // The password of the damaged slot is wrong for the other, and the error says both.
    let error = open(&store, "one").unwrap_err();
    let KeyError::WrongPassword {
        slots_tried: 1,
        unusable,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(unusable.len(), 1);
    assert!(error.to_string().contains(&id(1).to_string()), "{error}");

    damage(&store, 2);
    let error = open(&store, "two").unwrap_err();
    assert!(matches!(&error, KeyError::NoUsableSlot { unusable } if unusable.len() == 2));
    assert!(error.is_damage());
    for number in [1, 2] {
        assert!(
            error.to_string().contains(&id(number).to_string()),
            "{error}"
        );
    }
}

#[test]
fn slots_too_long_to_be_slots_are_damaged_ones() {
    let store = MemoryStore::new();
    add_password(&store, &Secrets::random(), 1, "one");
    let key = ObjectKey::new(ObjectKind::Key, id(1));
    store.corrupt(&key, |bytes| bytes.resize(1 << 20, 0));
    let error = open(&store, "one").unwrap_err();
    assert!(error.is_damage(), "{error}");
    assert!(error.to_string().contains(&id(1).to_string()), "{error}");
}

#[test]
fn an_unencrypted_repository_opens_without_a_password_only() {
    let store = MemoryStore::new();
    let secrets = Secrets::random();
    KeySlot::seal_plain(&secrets, REPOSITORY, id(1))
        .write(&store)
        .unwrap();
    let opened = open_secrets(&store, REPOSITORY, Encryption::None, None).unwrap();
    assert_eq!(*opened.secrets.encode(), *secrets.encode());

    let password = Password::new("one");
    let outcome = open_secrets(&store, REPOSITORY, Encryption::None, Some(&password));
    assert!(matches!(outcome, Err(KeyError::NotEncrypted)));
}

#[test]
fn a_plain_slot_does_not_open_an_encrypted_repository() {
    let store = MemoryStore::new();
    KeySlot::seal_plain(&Secrets::random(), REPOSITORY, id(1))
        .write(&store)
        .unwrap();
    let outcome = open_secrets(&store, REPOSITORY, Encryption::Aes256Gcm, None);
    assert!(matches!(outcome, Err(KeyError::PasswordRequired)));
    let error = open(&store, "one").unwrap_err();
    let KeyError::NoUsableSlot { unusable } = &error else {
        panic!("{error}");
    };
    assert!(matches!(unusable[..], [KeyError::MisplacedSlot { .. }]));

    let secrets = Secrets::random();
    add_password(&store, &secrets, 2, "one");
    let opened = open(&store, "one").unwrap();
    assert_eq!(*opened.secrets.encode(), *secrets.encode());
    assert!(matches!(
        opened.warnings[..],
        [KeyError::MisplacedSlot { .. }]
    ));
}

#[test]
fn a_password_slot_does_not_count_in_an_unencrypted_repository() {
    let store = MemoryStore::new();
    add_password(&store, &Secrets::random(), 1, "one");
    let error = open_secrets(&store, REPOSITORY, Encryption::None, None).unwrap_err();
    assert!(matches!(error, KeyError::NoUsableSlot { .. }), "{error}");
}

#[test]
fn no_slots_and_too_many() {
    let store = MemoryStore::new();
    assert!(matches!(open(&store, "one"), Err(KeyError::NoSlots { .. })));
    let plain = KeySlot::seal_plain(&Secrets::random(), REPOSITORY, id(1)).encode();
    for number in 0..=KEY_SLOTS_MAX as u8 {
        let key = ObjectKey::new(ObjectKind::Key, id(number));
        store.put(&key, &plain).unwrap();
    }
    let error = open(&store, "one").unwrap_err();
    assert!(matches!(error, KeyError::TooManySlots { count } if count == KEY_SLOTS_MAX + 1));
}

#[test]
fn cheap_slots_are_tried_first() {
    let store = MemoryStore::new();
    let secrets = Secrets::random();
    let dear = Argon2Cost {
        memory_kib: 1024,
        ..SMALL
    };
    add_cost(&store, &secrets, 1, "one", dear);
    add_password(&store, &secrets, 2, "one");
    assert_eq!(open(&store, "one").unwrap().slot, id(2));
}

#[test]
fn the_last_slot_stays() {
    let store = MemoryStore::new();
    let secrets = Secrets::random();
    add_password(&store, &secrets, 1, "one");
    KeySlot::seal_plain(&secrets, REPOSITORY, id(3))
        .write(&store)
        .unwrap();
    let remove = |number| remove_slot(&store, Encryption::Aes256Gcm, id(number));
    assert!(
        matches!(remove(1), Err(KeyError::LastSlot { .. })),
        "a plain slot does not count"
    );
    add_password(&store, &secrets, 2, "two");
    remove(1).unwrap();
    assert!(open(&store, "one").is_err());
    assert!(matches!(remove(2), Err(KeyError::LastSlot { .. })));
    remove(3).unwrap();
    assert!(open(&store, "two").is_ok());
}

#[test]
fn slots_that_a_cut_off_init_left_behind_do_no_harm() {
    let store = MemoryStore::new();
    let secrets = Secrets::random();
    KeySlot::seal_plain(&Secrets::random(), id(9), id(1))
        .write(&store)
        .unwrap();
    KeySlot::seal_plain(&secrets, REPOSITORY, id(2))
        .write(&store)
        .unwrap();
    let opened = open_secrets(&store, REPOSITORY, Encryption::None, None).unwrap();
    assert_eq!(*opened.secrets.encode(), *secrets.encode());
    assert!(matches!(
        opened.warnings[..],
        [KeyError::ForeignSlot { .. }]
    ));

    let one = Password::new("one");
    let left = KeySlot::seal_password(&Secrets::random(), &one, SMALL, id(9), id(3)).unwrap();
    left.write(&store).unwrap();
    add_password(&store, &secrets, 4, "one");
    assert_eq!(open(&store, "one").unwrap().slot, id(4));
}

/// What somebody who may write to the store, and knows no secret, can try.
#[test]
fn swapping_parts_between_repositories_fails() {
    let [ours, theirs] = [Secrets::random(), Secrets::random()];
    let store = MemoryStore::new();
    let config = Config::new(REPOSITORY, Encryption::Aes256Gcm, 0, "test");
    add_password(&store, &ours, 1, "ours");
    config.create(&store, &ours).unwrap();

    // Their slot under the same password, made for their repository, copied here.
    let other =
        KeySlot::seal_password(&theirs, &Password::new("ours"), SMALL, id(9), id(1)).unwrap();
    let copied = store.fork();
    copied.delete(&other.key()).unwrap();
    other.write(&copied).unwrap();
    assert!(matches!(
        open(&copied, "ours"),
        Err(KeyError::WrongPassword { .. })
    ));

    // Their configuration over our slot: it opens, but the configuration is not authentic.
    let replaced = store.fork();
    replaced.delete(&ObjectKey::CONFIG).unwrap();
    config.create(&replaced, &theirs).unwrap();
    let secrets = open(&replaced, "ours").unwrap().secrets;
    let outcome = UnverifiedConfig::read(&replaced)
        .unwrap()
        .authenticate(&secrets);
    assert!(matches!(outcome, Err(ConfigError::NotAuthentic)));

    // A plain slot of an unencrypted repository moved into another.
    let moved = MemoryStore::new();
    KeySlot::seal_plain(&theirs, REPOSITORY, id(1))
        .write(&moved)
        .unwrap();
    let open_config = Config::new(REPOSITORY, Encryption::None, 0, "test");
    open_config.create(&moved, &ours).unwrap();
    let opened = open_secrets(&moved, REPOSITORY, Encryption::None, None).unwrap();
    let outcome = UnverifiedConfig::read(&moved)
        .unwrap()
        .authenticate(&opened.secrets);
    assert!(matches!(outcome, Err(ConfigError::NotAuthentic)));
}
