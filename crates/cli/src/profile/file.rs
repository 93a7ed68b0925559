//! The file of profiles: where it is, and what a profile in it says.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::names;

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The key of a profile that names another one, of which it takes over what it does not say itself.
const INHERIT: &str = "inherit";

/// Where the file is: the one that was given, else the user's own, else that of the machine.
pub(super) fn find(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return Ok(path);
    }
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    let of_user = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let of_user = of_user.map(|directory| directory.join("onefold/profiles.toml"));
    let of_machine = PathBuf::from("/etc/onefold/profiles.toml");
    let mut places = of_user.into_iter().chain([of_machine]);
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let tried: Vec<String> = places
        .clone()
        .map(|path| names::escaped_path(&path))
        .collect();
    places.find(is_there).ok_or_else(|| {
        Failure::usage(format!(
            "there is no file of profiles: no {}",
            tried.join(", no ")
        ))
        .with_hint("write one as docs/guide/automation.md shows, or give --config FILE")
    })
}

/// What a profile says, with what it inherits.
pub(super) fn profile(path: &Path, name: &str) -> Result<Table, Failure> {
    let file = read(path)?;
    let mut merged = Table::new();
    let (mut next, mut seen) = (name.to_owned(), HashSet::new());
    loop {
        let Some(table) = file.get(&next).and_then(Value::as_table) else {
            return Err(missing(path, &next, &file));
        };
        if !seen.insert(next.clone()) {
            return Err(refused(path, &format!("profile '{next}' inherits itself")));
        }
        let mut table = table.clone();
        let inherited = table.remove(INHERIT);
        merged = merge(table, merged);
        next = match inherited {
            None => return Ok(merged),
            Some(Value::String(name)) => name,
            Some(_) => {
                let what = format!("{next}.{INHERIT}: it is no name of a profile");
                return Err(refused(path, &what));
            }
        };
    }
}

/// `above`, and what it does not say of `below`; tables of verbs likewise.
fn merge(below: Table, above: Table) -> Table {
    let mut merged = below;
    for (key, value) in above {
        let value = match (merged.remove(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => Value::Table(merge(below, above)),
            (_, value) => value,
        };
        merged.insert(key, value);
    }
    merged
}

fn read(path: &Path) -> Result<Table, Failure> {
    let text = || -> io::Result<String> {
        let mut text = String::new();
        let bytes = File::open(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_string(&mut text)?;
        match bytes as u64 > FILE_BYTES_MAX {
            true => Err(io::Error::other("it is longer than 1 MiB")),
            false => Ok(text),
        }
    };
    let shown = names::escaped_path(path);
    let text = text()
        .map_err(|error| Failure::new(ExitCode::Failed, format!("cannot read {shown}: {error}")))?;
    text.parse().map_err(|error: toml::de::Error| {
        let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
        let line = before.matches('\n').count() + 1;
        refused(path, &format!("line {line}: {}", error.message()))
    })
}

fn missing(path: &Path, name: &str, file: &Table) -> Failure {
    let names: Vec<&str> = file
        .iter()
        .filter(|(_, value)| value.is_table())
        .map(|(name, _)| name.as_str())
        .collect();
    refused(path, &format!("there is no profile '{name}'"))
        .with_hint(format!("there are: {}", names.join(", ")))
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{}: {why}", names::escaped_path(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, name: &str) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profiles.toml");
        std::fs::write(&path, text).unwrap();
        let said = profile(&path, name).map(|table| table.to_string());
        said.map_err(|failure| failure.message.replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn profiles_inherit() {
        let text = "[a]\nrepo = 'x'\n[a.backup]\nforce = true\nexclude = ['1']\n\
            [b]\ninherit = 'a'\n[b.backup]\nexclude = ['2']\n[b.forget]\nkeep-last = 3\n";
        let said_b = said(text, "b").unwrap();
        let expected: Table =
            "repo = 'x'\nbackup = { force = true, exclude = ['2'] }\nforget = { keep-last = 3 }"
                .parse()
                .unwrap();
        assert_eq!(said_b.parse::<Table>().unwrap(), expected);
        assert!(!said(text, "a").unwrap().contains("keep-last"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        assert_eq!(
            said("x = 1", "a").unwrap_err(),
            "FILE: there is no profile 'a'"
        );
        assert_eq!(
            said("a = 1", "a").unwrap_err(),
            "FILE: there is no profile 'a'"
        );
        let circle = "[a]\ninherit = 'b'\n[b]\ninherit = 'a'";
        assert_eq!(
            said(circle, "a").unwrap_err(),
            "FILE: profile 'a' inherits itself"
        );
        let number = said("[a]\ninherit = 1", "a").unwrap_err();
        assert_eq!(number, "FILE: a.inherit: it is no name of a profile");
        let broken = said("[a]\nrepo = 'x'\nwhat", "a").unwrap_err();
        assert!(broken.starts_with("FILE: line 3: "), "{broken}");
        let long = "#".repeat(FILE_BYTES_MAX as usize + 1);
        assert!(said(&long, "a").unwrap_err().contains("longer than 1 MiB"));
    }
}
