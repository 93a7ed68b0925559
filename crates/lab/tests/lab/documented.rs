//! What docs/guide/lab-json.md says of JSON, for comparison.

use serde_json::Value;

pub const PAGE: &str = include_str!("../../../../docs/guide/lab-json.md");

/// The fields that the page names under a heading: the first column of its table.
pub fn documented(heading: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once(&format!("\n### {heading}\n")).unwrap();
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap()).collect()
}

/// Makes sure that an object has exactly the documented fields.
#[track_caller]
pub fn assert_documented(object: &Value, heading: &str) {
    let mut expected = documented(heading);
    let mut found: Vec<&str> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    if !found.contains(&"path_hex") {
        expected.retain(|field| *field != "path_hex");
    }
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{heading}");
}
