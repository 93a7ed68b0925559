//! `onefold-lab keys`: what it prints, and how it fails.

use serde_json::Value;

use crate::documented::assert_documented;
use crate::sandbox::Sandbox;

fn keys(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let line = [&["keys", "tree", "--json", "-q"], arguments].concat();
    sandbox.run(&line).expect(0).json()
}

#[test]
fn every_field_is_documented() {
    let sandbox = Sandbox::with_tree();
    let report = keys(&sandbox, &["-a", "fastcdc,fold,gear", "--keys", "3"]);
    assert_documented(&report, "summary of keys");
    assert_eq!(report["keys"], 3);
    let files = sandbox.tree();
    let bytes: usize = files.iter().map(Vec::len).sum();
    assert_eq!(report["bytes"], bytes);
    let results = report["results"].as_array().unwrap();
    let labels: Vec<_> = results.iter().map(|result| &result["label"]).collect();
    assert_eq!(labels, ["fastcdc", "fold", "gear"]);
    for result in results {
        assert_documented(result, "result of keys");
        let number = |field: &str| result[field].as_f64().unwrap();
        assert!(number("dedup_ratio_least") <= number("dedup_ratio"));
        assert!(number("dedup_ratio") <= number("dedup_ratio_most"));
        assert!(number("mean_bytes") > 2048.0);
    }
    // The first stands on its own curve, and gear has no normal size.
    let gain = results[0]["equal_mean_gain_percent"].as_f64().unwrap();
    assert!(gain.abs() < 1e-9, "{gain}");
    assert!(results[1]["equal_mean_dedup_ratio"].is_f64());
    assert!(results[2]["equal_mean_dedup_ratio"].is_null());
}

#[test]
fn one_key_is_what_several_are_made_of() {
    let sandbox = Sandbox::with_tree();
    let ratios = |count: &str| {
        let report = keys(&sandbox, &["-a", "fold", "--keys", count]);
        let result = &report["results"][0];
        ["dedup_ratio", "dedup_ratio_least", "dedup_ratio_most"]
            .map(|field| result[field].as_f64().unwrap())
    };
    let [first, least, most] = ratios("1");
    assert!(first == least && first == most);
    let [mean, least, most] = ratios("2");
    // The second key's is the other end.
    let second = if first == least { most } else { least };
    assert!((mean - (first + second) / 2.0).abs() < 1e-12);
}

#[test]
fn little_memory_changes_nothing() {
    let sandbox = Sandbox::with_tree();
    let arguments = ["--max", "16K", "--keys", "2", "-a", "fold,fastcdc"];
    let whole = keys(&sandbox, &arguments);
    let pieces = keys(&sandbox, &[&arguments[..], &["--memory", "80K"]].concat());
    assert_eq!(whole, pieces);
}

#[test]
fn people_get_a_table() {
    let sandbox = Sandbox::with_tree();
    let text = sandbox.ok(&["keys", "tree", "--keys", "2"]);
    for word in [
        "ALGORITHM",
        "AT EQUAL MEAN",
        "\n fold ",
        "means over 2 keys",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let help = sandbox.ok(&["keys", "--help"]);
    assert!(
        help.contains("algorithm.\n\nExit codes:\n    0  done\n"),
        "{help}"
    );
}

#[test]
fn wrong_usage_is_2_and_says_what_is_wrong() {
    let sandbox = Sandbox::with_tree();
    for (arguments, words) in [
        (&["-a", "fixed"][..], "fixed takes no key"),
        (&["-a", "fold,x"], "no algorithm 'x'"),
        (&["--keys", "0"], "--keys"),
        (&["-a", "gear", "--avg", "5000"], "power of two"),
    ] {
        let run = sandbox.run(&[&["keys", "tree"], arguments].concat());
        let run = run.expect(2);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
    let run = sandbox.run(&["keys", "tree", "--json", "-a", "fixed"]);
    assert_documented(&run.expect(2).json(), "error");
}
