//! Shows how far a long operation is, while it runs.
//!
//! On a terminal: a bar with bytes, files, speed, time left and the current file. Elsewhere: a
//! line on the standard error output every ten seconds. With `--json`: an event a second. With
//! `--quiet`: nothing. One thread of this file looks at the counters ten times a second; it
//! also hands an interruption on to the operation. With `--stages`, what the stages are doing
//! stands below the bar or after the line, and as a table at the end.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::pipeline::StageReport;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use repository::Progress;

use crate::events::{Event, PathText, ProgressEvent};
use crate::interrupt;
use crate::names;
use crate::output::Output;
use crate::rate::{Rate, time_left};
use crate::stages_view::{self, StageEvent};
use crate::units;

const TICK: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(10);
const EVENT_EVERY: Duration = Duration::from_secs(1);

/// Width of the bar itself, in columns.
const BAR_COLUMNS: usize = 20;
/// Width taken where the terminal does not say.
const COLUMNS_DEFAULT: usize = 80;

/// What an operation goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Items {
    /// Files of a backup or restore.
    Files,
    /// Containers of a repository.
    Containers,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Bar,
    Lines,
    Events,
    Nothing,
}

/// The manner that suits an output.
pub fn manner(output: &Output) -> Manner {
    if output.is_quiet() {
        Manner::Nothing
    } else if output.is_json() {
        Manner::Events
    } else if io::stderr().is_terminal() {
        Manner::Bar
    } else {
        Manner::Lines
    }
}

/// Does `work`, and shows how far it is. Problems are printed as they come. An interruption
/// makes `work` stop early: [`interrupt::is_requested`] tells afterwards.
pub fn watch<T>(
    output: &Arc<Output>,
    items: Items,
    work: impl FnOnce(&Progress) -> T,
) -> anyhow::Result<T> {
    interrupt::catch()?;
    let problems = Arc::clone(output);
    let progress = Progress::with_handler(move |problem| problems.problem(problem));
    let end = End::default();
    let started = Instant::now();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| Display::new(output, items, &progress).run(&end));
        // Ends the display even when the work panics: the scope waits for it.
        let _guard = EndOnDrop(&end);
        work(&progress)
    });
    tell_stages(output, &progress.stages.reports(), started.elapsed())?;
    Ok(outcome)
}

/// What the stages did, at the end.
fn tell_stages(output: &Output, reports: &[StageReport], elapsed: Duration) -> io::Result<()> {
    if reports.is_empty() {
        return Ok(());
    }
    if output.is_json() {
        return output.event(&Event::Stages {
            bottleneck: stages_view::bottleneck_name(reports),
            seconds: elapsed.as_secs_f64(),
            stages: StageEvent::of(reports),
        });
    }
    if output.shows_stages() {
        output.print(&stages_view::table(reports, elapsed));
    }
    Ok(())
}

/// Tells the display that the work is over.
#[derive(Debug, Default)]
struct End {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl End {
    /// Waits for a while; is the work over?
    fn wait(&self, timeout: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(is_over, timeout, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

struct EndOnDrop<'a>(&'a End);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        *self
            .0
            .is_over
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

/// The counters at one moment.
#[derive(Debug)]
struct Moment {
    items_done: u64,
    items_total: Option<u64>,
    bytes_done: u64,
    bytes_total: Option<u64>,
    bytes_new: u64,
    errors: u64,
    per_second: f64,
    left: Option<Duration>,
    elapsed: Duration,
    current: Vec<u8>,
    stages: Vec<StageReport>,
}

struct Display<'a> {
    output: &'a Output,
    items: Items,
    progress: &'a Progress,
    manner: Manner,
    started: Instant,
    rate: Rate,
    bar: Option<ProgressBar>,
    is_interruption_told: bool,
}

impl<'a> Display<'a> {
    fn new(output: &'a Output, items: Items, progress: &'a Progress) -> Self {
        let started = Instant::now();
        Self {
            output,
            items,
            progress,
            manner: manner(output),
            started,
            rate: Rate::new(started),
            bar: None,
            is_interruption_told: false,
        }
    }

    fn run(mut self, end: &End) {
        let mut last_shown = self.started;
        while !end.wait(TICK) {
            self.pass_interruption_on();
            let moment = self.moment();
            let every = match self.manner {
                Manner::Nothing => continue,
                Manner::Bar => Duration::ZERO,
                Manner::Lines => LINE_EVERY,
                Manner::Events => EVENT_EVERY,
            };
            if last_shown.elapsed() < every {
                continue;
            }
            last_shown = Instant::now();
            match self.manner {
                Manner::Bar => self.draw(&moment),
                Manner::Lines => {
                    self.output.print(&line(&moment, self.items));
                    if self.output.shows_stages() {
                        let stages = stages_view::line(&moment.stages, moment.elapsed);
                        self.output.print(&stages);
                    }
                }
                Manner::Events => {
                    let _ = self
                        .output
                        .event(&Event::Progress(event(&moment, self.items)));
                }
                Manner::Nothing => {}
            }
        }
        if let Some(bar) = &self.bar {
            self.output.set_bar(None);
            bar.finish_and_clear();
        }
    }

    fn pass_interruption_on(&mut self) {
        if self.is_interruption_told || !interrupt::is_requested() {
            return;
        }
        self.is_interruption_told = true;
        self.progress.is_cancelled.store(true, Ordering::Relaxed);
        self.output
            .note("Interrupted: stopping at the next safe place (again: at once)");
    }

    fn moment(&mut self) -> Moment {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let progress = self.progress;
        let is_known = progress.is_total_known.load(Ordering::Relaxed);
        let known =
            |counter: &AtomicU64| is_known.then(|| read(counter)).filter(|&total| total > 0);
        let bytes_done = read(&progress.bytes_done);
        let bytes_total = known(&progress.bytes_total);
        let now = Instant::now();
        let per_second = self.rate.update(now, bytes_done);
        Moment {
            items_done: read(&progress.files_done),
            items_total: known(&progress.files_total),
            bytes_done,
            bytes_total,
            bytes_new: read(&progress.bytes_new),
            errors: read(&progress.errors),
            per_second,
            left: bytes_total.and_then(|total| time_left(bytes_done, total, per_second)),
            elapsed: now.duration_since(self.started),
            current: progress.current(),
            stages: progress.stages.reports(),
        }
    }

    fn draw(&mut self, moment: &Moment) {
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            self.output.set_bar(Some(bar.clone()));
            bar
        });
        match moment.bytes_total {
            Some(total) => {
                if bar.length() != Some(total) {
                    bar.set_style(style("[{bar:20}] {wide_msg}{prefix}"));
                    bar.set_length(total);
                }
                bar.set_position(moment.bytes_done);
            }
            None => bar.set_style(style("{spinner} {wide_msg}{prefix}")),
        }
        let figures = line(moment, self.items);
        let used = BAR_COLUMNS + 3 + figures.chars().count() + 2;
        let current = names::escaped(&moment.current);
        let current = names::shortened(&current, columns().saturating_sub(used + 1));
        bar.set_message(format!("{figures}  {current}"));
        if self.output.shows_stages() {
            let table = stages_view::table(&moment.stages, moment.elapsed);
            bar.set_prefix(format!("\n{table}"));
        }
        bar.tick();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is well formed")
        .progress_chars("=> ")
}

/// Width of the terminal that the standard error output is.
fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_DEFAULT,
    }
}

/// The counters for a person.
fn line(moment: &Moment, items: Items) -> String {
    let of = |done: String, total: Option<String>| match total {
        Some(total) => format!("{done} of {total}"),
        None => done,
    };
    let bytes = of(
        units::bytes(moment.bytes_done),
        moment.bytes_total.map(units::bytes),
    );
    let noun = match items {
        Items::Files => "files",
        Items::Containers => "containers",
    };
    let count = of(
        units::count(moment.items_done),
        moment.items_total.map(units::count),
    );
    let mut line = format!(
        "{bytes}, {count} {noun}, {}/s",
        units::bytes(moment.per_second as u64)
    );
    if let (Some(left), true) = (moment.left, moment.elapsed > Duration::from_secs(2)) {
        line.push_str(&format!(", {} left", clock(left)));
    }
    if moment.errors > 0 {
        line.push_str(&format!(
            ", {}",
            units::counted(moment.errors, "error", "errors")
        ));
    }
    line
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

/// The counters for a program.
fn event(moment: &Moment, items: Items) -> ProgressEvent {
    let is_files = items == Items::Files;
    ProgressEvent {
        files_done: is_files.then_some(moment.items_done),
        files_total: is_files.then_some(moment.items_total),
        containers_done: (!is_files).then_some(moment.items_done),
        containers_total: (!is_files).then_some(moment.items_total),
        bytes_done: moment.bytes_done,
        bytes_total: moment.bytes_total,
        bytes_new: moment.bytes_new,
        bytes_per_second: moment.per_second,
        seconds: moment.elapsed.as_secs_f64(),
        seconds_left: moment.left.map(|left| left.as_secs_f64()),
        errors: moment.errors,
        stages: StageEvent::of(&moment.stages),
        path: PathText::new(&moment.current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment() -> Moment {
        Moment {
            items_done: 1234,
            items_total: Some(70_000),
            bytes_done: 5 << 20,
            bytes_total: Some(1 << 30),
            bytes_new: 0,
            errors: 1,
            per_second: 1_048_576.0,
            left: Some(Duration::from_secs(3723)),
            elapsed: Duration::from_secs(5),
            current: Vec::new(),
            stages: Vec::new(),
        }
    }

    #[test]
    fn lines_say_what_is_known() {
        assert_eq!(
            line(&moment(), Items::Files),
            "5.0 MiB of 1.0 GiB, 1,234 of 70,000 files, 1.0 MiB/s, 1:02:03 left, 1 error"
        );
        let unknown = Moment {
            items_total: None,
            bytes_total: None,
            left: None,
            errors: 0,
            ..moment()
        };
        assert_eq!(
            line(&unknown, Items::Containers),
            "5.0 MiB, 1,234 containers, 1.0 MiB/s"
        );
    }

    #[test]
    fn the_display_ends_when_the_work_panics() {
        let output = Arc::new(Output::new(false, true, false));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = watch(&output, Items::Files, |_| panic!("expected in this test"));
        }));
        assert!(outcome.is_err());
    }
}
