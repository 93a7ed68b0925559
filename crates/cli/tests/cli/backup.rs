//! `backup`, and what `stats` and `check` say of it.

use std::fs;

use crate::sandbox::{Sandbox, noise};

#[test]
fn the_second_backup_reads_and_stores_next_to_nothing() {
    let sandbox = Sandbox::with_repository();
    sandbox.let_files_age();
    let text = sandbox.ok(&["backup", "tree"]);
    assert!(text.contains("3 new"), "{text}");
    assert!(text.contains("Snapshot "), "{text}");
    let second = sandbox.events(&["backup", "tree"]);
    let second = second.last().unwrap();
    assert_eq!(second["files_unmodified"], 3);
    assert_eq!(second["bytes_read"], 0);
    assert_eq!(second["bytes_new"], 0);
    let forced = sandbox.events(&["backup", "tree", "--force"]);
    let forced = forced.last().unwrap();
    assert_eq!(forced["files_unmodified"], 0);
    assert!(forced["bytes_read"].as_u64().unwrap() > 200_000);
    assert_eq!(forced["bytes_new"], 0);
}

#[test]
fn excludes_leave_out() {
    let sandbox = Sandbox::with_repository();
    sandbox.write("tree/x.o", b"object");
    sandbox.write(
        "tree/cache/CACHEDIR.TAG",
        b"Signature: 8a477f597d28d172789f06886806bc55\n",
    );
    sandbox.write("tree/cache/blob", b"cached");
    sandbox.write("tree/sub/.gitignore", b"b.txt\n");
    sandbox.write("patterns", b"# objects\n*.o\n");
    let line = [
        "backup",
        "tree",
        "--exclude",
        "deep",
        "--exclude-file",
        "patterns",
        "--exclude-caches",
        "--ignore-files",
        "--one-file-system",
    ];
    sandbox.ok(&line);
    let listing = sandbox.ok(&["ls", "latest", "-R"]);
    for present in ["tree/a.txt", "tree/sub", "cache/CACHEDIR.TAG"] {
        assert!(listing.contains(present), "{listing}");
    }
    for absent in ["x.o", "deep", "c.bin", "blob", "b.txt"] {
        assert!(!listing.contains(absent), "{absent} in {listing}");
    }
}

#[test]
fn the_repository_does_not_swallow_itself() {
    let sandbox = Sandbox::with_repository();
    sandbox.ok(&["backup", "."]);
    let listing = sandbox.ok(&["ls", "latest", "-R"]);
    assert!(listing.contains("tree/a.txt"), "{listing}");
    assert!(!listing.contains("repository/config"), "{listing}");
}

#[test]
fn snapshots_are_told_apart_by_host_path_and_tag() {
    let sandbox = Sandbox::with_repository();
    sandbox.ok(&[
        "backup", "tree", "--host", "alpha", "--tag", "one", "--tag", "two",
    ]);
    sandbox.ok(&["backup", "tree/sub", "--host", "beta", "--tag", "two"]);
    let count = |filter: &[&str]| {
        let mut line = vec!["snapshots"];
        line.extend(filter);
        sandbox.events(&line).len() - 1
    };
    assert_eq!(count(&[]), 2);
    assert_eq!(count(&["--host", "alpha"]), 1);
    assert_eq!(count(&["--host", "alpha", "--host", "beta"]), 2);
    assert_eq!(count(&["--tag", "two"]), 2);
    assert_eq!(count(&["--tag", "one", "--tag", "two"]), 1);
    assert_eq!(count(&["--path", &sandbox.text("tree/sub")]), 1);
    assert_eq!(count(&["--host", "gamma"]), 0);
    let listing = sandbox.ok(&["ls", "latest", "--host", "alpha"]);
    assert!(listing.contains("a.txt"), "{listing}");
    sandbox
        .run(&["ls", "latest", "--host", "gamma"])
        .expect(1)
        .says("gamma");
}

#[test]
fn a_parent_can_be_named() {
    let sandbox = Sandbox::with_repository();
    let first = sandbox.backup_tree();
    sandbox.backup_tree();
    let summary = sandbox.events(&["backup", "tree", "--parent", &first[..10]]);
    assert_eq!(summary.last().unwrap()["parent"], first.as_str());
    sandbox
        .run(&["backup", "tree", "--parent", "ffffff"])
        .expect(1)
        .says("parent");
}

#[test]
fn a_dry_run_stores_nothing() {
    let sandbox = Sandbox::with_repository();
    let before = sandbox.events(&["stats"]);
    let text = sandbox.ok(&["backup", "tree", "--dry-run"]);
    assert!(text.contains("dry run"), "{text}");
    let summary = sandbox.events(&["backup", "tree", "-n"]);
    let summary = summary.last().unwrap();
    assert_eq!(summary["is_dry_run"], true);
    assert!(summary["snapshot"].is_null());
    assert!(summary["bytes_new"].as_u64().unwrap() > 200_000);
    assert_eq!(before, sandbox.events(&["stats"]));
}

#[test]
fn quiet_is_silent_and_verbose_is_not() {
    let sandbox = Sandbox::with_repository();
    let run = sandbox.run(&["backup", "tree", "-q"]).expect(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    let text = sandbox.ok(&["backup", "tree", "-v"]);
    assert!(text.contains("Parent:"), "{text}");
}

#[test]
fn settings_of_a_run_are_taken() {
    let sandbox = Sandbox::with_repository();
    sandbox.write("tree/zeros", &vec![0; 500_000]);
    let line = [
        "backup",
        "tree",
        "--compression",
        "-7",
        "--threads",
        "1",
        "--read-concurrency",
        "1",
        "--memory",
        "64MiB",
        "--index-memory",
        "40MiB",
    ];
    sandbox.ok(&line);
    sandbox.ok(&["backup", "tree", "--force", "--compression=none"]);
    sandbox.ok(&["check", "--read-data"]);
}

#[test]
fn the_index_leaves_memory_to_others() {
    let sandbox = Sandbox::with_repository();
    sandbox.write("tree/file", b"content");
    for (memory, index) in [("64MiB", "49MiB"), ("32MiB", "64MiB"), ("64MiB", "1MiB")] {
        let line = [
            "backup",
            "tree",
            "--memory",
            memory,
            "--index-memory",
            index,
        ];
        sandbox.run(&line).expect(2).says("--index-memory");
    }
}

#[test]
fn parameters_of_a_repository_are_taken() {
    let sandbox = Sandbox::new();
    let line = [
        "init",
        "--no-encryption",
        "--algorithm",
        "fastcdc",
        "--chunk-sizes",
        "16K,64K,256K",
        "--normalization",
        "1",
        "--container-size",
        "2MiB",
        "--group-size",
        "512K",
    ];
    sandbox.ok(&line);
    sandbox.write("tree/data", &noise(2_000_000, 5));
    sandbox.ok(&["backup", "tree"]);
    let stats = sandbox.events(&["stats"]);
    let chunks = stats.last().unwrap()["chunks"].as_u64().unwrap();
    assert!((8..=125).contains(&chunks), "{chunks}");
    sandbox
        .run(&["init", "--algorithm", "nothing"])
        .expect(2)
        .says("fastcdc");
}

/// Runs a line on a repository that asks for a password.
fn with_password(sandbox: &Sandbox, line: &[&str]) {
    sandbox.write("password", b"secret\n");
    sandbox.ok(&[line, &["--password-file", "password"]].concat());
}

#[test]
fn any_chunker_can_be_taken_but_an_unkeyed_one_only_knowingly() {
    let sandbox = Sandbox::new();
    sandbox.write("tree/data", &noise(1_000_000, 6));
    sandbox
        .run(&["init", "--algorithm", "ram"])
        .expect(2)
        .says("ram cuts chunks without a key");
    assert!(!sandbox.path("repository").exists());
    let rabin = ["init", "--algorithm", "rabin-nc", "--chunker-parameter"];
    with_password(&sandbox, &[&rabin[..], &["window_bytes=64"]].concat());
    with_password(&sandbox, &["backup", "tree"]);
    with_password(&sandbox, &["check", "--read-data"]);

    let sandbox = Sandbox::new();
    sandbox.write("tree/data", &noise(1_000_000, 7));
    let ram = ["init", "--algorithm", "ram", "--allow-unkeyed-chunker"];
    with_password(&sandbox, &ram);
    with_password(&sandbox, &["backup", "tree"]);
    with_password(&sandbox, &["check", "--read-data"]);
}

#[test]
fn cutting_can_be_accelerated() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["init", "--acceleration", "warp"])
        .expect(2)
        .says("rapid-ff+rwt+fpt");
    let plain = ["init", "--no-encryption", "--acceleration"];
    let wrong = [&plain[..], &["rapid-ff", "--segment-size", "1M"]].concat();
    sandbox.run(&wrong).expect(2).says("has no segments");
    let small = [&plain[..], &["segments", "--segment-size", "64K"]].concat();
    sandbox.run(&small).expect(2).says("segment size");
    assert!(!sandbox.path("repository").exists());
    sandbox.ok(&[&plain[..], &["segments", "--segment-size", "256K"]].concat());
    sandbox.write("tree/data", &noise(2_000_000, 5));
    sandbox.ok(&["backup", "tree"]);
    sandbox.ok(&["check", "--read-data"]);
    let stats = sandbox.events(&["stats"]);
    let stats = stats.last().unwrap();
    assert_eq!(stats["acceleration"], "segments");
    assert_eq!(stats["segment_bytes"], 256 << 10);
    let shown = sandbox.run(&["stats"]).expect(0).stdout.clone();
    assert!(shown.contains("segments, 256.0 KiB each"), "{shown}");
}

#[test]
fn duplicates_are_stored_again_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let init = ["init", "--no-encryption", "--container-size", "256K"];
    sandbox
        .run(&[&init[..], &["--rewriting", "sometimes"]].concat())
        .expect(2);
    sandbox.ok(&[&init[..], &["--rewriting", "capping"]].concat());
    let old = noise(6_000_000, 5);
    sandbox.write("tree/old", &old);
    sandbox.ok(&["backup", "tree"]);
    // A piece of every container, and nothing else.
    let pieces: Vec<u8> = old
        .chunks(200_000)
        .flat_map(|part| part[..40_000].to_vec())
        .collect();
    sandbox.write("tree/pieces", &pieces);
    let dry = sandbox.events(&["backup", "tree", "-n", "--rewriting", "off"]);
    let dry = dry.last().unwrap();
    assert_eq!(
        (&dry["rewriting"], &dry["bytes_rewritten"]),
        (&"off".into(), &0.into())
    );
    let text = sandbox.ok(&["backup", "tree", "-n"]);
    assert!(
        text.contains("stored again by capping (dedup ratio"),
        "{text}"
    );
    let summary = sandbox.events(&["backup", "tree"]);
    let summary = summary.last().unwrap();
    assert_eq!(summary["rewriting"], "capping");
    assert!(
        summary["bytes_rewritten"].as_u64().unwrap() > 50_000,
        "{summary}"
    );
    let ratio = |name: &str| summary[name].as_f64().unwrap();
    assert!(ratio("dedup_ratio_with_rewriting") < ratio("dedup_ratio"));
    sandbox.ok(&["check", "--read-data"]);
    let tree = format!("latest:{}", sandbox.path("tree").display());
    sandbox.ok(&["restore", &tree, "out"]);
    assert!(fs::read(sandbox.path("out/pieces")).unwrap() == pieces);
    let shown = sandbox.run(&["stats"]).expect(0).stdout.clone();
    assert!(shown.contains("Rewriting      capping"), "{shown}");
    let stats = sandbox.events(&["stats"]);
    let stats = stats.last().unwrap();
    assert_eq!(stats["rewriting"], "capping");
    let filling = stats["data_filling_ratio"].as_f64().unwrap();
    assert!((0.9..=1.0).contains(&filling), "{stats}");
}

#[test]
fn an_empty_directory_becomes_a_repository() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("repository")).unwrap();
    sandbox.ok(&["init", "--no-encryption"]);
    sandbox.ok(&["check"]);
    let run = sandbox.run(&["snapshots"]).expect(0);
    assert_eq!(run.stdout, "");
    run.says("no snapshots yet");
}

#[test]
fn an_interrupted_init_is_taken_up() {
    let sandbox = Sandbox::with_repository();
    // What a death just before the last step leaves: a key, and no config.
    fs::remove_file(sandbox.path("repository/config")).unwrap();
    sandbox.run(&["snapshots"]).expect(10);
    sandbox.ok(&["init", "--no-encryption"]);
    sandbox.ok(&["backup", "tree"]);
}
