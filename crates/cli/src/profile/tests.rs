//! What profiles add to command lines.

use super::*;

const FILE: &str = "
[home]
repo = '/backup'
password-file = '/secret'
memory = '512MiB'
json = true
verbose = 2
[home.backup]
paths = ['/home/me', '/etc']
exclude = ['*.tmp', '*.bak']
force = false
run-before = 'mount /backup'
run-after = ['umount /backup', 'true']
[home.forget]
keep-last = 3
[home.volume.serve]
";

fn expanded_from(file: &str, words: &[&str]) -> Result<CommandLine, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("profiles.toml");
    std::fs::write(&path, file).unwrap();
    let config = ["--config", path.to_str().unwrap()];
    let words = words[..1].iter().chain(&config).chain(&words[1..]);
    let expanded = expand(words.map(OsString::from).collect());
    let place = format!("{}: ", path.display());
    expanded.map_err(|failure| failure.message.replace(&place, ""))
}

fn added(words: &[&str]) -> String {
    let line = expanded_from(FILE, words).unwrap();
    line.profile.unwrap().added.join(" ")
}

#[test]
fn a_profile_speaks_where_nobody_else_does() {
    let line = expanded_from(FILE, &["onefold", "-P", "home", "backup"]).unwrap();
    let words = shown(&line.words);
    let at = words.iter().position(|word| word == "backup").unwrap();
    assert_eq!(words[0], "onefold");
    let below = &words[at + 1..];
    assert_eq!(
        below,
        ["--exclude=*.tmp", "--exclude=*.bak", "/home/me", "/etc"]
    );
    assert!(words[..at].contains(&"--memory=512MiB".to_owned()));
    assert_eq!(words.iter().filter(|word| *word == "--verbose").count(), 2);
    let hooks = &line.profile.as_ref().unwrap().hooks;
    assert_eq!(hooks.before, ["mount /backup"]);
    assert_eq!(hooks.after, ["umount /backup", "true"]);
    assert!(
        Arguments::command()
            .try_get_matches_from(&line.words)
            .is_ok()
    );
}

#[test]
fn the_command_line_beats_the_profile() {
    let words = [
        "onefold",
        "backup",
        "/srv",
        "-P",
        "home",
        "--memory=1GiB",
        "--exclude",
        "x",
    ];
    let added_words = added(&words);
    for absent in ["memory", "exclude", "/etc"] {
        assert!(!added_words.contains(absent), "{absent}: {added_words}");
    }
    assert!(added_words.contains("--repo=/backup"), "{added_words}");
    let other = added(&[
        "onefold",
        "-P",
        "home",
        "--password-command",
        "pass",
        "snapshots",
    ]);
    assert!(!other.contains("password"), "{other}");
    let other = added(&["onefold", "-P", "home", "-q", "snapshots"]);
    assert!(!other.contains("verbose"), "{other}");
}

#[test]
fn without_a_profile_nothing_is_added() {
    for words in [
        &["onefold", "snapshots"][..],
        &["onefold"],
        &["onefold", "--help"],
        &["onefold", "nonsense"],
    ] {
        let line = expanded_from(FILE, words).unwrap();
        assert_eq!(line.words.len(), words.len() + 2);
        assert!(line.profile.is_none());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (file, expected) in [
        ("[p]\nrepoo = 'x'", "p.repoo: there is no such setting"),
        ("[p]\nprofile = 'x'", "p.profile: there is no such setting"),
        (
            "[p]\nrun-before = 'x'",
            "p.run-before: there is no such setting",
        ),
        (
            "[p.backup]\nrun-before = 7",
            "p.backup.run-before: it is no command",
        ),
        (
            "[p.backup]\nrepo = 'x'",
            "p.backup.repo: there is no such setting",
        ),
        (
            "[p.nonsense]\nx = 1",
            "p.nonsense: there is no such setting",
        ),
        (
            "[p.restore]\nkeep-last = 1",
            "p.restore.keep-last: there is no such setting",
        ),
        (
            "[p]\njson = 'yes'",
            "p.json: its value is none for this setting",
        ),
        (
            "[p.backup]\npaths = ['-x']",
            "p.backup.paths: its value is none for this setting",
        ),
    ] {
        let words = ["onefold", "-P", "p", "snapshots"];
        assert_eq!(expanded_from(file, &words).unwrap_err(), expected);
    }
}
