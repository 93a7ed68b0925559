//! Where everything that is printed goes through.
//!
//! For people: what was asked for goes to the standard output; progress, notes, warnings and
//! errors go to the standard error output, above the progress bar if there is one. With
//! `--json`, all of it goes to the standard output as one JSON object a line (`events.rs`);
//! only `dump` and `export`, whose standard output is a file's contents, send events to the other one.
//!
//! Invariant: a line is written whole, whatever thread writes it. That nobody reads a note or
//! an event is no reason to stop a backup: such failures are passed over, those of results are
//! errors.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use indicatif::ProgressBar;
use repository::progress::Problem;
use serde::Serialize;
use serde_json::Value;

use crate::events::{Event, PathText};
use crate::failure::Failure;
use crate::names;
use crate::server_view::ServerEvent;

/// How people and programs hear of what happens.
#[derive(Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    verbose: bool,
    is_stdout_content: bool,
    shows_stages: bool,
    bar: Mutex<Option<ProgressBar>>,
    keeps_summary: bool,
    summary: Mutex<Option<Value>>,
    /// What was asked of a server so far, if the repository lies on one.
    server: OnceLock<ServerCounts>,
}

/// Tells what was asked of a server.
struct ServerCounts(Box<dyn Fn() -> ServerEvent + Send + Sync>);

impl std::fmt::Debug for ServerCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerCounts")
    }
}

impl Output {
    /// An output of that manner.
    pub fn new(json: bool, quiet: bool, verbose: bool) -> Self {
        Self {
            json,
            quiet,
            verbose,
            is_stdout_content: false,
            shows_stages: false,
            bar: Mutex::new(None),
            keeps_summary: false,
            summary: Mutex::new(None),
            server: OnceLock::new(),
        }
    }

    /// The same, while the standard output carries the contents of a file.
    pub fn beside_content(self) -> Self {
        Self {
            is_stdout_content: true,
            ..self
        }
    }

    /// The same, with a view of the stages of long operations.
    pub fn showing_stages(self, shows_stages: bool) -> Self {
        Self {
            shows_stages,
            ..self
        }
    }

    /// The same, which keeps the summary of the run.
    pub fn keeping_summary(self, keeps_summary: bool) -> Self {
        Self {
            keeps_summary,
            ..self
        }
    }

    /// The summary of the run, as JSON, if there was one and it was to be kept.
    pub fn summary_kept(&self) -> Option<Value> {
        let summary = self.summary.lock();
        summary.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Is a view of the stages wanted?
    pub fn shows_stages(&self) -> bool {
        self.shows_stages
    }

    /// Is everything JSON?
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Are progress, notes and summaries unwanted?
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Are details wanted?
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Must names be escaped in what goes to the standard output?
    pub fn escapes_names(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// The standard output for results of many lines. Flush it at the end.
    pub fn results(&self) -> BufWriter<io::StdoutLock<'static>> {
        BufWriter::with_capacity(1 << 16, io::stdout().lock())
    }

    /// What a person asked for: a text of one or several lines.
    pub fn result(&self, text: &str) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// What a person may want to know at the end. With `--quiet`, nothing.
    pub fn summary(&self, text: &str) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        self.result(text)
    }

    /// A result as an event, when these are wanted.
    pub fn event(&self, event: &Event) -> io::Result<()> {
        if self.keeps_summary && matches!(event, Event::Summary(_)) {
            let summary = serde_json::to_value(event).map_err(io::Error::other)?;
            *self.summary.lock().unwrap_or_else(PoisonError::into_inner) = Some(summary);
        }
        if !self.json {
            return Ok(());
        }
        // The last line is a summary or an error.
        if let (Event::Summary(_) | Event::Error { .. }, Some(server)) = (event, self.server.get())
        {
            self.write_event(&Event::Server(server.0()))?;
        }
        self.write_event(event)
    }

    fn write_event(&self, event: &Event) -> io::Result<()> {
        if self.is_stdout_content {
            write_json(&mut io::stderr().lock(), event)
        } else {
            write_json(&mut io::stdout().lock(), event)
        }
    }

    /// From now on events tell what was asked of a server, at the end of the run.
    pub fn count_server(&self, counts: impl Fn() -> ServerEvent + Send + Sync + 'static) {
        let _ = self.server.set(ServerCounts(Box::new(counts)));
    }

    /// Tells a person what was asked of a server, if they want details.
    pub fn tell_server(&self) {
        if let Some(server) = self
            .server
            .get()
            .filter(|_| self.verbose || self.shows_stages)
        {
            self.note(&server.0().text());
        }
    }

    /// Something good to know.
    pub fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            self.print(&names::escaped_text(text));
        }
    }

    /// Something that may be wrong, though the run goes on.
    pub fn warning(&self, text: &str) {
        if self.json {
            let message = text.to_owned();
            let _ = self.event(&Event::Warning { message });
        } else {
            self.print(&format!("Warning: {}", names::escaped_text(text)));
        }
    }

    /// Something that could not be done, though the run goes on.
    pub fn problem(&self, problem: &Problem) {
        if self.json {
            let _ = self.event(&Event::Problem {
                path: PathText::new(&problem.path),
                message: problem.message.clone(),
                is_error: problem.is_error,
            });
        } else if problem.is_error || !self.quiet {
            let label = if problem.is_error { "Error" } else { "Note" };
            let path = names::escaped(&problem.path);
            let message = names::escaped_text(&problem.message);
            self.print(&format!("{label}: {path}: {message}"));
        }
    }

    /// Why the run failed.
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            let _ = self.event(&Event::Error {
                code: failure.code.number(),
                message: failure.message.clone(),
                hint: failure.hint.clone(),
            });
            return;
        }
        let mut text = format!("Error: {}", names::escaped_text(&failure.message));
        if let Some(hint) = &failure.hint {
            text.push_str(&format!("\nHint: {}", names::escaped_text(hint)));
        }
        self.print(&text);
    }

    /// Shows `bar` below everything that is printed from now on, or no bar any more.
    pub fn set_bar(&self, bar: Option<ProgressBar>) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }

    /// Prints a line to the standard error output, above the bar.
    pub fn print(&self, line: &str) {
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let write = || {
            let _ = writeln!(io::stderr().lock(), "{line}");
        };
        match &*bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// Writes `value` as a line of JSON.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}
