//! `onefold repair remaps`: remaps again from what containers say of themselves.

use std::time::{Duration, Instant};

use clap::Args;
use repository::files::host_name;
use repository::{RepairRemapsOptions, RepairRemapsReport};

use super::unless_stopped;
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::progress_display::{Items, watch};
use crate::repair_events::RepairRemapsSummary;
use crate::session::Session;
use crate::units;

/// Make remaps again from what containers say of themselves
///
/// Remaps say where chunks lie that a prune has packed anew. Without one that is damaged, nothing can be read with
/// certainty; but the containers themselves say what they hold. No data is read. Places that are gone are dropped. The
/// exit code is 13 if a container can't be read: what it holds is not known then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold repair remaps --dry-run
  onefold repair remaps")]
pub struct RepairRemapsArguments {
    /// Only say what would be done
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub fn run(session: &Session, arguments: &RepairRemapsArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let options = RepairRemapsOptions {
        host: host_name(),
        dry_run: arguments.dry_run,
    };
    let report = watch(&session.output, Items::Containers, |progress| {
        repository.repair_remaps(&options, progress)
    })?;
    let report = unless_stopped(report)?;
    let summary = RepairRemapsSummary {
        remaps: report.remaps,
        damaged: report.damaged,
        places: report.places,
        places_gone: report.places_gone,
        places_found: report.places_found,
        replaced: report.replaced,
        containers_unreadable: report.containers_unreadable,
        is_dry_run: options.dry_run,
        seconds: started.elapsed().as_secs_f64(),
    };
    let event = Event::Summary(Box::new(Summary::RepairRemaps(summary)));
    session.output.event(&event)?;
    let text = text(&report, options.dry_run, started.elapsed());
    session.output.summary(&text)?;
    Ok(match report.containers_unreadable {
        0 => ExitCode::Done,
        _ => ExitCode::Damaged,
    })
}

fn text(report: &RepairRemapsReport, is_dry_run: bool, elapsed: Duration) -> String {
    let counted = units::counted;
    let found = format!(
        "{} there, {} damaged.",
        counted(report.remaps, "remap was", "remaps were"),
        report.damaged
    );
    let mut text = match report.replaced {
        0 => format!("{found} Nothing to do."),
        replaced => format!(
            "{found} {} {} again: {} kept, {} found in containers, {} dropped that are gone, in {}.",
            if is_dry_run { "Would make" } else { "Made" },
            counted(replaced, "remap", "remaps"),
            counted(report.places - report.places_gone, "place", "places"),
            units::count(report.places_found),
            units::count(report.places_gone),
            units::duration(elapsed),
        ),
    };
    if report.containers_unreadable > 0 {
        text.push_str(&format!(
            "\n{} can't be read: what they hold is not known.",
            counted(report.containers_unreadable, "container", "containers"),
        ));
    }
    text
}
