//! `onefold stats`: what a repository holds, and what it costs.

use chunking::structure::Structure;
use clap::Args;
use engine::rewriting::Rewriting;
use repository::config::{Acceleration, Config};
use repository::{KindFilling, Stats};

use crate::events::{Event, StatsSummary, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::{self, unless_interrupted};
use crate::progress_display::{Items, watch};
use crate::session::Session;
use crate::units;

/// Show what the repository holds and what it costs
///
/// The dedup ratio is the bytes of all files in all snapshots over the bytes of the chunks that
/// are stored of them; the reduction is over all that is stored, after compression. Where chunks are
/// stored as deltas to similar ones: DCR is the bytes of all chunks over the same with deltas in their place,
/// DCE what a delta saves of its chunk on average, SCR the chunks stored as deltas over the others.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold stats
  onefold stats --json | jq 'select(.event == \"summary\") | .dedup_ratio'")]
pub struct StatsArguments {}

pub fn run(session: &Session, _arguments: &StatsArguments) -> anyhow::Result<ExitCode> {
    let repository = session.open()?;
    let stats = watch(&session.output, Items::Containers, |progress| {
        repository.stats(progress)
    })?;
    let stats = unless_interrupted(stats, "nothing was counted to the end")?;
    if interrupt::is_requested() {
        return Err(interrupt::interrupted("nothing was counted to the end"));
    }
    let config = repository.config();
    let event = Event::Summary(Box::new(Summary::Stats(Box::new(summary(&stats, config)))));
    session.output.event(&event)?;
    session.output.result(&text(&stats, config))?;
    Ok(if stats.unreadable > 0 {
        ExitCode::Damaged
    } else {
        ExitCode::Done
    })
}

/// A line of the table.
type Row = (&'static str, String);

fn text(stats: &Stats, config: &Config) -> String {
    let mut rows = contents(stats);
    rows.extend(costs(stats));
    rows.push(("Chunker", chunker(config)));
    if config.acceleration != Acceleration::None {
        rows.push(("Acceleration", acceleration(config)));
    }
    if config.structure != Structure::None {
        rows.push(("Structure", config.structure.name().to_owned()));
    }
    if config.rewriting != Rewriting::Off {
        rows.push(("Rewriting", config.rewriting.name().to_owned()));
    }
    if stats.unreadable > 0 {
        rows.push((
            "Unreadable",
            units::counted(stats.unreadable, "object", "objects"),
        ));
    }
    let lines = rows
        .iter()
        .map(|(name, value)| format!("{name:<15}{value}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn containers(number: u64, size: u64) -> String {
    let containers = units::counted(number, "container", "containers");
    format!("{} in {containers}", units::bytes(size))
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn contents(stats: &Stats) -> Vec<Row> {
    let (bytes, count) = (units::bytes, units::count);
    let files = format!("{}, {}", count(stats.files), bytes(stats.logical_bytes));
    let unique = bytes(stats.unique_bytes);
    let mut rows = vec![
        ("Snapshots", count(stats.snapshots)),
        ("Files in them", files),
        (
            "Unique",
            format!("{unique} in {} chunks", count(stats.chunks)),
        ),
    ];
    let deltas = &stats.deltas;
    if deltas.chunks > 0 {
        let shares = format!(
            "{} of it, {} chunks, as {} of deltas, {} deep on average",
            percent(stats.delta_share()),
            count(deltas.chunks),
            bytes(deltas.delta_bytes),
            ratio(deltas.mean_depth()),
        );
        let ratios = format!(
            "DCR {}, DCE {}, SCR {}",
            ratio(stats.delta_compression_ratio()),
            percent(deltas.efficiency()),
            ratio(stats.similar_chunk_ratio()),
        );
        rows.extend([("  similar", shares), ("", ratios)]);
    }
    rows
}

fn costs(stats: &Stats) -> Vec<Row> {
    let bytes = units::bytes;
    let each = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |bytes| format!("{bytes:.1} B"));
    let has_deltas = stats.delta_containers > 0;
    let data = containers(stats.data_containers, stats.data_container_bytes);
    let deltas = containers(stats.delta_containers, stats.delta_container_bytes);
    let pages = containers(stats.metadata_containers, stats.metadata_container_bytes);
    let deltas = has_deltas.then_some(("  deltas", deltas));
    let mut rows = vec![
        ("Stored", bytes(stats.stored_bytes())),
        ("  file data", data),
    ];
    rows.extend(deltas);
    rows.extend([
        ("  directories", pages),
        ("  index", bytes(stats.index_bytes)),
        ("  snapshots", bytes(stats.snapshot_bytes)),
        ("  other", bytes(stats.other_bytes)),
        ("Dedup ratio", ratio(stats.dedup_ratio())),
        ("Reduction", ratio(stats.reduction_ratio())),
        ("Filling ratio", percent(stats.filling_ratio())),
        ("  file data", filling(&stats.data_filling)),
    ]);
    rows.extend(has_deltas.then(|| ("  deltas", filling(&stats.delta_filling))));
    let metadata = format!(
        "{} a chunk, {} a file",
        each(stats.metadata_bytes_per_chunk()),
        each(stats.metadata_bytes_per_file()),
    );
    rows.extend([
        ("  directories", filling(&stats.metadata_filling)),
        ("Metadata", metadata),
    ]);
    rows
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// `97.9 % (98.2 % in 40 whole containers, 61.0 % in 3 smaller ones)`.
fn filling(kind: &KindFilling) -> String {
    let (full, smaller) = (kind.full, kind.smaller);
    let in_full = || {
        let containers = units::counted(full.containers, "whole container", "whole containers");
        format!("{} in {containers}", percent(full.ratio()))
    };
    let in_smaller = || {
        let containers = units::counted(smaller.containers, "smaller one", "smaller ones");
        format!("{} in {containers}", percent(smaller.ratio()))
    };
    let parts = match (full.containers, smaller.containers) {
        (0, 0) => return percent(None),
        (_, 0) => in_full(),
        (0, _) => in_smaller(),
        _ => format!("{}, {}", in_full(), in_smaller()),
    };
    format!("{} ({parts})", percent(kind.ratio()))
}

/// `fastcdc, min 2.0 KiB, avg 8.0 KiB, max 64.0 KiB`.
fn chunker(config: &Config) -> String {
    let chunker = &config.chunker;
    let [min, avg, max] = [chunker.min_bytes, chunker.avg_bytes, chunker.max_bytes]
        .map(|bytes| units::bytes(u64::from(bytes)));
    format!("{}, min {min}, avg {avg}, max {max}", chunker.algorithm)
}

/// Its name, and the size of segments.
fn acceleration(config: &Config) -> String {
    match config.acceleration {
        Acceleration::Segments { segment_bytes, .. } => format!(
            "{}, {} each",
            config.acceleration,
            units::bytes(u64::from(segment_bytes))
        ),
        other => other.to_string(),
    }
}

fn summary(stats: &Stats, config: &Config) -> StatsSummary {
    StatsSummary {
        chunker: config.chunker.algorithm.name(),
        acceleration: config.acceleration.to_string(),
        segment_bytes: match config.acceleration {
            Acceleration::Segments { segment_bytes, .. } => Some(segment_bytes),
            _ => None,
        },
        structure: config.structure.name(),
        snapshots: stats.snapshots,
        files: stats.files,
        other_entries: stats.other_entries,
        bytes: stats.logical_bytes,
        bytes_unique: stats.unique_bytes,
        bytes_stored: stats.stored_bytes(),
        dedup_ratio: stats.dedup_ratio(),
        reduction_ratio: stats.reduction_ratio(),
        chunks: stats.chunks,
        pages: stats.pages,
        data_containers: stats.data_containers,
        data_containers_bytes: stats.data_container_bytes,
        delta_containers: stats.delta_containers,
        delta_containers_bytes: stats.delta_container_bytes,
        delta_chunks: stats.deltas.chunks,
        delta_chunks_bytes: stats.deltas.chunk_bytes,
        delta_bytes: stats.deltas.delta_bytes,
        delta_share: stats.delta_share(),
        delta_compression_ratio: stats.delta_compression_ratio(),
        delta_compression_efficiency: stats.deltas.efficiency(),
        similar_chunk_ratio: stats.similar_chunk_ratio(),
        delta_depth: stats.deltas.mean_depth(),
        metadata_containers: stats.metadata_containers,
        metadata_containers_bytes: stats.metadata_container_bytes,
        index_bytes: stats.index_bytes,
        snapshots_bytes: stats.snapshot_bytes,
        other_bytes: stats.other_bytes,
        filling_ratio: stats.filling_ratio(),
        data_filling_ratio: stats.data_filling.ratio(),
        data_whole_containers: stats.data_filling.full.containers,
        data_whole_filling_ratio: stats.data_filling.full.ratio(),
        data_smaller_filling_ratio: stats.data_filling.smaller.ratio(),
        delta_filling_ratio: stats.delta_filling.ratio(),
        delta_whole_containers: stats.delta_filling.full.containers,
        delta_whole_filling_ratio: stats.delta_filling.full.ratio(),
        delta_smaller_filling_ratio: stats.delta_filling.smaller.ratio(),
        metadata_filling_ratio: stats.metadata_filling.ratio(),
        metadata_whole_containers: stats.metadata_filling.full.containers,
        metadata_whole_filling_ratio: stats.metadata_filling.full.ratio(),
        metadata_smaller_filling_ratio: stats.metadata_filling.smaller.ratio(),
        metadata_per_chunk_bytes: stats.metadata_bytes_per_chunk(),
        metadata_per_file_bytes: stats.metadata_bytes_per_file(),
        rewriting: config.rewriting.name(),
        unreadable: stats.unreadable,
    }
}
