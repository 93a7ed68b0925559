//! `onefold volume check`, `compact`, `grow`, and generations.

use std::ops::Range;

use clap::Args;
use repository::timestamp::Timestamp;
use volume::{Generation, OwnerId, Volume};

use super::{Access, Place, of};
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::hexadecimal;
use crate::session::Session;
use crate::times;
use crate::units;

/// Check that everything is as it should be
///
/// References, zones and index are recomputed from the mapping and compared. Nothing is changed. The exit
/// code is 13 when something is wrong.
#[derive(Debug, Args)]
pub struct CheckArguments {
    #[command(flatten)]
    place: Place,

    /// Read every stored block and compare it with its fingerprint
    #[arg(long)]
    read_data: bool,
}

pub fn check(session: &Session, arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.place.path;
    let mut volume = Access::to(session, &arguments.place, false)?;
    let report = of(path, volume.check(arguments.read_data))?;
    for problem in &report.problems {
        session.output.warning(problem);
    }
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumeCheck {
            volume: path.display().to_string(),
            mapped_blocks: report.mapped_blocks,
            stored_blocks: report.stored_blocks,
            blocks_read: report.blocks_read,
            not_in_index: report.not_in_index,
            problems: report.problem_count,
        })))?;
    let read = match arguments.read_data {
        true => format!(", {} of them read", units::count(report.blocks_read)),
        false => String::new(),
    };
    let verdict = match report.problem_count {
        0 => "Everything is as it should be".to_owned(),
        count => units::counted(count, "problem was found", "problems were found"),
    };
    session.output.summary(&format!(
        "{verdict}: {} blocks of the disk, {} stored{read}.",
        units::count(report.mapped_blocks),
        units::count(report.stored_blocks),
    ))?;
    Ok(if report.is_fine() {
        ExitCode::Done
    } else {
        ExitCode::Damaged
    })
}

/// Move blocks together and give free room back to the file system
#[derive(Debug, Args)]
pub struct CompactArguments {
    #[command(flatten)]
    place: Place,
}

pub fn compact(session: &Session, arguments: &CompactArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.place.path;
    let mut volume = Access::to(session, &arguments.place, true)?;
    let done = of(path, volume.compact())?;
    volume.end(path)?;
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumeCompact {
            volume: path.display().to_string(),
            blocks_moved: done.blocks_moved,
            blocks_pinned: done.blocks_pinned,
            free_zones_before: done.free_zones.0,
            free_zones: done.free_zones.1,
            bytes_discarded: done.bytes_discarded,
        })))?;
    session.output.summary(&format!(
        "{} moved; {} free, {} before; {} given back.",
        units::counted(done.blocks_moved, "block", "blocks"),
        units::counted(u64::from(done.free_zones.1), "zone", "zones"),
        done.free_zones.0,
        units::bytes(done.bytes_discarded),
    ))?;
    Ok(ExitCode::Done)
}

/// Make the disk, or what the volume takes of the store, larger
#[derive(Debug, Args)]
pub struct GrowArguments {
    #[command(flatten)]
    place: Place,

    /// How large the disk is to be [default: as it is]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    size: Option<u64>,

    /// How much of the file or device the volume is to take at most [default: what the disk may need if no
    /// block is saved, at least what it is]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    backing_size: Option<u64>,
}

pub fn grow(session: &Session, arguments: &GrowArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.place.path;
    let file = arguments.place.backing(true)?;
    let mut settings = of(path, Volume::settings_of(&*file))?;
    settings.size_bytes = arguments.size.unwrap_or(settings.size_bytes);
    of(path, settings.check())?;
    let volume = {
        let options = volume::OpenOptions {
            cache_bytes: arguments.place.cache,
            ..volume::OpenOptions::default()
        };
        of(path, Volume::open(file.clone(), &options))?
    };
    let now = volume.usage().physical_blocks * 4096;
    let bytes = arguments
        .backing_size
        .unwrap_or_else(|| Volume::backing_bytes_for(&settings).max(now));
    file.grow(bytes)
        .map_err(|error| super::no_volume(path, error))?;
    of(path, volume.grow(settings.size_bytes, bytes))?;
    of(path, volume.close())?;
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumeGrow {
            volume: path.display().to_string(),
            size_bytes: settings.size_bytes,
            backing_bytes: bytes,
        })))?;
    session.output.summary(&format!(
        "A disk of {}, at most {} in {}.",
        units::bytes(settings.size_bytes),
        units::bytes(bytes),
        path.display()
    ))?;
    Ok(ExitCode::Done)
}

/// Keep the disk as it is now, as a generation
///
/// Later writes go elsewhere; blocks that did not change are shared. `serve --generation` shows it.
#[derive(Debug, Args)]
pub struct PinArguments {
    #[command(flatten)]
    place: Place,
}

pub fn pin(session: &Session, arguments: &PinArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.place.path;
    let mut volume = Access::to(session, &arguments.place, true)?;
    let generation = of(path, volume.pin(OwnerId::NOBODY))?.number;
    of(path, volume.keep(generation))?;
    volume.end(path)?;
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumePin {
            volume: path.display().to_string(),
            generation,
        })))?;
    session.output.result(&generation.to_string())?;
    Ok(ExitCode::Done)
}

/// Remove a generation; what only it holds becomes free
#[derive(Debug, Args)]
pub struct UnpinArguments {
    #[command(flatten)]
    place: Place,

    /// Its number
    #[arg(value_name = "NUMBER")]
    generation: u32,
}

pub fn unpin(session: &Session, arguments: &UnpinArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.place.path;
    let mut volume = Access::to(session, &arguments.place, true)?;
    of(path, volume.unpin(arguments.generation))?;
    volume.end(path)?;
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumeUnpin {
            volume: path.display().to_string(),
            generation: arguments.generation,
        })))?;
    Ok(ExitCode::Done)
}

/// List pinned generations
#[derive(Debug, Args)]
pub struct GenerationsArguments {
    #[command(flatten)]
    place: Place,

    /// How many bytes of the disk changed since each of them
    #[arg(long)]
    changes: bool,
}

pub fn generations(
    session: &Session,
    arguments: &GenerationsArguments,
) -> anyhow::Result<ExitCode> {
    let path = &arguments.place.path;
    let mut volume = Access::to(session, &arguments.place, false)?;
    let mut count = 0;
    for generation in of(path, volume.generations())? {
        let changed = match arguments.changes {
            true => {
                let mut bytes = 0;
                let mut visit = |range: Range<u64>| bytes += range.end - range.start;
                of(
                    path,
                    volume.visit_changes(generation.number, None, &mut visit),
                )?;
                Some(bytes)
            }
            false => None,
        };
        count += 1;
        session.output.event(&Event::Generation {
            number: generation.number,
            created: generation.created,
            size_bytes: generation.logical_blocks * 4096,
            changed_bytes: changed,
            owner: owner(&generation),
        })?;
        let changes = changed.map_or(String::new(), |bytes| {
            format!("  {} changed since", units::bytes(bytes))
        });
        let owner = owner(&generation).map_or(String::new(), |owner| {
            format!("  of backups to repository {}", &owner[..8])
        });
        session.output.result(&format!(
            "{:>8}  {}  {}{changes}{owner}",
            generation.number,
            times::local(Timestamp {
                seconds: i64::try_from(generation.created).unwrap_or(i64::MAX),
                nanoseconds: 0,
            }),
            units::bytes(generation.logical_blocks * 4096),
        ))?;
    }
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumeGenerations {
            volume: path.display().to_string(),
            generations: count,
        })))?;
    Ok(ExitCode::Done)
}

/// The repository that a generation was backed up to.
fn owner(generation: &Generation) -> Option<String> {
    let owner = generation.owner;
    (owner != OwnerId::NOBODY).then(|| hexadecimal(&owner.0))
}
