//! `onefold-lab paper macs`: what it prints on small data.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::documented::{assert_documented, documented};
use crate::sandbox::{Sandbox, noise};

const EXPERIMENTS: [&str; 12] = [
    "fig1",
    "fig2",
    "fig3",
    "fig6",
    "regions",
    "fig7",
    "versions",
    "caches",
    "fig8",
    "rewriting",
    "fig9",
    "lookups",
];

/// Three versions of a tree: many small files, which change a little, and some large ones.
fn with_data() -> Sandbox {
    let sandbox = Sandbox::new();
    for number in 0..900u64 {
        let length = match number % 60 {
            0 => 300_000,
            part => 120 * part as usize + 1,
        };
        let mut bytes = noise(number, length);
        for version in 1..=3 {
            sandbox.write(
                &format!("tree/v{version}/{}/f{number:03}", number % 7),
                &bytes,
            );
            if number % 5 == version {
                bytes.splice(length / 2..length / 2, *b"something in between");
            }
        }
    }
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    fs::create_dir_all(sandbox.path("scratch")).unwrap();
    let line = [
        "paper",
        "macs",
        "--data",
        "GDB=tree",
        "--scratch",
        "scratch",
        "--threads",
        "2",
        "-q",
    ];
    sandbox.ok(&[&line[..], arguments].concat())
}

fn verdict<'a>(report: &'a Value, beginning: &str) -> &'a str {
    let claims = report["claims"].as_array().unwrap();
    let found = claims
        .iter()
        .find(|claim| claim["claim"].as_str().unwrap().starts_with(beginning));
    found.unwrap()["verdict"].as_str().unwrap()
}

fn figure(report: &Value, wanted: [&str; 3], x: f64) -> f64 {
    let [experiment, approach, metric] = wanted;
    let figures = report["figures"].as_array().unwrap();
    let found = figures.iter().find(|figure| {
        figure["experiment"] == experiment
            && figure["approach"] == approach
            && figure["metric"] == metric
            && figure["x"] == x
    });
    found.unwrap()["ours"].as_f64().unwrap()
}

#[test]
fn every_experiment_gives_documented_figures_and_nothing_is_left_behind() {
    let sandbox = with_data();
    let report: Value = serde_json::from_str(&run(&sandbox, &["--json"])).unwrap();
    assert_eq!(report["paper"], "macs");
    assert_documented(&report, "summary of paper");
    assert_documented(&report["settings"], "paper settings");
    assert_documented(&report["data_sets"][0], "data set");
    assert_documented(&report["data_sets"][0]["data"], "data");
    assert_documented(&report["figures"][0], "figure");
    assert_documented(&report["claims"][0], "claim");
    assert_eq!(report["data_sets"][0]["data"]["files"], 2700);
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
    let left = fs::read_dir(sandbox.path("scratch")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn small_files_are_what_the_schemes_differ_by() {
    let sandbox = with_data();
    let arguments = [
        "--json",
        "--form",
        "paper",
        "--experiments",
        "fig6,fig7,fig9",
    ];
    let report: Value = serde_json::from_str(&run(&sandbox, &arguments)).unwrap();
    for claim in [
        "MACS fills them best",
        "MACS fills over 95 %",
        "MACS has the highest speed factor",
        "From version 2 on",
    ] {
        let found = verdict(&report, claim);
        // Little data fills few containers, and the last one of each scheme only in part.
        assert_ne!(found, "not_tested", "{claim}");
    }
    assert_eq!(
        verdict(&report, "In onefold's form MACS fills best"),
        "not_tested"
    );
    let containers = |scheme| figure(&report, ["fig6", scheme, "containers"], 16_384.0);
    assert!(containers("MACS") < containers("baseline"));
    let speed = |scheme| figure(&report, ["fig7", scheme, "speed_factor"], 16_384.0);
    assert!(speed("MACS") > speed("baseline"));
    assert!(figure(&report, ["fig9", "by length", "hit_ratio_percent"], 3.0) > 95.0);
}

#[test]
fn people_get_tables_plots_and_csv() {
    let sandbox = with_data();
    let files = ["--html", "page.html", "--csv=figures.csv"];
    let picked = ["--form", "ours", "--experiments", "fig1,fig6,fig7"];
    let text = run(&sandbox, &[&picked[..], &files].concat());
    for words in [
        "MACS, ours",
        "FILLING",
        "What the paper says",
        "7.4 GB: 48 releases",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(!text.contains("MACS, closed"));
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
fn without_data_it_says_what_is_wanted() {
    let sandbox = Sandbox::new();
    let text = sandbox.ok(&["paper", "macs", "-q"]);
    assert!(
        text.contains("Fig. 6") && text.contains("it needs --data NAME=PATH"),
        "{text}"
    );
    sandbox.write("empty/nothing", b"");
    let run = sandbox
        .run(&["paper", "macs", "--data", "X=empty"])
        .expect(1);
    assert!(run.stderr.contains("empty"), "{}", run.stderr);
    sandbox.write("set/v1", b"some");
    let scratch = ["--scratch", "gone", "--data", "X=set"];
    let run = sandbox
        .run(&[&["paper", "macs"][..], &scratch].concat())
        .expect(1);
    assert!(run.stderr.contains("scratch"), "{}", run.stderr);
}
