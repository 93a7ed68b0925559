//! What can be wrong with a configuration.

use chunking::{Algorithm, ParameterError};
use engine::format::DecodeError;
use engine::object::StoreError;

/// Why a configuration could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The store could not give or take it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no `config`, or it is not one of onefold.
    #[error("no onefold repository: {reason}")]
    NotARepository {
        /// What was found instead.
        reason: String,
    },
    /// There is a repository already where one was to be created.
    #[error("{location} holds a repository already")]
    AlreadyExists {
        /// The store, for a person.
        location: String,
    },
    /// Its bytes are not what was written.
    #[error("config is damaged: {reason}")]
    Damaged {
        /// What is wrong.
        reason: DecodeError,
    },
    /// It was written in a later version of the format.
    #[error("the repository has format version {version}; this version of onefold reads version 1")]
    VersionTooNew {
        /// The version it names.
        version: u32,
    },
    /// It uses features without which it can't be understood.
    #[error(
        "the repository uses features that this version of onefold does not know (incompatible flags {flags:#x})"
    )]
    UnknownFeatures {
        /// The flags not known.
        flags: u64,
    },
    /// It uses features that this version may only read.
    #[error(
        "the repository uses features with which this version of onefold may only read it (flags {flags:#x})"
    )]
    ReadOnly {
        /// The flags not known.
        flags: u64,
    },
    /// It comes from before containers could be packed anew, and older versions may use it.
    #[error("containers can't be packed anew: the repository was made before that was possible")]
    OneSection,
    /// Something in its body is not known to this version.
    #[error("config can't be used by this version of onefold: {reason}")]
    Unsupported {
        /// What is not known.
        reason: DecodeError,
    },
    /// A parameter is out of bounds.
    #[error("the {name} can't be used: {reason}")]
    Parameter {
        /// Which parameter.
        name: &'static str,
        /// The bound that it breaks.
        reason: String,
    },
    /// The chunker's parameters can't be used.
    #[error(transparent)]
    Chunker(#[from] ParameterError),
    /// Chunk lengths would tell about the contents of an encrypted repository.
    #[error(
        "{algorithm} cuts chunks without a key: their lengths would tell what an encrypted repository holds; it must be allowed explicitly"
    )]
    UnkeyedChunker {
        /// The chunker.
        algorithm: Algorithm,
    },
    /// Intact bytes, but not those that a holder of the secrets wrote.
    #[error(
        "config is not the one that this repository was created with: somebody has changed it, or its key slots are those of another repository"
    )]
    NotAuthentic,
}

impl ConfigError {
    pub(super) fn parameter(name: &'static str, reason: String) -> Self {
        ConfigError::Parameter { name, reason }
    }

    /// Does this mean that stored bytes are gone or wrong?
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            ConfigError::Damaged { .. } | ConfigError::NotAuthentic
        )
    }
}
