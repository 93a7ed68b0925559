//! `onefold-lab paper woj`: what it counts without a file system, and, as root, on one.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::documented::{assert_documented, documented};
use crate::sandbox::Sandbox;

const PUBLISHED: &str = "WOJ_xxh64, 64 bytes (unsafe)";

fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let line = ["paper", "woj", "--runs", "1", "-q", "--size"];
    sandbox.ok(&[&line[..], arguments].concat())
}

fn report(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&run(sandbox, &arguments)).unwrap()
}

/// Experiment, approach, metric.
fn find(report: &Value, wanted: [&str; 3], x: Option<f64>) -> Option<f64> {
    let [experiment, approach, metric] = wanted;
    let found = report["figures"].as_array().unwrap().iter().find(|figure| {
        figure["experiment"] == experiment
            && figure["approach"] == approach
            && figure["metric"] == metric
            && figure["x"].as_f64() == x
    });
    found.map(|figure| figure["ours"].as_f64().unwrap())
}

#[track_caller]
fn figure(report: &Value, wanted: [&str; 3], x: f64) -> f64 {
    let found = find(report, wanted, Some(x));
    found.unwrap_or_else(|| panic!("no {wanted:?} at {x}"))
}

fn assert_figures(report: &Value) {
    assert_eq!(report["paper"], "woj");
    assert_documented(report, "summary of paper");
    assert_documented(&report["settings"], "paper settings");
    assert_documented(&report["figures"][0], "figure");
    assert_documented(&report["claims"][0], "claim");
    let metrics = documented("metric");
    for figure in report["figures"].as_array().unwrap() {
        assert!(figure["ours"].as_f64().unwrap().is_finite(), "{figure}");
        let metric = figure["metric"].as_str().unwrap();
        assert!(metrics.contains(&metric), "{metric}");
    }
}

/// What the whole paper is about: the second write is none. And what is wrong with it.
#[test]
fn a_journal_that_is_made_up_is_written_once() {
    let sandbox = Sandbox::new();
    let arguments = ["8M", "--experiments", "table4.1,memory,synthetic"];
    let report = report(&sandbox, &arguments);
    assert_figures(&report);
    for window in [1.0, 10.0, 100.0, 1000.0] {
        let of = |approach, metric| figure(&report, ["synthetic", approach, metric], window);
        let writes = |approach| of(approach, "write_amplification");
        let saved = writes("No_Dedup_DJ") - writes("WOJ_xxh3");
        assert!((0.99..1.01).contains(&saved), "{window}: {saved}");
        assert!(writes("WOJ_xxh3") <= 1.001 * writes("Full_sha1"));
        assert!(of("WOJ_xxh3", "home_hits_percent") > 99.0);
        for safe in ["No_Dedup_DJ", "WOJ_xxh3", "Full_sha1", "WOJ_blake3, thin"] {
            assert_eq!(of(safe, "wrong_blocks"), 0.0, "{safe}");
        }
        assert_eq!(of(PUBLISHED, "wrong_blocks"), 1.0);
        assert!(of(PUBLISHED, "wrong_writes") >= 1.0);
        assert_eq!(of("WOJ_xxh3", "metadata_amplification"), 0.0);
        assert!(of("WOJ_blake3, thin", "metadata_amplification") > 0.0);
        let data = |approach| of(approach, "data_amplification");
        assert!((data("WOJ_blake3, thin") / data("WOJ_xxh3") - 1.0).abs() < 0.01);
    }
    let memory = ["memory", "12 B + 8 B an entry", "pool_bytes"];
    assert_eq!(figure(&report, memory, f64::from(256 << 20)), 1_310_720.0);
    let crc = ["table4.1", "CRC32C", "hash_mebibytes_per_second"];
    assert!(find(&report, crc, None).unwrap() > 1.0);
}

/// Passes without root, too: then it says what is missing.
#[test]
fn on_ext4_the_second_write_is_none() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/a/b", &[1; 100_000]);
    sandbox.write("tree/c", &[2; 5000]);
    let arguments = [
        "4M",
        "--disk",
        "128M",
        "--journal",
        "8M",
        "--data",
        "X=tree",
        "--experiments",
        "fig4.2,fig4.4,fig4.8",
    ];
    let report = report(&sandbox, &arguments);
    let notes = report["notes"].to_string();
    if notes.contains("they need a real ext4, and") {
        println!("{notes}: skipped");
        return;
    }
    assert_figures(&report);
    let experiments: HashSet<&str> = report["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|figure| figure["experiment"].as_str().unwrap())
        .collect();
    assert_eq!(experiments, HashSet::from(["fig4.2", "fig4.4", "fig4.8"]));
    let of = |approach, metric| figure(&report, ["fig4.2", approach, metric], 1000.0);
    let none = of("No_Dedup_DJ", "write_amplification");
    assert!((1.95..2.2).contains(&none), "{none}");
    let once = of("WOJ_xxh3", "write_amplification");
    assert!((0.95..1.2).contains(&once), "{once}");
    let figures = report["figures"].as_array().unwrap();
    let mut wrong = figures
        .iter()
        .filter(|figure| figure["metric"] == "wrong_blocks" && figure["approach"] != PUBLISHED);
    assert!(wrong.all(|figure| figure["ours"] == 0.0));
}

#[test]
fn people_get_tables_plots_and_what_is_missing() {
    let sandbox = Sandbox::new();
    let text = run(
        &sandbox,
        &[
            "4M",
            "--experiments",
            "table4.1,synthetic,fig4.8",
            "--html",
            "page.html",
            "--csv=figures.csv",
        ],
    );
    for words in [
        "MIB/S",
        "526",
        "HOME HITS",
        "ms a flush (assumed)",
        "--data",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.contains("<svg viewBox") && !page.contains("NaN"));
    let csv = fs::read_to_string(sandbox.path("figures.csv")).unwrap();
    let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(columns, documented("figure"));
}

#[test]
fn wrong_usage_is_2() {
    let sandbox = Sandbox::new();
    for (arguments, words) in [
        (&["--size", "0"][..], "leaves nothing"),
        (&["--experiments", "fig4.1"], "they are table4.1, fig4.2"),
        (&["--data", "x"], "has no path"),
        (&["--disk", "64M"], "four times"),
    ] {
        let line = [&["paper", "woj", "-q"], arguments].concat();
        let run = sandbox.run(&line).expect(2);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
}
