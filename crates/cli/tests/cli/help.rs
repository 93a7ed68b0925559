//! `--help`, `--version`, completions, manual pages.

use crate::sandbox::{Sandbox, files_below};

const VERBS: [&str; 21] = [
    "init",
    "backup",
    "snapshots",
    "ls",
    "restore",
    "dump",
    "export",
    "import",
    "copy",
    "migrate",
    "diff",
    "forget",
    "tag",
    "protect",
    "unprotect",
    "key",
    "stats",
    "check",
    "repair",
    "completions",
    "man",
];

#[test]
fn every_verb_has_help_with_examples() {
    let sandbox = Sandbox::new();
    let overview = sandbox.ok(&["--help"]);
    assert!(overview.contains("Exit codes:"), "{overview}");
    for verb in VERBS {
        assert!(overview.contains(verb), "{verb}");
        let help = sandbox.ok(&[verb, "--help"]);
        assert!(help.contains("Examples:"), "{help}");
    }
    let version = sandbox.ok(&["--version"]);
    assert_eq!(version, format!("onefold {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_are_made_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.ok(&["completions", shell]);
        assert!(script.contains("snapshots"), "{shell}");
    }
}

#[test]
fn manual_pages_are_made() {
    let sandbox = Sandbox::new();
    assert!(sandbox.ok(&["man"]).contains(".TH onefold"));
    sandbox.ok(&["man", "pages/man1"]);
    let pages = files_below(&sandbox.path("pages/man1"));
    for verb in VERBS {
        let name = format!("onefold-{verb}.1");
        assert!(pages.iter().any(|(page, _)| *page == *name), "{name}");
    }
}
