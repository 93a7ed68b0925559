//! Changes of snapshots (tags, protection): what the verbs that make them share.

use std::collections::BTreeSet;

use repository::snapshot::{Snapshot, SnapshotChange, SnapshotFilter, SnapshotSpec};

use crate::events::{ChangeSummary, Event, Summary};
use crate::exit_code::ExitCode;
use crate::names;
use crate::session::Session;
use crate::units;

/// Changes each snapshot that is named, once, and says so. All of them are found before the first is
/// changed.
pub fn change(
    session: &Session,
    specs: &[SnapshotSpec],
    filter: &SnapshotFilter,
    change: &SnapshotChange,
    summary: impl FnOnce(ChangeSummary) -> Summary,
) -> anyhow::Result<ExitCode> {
    let repository = session.open()?;
    let list = repository.snapshots()?;
    session.tell_unreadable(&list);
    let mut seen = BTreeSet::new();
    let mut named = Vec::new();
    for spec in specs {
        let snapshot = list.find(spec, filter)?;
        if seen.insert(snapshot.id) {
            named.push(snapshot);
        }
    }
    let mut counts = ChangeSummary::default();
    for snapshot in named {
        match repository.change_snapshot(snapshot, change)? {
            Some(changed) => {
                counts.changed += 1;
                tell(session, snapshot, &changed)?;
            }
            None => counts.unchanged += 1,
        }
    }
    repository.delete_replaced(&list)?;
    session
        .output
        .event(&Event::Summary(Box::new(summary(counts))))?;
    let mut text = format!(
        "Changed {}",
        units::counted(counts.changed, "snapshot", "snapshots")
    );
    if counts.unchanged > 0 {
        text.push_str(&format!("; {} like that before", were(counts.unchanged)));
    }
    session.output.summary(&format!("{text}."))?;
    Ok(ExitCode::Done)
}

fn were(count: u64) -> String {
    units::counted(count, "was", "were")
}

fn tell(session: &Session, before: &Snapshot, changed: &Snapshot) -> anyhow::Result<()> {
    session.output.event(&Event::Changed {
        before: before.id.to_string(),
        snapshot: changed.id.to_string(),
        tags: changed.tags.clone(),
        is_protected: changed.is_protected,
    })?;
    let tags: Vec<String> = changed
        .tags
        .iter()
        .map(|tag| names::escaped(tag.as_bytes()))
        .collect();
    session.output.summary(&format!(
        "{} is now {}: {}{}",
        before.id.short(),
        changed.id.short(),
        match tags.len() {
            0 => "no tags".to_owned(),
            _ => format!("tags {}", tags.join(", ")),
        },
        if changed.is_protected {
            ", protected"
        } else {
            ""
        },
    ))?;
    Ok(())
}
