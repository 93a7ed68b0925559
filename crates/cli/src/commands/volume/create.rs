//! `onefold volume create`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use volume::backing::{Backing, FileBacking};
use volume::fingerprint::FingerprintKind;
use volume::{Persistence, Policy, Volume, VolumeSettings};

use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::session::Session;
use crate::units;

/// Make a volume
///
/// The file takes room as the disk is filled. What the disk promises (--size) may be more than the file or device
/// can hold (--backing-size) when blocks are expected to be equal; when it is full, writes fail and nothing
/// that was written is lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold volume create disk.1fv --size 100GiB
  onefold volume create /dev/sdx --size 4TiB --backing-size 2TiB
  onefold volume create journal.1fv --size 20GiB --policy journal     for ext4 with data=journal")]
pub struct CreateArguments {
    /// The file to make, or a block device, whose contents are lost
    #[arg(value_name = "VOLUME")]
    path: PathBuf,

    /// How large the disk is
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    size: u64,

    /// How much of the file or device the volume takes at most [default: what the disk may need if no
    /// block is saved]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    backing_size: Option<u64>,

    /// Which duplicates are stored once: all, none, or blocks that are in a file system's journal already
    /// when they are written home
    #[arg(long, default_value = "full", value_parser = names(&Policy::ALL, Policy::name))]
    policy: Policy,

    /// How the mapping is made durable: inside compressed blocks of data (thin), in place after the data
    /// (ordered), in copies of its pages with every window (cow), or not at all (ram)
    #[arg(long, default_value = "thin", value_parser = names(&Persistence::ALL, Persistence::name))]
    persistence: Persistence,

    /// How blocks are recognised; all but blake3 compare bytes as well [default: blake3 where all
    /// duplicates are looked for, else xxh3]
    #[arg(long, value_parser = names(&FingerprintKind::ALL, FingerprintKind::name))]
    fingerprint: Option<FingerprintKind>,

    /// The smallest unit that clients can read and write, in bytes
    #[arg(long, default_value = "4096", value_parser = PossibleValuesParser::new(["512", "1024", "4096"]).map(|text| text.parse::<u32>().unwrap_or(4096)))]
    sector: u32,

    /// Bytes of a zone
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = units::parse_bytes)]
    zone: u64,

    /// Blocks that a window holds at most
    #[arg(long, value_name = "BLOCKS", default_value = "256")]
    window: u32,

    /// Zones of compressed blocks that fill up before their metadata goes to the tables
    #[arg(long, value_name = "ZONES", default_value = "2")]
    commit_zones: u32,

    /// Where the file system's journal is: `auto` (ext3 and ext4: looked for, and followed), 4 KiB blocks
    /// of the disk `FIRST-LAST,…`, `external` (the whole disk), or `off`
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    journal: String,

    /// Make a volume on a device that holds one, or begin anew in a file that does
    #[arg(long)]
    force: bool,
}

/// Parses the names of a list of choices.
fn names<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |choice| name(*choice))).map(move |text| {
        let found = all.iter().copied().find(|choice| name(*choice) == text);
        found.expect("clap lets only these names through")
    })
}

pub fn run(session: &Session, arguments: &CreateArguments) -> anyhow::Result<ExitCode> {
    let default = if arguments.policy.is_full() {
        FingerprintKind::Blake3
    } else {
        FingerprintKind::Xxh3
    };
    let settings = VolumeSettings {
        size_bytes: arguments.size,
        sector_bytes: arguments.sector,
        policy: arguments.policy,
        persistence: arguments.persistence,
        fingerprint: arguments.fingerprint.unwrap_or(default),
        zone_blocks: u32::try_from(arguments.zone / 4096).unwrap_or(u32::MAX),
        window_blocks: arguments.window,
        commit_zones: arguments.commit_zones,
        journal: arguments.journal.clone(),
    };
    settings.check()?;
    let bytes = arguments
        .backing_size
        .unwrap_or_else(|| Volume::backing_bytes_for(&settings));
    let path = &arguments.path;
    let fresh = FileBacking::create(path, bytes);
    let is_fresh = fresh.is_ok();
    let backing = match fresh {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let backing =
                FileBacking::open(path, true).map_err(|error| super::no_volume(path, error))?;
            refuse_contents(arguments, &backing)?;
            backing
                .grow(bytes)
                .map_err(|error| super::no_volume(path, error))?;
            backing
        }
        made => made.map_err(|error| super::no_volume(path, error))?,
    };
    if let Err(error) = Volume::create(&backing, &settings, Some(bytes)) {
        if is_fresh {
            // Nothing is in it yet.
            let _ = std::fs::remove_file(path);
        }
        return Err(error.into());
    }
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumeCreate {
            volume: path.display().to_string(),
            size_bytes: settings.size_bytes,
            backing_bytes: bytes,
            policy: settings.policy.name(),
            persistence: settings.persistence.name(),
            fingerprint: settings.fingerprint.name(),
        })))?;
    session.output.summary(&format!(
        "A disk of {}, at most {} in {}; policy {}, persistence {}.",
        units::bytes(settings.size_bytes),
        units::bytes(bytes),
        path.display(),
        settings.policy.name(),
        settings.persistence.name(),
    ))?;
    Ok(ExitCode::Done)
}

/// What exists already is only overwritten when that is meant.
fn refuse_contents(arguments: &CreateArguments, backing: &FileBacking) -> anyhow::Result<()> {
    let mut start = vec![0; 1 << 16];
    let length = start
        .len()
        .min(usize::try_from(backing.size_bytes()?).unwrap_or(usize::MAX));
    backing.read_at(0, &mut start[..length])?;
    if arguments.force || start.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    let is_volume = Volume::settings_of(backing).is_ok();
    let what = if is_volume { "a volume" } else { "something" };
    let message = format!("{} holds {what} already", arguments.path.display());
    Err(Failure::new(ExitCode::AlreadyExists, message)
        .with_hint("choose another file, or say with --force that it may be lost")
        .into())
}
