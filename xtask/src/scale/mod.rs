//! A repository of as many chunks as are asked for, 100 million by default, and what every verb
//! takes on it: time, and memory against the limit that was set. With `--snapshots` a tree that is backed up often,
//! and pruned ([`years`]).
//!
//! Chunks are 64 bytes long, so that their number, not their bytes, is what makes the work; all else
//! is as always: encrypted, compressed, indexed, verified. Containers of 64 KiB make as many of them
//! as hundreds of gigabytes would. What comes back is compared with what was stored.

mod control_group;
mod options;
mod stream;
mod years;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::compare::measure::{self, Usage};
use control_group::ControlGroup;
use options::Options;
pub use options::USAGE;
use stream::{RECORD_BYTES, RecordStream, Version};

/// What a process may take beside what its settings say.
const BESIDE_BYTES: u64 = 64 << 20;

/// A run of a verb.
struct Row {
    verb: String,
    usage: Usage,
    group_peak_bytes: Option<u64>,
}

impl Row {
    /// Several runs as one: times are added up, of memory the highest counts. Nothing of no runs.
    fn sum(verb: &str, rows: &[Row]) -> Option<Self> {
        let usages = || rows.iter().map(|row| row.usage);
        Some(Self {
            verb: verb.to_owned(),
            usage: Usage {
                seconds: usages().map(|usage| usage.seconds).sum(),
                processor_seconds: usages().map(|usage| usage.processor_seconds).sum(),
                resident_kib: usages().map(|usage| usage.resident_kib).max()?,
            },
            group_peak_bytes: rows.iter().filter_map(|row| row.group_peak_bytes).max(),
        })
    }
}

/// How a verb gets and gives its data.
enum Data {
    None,
    /// The stream of a version goes in.
    In(Version),
    /// It comes out, and is compared.
    Out(Version),
}

struct Scale {
    options: Options,
    program: PathBuf,
    directory: PathBuf,
    rows: Vec<Row>,
}

/// Runs the chore.
///
/// # Errors
/// When a verb fails, gives back something else, or takes more memory than it should.
pub fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    measure::check_gnu_time()?;
    let program = options.program()?;
    let directory = options.work.join("onefold-scale");
    if directory.exists() {
        bail!("{} is there already", directory.display());
    }
    fs::create_dir_all(&directory)?;
    let is_kept = options.is_kept;
    let mut scale = Scale {
        options,
        program,
        directory,
        rows: Vec::new(),
    };
    let outcome = match scale.options.snapshots {
        Some(snapshots) => scale.years(snapshots),
        None => scale.all(),
    };
    scale.print();
    if !is_kept {
        fs::remove_dir_all(&scale.directory)?;
    }
    outcome?;
    scale.check_limits()
}

impl Scale {
    fn create(&mut self) -> Result<()> {
        let sizes = format!("{RECORD_BYTES},{RECORD_BYTES},{RECORD_BYTES}");
        let init = [
            "init",
            "--algorithm=fixed",
            "--allow-unkeyed-chunker",
            "--chunk-sizes",
            &sizes,
            "--container-size",
            &self.options.container_size.clone(),
        ];
        self.verb("init", &init, Data::None)
    }

    fn all(&mut self) -> Result<()> {
        self.create()?;
        let store = ["backup", "--stdin-name", "stream", "-"];
        self.verb("backup, all new", &store, Data::In(Version::First))?;
        self.verb("backup, 1 % new", &store, Data::In(Version::Second))?;
        self.verb("backup, nothing new", &store, Data::In(Version::Second))?;
        self.verb("stats", &["stats"], Data::None)?;
        let dump = ["dump", "latest", "/stream"];
        self.verb("dump", &dump, Data::Out(Version::Second))?;
        let target = self.directory.join("restored");
        let target_text = target.display().to_string();
        self.verb("restore", &["restore", "latest", &target_text], Data::None)?;
        let mut restored = fs::File::open(target.join("stream"))?;
        let expected = RecordStream::new(Version::Second, self.options.chunks);
        stream::compare(expected, &mut restored).context("the restored stream")?;
        fs::remove_dir_all(&target)?;
        self.verb("check", &["check"], Data::None)?;
        self.verb("check, all data", &["check", "--read-data"], Data::None)?;
        fs::remove_dir_all(self.repository().join("index"))?;
        fs::create_dir(self.repository().join("index"))?;
        let repair = ["repair", "index"];
        self.verb("repair index, all lost", &repair, Data::None)?;
        self.verb("backup, after it", &store, Data::In(Version::Second))?;
        let log = fs::read_to_string(self.log())?;
        ensure!(
            log.contains("\"chunks_new\":0"),
            "the rebuilt index does not find everything: {log}"
        );
        Ok(())
    }

    fn repository(&self) -> PathBuf {
        self.directory.join("repository")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--repo")
            .arg(self.repository())
            .args(["--json", "--memory", &self.options.memory])
            .args(&self.options.extra)
            .args(arguments)
            .env("ONEFOLD_PASSWORD", "only for measuring");
        command
    }

    /// Runs a verb, with the caches of the system as they are, and notes what it took.
    fn verb(&mut self, name: &str, arguments: &[&str], data: Data) -> Result<()> {
        eprintln!("{name} …");
        let group = match self.options.is_limited {
            true => Some(ControlGroup::new(self.limit_bytes())?),
            false => None,
        };
        let command = self.command(arguments);
        let command = group
            .as_ref()
            .map_or(command, |group| group.wrap(&self.command(arguments)));
        let usage = self.measure(command, data).context(name.to_owned())?;
        self.rows.push(Row {
            verb: name.to_owned(),
            usage,
            group_peak_bytes: group.as_ref().and_then(ControlGroup::peak_bytes),
        });
        Ok(())
    }

    fn measure(&self, command: Command, data: Data) -> Result<Usage> {
        let log = self.log();
        let figures = log.with_extension("time");
        let mut timed = measure::measured(&command, &figures);
        let file = fs::File::create(&log)?;
        timed
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        match data {
            Data::None => drop(ended(timed.spawn()?, &log)?),
            Data::In(version) => {
                let mut child = timed.stdin(Stdio::piped()).spawn()?;
                let mut pipe = child.stdin.take().context("a pipe")?;
                let mut stream = RecordStream::new(version, self.options.chunks);
                let copied = std::io::copy(&mut stream, &mut pipe);
                drop(pipe);
                ended(child, &log)?;
                copied?;
            }
            Data::Out(version) => {
                let mut child = timed.stdout(Stdio::piped()).spawn()?;
                let mut pipe = child.stdout.take().context("a pipe")?;
                let expected = RecordStream::new(version, self.options.chunks);
                let compared = stream::compare(expected, &mut pipe);
                drop(pipe);
                ended(child, &log)?;
                compared?;
            }
        }
        measure::usage(&fs::read_to_string(figures)?)
    }

    fn limit_bytes(&self) -> u64 {
        self.options.memory_bytes + BESIDE_BYTES
    }

    fn check_limits(&self) -> Result<()> {
        let limit_kib = self.limit_bytes() >> 10;
        // What is noted of a chunk on its way takes more than 64 bytes, which are what counts of one; a stream has few
        // at a time, a tree many.
        let is_tree = self.options.snapshots.is_some();
        let rows = self.rows.iter();
        for Row { verb, usage, .. } in
            rows.filter(|row| !is_tree || !row.verb.starts_with("backup"))
        {
            let kib = usage.resident_kib;
            ensure!(kib <= limit_kib, "{verb} took {kib} KiB of {limit_kib}");
        }
        Ok(())
    }

    fn print(&self) {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "{} chunks, --memory {}: at most {:.0} MiB{}; repository {:.0} MiB",
            self.options.chunks,
            self.options.memory,
            mebibytes(self.limit_bytes()),
            match self.options.is_limited {
                true => ", in a control group of as much",
                false => "",
            },
            mebibytes(bytes_below(&self.repository())),
        );
        println!(
            "{:24} {:>9} {:>9} {:>9} {:>10}",
            "", "seconds", "CPU s", "peak MiB", "group MiB"
        );
        for row in &self.rows {
            println!(
                "{:24} {:9.1} {:9.1} {:9.0} {:>10}",
                row.verb,
                row.usage.seconds,
                row.usage.processor_seconds,
                mebibytes(row.usage.resident_kib << 10),
                row.group_peak_bytes
                    .map_or_else(String::new, |bytes| format!("{:.0}", mebibytes(bytes))),
            );
        }
    }
}

/// Waits for the end of a process.
fn ended(mut child: Child, log: &Path) -> Result<()> {
    let status = child.wait()?;
    if status.success() {
        return Ok(());
    }
    let told = fs::read(log).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let end = told.lines().last().unwrap_or_default();
    bail!("{status}: {end}")
}

fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
