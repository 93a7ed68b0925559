//! `onefold backup`: makes a snapshot of files, or of a stream.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use engine::object::ObjectId;
use engine::pipeline::DeltaLevel;
use engine::rewriting::Rewriting;
use remote::Location;
use repository::files::{absolute_path, host_name};
use repository::snapshot::{SnapshotFilter, SnapshotSpec};
use repository::{
    BackupError, BackupOptions, BackupReport, CreateOptions, ExcludeOptions, Progress, Repository,
};

use super::backup_volume;
use crate::arguments::{delta_parser, rewriting_parser};
use crate::events::{BackupSummary, Event, Summary};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::interrupt::{InterruptibleReader, interrupted, is_requested};
use crate::names;
use crate::progress_display::{Items, Manner, manner, watch};
use crate::selection::parse_spec;
use crate::session::{Found, Session, no_repository};
use crate::source_command::SourceCommand;
use crate::units;

/// Name of a stream's file where none is given.
const STREAM_NAME: &str = "stdin";

/// Back files up as a new snapshot
///
/// Unchanged files (same path, size, times and inode as in the parent snapshot) are not read
/// again, and no byte is stored twice. Where there is no repository yet, one is created: encrypted,
/// with a password that is asked for twice. Files that can't be read are named and listed
/// in the snapshot, and the exit code is 3.
#[derive(Debug, Args)]
#[command(
    override_usage = "\
onefold backup [OPTIONS] <PATH>...
       onefold backup [OPTIONS] --from-command -- <COMMAND> [ARGUMENT]...
       onefold backup [OPTIONS] --volume <VOLUME>",
    after_help = "\
Examples:
  onefold -r /mnt/disk/backup backup ~/documents ~/pictures
  onefold backup / --one-file-system --exclude-caches --exclude '/tmp/**'
  tar -c photos | onefold backup - --stdin-name photos.tar
  onefold backup --stdin-name all.sql --from-command -- pg_dumpall
  onefold backup --volume disk.1fv

Patterns (--exclude, --exclude-file) are those of .gitignore: '*.o' matches everywhere,
'/home/me/tmp' only there, '!keep.o' takes something back in."
)]
pub struct BackupArguments {
    /// Files and directories; `-` is the standard input; the command with --from-command
    #[arg(value_name = "PATH", required_unless_present_any = ["stdin_name", "volume"])]
    paths: Vec<OsString>,

    /// Back up the standard input (or a command's output) as a file of this name
    #[arg(long, value_name = "NAME")]
    stdin_name: Option<OsString>,

    /// Run a command (`--from-command -- COMMAND ARGUMENT…`) and back up its output; no snapshot
    /// is made when it fails
    #[arg(long)]
    from_command: bool,

    /// Back up the disk that a volume holds, as the file NAME.img; while the volume is served or mounted,
    /// too. Only what changed since the volume's last backup is read
    #[arg(long, value_name = "VOLUME", conflicts_with_all = ["paths", "stdin_name", "from_command", "parent"])]
    volume: Option<PathBuf>,

    /// What the image of the volume is called in the snapshot
    #[arg(long, value_name = "NAME", value_parser = file_name)]
    image_name: Option<OsString>,

    /// Mark the snapshot with a word (again: with several)
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,

    /// The host's name in the snapshot [default: this machine's]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Take unchanged files from this snapshot [default: the latest of this host and these paths]
    #[arg(long, value_name = "SNAPSHOT", value_parser = parse_spec)]
    parent: Option<SnapshotSpec>,

    /// Read all files, even those that seem unchanged
    #[arg(long)]
    force: bool,

    /// Fail where there is no repository, rather than create one
    #[arg(long)]
    no_create: bool,

    /// Read everything, store nothing, and say what would be new
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Store duplicates again that a restore would have to gather from many containers [default: as
    /// the repository was created]
    #[arg(long, value_name = "NAME", value_parser = rewriting_parser())]
    rewriting: Option<Rewriting>,

    /// How chunks that resemble others are stored this time [default: as the repository says]
    #[arg(long = "delta", value_name = "LEVEL", value_parser = delta_parser())]
    deltas: Option<DeltaLevel>,

    // Last, for its heading holds for all arguments after it.
    #[command(flatten)]
    excludes: ExcludeArguments,
}

/// What is left out.
#[derive(Debug, Args)]
#[command(next_help_heading = "Leaving files out")]
struct ExcludeArguments {
    /// Leave out what matches this pattern
    #[arg(short, long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// Leave out what matches a pattern of this file, one a line
    #[arg(long, value_name = "FILE")]
    exclude_file: Vec<PathBuf>,

    /// Leave out the contents of directories with a valid CACHEDIR.TAG
    #[arg(long)]
    exclude_caches: bool,

    /// Stay on the file systems of the given paths
    #[arg(short = 'x', long)]
    one_file_system: bool,

    /// Obey .gitignore and .onefoldignore files
    #[arg(long)]
    ignore_files: bool,
}

/// A name that a file may have.
fn file_name(name: &str) -> Result<OsString, String> {
    match name {
        "" | "." | ".." => Err("no file has that name".to_owned()),
        name if name.contains(['/', '\0']) => Err("a name without `/` is needed".to_owned()),
        name => Ok(name.into()),
    }
}

/// Where the bytes come from.
#[derive(Debug, PartialEq, Eq)]
enum Source<'a> {
    Files(Vec<PathBuf>),
    StandardInput,
    Command(&'a [OsString]),
    Volume(&'a Path),
}

pub fn run(session: &Session, arguments: &BackupArguments) -> anyhow::Result<ExitCode> {
    let source = arguments.source()?;
    let name = arguments.stdin_name.as_deref();
    let name = name.unwrap_or(OsStr::new(STREAM_NAME)).as_bytes();
    if let Source::Volume(path) = &source {
        // Before a repository is made for nothing.
        backup_volume::look(path)?;
    }
    let repository = open_or_create(session, arguments)?;
    let options = arguments.options(session, &repository)?;
    if let Source::Files(paths) = &source {
        note_own_directory(session, paths, &options.excludes.directories)?;
    }
    let (mut generation, mut bytes_changed) = (None, None);
    let report = match source {
        Source::Volume(path) => {
            let name = arguments.image_name.as_deref().map(OsStr::as_bytes);
            let done = backup_volume::back_up(session, &repository, path, name, &options)?;
            (generation, bytes_changed) = (done.generation, done.changed_bytes);
            done.report
        }
        Source::Files(paths) => watch(&session.output, Items::Files, |progress| {
            repository.backup(&paths, &options, progress)
        })?,
        Source::StandardInput => watch(&session.output, Items::Files, |progress| {
            back_up_input(&repository, name, &options, progress)
        })?,
        Source::Command(command) => {
            let mut command = SourceCommand::start(command)?;
            let outcome = watch(&session.output, Items::Files, |progress| {
                back_up_command(&repository, name, &mut command, &options, progress)
            });
            command.end();
            outcome?
        }
    };
    let report = match report {
        Err(BackupError::Interrupted(report)) => {
            return Err(interrupted(&left_behind(&report, options.dry_run)));
        }
        // Whoever reads the stream learns of an interruption first.
        Err(BackupError::Stream(_)) if is_requested() => {
            return Err(interrupted(NOTHING_BUT_CHUNKS));
        }
        outcome => outcome?,
    };
    let summary = BackupSummary {
        generation,
        bytes_changed,
        ..summary(&report, options.dry_run)
    };
    tell(session, &report, summary, options.dry_run)?;
    Ok(if report.errors > 0 {
        ExitCode::Partial
    } else {
        ExitCode::Done
    })
}

/// What an interrupted backup left behind that had no file yet.
const NOTHING_BUT_CHUNKS: &str =
    "no snapshot was written; the next backup uses what this one stored";

/// What an interrupted backup left behind.
fn left_behind(report: &BackupReport, is_dry_run: bool) -> String {
    let counts = &report.snapshot.summary;
    if is_dry_run {
        return "this was a dry run, nothing was stored".to_owned();
    }
    if !report.is_written {
        return NOTHING_BUT_CHUNKS.to_owned();
    }
    format!(
        "{} ({}) are kept as snapshot {}, which is marked as interrupted; the next backup of \
         these paths goes on from there",
        units::counted(counts.files, "file", "files"),
        units::bytes(counts.files_bytes),
        report.snapshot.id.short(),
    )
}

fn open_or_create(session: &Session, arguments: &BackupArguments) -> anyhow::Result<Repository> {
    let shown = names::escaped_location(session.location()?);
    match session.look()? {
        Found::Repository { store, config } => session.open_found(store, &config),
        Found::Other { reason } => Err(no_repository(reason)),
        Found::Nothing if arguments.no_create || arguments.dry_run => {
            Err(no_repository(format!("there is no repository at {shown}")))
        }
        Found::Nothing => {
            session.output.note(&format!(
                "There is no repository at {shown} yet: creating one."
            ));
            let password = session.new_password()?;
            let created = session.create(Some(&password), &CreateOptions::default())?;
            session.reopen(created, &password)
        }
    }
}

fn back_up_input(
    repository: &Repository,
    name: &[u8],
    options: &BackupOptions,
    progress: &Progress,
) -> Result<BackupReport, BackupError> {
    let mut input = InterruptibleReader::stdin().map_err(BackupError::Stream)?;
    repository.backup_stream(name, &mut input, &mut || Ok(()), options, progress)
}

fn back_up_command(
    repository: &Repository,
    name: &[u8],
    command: &mut SourceCommand,
    options: &BackupOptions,
    progress: &Progress,
) -> Result<BackupReport, BackupError> {
    let mut output = command.take_output();
    repository.backup_stream(
        name,
        &mut output,
        &mut || command.finish(),
        options,
        progress,
    )
}

impl BackupArguments {
    fn source(&self) -> anyhow::Result<Source<'_>> {
        if let Some(volume) = &self.volume {
            return Ok(Source::Volume(volume));
        }
        if self.image_name.is_some() {
            return Err(Failure::usage("--image-name goes with --volume").into());
        }
        let is_input = |path: &OsString| path == "-";
        if self.from_command {
            return match self.paths.first() {
                Some(_) => Ok(Source::Command(&self.paths)),
                None => Err(Failure::usage("--from-command needs a command")
                    .with_hint("onefold backup --from-command -- COMMAND ARGUMENT…")
                    .into()),
            };
        }
        match &self.paths[..] {
            [] => Ok(Source::StandardInput),
            [path] if is_input(path) => Ok(Source::StandardInput),
            paths if paths.iter().any(is_input) => Err(Failure::usage(
                "`-` can't be backed up together with other paths",
            )
            .with_hint("a file of that name is ./-")
            .into()),
            _ if self.stdin_name.is_some() => Err(Failure::usage(
                "--stdin-name goes with the standard input or --from-command, not with paths",
            )
            .into()),
            paths => Ok(Source::Files(paths.iter().map(PathBuf::from).collect())),
        }
    }

    fn options(&self, session: &Session, repository: &Repository) -> anyhow::Result<BackupOptions> {
        let excludes = &self.excludes;
        Ok(BackupOptions {
            host: self.host.clone().unwrap_or_else(host_name),
            tags: self.tags.clone(),
            force: self.force,
            parent: self.parent(session, repository)?,
            excludes: ExcludeOptions {
                patterns: excludes.exclude.clone(),
                pattern_files: excludes.exclude_file.clone(),
                directories: repository_directories(session.location()?)?,
                caches: excludes.exclude_caches,
                one_file_system: excludes.one_file_system,
                ignore_files: excludes.ignore_files,
            },
            count_ahead: matches!(manner(&session.output), Manner::Bar | Manner::Events),
            dry_run: self.dry_run,
            rewriting: self.rewriting,
            deltas: self.deltas,
        })
    }

    fn parent(
        &self,
        session: &Session,
        repository: &Repository,
    ) -> anyhow::Result<Option<ObjectId>> {
        let Some(spec) = &self.parent else {
            return Ok(None);
        };
        let parent = session
            .snapshot(repository, spec, &SnapshotFilter::default())
            .context("the parent snapshot can't be used")?;
        Ok(Some(parent.id))
    }
}

/// The repository's own directory, which must not be backed up into itself: by the path that was
/// given, and by the one without symlinks.
fn repository_directories(location: &Location) -> anyhow::Result<Vec<PathBuf>> {
    let Some(location) = location.directory() else {
        return Ok(Vec::new());
    };
    let current = std::env::current_dir().context("cannot find out the current directory")?;
    let mut directories = vec![absolute_path(&current, location)];
    // Where that fails, opening the repository has failed before.
    directories.extend(location.canonicalize());
    Ok(directories)
}

/// Says so when the repository lies in what is backed up.
fn note_own_directory(session: &Session, paths: &[PathBuf], own: &[PathBuf]) -> anyhow::Result<()> {
    let current = std::env::current_dir().context("cannot find out the current directory")?;
    let contains = |path: &PathBuf| {
        let path = absolute_path(&current, path);
        own.iter().find(|own| own.starts_with(&path))
    };
    if let Some(own) = paths.iter().find_map(contains) {
        let shown = names::escaped_path(own);
        session
            .output
            .note(&format!("The repository itself is left out: {shown}"));
    }
    Ok(())
}

fn tell(
    session: &Session,
    report: &BackupReport,
    summary: BackupSummary,
    is_dry_run: bool,
) -> anyhow::Result<()> {
    let event = Event::Summary(Box::new(Summary::Backup(summary)));
    session.output.event(&event)?;
    let text = text(report, is_dry_run, session.output.is_verbose());
    session.output.summary(&text)?;
    Ok(())
}

fn summary(report: &BackupReport, is_dry_run: bool) -> BackupSummary {
    let counts = &report.snapshot.summary;
    BackupSummary {
        snapshot: (!is_dry_run).then(|| report.snapshot.id.to_string()),
        parent: report.snapshot.parent.map(|id| id.to_string()),
        generation: None,
        bytes_changed: None,
        is_dry_run,
        files: counts.files,
        files_new: counts.files_new,
        files_changed: counts.files_changed,
        files_unmodified: counts.files_unmodified,
        directories: counts.directories,
        other_entries: counts.other_entries,
        errors: report.errors,
        bytes: counts.files_bytes,
        bytes_read: counts.bytes_read,
        bytes_new: counts.bytes_new,
        bytes_unique: counts.bytes_new,
        bytes_stored: report.stored_bytes,
        dedup_ratio: units::dedup_ratio(counts.files_bytes, counts.bytes_new),
        chunks: counts.chunks,
        chunks_new: counts.chunks_new,
        rewriting: report.rewriting.name(),
        chunks_rewritten: counts.chunks_rewritten,
        bytes_rewritten: counts.bytes_rewritten,
        dedup_ratio_with_rewriting: dedup_ratio_with_rewriting(report),
        containers_new: report.totals.containers,
        filling_ratio: (report.totals.stored_bytes > 0).then(|| filling_ratio(report)),
        seconds: counts.milliseconds as f64 / 1000.0,
    }
}

fn text(report: &BackupReport, is_dry_run: bool, is_verbose: bool) -> String {
    let counts = &report.snapshot.summary;
    let count = units::count;
    let time = Duration::from_millis(counts.milliseconds);
    let mut lines = vec![
        format!(
            "Files:  {} ({} new, {} changed, {} unchanged), {}",
            count(counts.files),
            count(counts.files_new),
            count(counts.files_changed),
            count(counts.files_unmodified),
            units::bytes(counts.files_bytes),
        ),
        format!(
            "Read:   {} in {}",
            units::bytes(counts.bytes_read),
            units::duration(time),
        ),
        format!(
            "New:    {} after deduplication{}",
            units::bytes(counts.bytes_new),
            match units::dedup_ratio(counts.files_bytes, counts.bytes_new) {
                Some(ratio) => format!(" (dedup ratio {ratio:.2})"),
                None => String::new(),
            },
        ),
    ];
    if report.rewriting != Rewriting::Off {
        lines.push(rewritten(report));
    }
    if is_dry_run {
        lines.push("Stored: nothing, this was a dry run".to_owned());
    } else {
        lines.push(format!(
            "Stored: {} after compression",
            units::bytes(report.stored_bytes)
        ));
    }
    if is_verbose {
        lines.extend(details(report));
    }
    if report.errors > 0 {
        lines.push(format!(
            "{} could not be saved: the snapshot is partial",
            units::counted(report.errors, "file or directory", "files and directories"),
        ));
    }
    if !is_dry_run {
        lines.push(format!("Snapshot {} saved", report.snapshot.id.short()));
    }
    lines.join("\n")
}

/// What storing duplicates again cost.
fn rewritten(report: &BackupReport) -> String {
    let counts = &report.snapshot.summary;
    let chunks = units::counted(counts.chunks_rewritten, "chunk", "chunks");
    let bytes = units::bytes(counts.bytes_rewritten);
    let ratio = match dedup_ratio_with_rewriting(report) {
        Some(ratio) if counts.chunks_rewritten > 0 => format!(" (dedup ratio {ratio:.2} with it)"),
        _ => String::new(),
    };
    format!(
        "Again:  {bytes} in {chunks} stored again by {}{ratio}",
        report.rewriting.name()
    )
}

/// Bytes of files over all that was stored of them, new or again.
fn dedup_ratio_with_rewriting(report: &BackupReport) -> Option<f64> {
    let counts = &report.snapshot.summary;
    units::dedup_ratio(
        counts.files_bytes,
        counts.bytes_new + counts.bytes_rewritten,
    )
}

/// How full the containers are that were written.
fn filling_ratio(report: &BackupReport) -> f64 {
    units::share(report.totals.filled_bytes, report.totals.stored_bytes)
}

/// What `-v` adds.
fn details(report: &BackupReport) -> Vec<String> {
    let (counts, totals) = (&report.snapshot.summary, &report.totals);
    let parent = report.snapshot.parent;
    vec![
        format!(
            "Parent: {}",
            parent.map_or("none".to_owned(), |id| id.short())
        ),
        format!(
            "Chunks: {}, {} of them new",
            units::count(counts.chunks),
            units::count(counts.chunks_new)
        ),
        format!(
            "Directories: {}, {} new pages of {}",
            units::count(counts.directories),
            units::count(totals.pages_new),
            units::bytes(totals.page_bytes_new),
        ),
        format!(
            "Containers: {} of {}, filled to {:.1} %",
            units::count(totals.containers),
            units::bytes(totals.stored_bytes),
            100.0 * filling_ratio(report),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use crate::arguments::{Arguments, Command};
    use clap::Parser;

    fn source_of(arguments: &[&str]) -> Result<String, String> {
        let line = ["onefold", "backup"].iter().chain(arguments);
        let parsed = Arguments::try_parse_from(line).map_err(|error| error.to_string())?;
        let Command::Backup(backup) = parsed.command else {
            unreachable!("the verb is backup")
        };
        let source = backup.source().map_err(|error| error.to_string())?;
        Ok(format!("{source:?}"))
    }

    #[test]
    fn sources_are_told_apart() {
        let good = [
            (&["a", "b"][..], r#"Files(["a", "b"])"#),
            (&["./-"], r#"Files(["./-"])"#),
            (&["-"], "StandardInput"),
            (&["--stdin-name", "x"], "StandardInput"),
            (&["-", "--stdin-name", "x"], "StandardInput"),
            (
                &["--from-command", "--", "ls", "-l"],
                r#"Command(["ls", "-l"])"#,
            ),
        ];
        for (arguments, source) in good {
            assert_eq!(source_of(arguments).as_deref(), Ok(source));
        }
        for bad in [
            &[][..],
            &["-", "a"],
            &["a", "--stdin-name", "x"],
            &["--from-command"],
        ] {
            assert!(source_of(bad).is_err(), "{bad:?}");
        }
    }
}
