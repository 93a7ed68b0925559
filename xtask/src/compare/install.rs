//! Installs the peers at the versions that they are compared at, each from the registry of its
//! language. Which registry that is, Go's, Cargo's and pip's own settings say.
//!
//! Leaves: `DIR/bin/restic`, `rustic`, `kopia`, `borg`. What is there at the right version is left
//! as it is. Needed are go, cargo, python3 with venv, and for borg the headers of libacl, liblz4,
//! libzstd, libxxhash and OpenSSL.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tools::Tool;

/// How a peer is had.
enum Source {
    /// A package of a module of Go, and options of the compiler.
    Go {
        module: &'static str,
        package: &'static str,
        build_options: &'static [&'static str],
    },
    /// A crate.
    Crate(&'static str),
    /// A distribution of Python.
    Python(&'static str),
}

/// The peers.
const PEERS: [(Tool, &str, Source); 4] = [
    (
        Tool::Restic,
        "0.19.1",
        Source::Go {
            module: "github.com/restic/restic",
            package: "github.com/restic/restic/cmd/restic",
            build_options: &[],
        },
    ),
    (
        Tool::Kopia,
        "0.22.3",
        Source::Go {
            module: "github.com/kopia/kopia",
            package: "github.com/kopia/kopia",
            // It knows its version from its makefile alone.
            build_options: &["-ldflags=-X=github.com/kopia/kopia/repo.BuildVersion=0.22.3"],
        },
    ),
    (Tool::Borg, "1.4.5", Source::Python("borgbackup")),
    (Tool::Rustic, "0.11.4", Source::Crate("rustic-rs")),
];

/// Installs all peers that `directory` lacks. One that can't be had is told, and the others are
/// installed.
///
/// # Errors
/// When the directory can't be made.
pub fn install(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory.join("bin"))
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let directory = directory.canonicalize()?;
    for (tool, version, source) in PEERS {
        let program = directory.join("bin").join(tool.name());
        let is_there = || tool.version_of(program.as_os_str()).ok();
        if is_there().as_deref() == Some(version) {
            eprintln!("{} {version} is there", tool.name());
            continue;
        }
        eprintln!("installing {} {version}", tool.name());
        let result = source.install(&directory, version, &program);
        let found = is_there();
        match (result, found) {
            (Ok(()), Some(found)) if found == version => {}
            (Ok(()), found) => eprintln!(
                "{} says it is {}, not {version}",
                tool.name(),
                found.as_deref().unwrap_or("nothing")
            ),
            (Err(error), _) => eprintln!("{} can't be had: {error:#}", tool.name()),
        }
    }
    Ok(())
}

impl Source {
    fn install(&self, directory: &Path, version: &str, program: &Path) -> Result<()> {
        let build = directory.join("build");
        if build.exists() {
            fs::remove_dir_all(&build)?;
        }
        fs::create_dir(&build)?;
        match self {
            Self::Go {
                module,
                package,
                build_options,
            } => {
                // `go install` asks for the list of all versions, which not every proxy gives:
                // so a module that needs this very one.
                let go = |arguments: &[&str]| run(Command::new("go").args(arguments), &build);
                go(&["mod", "init", "peer"])?;
                go(&["mod", "edit", &format!("-require={module}@v{version}")])?;
                let import = format!("package peer\n\nimport _ \"{package}\"\n");
                fs::write(build.join("peer.go"), import)?;
                let mut command = Command::new("go");
                command.args(["build", "-mod=mod", "-o"]).arg(program);
                run(command.args(*build_options).arg(package), &build)?;
            }
            Self::Crate(name) => {
                // What features add (web server, metrics, screens) no backup uses.
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let mut command = Command::new(cargo);
                command.args(["install", "--locked", "--no-default-features", "--force"]);
                command.arg("--target-dir").arg(&build);
                command.arg("--root").arg(directory);
                run(command.arg(format!("{name}@{version}")), &build)?;
            }
            Self::Python(name) => {
                let home = directory.join(name);
                run(
                    Command::new("python3").args(["-m", "venv"]).arg(&home),
                    &build,
                )?;
                let mut pip = Command::new(home.join("bin/pip"));
                let wanted = format!("{name}=={version}");
                run(pip.args(["install", "--quiet", &wanted]), &build)?;
                let own = program.file_name().context("a program has a name")?;
                if program.symlink_metadata().is_ok() {
                    fs::remove_file(program)?;
                }
                symlink(home.join("bin").join(own), program)?;
            }
        }
        fs::remove_dir_all(&build)?;
        Ok(())
    }
}

/// Runs a step of an installation in `directory`, so that no settings of this workspace hold.
fn run(command: &mut Command, directory: &Path) -> Result<()> {
    let name = command.get_program().to_owned();
    let status = command
        .current_dir(directory)
        .status()
        .with_context(|| format!("cannot run {}", name.display()))?;
    if !status.success() {
        bail!("{} failed: {status}", name.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::options::USAGE;
    use super::*;

    #[test]
    fn every_peer_can_be_installed() {
        for tool in Tool::ALL {
            let count = PEERS.iter().filter(|peer| peer.0 == tool).count();
            assert_eq!(count, usize::from(tool.is_peer()), "{}", tool.name());
        }
        for (tool, version, _) in PEERS {
            let named = format!("{} {version}", tool.name());
            assert!(USAGE.contains(&named), "{named}");
        }
    }
}
