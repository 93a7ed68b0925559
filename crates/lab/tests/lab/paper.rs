//! `onefold-lab paper fastcdc`: what it prints on small data.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::documented::{assert_documented, documented};
use crate::sandbox::{Sandbox, noise};

/// A place with small data sets: versions of one file, and files of many sizes.
fn with_data() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut bytes = noise(1, 400_000);
    for version in 0..3 {
        bytes.splice(50_000 * version..50_000 * version, noise(9, 100));
        sandbox.write(&format!("tar/{version}.tar"), &bytes);
    }
    for number in 0..20 {
        sandbox.write(
            &format!("lnx/{number}.c"),
            &noise(number, 500 * number as usize),
        );
    }
    sandbox
}

/// Everything but the counting of instructions, which takes a second for each approach.
const EXPERIMENTS: &str = "fig5,fig9,table3,fig10,fig11,fig12,fig13,table4,table5,fig14,fig15";
const DATA: [&str; 8] = [
    "paper", "fastcdc", "--data", "tar=tar", "--data", "LNX=lnx", "--runs", "1",
];

fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let size = ["--size", "1M", "-q", "--experiments", EXPERIMENTS];
    sandbox.ok(&[&DATA[..], &size, arguments].concat())
}

#[test]
fn every_field_is_documented_and_every_experiment_there() {
    let sandbox = with_data();
    let report: Value = serde_json::from_str(&run(&sandbox, &["--json"])).unwrap();
    assert_documented(&report, "summary of paper");
    assert_documented(&report["settings"], "paper settings");
    assert_documented(&report["machine"], "machine");
    assert_documented(&report["data_sets"][0], "data set");
    assert_documented(&report["data_sets"][0]["data"], "data");
    assert_documented(&report["figures"][0], "figure");
    assert_documented(&report["distributions"][0], "distribution");
    assert_documented(&report["claims"][0], "claim");
    let figures = report["figures"].as_array().unwrap();
    let found: HashSet<&str> = figures
        .iter()
        .map(|figure| figure["experiment"].as_str().unwrap())
        .collect();
    for experiment in EXPERIMENTS.split(',').filter(|name| *name != "fig15") {
        assert!(found.contains(experiment), "{experiment}");
    }
    assert!(report["notes"].to_string().contains("Fig. 15"));
    let is_fixed = |figure: &&Value| figure["approach"] == "FIXC" && figure["data_set"] == "TAR";
    let fixed: Vec<_> = figures.iter().filter(is_fixed).collect();
    assert_eq!(fixed[0]["paper"], 15.77);
    assert_eq!(fixed[1]["paper"], 10239.0);
    let claims = report["claims"].as_array().unwrap();
    let same = claims
        .iter()
        .find(|claim| claim["claim"] == "FC' cuts exactly where FC does");
    assert_eq!(same.unwrap()["verdict"], "holds");
    let fails = |claim: &&Value| claim["claim"].as_str().unwrap().starts_with("FIXC fails");
    assert_eq!(claims.iter().find(fails).unwrap()["verdict"], "holds");
}

#[test]
fn people_get_tables_and_verdicts() {
    let sandbox = with_data();
    let text = run(&sandbox, &["--html", "page.html", "--csv=figures.csv"]);
    for words in [
        "Table 3: RC, GC and FC",
        "RC 16K",
        "FC'-v3",
        "NC-2, min 6K",
        "55.02 %",
        "What the paper says",
        "holds          FC' cuts exactly where FC does",
        "Fig. 15: throughput of a whole system: not run",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.matches("<svg viewBox").count() > 15);
    for word in [
        "http:", "https:", "src=", "href=", "url(", "<script", "NaN", "inf",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    let csv = fs::read_to_string(sandbox.path("figures.csv")).unwrap();
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(columns, documented("figure"));
    assert!(lines.count() > 100);
}

#[test]
fn without_data_only_random_numbers_are_cut() {
    let sandbox = Sandbox::new();
    let line = [
        "paper",
        "fastcdc",
        "--runs",
        "1",
        "--size",
        "1M",
        "--experiments",
        "fig5,fig9",
    ];
    let text = sandbox.ok(&line);
    assert!(text.contains("RANDOM: 1.0 MiB in 1 stream"));
    assert!(text.contains("Fig. 9: sizes of chunks with normalized chunking: not run"));
}

#[test]
fn instructions_are_counted_or_it_is_said_why_not() {
    let sandbox = with_data();
    let line = [&DATA[..], &["--size", "20K", "--experiments", "table6"]].concat();
    let text = sandbox.ok(&line);
    let is_counted = text.contains("INSTRUCTIONS/B") && text.contains("FC'-v3");
    assert!(is_counted || text.contains("not readable here"), "{text}");
}

#[test]
fn wrong_usage_is_2_and_says_what_is_right() {
    let sandbox = with_data();
    for (arguments, words) in [
        (&["--data", "FOO=tar"][..], "it has TAR, LNX, WEB"),
        (&["--data", "tar"], "has no path"),
        (&["--experiments", "fig6"], "they are fig5, fig9"),
        (&["--runs", "0"], "at least one pass"),
        (&["--size", "0"], "leaves nothing"),
    ] {
        let run = sandbox
            .run(&[&["paper", "fastcdc"], arguments].concat())
            .expect(2);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
    let line = [
        "paper",
        "fastcdc",
        "--data",
        "TAR=gone",
        "--experiments",
        "table4",
    ];
    let run = sandbox.run(&line).expect(1);
    assert!(run.stderr.contains("cannot read gone"));
}
