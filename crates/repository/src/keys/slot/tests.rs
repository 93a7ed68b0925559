//! Tests of key slots: a golden sample, damage at every byte, hostile headers.

use super::*;
use proptest::prelude::*;

const REPOSITORY: ObjectId = ObjectId([0xaa; 16]);
const SLOT: ObjectId = ObjectId([0xbb; 16]);
const SMALL: Argon2Cost = Argon2Cost {
    memory_kib: 64,
    passes: 2,
    lanes: 2,
};

/// Made by a program of its own from docs/format/v1.md (Python: argon2-cffi, cryptography,
/// blake3): password `correct horse`, secrets of bytes 1, 2, 3 and 4.
const GOLDEN: &str = "\
     31464f4c444b45590100000001000000400000000200000002000000b2000000cccccccccccccccccccccccc\
     ccccccccccccccccccccccccccccccccccccccccb4bd95180082a6bbc9a8d6e4b0a14f560604c22f649c1827\
     a8dcd0c1431fbd60bc34a94a5fd9b6cc9b3088f4b7f2fef21149f05dc1a49feed0e5da0eff32363aa23f6a24\
     e35e3b46b5db35181e1eaab3956d6b5103ed1f41553fb04f1c84cc91cc62f4e92fa4da0215ee2c0c5e79ca3d\
     8b4ecb732a928fd2c8ffe7ef8bdba8e74f6f84fdc291e5484e4c9be008c0c6963742c9284f341faf26e01ada\
     da20644bde98c41692dc0120ee140ba687813ea2c1188860472f9d3a580225050abbc83749fa";

/// The same with the label [`label`], which makes it version 2. Made in the same way.
const GOLDEN_LABELLED: &str = "\
     31464f4c444b45590200000001003800400000000200000002000000b2000000cccccccccccccccccccccccc\
     ccccccccccccccccccccccccccccccccccccccccb4bd95180082a6bbc9a8d6e4b0a14f560604c22f649c1827\
     a8dcd0c1431fbd60bc34a94a5fd9b6cc9b3088f4b7f2fef21149f05dc1a49feed0e5da0eff32363aa23f6a24\
     e35e3b46b5db35181e1eaab3956d6b5103ed1f41553fb04f1c84cc91cc62f4e92fa4da0215ee2c0c5e79ca3d\
     8b4ecb732a928fd2c8ffe7ef8bdba8e74f6f84fdc291e5484e4c9be008c0c6963742c9284f341faf26e01ada\
     da20644bde98448bef6041ca7c1dfc8db033f766edae31464b31010000000000000016d3365fd628e5bbf716\
     ec5be71e684dbf1ea0b35415c0d44a5e60f5e398fcde96ad943daa826a1c0698dd224a422eaf7621f61c6a4a\
     6358a447bc33";

/// With the secret of bytes 5 for a key pair, which makes it version 3.
const GOLDEN_PAIRED: &str = "\
     31464f4c444b45590300000001006000400000000200000002000000da000000cccccccccccccccccccccccc\
     ccccccccccccccccccccccccccccccccccccccccb5bd95180082a6bbc9a8d6e4b0a14f560604c22f649c1827\
     a8dcd0c1431fbd60bc34a94a5fd9b6cc9b3088f4b7f2fef21149f05dc1a49feed0e5da0eff32363aa23f6a24\
     e35e3b46b5db35181e1eaab3956d6b5103ed1f41553fb04f1c84cc91cc62f4e92fa4da0215ee2c0c5e79ca3d\
     8b4ecb732a928fd2c8ffe7ef8bdba8e74f6f84fdc291e5484e4c9be008c0c6963742c9284f341faf26e01ada\
     da20644bde98bac1559f143d98cd3ba9673348bc4c6c3ae8490cfd3d01e288cf61cacf3198d2f478b24c27a5\
     2a8d693702aed47d838b7d8ae8e714795ad131464b31010000000000000033d3365fd628e5bbf716ec5be71e\
     684dbf1ea0b35415c0d44a5e60f5d379e0c4e1e97bcf4dc85ffc86c354c08bfab6a05a3f37cf372e959a4de3\
     73a5297690abf7a0b403a273a436ef56c6b05bd7009ee2e2f1129d951665fbe39f08dc1c9cb2d2be1a97";

fn bytes_of(digits: &str) -> Vec<u8> {
    let digits = digits.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn golden() -> Vec<u8> {
    bytes_of(GOLDEN)
}

fn golden_labelled() -> Vec<u8> {
    bytes_of(GOLDEN_LABELLED)
}

fn label() -> SlotLabel {
    SlotLabel {
        created: crate::timestamp::Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 5,
        },
        host: "here".to_owned(),
        user: "u".to_owned(),
        name: "safe".to_owned(),
    }
}

fn secrets() -> Secrets {
    let [chunker, fingerprint, authority, data] =
        [1, 2, 3, 4].map(|byte| Zeroizing::new([byte; 32]));
    Secrets::from_parts(chunker, fingerprint, authority, data)
}

fn password() -> Password {
    Password::new("correct horse")
}

/// Puts a checksum that fits, as an attacker would.
fn rechecksummed(mut bytes: Vec<u8>) -> Vec<u8> {
    let covered = bytes.len() - CHECKSUM_BYTES;
    let checksum = blake3::hash(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&checksum.as_bytes()[..CHECKSUM_BYTES]);
    bytes
}

fn sealing(version: u32, label: Vec<u8>) -> Sealing {
    let slot_key = (version == VERSION_PAIRED).then(|| Zeroizing::new([5; 32]));
    Sealing {
        plain: secrets().encode_with(slot_key.as_ref()),
        lock: SlotLock::Password(SMALL),
        version,
        label,
        salt: [0xcc; 32],
    }
}

#[test]
fn golden_slot() {
    let slot = KeySlot::seal(sealing(VERSION, Vec::new()), &password(), REPOSITORY, SLOT);
    assert_eq!(*slot.unwrap().encode(), golden());
    let slot = KeySlot::parse(SLOT, &golden()).unwrap();
    assert_eq!(slot.lock(), SlotLock::Password(SMALL));
    let opened = slot.open_password(REPOSITORY, &password()).unwrap();
    assert_eq!(*opened.encode(), *secrets().encode());
}

#[test]
fn golden_labelled_slot() {
    let key = ObjectKey::new(ObjectKind::Key, SLOT);
    let stored = StoredLabel {
        label: label(),
        rotates: None,
    };
    let sealed = label::seal(&secrets().vault(REPOSITORY, true), key, &stored).unwrap();
    let sealing = sealing(VERSION_LABELLED, sealed);
    let slot = KeySlot::seal(sealing, &password(), REPOSITORY, SLOT);
    assert_eq!(*slot.unwrap().encode(), golden_labelled());
    let slot = KeySlot::parse(SLOT, &golden_labelled()).unwrap();
    let opened = slot.open_password(REPOSITORY, &password()).unwrap();
    assert_eq!(*opened.encode(), *secrets().encode());
    assert_eq!(slot.label(REPOSITORY, &secrets()).unwrap(), Some(label()));
    let unlabelled = KeySlot::parse(SLOT, &golden()).unwrap();
    assert_eq!(unlabelled.label(REPOSITORY, &secrets()).unwrap(), None);
}

#[test]
fn golden_paired_slot() {
    let slot_key = Zeroizing::new([5; 32]);
    let sealed = KeySlot::paired_label(&secrets(), REPOSITORY, SLOT, &label(), &slot_key).unwrap();
    let sealing = sealing(VERSION_PAIRED, sealed);
    let slot = KeySlot::seal(sealing, &password(), REPOSITORY, SLOT).unwrap();
    assert_eq!(*slot.encode(), bytes_of(GOLDEN_PAIRED));
    let slot = KeySlot::parse(SLOT, &bytes_of(GOLDEN_PAIRED)).unwrap();
    let (opened, opened_key) = slot.open_with_key(REPOSITORY, &password()).unwrap();
    assert_eq!(*opened.encode(), *secrets().encode());
    assert_eq!(opened_key, Some(slot_key.clone()));
    let stored = slot.stored_label(REPOSITORY, &secrets()).unwrap().unwrap();
    assert_eq!(stored.label, label());
    assert_eq!(stored.rotates, Some((public_key(&slot_key), 1)));
}

/// The version says whether a slot has a secret of its own, not its payload.
#[test]
fn a_slot_has_what_its_version_has() {
    let plain = secrets().encode_with(Some(&Zeroizing::new([5; 32])));
    for version in [VERSION, VERSION_LABELLED] {
        let mut sealing = sealing(version, vec![0; 40 * usize::from(version > 1)]);
        sealing.plain = plain.clone();
        let slot = KeySlot::seal(sealing, &password(), REPOSITORY, SLOT).unwrap();
        let opened = slot.open_password(REPOSITORY, &password());
        assert!(matches!(opened, Err(KeyError::UnsupportedSlot { .. })));
    }
    let mut later = bytes_of(GOLDEN_PAIRED);
    later[8] = 4;
    let parsed = KeySlot::parse(SLOT, &rechecksummed(later));
    assert!(matches!(parsed, Err(KeyError::UnsupportedSlot { .. })));
}

#[test]
fn a_label_that_does_not_open_keeps_nobody_out() {
    let label_end = golden_labelled().len() - CHECKSUM_BYTES;
    for place in label_end - 56..label_end {
        let mut forged = golden_labelled();
        forged[place] ^= 1;
        let slot = KeySlot::parse(SLOT, &rechecksummed(forged)).unwrap();
        assert!(slot.label(REPOSITORY, &secrets()).is_err(), "byte {place}");
        assert!(slot.open_password(REPOSITORY, &password()).is_ok());
    }
    // That of another repository, and one that this version does not understand.
    let slot = KeySlot::parse(SLOT, &golden_labelled()).unwrap();
    assert!(slot.label(ObjectId([0xab; 16]), &secrets()).is_err());
    assert!(slot.label(REPOSITORY, &Secrets::random()).is_err());
}

#[test]
fn golden_plain_slot() {
    let bytes = KeySlot::seal_plain(&secrets(), REPOSITORY, SLOT).encode();
    assert_eq!(
        blake3::hash(&bytes).to_string(),
        "07ab3bf46310300ada58f35afded7adce7775bec898d20ac5703bdebedc37307"
    );
    let opened = KeySlot::parse(SLOT, &bytes)
        .unwrap()
        .open_plain(REPOSITORY)
        .unwrap();
    assert_eq!(*opened.encode(), *secrets().encode());
}

#[test]
fn slots_come_back_with_every_epoch() {
    let mut secrets = Secrets::random();
    assert_eq!(secrets.begin_epoch(), Some(2));
    let slot = KeySlot::seal_password(&secrets, &password(), SMALL, REPOSITORY, SLOT).unwrap();
    let again = KeySlot::seal_password(&secrets, &password(), SMALL, REPOSITORY, SLOT).unwrap();
    assert_ne!(*slot.encode(), *again.encode(), "the salt is random");
    let slot = KeySlot::parse(SLOT, &slot.encode()).unwrap();
    let opened = slot.open_password(REPOSITORY, &password()).unwrap();
    assert_eq!(opened.newest_epoch(), 2);
    assert_eq!(*opened.encode(), *secrets.encode());
}

#[test]
fn damage_is_told_from_a_wrong_password() {
    let plain = KeySlot::seal_plain(&secrets(), REPOSITORY, SLOT)
        .encode()
        .to_vec();
    for intact in [golden(), golden_labelled(), plain] {
        for place in 0..intact.len() {
            for bit in 0..8 {
                let mut damaged = intact.clone();
                damaged[place] ^= 1 << bit;
                let error = KeySlot::parse(SLOT, &damaged).unwrap_err();
                assert!(
                    matches!(error, KeyError::DamagedSlot { slot: SLOT, .. }),
                    "{error}"
                );
                assert!(error.is_damage());
            }
            let error = KeySlot::parse(SLOT, &intact[..place]).unwrap_err();
            assert!(matches!(error, KeyError::DamagedSlot { .. }), "{error}");
        }
    }
    let slot = KeySlot::parse(SLOT, &golden()).unwrap();
    let error = slot
        .open_password(REPOSITORY, &Password::new("Correct horse"))
        .unwrap_err();
    assert!(
        matches!(error, KeyError::WrongPassword { slots_tried: 1, .. }),
        "{error}"
    );
    assert!(!error.is_damage());
}

#[test]
fn a_slot_opens_only_where_it_belongs() {
    let opens = |repository, id, bytes: &[u8]| {
        KeySlot::parse(id, bytes)
            .unwrap()
            .open_password(repository, &password())
            .is_ok()
    };
    assert!(opens(REPOSITORY, SLOT, &golden()));
    assert!(!opens(ObjectId([0xab; 16]), SLOT, &golden()));
    assert!(!opens(REPOSITORY, ObjectId([0xbc; 16]), &golden()));
}

#[test]
fn a_forged_checksum_does_not_help() {
    for place in 0..golden().len() - CHECKSUM_BYTES {
        let mut forged = golden();
        forged[place] ^= 1;
        match KeySlot::parse(SLOT, &rechecksummed(forged)) {
            Err(_) => assert!(place < 32, "byte {place}"),
            Ok(slot) => assert!(slot.open_password(REPOSITORY, &password()).is_err()),
        }
    }
}

#[test]
fn headers_that_make_no_sense_are_refused() {
    let parse = |place: usize, value: &[u8]| {
        let mut bytes = golden();
        bytes[place..place + value.len()].copy_from_slice(value);
        KeySlot::parse(SLOT, &rechecksummed(bytes)).unwrap_err()
    };
    let word = |value: u32| value.to_le_bytes();
    assert!(matches!(
        parse(8, &word(4)),
        KeyError::UnsupportedSlot { .. }
    ));
    let announced = parse(8, &word(2));
    assert!(
        matches!(announced, KeyError::DamagedSlot { .. }),
        "no label"
    );
    let in_the_clear = parse(8, &[2, 0, 0, 0, 0]);
    assert!(matches!(in_the_clear, KeyError::UnsupportedSlot { .. }));
    assert!(matches!(parse(12, &[2]), KeyError::UnsupportedSlot { .. }));
    assert!(
        matches!(parse(12, &[0]), KeyError::DamagedSlot { .. }),
        "plain with a cost"
    );
    assert!(
        matches!(parse(13, &[1]), KeyError::DamagedSlot { .. }),
        "reserved"
    );
    for length in [1, 4096, 4097, u16::MAX] {
        let error = parse(14, &length.to_le_bytes());
        assert!(matches!(error, KeyError::DamagedSlot { .. }), "{length}");
    }
    assert!(matches!(parse(28, &word(0)), KeyError::DamagedSlot { .. }));
    assert!(matches!(
        parse(28, &word(u32::MAX)),
        KeyError::DamagedSlot { .. }
    ));
    for (place, value) in [
        (16, 15),
        (16, (4 << 20) + 1),
        (16, u32::MAX),
        (20, 0),
        (20, 65),
        (20, u32::MAX),
        (24, 0),
        (24, 17),
        (24, u32::MAX),
    ] {
        let error = parse(place, &word(value));
        assert!(
            matches!(error, KeyError::RefusedCost { slot: SLOT, .. }),
            "{place}: {error}"
        );
    }
}

#[test]
fn nothing_is_sealed_badly() {
    let seal = |password: &Password, cost| {
        KeySlot::seal_password(&secrets(), password, cost, REPOSITORY, SLOT).unwrap_err()
    };
    assert!(matches!(
        seal(&Password::new(""), SMALL),
        KeyError::EmptyPassword
    ));
    let cost = Argon2Cost {
        memory_kib: 1,
        ..SMALL
    };
    assert!(matches!(
        seal(&password(), cost),
        KeyError::RefusedCost { .. }
    ));
}

#[test]
fn the_other_way_of_opening_is_an_error() {
    let plain = KeySlot::seal_plain(&secrets(), REPOSITORY, SLOT);
    let outcome = plain.open_password(REPOSITORY, &password());
    assert!(matches!(outcome, Err(KeyError::NotEncrypted)));
    let outcome = plain.open_plain(ObjectId([0xab; 16]));
    assert!(matches!(outcome, Err(KeyError::ForeignSlot { slot: SLOT })));
    let locked = KeySlot::parse(SLOT, &golden()).unwrap();
    assert!(matches!(
        locked.open_plain(REPOSITORY),
        Err(KeyError::PasswordRequired)
    ));
}

#[test]
fn nothing_secret_is_printed() {
    let printed = format!(
        "{:?} {:?}",
        KeySlot::seal_plain(&secrets(), REPOSITORY, SLOT),
        secrets()
    );
    assert!(
        !printed.contains("payload") && !printed.contains("[1, 1"),
        "{printed}"
    );
}

proptest! {
    #[test]
    fn hostile_slots_never_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..400), version in 0u32..3, kind in 0u8..3,
    ) {
        let _ = KeySlot::parse(SLOT, &bytes);
        if bytes.len() >= HEADER_BYTES + CHECKSUM_BYTES {
            let payload_bytes = (bytes.len() - HEADER_BYTES - CHECKSUM_BYTES) as u32;
            bytes[..8].copy_from_slice(MAGIC);
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            bytes[12] = kind;
            bytes[13..28].fill(0);
            bytes[28..32].copy_from_slice(&payload_bytes.to_le_bytes());
            bytes[32..48].fill(0xaa);
            bytes[48..64].fill(0);
            if let Ok(slot) = KeySlot::parse(SLOT, &rechecksummed(bytes)) {
                let _ = slot.open_plain(REPOSITORY);
            }
        }
    }
}
