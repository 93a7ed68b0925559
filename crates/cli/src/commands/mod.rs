//! One file a verb. Each has its arguments and a `run` that does the verb with the library and
//! says how it went: an [`ExitCode`], or an error for `failure.rs`.

pub mod backup;
mod backup_volume;
pub mod check;
pub mod completions;
pub mod copy;
pub mod diff;
pub mod dump;
pub mod export;
pub mod forget;
pub mod import;
pub mod init;
pub mod key;
pub mod ls;
pub mod man;
pub mod migrate;
pub mod protect;
pub mod prune;
pub mod recover;
pub mod repair;
pub mod restore;
pub mod snapshots;
pub mod stats;
pub mod tag;
pub mod unprotect;
pub mod volume;

use crate::arguments::Command;
use crate::exit_code::ExitCode;
use crate::session::Session;

/// Does what the command line asks for.
pub fn run(session: &Session, command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Init(arguments) => init::run(session, arguments),
        Command::Backup(arguments) => backup::run(session, arguments),
        Command::Snapshots(arguments) => snapshots::run(session, arguments),
        Command::Ls(arguments) => ls::run(session, arguments),
        Command::Restore(arguments) => restore::run(session, arguments),
        Command::Dump(arguments) => dump::run(session, arguments),
        Command::Export(arguments) => export::run(session, arguments),
        Command::Import(arguments) => import::run(session, arguments),
        Command::Diff(arguments) => diff::run(session, arguments),
        Command::Copy(arguments) => copy::run(session, arguments),
        Command::Forget(arguments) => forget::run(session, arguments),
        Command::Prune(arguments) => prune::run(session, arguments),
        Command::Tag(arguments) => tag::run(session, arguments),
        Command::Protect(arguments) => protect::run(session, arguments),
        Command::Unprotect(arguments) => unprotect::run(session, arguments),
        Command::Key(arguments) => key::run(session, arguments),
        Command::Stats(arguments) => stats::run(session, arguments),
        Command::Check(arguments) => check::run(session, arguments),
        Command::Repair(arguments) => repair::run(session, arguments),
        Command::Recover(arguments) => recover::run(session, arguments),
        Command::Migrate(arguments) => migrate::run(session, arguments),
        Command::Volume(arguments) => volume::run(session, arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    }
}
