//! Figs. 10, 12 and 13: whole systems with segments and chunks of several sizes, cut by Rabin's hash.

use std::cell::RefCell;

use chunking::segments::Segments;
use chunking::{Algorithm, Chunker};

use super::experiments::{self, BASELINE, WITH, WITHOUT};
use super::whole::{Bench, GAIN, THROUGHPUT, computing_ways, free_cores, way};
use super::{published, system};
use crate::paper::Results;
use crate::paper::dedup::{self, Dedup};
use crate::paper::figure::SAVED;
use crate::paper::timing::alternate;
use crate::progress::Progress;

/// Segments of Figs. 12 and 13 (§4.2).
const SEGMENT: u32 = 1 << 20;
/// Expected chunks of Figs. 12 and 13: the text names none but 8 KiB. The least is a quarter, the
/// greatest eight times that, as with 8 KiB.
const CHUNKS: [u32; 5] = [2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10];

/// Fig. 10: segments of several sizes, Rabin, 4 + 4 threads.
pub fn over_segments(
    bench: Bench<'_>,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = bench.set.files();
    let chunker = experiments::chunker(Algorithm::Rabin)?;
    let setup = bench.setup(&chunker);
    let mut cutters = Vec::new();
    for bytes in experiments::SEGMENTS {
        for has_jointing in [false, true] {
            cutters.push(experiments::segments(&chunker, bytes, has_jointing)?);
        }
    }
    let kept = RefCell::default();
    let mut ways = vec![way(BASELINE, setup, system::Way::Baseline, &files, &kept)];
    for segments in &cutters {
        let how = system::Way::PDedupe(segments, published::SPLIT);
        ways.push(way("segments", setup, how, &files, &kept));
    }
    ways.extend(computing_ways(bench.plan));
    let seconds = alternate(bench.plan.runs, bench.set.bytes(), &mut ways, progress)?;
    let speed = |seconds: f64| bench.set.bytes() as f64 / seconds;
    for (segments, &took) in cutters.iter().zip(&seconds[1..]) {
        let x = Some(segments.segment_bytes() as f64);
        if !segments.has_jointing() {
            let baseline = (
                THROUGHPUT,
                speed(seconds[0]),
                Some(published::BASELINE_SPEED),
            );
            bench.add(results, ("fig10", BASELINE), x, baseline);
        }
        let approach = [WITHOUT, WITH][usize::from(segments.has_jointing())];
        for (metric, ours) in [(THROUGHPUT, speed(took)), (GAIN, seconds[0] / took)] {
            bench.add(results, ("fig10", approach), x, (metric, ours, None));
        }
    }
    bench.add_free_cores(results, "fig10", free_cores(bench.plan, &seconds));
    Ok(())
}

/// Rabin with chunks of another size, and segments of 1 MiB, left and joined.
fn of_chunks(avg_bytes: u32) -> anyhow::Result<(Chunker, [Segments; 2])> {
    let chunker = experiments::chunker_of(Algorithm::Rabin, avg_bytes)?;
    let left = experiments::segments(&chunker, SEGMENT, false)?;
    let joined = experiments::segments(&chunker, SEGMENT, true)?;
    Ok((chunker, [left, joined]))
}

/// Fig. 12.
pub fn ratios_over_chunks(
    bench: Bench<'_>,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = bench.set.files();
    let count = bench.plan.threads;
    progress.expect(3 * CHUNKS.len() as u64 * bench.set.bytes());
    for avg_bytes in CHUNKS {
        crate::interrupt::check()?;
        let (chunker, both) = of_chunks(avg_bytes)?;
        let mut cuts = vec![(BASELINE, dedup::cut(&chunker, &files, count))];
        for (approach, segments) in [WITHOUT, WITH].into_iter().zip(&both) {
            cuts.push((approach, experiments::cut(segments, &files, count).0));
        }
        for (approach, cuts) in &cuts {
            let saved = Dedup::of(&files, cuts, count).saved_percent();
            let x = Some(f64::from(avg_bytes));
            bench.add(results, ("fig12", approach), x, (SAVED, saved, None));
            progress.advance(bench.set.bytes(), approach);
        }
    }
    Ok(())
}

/// Fig. 13.
pub fn over_chunks(
    bench: Bench<'_>,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = bench.set.files();
    let mut cutters = Vec::new();
    for avg_bytes in CHUNKS {
        cutters.push(of_chunks(avg_bytes)?);
    }
    let kept = RefCell::default();
    let mut ways = Vec::new();
    for (chunker, both) in &cutters {
        let setup = bench.setup(chunker);
        ways.push(way(BASELINE, setup, system::Way::Baseline, &files, &kept));
        for segments in both {
            let how = system::Way::PDedupe(segments, published::SPLIT);
            ways.push(way("segments", setup, how, &files, &kept));
        }
    }
    ways.extend(computing_ways(bench.plan));
    let seconds = alternate(bench.plan.runs, bench.set.bytes(), &mut ways, progress)?;
    for (avg_bytes, of_size) in CHUNKS.into_iter().zip(seconds.chunks(3)) {
        let x = Some(f64::from(avg_bytes));
        for (approach, took) in [BASELINE, WITHOUT, WITH].into_iter().zip(of_size) {
            let speed = bench.set.bytes() as f64 / took;
            bench.add(results, ("fig13", approach), x, (THROUGHPUT, speed, None));
            let speed_up = of_size[0] / took;
            bench.add(results, ("fig13", approach), x, (GAIN, speed_up, None));
        }
    }
    bench.add_free_cores(results, "fig13", free_cores(bench.plan, &seconds));
    Ok(())
}
