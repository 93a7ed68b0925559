//! `onefold import`: makes a snapshot of what a tar holds.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use clap::Args;
use engine::pipeline::DeltaLevel;
use repository::files::host_name;
use repository::timestamp::Timestamp;
use repository::{BackupError, BackupOptions, BackupReport, ImportOptions, Progress};

use crate::arguments::delta_parser;
use crate::events::{Event, ImportSummary, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::{InterruptibleReader, interrupted};
use crate::names;
use crate::progress_display::{Items, watch};
use crate::selection::InnerPath;
use crate::session::Session;
use crate::times;
use crate::units;

/// Make a snapshot of what a tar archive holds
///
/// The members become files, directories and links of the snapshot, as if they had been backed up from a disk: with owners,
/// times, extended attributes, ACLs, holes and hard links, as far as the archive has them, and no byte that the repository
/// has is stored twice. Archives of GNU tar, bsdtar and other programs are read (v7, ustar, pax, GNU), not compressed ones.
/// An archive that is cut off or damaged, or whose paths lead out of it, makes no snapshot; members that have no place in a
/// tree are named, and the exit code is 3.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold import photos.tar --path /home/me/photos
  zstd -dc old.tar.zst | onefold import - --host old --time 2019-06-30
  onefold -r first export latest | onefold -r second import - --tag from-first")]
pub struct ImportArguments {
    /// The archive; `-` is the standard input
    #[arg(value_name = "FILE", default_value = "-")]
    archive: PathBuf,

    /// Put the members below this path; the snapshot is then one of it
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = InnerPath::parser())]
    path: InnerPath,

    /// When what the archive holds was so: `2019-06-30`, `2019-06-30 12:00:00` (in this time zone),
    /// `2019-06-30T10:00:00Z`, or `@` and seconds since 1970 [default: now]
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    time: Option<Timestamp>,

    /// The host's name in the snapshot [default: this machine's]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Mark the snapshot with a word (again: with several)
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,

    /// Read everything, store nothing, and say what would be new
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// How chunks that resemble others are stored this time [default: as the repository says]
    #[arg(long = "delta", value_name = "LEVEL", value_parser = delta_parser())]
    deltas: Option<DeltaLevel>,
}

pub fn run(session: &Session, arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    let (mut archive, total_bytes) = arguments.open()?;
    let repository = session.open()?;
    let options = ImportOptions {
        backup: BackupOptions {
            host: arguments.host.clone().unwrap_or_else(host_name),
            tags: arguments.tags.clone(),
            dry_run: arguments.dry_run,
            deltas: arguments.deltas,
            ..BackupOptions::default()
        },
        time: arguments.time,
        path: arguments.path.0.clone(),
    };
    let report = watch(&session.output, Items::Files, |progress: &Progress| {
        if let Some(bytes) = total_bytes {
            progress.bytes_total.store(bytes, Ordering::Relaxed);
        }
        repository.import_tar(archive.as_mut(), &options, progress)
    })?;
    let report = match report {
        Err(BackupError::Interrupted(_)) => {
            let rest = "no snapshot was written; what was stored is used by the next import";
            return Err(interrupted(rest));
        }
        outcome => outcome?,
    };
    tell(session, &report, arguments.dry_run)?;
    Ok(if report.errors > 0 {
        ExitCode::Partial
    } else {
        ExitCode::Done
    })
}

impl ImportArguments {
    /// The archive, and its length where that is known.
    fn open(&self) -> anyhow::Result<(Box<dyn Read>, Option<u64>)> {
        if self.archive == Path::new("-") {
            return Ok((Box::new(InterruptibleReader::stdin()?), None));
        }
        let cannot = || format!("cannot read {}", names::escaped_path(&self.archive));
        let file = File::open(&self.archive).with_context(cannot)?;
        let metadata = file.metadata().with_context(cannot)?;
        let bytes = metadata.is_file().then_some(metadata.len());
        Ok((Box::new(file), bytes))
    }
}

fn tell(session: &Session, report: &BackupReport, is_dry_run: bool) -> anyhow::Result<()> {
    let counts = &report.snapshot.summary;
    let snapshot = report.is_written.then_some(report.snapshot.id);
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Import(ImportSummary {
            snapshot: snapshot.map(|id| id.to_string()),
            is_dry_run,
            files: counts.files,
            directories: counts.directories,
            other_entries: counts.other_entries,
            errors: report.errors,
            bytes: counts.files_bytes,
            bytes_new: counts.bytes_new,
            bytes_stored: report.stored_bytes,
            chunks: counts.chunks,
            chunks_new: counts.chunks_new,
            seconds: counts.milliseconds as f64 / 1000.0,
        }))))?;
    let counted = units::counted;
    let mut text = match snapshot {
        Some(id) => format!("Imported snapshot {}: ", id.short()),
        None => "Would import ".to_owned(),
    };
    text.push_str(&format!(
        "{}, {}, {}, {}; {} new to the repository",
        counted(counts.files, "file", "files"),
        counted(counts.directories, "directory", "directories"),
        counted(counts.other_entries, "other entry", "other entries"),
        units::bytes(counts.files_bytes),
        units::bytes(counts.bytes_new),
    ));
    if report.errors > 0 {
        text.push_str(&format!(
            "\n{} could not be imported whole",
            counted(report.errors, "member", "members")
        ));
    }
    session.output.summary(&text)?;
    Ok(())
}
