//! `onefold volume stat`.

use clap::Args;
use serde_json::{Map, Value};
use volume::control::Status;
use volume::{Counters, Usage, VolumeSettings};

use super::{Access, Place, of};
use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::session::Session;
use crate::units;

/// Show how full a volume is, what it saves, and what it wrote
///
/// Write amplification is what was written to the store over what clients wrote, since the volume was made:
/// data, and metadata, which is windows that found no room in data, pages of tables, and superblocks.
#[derive(Debug, Args)]
pub struct StatArguments {
    #[command(flatten)]
    place: Place,
}

pub fn run(session: &Session, arguments: &StatArguments) -> anyhow::Result<ExitCode> {
    let mut volume = Access::to(session, &arguments.place, false)?;
    let Status {
        settings,
        usage,
        counters,
        journal,
        journal_problem: problem,
        generations,
        ..
    } = of(&arguments.place.path, volume.status())?;
    let mapped = usage.mapped_blocks;
    session
        .output
        .event(&Event::Summary(Box::new(Summary::VolumeStat {
            volume: arguments.place.path.display().to_string(),
            size_bytes: settings.size_bytes,
            policy: settings.policy.name(),
            persistence: settings.persistence.name(),
            fingerprint: settings.fingerprint.name(),
            mapped_bytes: mapped * 4096,
            stored_bytes: usage.data_blocks * 4096,
            metadata_bytes: usage.page_blocks * 4096,
            backing_bytes: usage.physical_blocks * 4096,
            dedup_ratio: ratio(mapped, usage.data_blocks),
            write_amplification: ratio(counters.blocks_written(), counters.user_blocks_written),
            compressed_zone_share: ratio(
                usage.compressed_zones,
                usage.compressed_zones + usage.data_zones,
            ),
            memory_bytes: usage.memory_bytes,
            generations,
            journal: journal.to_string(),
            counters: self::counters(&counters),
        })))?;
    let mut rows = contents(&settings, &usage, mapped);
    rows.extend(writes(&counters));
    if settings.policy.has_journal() {
        let blocks = match problem {
            Some(problem) => problem,
            None if journal.is_empty() => "none found".to_owned(),
            None => format!(
                "{} in blocks {journal}",
                units::bytes(journal.blocks() * 4096)
            ),
        };
        rows.push(("Journal", blocks));
    }
    rows.push(("Memory", units::bytes(usage.memory_bytes)));
    rows.push(("Generations", units::count(generations)));
    let lines = rows
        .iter()
        .map(|(name, value)| format!("{name:<22}{value}"));
    session
        .output
        .result(&lines.collect::<Vec<_>>().join("\n"))?;
    Ok(ExitCode::Done)
}

/// All counters by name.
pub fn counters(counters: &Counters) -> Map<String, Value> {
    let values = counters.values().into_iter().map(Value::from);
    Counters::NAMES
        .iter()
        .map(ToString::to_string)
        .zip(values)
        .collect()
}

fn ratio(of: u64, over: u64) -> Option<f64> {
    (over > 0).then(|| of as f64 / over as f64)
}

fn shown(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

type Row = (&'static str, String);

fn contents(settings: &VolumeSettings, usage: &Usage, mapped: u64) -> Vec<Row> {
    let bytes = |blocks: u64| units::bytes(blocks * 4096);
    let zones = usage.compressed_zones + usage.data_zones;
    vec![
        ("Disk", units::bytes(settings.size_bytes)),
        (
            "Policy",
            format!(
                "{}, persistence {}, fingerprints {}",
                settings.policy.name(),
                settings.persistence.name(),
                settings.fingerprint.name()
            ),
        ),
        ("In use", bytes(mapped)),
        (
            "Stored",
            format!(
                "{}, and {} of tables",
                bytes(usage.data_blocks),
                bytes(usage.page_blocks)
            ),
        ),
        (
            "Room",
            format!(
                "{}, {} free",
                bytes(usage.physical_blocks),
                units::counted(usage.free_zones, "zone", "zones")
            ),
        ),
        ("Dedup ratio", shown(ratio(mapped, usage.data_blocks))),
        (
            "Compressed zones",
            format!(
                "{} of {}, {} uncommitted",
                usage.compressed_zones, zones, usage.uncommitted_zones
            ),
        ),
    ]
}

fn writes(counters: &Counters) -> Vec<Row> {
    let user = counters.user_blocks_written;
    let share = |blocks: u64| {
        format!(
            "{} blocks, {} a block written",
            units::count(blocks),
            shown(ratio(blocks, user))
        )
    };
    let metadata = counters.metadata_blocks_written();
    vec![
        (
            "Written by clients",
            format!("{} blocks", units::count(user)),
        ),
        (
            "Write amplification",
            shown(ratio(counters.blocks_written(), user)),
        ),
        ("  data", share(counters.data_blocks_written)),
        ("  metadata", share(metadata)),
        (
            "    of windows",
            units::count(counters.window_metadata_blocks_written),
        ),
        ("    pages", units::count(counters.page_blocks_written)),
        (
            "    superblocks",
            units::count(counters.superblocks_written),
        ),
        ("  saved: duplicates", units::count(counters.duplicate_hits)),
        ("  saved: journal", units::count(counters.journal_hits)),
        ("Flushes of the store", units::count(counters.syncs)),
        (
            "Windows",
            format!(
                "{}, {} commits",
                units::count(counters.windows),
                units::count(counters.commits)
            ),
        ),
    ]
}
