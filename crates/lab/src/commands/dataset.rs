//! `onefold-lab dataset NAME DIR`: builds a stand-in for a data set of the papers.
//!
//! Progress goes to the standard error, one line a version; the standard output gets the sums,
//! as lines or as JSON.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::output::print;
use crate::dataset::edits::{EditKind, EditRequest};
use crate::dataset::{self, KINDS, Kind, Outcome, Request};
use crate::units::parse_bytes;

/// What to build, and where.
#[derive(Debug, Args)]
pub struct DatasetArguments {
    /// List the data sets: what each stands for, needs, and how large it is
    #[arg(long, conflicts_with_all = ["name", "directory", "size", "versions", "seed", "edits", "edit_kind", "edit_range"])]
    pub list: bool,
    /// Name of the data set
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// The directory it is laid in, made if it is not there; what lies there is verified, and
    /// what is missing filled in
    #[arg(value_name = "DIR", required_unless_present = "list")]
    pub directory: Option<PathBuf>,
    /// About how many bytes all versions have together, such as 64M
    #[arg(long, value_parser = bytes)]
    pub size: Option<u64>,
    /// How many versions
    #[arg(long, value_name = "N")]
    pub versions: Option<usize>,
    /// Start of all randomness
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Of `edits`: how many edits of 100 bytes a version gets; one for every 512 KiB if not given
    #[arg(long, value_name = "N")]
    pub edits: Option<u64>,
    /// Of `edits`: what an edit does, insert-delete or overwrite
    #[arg(long, value_name = "KIND")]
    pub edit_kind: Option<EditKind>,
    /// Of `edits`: in which part of the file edits lie, in percent from its start
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub edit_range: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Builds it.
///
/// # Errors
/// When the data set can't be built.
pub fn run(arguments: &DatasetArguments) -> Result<()> {
    if arguments.list {
        return list(arguments.json);
    }
    let start = Instant::now();
    let request = Request {
        name: arguments.name.clone().context("no name was given")?,
        directory: arguments.directory.clone().context("no directory")?,
        bytes: arguments.size,
        versions: arguments.versions,
        seed: arguments.seed,
        edits: EditRequest {
            edits: arguments.edits,
            kind: arguments.edit_kind,
            range_percent: arguments.edit_range,
        },
    };
    let outcome = dataset::build(&request)?;
    let seconds = start.elapsed().as_secs_f64();
    if arguments.json {
        print_json(&request, &outcome, seconds)
    } else {
        let manifest = &outcome.manifest;
        print(&format!(
            "versions {}\nbuilt    {}\nfiles    {}\nbytes    {}\ndigest   {}\n",
            manifest.versions.len(),
            outcome.built,
            manifest.files,
            manifest.bytes,
            manifest.digest.as_deref().unwrap_or("-")
        ))
    }
}

fn print_json(request: &Request, outcome: &Outcome, seconds: f64) -> Result<()> {
    let manifest = &outcome.manifest;
    let versions: Vec<_> = manifest
        .versions
        .iter()
        .map(|version| {
            json!({
                "name": version.name,
                "label": version.label,
                "files": version.files.len(),
                "bytes": version.bytes(),
            })
        })
        .collect();
    let summary = json!({
        "name": manifest.name,
        "directory": request.directory,
        "seed": manifest.seed,
        "options": manifest.options,
        "files": manifest.files,
        "bytes": manifest.bytes,
        "digest": manifest.digest,
        "tools": manifest.tools,
        "built": outcome.built,
        "verified": outcome.verified,
        "seconds": (seconds * 1000.0).round() / 1000.0,
        "versions": versions,
    });
    print(&format!("{}\n", serde_json::to_string_pretty(&summary)?))
}

fn list(is_json: bool) -> Result<()> {
    if is_json {
        let entry = |kind: &Kind| {
            json!({
                "name": kind.name,
                "stands_for": kind.stands_for,
                "needs": kind.needs,
                "bytes_default": kind.bytes_default,
                "versions_default": kind.versions_default,
                "sameness": kind.sameness.name(),
            })
        };
        let all: Vec<_> = KINDS.iter().map(entry).collect();
        return print(&format!("{}\n", serde_json::to_string_pretty(&all)?));
    }
    let entry = |kind: &Kind| {
        format!(
            "{}\n  stands for {}\n  needs      {}\n  default    {} MiB in {} versions; built twice: {}\n",
            kind.name,
            kind.stands_for,
            kind.needs,
            kind.bytes_default >> 20,
            kind.versions_default,
            kind.sameness.name()
        )
    };
    print(&KINDS.iter().map(entry).collect::<String>())
}

/// The size of a data set: what a size is elsewhere, and not nothing.
fn bytes(text: &str) -> Result<u64, String> {
    let most = 1 << 44;
    Some(parse_bytes(text)?)
        .filter(|bytes| (1..=most).contains(bytes))
        .ok_or_else(|| "a size is at least 1 byte and at most 16 TiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("3GiB"), Ok(3 << 30));
        assert_eq!(bytes("4096"), Ok(4096));
        for wrong in ["", "M", "-1", "0", "17T", "99999999999G", "ä"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
