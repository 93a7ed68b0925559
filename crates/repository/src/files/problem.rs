//! What can go wrong with files, in types: where, while doing what, and how.

use std::fmt;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// Something that could not be stored or restored as it should have been.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}: {error}", path.display())]
pub struct Problem {
    /// The file concerned.
    pub path: PathBuf,
    /// What was being done.
    pub what: Action,
    /// Why it failed.
    #[source]
    pub error: FilesError,
}

impl Problem {
    /// Is this only to be mentioned, because nothing is lost that a backup could hold?
    #[must_use]
    pub fn is_notice(&self) -> bool {
        matches!(self.error, FilesError::Socket)
    }
}

/// What was being done when a problem came up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Looking for a path that the user named.
    FindSource,
    /// Reading the type, owner, times of an entry.
    Inspect,
    /// Reading the names in a directory.
    List,
    /// Opening a file to read it.
    Open,
    /// Reading a file's content.
    Read,
    /// Reading the target of a symlink.
    ReadTarget,
    /// Listing the extended attributes.
    ListAttributes,
    /// Reading one extended attribute.
    ReadAttribute {
        /// Its name.
        name: Vec<u8>,
    },
    /// Reading an ignore file or the tag of a cache directory.
    ReadRules,
    /// Creating an entry.
    Create,
    /// Writing a file's content.
    Write,
    /// Restoring owner and group.
    SetOwner,
    /// Restoring the permissions.
    SetMode,
    /// Restoring one extended attribute.
    SetAttribute {
        /// Its name.
        name: Vec<u8>,
    },
    /// Restoring the time of the last modification.
    SetTimes,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Action::FindSource => "not found",
            Action::Inspect => "not examined",
            Action::List => "not listed in full",
            Action::Open => "not opened",
            Action::Read => "not read in full",
            Action::ReadTarget => "target not read",
            Action::ListAttributes => "extended attributes not read",
            Action::ReadRules => "not used in full",
            Action::Create => "not created",
            Action::Write => "not written in full",
            Action::SetOwner => "not restored: owner",
            Action::SetMode => "not restored: permissions",
            Action::SetTimes => "not restored: time of modification",
            Action::ReadAttribute { name } => {
                return write!(f, "extended attribute {} not read", name.escape_ascii());
            }
            Action::SetAttribute { name } => {
                return write!(
                    f,
                    "not restored: extended attribute {}",
                    name.escape_ascii()
                );
            }
        };
        f.write_str(text)
    }
}

/// Why something about files failed.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It was there a moment ago.
    #[error("it vanished meanwhile")]
    Vanished,
    /// Another file or directory stands under the name now.
    #[error("something else took its place meanwhile")]
    Replaced,
    /// Sockets live with the process that made them.
    #[error("sockets are not stored")]
    Socket,
    /// A type of file that has no stored form.
    #[error("its type is not known (mode {mode:o})")]
    UnknownType {
        /// The mode that says so.
        mode: u32,
    },
    /// The extended attributes of one file take too many bytes.
    #[error("with it the extended attributes would exceed {limit} bytes")]
    AttributesTooLarge {
        /// How many bytes they may take.
        limit: usize,
    },
    /// The number of a user or group is none, and no such name is known here.
    #[error("user {uid} or group {gid} is not a valid number")]
    BadOwner {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// A path given leads through a symlink that another given path holds.
    #[error("it is a symlink that another given path leads through; stored as a directory")]
    SymlinkTakenAsDirectory,
    /// None of the paths given is there.
    #[error("'{}' can't be backed up: {error}", path.display())]
    NoSource {
        /// The first of them.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// No path was given.
    #[error("there is nothing to back up: no path is given")]
    NoPaths,
    /// A pattern does not parse.
    #[error("the pattern '{pattern}' does not parse: {reason}")]
    BadPattern {
        /// The pattern, or the line of a file.
        pattern: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of rules is larger than rules ever are, or no text.
    #[error("it is not a text file of at most {limit} bytes")]
    BadRules {
        /// The limit.
        limit: u64,
    },
    /// A file of patterns can't be used.
    #[error("the pattern file '{}' can't be used: {error}", path.display())]
    PatternFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: Box<FilesError>,
    },
    /// Something stands under the name already.
    #[error("something of that name is there already")]
    Exists,
    /// A name that can't be the name of an entry.
    #[error("'{}' is not a name of an entry", name.escape_ascii())]
    BadName {
        /// The name.
        name: Vec<u8>,
    },
}

impl From<Errno> for FilesError {
    fn from(errno: Errno) -> Self {
        FilesError::Io(errno.into())
    }
}

impl FilesError {
    /// The meaning of a failure to reach something that was seen a moment ago.
    pub(super) fn of_second_look(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => FilesError::Vanished,
            Errno::LOOP | Errno::NOTDIR | Errno::NXIO => FilesError::Replaced,
            other => other.into(),
        }
    }

    /// Is this about permissions rather than about the file?
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        matches!(self, FilesError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }
}
