//! `onefold volume serve` and `mount`: the disk for others, until somebody asks for an end.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use volume::nbd::{self, Endpoint, Export, Limits, Server};
use volume::{BlockDevice, Clock, PinnedDisk, Volume, control};

use super::Place;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt;
use crate::session::Session;
use crate::units;

/// Where clients find the disk when nothing is said.
const DEFAULT_ADDRESS: &str = "127.0.0.1:10809";

/// How often an end that was asked for is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What both ways of serving take.
#[derive(Debug, Args)]
struct ServingArguments {
    #[command(flatten)]
    place: Place,

    /// Serve this pinned generation, which can only be read
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u32>,

    /// Let nobody write
    #[arg(long)]
    read_only: bool,

    /// Milliseconds after which what was written and not flushed goes to the disk at the latest
    #[arg(long, value_name = "MS", default_value = "200", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    window_age: u64,

    /// Use a volume of persistence `ram`, which is empty now and whose contents are lost at the end
    #[arg(long)]
    volatile: bool,
}

/// Serve the disk to clients of the network block device protocol
///
/// Until Ctrl-C or SIGTERM. A write is answered when it is in memory, like that of a disk with a cache; a flush is
/// answered when everything before it is durable.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold volume serve disk.1fv --socket /run/disk.sock
  qemu-system-x86_64 … -drive file=nbd+unix:///?socket=/run/disk.sock,format=raw
  onefold volume serve disk.1fv --listen 127.0.0.1:10809
  nbd-client 127.0.0.1 10809 /dev/nbd0
  onefold volume serve disk.1fv --generation 3 --socket /run/old.sock")]
pub struct ServeArguments {
    #[command(flatten)]
    serving: ServingArguments,

    /// Listen at this Unix socket (again: at several)
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,

    /// Listen at this address [default: 127.0.0.1:10809 if there is no --socket]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,

    /// Listen at addresses that other machines reach; whoever reaches one can read and write everything
    #[arg(long)]
    allow_remote: bool,

    /// What clients call the disk; they find it without a name, too
    #[arg(long, value_name = "NAME", default_value = "disk")]
    name: String,
}

/// Show the disk as a file, for loop devices
///
/// Until Ctrl-C, SIGTERM or `umount`. The directory then has one file, `disk`, as large as the disk.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples (as root):
  onefold volume mount disk.1fv /mnt/volume
  losetup -f --show --direct-io=on --sector-size 4096 /mnt/volume/disk
  mkfs.ext4 /dev/loop0")]
pub struct MountArguments {
    #[command(flatten)]
    serving: ServingArguments,

    /// An empty directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// What the file is called
    #[arg(long, value_name = "NAME", default_value = "disk")]
    name: String,

    /// Let root use it as well when another user mounts it (loop devices need that; /etc/fuse.conf must
    /// have user_allow_other)
    #[arg(long)]
    allow_root: bool,
}

/// A volume that is in use.
struct Serving {
    volume: Arc<Volume>,
    disk: Arc<dyn BlockDevice>,
    clock: Option<Clock>,
    control: Option<control::Server>,
}

impl Serving {
    fn start(session: &Session, arguments: &ServingArguments) -> anyhow::Result<Self> {
        interrupt::catch()?;
        let writable = !arguments.read_only && arguments.generation.is_none();
        let volume = arguments
            .place
            .open(session, writable, arguments.volatile)?;
        let disk: Arc<dyn BlockDevice> = match arguments.generation {
            Some(number) => Arc::new(super::of(
                &arguments.place.path,
                PinnedDisk::new(Arc::clone(&volume), number),
            )?),
            None => Arc::clone(&volume) as Arc<dyn BlockDevice>,
        };
        let clock = writable
            .then(|| Clock::start(&volume, Duration::from_millis(arguments.window_age)))
            .transpose()?;
        let control = match writable {
            true => Self::listen(session, &volume, &arguments.place.path),
            // Others may read, too, and do so themselves.
            false => None,
        };
        Ok(Self {
            volume,
            disk,
            clock,
            control,
        })
    }

    /// Answers what `stat`, `pin`, `backup --volume` and others ask for meanwhile.
    fn listen(session: &Session, volume: &Arc<Volume>, path: &Path) -> Option<control::Server> {
        match control::Server::start(volume, path) {
            Ok(server) => Some(server),
            Err(error) => {
                session.output.note(&format!(
                    "Other commands cannot be answered meanwhile: {error}."
                ));
                None
            }
        }
    }

    fn end(mut self, session: &Session, path: &Path) -> anyhow::Result<ExitCode> {
        self.control = None;
        self.clock = None;
        super::of(path, self.volume.close())?;
        let counters = self.volume.counters();
        session
            .output
            .event(&Event::Summary(Box::new(Summary::VolumeServe {
                volume: path.display().to_string(),
                counters: super::stat::counters(&counters),
            })))?;
        session.output.summary(&format!(
            "Closed. In its life {} were written to the disk, and {} to the store.",
            units::bytes(counters.user_blocks_written * 4096),
            units::bytes(counters.blocks_written() * 4096),
        ))?;
        Ok(ExitCode::Done)
    }
}

pub fn serve(session: &Session, arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let serving = Serving::start(session, &arguments.serving)?;
    let mut listen: Vec<Endpoint> = arguments
        .socket
        .iter()
        .cloned()
        .map(Endpoint::Unix)
        .collect();
    listen.extend(arguments.listen.iter().copied().map(Endpoint::Tcp));
    if listen.is_empty() {
        listen.push(Endpoint::Tcp(DEFAULT_ADDRESS.parse()?));
    }
    let settings = nbd::Settings {
        listen,
        allow_remote: arguments.allow_remote,
        limits: Limits::default(),
    };
    let export = Export {
        name: arguments.name.clone(),
        description: "onefold volume".to_owned(),
        device: Arc::clone(&serving.disk),
    };
    let server = Server::start(vec![export], &settings)?;
    for endpoint in server.endpoints() {
        session.output.event(&Event::Serving {
            address: endpoint.to_string(),
        })?;
        session
            .output
            .note(&format!("Serving at {endpoint}. Ctrl-C ends it."));
    }
    while !interrupt::is_requested() {
        std::thread::sleep(LOOK_EVERY);
    }
    let ended = server.shutdown();
    let code = serving.end(session, &arguments.serving.place.path)?;
    ended?;
    Ok(code)
}

#[cfg(target_os = "linux")]
pub fn mount(session: &Session, arguments: &MountArguments) -> anyhow::Result<ExitCode> {
    use volume::fuse::{Access, Mount, Settings};
    let serving = Serving::start(session, &arguments.serving)?;
    let settings = Settings {
        name: arguments.name.clone(),
        access: if arguments.allow_root {
            Access::OwnerAndRoot
        } else {
            Access::Owner
        },
        ..Settings::default()
    };
    let mut mount = Mount::start(Arc::clone(&serving.disk), &arguments.directory, &settings)?;
    let file = arguments.directory.join(&arguments.name);
    session.output.event(&Event::Serving {
        address: file.display().to_string(),
    })?;
    session.output.note(&format!(
        "The disk is {}. Ctrl-C or `umount {}` ends it.",
        file.display(),
        arguments.directory.display()
    ));
    while mount.is_mounted() {
        if interrupt::is_requested() {
            match mount.unmount() {
                Ok(()) => break,
                Err(error) => {
                    session.output.warning(&format!("{error}; trying again"));
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    serving.disk.flush().context("flushing the disk")?;
    serving.end(session, &arguments.serving.place.path)
}

#[cfg(not(target_os = "linux"))]
pub fn mount(_: &Session, _: &MountArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("mounting works on Linux only; use `onefold volume serve`")
}
