//! Figs. 5.3 to 5.8: synthetic writes.
//!
//! Enters: a bench of runs. Leaves: counts for a window, and what the model makes of them.

use anyhow::Result;
use volume::trace::Access;
use volume::window::parts::PART_ENTRIES_MAX;

use super::bench::{
    ACCESSES, Bench, COW, ORDERED, RAM, SCHEMES, Scheme, Setup, THIN, path_rate, synthetic,
    whole_rate,
};
use super::device::Device;
use super::driving::Measured;
use super::published::{
    DEVICES, HARD_DISK, LATENCY_CUT_PERCENT, QUEUED, SPEED_UPS, SSD, THROUGHPUT, THROUGHPUTS,
    TRACE_WINDOW, WINDOWS,
};
use super::sources::Source;
use crate::paper::Results;
use crate::paper::figure::Figure;
use crate::progress::Progress;

/// Metrics.
pub const PATH_RATE: &str = "path_blocks_per_second";
pub const WHOLE_RATE: &str = "blocks_per_second_with_commits";
pub const OF_ORDERED: &str = "times_ordered";
pub const OF_MAPPING_ONLY: &str = "times_ordered_mapping_only";
pub const WHOLE_OF_ORDERED: &str = "times_ordered_with_commits";
pub const LATENCY: &str = "latency_ms";
pub const EXPLICIT: &str = "explicit_metadata_percent";
pub const METADATA_OF_ORDERED: &str = "metadata_of_ordered_percent";
pub const WHOLE_METADATA_OF_ORDERED: &str = "metadata_of_ordered_with_commits_percent";

/// Deduplication ratios of Figs. 5.6 and 5.7.
const RATIOS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0];
/// Windows of Figs. 5.7 and 5.8.
const FEW_WINDOWS: [u32; 3] = [8, 16, 32];
/// Blocks that compress, of 100 (Fig. 5.8).
const COMPRESSIBLE: [u32; 6] = [0, 20, 40, 60, 80, 100];
/// Shares of requests whose latency is told (Figs. 5.4, 5.5).
const SHARES: [f64; 6] = [10.0, 50.0, 80.0, 95.0, 99.0, 100.0];
/// Zones before a commit, beyond the paper's two.
const COMMIT_ZONES: [u32; 3] = [2, 8, 32];
/// The window where one is enough.
const ONE_WINDOW: u32 = 32;
/// So many times the writes where commits are rare.
const COMMIT_WRITES: u64 = 10;

/// What is compared over windows.
fn over_windows(bench: &Bench<'_>, windows: &[u32]) -> Vec<Setup> {
    let mut setups = Vec::new();
    for (_, access) in ACCESSES {
        for &window in windows {
            let all = SCHEMES.map(|scheme| bench.setup(synthetic(access), scheme, window));
            setups.extend(all);
        }
    }
    setups
}

/// Experiments over windows: counts, throughput, latency.
pub fn windows(
    bench: &mut Bench<'_>,
    wanted: &dyn Fn(&str) -> bool,
    results: &mut Results,
    progress: &mut Progress,
) -> Result<()> {
    let names = ["counts", "fig5.3", "latency"];
    let all = names.iter().any(|name| wanted(name));
    let few: &[u32] = &[8, 16, 32, 64, 256];
    let windows = if all { &WINDOWS[..] } else { few };
    if !all && !wanted("fig5.4") && !wanted("fig5.5") {
        return Ok(());
    }
    bench.run(&over_windows(bench, windows), "windows", progress)?;
    if wanted("counts") {
        counts(bench, results);
    }
    if wanted("fig5.3") {
        for (access_name, access) in ACCESSES {
            for device in &DEVICES {
                for window in WINDOWS {
                    let place = Place {
                        experiment: "fig5.3",
                        data_set: format!("{access_name}, {}", device.name),
                        x: Some(f64::from(window)),
                    };
                    throughput(bench, synthetic(access), window, device, &place, results);
                }
            }
        }
        printed(results);
    }
    if wanted("fig5.4") {
        for access in ACCESSES {
            for device in [&HARD_DISK, &QUEUED] {
                latencies(bench, access, [32, 64, 256], device, "fig5.4", results);
            }
        }
    }
    if wanted("fig5.5") {
        let random = ("random", Access::Random);
        latencies(bench, random, [8, 16, 32], &SSD, "fig5.5", results);
    }
    if wanted("latency") {
        for access in ACCESSES {
            for device in &DEVICES {
                cuts(bench, access, device, results);
            }
        }
    }
    Ok(())
}

/// Blocks, flushes and seeks of a window.
fn counts(bench: &Bench<'_>, results: &mut Results) {
    for (access_name, access) in ACCESSES {
        for window in WINDOWS {
            let ordered = bench.of(synthetic(access), ORDERED, window);
            for scheme in SCHEMES {
                let measured = bench.of(synthetic(access), scheme, window);
                let mut add = |metric, value| {
                    let figure = Figure::new("counts", access_name, scheme.name, metric);
                    let x = f64::from(window);
                    results.figures.push(figure.at(x).with(value, None));
                };
                for (metric, value) in per_window(&measured) {
                    add(metric, value);
                }
                let (path, whole) = shares_of(&measured, &ordered);
                add(METADATA_OF_ORDERED, path);
                add(WHOLE_METADATA_OF_ORDERED, whole);
            }
        }
    }
}

/// Metadata of 100 that another has: in the path of writes, and with commits.
fn shares_of(measured: &Measured, other: &Measured) -> (f64, f64) {
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let whole = |one: &Measured| one.path_metadata() + one.commits().blocks;
    (
        share(measured.path_metadata(), other.path_metadata()),
        share(whole(measured), whole(other)),
    )
}

/// What a window has of everything.
fn per_window(measured: &Measured) -> [(&'static str, f64); 6] {
    let windows = measured.windows.len().max(1) as f64;
    let (path, commits) = (measured.path(), measured.commits());
    [
        (
            "data_blocks_per_window",
            measured.counters.data_blocks_written as f64 / windows,
        ),
        (
            "path_metadata_per_window",
            measured.path_metadata() as f64 / windows,
        ),
        ("path_flushes_per_window", path.flushes as f64 / windows),
        (
            "path_seeks_per_window",
            (path.seeks + path.hops) as f64 / windows,
        ),
        ("commit_blocks_per_window", commits.blocks as f64 / windows),
        (
            "commit_flushes_per_window",
            commits.flushes as f64 / windows,
        ),
    ]
}

/// Where figures of throughput go.
pub struct Place {
    pub experiment: &'static str,
    pub data_set: String,
    pub x: Option<f64>,
}

impl Place {
    /// A figure there.
    pub fn figure(&self, approach: &str, metric: &'static str, value: f64) -> Figure {
        let figure = Figure::new(self.experiment, &self.data_set, approach, metric);
        Figure {
            x: self.x,
            ..figure.with(value, None)
        }
    }
}

/// Throughput of all schemes, in the path of writes and with commits, and how many times that of `ordered` it is.
pub fn throughput(
    bench: &Bench<'_>,
    source: Source,
    window: u32,
    device: &Device,
    place: &Place,
    results: &mut Results,
) {
    let all = SCHEMES.map(|scheme| bench.of(source, scheme, window));
    let [_, ordered, mapping_only, ..] = &all;
    let (ordered_path, ordered_whole) = (path_rate(ordered, device), whole_rate(ordered, device));
    for (scheme, measured) in SCHEMES.iter().zip(&all) {
        let (path, whole) = (path_rate(measured, device), whole_rate(measured, device));
        let values = [
            (PATH_RATE, path),
            (OF_ORDERED, path / ordered_path),
            (OF_MAPPING_ONLY, path / path_rate(mapping_only, device)),
            (WHOLE_RATE, whole),
            (WHOLE_OF_ORDERED, whole / ordered_whole),
        ];
        let figures = values.map(|(metric, value)| place.figure(scheme.name, metric, value));
        results.figures.extend(figures);
    }
}

/// Puts the paper's numbers beside ours in Fig. 5.3.
fn printed(results: &mut Results) {
    for figure in &mut results.figures {
        let (set, approach, metric) = (&figure.data_set, &figure.approach, figure.metric);
        let x = figure.x.unwrap_or(0.0);
        let is_at = |access: &str, device: &str, window: u32| {
            *set == format!("{access}, {device}") && x == f64::from(window)
        };
        let paper = if figure.experiment != "fig5.3" {
            None
        } else if metric == OF_ORDERED && approach == THIN.name {
            let mut all = SPEED_UPS.iter();
            let found = all.find(|(access, device, window, _)| is_at(access, device, *window));
            found.map(|(.., times)| *times)
        } else if metric == PATH_RATE {
            let mut all = THROUGHPUTS.iter();
            let found = all.find(|(access, device, scheme, window)| {
                scheme == approach && is_at(access, device, *window)
            });
            found.map(|_| THROUGHPUT)
        } else {
            None
        };
        *figure = figure.clone().with(figure.ours, paper);
    }
}

/// Time of each window by the model, sorted, with what was committed in it.
pub fn window_times(measured: &Measured, device: &Device) -> Vec<f64> {
    let windows = measured.windows.iter();
    let mut times: Vec<f64> = windows
        .map(|window| device.ms(window.path + window.commit))
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The time that so many of 100 windows do not exceed.
pub fn percentile(times: &[f64], percent: f64) -> f64 {
    let rank = (times.len() as f64 * percent / 100.0).ceil() as usize;
    times.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

fn latencies(
    bench: &Bench<'_>,
    (access_name, access): (&str, Access),
    windows: [u32; 3],
    device: &Device,
    experiment: &'static str,
    results: &mut Results,
) {
    for window in windows {
        for scheme in [THIN, ORDERED, COW, RAM] {
            let times = window_times(&bench.of(synthetic(access), scheme, window), device);
            for share in SHARES {
                let place = Place {
                    experiment,
                    data_set: format!("{access_name}, {}, window {window}", device.name),
                    x: Some(share),
                };
                let latency = percentile(&times, share);
                results
                    .figures
                    .push(place.figure(scheme.name, LATENCY, latency));
            }
        }
    }
}

/// For each window of `ordered`: the smallest of `thin` with at least its throughput, and how much less its
/// latency is.
fn cuts(
    bench: &Bench<'_>,
    (access_name, access): (&str, Access),
    device: &Device,
    results: &mut Results,
) {
    let of = |scheme: Scheme, window| bench.of(synthetic(access), scheme, window);
    for window in WINDOWS {
        let ordered = of(ORDERED, window);
        let wanted = whole_rate(&ordered, device);
        let mut thin = WINDOWS.iter().map(|window| (*window, of(THIN, *window)));
        let Some((thin_window, thin)) = thin.find(|(_, thin)| whole_rate(thin, device) >= wanted)
        else {
            continue;
        };
        let [thin, ordered] =
            [&thin, &ordered].map(|one| percentile(&window_times(one, device), 50.0));
        let is_hard_disk = device.sequential_ms == HARD_DISK.sequential_ms;
        let is_printed = is_hard_disk && (access_name, window) == ("random", 256);
        let place = Place {
            experiment: "latency",
            data_set: format!("{access_name}, {}", device.name),
            x: Some(f64::from(window)),
        };
        let add = |metric, value| place.figure("thin for ordered", metric, value);
        let cut = 100.0 * (1.0 - thin / ordered);
        results
            .figures
            .push(add("thin_window", f64::from(thin_window)));
        let cut = add("latency_cut_percent", cut);
        let paper = is_printed.then_some(LATENCY_CUT_PERCENT);
        results.figures.push(cut.clone().with(cut.ours, paper));
    }
}

/// Figs. 5.6 and 5.7.
pub fn ratios(
    bench: &mut Bench<'_>,
    wanted: &dyn Fn(&str) -> bool,
    results: &mut Results,
    progress: &mut Progress,
) -> Result<()> {
    let source = |access, ratio| Source::Synthetic { access, ratio };
    let mut setups = Vec::new();
    for (_, access) in ACCESSES {
        for ratio in RATIOS {
            if wanted("fig5.6") {
                let all =
                    SCHEMES.map(|scheme| bench.setup(source(access, ratio), scheme, TRACE_WINDOW));
                setups.extend(all);
            }
            if wanted("fig5.7") {
                for window in FEW_WINDOWS {
                    let all = [THIN, ORDERED];
                    setups.extend(
                        all.map(|scheme| bench.setup(source(access, ratio), scheme, window)),
                    );
                }
            }
        }
    }
    bench.run(&setups, "dedup ratios", progress)?;
    for (access_name, access) in ACCESSES {
        for ratio in RATIOS {
            let source = source(access, ratio);
            for device in DEVICES.iter().filter(|_| wanted("fig5.6")) {
                let place = Place {
                    experiment: "fig5.6",
                    data_set: format!("{access_name}, {}", device.name),
                    x: Some(ratio),
                };
                throughput(bench, source, TRACE_WINDOW, device, &place, results);
            }
            for window in FEW_WINDOWS.into_iter().filter(|_| wanted("fig5.7")) {
                let place = Place {
                    experiment: "fig5.7",
                    data_set: access_name.to_owned(),
                    x: Some(ratio),
                };
                let [thin, ordered] =
                    [THIN, ORDERED].map(|scheme| bench.of(source, scheme, window));
                let name = format!("thin, window {window}");
                let (of_ordered, _) = shares_of(&thin, &ordered);
                let figures = [
                    place.figure(&name, EXPLICIT, explicit_percent(&thin, window)),
                    place.figure(&name, METADATA_OF_ORDERED, of_ordered),
                ];
                results.figures.extend(figures);
            }
        }
    }
    Ok(())
}

/// Blocks of nothing but metadata, of 100 that there were if none had gone into blocks of data.
pub fn explicit_percent(thin: &Measured, window: u32) -> f64 {
    let alone = thin.windows.len() * (window as usize).div_ceil(PART_ENTRIES_MAX);
    100.0 * thin.path_metadata() as f64 / alone.max(1) as f64
}

/// Fig. 5.8.
pub fn compressibility(
    bench: &mut Bench<'_>,
    results: &mut Results,
    progress: &mut Progress,
) -> Result<()> {
    let setup = |bench: &Bench<'_>, access, window, compressible_percent| {
        let mut setup = bench.setup(synthetic(access), THIN, window);
        setup.manner.compressible_percent = compressible_percent;
        setup
    };
    let mut cases = Vec::new();
    for (access_name, access) in ACCESSES {
        for window in FEW_WINDOWS {
            for percent in COMPRESSIBLE {
                let setup = setup(bench, access, window, percent);
                cases.push((access_name, window, percent, setup));
            }
        }
    }
    let setups: Vec<Setup> = cases.iter().map(|(.., setup)| *setup).collect();
    bench.run(&setups, "compressibility", progress)?;
    for (access_name, window, percent, setup) in cases {
        let place = Place {
            experiment: "fig5.8",
            data_set: format!("{access_name}, {}", HARD_DISK.name),
            x: Some(f64::from(percent)),
        };
        let measured = bench.get(&setup);
        let name = format!("thin, window {window}");
        let counters = &measured.counters;
        let compressed = 100.0 * counters.compressed_blocks_written as f64
            / counters.data_blocks_written.max(1) as f64;
        let figures = [
            place.figure(&name, PATH_RATE, path_rate(measured, &HARD_DISK)),
            place.figure(&name, WHOLE_RATE, whole_rate(measured, &HARD_DISK)),
            place.figure(&name, EXPLICIT, explicit_percent(measured, window)),
            place.figure(&name, "compressed_percent", compressed),
        ];
        results.figures.extend(figures);
    }
    Ok(())
}

/// What commits cost by how many zones are filled before one.
pub fn commits(
    bench: &mut Bench<'_>,
    results: &mut Results,
    progress: &mut Progress,
) -> Result<()> {
    let setup = |bench: &Bench<'_>, access, scheme, zones| {
        let mut setup = bench.setup(synthetic(access), scheme, ONE_WINDOW);
        setup.manner.commit_zones = zones;
        setup.writes *= COMMIT_WRITES;
        setup
    };
    for (access_name, access) in ACCESSES {
        let all = COMMIT_ZONES.map(|zones| setup(bench, access, THIN, zones));
        let ordered = setup(bench, access, ORDERED, COMMIT_ZONES[0]);
        bench.run(&[&all[..], &[ordered]].concat(), "commits", progress)?;
        let ordered = bench.get(&ordered);
        for (zones, setup) in COMMIT_ZONES.iter().zip(&all) {
            let measured = bench.get(setup);
            let place = Place {
                experiment: "commits",
                data_set: access_name.to_owned(),
                x: Some(f64::from(*zones)),
            };
            let (_, share) = shares_of(measured, ordered);
            let writes = measured.writes().max(1) as f64;
            let longest = window_times(measured, &HARD_DISK).last().copied();
            let values = [
                ("commits", measured.counters.commits as f64 + 1.0),
                (
                    "commit_blocks_per_write",
                    measured.commits().blocks as f64 / writes,
                ),
                (WHOLE_METADATA_OF_ORDERED, share),
                (
                    "hard_disk_times_ordered",
                    whole_rate(measured, &HARD_DISK) / whole_rate(ordered, &HARD_DISK),
                ),
                (
                    "ssd_times_ordered",
                    whole_rate(measured, &SSD) / whole_rate(ordered, &SSD),
                ),
                ("longest_window_ms", longest.unwrap_or(0.0)),
            ];
            let figures = values.map(|(metric, value)| place.figure(THIN.name, metric, value));
            results.figures.extend(figures);
        }
    }
    Ok(())
}
