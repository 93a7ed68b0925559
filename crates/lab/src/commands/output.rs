//! Where results go: the forms that a verb was asked for, each to its place.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use crate::chunk::data::Notice;
use crate::failure::{Failure, PARTIAL};
use crate::progress::Progress;
use crate::{names, units};

/// Stands for the standard output.
pub const STDOUT: &str = "-";

/// The forms that a report is wanted in.
pub struct Forms<'a> {
    /// A page with plots, in this file.
    pub html: Option<&'a PathBuf>,
    /// CSV in this file, or instead of the table where it is [`STDOUT`].
    pub csv: Option<&'a PathBuf>,
    /// JSON instead of the table.
    pub is_json: bool,
}

/// Writes a report in every form that is wanted. With JSON, a failure to read has a place in it.
pub fn write<R: Serialize>(
    forms: &Forms<'_>,
    report: &R,
    page: impl FnOnce(&R) -> String,
    csv: impl FnOnce(&R) -> anyhow::Result<String>,
    table: impl FnOnce(&R) -> String,
) -> anyhow::Result<()> {
    if let Some(path) = forms.html {
        write_file(path, &page(report))?;
    }
    let is_stdout_csv = forms.csv.is_some_and(|path| path == Path::new(STDOUT));
    if let Some(path) = forms.csv {
        let text = csv(report)?;
        if is_stdout_csv {
            print(&text)?;
        } else {
            write_file(path, &text)?;
        }
    }
    if forms.is_json {
        print(&format!("{}\n", serde_json::to_string(report)?))
    } else if is_stdout_csv {
        Ok(())
    } else {
        print(&table(report))
    }
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", names::escaped(path)))
}

/// Prints to the standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot print")
}

/// Some files could not be read, though everything else was measured.
pub fn partial(failed: u64, is_json: bool) -> anyhow::Error {
    let files = units::counted(failed, "file or directory", "files and directories");
    let message = if is_json {
        String::new()
    } else {
        format!("{files} could not be read (named above): the figures are of the others")
    };
    Failure::new(PARTIAL, message).into()
}

/// Says what happened to files.
pub fn tell(notices: &[Notice], progress: &Progress) {
    for notice in notices {
        let path = names::escaped(&notice.path);
        if notice.is_error {
            progress.warning(&format!("Error: {path}: {}", notice.message));
        } else {
            progress.note(&format!("Note: {path}: {}", notice.message));
        }
    }
}
