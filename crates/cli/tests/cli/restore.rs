//! `restore`: what comes back is what was there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::sandbox::{Sandbox, files_below};

#[test]
fn a_directory_comes_back_into_the_target() {
    let sandbox = Sandbox::with_repository();
    symlink("a.txt", sandbox.path("tree/link")).unwrap();
    fs::hard_link(sandbox.path("tree/a.txt"), sandbox.path("tree/again")).unwrap();
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(sandbox.path("tree/sub/b.txt"), mode).unwrap();
    sandbox.backup_tree();
    let tree = format!("latest:{}", sandbox.text("tree"));
    let text = sandbox.ok(&["restore", &tree, "new/out"]);
    assert!(text.contains("Restored"), "{text}");
    assert_eq!(
        files_below(&sandbox.path("tree")),
        files_below(&sandbox.path("new/out"))
    );
    let link = fs::read_link(sandbox.path("new/out/link")).unwrap();
    assert_eq!(link, OsStr::new("a.txt"));
    for name in ["a.txt", "sub/b.txt", "sub/deep/c.bin", "sub"] {
        let before = fs::metadata(sandbox.path("tree").join(name)).unwrap();
        let after = fs::metadata(sandbox.path("new/out").join(name)).unwrap();
        assert_eq!(before.mode(), after.mode(), "{name}");
        let times = |metadata: &fs::Metadata| (metadata.mtime(), metadata.mtime_nsec());
        assert_eq!(times(&before), times(&after), "{name}");
    }
    let inode = |name: &str| fs::metadata(sandbox.path(name)).unwrap().ino();
    assert_eq!(inode("new/out/a.txt"), inode("new/out/again"));
}

#[test]
fn without_a_path_whole_paths_come_back() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    sandbox.ok(&["restore", "latest", "out", "--numeric-ids"]);
    let whole = sandbox.text("tree");
    let below = sandbox.path("out").join(whole.trim_start_matches('/'));
    assert_eq!(files_below(&sandbox.path("tree")), files_below(&below));
}

#[test]
fn one_file_comes_back() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    let file = format!("latest:{}", sandbox.text("tree/a.txt"));
    sandbox.ok(&["restore", &file, "out"]);
    assert_eq!(fs::read(sandbox.path("out/a.txt")).unwrap(), b"first\n");
}

#[test]
fn includes_and_excludes_choose() {
    let sandbox = Sandbox::with_repository();
    sandbox.write("tree/sub/old.txt", b"old");
    sandbox.backup_tree();
    let tree = format!("latest:{}", sandbox.text("tree"));
    let line = [
        "restore",
        &tree,
        "out",
        "--include",
        "*.txt",
        "--exclude",
        "old*",
    ];
    sandbox.ok(&line);
    let names: Vec<_> = files_below(&sandbox.path("out"))
        .into_iter()
        .map(|(name, _)| name.to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["a.txt", "sub/b.txt"]);
}

#[test]
fn files_in_the_way_are_replaced_when_asked_for() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    sandbox.write("out/a.txt", b"in the way\n");
    let tree = format!("latest:{}", sandbox.text("tree"));
    sandbox.ok(&["restore", &tree, "out", "--overwrite"]);
    assert_eq!(fs::read(sandbox.path("out/a.txt")).unwrap(), b"first\n");
}

#[test]
fn a_dry_run_writes_nothing() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    let text = sandbox.ok(&["restore", "latest", "out", "--dry-run"]);
    assert!(text.contains("Would restore 3 files"), "{text}");
    assert!(!sandbox.path("out").exists());
}

#[test]
fn names_of_any_bytes_come_back() {
    let sandbox = Sandbox::with_repository();
    let name = OsStr::from_bytes(b"bad\xff\xfe \x1b[31m\n name");
    fs::write(sandbox.path("tree").join(name), b"odd").unwrap();
    sandbox.backup_tree();
    let tree = format!("latest:{}", sandbox.text("tree"));
    sandbox.ok(&["restore", &tree, "out"]);
    assert_eq!(fs::read(sandbox.path("out").join(name)).unwrap(), b"odd");
    let mut path = sandbox.path("tree");
    path.push(name);
    let mut command = sandbox.command(&["dump", "latest"]);
    command.arg(&path);
    assert_eq!(
        crate::sandbox::Run::new(&mut command).expect(0).stdout,
        "odd"
    );
}

#[test]
fn damaged_files_are_named_and_the_others_come_back() {
    let sandbox = Sandbox::with_repository();
    sandbox.backup_tree();
    // Another container, which is damaged afterwards.
    sandbox.write("tree/later.bin", &crate::sandbox::noise(300_000, 8));
    let before = files_below(&sandbox.path("repository/containers"));
    sandbox.backup_tree();
    let after = files_below(&sandbox.path("repository/containers"));
    let new = after.iter().filter(|file| !before.contains(file));
    let (name, bytes) = new.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    let mut bytes = bytes.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(sandbox.path("repository/containers").join(name), bytes).unwrap();
    let tree = format!("latest:{}", sandbox.text("tree"));
    sandbox
        .run(&["restore", &tree, "out"])
        .expect(3)
        .says("later.bin");
    assert_eq!(fs::read(sandbox.path("out/a.txt")).unwrap(), b"first\n");
    assert!(!sandbox.path("out/later.bin").exists());
}
