//! Names of objects: a kind and a random 16-byte id.

use std::fmt;
use std::str::FromStr;

/// The random 16-byte id of an object, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 16]);

impl ObjectId {
    /// Length of an id in bytes.
    pub const BYTES: usize = 16;

    /// A new random id from the operating system.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe can go on then.
    #[must_use]
    pub fn random() -> Self {
        let mut id = [0u8; 16];
        getrandom::fill(&mut id).expect("the operating system gives random bytes");
        Self(id)
    }

    /// The first eight hexadecimal digits, enough for a person to tell objects apart.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

/// A text is not the hexadecimal form of an [`ObjectId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is 32 lower-case hexadecimal digits")]
pub struct BadObjectId;

impl FromStr for ObjectId {
    type Err = BadObjectId;

    fn from_str(text: &str) -> Result<Self, BadObjectId> {
        let digits = text.as_bytes();
        if digits.len() != 32 {
            return Err(BadObjectId);
        }
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(BadObjectId),
        };
        let mut id = [0u8; 16];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Ok(Self(id))
    }
}

/// What an object is for; the number is part of its sealing (docs/format).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ObjectKind {
    /// The one `config` object of a repository.
    Config = 1,
    /// Key slots: `keys/ID`.
    Key = 2,
    /// Containers of chunks: `containers/xx/ID`.
    Container = 3,
    /// Runs of the fingerprint index: `index/ID`.
    Index = 4,
    /// Snapshots: `snapshots/ID`.
    Snapshot = 5,
    /// Remaps of logical to physical containers: `remaps/ID`.
    Remap = 6,
    /// Clients at work: `runs/ID`.
    Run = 7,
    /// What is to be deleted: `condemned/ID`.
    Condemned = 8,
    /// Clients that were taken for dead: `expired/ID`.
    Expired = 9,
    /// Secrets of epochs, sealed for those who may have them: `epochs/ID`.
    Epoch = 10,
}

impl ObjectKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [ObjectKind; 10] = [
        ObjectKind::Config,
        ObjectKind::Key,
        ObjectKind::Container,
        ObjectKind::Index,
        ObjectKind::Snapshot,
        ObjectKind::Remap,
        ObjectKind::Run,
        ObjectKind::Condemned,
        ObjectKind::Expired,
        ObjectKind::Epoch,
    ];

    /// The directory (first part of the key) that objects of this kind lie in.
    #[must_use]
    pub fn directory(self) -> &'static str {
        match self {
            ObjectKind::Config => "config",
            ObjectKind::Key => "keys",
            ObjectKind::Container => "containers",
            ObjectKind::Index => "index",
            ObjectKind::Snapshot => "snapshots",
            ObjectKind::Remap => "remaps",
            ObjectKind::Run => "runs",
            ObjectKind::Condemned => "condemned",
            ObjectKind::Expired => "expired",
            ObjectKind::Epoch => "epochs",
        }
    }
}

/// The name of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// What it is for.
    pub kind: ObjectKind,
    /// Which one; all zero for `config`, of which there is one.
    pub id: ObjectId,
}

impl ObjectKey {
    /// The one configuration object of a repository.
    pub const CONFIG: ObjectKey = ObjectKey {
        kind: ObjectKind::Config,
        id: ObjectId([0; 16]),
    };

    /// The key of object `id` of `kind`.
    #[must_use]
    pub fn new(kind: ObjectKind, id: ObjectId) -> Self {
        Self { kind, id }
    }
}

impl fmt::Display for ObjectKey {
    /// `config`, `keys/ID`, or `containers/xx/ID` with `xx` the first two digits of the id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ObjectKind::Config => f.write_str("config"),
            ObjectKind::Container => write!(f, "containers/{:02x}/{}", self.id.0[0], self.id),
            kind => write!(f, "{}/{}", kind.directory(), self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse() {
        let id = ObjectId([0xab; 16]);
        assert_eq!(id.to_string(), "ab".repeat(16));
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in [
            "",
            "ab",
            &"AB".repeat(16),
            &"zz".repeat(16),
            &"ab".repeat(17),
        ] {
            assert_eq!(bad.parse::<ObjectId>(), Err(BadObjectId));
        }
    }

    #[test]
    fn keys_are_paths() {
        let id = ObjectId([0x0f; 16]);
        let path = |kind| ObjectKey::new(kind, id).to_string();
        assert_eq!(ObjectKey::CONFIG.to_string(), "config");
        assert_eq!(path(ObjectKind::Container), format!("containers/0f/{id}"));
        assert_eq!(path(ObjectKind::Snapshot), format!("snapshots/{id}"));
    }
}
