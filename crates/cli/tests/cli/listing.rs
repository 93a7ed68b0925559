//! `ls` and `diff`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::sandbox::Sandbox;

#[test]
fn listings_go_as_deep_as_asked() {
    let sandbox = Sandbox::with_repository();
    symlink("a.txt", sandbox.path("tree/link")).unwrap();
    sandbox.backup_tree();
    let tree = sandbox.text("tree");
    let paths = |names: &[&str]| {
        names
            .iter()
            .map(|name| format!("{tree}/{name}\n"))
            .collect::<String>()
    };
    assert_eq!(
        sandbox.ok(&["ls", "latest"]),
        paths(&["a.txt", "link", "sub"])
    );
    let below = paths(&["sub/b.txt", "sub/deep", "sub/deep/c.bin"]);
    assert_eq!(
        sandbox.ok(&["ls", "latest", &format!("{tree}/sub"), "-R"]),
        below
    );
    let file = format!("{tree}/a.txt");
    assert_eq!(sandbox.ok(&["ls", "latest", &file]), paths(&["a.txt"]));
    let long = sandbox.ok(&["ls", "latest", "-l"]);
    assert!(long.contains("/link -> a.txt"), "{long}");
    assert!(long.contains("6 B"), "{long}");
    let root = sandbox.ok(&["ls", "latest", "/"]);
    assert_eq!(root.lines().count(), 1, "{root}");
}

#[test]
fn names_of_any_bytes_are_listed() {
    let sandbox = Sandbox::with_repository();
    let odd = b"odd\xff\nname";
    fs::write(sandbox.path("tree").join(OsStr::from_bytes(odd)), b"").unwrap();
    sandbox.backup_tree();
    let mut expected = sandbox.text("tree").into_bytes();
    expected.extend_from_slice(b"/odd\xff\nname\0");
    let run = sandbox.run(&["ls", "latest", "-0"]).expect(0);
    let listed = run.stdout_bytes;
    assert!(
        listed
            .windows(expected.len())
            .any(|window| window == expected)
    );
    let events = sandbox.events(&["ls", "latest"]);
    let hex = |event: &serde_json::Value| event["path_hex"].as_str().map(str::to_owned);
    let with_hex: Vec<String> = events.iter().filter_map(hex).collect();
    assert_eq!(with_hex.len(), 1);
    assert!(with_hex[0].ends_with("6f6464ff0a6e616d65"), "{with_hex:?}");
}

#[test]
fn differences_are_marked() {
    let sandbox = Sandbox::with_repository();
    sandbox.write("tree/kind", b"a file");
    let first = sandbox.backup_tree();
    sandbox.write("tree/new.txt", b"new");
    sandbox.write("tree/a.txt", b"first, changed\n");
    fs::remove_file(sandbox.path("tree/sub/deep/c.bin")).unwrap();
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(sandbox.path("tree/sub/b.txt"), mode).unwrap();
    fs::remove_file(sandbox.path("tree/kind")).unwrap();
    fs::create_dir(sandbox.path("tree/kind")).unwrap();
    let second = sandbox.backup_tree();
    let run = sandbox.run(&["diff", &first[..8], "latest"]).expect(0);
    let tree = sandbox.text("tree");
    for (sign, name) in [
        ('+', "new.txt"),
        ('M', "a.txt"),
        ('-', "sub/deep/c.bin"),
        ('U', "sub/b.txt"),
        ('T', "kind"),
    ] {
        let line = format!("{sign} {tree}/{name}\n");
        assert!(run.stdout.contains(&line), "no {line} in {run:#?}");
    }
    assert!(run.stderr.contains("1 added"), "{run:#?}");
    let same = sandbox.ok(&["diff", &second, &second]);
    assert_eq!(same, "");
}
