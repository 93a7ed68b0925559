//! `onefold check`: is everything that snapshots name there, and is it what was stored?

use std::time::{Duration, Instant};

use clap::Args;
use engine::object::ObjectId;
use repository::{CheckLevel, CheckReport, Sample, SampleSize};

use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::{self, unless_interrupted};
use crate::progress_display::{Items, watch};
use crate::session::Session;
use crate::units;

/// Check that everything is there and undamaged
///
/// Reads snapshots, directories, the index and the metadata of all containers, and makes sure that
/// every file could be put together. With --read-data, reads and verifies all bytes of all files
/// as well, which takes as long as restoring everything; with --read-data-sample, a part of them, spread over all
/// containers. Others may go on working. The exit code is 13 if anything is wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold check
  onefold check --read-data
  onefold check --read-data-sample 5%              another 5 % each time
  onefold check --read-data-sample 20GiB
  onefold check --read-data-sample $(date +%u)/7   all data in a week, a part every day")]
pub struct CheckArguments {
    /// Read and verify all data, not only the structure
    #[arg(long)]
    read_data: bool,

    /// Read and verify a part of the data: a percentage, a size, or one of several parts, such as 3/7
    #[arg(long, value_name = "PART", conflicts_with = "read_data", value_parser = parse_sample)]
    read_data_sample: Option<SampleSize>,

    /// Which part: the same number chooses the same again [default: another each time; with parts such as 3/7, 0]
    #[arg(long, value_name = "NUMBER", requires = "read_data_sample")]
    seed: Option<u32>,
}

/// Reads `5%`, `10GiB`, `3/7`.
fn parse_sample(text: &str) -> Result<SampleSize, String> {
    let wanted = || "a percentage (5%), a size (10GiB) or a part (3/7) is wanted".to_owned();
    if let Some(percent) = text.strip_suffix('%') {
        return match percent.trim().parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => {
                let millionths = (percent * 10_000.0).round().max(1.0);
                Ok(SampleSize::Millionths(millionths as u32))
            }
            _ => Err("a percentage is more than 0 and at most 100".to_owned()),
        };
    }
    if let Some((part, of)) = text.split_once('/') {
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wanted());
        let (part, of) = (number(part)?, number(of)?);
        return match (1..=of).contains(&part) {
            true => Ok(SampleSize::Part { part, of }),
            false => Err(format!("of {of} parts there is no part {part}")),
        };
    }
    match units::parse_bytes(text) {
        Ok(0) | Err(_) => Err(wanted()),
        Ok(bytes) => Ok(SampleSize::Bytes(bytes)),
    }
}

impl CheckArguments {
    fn level(&self) -> CheckLevel {
        match (self.read_data, self.read_data_sample) {
            (true, _) => CheckLevel::Data,
            (false, None) => CheckLevel::Structure,
            (false, Some(size)) => {
                let seed = self.seed.unwrap_or_else(|| match size {
                    SampleSize::Part { .. } => 0,
                    _ => random(),
                });
                CheckLevel::Sample(Sample { size, seed })
            }
        }
    }
}

/// A number that nobody has drawn before, as likely as not.
fn random() -> u32 {
    let ObjectId(bytes) = ObjectId::random();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn sample_text(size: SampleSize) -> String {
    match size {
        SampleSize::Millionths(millionths) => format!("{}%", f64::from(millionths) / 10_000.0),
        SampleSize::Bytes(bytes) => bytes.to_string(),
        SampleSize::Part { part, of } => format!("{part}/{of}"),
    }
}

pub fn run(session: &Session, arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let level = arguments.level();
    let report = watch(&session.output, Items::Containers, |progress| {
        repository.check(level, progress)
    })?;
    let rest = "the check is not complete";
    let report = unless_interrupted(report, rest)?;
    if interrupt::is_requested() {
        return Err(interrupt::interrupted(rest));
    }
    tell(session, &report, level, started.elapsed())?;
    Ok(if report.problem_count > 0 {
        ExitCode::Damaged
    } else {
        ExitCode::Done
    })
}

fn tell(
    session: &Session,
    report: &CheckReport,
    level: CheckLevel,
    elapsed: Duration,
) -> anyhow::Result<()> {
    let sample = match level {
        CheckLevel::Sample(sample) => Some(sample),
        _ => None,
    };
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Check {
            problems: report.problem_count,
            losses: report.losses,
            snapshots: report.snapshots,
            files: report.files,
            containers: report.containers,
            chunks: report.chunks,
            containers_bytes: report.containers_bytes,
            bytes_verified: report.bytes_verified,
            groups_verified: sample.map(|_| report.groups_verified),
            is_data_read: level == CheckLevel::Data,
            sample: sample.map(|sample| sample_text(sample.size)),
            seed: sample.map(|sample| sample.seed),
            seconds: elapsed.as_secs_f64(),
        })))?;
    session.output.summary(&text(report, level, elapsed))?;
    Ok(())
}

fn text(report: &CheckReport, level: CheckLevel, elapsed: Duration) -> String {
    let counted = units::counted;
    let mut text = format!(
        "Checked {}, {}, {} with {} in {}",
        counted(report.snapshots, "snapshot", "snapshots"),
        counted(report.files, "file", "files"),
        counted(report.containers, "container", "containers"),
        counted(report.chunks, "chunk", "chunks"),
        units::duration(elapsed),
    );
    text.push_str(&match level {
        CheckLevel::Data => format!(
            "; read and verified {}\n",
            units::bytes(report.bytes_verified)
        ),
        CheckLevel::Structure => {
            " (structure only: --read-data reads the data as well)\n".to_owned()
        }
        CheckLevel::Sample(sample) => format!(
            "; read and verified {} of {}: {} ({}, --seed {})\n",
            units::bytes(report.bytes_verified),
            units::bytes(report.containers_bytes),
            counted(report.groups_verified, "group", "groups"),
            match sample.size {
                SampleSize::Bytes(bytes) => format!("about {}", units::bytes(bytes)),
                SampleSize::Millionths(_) => format!("about {}", sample_text(sample.size)),
                SampleSize::Part { part, of } => format!("part {part} of {of}"),
            },
            sample.seed,
        ),
    });
    text.push_str(&match (report.problem_count, report.losses) {
        (0, _) => "No problems were found.".to_owned(),
        (problems, 0) => format!(
            "{} found; nothing is lost.",
            counted(problems, "problem", "problems")
        ),
        (problems, losses) => format!(
            "{} found, {} of them with a loss of data.",
            counted(problems, "problem", "problems"),
            units::count(losses),
        ),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read() {
        assert_eq!(parse_sample("5%"), Ok(SampleSize::Millionths(50_000)));
        assert_eq!(parse_sample("0.5 %"), Ok(SampleSize::Millionths(5_000)));
        assert_eq!(parse_sample("100%"), Ok(SampleSize::Millionths(1_000_000)));
        assert_eq!(parse_sample("10GiB"), Ok(SampleSize::Bytes(10 << 30)));
        assert_eq!(parse_sample("3/7"), Ok(SampleSize::Part { part: 3, of: 7 }));
        for wrong in [
            "", "0%", "101%", "-1%", "NaN%", "0/7", "8/7", "1/0", "0", "x", "1/2/3",
        ] {
            assert!(parse_sample(wrong).is_err(), "{wrong}");
        }
    }
}
