//! What the stages of an operation are doing, for people and for programs.
//!
//! Enters: reports of the stages and the time since the operation began. Leaves: a table (live
//! below the bar, and at the end), a short line where there is no terminal, or JSON.

use std::time::Duration;

use engine::pipeline::{StageReport, bottleneck};
use serde::Serialize;

use crate::units;

/// A stage in JSON: `seconds_*` are sums over its threads.
#[derive(Debug, Serialize)]
pub struct StageEvent {
    stage: &'static str,
    threads: usize,
    seconds_busy: f64,
    seconds_starved: f64,
    seconds_blocked: f64,
    items: u64,
    bytes: u64,
    queued_items: u64,
    queued_bytes: u64,
    queued_bytes_max: u64,
}

impl StageEvent {
    /// The events of these reports.
    pub fn of(reports: &[StageReport]) -> Vec<Self> {
        let event = |report: &StageReport| Self {
            stage: report.stage.name(),
            threads: report.threads,
            seconds_busy: report.busy.as_secs_f64(),
            seconds_starved: report.starved.as_secs_f64(),
            seconds_blocked: report.blocked.as_secs_f64(),
            items: report.items,
            bytes: report.bytes,
            queued_items: report.queued_items,
            queued_bytes: report.queued_bytes,
            queued_bytes_max: report.queued_bytes_max,
        };
        reports.iter().map(event).collect()
    }
}

/// The name of the stage that bounds the whole.
pub fn bottleneck_name(reports: &[StageReport]) -> Option<&'static str> {
    bottleneck(reports).map(|(stage, _)| stage.name())
}

/// Share of the time that a stage's threads were busy.
fn busy_percent(report: &StageReport, elapsed: Duration) -> f64 {
    100.0 * report.busy_a_thread().as_secs_f64() / elapsed.as_secs_f64().max(1e-9)
}

/// Bytes a second of a thread at work; nothing for stages that count no bytes.
fn speed(report: &StageReport) -> String {
    if report.bytes == 0 || report.busy.is_zero() {
        return "–".to_owned();
    }
    let speed = report.bytes as f64 / report.busy.as_secs_f64();
    format!("{}/s", units::bytes(speed as u64))
}

/// A table with a row a stage, and a line that names the bottleneck.
pub fn table(reports: &[StageReport], elapsed: Duration) -> String {
    let mut lines = vec![format!(
        "{:<12}{:>8}{:>10}{:>6}{:>10}{:>10}{:>11}{:>11}{:>11}{:>13}",
        "stage", "threads", "busy", "%", "starved", "blocked", "queue", "most", "bytes", "a thread"
    )];
    for report in reports {
        lines.push(format!(
            "{:<12}{:>8}{:>10}{:>6.0}{:>10}{:>10}{:>11}{:>11}{:>11}{:>13}",
            report.stage.name(),
            report.threads,
            units::duration(report.busy),
            busy_percent(report, elapsed),
            units::duration(report.starved),
            units::duration(report.blocked),
            units::bytes(report.queued_bytes),
            units::bytes(report.queued_bytes_max),
            units::bytes(report.bytes),
            speed(report),
        ));
    }
    if let Some((stage, busy)) = bottleneck(reports) {
        lines.push(format!(
            "Bottleneck: {} (its threads had {} of work each in {})",
            stage.name(),
            units::duration(busy),
            units::duration(elapsed),
        ));
    }
    lines.join("\n")
}

/// How busy each stage is, in one line.
pub fn line(reports: &[StageReport], elapsed: Duration) -> String {
    let stages = reports.iter().map(|report| {
        let percent = busy_percent(report, elapsed);
        format!("{} {percent:.0} %", report.stage.name())
    });
    let stages: Vec<String> = stages.collect();
    format!("Busy: {}", stages.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::pipeline::{Stage, Stages};

    fn reports() -> Vec<StageReport> {
        let stages = Stages::default();
        let read = stages.meter(Stage::Read);
        read.set_threads(2);
        read.worked(Duration::from_secs(2), 1 << 30);
        let compress = stages.meter(Stage::Compress);
        compress.set_threads(4);
        compress.worked(Duration::from_secs(12), 3 << 30);
        compress.queue(1 << 20);
        stages.reports()
    }

    #[test]
    fn the_table_names_the_bottleneck() {
        let table = table(&reports(), Duration::from_secs(4));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4);
        let row: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(row[..5], ["read", "2", "2.00", "s", "25"]);
        let width = |line: &str| line.chars().count();
        assert_eq!(width(lines[0]), width(lines[1]));
        assert_eq!(width(lines[0]), width(lines[2]));
        assert_eq!(
            lines[3],
            "Bottleneck: compress (its threads had 3.00 s of work each in 4.00 s)"
        );
    }

    #[test]
    fn a_line_says_how_busy_each_is() {
        let line = line(&reports(), Duration::from_secs(4));
        assert_eq!(line, "Busy: read 25 %, compress 75 %");
        assert_eq!(bottleneck_name(&reports()), Some("compress"));
        assert_eq!(bottleneck_name(&[]), None);
    }
}
