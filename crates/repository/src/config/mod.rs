//! The configuration of a repository: the object `config` (docs/format/v1.md, §4).
//!
//! Enters: at most 64 KiB of body from a store that may be hostile. Leaves, in two steps:
//! [`UnverifiedConfig`], of which only what is needed to ask for a password can be read, and,
//! once the secrets are known, the authentic [`Config`]. Parameters are data: nothing here is
//! read from the environment or the build mode.
//!
//! The configuration is written last when a repository is created, after a key slot: its
//! presence makes the store a repository.

mod acceleration;
mod error;
mod rewriting;
mod stored;
mod structure;

pub use acceleration::{Acceleration, SEGMENT_BYTES_DEFAULT};
pub use error::ConfigError;
pub use stored::UnverifiedConfig;

use chunking::structure::Structure;
use chunking::{OwnParameter, ParameterError, Parameters};
use engine::format::UnknownFields;
use engine::object::{ObjectId, ObjectKey, ObjectStore, PutOutcome};
use engine::pipeline::DeltaLevel;
use engine::rewriting::Rewriting;

use crate::keys::Secrets;

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;

/// Container sizes that are allowed, in bytes.
const CONTAINER_BYTES: std::ops::RangeInclusive<u32> = 64 * KIB..=64 * MIB;
/// Group sizes that are allowed, in bytes.
const GROUP_BYTES: std::ops::RangeInclusive<u32> = 4 * KIB..=16 * MIB;
/// The lowest minimum of a chunk's bytes: one byte a chunk would be a hostile repository.
const CHUNK_BYTES_MIN_LOWEST: u32 = 64;
/// The greatest chunk is at most this part of a container.
const CHUNKS_PER_CONTAINER_MIN: u32 = 4;

/// What the bytes of sealed objects say to one who has no secrets; the number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encryption {
    /// Everything: the secrets lie in a slot in the clear, sealing guards against damage only.
    None = 0,
    /// Nothing but padded lengths: pieces under AES-256-GCM, secrets under a password.
    Aes256Gcm = 1,
}

impl Encryption {
    /// Are objects padded, so that their lengths say little?
    #[must_use]
    pub fn is_padded(self) -> bool {
        self == Encryption::Aes256Gcm
    }

    fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }
}

/// Feature flags, as in ext4: what a reader that does not know a flag may still do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Features {
    /// It may ignore these.
    pub compatible: u64,
    /// It may read, and not write.
    pub read_only_compatible: u64,
    /// It must refuse.
    pub incompatible: u64,
}

impl Features {
    /// Incompatible flag: an encrypted repository whose chunker has no key was asked for.
    pub const UNKEYED_CHUNKER: u64 = 0x1;
    /// Incompatible flag: there may be containers of deltas.
    pub const DELTAS: u64 = 0x2;
    /// Incompatible flag: there may be container objects of several sections, which compaction writes.
    pub const MULTI_SECTION: u64 = 0x4;

    const READ_ONLY_COMPATIBLE_KNOWN: u64 = 0;
    const INCOMPATIBLE_KNOWN: u64 = Self::UNKEYED_CHUNKER | Self::DELTAS | Self::MULTI_SECTION;

    fn check_readable(self) -> Result<(), ConfigError> {
        match self.incompatible & !Self::INCOMPATIBLE_KNOWN {
            0 => Ok(()),
            flags => Err(ConfigError::UnknownFeatures { flags }),
        }
    }
}

/// The parameters of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The repository's random id, a part of every object's sealing.
    pub id: ObjectId,
    /// Who can read it.
    pub encryption: Encryption,
    /// How streams are cut into chunks.
    pub chunker: Parameters,
    /// How that is accelerated, where it changes what is cut.
    pub acceleration: Acceleration,
    /// Formats whose parts are cut apart.
    pub structure: Structure,
    /// Bytes of a whole container object.
    pub container_bytes: u32,
    /// Uncompressed bytes at which a group is closed.
    pub group_bytes: u32,
    /// Which duplicates backups store again, unless a backup says otherwise.
    pub rewriting: Rewriting,
    /// How backups store chunks that resemble others, unless a backup says otherwise.
    pub deltas: DeltaLevel,
    /// When it was created, in seconds since 1970.
    pub created_seconds: i64,
    /// Name and version of the program that created it.
    pub program: String,
    /// What a reader must know.
    pub features: Features,
    /// Fields of newer versions, kept as they are.
    pub unknown: UnknownFields,
}

impl Config {
    /// The configuration of a new repository with default parameters: the default chunker
    /// (`fold` of 2, 8 and 64 KiB at level 2), tar archives cut at their members, containers of 4 MiB, groups of 1 MiB.
    #[must_use]
    pub fn new(id: ObjectId, encryption: Encryption, created_seconds: i64, program: &str) -> Self {
        Self {
            id,
            encryption,
            chunker: Parameters::default(),
            acceleration: Acceleration::None,
            structure: Structure::Tar,
            container_bytes: 4 * MIB,
            group_bytes: MIB,
            rewriting: Rewriting::Off,
            deltas: DeltaLevel::Off,
            created_seconds,
            program: program.to_owned(),
            // A configuration can't be changed later: what every repository may come to need is said from the start.
            features: Features {
                incompatible: Features::MULTI_SECTION,
                ..Features::default()
            },
            unknown: UnknownFields::default(),
        }
    }

    /// Checks every parameter against its bounds and against the others.
    ///
    /// # Errors
    /// [`ConfigError::Parameter`], [`ConfigError::Chunker`], [`ConfigError::UnkeyedChunker`],
    /// [`ConfigError::UnknownFeatures`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.features.check_readable()?;
        let within = |range: &std::ops::RangeInclusive<u32>, name, value: u32| {
            if range.contains(&value) {
                return Ok(());
            }
            Err(ConfigError::parameter(
                name,
                format!(
                    "{value} bytes, between {} and {} make sense",
                    range.start(),
                    range.end()
                ),
            ))
        };
        within(&CONTAINER_BYTES, "container size", self.container_bytes)?;
        within(&GROUP_BYTES, "group size", self.group_bytes)?;
        rewriting::validate(&self.rewriting)
            .map_err(|reason| ConfigError::parameter("rewriting", reason))?;
        if self.deltas != DeltaLevel::Off && !self.may_have_deltas() {
            let reason = "deltas are asked for, and the flag that says so is not set".to_owned();
            return Err(ConfigError::parameter("deltas", reason));
        }
        self.validate_chunker()
    }

    /// May there be containers of deltas?
    #[must_use]
    pub fn may_have_deltas(&self) -> bool {
        self.features.incompatible & Features::DELTAS != 0
    }

    /// May there be container objects of several sections? Not in repositories of before.
    #[must_use]
    pub fn may_have_multi_section(&self) -> bool {
        self.features.incompatible & Features::MULTI_SECTION != 0
    }

    fn validate_chunker(&self) -> Result<(), ConfigError> {
        self.chunker.validate()?;
        self.validate_chunks()?;
        let max_bytes = self.chunker.max_bytes;
        let allowed_bytes = self.container_bytes / CHUNKS_PER_CONTAINER_MIN;
        if max_bytes > allowed_bytes {
            return Err(ConfigError::parameter(
                "chunk sizes",
                format!(
                    "chunks of {max_bytes} bytes, at most a quarter of a container ({allowed_bytes}) makes sense"
                ),
            ));
        }
        self.acceleration.validate(&self.chunker)?;
        self.validate_structure()?;
        self.validate_keying(self.chunker.algorithm.info().keyed)
    }

    /// Bounds that a repository sets and the chunker does not.
    fn validate_chunks(&self) -> Result<(), ConfigError> {
        let Parameters {
            algorithm,
            min_bytes,
            own,
            ..
        } = self.chunker;
        if min_bytes < CHUNK_BYTES_MIN_LOWEST {
            return Err(ConfigError::parameter(
                "chunk sizes",
                format!(
                    "chunks of {min_bytes} bytes, at least {CHUNK_BYTES_MIN_LOWEST} as the minimum make sense"
                ),
            ));
        }
        if algorithm.info().keyed && own.get(OwnParameter::Polynomial).is_some() {
            return Err(ParameterError::PolynomialBesideKey.into());
        }
        Ok(())
    }

    /// Segments begin where they do, whatever is in them.
    fn validate_structure(&self) -> Result<(), ConfigError> {
        let has_segments = matches!(self.acceleration, Acceleration::Segments { .. });
        if has_segments && self.structure != Structure::None {
            let reason = format!(
                "{} can't be looked for in streams that are cut by segments",
                self.structure.name()
            );
            return Err(ConfigError::parameter("structure", reason));
        }
        Ok(())
    }

    /// May a chunker that is `keyed` or not cut what this repository holds?
    fn validate_keying(&self, keyed: bool) -> Result<(), ConfigError> {
        let allowed = self.features.incompatible & Features::UNKEYED_CHUNKER != 0;
        if keyed || allowed || self.encryption == Encryption::None {
            return Ok(());
        }
        Err(ConfigError::UnkeyedChunker {
            algorithm: self.chunker.algorithm,
        })
    }

    /// May this version write to the repository?
    ///
    /// # Errors
    /// [`ConfigError::ReadOnly`] when it uses features that this version may only read.
    pub fn check_writable(&self) -> Result<(), ConfigError> {
        match self.features.read_only_compatible & !Features::READ_ONLY_COMPATIBLE_KNOWN {
            0 => Ok(()),
            flags => Err(ConfigError::ReadOnly { flags }),
        }
    }

    /// The stored form, authenticated with the repository's secrets.
    ///
    /// # Errors
    /// As [`Config::validate`], and when the body would exceed its limit.
    pub fn encode(&self, secrets: &Secrets) -> Result<Vec<u8>, ConfigError> {
        self.validate()?;
        stored::encode(self, secrets)
    }

    /// Makes the store a repository: stores the configuration durably, unless there is one.
    /// The key slots must be there already.
    ///
    /// # Errors
    /// [`ConfigError::AlreadyExists`], [`ConfigError::Store`], and as [`Config::encode`].
    pub fn create(&self, store: &dyn ObjectStore, secrets: &Secrets) -> Result<(), ConfigError> {
        let bytes = self.encode(secrets)?;
        match store.put_if_absent(&ObjectKey::CONFIG, &bytes)? {
            PutOutcome::Created => Ok(()),
            PutOutcome::Exists => Err(ConfigError::AlreadyExists {
                location: store.location(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
