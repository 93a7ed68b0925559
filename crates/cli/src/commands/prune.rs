//! `onefold prune`: deletes what no snapshot needs.

use std::time::Duration;

use clap::Args;
use repository::files::host_name;
use repository::prune::{PruneError, PruneOptions, PruneReport};

use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::interrupted;
use crate::progress_display::{Items, watch};
use crate::session::Session;
use crate::units;

/// Delete what no snapshot needs
///
/// Others may back up and restore meanwhile. Containers without anything that a snapshot needs go; of those that
/// are partly needed, as many are packed anew as it takes to keep to --max-unused. What goes is condemned first, and
/// deleted when nobody is at work any more who may have looked before; if somebody is, the next prune deletes it.
/// It may be stopped, or die, at any moment: nothing is lost, and the next one goes on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold forget --keep-daily 7 --keep-weekly 5 --keep-monthly 12 && onefold prune
  onefold prune --dry-run
  onefold prune --max-unused 0            pack everything that is partly needed
  onefold prune --max-repack 10GiB        no more than that this time")]
pub struct PruneArguments {
    /// Delete nothing, and say what would be deleted
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// How much of what is stored may be unneeded, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = parse_percent)]
    max_unused: u32,

    /// Pack containers of so many bytes anew at most [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    max_repack: Option<u64>,

    /// Take a client for dead that showed no sign of life for so many hours; its backup then fails
    #[arg(long, value_name = "HOURS", default_value = "24", value_parser = clap::value_parser!(u64).range(1..=8760))]
    dead_after: u64,
}

/// A percentage as thousandths.
fn parse_percent(text: &str) -> Result<u32, String> {
    let text = text.strip_suffix('%').unwrap_or(text);
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok((percent * 10.0).round() as u32),
        _ => Err("a number from 0 to 100 is needed".to_owned()),
    }
}

pub fn run(session: &Session, arguments: &PruneArguments) -> anyhow::Result<ExitCode> {
    let repository = session.open()?;
    let options = PruneOptions {
        host: host_name(),
        unused_max_thousandths: arguments.max_unused,
        repack_bytes_max: arguments.max_repack.unwrap_or(u64::MAX),
        dead_after: Duration::from_secs(arguments.dead_after * 3600),
        dry_run: arguments.dry_run,
    };
    let outcome = watch(&session.output, Items::Containers, |progress| {
        repository.prune(&options, progress)
    })?;
    let report = match outcome {
        Err(PruneError::Interrupted) => {
            return Err(interrupted(
                "nothing is lost; the next prune goes on from there",
            ));
        }
        outcome => outcome?,
    };
    tell(session, &report, options.dry_run)?;
    Ok(ExitCode::Done)
}

fn tell(session: &Session, report: &PruneReport, is_dry_run: bool) -> anyhow::Result<()> {
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Prune {
            is_dry_run,
            snapshots: report.snapshots,
            chunks_needed: report.chunks_needed,
            mark_seconds: report.mark_time.as_secs_f64(),
            mark_bytes: report.mark_bytes,
            containers: report.objects,
            bytes: report.bytes,
            bytes_unneeded: report.bytes_unneeded,
            containers_unneeded: report.objects_unneeded,
            containers_packed: report.objects_packed,
            bytes_packed: report.bytes_packed,
            bytes_written: report.bytes_written,
            containers_deleted: report.objects_deleted,
            bytes_deleted: report.bytes_deleted,
            containers_waiting: report.objects_waiting,
            waiting_for: report
                .waiting_for
                .iter()
                .map(|run| run.id.to_string())
                .collect(),
            chunks_rescued: report.chunks_rescued,
            chunks_repeated: report.chunks_repeated,
            chunks_merged: report.chunks_merged,
            expired: report
                .expired
                .iter()
                .map(|run| run.id.to_string())
                .collect(),
        })))?;
    let containers = |count| units::counted(count, "container", "containers");
    let mut lines = vec![
        format!(
            "Needed:   {} by {}",
            units::counted(report.chunks_needed, "chunk", "chunks"),
            units::counted(report.snapshots, "snapshot", "snapshots"),
        ),
        format!(
            "Unneeded: {} of {}: {} whole, {} to be packed",
            units::bytes(report.bytes_unneeded),
            units::bytes(report.bytes),
            containers(report.objects_unneeded),
            containers(report.objects_packed),
        ),
    ];
    if report.chunks_repeated > 0 {
        lines.push(format!(
            "Repeated: {} that several clients stored at the same time",
            units::counted(report.chunks_repeated, "chunk", "chunks"),
        ));
    }
    if is_dry_run {
        lines.push("Nothing was deleted: this was a dry run".to_owned());
    } else {
        if report.objects_packed > 0 {
            lines.push(format!(
                "Packed:   {} into {}",
                units::bytes(report.bytes_packed),
                units::bytes(report.bytes_written),
            ));
        }
        lines.push(format!(
            "Deleted:  {} in {}",
            units::bytes(report.bytes_deleted),
            containers(report.objects_deleted),
        ));
    }
    for run in &report.expired {
        lines.push(format!(
            "Taken for dead: a {} on {} (run {})",
            run.kind.name(),
            run.host,
            run.id.short()
        ));
    }
    if report.objects_waiting > 0 {
        lines.push(format!(
            "Waiting:  {} go with a later prune",
            containers(report.objects_waiting)
        ));
    }
    for run in &report.waiting_for {
        lines.push(format!(
            "          when the {} on {} has ended (run {})",
            run.kind.name(),
            run.host,
            run.id.short()
        ));
    }
    session.output.summary(&lines.join("\n"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse_percent;

    #[test]
    fn percentages_are_read() {
        assert_eq!(parse_percent("5"), Ok(50));
        assert_eq!(parse_percent("0.5%"), Ok(5));
        assert_eq!(parse_percent("100"), Ok(1000));
        for wrong in ["", "-1", "101", "x", "NaN"] {
            assert!(parse_percent(wrong).is_err(), "{wrong}");
        }
    }
}
