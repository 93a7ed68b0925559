//! `onefold-lab paper odess`: what it prints on small data.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::documented::{assert_documented, documented};
use crate::sandbox::{Sandbox, noise};

const EXPERIMENTS: [&str; 11] = [
    "fig6", "fig7", "fig11", "fig12", "fig13", "fig14", "fig16-21", "fig22", "table3", "fig23",
    "stages",
];

/// Versions of one stream that differ all over.
fn with_data() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut bytes = noise(3, 700_000);
    for version in 1..=4 {
        sandbox.write(&format!("set/v{version}"), &bytes);
        for place in (version * 911..bytes.len()).step_by(7000) {
            bytes[place] ^= 0x55;
        }
        bytes.splice(300_000..300_000, *b"something in between");
    }
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let line = [
        "paper",
        "odess",
        "--data",
        "tar=set",
        "--runs",
        "1",
        "--synthetic",
        "512K",
        "-q",
    ];
    sandbox.ok(&[&line[..], arguments].concat())
}

fn report(sandbox: &Sandbox, experiments: &str) -> Value {
    let text = run(sandbox, &["--json", "--experiments", experiments]);
    serde_json::from_str(&text).unwrap()
}

fn figures<'a>(
    report: &'a Value,
    experiment: &str,
    approach: &str,
    metric: &str,
) -> Vec<&'a Value> {
    let all = report["figures"].as_array().unwrap().iter();
    let found = all.filter(|figure| {
        figure["experiment"] == experiment
            && figure["approach"] == approach
            && figure["metric"] == metric
    });
    found.collect()
}

fn ours(figure: &Value) -> f64 {
    figure["ours"].as_f64().unwrap()
}

fn verdict<'a>(report: &'a Value, beginning: &str) -> &'a str {
    let claims = report["claims"].as_array().unwrap();
    let found = claims
        .iter()
        .find(|claim| claim["claim"].as_str().unwrap().starts_with(beginning));
    found.unwrap()["verdict"].as_str().unwrap()
}

#[test]
fn every_experiment_gives_documented_figures() {
    let sandbox = with_data();
    let report = report(&sandbox, "all");
    assert_eq!(report["paper"], "odess");
    assert_documented(&report, "summary of paper");
    assert_documented(&report["settings"], "paper settings");
    assert_documented(&report["figures"][0], "figure");
    assert_documented(&report["claims"][0], "claim");
    assert_eq!(report["data_sets"][0]["name"], "TAR");
    let all = report["figures"].as_array().unwrap();
    let found: HashSet<&str> = all
        .iter()
        .map(|figure| figure["experiment"].as_str().unwrap())
        .collect();
    assert_eq!(found, HashSet::from(EXPERIMENTS));
    let metrics = documented("metric");
    for figure in all {
        assert!(ours(figure).is_finite(), "{figure}");
        let metric = figure["metric"].as_str().unwrap();
        assert!(metrics.contains(&metric), "{metric}");
    }
    // What the paper prints of TAR stands beside.
    let printed = figures(
        &report,
        "table3",
        "4 windows in parallel",
        "delta_compression_ratio",
    );
    assert_eq!(printed[0]["paper"], 7.845);
    let claims = report["claims"].as_array().unwrap().iter();
    let untested: Vec<&Value> = claims.filter(|it| it["verdict"] == "not_tested").collect();
    assert!(untested.is_empty(), "{untested:?}");
}

/// Broder's theorem: estimates come as near to the similarity as the equations say.
#[test]
fn errors_are_those_of_the_equations() {
    let sandbox = Sandbox::new();
    let line = [
        "paper",
        "odess",
        "--experiments",
        "fig11,fig12",
        "--synthetic",
        "4M",
        "--json",
        "-q",
    ];
    let report: Value = serde_json::from_str(&sandbox.ok(&line)).unwrap();
    let errors = |approach| figures(&report, "fig12", approach, "estimating_error");
    let expected = errors("Eq. 6");
    assert_eq!(expected.len(), 10);
    for (found, computed) in errors("N-Transform").into_iter().zip(&expected) {
        assert_eq!(found["x"], computed["x"]);
        assert!(
            (ours(found) - ours(computed)).abs() < 0.02,
            "{found} {computed}"
        );
    }
    let union = errors("Eq. 9 over the union, 1/128");
    for (found, computed) in errors("Odess+").into_iter().zip(union) {
        assert!(
            (ours(found) - ours(computed)).abs() < 0.025,
            "{found} {computed}"
        );
    }
    assert_eq!(verdict(&report, "More and longer modifications"), "holds");
    assert_eq!(
        verdict(&report, "All three have a lower mean error"),
        "holds"
    );
}

#[test]
fn detectors_that_follow_the_contents_save_more_than_finesse() {
    let sandbox = with_data();
    let report = report(&sandbox, "fig16-21,fig6");
    let ratios = |approach| figures(&report, "fig16-21", approach, "delta_compression_ratio");
    for approach in ["N-Transform", "Odess", "Odess+"] {
        for (found, finesse) in ratios(approach).into_iter().zip(ratios("Finesse")) {
            assert!(ours(found) > 2.0 && ours(found) > ours(finesse), "{found}");
        }
    }
    let masks = figures(
        &report,
        "fig6",
        "mask 4, scattered bits",
        "sampling_errors_per_million",
    );
    assert_eq!(masks[0]["paper"], 10.0);
}

#[test]
fn people_get_tables_plots_and_csv() {
    let sandbox = with_data();
    let files = ["--html", "page.html", "--csv=figures.csv"];
    let picked = ["--experiments", "fig7,fig16-21,table3"];
    let text = run(&sandbox, &[&picked[..], &files].concat());
    for words in [
        "Odess+",
        "DCE",
        "What the paper says",
        "492 tarred files",
        "p = 30 %, 1/128",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.contains("<svg viewBox"));
    for word in [
        "http:", "https:", "src=", "href=", "url(", "<script", "NaN", "inf<",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    let csv = fs::read_to_string(sandbox.path("figures.csv")).unwrap();
    let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(columns, documented("figure"));
}

#[test]
fn without_data_only_what_is_made_up_is_run() {
    let sandbox = Sandbox::new();
    let text = sandbox.ok(&["paper", "odess", "--synthetic", "64K", "--runs", "1", "-q"]);
    assert!(
        text.contains("Fig. 14") && text.contains("Eqs. 6 and 9"),
        "{text}"
    );
    assert!(text.contains("Table 3: windows in parallel of Odess+, chunks of 8 KB: not run"));
    let run = sandbox.run(&["paper", "odess", "--experiments", "fig8"]);
    let told = run.expect(2).stderr;
    assert!(told.contains("fig16-21"), "{told}");
}
