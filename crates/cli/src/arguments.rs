//! The command line: what all verbs share, and the list of verbs.
//!
//! Each verb's own arguments stand in its file under `commands/`. Order of sources: an argument
//! beats its environment variable, and both a profile (`profile.rs`).

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand};
use engine::container::{CompressionChoice, CompressionLevel};
use engine::pipeline::DeltaLevel;
use engine::rewriting::Rewriting;
use remote::Location;
use repository::snapshot::SnapshotFilter;

use crate::commands;
use crate::exit_code;
use crate::units;

/// Least memory that makes sense, in bytes.
const MEMORY_BYTES_MIN: u64 = 32 << 20;
/// Least memory of the index, in bytes.
const INDEX_BYTES_MIN: u64 = engine::index::MEMORY_BYTES_MIN as u64;
/// Least cache of metadata, in bytes.
const CACHE_BYTES_MIN: u64 = 16 << 20;
/// Least bandwidth, in bytes a second: an object of 4 MiB should come through in minutes.
const RATE_BYTES_MIN: u64 = 16 << 10;
/// Most threads that make sense.
const THREADS_MAX: usize = 1024;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "onefold",
    version,
    about = "Encrypted, deduplicating backups",
    long_about = "Encrypted, deduplicating backups: every byte is stored once.\n\n\
        A repository is a directory that holds snapshots of your files. `onefold backup` adds a \
        snapshot, `onefold restore` brings its files back, bit for bit.",
    after_help = FIRST_STEPS,
    after_long_help = format!("{FIRST_STEPS}\n\n{}", exit_code::TABLE),
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
)]
pub struct Arguments {
    #[command(flatten)]
    pub global: GlobalArguments,
    #[command(subcommand)]
    pub command: Command,
}

/// The end of `-h`; that of `--help` has the exit codes as well.
const FIRST_STEPS: &str = "\
First steps:
  onefold -r /mnt/disk/backup backup ~/documents    back up (the first time, creates the repository)
  onefold -r /mnt/disk/backup snapshots             what is there
  onefold -r /mnt/disk/backup restore latest:/home/me/documents /tmp/documents";

/// What every verb takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArguments {
    /// The repository: a directory, or an address on a server such as s3:BUCKET/PREFIX,
    /// s3:https://HOST/BUCKET/PREFIX, sftp:USER@HOST:/PATH or webdav:https://HOST/PATH
    #[arg(
        short,
        long,
        global = true,
        env = "ONEFOLD_REPO",
        hide_env_values = true,
        value_name = "REPOSITORY",
        value_parser = location_parser()
    )]
    pub repo: Option<Location>,

    /// Take what is not given here or by the environment from this profile (see docs/guide/automation.md)
    #[arg(
        short = 'P',
        long,
        global = true,
        env = "ONEFOLD_PROFILE",
        value_name = "NAME"
    )]
    pub profile: Option<String>,

    /// The file of profiles [default: ~/.config/onefold/profiles.toml, else /etc/onefold/profiles.toml]
    #[arg(
        long,
        global = true,
        env = "ONEFOLD_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub config: Option<PathBuf>,

    /// Write how the run ended, and its figures, to this file for Prometheus
    #[arg(
        long,
        global = true,
        env = "ONEFOLD_METRICS_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub metrics_file: Option<PathBuf>,

    /// Read the password from this file (a newline at its end does not count) [else from
    /// ONEFOLD_PASSWORD, or else it is asked for]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        conflicts_with = "password_command"
    )]
    pub password_file: Option<PathBuf>,

    /// Run this command (by `sh -c`) and take its output as the password
    #[arg(long, global = true, value_name = "COMMAND")]
    pub password_command: Option<String>,

    /// Print JSON, one object a line (see docs/guide/json.md)
    #[arg(long, global = true)]
    pub json: bool,

    /// Print nothing but problems and what was asked for: no progress, no summary
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print more details
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,

    /// Threads that compress and restore [default: one for each processor]
    #[arg(long, global = true, value_name = "COUNT", value_parser = parse_threads)]
    pub threads: Option<NonZeroUsize>,

    /// Files, or containers when reading back, that are read at the same time [default: one for each
    /// processor, at least 2]
    #[arg(long, global = true, value_name = "COUNT", value_parser = parse_threads)]
    pub read_concurrency: Option<NonZeroUsize>,

    /// Memory for queues and caches together [default: 256MiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<usize>,

    /// How much of the memory the index of fingerprints may take; 64 MiB hold 100 million chunks
    /// without slowing down [default: 64MiB, at most a quarter of --memory]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_index_memory)]
    pub index_memory: Option<usize>,

    /// Show what each stage of a backup, restore or check is doing, live and as a table at the end,
    /// and which one is the bottleneck
    #[arg(long, global = true)]
    pub stages: bool,

    /// How hard to compress: `none`, a level from -7 (fastest) to 19 (smallest), or `auto`: as hard
    /// as costs no time, by what the pipeline waits for [default: 3]
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        allow_negative_numbers = true,
        value_parser = parse_compression
    )]
    pub compression: Option<CompressionChoice>,

    /// The variable that may hold the password, if it is not ONEFOLD_PASSWORD: of a second repository.
    #[arg(skip)]
    pub password_variable: Option<&'static str>,

    // The last one: its heading would stand above what follows.
    #[command(flatten)]
    pub remote: RemoteArguments,
}

/// What to do: one verb.
#[derive(Debug, Subcommand)]
pub enum Command {
    Init(commands::init::InitArguments),
    Backup(commands::backup::BackupArguments),
    Snapshots(commands::snapshots::SnapshotsArguments),
    Ls(commands::ls::LsArguments),
    Restore(commands::restore::RestoreArguments),
    Dump(commands::dump::DumpArguments),
    Export(commands::export::ExportArguments),
    Import(commands::import::ImportArguments),
    Diff(commands::diff::DiffArguments),
    Copy(commands::copy::CopyArguments),
    Forget(commands::forget::ForgetArguments),
    Prune(commands::prune::PruneArguments),
    Tag(commands::tag::TagArguments),
    Protect(commands::protect::ProtectArguments),
    Unprotect(commands::unprotect::UnprotectArguments),
    Key(commands::key::KeyArguments),
    Stats(commands::stats::StatsArguments),
    Check(commands::check::CheckArguments),
    Repair(commands::repair::RepairArguments),
    Recover(commands::recover::RecoverArguments),
    Migrate(commands::migrate::MigrateArguments),
    Volume(commands::volume::VolumeArguments),
    Completions(commands::completions::CompletionsArguments),
    Man(commands::man::ManArguments),
}

/// Which snapshots are meant, for verbs that take `latest` or list them.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArguments {
    /// Only snapshots of this host (again: of any of these)
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,

    /// Only snapshots of this path, as `snapshots` shows it (again: of all of these)
    #[arg(long = "path", value_name = "PATH")]
    pub paths: Vec<std::ffi::OsString>,

    /// Only snapshots with this tag (again: with all of these)
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
}

impl FilterArguments {
    /// The same for the library.
    pub fn filter(&self) -> SnapshotFilter {
        use std::os::unix::ffi::OsStrExt;
        SnapshotFilter {
            hosts: self.hosts.clone(),
            paths: self
                .paths
                .iter()
                .map(|path| path.as_bytes().to_vec())
                .collect(),
            tags: self.tags.clone(),
        }
    }
}

/// How repositories on servers are used.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Repositories on servers")]
pub struct RemoteArguments {
    /// Requests to the server at the same time [default: 8]
    #[arg(long, global = true, value_name = "COUNT", value_parser = parse_threads)]
    pub connections: Option<NonZeroUsize>,

    /// Send at most so many bytes a second, such as 2MiB
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_rate)]
    pub limit_upload: Option<u64>,

    /// Fetch at most so many bytes a second
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_rate)]
    pub limit_download: Option<u64>,

    /// Keep at most so much metadata of the repository on this machine, below XDG_CACHE_HOME or
    /// ~/.cache [default: 4GiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_cache, conflicts_with = "no_cache")]
    pub cache_size: Option<u64>,

    /// Keep no metadata on this machine, and use none that is there
    #[arg(long, global = true)]
    pub no_cache: bool,
}

/// Reads where a repository lies.
/// Where a repository lies.
pub fn location_parser() -> impl TypedValueParser<Value = Location> {
    OsStringValueParser::new().try_map(|text| Location::parse(&text))
}

fn parse_rate(text: &str) -> Result<u64, String> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    match units::parse_bytes(text)? {
        bytes if bytes < RATE_BYTES_MIN => Err(format!(
            "at least {} a second are needed",
            units::bytes(RATE_BYTES_MIN)
        )),
        bytes => Ok(bytes),
    }
}

fn parse_cache(text: &str) -> Result<u64, String> {
    match units::parse_bytes(text)? {
        bytes if bytes < CACHE_BYTES_MIN => Err(format!(
            "at least {} make sense; --no-cache does without",
            units::bytes(CACHE_BYTES_MIN)
        )),
        bytes => Ok(bytes),
    }
}

fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .ok()
        .filter(|count: &NonZeroUsize| count.get() <= THREADS_MAX)
        .ok_or_else(|| format!("a number from 1 to {THREADS_MAX} is wanted"))
}

fn parse_memory(text: &str) -> Result<usize, String> {
    parse_bytes_from(text, MEMORY_BYTES_MIN)
}

fn parse_index_memory(text: &str) -> Result<usize, String> {
    parse_bytes_from(text, INDEX_BYTES_MIN)
}

fn parse_bytes_from(text: &str, least: u64) -> Result<usize, String> {
    let bytes = units::parse_bytes(text)?;
    if bytes < least {
        return Err(format!("at least {} are needed", units::bytes(least)));
    }
    usize::try_from(bytes).map_err(|_| "this machine can't address as much".to_owned())
}

fn parse_compression(text: &str) -> Result<CompressionChoice, String> {
    match text {
        "none" => return Ok(CompressionLevel::NONE.into()),
        "auto" => return Ok(CompressionChoice::Auto),
        _ => {}
    }
    let level = text.parse().ok().and_then(CompressionLevel::new);
    level
        .map(CompressionChoice::Level)
        .ok_or_else(|| "`none`, `auto` or a number from -7 to 19 is wanted".to_owned())
}

/// Reads a size in bytes that fits 32 bits.
pub fn parse_size(text: &str) -> Result<u32, String> {
    u32::try_from(units::parse_bytes(text)?).map_err(|_| "at most 4 GiB make sense".to_owned())
}

/// The names of policies that store duplicates again, with what there is to say about each.
pub fn rewriting_parser() -> impl TypedValueParser<Value = Rewriting> {
    let names = Rewriting::NAMES.iter().map(|(name, rewriting)| {
        PossibleValue::new(*name).help(match rewriting {
            Rewriting::Off => "no duplicate is stored again",
            Rewriting::LookBackWindow(_) => {
                "those of containers that are rarely referred to nearby, at most 5 % of the data"
            }
            Rewriting::Capping(_) => {
                "those of all but the 10 most needed containers of each 20 MiB"
            }
        })
    });
    PossibleValuesParser::new(names).try_map(|name| Rewriting::named(&name).ok_or("no such policy"))
}

/// The levels of storing similar chunks as deltas, with what there is to say about each.
pub fn delta_parser() -> impl TypedValueParser<Value = DeltaLevel> {
    let names = DeltaLevel::NAMES.iter().map(|(name, level)| {
        PossibleValue::new(*name).help(match level {
            DeltaLevel::Off => "every chunk is stored whole",
            DeltaLevel::Fast => "as the difference to a chunk that is stored whole",
            DeltaLevel::Best => {
                "also as the difference to one that is a difference itself: smallest"
            }
        })
    });
    PossibleValuesParser::new(names).try_map(|name| DeltaLevel::named(&name).ok_or("no such level"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn levels_are_read() {
        assert_eq!(parse_compression("none"), Ok(CompressionLevel::NONE.into()));
        assert_eq!(parse_compression("auto"), Ok(CompressionChoice::Auto));
        assert_eq!(parse_compression("-7").unwrap().level().number(), -7);
        assert_eq!(parse_compression("19").unwrap().level().number(), 19);
        assert!(parse_compression("20").is_err());
        assert!(parse_compression("fast").is_err());
    }
}
