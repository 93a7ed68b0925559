//! `onefold-lab paper ss-cdc`, `rapidcdc` and `p-dedupe`: what they print on small data.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::documented::{assert_documented, documented};
use crate::sandbox::{Sandbox, noise};

/// A place with versions of one file, longer than the segments of 1 MiB.
fn with_data() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut bytes = noise(1, 1_300_000);
    for version in 0..3 {
        bytes.splice(400_000 * version..400_000 * version, noise(9, 100));
        sandbox.write(&format!("set/{version}.tar"), &bytes);
    }
    sandbox
}

const PAPERS: [(&str, &str, &[&str]); 3] = [
    (
        "ss-cdc",
        "Cassandra=set",
        &[
            "fig2.1", "table2.1", "fig2.5", "fig2.6", "fig2.7", "fig2.8", "fig2.9", "fig2.10",
        ],
    ),
    (
        "rapidcdc",
        "Nodejs=set",
        &[
            "fig3.1", "fig3.2", "fig3.3", "fig3.7", "fig3.8", "fig3.9", "fig3.10", "fig3.11",
            "fig3.12", "fig3.13", "fig3.14", "fig3.15", "fig3.16", "fig3.17",
        ],
    ),
    (
        "p-dedupe",
        "GCC=set",
        &[
            "fig9", "fig10", "fig11", "fig12", "fig13", "fig14", "eq8", "table3", "table5",
            "table6", "fold", "stages", "eq6", "cores",
        ],
    ),
];

fn run(sandbox: &Sandbox, paper: &str, set: &str, arguments: &[&str]) -> String {
    let line = [
        "paper",
        paper,
        "--data",
        set,
        "--runs",
        "1",
        "--synthetic",
        "4M",
        "--threads",
        "2",
        "-q",
    ];
    sandbox.ok(&[&line[..], arguments].concat())
}

fn figures<'a>(report: &'a Value, metric: &str) -> Vec<&'a Value> {
    let figures = report["figures"].as_array().unwrap().iter();
    figures
        .filter(|figure| figure["metric"] == metric)
        .collect()
}

/// The verdict on a claim that begins so.
fn verdict<'a>(report: &'a Value, beginning: &str) -> &'a str {
    let claims = report["claims"].as_array().unwrap();
    let found = claims.iter().find(|claim| {
        let claim = claim["claim"].as_str().unwrap();
        claim.starts_with(beginning)
    });
    found.unwrap()["verdict"].as_str().unwrap()
}

#[test]
fn every_experiment_gives_documented_figures() {
    let sandbox = with_data();
    for (paper, set, experiments) in PAPERS {
        let report: Value = serde_json::from_str(&run(&sandbox, paper, set, &["--json"])).unwrap();
        assert_eq!(report["paper"], paper);
        assert_documented(&report, "summary of paper");
        assert_documented(&report["settings"], "paper settings");
        assert_documented(&report["data_sets"][0], "data set");
        assert_documented(&report["figures"][0], "figure");
        assert_documented(&report["claims"][0], "claim");
        let all = report["figures"].as_array().unwrap();
        let found: HashSet<&str> = all
            .iter()
            .map(|figure| figure["experiment"].as_str().unwrap())
            .collect();
        assert_eq!(found, experiments.iter().copied().collect(), "{paper}");
        let metrics = documented("metric");
        for figure in all {
            assert!(figure["ours"].as_f64().unwrap().is_finite(), "{figure}");
            let metric = figure["metric"].as_str().unwrap();
            assert!(metrics.contains(&metric), "{metric}");
        }
    }
}

#[test]
fn invariance_is_what_was_found_by_comparing() {
    let sandbox = with_data();
    let arguments = ["--json", "--experiments", "table2.1"];
    let text = run(&sandbox, "ss-cdc", "Cassandra=set", &arguments);
    let report: Value = serde_json::from_str(&text).unwrap();
    for (approach, is_invariant) in [
        ("P-Dedupe", 0.0),
        ("MUCH", 1.0),
        ("Shredder", 0.0),
        ("SS-CDC", 1.0),
        ("SS-CDC, lazy", 1.0),
    ] {
        let of_random = |metric| {
            let mut figures = figures(&report, metric).into_iter();
            let found = figures
                .find(|figure| figure["data_set"] == "RANDOM" && figure["approach"] == approach);
            found.unwrap().clone()
        };
        let figure = of_random("is_invariant");
        assert_eq!(figure["ours"], is_invariant, "{approach}");
        if approach != "SS-CDC, lazy" {
            assert_eq!(figure["paper"], is_invariant, "{approach}");
        }
        let different = of_random("cut_lists_different")["ours"].as_f64().unwrap();
        assert_eq!(different == 0.0, is_invariant == 1.0, "{approach}");
        assert!(of_random("cut_lists")["ours"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(verdict(&report, "SS-CDC and MUCH cut exactly"), "holds");
    assert_eq!(verdict(&report, "P-Dedupe and Shredder"), "holds");
    assert_eq!(verdict(&report, "Segments of 1 MB"), "not_tested");
}

#[test]
fn what_does_not_hang_on_time_is_as_the_papers_say() {
    let sandbox = with_data();
    let arguments = ["--json", "--experiments", "fig3.7,fig3.12,fig3.16"];
    let text = run(&sandbox, "rapidcdc", "Nodejs=set", &arguments);
    let report: Value = serde_json::from_str(&text).unwrap();
    let ratio = |approach: &str| {
        let mut figures = figures(&report, "dedup_ratio").into_iter();
        let found = figures
            .find(|figure| figure["experiment"] == "fig3.12" && figure["approach"] == approach);
        found.unwrap()["ours"].as_f64().unwrap()
    };
    // Its cuts are those of regular chunking, whatever the history.
    assert_eq!(ratio("FF+RWT+FPT"), ratio("regular CDC"));
    let regular = figures(&report, "dedup_ratio");
    let regular = regular
        .iter()
        .find(|figure| figure["approach"] == "regular CDC" && figure["experiment"] == "fig3.12");
    assert_eq!(regular.unwrap()["paper"], 41.4);
    assert_eq!(verdict(&report, "Fixed-size chunking saves less"), "holds");

    let arguments = ["--json", "--experiments", "table3,eq8"];
    let text = run(&sandbox, "p-dedupe", "GCC=set", &arguments);
    let report: Value = serde_json::from_str(&text).unwrap();
    let saved = figures(&report, "dedup_saved_percent");
    let printed: Vec<f64> = saved
        .iter()
        .map(|figure| figure["paper"].as_f64().unwrap())
        .collect();
    assert_eq!(printed, [40.75, 40.54, 40.74]);
    assert!(report["notes"].to_string().contains("0.614 KB"));
}

#[test]
fn people_get_tables_plots_and_csv() {
    let sandbox = with_data();
    for (paper, set, experiments) in PAPERS {
        let picked = experiments[experiments.len() - 2..].join(",");
        let text = run(
            &sandbox,
            paper,
            set,
            &[
                "--experiments",
                &picked,
                "--html",
                "page.html",
                "--csv=figures.csv",
            ],
        );
        for words in ["APPROACH", "What the paper says", "median of 1 pass"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
        assert!(page.contains("<svg viewBox"), "{paper}");
        for word in [
            "http:", "https:", "src=", "href=", "url(", "<script", "NaN", "inf<",
        ] {
            assert!(!page.contains(word), "{paper}: {word}");
        }
        let csv = fs::read_to_string(sandbox.path("figures.csv")).unwrap();
        let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        assert_eq!(columns, documented("figure"));
    }
}

#[test]
fn without_data_only_what_is_made_up_is_run() {
    let sandbox = Sandbox::new();
    let line = [
        "paper",
        "p-dedupe",
        "--runs",
        "1",
        "--synthetic",
        "2M",
        "-q",
    ];
    let text = sandbox.ok(&line);
    assert!(text.contains("case 5"), "{text}");
    assert!(text.contains("Table 3: dedup with segments of 4 MiB, cut by Rabin's hash: not run"));
}

/// Eq. 6 gives each thread a core: the paper's eight threads had four.
#[test]
fn the_papers_own_times_need_its_cores() {
    let sandbox = Sandbox::new();
    let line = ["paper", "p-dedupe", "--experiments", "eq6", "--json", "-q"];
    let text = sandbox.ok(&[&line[..], &["--fingerprint", "blake3"]].concat());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["settings"]["fingerprint"], "blake3");
    let computed = figures(&report, "predicted_bytes_per_second");
    let computed: Vec<f64> = computed
        .iter()
        .map(|figure| (figure["ours"].as_f64().unwrap() / 1e6).round())
        .collect();
    assert_eq!(computed, [143.0, 245.0, 980.0, 573.0]);
    let with_own = "With the paper's own Tc, Tf and N = 4, Eq. 6";
    assert_eq!(verdict(&report, with_own), "does_not_hold");
    assert_eq!(verdict(&report, "So it does when its four cores"), "holds");
    assert_eq!(verdict(&report, "The baseline takes"), "not_tested");
}

/// What whole systems save is what chunking alone says.
#[test]
fn whole_systems_store_what_chunking_alone_finds() {
    let sandbox = with_data();
    let arguments = ["--json", "--experiments", "table6,fold,fig12"];
    let text = run(&sandbox, "p-dedupe", "GCC=set", &arguments);
    let report: Value = serde_json::from_str(&text).unwrap();
    let saved = figures(&report, "dedup_saved_percent");
    assert_eq!(saved.len(), 3 + 1 + 5 * 3);
    let throughput = figures(&report, "dedup_bytes_per_second");
    let published: Vec<&&Value> = throughput
        .iter()
        .filter(|figure| !figure["paper"].is_null())
        .collect();
    let printed: Vec<f64> = published
        .iter()
        .map(|figure| figure["paper"].as_f64().unwrap() / 1e6)
        .collect();
    assert_eq!(printed, [162.0, 590.0]);
    let with = published[1]["approach"].as_str().unwrap();
    assert_eq!(with, "P-Dedupe with jointing, 3 + 5 threads");
    assert_eq!(
        verdict(&report, "P-Dedupe saves nearly what the baseline saves"),
        "holds"
    );
}

#[test]
fn wrong_usage_is_2_and_any_name_of_a_set_will_do() {
    let sandbox = with_data();
    for (arguments, words) in [
        (&["--data", "set"][..], "has no path"),
        (&["--experiments", "fig2.2"], "they are fig2.1, table2.1"),
        (&["--runs", "0"], "at least one pass"),
        (&["--synthetic", "0"], "leaves nothing"),
    ] {
        let run = sandbox
            .run(&[&["paper", "ss-cdc"], arguments].concat())
            .expect(2);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
    let text = run(&sandbox, "ss-cdc", "mine=set", &["--experiments", "fig2.9"]);
    assert!(text.contains("mine: 3.7 MiB in 3 streams\n"), "{text}");
}
