//! `onefold init`: creates a repository.

use std::path::PathBuf;

use chunking::structure::Structure;
use chunking::{ALGORITHMS, Algorithm, OWN_PARAMETERS, OwnParameter, Parameters};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use engine::pipeline::DeltaLevel;
use engine::rewriting::Rewriting;
use remote::Location;
use repository::config::{Acceleration, ConfigError};
use repository::{CreateOptions, Repository, SharedChunker};

use crate::arguments::{delta_parser, location_parser, parse_size, rewriting_parser};
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::names;
use crate::password;
use crate::session::{Found, Session};
use crate::units;

/// Create a repository
///
/// `backup` does this by itself where there is no repository yet. Use `init` to choose parameters,
/// or to do without encryption. They can't be changed later.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold -r /mnt/disk/backup init
  onefold -r /mnt/disk/images init --chunk-sizes 16K,64K,256K
  onefold -r /srv/public init --no-encryption
  onefold -r s3:https://s3.example.org/backups/laptop init")]
pub struct InitArguments {
    /// Let everybody who gets at the repository read all files in it
    #[arg(long, conflicts_with_all = ["password_file", "password_command"])]
    no_encryption: bool,

    /// How files are cut into chunks
    #[arg(long, value_name = "NAME", value_parser = algorithm_parser())]
    algorithm: Option<Algorithm>,

    /// Cut files as this other repository does, with its chunker's secret, so that `copy` between the two keeps
    /// chunks as they are. Whoever knows the secrets of one of them can then tell by the lengths of chunks what the
    /// other holds
    #[arg(
        long,
        value_name = "REPOSITORY",
        value_parser = location_parser(),
        conflicts_with_all = ["algorithm", "chunk_sizes", "normalization", "chunker_parameters", "acceleration", "structure"]
    )]
    cut_like: Option<Location>,

    /// Read the password of that repository from this file [else from ONEFOLD_LIKE_PASSWORD, or else it is
    /// asked for]
    #[arg(long, value_name = "FILE", requires = "cut_like")]
    like_password_file: Option<PathBuf>,

    /// Run this command (by `sh -c`) and take its output as the password of that repository
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "cut_like",
        conflicts_with = "like_password_file"
    )]
    like_password_command: Option<String>,

    /// Least, average and greatest size of a chunk [default: 2KiB,8KiB,64KiB, or what the
    /// algorithm usually has]
    #[arg(long, value_name = "MIN,AVG,MAX", value_parser = parse_chunk_sizes)]
    chunk_sizes: Option<ChunkSizes>,

    /// Level of normalized chunking: the higher, the nearer to the average the sizes are
    #[arg(long, value_name = "LEVEL")]
    normalization: Option<u8>,

    /// A parameter that only some algorithms have, such as normal_bytes=10K or window_bytes=64;
    /// may be given several times
    #[arg(long = "chunker-parameter", value_name = "NAME=VALUE", value_parser = parse_own)]
    chunker_parameters: Vec<(OwnParameter, u64)>,

    /// How cutting is accelerated, where that changes what is cut
    #[arg(long, value_name = "NAME", value_parser = acceleration_parser())]
    acceleration: Option<Acceleration>,

    /// Size of the segments that are cut at the same time [default: 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "acceleration")]
    segment_size: Option<u32>,

    /// Formats whose parts are cut apart, so that what changes around a part does not keep it from
    /// being found again [default: tar, or none with segments]
    #[arg(long, value_name = "NAME", value_parser = structure_parser())]
    structure: Option<Structure>,

    /// Size of a container, the objects that most bytes are stored in [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    container_size: Option<u32>,

    /// Bytes that are compressed together [default: 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    group_size: Option<u32>,

    /// Duplicates that backups store again, because a restore would have to gather them from many
    /// containers [default: off]
    #[arg(long, value_name = "NAME", value_parser = rewriting_parser())]
    rewriting: Option<Rewriting>,

    /// How chunks that resemble others are stored [default: best]. With `off`, no backup into this
    /// repository can store differences
    #[arg(long = "delta", value_name = "LEVEL", value_parser = delta_parser())]
    deltas: Option<DeltaLevel>,

    /// Take an algorithm without a key, though the lengths of its chunks tell an attacker which
    /// known files an encrypted repository holds
    #[arg(long)]
    allow_unkeyed_chunker: bool,
}

/// Least, average and greatest size of a chunk in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChunkSizes([u32; 3]);

pub fn run(session: &Session, arguments: &InitArguments) -> anyhow::Result<ExitCode> {
    let location = session.location()?;
    let shown = names::escaped_location(location);
    match session.look()? {
        Found::Nothing => {}
        Found::Repository { .. } => {
            return Err(ConfigError::AlreadyExists {
                location: location.to_string(),
            }
            .into());
        }
        Found::Other { reason } => {
            return Err(Failure::new(ExitCode::Failed, reason)
                .with_hint("choose a directory that is empty or does not exist yet")
                .into());
        }
    }
    let mut options = arguments.options()?;
    options.chunker_of = arguments.other_chunker(session)?;
    Repository::check_options(!arguments.no_encryption, &options)?;
    let password = if arguments.no_encryption {
        warn_unencrypted(session, &shown)?;
        None
    } else {
        Some(session.new_password()?)
    };
    let repository = session.create(password.as_ref(), &options)?;
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Init {
            repository: repository.config().id.to_string(),
            location: location.to_string(),
            is_encrypted: password.is_some(),
        })))?;
    Ok(ExitCode::Done)
}

fn warn_unencrypted(session: &Session, shown: &str) -> anyhow::Result<()> {
    if std::env::var_os(password::PASSWORD_VARIABLE).is_some() {
        return Err(Failure::usage(
            "--no-encryption, and yet a password is given (ONEFOLD_PASSWORD is set)",
        )
        .with_hint("leave one of them away")
        .into());
    }
    session.output.warning(&format!(
        "THIS REPOSITORY WILL NOT BE ENCRYPTED. Whoever can read {shown}, now or later (a lost \
         disk, a server's administrator), can read every file in every snapshot, and whoever can \
         write to it can change what you will restore. This can't be changed later."
    ));
    Ok(())
}

impl InitArguments {
    /// How the repository cuts that the new one is to cut like, if one is given.
    fn other_chunker(&self, session: &Session) -> anyhow::Result<Option<SharedChunker>> {
        let Some(location) = &self.cut_like else {
            return Ok(None);
        };
        let file = self.like_password_file.as_deref();
        let command = self.like_password_command.as_deref();
        let variable = password::LIKE_PASSWORD_VARIABLE;
        let other = session.beside(location, file, command, variable).open()?;
        Ok(Some(other.chunker_to_share()))
    }

    fn options(&self) -> anyhow::Result<CreateOptions> {
        Ok(CreateOptions {
            chunker: self.chunker(),
            acceleration: self.acceleration()?,
            structure: self.structure,
            allow_unkeyed_chunker: self.allow_unkeyed_chunker,
            container_bytes: self.container_size,
            group_bytes: self.group_size,
            rewriting: self.rewriting.unwrap_or_default(),
            deltas: self.deltas.unwrap_or_default(),
            ..CreateOptions::default()
        })
    }

    /// The acceleration, with segments of the size that was asked for.
    fn acceleration(&self) -> anyhow::Result<Acceleration> {
        let mut acceleration = self.acceleration.unwrap_or_default();
        match (&mut acceleration, self.segment_size) {
            (Acceleration::Segments { segment_bytes, .. }, Some(bytes)) => *segment_bytes = bytes,
            (other, Some(_)) => {
                return Err(Failure::usage(format!(
                    "--segment-size, and yet {other} has no segments"
                ))
                .with_hint("add --acceleration segments, or leave --segment-size away")
                .into());
            }
            _ => {}
        }
        Ok(acceleration)
    }

    /// The chunker, if anything about it was asked for.
    fn chunker(&self) -> Option<Parameters> {
        let is_asked_for = self.algorithm.is_some()
            || self.chunk_sizes.is_some()
            || self.normalization.is_some()
            || !self.chunker_parameters.is_empty();
        if !is_asked_for {
            return None;
        }
        let mut parameters = self
            .algorithm
            .map_or_else(Parameters::default, Parameters::new);
        if let Some(ChunkSizes([min, avg, max])) = self.chunk_sizes {
            (
                parameters.min_bytes,
                parameters.avg_bytes,
                parameters.max_bytes,
            ) = (min, avg, max);
        }
        if let Some(level) = self.normalization {
            parameters.normalization = level;
        }
        for &(parameter, value) in &self.chunker_parameters {
            parameters.own.set(parameter, value);
        }
        Some(parameters)
    }
}

/// The algorithms' names, with what there is to say about each.
fn algorithm_parser() -> impl TypedValueParser<Value = Algorithm> {
    let names = ALGORITHMS
        .iter()
        .map(|info| PossibleValue::new(info.name).help(info.summary));
    PossibleValuesParser::new(names)
        .try_map(|name| Algorithm::from_name(&name).ok_or("no such algorithm"))
}

/// The accelerations' names, with what there is to say about each.
fn acceleration_parser() -> impl TypedValueParser<Value = Acceleration> {
    let names = Acceleration::names().map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(names)
        .try_map(|name| Acceleration::from_name(&name).ok_or("no such acceleration"))
}

/// The names of formats, with what there is to say about each.
fn structure_parser() -> impl TypedValueParser<Value = Structure> {
    let names = Structure::NAMES.map(|(_, name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(names)
        .try_map(|name| Structure::from_name(&name).ok_or("no such format"))
}

/// `NAME=VALUE`, the value a size with or without unit, or hexadecimal behind `0x`.
fn parse_own(text: &str) -> Result<(OwnParameter, u64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("NAME=VALUE is wanted, such as normal_bytes=10K")?;
    let parameter = OwnParameter::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = OWN_PARAMETERS.iter().map(|info| info.name).collect();
        format!("there is no {name}, only {}", names.join(", "))
    })?;
    let value = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map_err(|error| error.to_string())?,
        None => units::parse_bytes(value)?,
    };
    Ok((parameter, value))
}

fn parse_chunk_sizes(text: &str) -> Result<ChunkSizes, String> {
    let sizes: Vec<u32> = text.split(',').map(parse_size).collect::<Result<_, _>>()?;
    let sizes: [u32; 3] = sizes
        .try_into()
        .map_err(|_| "three sizes are wanted, such as 2K,8K,64K".to_owned())?;
    Ok(ChunkSizes(sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_parameters_are_read() {
        assert_eq!(
            parse_own("normal_bytes=10K"),
            Ok((OwnParameter::NormalBytes, 10 << 10))
        );
        assert_eq!(
            parse_own("polynomial=0x3DA3358B4DC173"),
            Ok((OwnParameter::Polynomial, 0x003d_a335_8b4d_c173))
        );
        for bad in ["normal_bytes", "speed=1", "polynomial=0xz", "jump_bytes=x"] {
            assert!(parse_own(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn three_sizes_are_read() {
        assert_eq!(
            parse_chunk_sizes("2K,8KiB,65536"),
            Ok(ChunkSizes([2 << 10, 8 << 10, 64 << 10]))
        );
        assert!(parse_chunk_sizes("2K,8K").is_err());
        assert!(parse_chunk_sizes("2K,8K,64K,1M").is_err());
    }
}
