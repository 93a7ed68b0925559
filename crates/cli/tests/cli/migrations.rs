//! `migrate`.

use std::path::Path;

use crate::sandbox::{Sandbox, files_below};

/// A place with a sample of a repository from before there were migrations.
fn with_old_repository() -> Sandbox {
    let sandbox = Sandbox::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/v1/plain");
    for (name, bytes) in files_below(&sample) {
        sandbox.write(Path::new("repository").join(name).to_str().unwrap(), &bytes);
    }
    sandbox
}

#[test]
fn a_repository_of_before_is_migrated() {
    let sandbox = with_old_repository();
    let config = || std::fs::read(sandbox.path("repository/config")).unwrap();
    let before = config();
    let text = sandbox.ok(&["migrate"]);
    assert!(
        text.contains("several-sections") && text.contains("can be done"),
        "{text}"
    );
    assert!(text.contains("format version 1"), "{text}");
    let text = sandbox.ok(&["migrate", "several-sections", "-n"]);
    assert!(text.starts_with("Would do several-sections"), "{text}");
    assert_eq!(config(), before);
    let text = sandbox.ok(&["migrate", "several-sections"]);
    assert_eq!(text, "Done: several-sections\n");
    assert_ne!(config(), before);
    let events = sandbox.events(&["migrate", "several-sections"]);
    let summary = events.last().unwrap();
    assert_eq!(summary["is_applied"], false);
    assert_eq!(summary["features"][0], "several-sections");
    assert!(sandbox.ok(&["migrate"]).contains("done"));
    sandbox.ok(&["check", "--read-data"]);
    sandbox.ok(&["prune"]);
}

#[test]
fn failures_are_told() {
    let sandbox = with_old_repository();
    sandbox
        .run(&["migrate", "no-such"])
        .expect(2)
        .says("several-sections");
    sandbox.run(&["migrate", "-n"]).expect(2);
    // Whoever is at work has read the old configuration.
    sandbox.write(
        "repository/runs/00112233445566778899aabbccddeeff",
        b"what can't be read may be a writer",
    );
    sandbox
        .run(&["migrate", "several-sections"])
        .expect(1)
        .says("at work");
}
