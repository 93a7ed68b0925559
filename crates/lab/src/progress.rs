//! How far a measurement is: a bar on a terminal, elsewhere a line every ten seconds, nothing
//! with `--quiet`. All of it goes to the standard error output.
//!
//! Nothing runs beside the measurement to show it: the bar moves between passes, never during
//! one, so that it takes no time from what is measured.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::units;

const LINE_EVERY: Duration = Duration::from_secs(10);

/// The display of a long run.
pub struct Progress {
    manner: Manner,
    started: Instant,
    shown: Instant,
    done: u64,
    total: u64,
}

enum Manner {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

impl Progress {
    /// A display that suits the standard error output, or none.
    pub fn new(is_quiet: bool) -> Self {
        let manner = if is_quiet {
            Manner::Nothing
        } else if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("[{bar:20}] {wide_msg}")
                .expect("the template is well formed")
                .progress_chars("=> ");
            bar.set_style(style);
            Manner::Bar(bar)
        } else {
            Manner::Lines
        };
        let now = Instant::now();
        Self {
            manner,
            started: now,
            shown: now,
            done: 0,
            total: 0,
        }
    }

    /// So many bytes more will be gone through.
    pub fn expect(&mut self, bytes: u64) {
        self.total += bytes;
        if let Manner::Bar(bar) = &self.manner {
            bar.set_length(self.total);
        }
    }

    /// So many bytes more were gone through, and `doing` is next.
    pub fn advance(&mut self, bytes: u64, doing: &str) {
        self.done = (self.done + bytes).min(self.total);
        match &self.manner {
            Manner::Bar(bar) => {
                bar.set_position(self.done);
                bar.set_message(self.line(doing));
            }
            Manner::Lines if self.shown.elapsed() >= LINE_EVERY => {
                self.shown = Instant::now();
                eprintln!("{}", self.line(doing));
            }
            _ => {}
        }
    }

    /// Prints a line above the bar, unless nothing is wanted.
    pub fn note(&self, text: &str) {
        match &self.manner {
            Manner::Bar(bar) => bar.suspend(|| eprintln!("{text}")),
            Manner::Lines => eprintln!("{text}"),
            Manner::Nothing => {}
        }
    }

    /// Prints a line above the bar, wanted or not.
    pub fn warning(&self, text: &str) {
        match &self.manner {
            Manner::Bar(bar) => bar.suspend(|| eprintln!("{text}")),
            _ => eprintln!("{text}"),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Manner::Bar(bar) = &self.manner {
            bar.finish_and_clear();
        }
    }

    fn line(&self, doing: &str) -> String {
        let elapsed = self.started.elapsed();
        let mut line = format!(
            "{} of {}",
            units::bytes(self.done),
            units::bytes(self.total)
        );
        if self.done > 0 && elapsed > Duration::from_secs(2) {
            let left = elapsed.mul_f64((self.total - self.done) as f64 / self.done as f64);
            line.push_str(&format!(", {} left", clock(left)));
        }
        format!("{line}  {doing}")
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// `0:07`, `12:34`, `1:02:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{:02}", seconds % 60)
    } else {
        format!("{minutes}:{:02}", seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is() {
        let mut progress = Progress::new(true);
        progress.expect(10 << 20);
        progress.advance(5 << 20, "fastcdc");
        assert_eq!(progress.line("gear"), "5.0 MiB of 10.0 MiB  gear");
        progress.advance(50 << 20, "");
        assert_eq!(progress.done, progress.total);
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
        assert_eq!(clock(Duration::from_secs(7)), "0:07");
    }
}
