//! The chore's command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

/// How the chore is called.
pub const USAGE: &str = "\
scale options:
  --chunks N         chunks of the stream; default 100000000 (7 GB of room, half an hour)
  --snapshots N      a tree of files instead, with so many versions: forget and prune
  --memory SIZE      what onefold is given, in MiB; default 256MiB
  --container SIZE   size of a container; default 64KiB
  --control-group    let no verb have more than that and 64 MiB, files it reads included (root)
  --option=OPTION    a further option of onefold; may be given several times
  --program PATH     the onefold to measure; built where none is given
  --work DIR         where the repository is put; default the temporary directory
  --keep             leave the repository there
Fails when a verb takes more than the memory given and 64 MiB, backups of a tree excepted. Needs GNU time.
";

/// What the command line asks for.
#[derive(Debug)]
pub struct Options {
    /// Chunks of the stream.
    pub chunks: u64,
    /// Versions of a tree, instead of a stream.
    pub snapshots: Option<u64>,
    /// As given to onefold.
    pub memory: String,
    /// The same in bytes.
    pub memory_bytes: u64,
    /// As given to `init`.
    pub container_size: String,
    /// In a control group?
    pub is_limited: bool,
    /// Further options of onefold.
    pub extra: Vec<String>,
    /// Where the repository is put.
    pub work: PathBuf,
    /// Is it left there?
    pub is_kept: bool,
    program: Option<PathBuf>,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            chunks: 100_000_000,
            snapshots: None,
            memory: "256MiB".to_owned(),
            memory_bytes: 0,
            container_size: "64KiB".to_owned(),
            is_limited: false,
            extra: Vec::new(),
            work: std::env::temp_dir(),
            is_kept: false,
            program: None,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .with_context(|| format!("{word} wants a value"))
            };
            match word {
                "--chunks" => options.chunks = value()?.parse().context("--chunks")?,
                "--snapshots" => {
                    options.snapshots = Some(value()?.parse().context("--snapshots")?);
                }
                "--memory" => options.memory = (*value()?).to_owned(),
                "--container" => options.container_size = (*value()?).to_owned(),
                "--control-group" => options.is_limited = true,
                "--program" => options.program = Some(PathBuf::from(value()?)),
                "--work" => options.work = PathBuf::from(value()?),
                "--keep" => options.is_kept = true,
                _ => match word.strip_prefix("--option=") {
                    Some(option) => options.extra.push(option.to_owned()),
                    None => bail!("no such option: {word}\n{USAGE}"),
                },
            }
        }
        let mebibytes = options.memory.strip_suffix("MiB");
        let mebibytes = mebibytes.and_then(|number| number.parse::<u64>().ok());
        options.memory_bytes = mebibytes.context("--memory wants a number of MiB")? << 20;
        ensure!(options.chunks > 0, "--chunks 0 measures nothing");
        ensure!(
            options.snapshots.is_none_or(|count| count >= 2),
            "--snapshots wants two or more"
        );
        Ok(options)
    }

    /// The program, built if none was given.
    ///
    /// # Errors
    /// When it can't be built.
    pub fn program(&self) -> Result<PathBuf> {
        if let Some(program) = &self.program {
            return Ok(program.canonicalize()?);
        }
        crate::compare::build_onefold()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let words = [
            "--chunks",
            "1000",
            "--memory",
            "64MiB",
            "--option=--threads=1",
        ];
        let options = Options::parse(&words).unwrap();
        assert_eq!((options.chunks, options.memory_bytes), (1000, 64 << 20));
        assert_eq!(options.extra, ["--threads=1"]);
        for words in [
            &["--memory", "64"][..],
            &["--chunks", "0"],
            &["--fast"],
            &["--work"],
        ] {
            assert!(Options::parse(words).is_err(), "{words:?}");
        }
    }
}
