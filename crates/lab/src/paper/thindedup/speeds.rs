//! Beyond the paper: how fast our own volume takes writes, on this machine's clock.
//!
//! In memory, and in a file where a directory is given. Schemes take turns, so that a machine that gets slower
//! meanwhile does so for all; the median of passes counts.

use std::path::Path;

use anyhow::Result;
use volume::trace::Access;

use super::bench::{Bench, COW, ORDERED, RAM, Setup, THIN, synthetic};
use super::driving::{self, Place};
use super::experiments::OF_ORDERED;
use super::sources::writes_of;
use crate::chunk::sizes::median;
use crate::paper::Results;
use crate::paper::figure::Figure;
use crate::progress::Progress;

/// The windows.
const WINDOWS: [u32; 3] = [8, 32, 256];
/// A file is synced for real, which takes its time: so much less is written to it.
const FILE_SHARE: u64 = 10;

/// Writes and flushes in a second.
pub const WALL_RATE: &str = "wall_blocks_per_second";

/// Runs it.
pub fn speeds(
    bench: &Bench<'_>,
    directory: Option<&Path>,
    runs: usize,
    results: &mut Results,
    progress: &mut Progress,
) -> Result<()> {
    let memory = ("in memory", Place::Memory, 1);
    let file = directory.map(|path| ("in a file", Place::Directory(path), FILE_SHARE));
    for (name, place, share) in [Some(memory), file].into_iter().flatten() {
        for window in WINDOWS {
            let schemes = [THIN, ORDERED, COW, RAM];
            let setups = schemes.map(|scheme| Setup {
                writes: (bench.writes / share).max(1),
                ..bench.setup(synthetic(Access::Random), scheme, window)
            });
            let mut rates = [const { Vec::new() }; 4];
            let bytes = setups[0].writes * volume::trace::BLOCK_BYTES;
            progress.expect(bytes * (runs * setups.len()) as u64);
            for _ in 0..runs {
                for (setup, rates) in setups.iter().zip(&mut rates) {
                    let (span_bytes, writes) = writes_of(setup.source, bench.given, setup.writes)?;
                    let measured = driving::run(&setup.manner, span_bytes, place, writes)?;
                    rates.push(measured.writes() as f64 / measured.seconds.max(1e-9));
                    progress.advance(bytes, "our own speed");
                }
            }
            let rates = rates.map(|rates| median(&rates));
            for (scheme, rate) in schemes.iter().zip(rates) {
                for (metric, value) in [(WALL_RATE, rate), (OF_ORDERED, rate / rates[1])] {
                    let figure = Figure::new("speed", name, scheme.name, metric);
                    let figure = figure.at(f64::from(window)).with(value, None);
                    results.figures.push(figure);
                }
            }
        }
    }
    Ok(())
}
