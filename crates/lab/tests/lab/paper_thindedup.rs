//! `onefold-lab paper thindedup`: what it counts, and what the model makes of it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::documented::{assert_documented, documented};
use crate::sandbox::Sandbox;

const EXPERIMENTS: [&str; 14] = [
    "counts", "fig5.3", "fig5.4", "fig5.5", "latency", "fig5.6", "fig5.7", "fig5.8", "fig5.9",
    "fig5.10", "fig5.11", "fig5.12", "commits", "speed",
];

fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let line = ["paper", "thindedup", "--runs", "1", "--threads", "2", "-q"];
    sandbox.ok(&[&line[..], arguments].concat())
}

fn report(sandbox: &Sandbox, writes: &str, experiments: &str) -> Value {
    let arguments = ["--json", "--writes", writes, "--experiments", experiments];
    serde_json::from_str(&run(sandbox, &arguments)).unwrap()
}

/// Experiment, data set, approach, metric.
fn figure(report: &Value, wanted: [&str; 4], x: Option<f64>) -> f64 {
    let [experiment, data_set, approach, metric] = wanted;
    let figures = report["figures"].as_array().unwrap();
    let found = figures.iter().find(|figure| {
        figure["experiment"] == experiment
            && figure["data_set"] == data_set
            && figure["approach"] == approach
            && figure["metric"] == metric
            && figure["x"].as_f64() == x
    });
    let Some(found) = found else {
        panic!("no {wanted:?} at {x:?}");
    };
    found["ours"].as_f64().unwrap()
}

fn verdict<'a>(report: &'a Value, beginning: &str) -> &'a str {
    let claims = report["claims"].as_array().unwrap();
    let found = claims
        .iter()
        .find(|claim| claim["claim"].as_str().unwrap().starts_with(beginning));
    found.unwrap()["verdict"].as_str().unwrap()
}

#[test]
fn every_experiment_gives_documented_figures_and_nothing_is_left_behind() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("scratch")).unwrap();
    let arguments = [
        "--json",
        "--writes",
        "5120",
        "--quick",
        "--scratch",
        "scratch",
    ];
    let report: Value = serde_json::from_str(&run(&sandbox, &arguments)).unwrap();
    assert_eq!(report["paper"], "thindedup");
    assert_documented(&report, "summary of paper");
    assert_documented(&report["settings"], "paper settings");
    assert_documented(&report["figures"][0], "figure");
    assert_documented(&report["claims"][0], "claim");
    assert_eq!(report["settings"]["synthetic_bytes"], 512 * 4096);
    let all = report["figures"].as_array().unwrap();
    let found: HashSet<&str> = all
        .iter()
        .map(|figure| figure["experiment"].as_str().unwrap())
        .collect();
    assert_eq!(found, HashSet::from(EXPERIMENTS));
    let metrics = documented("metric");
    for figure in all {
        assert!(figure["ours"].as_f64().unwrap().is_finite(), "{figure}");
        let metric = figure["metric"].as_str().unwrap();
        assert!(metrics.contains(&metric), "{metric}");
    }
    assert_eq!(fs::read_dir(sandbox.path("scratch")).unwrap().count(), 0);
}

/// What the whole experiment is about.
#[test]
fn thin_needs_one_flush_and_no_metadata_blocks() {
    let report = report(&Sandbox::new(), "6400", "counts,fig5.3");
    for access in ["random", "sequential"] {
        let count =
            |approach, metric| figure(&report, ["counts", access, approach, metric], Some(32.0));
        for (approach, flushes) in [("thin", 1.0), ("ordered", 2.0), ("cow", 2.0), ("ram", 1.0)] {
            let found = count(approach, "path_flushes_per_window");
            assert!((found - flushes).abs() < 0.01, "{approach}: {found}");
        }
        assert!(count("thin", "metadata_of_ordered_percent") <= 5.0);
        assert_eq!(count("ram", "path_metadata_per_window"), 0.0);
        assert!(
            count("cow", "path_metadata_per_window") > count("ordered", "path_metadata_per_window")
        );
        // What is not in the path of writes is there all the same.
        assert!(count("thin", "commit_blocks_per_window") > 1.0);
        let data = |approach| count(approach, "data_blocks_per_window");
        assert_eq!(data("thin"), data("ordered"));
        assert!((15.0..17.0).contains(&data("thin")));
    }
    let mapping = [
        "counts",
        "random",
        "ordered, mapping only",
        "path_metadata_per_window",
    ];
    let found = figure(&report, mapping, Some(32.0));
    assert!((31.5..=32.0).contains(&found), "{found}");
    let times = |set| {
        figure(
            &report,
            ["fig5.3", set, "thin", "times_ordered"],
            Some(32.0),
        )
    };
    assert!((1.8..2.2).contains(&times("sequential, SSD")));
    assert!((2.4..3.4).contains(&times("random, hard disk, queued")));
    assert!(times("random, hard disk") > times("random, hard disk, queued"));
    for claim in [
        "ThinDedup needs one flush",
        "OrderedWrites needs two",
        "From windows of 32 blocks on",
        "It gains more over OrderedWrites with random writes",
        "On the SSD ThinDedup is close to Ideal",
    ] {
        assert_eq!(verdict(&report, claim), "holds", "{claim}");
    }
    assert_eq!(verdict(&report, "They make Ideal faster"), "not_tested");
}

#[test]
fn fewer_blocks_that_compress_and_more_duplicates_leave_metadata_over() {
    let report = report(&Sandbox::new(), "6400", "fig5.7,fig5.8");
    let explicit = |experiment, set: &str, window: u32, x| {
        let approach = format!("thin, window {window}");
        let wanted = [experiment, set, &approach, "explicit_metadata_percent"];
        figure(&report, wanted, Some(x))
    };
    let of_ratio = |window, ratio| explicit("fig5.7", "random", window, ratio);
    assert!(of_ratio(8, 16.0) > of_ratio(8, 2.0) + 20.0);
    assert!(of_ratio(16, 4.0) < of_ratio(8, 4.0));
    assert!(of_ratio(32, 2.0) < 1.0);
    let of_share = |window, share| explicit("fig5.8", "random, hard disk", window, share);
    assert_eq!(of_share(16, 0.0), 100.0);
    assert!(of_share(16, 40.0) < 10.0);
    assert!(of_share(8, 20.0) > of_share(8, 80.0));
}

#[test]
fn commits_are_fewer_with_more_zones() {
    let report = report(&Sandbox::new(), "6400", "commits");
    let commits = |zones| {
        let wanted = ["commits", "random", "thin", "commits"];
        figure(&report, wanted, Some(zones))
    };
    // 64,000 blocks, two compressed ones for 32 of them, 1,024 to a zone: a commit begins when an eighth of the room of
    // two zones is left; and one at the end.
    assert_eq!((commits(2.0), commits(8.0)), (3.0, 1.0));
}

#[test]
fn traces_take_the_place_of_what_is_made_up() {
    let sandbox = Sandbox::new();
    let mut fiu = String::new();
    let mut msr = String::new();
    for number in 0..2_000u64 {
        let block = number * 7919 % 100_000;
        let _ = writeln!(
            fiu,
            "{number} 1 nfsd {} 8 W 8 0 {:032x}",
            block * 8 + 7,
            number / 4 + 1
        );
        let _ = writeln!(msr, "{number},hm,0,Write,{},8192,1", block * 4096);
    }
    sandbox.write("mail", fiu.as_bytes());
    sandbox.write("hm", msr.as_bytes());
    let text = run(
        &sandbox,
        &[
            "--json",
            "--writes",
            "3000",
            "--trace",
            "mail-2=mail",
            "--data",
            "HM=hm",
            "--experiments",
            "fig5.9,fig5.10,fig5.11",
        ],
    );
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_documented(&report["data_sets"][0], "data set");
    assert_documented(&report["data_sets"][0]["data"], "data");
    assert_eq!(report["data_sets"][0]["name"], "Mail-2");
    assert_eq!(report["data_sets"][0]["is_sample"], false);
    assert_eq!(report["data_sets"][1]["is_sample"], true);
    let ratio = figure(
        &report,
        ["fig5.10", "Mail-2, SSD", "thin", "dedup_ratio"],
        None,
    );
    assert_eq!(ratio, 4.0);
    let ratio = ["fig5.11", "HM, hard disk", "thin", "dedup_ratio"];
    assert!((1.9..2.1).contains(&figure(&report, ratio, Some(2.0))));
    assert!(!text.contains("made up like"));
}

#[test]
fn people_get_tables_plots_and_csv() {
    let sandbox = Sandbox::new();
    let text = run(
        &sandbox,
        &[
            "--writes",
            "1000",
            "--experiments",
            "fig5.6,fig5.10",
            "--html",
            "page.html",
            "--csv=figures.csv",
        ],
    );
    for words in [
        "BLOCKS/S",
        "made up like WebVM-8",
        "What the paper says",
        " 1.5 ",
        "5.66 ms a flush",
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
    sandbox.write(
        "reads",
        b"1 1 cron 8 8 R 0 0 00000000000000000000000000000001\n",
    );
    for (arguments, code, words) in [
        (&["--writes", "0"][..], 2, "leaves nothing"),
        (&["--experiments", "fig5.2"], 2, "they are counts, fig5.3"),
        (&["--trace", "x"], 2, "has no path"),
        (&["--trace", "x=reads"], 1, "x has no writes"),
    ] {
        let line = [&["paper", "thindedup", "-q"], arguments].concat();
        let run = sandbox.run(&line).expect(code);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
}
