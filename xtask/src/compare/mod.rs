//! `compare`: the same backups by several tools, one after the other on one machine.
//!
//! Enters: a directory of versions `v01` … `vNN` of one tree (`onefold-lab dataset lnx` makes one).
//! Leaves: `PREFIX.md` and `PREFIX.json`, medians over the runs and every run.
//!
//! One absolute path is made to hold version 1, 2, … N in turn (a fresh copy with its times
//! kept, moved into place: new inodes and ctimes), and each is backed up as one snapshot. With
//! `--batch` all versions lie under that path and are backed up at once. Then, on the same
//! repository: a backup of the unchanged tree, a restore of the latest snapshot into an empty
//! directory, which is compared with the tree, and a check that reads all data.
//!
//! Timed is the tool's own process and nothing else. Before each step the tree is read once
//! (warm page cache) and dirty pages are written out.

mod figures;
mod measure;
mod report;
mod tools;
mod trees;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use figures::{Figures, ToolRuns};
use measure::{Usage, timed};
use report::Report;
use tools::{Place, Tool};

/// How the chore is called.
pub const USAGE: &str = "\
compare options:
  --batch            all versions in one backup, not one after the other
  --tools A,B,…      of restic, kopia, onefold; default those that are there. The programs are
                     those in PATH, or in the variables RESTIC, KOPIA, ONEFOLD; onefold is built
  --runs N           how often; default 1
  --work DIR         where trees and repositories are put; default the temporary directory
  --out PREFIX       default ./compare-NAME-MODE
Needs GNU time and cp -a.
";

/// What the command line asks for.
struct Options {
    is_batch: bool,
    /// Those asked for; nothing asked for means all that are there.
    tools: Option<Vec<Tool>>,
    runs: u32,
    work: PathBuf,
    out: Option<PathBuf>,
    dataset: PathBuf,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            is_batch: false,
            tools: None,
            runs: 1,
            work: std::env::temp_dir(),
            out: None,
            dataset: PathBuf::new(),
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .with_context(|| format!("{word} wants a value"))
            };
            match word {
                "--batch" => options.is_batch = true,
                "--tools" => {
                    let names = value()?.split(',');
                    options.tools = Some(names.map(Tool::named).collect::<Result<_>>()?);
                }
                "--runs" => options.runs = value()?.parse().context("--runs wants a number")?,
                "--work" => options.work = PathBuf::from(value()?),
                "--out" => options.out = Some(PathBuf::from(value()?)),
                _ if word.starts_with('-') => bail!("no such option: {word}\n{USAGE}"),
                _ => options.dataset = PathBuf::from(word),
            }
        }
        if !options.dataset.is_dir() {
            bail!(
                "no directory of versions was given (`onefold-lab dataset lnx DIR` makes one)\n{USAGE}"
            );
        }
        options.dataset = options.dataset.canonicalize()?;
        Ok(options)
    }

    fn mode(&self) -> &'static str {
        if self.is_batch { "batch" } else { "versions" }
    }

    fn dataset_name(&self) -> String {
        let name = self.dataset.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// Runs the comparison that `words` ask for and prints its table.
///
/// # Errors
/// When the options make no sense or the machine lacks something. A tool that fails is told in
/// the report.
pub fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    measure::check_gnu_time()?;
    let versions = trees::versions(&options.dataset)?;
    let prefix = options.out.clone().unwrap_or_else(|| {
        PathBuf::from(format!(
            "compare-{}-{}",
            options.dataset_name(),
            options.mode()
        ))
    });
    let tools = tools_there(&options)?;
    let scratch = Scratch::make(&options.work)?;
    let mut all = Vec::new();
    for tool in &tools {
        all.push(ToolRuns::new(tool.name(), tool.version()?));
    }
    for run in 1..=options.runs {
        for (&tool, runs) in tools.iter().zip(&mut all) {
            eprintln!("run {run} of {}: {}", options.runs, tool.name());
            let place = Place::make(scratch.path(), tool)?;
            match measure_tool(tool, &place, &options, &versions) {
                Ok(figures) => runs.figures.push(figures),
                Err(error) => {
                    eprintln!("{} failed: {error:#}", tool.name());
                    runs.failures.push(format!("{error:#}"));
                }
            }
            place.remove()?;
        }
    }
    let (mut files, mut bytes) = (0, 0);
    for version in &versions {
        let (of_version, bytes_of_version) =
            trees::files_and_bytes(&options.dataset.join(version))?;
        files += of_version;
        bytes += bytes_of_version;
    }
    let report = Report {
        dataset: options.dataset_name(),
        mode: options.mode(),
        versions: versions.len(),
        files,
        bytes,
        tools: all,
    };
    report.write(&prefix)?;
    print!("{}", report.table());
    Ok(())
}

/// The tools to compare, built and there.
fn tools_there(options: &Options) -> Result<Vec<Tool>> {
    if let Some(tools) = &options.tools {
        for tool in tools {
            tool.build()
                .with_context(|| format!("{} can't be run", tool.name()))?;
        }
        return Ok(tools.clone());
    }
    let (there, missing): (Vec<_>, Vec<_>) =
        Tool::ALL.into_iter().partition(|tool| tool.build().is_ok());
    for tool in missing {
        eprintln!("{} is not there and left out", tool.name());
    }
    Ok(there)
}

/// Everything that is measured of one tool in one run.
fn measure_tool(
    tool: Tool,
    place: &Place,
    options: &Options,
    versions: &[String],
) -> Result<Figures> {
    let steps = if options.is_batch {
        vec![versions]
    } else {
        versions.chunks(1).collect()
    };
    tool.set_up(place).context("setting up a repository")?;
    let mut figures = Figures::default();
    for step in steps {
        trees::put_into_place(&options.dataset, step, options.is_batch, &place.tree())?;
        figures.backups.push(backup(tool, place)?);
    }
    (figures.repository_files, figures.repository_bytes) =
        trees::files_and_bytes(&place.repository())?;
    (_, figures.state_bytes) = trees::files_and_bytes(&place.state())?;
    figures.unchanged = backup(tool, place)?;

    let target = place.target();
    let mut command = tool.restore(place, &target)?;
    trees::write_out()?;
    figures.restore = timed(&mut command, &place.log()).context("restore")?;
    let restored = tool.restored_tree(place, &target);
    figures.difference = trees::difference(&place.tree(), &restored)?;
    fs::remove_dir_all(&target)?;
    trees::write_out()?;
    figures.check = timed(&mut tool.check(place), &place.log()).context("check")?;
    Ok(figures)
}

fn backup(tool: Tool, place: &Place) -> Result<Usage> {
    trees::warm(&place.tree())?;
    timed(&mut tool.backup(place), &place.log()).context("backup")
}

/// A directory of our own that goes when we do.
struct Scratch(PathBuf);

impl Scratch {
    fn make(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("onefold-compare-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path.canonicalize()?))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
