//! `onefold export`: writes a snapshot as a tar.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use repository::snapshot::Snapshot;
use repository::{ExportError, ExportReport, Progress, Repository};

use crate::arguments::FilterArguments;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::interrupt::unless_interrupted;
use crate::names;
use crate::output::Output;
use crate::progress_display::{Items, watch};
use crate::selection::SnapshotPath;
use crate::session::Session;
use crate::units;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// Write a snapshot as a tar archive
///
/// The archive goes to the standard output, or with --output to a file, which appears when it is whole. Without a PATH
/// its members have their whole paths, without the first `/`; with a PATH they are the contents of that directory (or that
/// file). It is in the pax format, with extended attributes, ACLs, holes, hard links and times to the nanosecond, which GNU
/// tar and bsdtar read. Every byte is verified before it is written; where something is damaged, the archive ends, and
/// the exit code is 13. With --json, events go to the standard error output, unless --output is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold export latest > all.tar
  onefold export latest:/home/me/documents -o documents.tar
  onefold export latest:/srv | zstd > srv.tar.zst
  onefold export latest | ssh other 'tar -x --xattrs --xattrs-include=\"*\" --acls -C /restored'")]
pub struct ExportArguments {
    /// An id, the beginning of one, or `latest`; with `:PATH`, only that part of it
    #[arg(value_name = "SNAPSHOT[:PATH]", value_parser = SnapshotPath::parser())]
    snapshot: SnapshotPath,

    /// Write the archive to this file; what it held is replaced
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    filter: FilterArguments,
}

impl ExportArguments {
    /// The file that the archive goes to, if it does not go to the standard output.
    fn file(&self) -> Option<&Path> {
        let file = self.output.as_deref();
        file.filter(|file| *file != Path::new("-"))
    }

    /// Does the standard output carry the archive?
    pub fn is_to_stdout(&self) -> bool {
        self.file().is_none()
    }
}

pub fn run(session: &Session, arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    if arguments.is_to_stdout() && io::stdout().is_terminal() {
        return Err(Failure::usage("an archive is no text for a terminal")
            .with_hint("give --output FILE, or send the output into a pipe or file")
            .into());
    }
    let started = Instant::now();
    let repository = session.open()?;
    let filter = arguments.filter.filter();
    let snapshot = session.snapshot(&repository, &arguments.snapshot.spec, &filter)?;
    let path = arguments.snapshot.path.as_deref();
    let source = Source {
        repository: &repository,
        snapshot: &snapshot,
        path,
    };
    let report = match arguments.file() {
        Some(file) => source.write_file(&session.output, file)?,
        None => {
            let mut out = session.output.results();
            source.write(&session.output, &mut out, "the archive is cut off")?
        }
    };
    tell(session, arguments, &snapshot, &report, started.elapsed())?;
    Ok(ExitCode::Done)
}

/// What is exported.
struct Source<'a> {
    repository: &'a Repository,
    snapshot: &'a Snapshot,
    path: Option<&'a [u8]>,
}

impl Source<'_> {
    fn write(
        &self,
        output: &Arc<Output>,
        out: &mut dyn Write,
        rest: &str,
    ) -> anyhow::Result<ExportReport> {
        let export = |progress: &Progress| {
            let report = self
                .repository
                .export(self.snapshot, self.path, out, progress)?;
            out.flush().map_err(ExportError::Write)?;
            Ok::<_, ExportError>(report)
        };
        unless_interrupted(watch(output, Items::Files, export)?, rest)
    }

    /// Writes beside the file, and puts it in its place when it is whole.
    fn write_file(&self, output: &Arc<Output>, path: &Path) -> anyhow::Result<ExportReport> {
        let shown = names::escaped_path(path);
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let cannot = || format!("cannot write {shown}");
        let file = File::create(&partial).with_context(cannot)?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, &file);
        let written = self.write(output, &mut out, "no archive was written");
        drop(out);
        let finished = written.and_then(|report| {
            file.sync_all().with_context(cannot)?;
            std::fs::rename(&partial, path).with_context(cannot)?;
            Ok(report)
        });
        if finished.is_err() {
            // Why it failed is what counts.
            let _ = std::fs::remove_file(&partial);
        }
        finished
    }
}

fn tell(
    session: &Session,
    arguments: &ExportArguments,
    snapshot: &Snapshot,
    report: &ExportReport,
    elapsed: Duration,
) -> anyhow::Result<()> {
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Export {
            snapshot: snapshot.id.to_string(),
            files: report.files,
            directories: report.directories,
            other_entries: report.others,
            links: report.links,
            bytes: report.bytes,
            archive_bytes: report.archive_bytes,
            containers_read: report.containers_read,
            seconds: elapsed.as_secs_f64(),
        })))?;
    let counted = units::counted;
    let text = format!(
        "Exported {} ({}), {}, {} of snapshot {} as {} of tar in {}",
        counted(report.files, "file", "files"),
        units::bytes(report.bytes),
        counted(report.directories, "directory", "directories"),
        counted(report.others, "other entry", "other entries"),
        snapshot.id.short(),
        units::bytes(report.archive_bytes),
        units::duration(elapsed),
    );
    match arguments.is_to_stdout() {
        true => session.output.note(&text),
        false => session.output.summary(&text)?,
    }
    Ok(())
}
