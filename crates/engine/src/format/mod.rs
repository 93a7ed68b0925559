//! Building blocks of the stored format: integers, field lists, sealing, padding.
//! Specified in docs/format/v1.md, §1 and §3; each file names its section.

mod decode;
mod document;
mod fields;
mod padme;
mod seal;

pub use decode::{DecodeError, Decoder, put_bytes, put_signed, put_varint, varint_bytes};
pub use document::{
    DOCUMENT_BYTES_MAX, open_document, read_document, read_document_and_epoch, seal_document,
    write_document,
};
pub use fields::{Field, FieldList, FieldWriter, UnknownFields};
pub use padme::padme;
pub use seal::{
    FindSecret, LENGTH_TAG_BYTES, ObjectSealer, SEAL_TAG_BYTES, SealError, Vault,
    WRITER_EPOCHS_FROM, is_writer_epoch,
};

use crate::object::{ObjectKey, StoreError};

/// Why an object could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The store could not give or take it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its bytes are not what was written.
    #[error("{key} is damaged: {part}: {reason}")]
    Corrupt {
        /// Which object.
        key: ObjectKey,
        /// Which part of it, for a person.
        part: &'static str,
        /// What is wrong.
        reason: DecodeError,
    },
    /// It was sealed in an epoch whose secret this password does not open.
    #[error("{key} was sealed in epoch {epoch}, for which this key slot holds no secret")]
    UnknownEpoch {
        /// Which object.
        key: ObjectKey,
        /// The epoch its header names.
        epoch: u32,
    },
}

impl ObjectError {
    /// The object concerned.
    #[must_use]
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            ObjectError::Corrupt { key, .. } | ObjectError::UnknownEpoch { key, .. } => Some(*key),
            ObjectError::Store(
                StoreError::Missing { key, .. }
                | StoreError::TooShort { key, .. }
                | StoreError::TooLong { key, .. }
                | StoreError::Full { key, .. },
            ) => Some(*key),
            ObjectError::Store(StoreError::Io { .. }) => None,
        }
    }

    /// Is this the absence of an object, rather than a failure to look?
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, ObjectError::Store(error) if error.is_missing())
    }

    /// Does this mean that stored bytes are gone or wrong (rather than unreachable just now)?
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            ObjectError::Corrupt { .. } => true,
            ObjectError::UnknownEpoch { .. } => false,
            ObjectError::Store(error) => matches!(
                error,
                StoreError::Missing { .. }
                    | StoreError::TooShort { .. }
                    | StoreError::TooLong { .. }
            ),
        }
    }
}

/// Attaches the object and part to what a decoder or the sealing says.
pub trait InObject<T> {
    /// Names the object and the part of it that was being read.
    ///
    /// # Errors
    /// The same failure as [`ObjectError::Corrupt`].
    fn in_object(self, key: ObjectKey, part: &'static str) -> Result<T, ObjectError>;
}

impl<T> InObject<T> for Result<T, DecodeError> {
    fn in_object(self, key: ObjectKey, part: &'static str) -> Result<T, ObjectError> {
        self.map_err(|reason| ObjectError::Corrupt { key, part, reason })
    }
}

impl<T> InObject<T> for Result<T, SealError> {
    fn in_object(self, key: ObjectKey, part: &'static str) -> Result<T, ObjectError> {
        self.map_err(|error| match error {
            SealError::UnknownEpoch { epoch } => ObjectError::UnknownEpoch { key, epoch },
            // Nobody knows what the object holds: that is not damage.
            SealError::Unreachable { epoch, reason } => ObjectError::Store(StoreError::Io {
                action: "read",
                subject: format!("the secret of epoch {epoch}, for {key}"),
                location: "the repository".to_owned(),
                source: reason.into(),
            }),
            SealError::NotAuthentic => ObjectError::Corrupt {
                key,
                part,
                reason: DecodeError::new("its seal does not match its bytes"),
            },
            SealError::BadHeader => ObjectError::Corrupt {
                key,
                part,
                reason: DecodeError::new("its header is not one of this kind of object"),
            },
        })
    }
}
