//! Tests of the configuration: a golden sample, damage at every byte, tampering, bounds.

use chunking::{Algorithm, OwnParameter, Parameters};
use engine::format::{FieldList, FieldWriter, put_varint};
use engine::object::MemoryStore;
use engine::rewriting::{Capping, LookBackWindow};
use proptest::prelude::*;
use zeroize::Zeroizing;

use super::*;

const ID: ObjectId = ObjectId([0xaa; 16]);
const HEADER_BYTES: usize = 56;
const HASH_BYTES: usize = 32;

/// Made by a program of its own from docs/format/v1.md (Python: blake3).
const GOLDEN: &str = "\
     4f4e45464f4c440a0100000031000000000000000000000000000000000000000000000000000000aaaaaaaa\
     aaaaaaaaaaaaaaaaaaaaaaaa0101010301010508801080408080040207048080800209038080400a0580c49f\
     d50c0c0d6f6e65666f6c6420302e312e308a0949330b6409c99d0d6933d1eaeb8d8825dfdc4c27d25e1a3307\
     6540e0523a2bba4319c910cea3168e94f3dd76b4d52933bd85e44476f9b345cc2ad364e0ad";

fn golden() -> Vec<u8> {
    let digits = GOLDEN.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn secrets_of(first: u8) -> Secrets {
    let secret = |byte| Zeroizing::new([first + byte; 32]);
    Secrets::from_parts(secret(0), secret(1), secret(2), secret(3))
}

fn secrets() -> Secrets {
    secrets_of(1)
}

/// The golden one, of before: its chunker is not the default any more, it looks for no formats, and has no flags.
fn config() -> Config {
    Config {
        chunker: Parameters::new(Algorithm::FastCdc),
        structure: Structure::None,
        features: Features::default(),
        ..Config::new(ID, Encryption::Aes256Gcm, 1_700_000_000, "onefold 0.1.0")
    }
}

/// Puts a checksum that fits, as an attacker would.
fn rechecksummed(mut bytes: Vec<u8>) -> Vec<u8> {
    let covered = bytes.len() - HASH_BYTES;
    let checksum = blake3::hash(&bytes[..covered]);
    bytes[covered..].copy_from_slice(checksum.as_bytes());
    bytes
}

/// A stored configuration with this body, authentication and checksum fitting.
fn with_body(fill: impl FnOnce(&mut FieldWriter)) -> Vec<u8> {
    let mut fields = FieldWriter::new();
    fill(&mut fields);
    let mut bytes = golden()[..HEADER_BYTES].to_vec();
    fields.finish(&mut bytes);
    let body_bytes = (bytes.len() - HEADER_BYTES) as u32;
    bytes[12..16].copy_from_slice(&body_bytes.to_le_bytes());
    bytes.extend_from_slice(blake3::keyed_hash(&secrets().config_key(), &bytes).as_bytes());
    bytes.extend_from_slice(&[0; HASH_BYTES]);
    rechecksummed(bytes)
}

/// The fields of the golden sample, which `change` may replace or drop.
fn with_changed_field(changed: u64, value: Option<&[u8]>) -> Vec<u8> {
    let golden = golden();
    let body = &golden[HEADER_BYTES..golden.len() - 2 * HASH_BYTES];
    with_body(|fields| {
        let mut old = FieldList::new(body);
        while let Some(field) = old.next_field().unwrap() {
            if field.tag != changed {
                fields.field(field.tag, |out| out.extend_from_slice(field.value));
            }
        }
        if let Some(value) = value {
            fields.field(changed, |out| out.extend_from_slice(value));
        }
    })
}

fn with_flags(place: usize, flags: u64) -> Vec<u8> {
    let mut bytes = golden();
    bytes[place..place + 8].copy_from_slice(&flags.to_le_bytes());
    rechecksummed(bytes)
}

#[test]
fn golden_config() {
    assert_eq!(config().encode(&secrets()).unwrap(), golden());
    let unverified = UnverifiedConfig::parse(&golden()).unwrap();
    assert_eq!(
        (unverified.id(), unverified.encryption()),
        (ID, Encryption::Aes256Gcm)
    );
    assert_eq!(unverified.authenticate(&secrets()).unwrap(), config());
}

#[test]
fn new_repositories_may_be_compacted() {
    let new = Config::new(ID, Encryption::Aes256Gcm, 1_700_000_000, "onefold 0.1.0");
    assert!(new.may_have_multi_section() && !config().may_have_multi_section());
    let stored = new.encode(&secrets()).unwrap();
    assert_eq!(stored[32..40], Features::MULTI_SECTION.to_le_bytes());
    let unverified = UnverifiedConfig::parse(&stored).unwrap();
    assert_eq!(unverified.authenticate(&secrets()).unwrap(), new);
}

#[test]
fn damage_is_seen_at_every_bit() {
    for place in 0..golden().len() {
        for bit in 0..8 {
            let mut damaged = golden();
            damaged[place] ^= 1 << bit;
            let error = UnverifiedConfig::parse(&damaged).unwrap_err();
            if place < 8 {
                assert!(
                    matches!(error, ConfigError::NotARepository { .. }),
                    "{place}: {error}"
                );
            } else {
                assert!(
                    matches!(error, ConfigError::Damaged { .. }),
                    "{place}: {error}"
                );
                assert!(error.is_damage());
            }
        }
        let error = UnverifiedConfig::parse(&golden()[..place]).unwrap_err();
        assert!(
            matches!(error, ConfigError::Damaged { .. }),
            "{place} bytes: {error}"
        );
    }
    let mut longer = golden();
    longer.push(0);
    assert!(matches!(
        UnverifiedConfig::parse(&longer),
        Err(ConfigError::Damaged { .. })
    ));
    let error = UnverifiedConfig::parse(b"[core]").unwrap_err();
    assert!(matches!(error, ConfigError::NotARepository { .. }));
}

#[test]
fn tampering_is_seen_once_the_secrets_are_known() {
    let covered = golden().len() - HASH_BYTES;
    let mut authenticated = 0;
    for place in 0..covered {
        for bit in 0..8 {
            let mut forged = golden();
            forged[place] ^= 1 << bit;
            if let Ok(unverified) = UnverifiedConfig::parse(&rechecksummed(forged)) {
                let error = unverified.authenticate(&secrets()).unwrap_err();
                assert!(
                    matches!(error, ConfigError::NotAuthentic),
                    "{place}: {error}"
                );
                authenticated += 1;
            }
        }
    }
    assert!(
        authenticated > 8 * (16 + HASH_BYTES),
        "id and authentication at least"
    );
}

#[test]
fn secrets_of_another_repository_do_not_fit() {
    let unverified = UnverifiedConfig::parse(&golden()).unwrap();
    let outcome = unverified.authenticate(&secrets_of(2));
    assert!(matches!(outcome, Err(ConfigError::NotAuthentic)));
}

#[test]
fn newer_versions_and_features_are_named() {
    let mut newer = golden();
    newer[8] = 2;
    let error = UnverifiedConfig::parse(&rechecksummed(newer)).unwrap_err();
    assert!(matches!(error, ConfigError::VersionTooNew { version: 2 }));

    for (flags, unknown) in [(0x10, 0x10), (0x1 | 0x8, 0x8), (1 << 63, 1 << 63)] {
        let error = UnverifiedConfig::parse(&with_flags(32, flags)).unwrap_err();
        let named = matches!(error, ConfigError::UnknownFeatures { flags } if flags == unknown);
        assert!(named, "{error}");
    }
    for (place, flags) in [(16, u64::MAX), (24, u64::MAX), (32, 0x1 | 0x4)] {
        assert!(UnverifiedConfig::parse(&with_flags(place, flags)).is_ok());
    }
}

#[test]
fn flags_that_are_not_known_are_kept_or_stop_writing() {
    let mut config = config();
    config.features.compatible = 0x10;
    assert!(config.check_writable().is_ok());
    config.features.read_only_compatible = 0x20;
    let error = config.check_writable().unwrap_err();
    assert!(matches!(error, ConfigError::ReadOnly { flags: 0x20 }));
    let bytes = config.encode(&secrets()).unwrap();
    let read = UnverifiedConfig::parse(&bytes)
        .unwrap()
        .authenticate(&secrets())
        .unwrap();
    assert_eq!(read, config);
}

#[test]
fn unknown_fields_are_kept_or_refused() {
    let later = with_changed_field(40, Some(b"later"));
    let read = UnverifiedConfig::parse(&later)
        .unwrap()
        .authenticate(&secrets())
        .unwrap();
    assert!(!read.unknown.is_empty());
    assert_eq!(read.encode(&secrets()).unwrap(), later);
    let error = UnverifiedConfig::parse(&with_changed_field(41, Some(b""))).unwrap_err();
    assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("41"), "{error}");
}

#[test]
fn mandatory_fields_must_be_there_and_make_sense() {
    for tag in [1, 3, 5, 7, 9] {
        let error = UnverifiedConfig::parse(&with_changed_field(tag, None)).unwrap_err();
        assert!(
            matches!(error, ConfigError::Unsupported { .. }),
            "{tag}: {error}"
        );
    }
    for tag in [10, 12] {
        assert!(UnverifiedConfig::parse(&with_changed_field(tag, None)).is_ok());
    }
    for (tag, value) in [
        (1, &[2][..]),
        (1, &[1, 0]),
        (1, &[]),
        (3, &[0xff, 0xff, 3]),
        (5, &[1, 1, 1]),
        (7, &[0xff, 0xff, 0xff, 0xff, 0x1f]),
        (12, &[0xff]),
    ] {
        let error = UnverifiedConfig::parse(&with_changed_field(tag, Some(value))).unwrap_err();
        assert!(
            matches!(error, ConfigError::Unsupported { .. }),
            "{tag}: {error}"
        );
    }
    let error = UnverifiedConfig::parse(&with_changed_field(7, Some(&[0]))).unwrap_err();
    assert!(matches!(error, ConfigError::Parameter { .. }), "{error}");
}

#[test]
fn parameters_have_bounds() {
    type Change = fn(&mut Config);
    let good: [Change; 5] = [
        |_| (),
        |c| c.container_bytes = 64 * MIB,
        |c| c.container_bytes = 256 * KIB,
        |c| c.group_bytes = 16 * MIB,
        |c| (c.chunker.min_bytes, c.chunker.avg_bytes) = (64, 256),
    ];
    for (number, change) in good.iter().enumerate() {
        let mut config = config();
        change(&mut config);
        assert!(config.encode(&secrets()).is_ok(), "good {number}");
    }
    let bad: [Change; 10] = [
        |c| c.container_bytes = 256 * KIB - 1,
        |c| c.container_bytes = 64 * MIB + 1,
        |c| c.container_bytes = 0,
        |c| c.group_bytes = 16 * MIB + 1,
        |c| c.group_bytes = 0,
        |c| c.chunker.min_bytes = 0,
        |c| c.chunker.min_bytes = 9 << 10,
        |c| c.chunker.avg_bytes = 65 << 10,
        |c| c.chunker.max_bytes = (1 << 20) + 1,
        |c| c.chunker.normalization = 4,
    ];
    for (number, change) in bad.iter().enumerate() {
        let mut config = config();
        change(&mut config);
        let error = config.encode(&secrets()).unwrap_err();
        let expected = matches!(
            error,
            ConfigError::Parameter { .. } | ConfigError::Chunker(_)
        );
        assert!(expected, "bad {number}: {error}");
    }
    let mut config = config();
    config.program = "x".repeat(64 << 10);
    assert!(matches!(
        config.encode(&secrets()),
        Err(ConfigError::Parameter { .. })
    ));
}

#[test]
fn an_unkeyed_chunker_must_be_allowed_when_encrypted() {
    let mut config = config();
    assert!(config.validate_keying(true).is_ok());
    let error = config.validate_keying(false).unwrap_err();
    assert!(
        matches!(error, ConfigError::UnkeyedChunker { .. }),
        "{error}"
    );
    config.features.incompatible = Features::UNKEYED_CHUNKER;
    assert!(config.validate_keying(false).is_ok());
    config.features.incompatible = 0;
    config.encryption = Encryption::None;
    assert!(config.validate_keying(false).is_ok());
}

#[test]
fn every_algorithm_is_stored_with_its_own_parameters() {
    for info in chunking::ALGORITHMS {
        let mut config = config();
        config.features.incompatible = Features::UNKEYED_CHUNKER;
        config.container_bytes = 64 * MIB;
        config.chunker = Parameters::new(info.algorithm);
        for (own, value) in [
            (OwnParameter::NormalBytes, 10 * 1024),
            (OwnParameter::WindowBytes, 64),
            (OwnParameter::JumpBytes, 300),
        ] {
            if own.is_of(info.algorithm) {
                config.chunker.own.set(own, value);
            }
        }
        let bytes = config.encode(&secrets()).unwrap();
        let read = UnverifiedConfig::parse(&bytes).unwrap();
        assert_eq!(read.authenticate(&secrets()).unwrap(), config);
    }
}

#[test]
fn accelerations_are_stored_and_unknown_ones_refused_by_name() {
    for (name, about) in Acceleration::names() {
        let mut config = config();
        config.acceleration = Acceleration::from_name(name).unwrap();
        assert_eq!(config.acceleration.to_string(), name);
        assert!(!about.is_empty());
        let bytes = config.encode(&secrets()).unwrap();
        let read = UnverifiedConfig::parse(&bytes).unwrap();
        assert_eq!(read.authenticate(&secrets()).unwrap(), config);
    }
    assert_eq!(Acceleration::from_name("rapid"), None);
    // The stored form, which never changes.
    let stored = |value: &[u8]| {
        let read = UnverifiedConfig::parse(&with_changed_field(13, Some(value)));
        read.map(|read| read.authenticate(&secrets()).unwrap().acceleration)
    };
    let segments = Acceleration::Segments {
        segment_bytes: 1 << 20,
        has_jointing: true,
    };
    assert_eq!(stored(&[2, 0x80, 0x80, 0x40, 1]).unwrap(), segments);
    let rapid = Acceleration::from_name("rapid-ff+mt").unwrap();
    assert_eq!(stored(&[3, 3]).unwrap(), rapid);
    assert_eq!(stored(&[1]).unwrap(), Acceleration::TwoStage);
    for (value, words) in [
        (&[][..], "no number"),
        (&[1, 1], "other numbers"),
        (&[0], "acceleration 0 is not known"),
        (&[7, 1], "acceleration 7 is not known"),
        (&[3, 9], "criterion 9"),
        (&[3], "other numbers"),
        (&[2, 0x80, 0x80, 0x40, 2], "other numbers"),
        (&[3, 1, 1], "other numbers"),
    ] {
        let error = stored(value).unwrap_err();
        assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn rewriting_is_stored_and_an_unknown_one_is_kept_and_not_done() {
    for (_, rewriting) in Rewriting::NAMES {
        let mut config = config();
        config.rewriting = rewriting;
        let bytes = config.encode(&secrets()).unwrap();
        let read = UnverifiedConfig::parse(&bytes).unwrap();
        assert_eq!(read.authenticate(&secrets()).unwrap(), config);
    }
    // The stored form, which never changes.
    let stored = |value: &[u8]| {
        let read = UnverifiedConfig::parse(&with_changed_field(14, Some(value)));
        read.map(|read| read.authenticate(&secrets()).unwrap())
    };
    let window = LookBackWindow::DEFAULT;
    let expected = Rewriting::LookBackWindow(LookBackWindow {
        rewritten_permille_max: 50,
        ..window
    });
    assert_eq!(stored(&[1, 8, 1, 5, 60, 50]).unwrap().rewriting, expected);
    let capping = Rewriting::Capping(Capping {
        segment_bytes: 20 << 20,
        containers_max: 10,
    });
    let number = [2, 0x80, 0x80, 0x80, 10, 10];
    assert_eq!(stored(&number).unwrap().rewriting, capping);
    let later = stored(&[9, 1, 2]).unwrap();
    assert_eq!(later.rewriting, Rewriting::Off);
    assert!(!later.unknown.is_empty());
    for value in [&[][..], &[1], &[1, 8, 1, 61, 60, 50], &[2, 1, 1]] {
        let error = stored(value).unwrap_err();
        assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("rewriting"), "{error}");
    }
}

#[test]
fn structures_are_stored_and_an_unknown_one_is_kept_and_not_looked_for() {
    for (structure, name, _) in Structure::NAMES {
        let mut config = config();
        config.structure = structure;
        let bytes = config.encode(&secrets()).unwrap();
        let read = UnverifiedConfig::parse(&bytes).unwrap();
        assert_eq!(read.authenticate(&secrets()).unwrap(), config, "{name}");
    }
    // The stored form, which never changes.
    let stored = |value: Option<&[u8]>| {
        let read = UnverifiedConfig::parse(&with_changed_field(16, value));
        read.map(|read| read.authenticate(&secrets()).unwrap())
    };
    assert_eq!(stored(Some(&[1])).unwrap().structure, Structure::Tar);
    assert_eq!(stored(None).unwrap().structure, Structure::None);
    let later = stored(Some(&[9])).unwrap();
    assert_eq!(later.structure, Structure::None);
    assert!(!later.unknown.is_empty());
    for value in [&[][..], &[1, 1]] {
        let error = stored(Some(value)).unwrap_err();
        assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
    }
}

#[test]
fn accelerations_that_a_repository_can_not_have() {
    let mut small = config();
    small.acceleration = Acceleration::Segments {
        segment_bytes: 100_000,
        has_jointing: true,
    };
    let mut windowless = config();
    windowless.features.incompatible = Features::UNKEYED_CHUNKER;
    windowless.chunker = Parameters::new(Algorithm::Ram);
    windowless.acceleration = Acceleration::from_name("rapid-ff+rwt").unwrap();
    let mut stageless = windowless.clone();
    stageless.acceleration = Acceleration::TwoStage;
    for (config, words) in [
        (&stageless, "ram has no form in two stages"),
        (&small, "between 131072, twice the greatest chunk"),
        (&windowless, "ram has none to test"),
    ] {
        let error = config.encode(&secrets()).unwrap_err();
        assert!(matches!(error, ConfigError::Parameter { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    windowless.acceleration = Acceleration::from_name("rapid-ff").unwrap();
    assert!(windowless.encode(&secrets()).is_ok());
}

#[test]
fn chunkers_that_a_repository_can_not_have() {
    let mut small = config();
    small.chunker.min_bytes = 63;
    let mut polynomial = config();
    polynomial.chunker = Parameters::new(Algorithm::Rabin);
    let number = 0xbfe6_b8a5_bf37_8d83;
    polynomial.chunker.own.set(OwnParameter::Polynomial, number);
    for (config, words) in [(small, "at least 64"), (polynomial, "beside a key")] {
        let error = config.encode(&secrets()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // Numbers that do not rise, that are 0, that nobody knows; half a pair.
    for value in [&[2, 1, 1, 1][..], &[1, 1, 1, 1], &[0, 1], &[99, 1], &[1]] {
        let error = UnverifiedConfig::parse(&with_changed_field(11, Some(value))).unwrap_err();
        assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
    }
}

#[test]
fn a_repository_is_created_once() {
    let store = MemoryStore::new();
    let error = UnverifiedConfig::read(&store).unwrap_err();
    assert!(
        matches!(error, ConfigError::NotARepository { .. }),
        "{error}"
    );
    config().create(&store, &secrets()).unwrap();
    let error = config().create(&store, &secrets()).unwrap_err();
    assert!(
        matches!(error, ConfigError::AlreadyExists { .. }),
        "{error}"
    );
    let read = UnverifiedConfig::read(&store).unwrap();
    assert_eq!(read.authenticate(&secrets()).unwrap(), config());

    store.corrupt(&ObjectKey::CONFIG, |bytes| bytes.resize(1 << 20, 0));
    let error = UnverifiedConfig::read(&store).unwrap_err();
    assert!(matches!(error, ConfigError::Damaged { .. }), "{error}");
}

proptest! {
    #[test]
    fn configs_come_back(
        id: [u8; 16], encrypted: bool, container_bytes in 256 * KIB..=64 * MIB,
        group_bytes in 4 * KIB..=16 * MIB, created_seconds: i64, program in "\\PC{0,40}",
        avg_bits in 8u32..16, min_share in 0u32..100, max_share in 1u32..=100, compatible: u64,
    ) {
        let encryption = if encrypted { Encryption::Aes256Gcm } else { Encryption::None };
        let mut config = Config::new(ObjectId(id), encryption, created_seconds, &program);
        config.container_bytes = container_bytes;
        config.group_bytes = group_bytes;
        config.features.compatible = compatible;
        let avg_bytes = 1 << avg_bits;
        config.chunker.avg_bytes = avg_bytes;
        config.chunker.min_bytes = 64 + (avg_bytes - 64) * min_share / 100;
        config.chunker.max_bytes = avg_bytes + ((64 << 10) - avg_bytes) * max_share / 100;
        let bytes = config.encode(&secrets()).unwrap();
        let read = UnverifiedConfig::parse(&bytes).unwrap();
        prop_assert_eq!(read.authenticate(&secrets()).unwrap(), config);
    }

    #[test]
    fn hostile_bodies_never_panic(body in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = UnverifiedConfig::parse(&body);
        let mut bytes = golden()[..HEADER_BYTES].to_vec();
        bytes[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&[0; 2 * HASH_BYTES]);
        let _ = UnverifiedConfig::parse(&rechecksummed(bytes));
    }

    #[test]
    fn hostile_fields_never_panic(tag in 0u64..14, numbers in proptest::collection::vec(any::<u64>(), 0..5)) {
        let mut value = Vec::new();
        numbers.iter().for_each(|&number| put_varint(&mut value, number));
        let _ = UnverifiedConfig::parse(&with_changed_field(tag, Some(&value)));
    }
}
