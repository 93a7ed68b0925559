//! The chore's command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::contestant::Contestant;

/// How the chore is called.
pub const USAGE: &str = "\
compare options:
  --batch            all versions in one backup, not one after the other
  --tools A,B,…      of restic, rustic, kopia, borg, onefold; default those that are there.
                     Options of onefold stand behind colons, and make a row of their own:
                     onefold,onefold:--compression=1,onefold:--memory=64MiB:--threads=1.
                     onefold-plain is without encryption, and so without key derivation.
                     The programs are those in PATH, or in the variables RESTIC, RUSTIC, KOPIA,
                     BORG, ONEFOLD; onefold is built
  --install DIR      install restic 0.19.1, rustic 0.11.4, kopia 0.22.3, borg 1.4.5 into DIR from
                     the registries of go, cargo, python3, as far as they are not there, and run
                     these. Without versions to compare, that is all
  --runs N           how often, the tools taking turns; medians are told; default 1
  --work DIR         where trees and repositories are put; default the temporary directory
  --out PREFIX       default ./compare-NAME-MODE
Versions are trees v01, v02, … or files v01.rdb, v02.rdb, …. Needs GNU time and cp -a.
";

/// What the command line asks for.
#[derive(Debug)]
pub struct Options {
    /// All versions in one backup?
    pub is_batch: bool,
    /// Those asked for; nothing asked for means all that are there.
    pub tools: Option<Vec<Contestant>>,
    /// Where peers are installed.
    pub install: Option<PathBuf>,
    /// How often everything is measured.
    pub runs: u32,
    /// Where trees and repositories are put.
    pub work: PathBuf,
    /// How the report's files begin.
    pub out: Option<PathBuf>,
    /// The versions; none if only peers are to be installed.
    pub dataset: Option<PathBuf>,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            is_batch: false,
            tools: None,
            install: None,
            runs: 1,
            work: std::env::temp_dir(),
            out: None,
            dataset: None,
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
                "--tools" => options.tools = Some(Contestant::list(value()?)?),
                "--install" => options.install = Some(PathBuf::from(value()?)),
                "--runs" => options.runs = value()?.parse().context("--runs wants a number")?,
                "--work" => options.work = PathBuf::from(value()?),
                "--out" => options.out = Some(PathBuf::from(value()?)),
                _ if word.starts_with('-') => bail!("no such option: {word}\n{USAGE}"),
                _ if options.dataset.is_some() => bail!("one data set at a time: {word}"),
                _ => options.dataset = Some(PathBuf::from(word)),
            }
        }
        if options.runs == 0 {
            bail!("--runs 0 measures nothing");
        }
        match &options.dataset {
            None if options.install.is_some() => {}
            Some(dataset) if dataset.is_dir() => {
                options.dataset = Some(dataset.canonicalize()?);
            }
            _ => bail!(
                "no directory of versions was given (`onefold-lab dataset lnx DIR` makes one)\n{USAGE}"
            ),
        }
        Ok(options)
    }

    /// How versions are backed up.
    pub fn mode(&self) -> &'static str {
        if self.is_batch { "batch" } else { "versions" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let here = env!("CARGO_MANIFEST_DIR");
        let words = ["--tools", "kopia,onefold:--compression=1", "--runs", "3"];
        let options = Options::parse(&[&words[..], &["--install", "peers", here]].concat());
        let options = options.unwrap();
        assert_eq!(options.runs, 3);
        assert_eq!(options.mode(), "versions");
        assert_eq!(options.tools.unwrap().len(), 2);
        assert_eq!(options.install, Some(PathBuf::from("peers")));
        assert!(options.dataset.is_some());
        let only = Options::parse(&["--install", "peers"]).unwrap();
        assert!(only.dataset.is_none() && only.tools.is_none());
    }

    #[test]
    fn wrong_command_lines_say_what_is_wrong() {
        let here = env!("CARGO_MANIFEST_DIR");
        for (words, wrong) in [
            (&[][..], "no directory of versions"),
            (&["not/there"], "no directory of versions"),
            (&["--runs"], "--runs wants a value"),
            (&["--runs", "x", here], "wants a number"),
            (&["--runs", "0", here], "measures nothing"),
            (&["--fast", here], "no such option: --fast"),
            (&["--tools", "tar", here], "no such tool: tar"),
            (&[here, here], "one data set"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(wrong), "{words:?}: {error}");
        }
    }
}
