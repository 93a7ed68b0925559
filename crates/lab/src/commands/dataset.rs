//! `onefold-lab dataset NAME DIR`: builds a stand-in for a data set of the papers.
//!
//! Progress goes to the standard error, one line a version; the standard output gets the sums,
//! as lines or as JSON.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use crate::dataset::{self, KINDS, Kind, Outcome, Request};

/// What to build, and where.
#[derive(Debug, Args)]
pub struct DatasetArguments {
    /// List the data sets: what each stands for, needs, and how large it is
    #[arg(long, conflicts_with_all = ["name", "directory", "size", "versions", "seed"])]
    pub list: bool,
    /// Name of the data set
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// The directory it is laid in, made if it is not there; what lies there is verified, and
    /// what is missing filled in
    #[arg(value_name = "DIR", required_unless_present = "list")]
    pub directory: Option<PathBuf>,
    /// About how many bytes all versions have together: a number, with K, M or G behind it for
    /// powers of 1024
    #[arg(long, value_parser = bytes)]
    pub size: Option<u64>,
    /// How many versions
    #[arg(long, value_name = "N")]
    pub versions: Option<usize>,
    /// Start of all randomness
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
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
    };
    let outcome = dataset::build(&request)?;
    let seconds = start.elapsed().as_secs_f64();
    if arguments.json {
        print_json(&request, &outcome, seconds)
    } else {
        let manifest = &outcome.manifest;
        println!("versions {}", manifest.versions.len());
        println!("built    {}", outcome.built);
        println!("files    {}", manifest.files);
        println!("bytes    {}", manifest.bytes);
        println!("digest   {}", manifest.digest.as_deref().unwrap_or("-"));
        Ok(())
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
        "files": manifest.files,
        "bytes": manifest.bytes,
        "digest": manifest.digest,
        "tools": manifest.tools,
        "built": outcome.built,
        "verified": outcome.verified,
        "seconds": (seconds * 1000.0).round() / 1000.0,
        "versions": versions,
    });
    println!("{}", serde_json::to_string_pretty(&summary)?);
    Ok(())
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
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    for kind in KINDS {
        println!("{}", kind.name);
        println!("  stands for {}", kind.stands_for);
        println!("  needs      {}", kind.needs);
        println!(
            "  default    {} MiB in {} versions; built twice: {}",
            kind.bytes_default >> 20,
            kind.versions_default,
            kind.sameness.name()
        );
    }
    Ok(())
}

/// `64M` and the like.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        unit => return Err(format!("'{unit}' is no unit; there are K, M, G")),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("'{digits}' is no whole number"))?;
    let most = 1 << 44;
    number
        .checked_mul(1 << shift)
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
        for wrong in ["", "M", "1.5M", "-1", "0", "7T", "99999999999G", "ä"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
