//! `onefold-lab similar`: what it prints, and how it fails.

use serde_json::Value;

use crate::documented::{assert_documented, documented};
use crate::sandbox::{Sandbox, noise};

/// Six versions of three files of which each differs a little from the one before, all over.
fn with_versions() -> Sandbox {
    let sandbox = Sandbox::new();
    for file in 0..3 {
        let mut bytes = noise(file, 400_000);
        for version in 1..=6 {
            sandbox.write(&format!("tree/v{version}/f{file}"), &bytes);
            for place in (version * 700..bytes.len()).step_by(6000) {
                bytes[place] ^= 0x55;
            }
            bytes.splice(90_000..90_000, *b"some bytes in between");
        }
    }
    sandbox
}

fn similar(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let line = ["similar", "tree", "--json", "-q", "--runs", "1"];
    sandbox
        .run(&[&line[..], arguments].concat())
        .expect(0)
        .json()
}

fn results<'a>(report: &'a Value, study: &str) -> Vec<&'a Value> {
    let all = report["results"].as_array().unwrap().iter();
    all.filter(|result| result["study"] == study).collect()
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap()
}

#[test]
fn every_field_is_documented_and_every_setting_agrees_with_itself() {
    let sandbox = with_versions();
    let studies = "detectors,bases,depths,limits,codecs,index";
    let report = similar(&sandbox, &["--study", studies]);
    assert_documented(&report, "summary of similar");
    assert_documented(&report["settings"], "similar settings");
    assert_documented(&report["machine"], "machine");
    assert_documented(&report["data"], "data");
    assert_documented(&report["chunks"], "chunks");
    let unique = number(&report["chunks"], "bytes_unique");
    let chunks = number(&report["chunks"], "chunks_unique");
    assert!(unique > 2_000_000.0, "{unique}");
    for result in report["results"].as_array().unwrap() {
        assert_documented(result, "result of similar");
        let left = number(result, "bytes_left");
        assert_eq!(
            number(result, "whole_bytes") + number(result, "delta_bytes"),
            left
        );
        let ratio = number(result, "delta_compression_ratio");
        assert!((ratio - unique / left).abs() < 1e-9);
        let detected = number(result, "detected_chunks");
        assert!(number(result, "delta_chunks") <= detected && detected < chunks);
        let others = chunks - detected;
        let similar = number(result, "similar_chunk_ratio");
        assert!((similar - detected / others).abs() < 1e-9);
        let most = result["depth"].as_f64().unwrap_or(f64::INFINITY);
        assert!(number(result, "mean_depth") <= number(result, "max_depth"));
        assert!(number(result, "max_depth") <= most);
    }
    assert!(report["layouts"].as_array().unwrap().is_empty());
    let lengths =
        ["detectors", "bases", "depths", "limits", "codecs"].map(|it| results(&report, it).len());
    assert_eq!(lengths, [5, 3, 5, 6, 2]);
}

#[test]
fn versions_that_differ_a_little_are_found_and_saved() {
    let sandbox = with_versions();
    let report = similar(&sandbox, &["--study", "detectors,depths,limits,codecs"]);
    for result in results(&report, "detectors") {
        let name = result["detector"].as_str().unwrap();
        // Finesse looks at fixed parts of a chunk.
        let least = if name == "finesse" { 1.2 } else { 3.0 };
        assert!(
            number(result, "delta_compression_ratio") > least,
            "{result}"
        );
        assert_eq!(result["sampling_errors"], 0);
    }
    let depths = results(&report, "depths");
    let limits: Vec<&Value> = depths.iter().map(|result| &result["depth"]).collect();
    assert!(limits[..4].iter().all(|limit| limit.is_u64()) && limits[4].is_null());
    assert_eq!(depths[0]["max_depth"], 1);
    // The shorter deltas must be, the fewer there are.
    let limits = results(&report, "limits");
    let kept: Vec<f64> = limits.iter().map(|it| number(it, "delta_chunks")).collect();
    assert!(kept.windows(2).all(|pair| pair[1] <= pair[0]), "{kept:?}");
    let codecs = results(&report, "codecs");
    let found = codecs
        .iter()
        .map(|result| result["detected_chunks"].as_u64());
    let found: Vec<_> = found.collect();
    assert_eq!(found[0], found[1]);
}

/// Bases are chosen by the features alone: what is varied elsewhere changes nothing.
#[test]
fn the_setting_that_all_studies_share_gives_the_same() {
    let sandbox = with_versions();
    let report = similar(
        &sandbox,
        &["--study", "detectors,bases,depths,limits,codecs,index"],
    );
    let usual = |result: &&&Value| {
        result["detector"] == "odess+"
            && result["base"] == "first"
            && result["depth"] == 1
            && result["codec"] == "instructions"
            && result["delta_limit_percent"] == 100
            && result["index_bytes_per_chunk"].is_null()
    };
    let left: Vec<&Value> = ["detectors", "bases", "depths", "limits", "codecs", "index"]
        .iter()
        .map(|study| {
            let of_study = results(&report, study);
            let found: Vec<&&Value> = of_study.iter().filter(usual).collect();
            assert_eq!(found.len(), 1, "{study}");
            &found[0]["bytes_left"]
        })
        .collect();
    assert!(left.iter().all(|bytes| *bytes == left[0]), "{left:?}");
    // An index that holds less finds no more chunks.
    let detected = |result: &Value| number(result, "detected_chunks");
    let index = results(&report, "index");
    assert!(
        index[1..]
            .iter()
            .all(|it| detected(it) <= detected(index[0]))
    );
    assert!(
        index[1..]
            .iter()
            .any(|it| detected(it) < detected(index[0]))
    );
}

#[test]
fn groups_cost_reads_and_save_bytes() {
    let sandbox = with_versions();
    let report = similar(&sandbox, &["--study", "groups"]);
    let layouts = report["layouts"].as_array().unwrap();
    let unique = number(&report["chunks"], "bytes_unique");
    for layout in layouts {
        assert_documented(layout, "layout");
        let percent = 100.0 * number(layout, "bytes") / unique;
        assert!((number(layout, "left_percent") - percent).abs() < 1e-9);
        assert!(number(layout, "read_units") >= 1.0);
    }
    let of = |label: &str| {
        layouts
            .iter()
            .find(|layout| layout["label"] == label)
            .unwrap()
    };
    let bytes = |label: &str| number(of(label), "bytes");
    // Noise shrinks by what it shares alone.
    assert_eq!(bytes("no delta: per chunk"), unique);
    assert!(bytes("floor: one stream, long") < unique / 3.0);
    assert!(bytes("deltas apart, depth 1: groups 1M") < unique / 3.0);
    assert!(bytes("beside their base: groups 1M") < bytes("no delta: groups 1M"));
    let plain = |label: &str| number(of(label), "read_plain_bytes");
    assert!(plain("no delta: groups 64K") < plain("no delta: groups 256K"));
    assert_eq!(
        plain("no delta: per chunk"),
        number(&report["chunks"], "mean_bytes")
    );
    let units = |label: &str| number(of(label), "read_units");
    assert!(units("deltas apart, depth 1: groups 64K") > 1.0);
    assert!(units("deltas apart, depth 1: groups 64K") <= 2.0);
    // The same by the flag.
    let flag = similar(&sandbox, &["--study", "codecs", "--groups"]);
    assert_eq!(flag["layouts"].as_array().unwrap().len(), layouts.len());
}

#[test]
fn people_get_tables_and_csv() {
    let sandbox = with_versions();
    let line = [
        "similar",
        "tree",
        "--runs",
        "1",
        "-q",
        "--groups",
        "--csv=results.csv",
    ];
    let text = sandbox.ok(&line);
    for words in [
        "DETECTORS",
        "odess+/tiers",
        "unlimited",
        "COMPRESSED TOGETHER",
        "dedup ratio",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let csv = std::fs::read_to_string(sandbox.path("results.csv")).unwrap();
    let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(columns, documented("result of similar"));
    assert_eq!(csv.lines().count(), 1 + 5 + 3 + 5 + 6 + 2);
}

#[test]
fn wrong_usage_is_2_and_says_what_is_wrong() {
    let sandbox = Sandbox::with_tree();
    for (arguments, words) in [
        (&["--detector", "shingles"][..], "no detector called"),
        (&["--depth", "0"], "no depth"),
        (&["--study", "everything"], "detectors"),
        (&["--level", "0"], "not 0"),
        (&["--size", "0"], "leaves nothing"),
        (&["-a", "fold,gear"], "one algorithm"),
    ] {
        let run = sandbox.run(&[&["similar", "tree"], arguments].concat());
        let run = run.expect(2);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
}
