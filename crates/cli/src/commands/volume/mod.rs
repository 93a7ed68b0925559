//! `onefold volume`: disks that store every block once.

mod access;
mod create;
mod serving;
mod stat;
mod upkeep;

pub use access::{Access, GenerationDisk};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use volume::backing::FileBacking;
use volume::{OpenOptions, Volume};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::session::Session;
use crate::units;

/// Block volumes: disks that store every block once
///
/// A volume is a file or a block device that holds a disk. `create` makes it; `serve` gives the disk to
/// clients of the network block device protocol (QEMU, nbd-client, nbdcopy), `mount` to the system as a file,
/// for a loop device. Volumes are not encrypted: put the file on an encrypted disk.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold volume create disk.1fv --size 100GiB
  onefold volume serve disk.1fv --socket /run/disk.sock
  onefold volume mount disk.1fv /mnt/volume     then: losetup -f --show --direct-io=on /mnt/volume/disk
  onefold volume stat disk.1fv
  onefold volume check disk.1fv --read-data
  onefold volume pin disk.1fv")]
pub struct VolumeArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Create(create::CreateArguments),
    Serve(serving::ServeArguments),
    Mount(serving::MountArguments),
    Stat(stat::StatArguments),
    Check(upkeep::CheckArguments),
    Compact(upkeep::CompactArguments),
    Grow(upkeep::GrowArguments),
    Pin(upkeep::PinArguments),
    Unpin(upkeep::UnpinArguments),
    Generations(upkeep::GenerationsArguments),
}

pub fn run(session: &Session, arguments: &VolumeArguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        Verb::Create(arguments) => create::run(session, arguments),
        Verb::Serve(arguments) => serving::serve(session, arguments),
        Verb::Mount(arguments) => serving::mount(session, arguments),
        Verb::Stat(arguments) => stat::run(session, arguments),
        Verb::Check(arguments) => upkeep::check(session, arguments),
        Verb::Compact(arguments) => upkeep::compact(session, arguments),
        Verb::Grow(arguments) => upkeep::grow(session, arguments),
        Verb::Pin(arguments) => upkeep::pin(session, arguments),
        Verb::Unpin(arguments) => upkeep::unpin(session, arguments),
        Verb::Generations(arguments) => upkeep::generations(session, arguments),
    }
}

/// How often a volume that is in use is tried again, and after how long: who has it may be about to end.
const OPEN_TRIES: u32 = 10;
const OPEN_AGAIN_AFTER: Duration = Duration::from_millis(30);

/// Which volume, and how much memory it may take.
#[derive(Debug, Args)]
pub struct Place {
    /// The file or block device that holds the volume
    #[arg(value_name = "VOLUME")]
    path: PathBuf,

    /// Memory for pages of its tables
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = units::parse_bytes)]
    cache: u64,
}

impl Place {
    /// The volume at `path`, with the memory that is usual.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            cache: OpenOptions::default().cache_bytes,
        }
    }

    /// Opens the file or device.
    fn backing(&self, writable: bool) -> anyhow::Result<Arc<FileBacking>> {
        for _ in 0..OPEN_TRIES {
            match FileBacking::open(&self.path, writable) {
                Ok(backing) => return Ok(Arc::new(backing)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    std::thread::sleep(OPEN_AGAIN_AFTER);
                }
                Err(error) => return Err(no_volume(&self.path, error)),
            }
        }
        Err(access::in_use(&self.path))
    }

    /// Opens the volume.
    fn open(
        &self,
        session: &Session,
        writable: bool,
        volatile: bool,
    ) -> anyhow::Result<Arc<Volume>> {
        self.open_on(session, self.backing(writable)?, writable, volatile)
    }

    /// Opens the volume on its file or device.
    fn open_on(
        &self,
        session: &Session,
        backing: Arc<FileBacking>,
        writable: bool,
        volatile: bool,
    ) -> anyhow::Result<Arc<Volume>> {
        let options = OpenOptions {
            cache_bytes: self.cache,
            read_only: !writable,
            allow_volatile: volatile,
        };
        let volume =
            Volume::open(backing, &options).with_context(|| self.path.display().to_string())?;
        let recovery = volume.recovery();
        if recovery.windows_replayed > 0 || recovery.windows_discarded > 0 || recovery.rebuilt {
            session.output.note(&format!(
                "It was not closed: {} taken back, {} that no flush covered left out.",
                units::counted(recovery.windows_replayed, "window", "windows"),
                units::count(recovery.windows_discarded),
            ));
        }
        Ok(Arc::new(volume))
    }
}

/// There is no volume at `path`, or it can't be opened.
pub fn no_volume(path: &Path, error: std::io::Error) -> anyhow::Error {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => ExitCode::NoRepository,
        _ => ExitCode::Failed,
    };
    Failure::new(code, format!("{}: {error}", path.display())).into()
}

/// A failure of the library with the volume's name before it.
fn of<T>(path: &Path, outcome: Result<T, volume::VolumeError>) -> anyhow::Result<T> {
    outcome.with_context(|| path.display().to_string())
}
