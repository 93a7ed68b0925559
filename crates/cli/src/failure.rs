//! The one place where errors become what a person or a script gets: an exit code, a message
//! (what happened, and where), and a hint (what to do).
//!
//! Commands return any error. It is looked up by its type here, below the context that the
//! command added, so that a new error of the library needs a line in this file and no other.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use engine::format::ObjectError;
use engine::object::{ObjectKind, StoreError};
use engine::pipeline::WriteError;
use engine::restore::ReadError;
use remote::{RemoteError, RemoteErrorKind};
use repository::config::ConfigError;
use repository::files::FilesError;
use repository::keys::KeyError;
use repository::prune::PruneError;
use repository::snapshot::SnapshotError;
use repository::tar::TarError;
use repository::{
    BackupError, CopyError, DiffError, DumpError, ExportError, ListError, MigrateError,
    RepairError, RepositoryError, RestoreError,
};

use volume::nbd::NbdError;
use volume::{DeviceError, VolumeError};

use crate::exit_code::ExitCode;

/// Where a password may come from.
pub const HINT_PASSWORD_SOURCES: &str =
    "set ONEFOLD_PASSWORD, or give --password-file FILE or --password-command COMMAND";
const HINT_DAMAGE: &str = "`onefold check --read-data` names everything that is affected; what is not can still be restored";
/// What to do about a `config` that is gone or wrong.
pub const HINT_CONFIG_DAMAGE: &str =
    "put back a copy of the file `config`, which only `migrate` changes, if you have one";
const HINT_KEY_DAMAGE: &str =
    "put back a copy of the directory `keys` if you have one; nothing can be read without a key";
const HINT_NEWER: &str = "use a newer version of onefold";
const HINT_KEYS: &str = "`onefold key list` lists them";
/// Where a password that is to be added may come from.
pub const HINT_NEW_PASSWORD_SOURCES: &str =
    "set ONEFOLD_NEW_PASSWORD, or give --new-password-file FILE or --new-password-command COMMAND";
const HINT_LIST: &str = "`onefold snapshots` lists them";

/// Why a run failed, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the operating system gets.
    pub code: ExitCode,
    /// What happened, and where.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// The command line asks for something impossible.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, message)
    }

    /// The same with a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {}

/// What a person or a script is told of an error.
pub fn explain(error: &anyhow::Error) -> Failure {
    let mut message = String::new();
    for cause in error.chain() {
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&cause.to_string());
        if let Some(verdict) = judge(cause) {
            return Failure {
                code: verdict.code,
                message,
                hint: verdict.hint,
            };
        }
    }
    Failure::new(ExitCode::Failed, message)
}

/// Code and hint of an error.
#[derive(Debug)]
struct Verdict {
    code: ExitCode,
    hint: Option<String>,
}

fn verdict(code: ExitCode, hint: &str) -> Verdict {
    Verdict {
        code,
        hint: (!hint.is_empty()).then(|| hint.to_owned()),
    }
}

fn failed(hint: &str) -> Verdict {
    verdict(ExitCode::Failed, hint)
}

fn damaged(hint: &str) -> Verdict {
    verdict(ExitCode::Damaged, hint)
}

/// The verdict on an error of a type that is known here.
fn judge(error: &(dyn Error + 'static)) -> Option<Verdict> {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return Some(Verdict {
            code: failure.code,
            hint: failure.hint.clone(),
        });
    }
    None.or_else(|| error.downcast_ref().map(of_repository))
        .or_else(|| error.downcast_ref().map(of_backup))
        .or_else(|| error.downcast_ref().map(of_prune))
        .or_else(|| error.downcast_ref().map(of_repair))
        .or_else(|| error.downcast_ref().map(of_restore))
        .or_else(|| error.downcast_ref().map(of_list))
        .or_else(|| error.downcast_ref().map(of_dump))
        .or_else(|| error.downcast_ref().map(of_export))
        .or_else(|| error.downcast_ref().map(of_copy))
        .or_else(|| error.downcast_ref().map(of_migrate))
        .or_else(|| error.downcast_ref().map(of_diff))
        .or_else(|| error.downcast_ref().map(of_config))
        .or_else(|| error.downcast_ref().map(of_key))
        .or_else(|| error.downcast_ref().map(of_snapshot))
        .or_else(|| error.downcast_ref().map(of_object))
        .or_else(|| error.downcast_ref().map(of_store))
        .or_else(|| error.downcast_ref().map(of_volume))
        .or_else(|| error.downcast_ref().map(of_device))
        .or_else(|| error.downcast_ref().map(of_nbd))
        .or_else(|| error.downcast_ref().map(of_io))
}

const HINT_VOLUME_DAMAGE: &str =
    "`onefold volume check --read-data` names what is affected; restore that from a backup";
const HINT_VOLUME_FULL: &str = "trim what is not needed (fstrim), remove generations (`onefold volume unpin`), or give it more (`onefold volume grow`)";

fn of_volume(error: &VolumeError) -> Verdict {
    match error {
        VolumeError::NotAVolume(_) => verdict(
            ExitCode::NoRepository,
            "`onefold volume create` makes a volume",
        ),
        VolumeError::Unsupported(_) => failed(HINT_NEWER),
        VolumeError::Settings(_) => verdict(ExitCode::Usage, ""),
        VolumeError::Damaged(_) => damaged(HINT_VOLUME_DAMAGE),
        VolumeError::Full(_) => failed(HINT_VOLUME_FULL),
        VolumeError::NoGeneration(_) => failed("`onefold volume generations` lists them"),
        VolumeError::Failed(_) => {
            failed("what was flushed before is safe; look at the disk, then open it again")
        }
        VolumeError::ReadOnly => failed(""),
        VolumeError::Io { source, .. } => of_io(source),
    }
}

fn of_device(error: &DeviceError) -> Verdict {
    match error {
        DeviceError::Damaged(_) => damaged(HINT_VOLUME_DAMAGE),
        DeviceError::Full(_) => failed(HINT_VOLUME_FULL),
        _ => failed(""),
    }
}

fn of_nbd(error: &NbdError) -> Verdict {
    match error {
        NbdError::NotLoopback(_) => verdict(
            ExitCode::Usage,
            "say --allow-remote, or use a socket, an SSH tunnel, or 127.0.0.1",
        ),
        NbdError::InUse(_) | NbdError::NotSocket(_) => failed("choose another path for --socket"),
        _ => failed(""),
    }
}

fn of_repository(error: &RepositoryError) -> Verdict {
    match error {
        RepositoryError::Config(error) => of_config(error),
        RepositoryError::Key(error) => of_key(error),
        RepositoryError::Snapshot(error) => of_snapshot(error),
        RepositoryError::Object(error) => of_object(error),
        RepositoryError::Write(error) => of_write(error),
        RepositoryError::LostConfig { .. } => damaged(HINT_CONFIG_DAMAGE),
        RepositoryError::Chunker(_) => verdict(ExitCode::Usage, ""),
    }
}

fn of_config(error: &ConfigError) -> Verdict {
    match error {
        ConfigError::Store(error) => of_store(error),
        ConfigError::NotARepository { .. } => verdict(ExitCode::NoRepository, ""),
        ConfigError::AlreadyExists { .. } => verdict(
            ExitCode::AlreadyExists,
            "use it as it is, or choose another directory",
        ),
        ConfigError::Damaged { .. } | ConfigError::NotAuthentic => damaged(HINT_CONFIG_DAMAGE),
        ConfigError::VersionTooNew { .. }
        | ConfigError::UnknownFeatures { .. }
        | ConfigError::ReadOnly { .. }
        | ConfigError::Unsupported { .. } => failed(HINT_NEWER),
        ConfigError::OneSection => failed(
            "`onefold migrate several-sections` makes it possible; onefold from before can't read the repository then",
        ),
        ConfigError::Parameter { .. } | ConfigError::Chunker(_) => verdict(ExitCode::Usage, ""),
        ConfigError::UnkeyedChunker { .. } => verdict(
            ExitCode::Usage,
            "choose another algorithm, or allow this one with --allow-unkeyed-chunker",
        ),
    }
}

fn of_key(error: &KeyError) -> Verdict {
    match error {
        KeyError::Store(error) => of_store(error),
        KeyError::WrongPassword { .. } => verdict(
            ExitCode::Password,
            "check where the password comes from; nobody can recover one that is lost",
        ),
        KeyError::PasswordRequired => verdict(ExitCode::Password, HINT_PASSWORD_SOURCES),
        KeyError::EmptyPassword => {
            verdict(ExitCode::Password, "choose a password that is not empty")
        }
        KeyError::NotEncrypted => verdict(
            ExitCode::Password,
            "unset ONEFOLD_PASSWORD and leave --password-file and --password-command away if the repository is meant to be readable by anybody",
        ),
        KeyError::UnsupportedSlot { .. } => failed(HINT_NEWER),
        KeyError::NoSuchSlot { .. } => failed(HINT_KEYS),
        KeyError::AmbiguousSlot { .. } => failed("give more digits of the id"),
        KeyError::SlotInUse { .. } => failed(
            "open the repository with another password, or say --force if you know another one",
        ),
        KeyError::LockedOut(locked_out) if locked_out.is_damaged => {
            failed("`onefold key rotate` begins another one")
        }
        KeyError::LockedOut(_) => failed(
            "open it with another key, or have somebody who has one make a new one for you: `onefold key add`",
        ),
        KeyError::Unpaired { .. } => failed(
            "`onefold key passwd`, with each of their passwords, puts a new key in the place of an old one; or give --leave-out",
        ),
        KeyError::LastSlot { .. } => {
            failed("nobody could read the repository any more; add another password first")
        }
        error if error.is_damage() => damaged(HINT_KEY_DAMAGE),
        _ => failed(""),
    }
}

fn of_snapshot(error: &SnapshotError) -> Verdict {
    match error {
        SnapshotError::Object(error) => of_object(error),
        SnapshotError::TooLarge { .. } => failed(""),
        SnapshotError::BadSpec { .. } => verdict(ExitCode::Usage, HINT_LIST),
        SnapshotError::NotFound { .. } => failed(HINT_LIST),
        SnapshotError::Ambiguous { .. } => failed("give more digits of the id"),
        SnapshotError::Unreadable { .. } => damaged(HINT_DAMAGE),
        SnapshotError::Protected { .. } => {
            failed("nothing was forgotten; `onefold unprotect SNAPSHOT` takes the protection away")
        }
        SnapshotError::Vanished { .. } => failed(HINT_LIST),
    }
}

fn of_object(error: &ObjectError) -> Verdict {
    match error {
        ObjectError::Store(error) => of_store(error),
        ObjectError::Corrupt { key, .. } if key.kind == ObjectKind::Remap => {
            damaged("`onefold repair remaps` makes it again from the containers")
        }
        ObjectError::Corrupt { .. } => damaged(HINT_DAMAGE),
        ObjectError::UnknownEpoch { .. } => failed("open the repository with another password"),
    }
}

fn of_store(error: &StoreError) -> Verdict {
    match error {
        StoreError::Missing { .. } | StoreError::TooShort { .. } | StoreError::TooLong { .. } => {
            damaged(HINT_DAMAGE)
        }
        // The message says what to do.
        StoreError::Full { .. } => failed(""),
        StoreError::Io { source, .. } => of_storage_io(source),
    }
}

fn of_storage_io(error: &io::Error) -> Verdict {
    if let Some(error) = RemoteError::find(error) {
        return of_remote(error);
    }
    match error.kind() {
        ErrorKind::PermissionDenied => {
            failed("run onefold as the user who owns the repository, or let this user write to it")
        }
        ErrorKind::ReadOnlyFilesystem => failed("the repository's disk can't be written to"),
        ErrorKind::NotFound => failed("is the disk mounted?"),
        _ => failed("is the disk still there, and in order?"),
    }
}

fn of_remote(error: &RemoteError) -> Verdict {
    match error.kind {
        RemoteErrorKind::Denied => failed(
            "check the credentials in the environment (AWS_ACCESS_KEY_ID and its like), and what they permit: docs/guide/remote.md lists what onefold needs",
        ),
        RemoteErrorKind::Address => failed(
            "check the address and the region; a bucket must be there before onefold uses it",
        ),
        RemoteErrorKind::Unreachable => failed(
            "check the address, the network and the server; what is already stored is kept, and the same command goes on from there",
        ),
        RemoteErrorKind::Other => failed(""),
    }
}

const HINT_THREADS: &str =
    "ask for fewer with --threads and --read-concurrency, or raise the system's limit";

const HINT_BUG: &str = "this is a bug in onefold; please report it";

fn of_write(error: &WriteError) -> Verdict {
    match error {
        WriteError::Object(error) => of_object(error),
        WriteError::Threads(_) => failed(HINT_THREADS),
        WriteError::WorkerLost | WriteError::Deltas(_) => failed(HINT_BUG),
        WriteError::Read(_) | WriteError::RecipeTooLong | WriteError::Stopped => failed(""),
    }
}

fn of_read(error: &ReadError) -> Verdict {
    match error {
        ReadError::Object(error) => of_object(error),
        error if error.is_damage() => damaged(HINT_DAMAGE),
        _ => failed(""),
    }
}

fn of_files(error: &FilesError) -> Verdict {
    match error {
        FilesError::NoPaths | FilesError::BadPattern { .. } => verdict(ExitCode::Usage, ""),
        FilesError::NoSource { .. } => failed("nothing was backed up; check the paths"),
        _ => failed(""),
    }
}

fn of_backup(error: &BackupError) -> Verdict {
    match error {
        BackupError::Repository(error) => of_repository(error),
        BackupError::Write(error) => of_write(error),
        BackupError::Files(error) => of_files(error),
        BackupError::Stream(_) | BackupError::Source(_) => failed("no snapshot was written"),
        BackupError::Archive(error) => of_tar(error),
        BackupError::Interrupted(_) => verdict(ExitCode::Interrupted, ""),
        BackupError::NoDeltas => verdict(
            ExitCode::Usage,
            "leave --delta away, or create another repository",
        ),
        BackupError::TakenForDead => failed(""),
        BackupError::WorkerLost => failed(HINT_BUG),
    }
}

fn of_prune(error: &PruneError) -> Verdict {
    match error {
        PruneError::Repository(error) => of_repository(error),
        PruneError::Compaction(_)
        | PruneError::Unreadable { .. }
        | PruneError::UnreadableSnapshot { .. }
        | PruneError::Missing { .. } => damaged(
            "nothing was deleted that is not known to be unneeded; `onefold check` names the damage, and `onefold repair snapshots --forget` puts what is left in the place of damaged snapshots",
        ),
        PruneError::AtWork { .. } => failed("try again when it has ended"),
        PruneError::Interrupted => verdict(ExitCode::Interrupted, ""),
    }
}

fn of_repair(error: &RepairError) -> Verdict {
    match error {
        RepairError::Repository(error) => of_repository(error),
        RepairError::Write(error) => of_write(error),
        RepairError::Read(error) => of_read(error),
        RepairError::Compaction(_) => {
            damaged("nothing was changed; `onefold check --read-data` names the damage")
        }
        RepairError::TakenForDead => failed("run it again"),
        RepairError::Interrupted => verdict(ExitCode::Interrupted, ""),
    }
}

fn of_restore(error: &RestoreError) -> Verdict {
    match error {
        RestoreError::Repository(error) => of_repository(error),
        RestoreError::List(error) => of_list(error),
        RestoreError::Target { .. } => failed(""),
        RestoreError::Pattern { .. } => verdict(ExitCode::Usage, ""),
        RestoreError::Interrupted => verdict(ExitCode::Interrupted, ""),
    }
}

fn of_list(error: &ListError) -> Verdict {
    match error {
        ListError::Read { error, .. } => of_read(error),
        ListError::NotFound { .. } => failed("`onefold ls SNAPSHOT` shows what the snapshot holds"),
        error if error.is_damage() => damaged(HINT_DAMAGE),
        _ => failed(""),
    }
}

fn of_dump(error: &DumpError) -> Verdict {
    match error {
        DumpError::Repository(error) => of_repository(error),
        DumpError::List(error) => of_list(error),
        DumpError::NotAFile { .. } => failed("`onefold restore` restores directories and the rest"),
        DumpError::Read { error, .. } => of_read(error),
        DumpError::Threads(_) => failed(HINT_THREADS),
        DumpError::Write(error) => of_io(error),
    }
}

fn of_export(error: &ExportError) -> Verdict {
    match error {
        ExportError::Repository(error) => of_repository(error),
        ExportError::List(error) => of_list(error),
        ExportError::Read { error, .. } => of_read(error),
        ExportError::Threads(_) => failed(HINT_THREADS),
        ExportError::Write(error) => of_io(error),
    }
}

fn of_copy(error: &CopyError) -> Verdict {
    match error {
        CopyError::Source(error) | CopyError::Target(error) => of_repository(error),
        CopyError::SameRepository => verdict(ExitCode::Usage, "give another one to --to"),
        CopyError::List(error) => of_list(error),
        CopyError::Read { error, .. } => of_read(error),
        CopyError::Write(error) => of_write(error),
        CopyError::Refused(_) => failed(""),
        CopyError::Lost => failed("run it again with --force; `onefold check` looks at the target"),
        CopyError::TakenForDead => failed(""),
        CopyError::Interrupted => verdict(ExitCode::Interrupted, ""),
        CopyError::Threads(_) => failed(HINT_THREADS),
    }
}

fn of_migrate(error: &MigrateError) -> Verdict {
    match error {
        MigrateError::Repository(error) => of_repository(error),
        MigrateError::AtWork { .. } => failed(
            "nothing was changed; run it again when they have ended (one that died is taken for dead by `onefold prune`)",
        ),
    }
}

fn of_tar(error: &TarError) -> Verdict {
    match error {
        TarError::Read(_) => failed("no snapshot was written"),
        TarError::Compressed { program, .. } => failed(&format!(
            "no snapshot was written; `{program} FILE | onefold import -` decompresses it on the way"
        )),
        TarError::CutOff { .. } => {
            failed("no snapshot was written; what wrote the archive did not come to its end")
        }
        TarError::Header { .. } | TarError::Member { .. } | TarError::NotADirectory { .. } => {
            failed("no snapshot was written")
        }
    }
}

fn of_diff(error: &DiffError) -> Verdict {
    match error {
        DiffError::Repository(error) => of_repository(error),
        DiffError::List(error) => of_list(error),
    }
}

/// Errors of the operating system that no room has taken up: those of the output, mostly.
fn of_io(error: &io::Error) -> Verdict {
    match error.kind() {
        ErrorKind::BrokenPipe => verdict(ExitCode::OutputClosed, ""),
        _ => failed(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn the_context_stands_before_the_error() {
        let error = Err::<(), _>(io::Error::from(ErrorKind::PermissionDenied))
            .context("cannot read the password file /x")
            .unwrap_err();
        let failure = explain(&error);
        assert_eq!(failure.code, ExitCode::Failed);
        assert_eq!(
            failure.message,
            "cannot read the password file /x: permission denied"
        );
    }

    #[test]
    fn codes_are_found_below_layers() {
        let error = BackupError::Repository(RepositoryError::Key(KeyError::PasswordRequired));
        let failure = explain(&anyhow::Error::new(error).context("backing up"));
        assert_eq!(failure.code, ExitCode::Password);
        assert!(failure.hint.is_some());
        let closed = anyhow::Error::new(DumpError::Write(ErrorKind::BrokenPipe.into()));
        assert_eq!(explain(&closed).code, ExitCode::OutputClosed);
    }

    #[test]
    fn own_failures_keep_what_they_say() {
        let failure = Failure::usage("no").with_hint("yes");
        assert_eq!(explain(&anyhow::Error::new(failure.clone())), failure);
    }
}
