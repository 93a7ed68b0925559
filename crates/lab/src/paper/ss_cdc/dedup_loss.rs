//! What segments that are cut each by itself cost in dedup ratio: Figs. 2.1, 2.9 and 2.10.

use chunking::Algorithm;

use super::SIZES;
use super::forms::{Form, sequential, sized};
use super::published;
use crate::interrupt;
use crate::paper::dedup::{self, Dedup};
use crate::paper::figure::{Figure, RATIO, REDUCTION};
use crate::paper::loaded::LoadedSet;
use crate::paper::{Plan, Results};
use crate::progress::Progress;
use chunking::{Chunker, Rolling};

/// Segments as they are.
pub const SFSS: &str = "SFSS";
/// Segments joined at their borders.
pub const JOINED: &str = "P-Dedupe, joined";
/// What both are compared with.
const SEQUENTIAL: &str = "sequential and SS-CDC";

/// The paper's size of segments.
const SEGMENT_BYTES: usize = 1 << 20;
/// Sizes of segments of Fig. 2.9.
const SEGMENTS: [usize; 4] = [512 << 10, 1 << 20, 2 << 20, 4 << 20];
/// The sizes of Fig. 2.1: those of Data Domain.
const DATA_DOMAIN: [u32; 3] = [4 << 10, 8 << 10, 12 << 10];
/// What varies in Fig. 2.10: its name, its place among the sizes, its values.
const VARIED: [(&str, usize, [u32; 4]); 3] = [
    ("least size", 0, [1 << 10, 2 << 10, 4 << 10, 8 << 10]),
    ("expected size", 1, [4 << 10, 8 << 10, 16 << 10, 32 << 10]),
    (
        "greatest size",
        2,
        [32 << 10, 64 << 10, 128 << 10, 256 << 10],
    ),
];

/// Runs what is wanted on one data set.
pub fn on_set(
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut loss = Loss {
        files: &set.files(),
        plan,
        progress,
    };
    let name = set.name.as_str();
    if plan.has("fig2.1") {
        let (all, segments) = loss.of(DATA_DOMAIN, SEGMENT_BYTES, false)?;
        let figure = |approach, metric| Figure::new("fig2.1", name, approach, metric);
        let figures = &mut results.figures;
        figures.push(figure(SEQUENTIAL, RATIO).with(all.ratio(), None));
        figures.push(figure(SFSS, RATIO).with(segments.ratio(), None));
        let reduction = segments.reduction_percent(&all);
        figures.push(figure(SFSS, REDUCTION).with(reduction, None));
    }
    if plan.has("fig2.9") {
        for segment_bytes in SEGMENTS {
            for (approach, is_joined) in [(SFSS, false), (JOINED, true)] {
                let (all, segments) = loss.of(SIZES, segment_bytes, is_joined)?;
                let paper = published::reduction_percent(name, segment_bytes);
                let figure = Figure::new("fig2.9", name, approach, REDUCTION);
                results.figures.push(figure.at(segment_bytes as f64).with(
                    segments.reduction_percent(&all),
                    paper.filter(|_| !is_joined),
                ));
            }
        }
    }
    if plan.has("fig2.10") {
        for (what, place, values) in VARIED {
            for value in values {
                let mut sizes = SIZES;
                sizes[place] = value;
                let (all, segments) = loss.of(sizes, SEGMENT_BYTES, false)?;
                let figure = Figure::new("fig2.10", name, what, REDUCTION);
                let reduction = segments.reduction_percent(&all);
                results
                    .figures
                    .push(figure.at(f64::from(value)).with(reduction, None));
            }
        }
    }
    Ok(())
}

/// Compares segments with the whole.
struct Loss<'a> {
    files: &'a [&'a [u8]],
    plan: &'a Plan,
    progress: &'a mut Progress,
}

impl Loss<'_> {
    /// What sequential chunking and segments give. Cuts do not hang on the loop: the fastest.
    fn of(
        &mut self,
        sizes: [u32; 3],
        segment_bytes: usize,
        is_joined: bool,
    ) -> anyhow::Result<(Dedup, Dedup)> {
        interrupt::check()?;
        let bytes: usize = self.files.iter().map(|file| file.len()).sum();
        self.progress.expect(bytes as u64);
        let chunker = fastest(sizes)?;
        let form = if is_joined {
            Form::joined(&chunker, segment_bytes)?
        } else {
            Form::Segments(chunker.clone(), segment_bytes)
        };
        let threads = self.plan.threads;
        let all = dedup::cut(&chunker, self.files, threads);
        let all = Dedup::of(self.files, &all, threads);
        let segments = form.one_file(threads, self.files);
        let segments = Dedup::of(self.files, &segments, threads);
        self.progress.advance(bytes as u64, "dedup ratio");
        Ok((all, segments))
    }
}

fn fastest(sizes: [u32; 3]) -> anyhow::Result<Chunker> {
    let chunker = sequential(&sized(Algorithm::Crc32, sizes))?;
    Ok(chunker.with_rolling(Rolling::Fastest))
}
