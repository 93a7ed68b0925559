//! `compare`: the same backups by several tools, one after the other on one machine.
//!
//! Enters: a directory of versions `v01` … `vNN` of one tree (`onefold-lab dataset lnx` makes one),
//! or of one file (`v01.rdb`, `v02.rdb` …: `dataset rdb`, `dataset vma`). Leaves: `PREFIX.md` and
//! `PREFIX.json`, medians over the runs and every run, and ours beside the best peer.
//!
//! One absolute path is made to hold version 1, 2, … N in turn (a fresh copy with its times
//! kept, moved into place: new inodes and ctimes; a file has the same name in that directory each
//! time), and each is backed up as one snapshot. With `--batch` all versions lie under that path
//! and are backed up at once. Then, on the same repository: a backup of the unchanged tree, a
//! restore of the latest snapshot into an empty directory, which is compared with the tree, and a
//! check that reads all data.
//!
//! Timed is the tool's own process and nothing else: its start and the derivation of keys from the
//! password are part of it. Before each step what it reads, tree or repository, is read once (warm
//! page cache) and dirty pages are written out. With several runs, tools take turns.

mod contestant;
mod figures;
mod install;
mod machine;
pub mod measure;
mod options;
mod place;
mod ratios;
mod report;
mod tools;
mod trees;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use contestant::Contestant;
pub use contestant::build_onefold;
use figures::{Figures, ToolRuns};
use machine::Machine;
use measure::{Usage, timed};
use options::Options;
pub use options::USAGE;
use place::Place;
use report::Report;
use tools::Tool;
use trees::Version;

/// Runs the comparison that `words` ask for and prints its tables.
///
/// # Errors
/// When the options make no sense or the machine lacks something. A tool that fails is told in
/// the report.
pub fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    if let Some(directory) = &options.install {
        install::install(directory)?;
    }
    match &options.dataset {
        Some(dataset) => compare(&options, dataset),
        None => Ok(()),
    }
}

fn compare(options: &Options, dataset: &Path) -> Result<()> {
    measure::check_gnu_time()?;
    let versions = trees::versions(dataset)?;
    let name = dataset.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let contestants = contestants(options)?;
    let scratch = Scratch::make(&options.work)?;
    let mut machine = Machine::here();
    let mut all = Vec::new();
    for one in &contestants {
        let is_peer = one.tool.is_peer();
        all.push(ToolRuns::new(one.label.clone(), one.version()?, is_peer));
    }
    for run in 1..=options.runs {
        for (contestant, runs) in contestants.iter().zip(&mut all) {
            eprintln!("run {run} of {}: {}", options.runs, contestant.label);
            let place = Place::make(scratch.path(), contestant.tool.name())?;
            match measure_contestant(contestant, &place, options.is_batch, &versions) {
                Ok(figures) => runs.figures.push(Figures { run, ..figures }),
                Err(error) => {
                    eprintln!("{} failed: {error:#}", contestant.label);
                    runs.failures.push(format!("{error:#}"));
                }
            }
            place.remove()?;
        }
    }
    machine.note_load();
    let (mut files, mut bytes) = (0, 0);
    for version in &versions {
        let (of_version, bytes_of_version) = trees::files_and_bytes(&version.path)?;
        files += of_version;
        bytes += bytes_of_version;
    }
    let prefix = options
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("compare-{name}-{}", options.mode())));
    let report = Report {
        dataset: name,
        mode: options.mode(),
        versions: versions.len(),
        files,
        bytes,
        machine,
        tools: all,
    };
    report.write(&prefix)?;
    print!("{}", report.text());
    Ok(())
}

/// Those to compare, built and there.
fn contestants(options: &Options) -> Result<Vec<Contestant>> {
    let installed = options.install.as_deref().map(Path::canonicalize);
    let installed = installed.transpose()?;
    if let Some(mut contestants) = options.tools.clone() {
        for one in &mut contestants {
            one.find(installed.as_deref())
                .with_context(|| format!("{} can't be run", one.label))?;
        }
        return Ok(contestants);
    }
    let mut there = Vec::new();
    for mut one in Tool::ALL.map(Contestant::new) {
        match one.find(installed.as_deref()) {
            Ok(()) => there.push(one),
            Err(error) => eprintln!("{} is left out: {error:#}", one.label),
        }
    }
    Ok(there)
}

/// Everything that is measured of one contestant in one run.
fn measure_contestant(
    contestant: &Contestant,
    place: &Place,
    is_batch: bool,
    versions: &[Version],
) -> Result<Figures> {
    let steps = if is_batch {
        vec![versions]
    } else {
        versions.chunks(1).collect()
    };
    contestant
        .set_up(place)
        .context("setting up a repository")?;
    let mut figures = Figures::default();
    for step in &steps {
        trees::put_into_place(step, is_batch, &place.tree())?;
        figures.backups.push(backup(contestant, place)?);
    }
    (figures.repository_files, figures.repository_bytes) =
        trees::files_and_bytes(&place.repository())?;
    (_, figures.state_bytes) = trees::files_and_bytes(&place.state())?;
    figures.unchanged = backup(contestant, place)?;
    figures.snapshots = contestant.snapshots(place)?;
    if figures.snapshots != steps.len() + 1 {
        bail!(
            "{} snapshots were made, and it has {}",
            steps.len() + 1,
            figures.snapshots
        );
    }

    let mut command = contestant.restore(place)?;
    trees::warm(&place.repository())?;
    figures.restore = timed(&mut command, &place.log()).context("restore")?;
    figures.difference = trees::difference(&place.tree(), &place.restored_tree())?;
    fs::remove_dir_all(place.target())?;
    trees::warm(&place.repository())?;
    figures.check = timed(&mut contestant.check(place), &place.log()).context("check")?;
    Ok(figures)
}

fn backup(contestant: &Contestant, place: &Place) -> Result<Usage> {
    trees::warm(&place.tree())?;
    timed(&mut contestant.backup(place), &place.log()).context("backup")
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
