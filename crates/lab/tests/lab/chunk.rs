//! `onefold-lab chunk`: what it prints, and how it fails.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use chunking::{ALGORITHMS, Algorithm, Chunker, KeyMaterial, Parameters};
use serde_json::Value;

use crate::documented::{PAGE, assert_documented, documented};
use crate::sandbox::Sandbox;

const QUICK: [&str; 2] = ["--runs", "1"];

fn chunk(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let line = [&["chunk", "tree", "--json", "-q"], &QUICK[..], arguments].concat();
    sandbox.run(&line).expect(0).json()
}

/// Chunks, bytes and bytes of distinct chunks, found the simple way.
fn naive(sandbox: &Sandbox, parameters: &Parameters) -> (u64, u64, u64) {
    let chunker = Chunker::new(parameters, KeyMaterial::Unkeyed).unwrap();
    let (mut chunks, mut bytes, mut unique) = (0, 0, 0);
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    for file in sandbox.tree() {
        for range in chunker.chunks(&file) {
            chunks += 1;
            bytes += range.len() as u64;
            if seen.insert(file[range.clone()].to_vec()) {
                unique += range.len() as u64;
            }
        }
    }
    (chunks, bytes, unique)
}

/// Two tars whose members differ in nothing but times, cut through in pieces by little memory.
#[test]
fn tars_are_cut_at_their_members_if_asked() {
    let sandbox = Sandbox::with_tree();
    for modified in [1_000_000_000, 1_234_567_890] {
        let mut archive = tar::Builder::new(Vec::new());
        for number in 0..300u32 {
            let content = blake3::hash(&number.to_le_bytes()).to_hex().repeat(100);
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mtime(modified);
            let name = number.to_string();
            let member = archive.append_data(&mut header, name, content.as_bytes());
            member.unwrap();
        }
        let bytes = archive.into_inner().unwrap();
        fs::write(sandbox.path(&format!("tree/{modified}.tar")), bytes).unwrap();
    }
    let list = "fold,fold:structure=tar,tttd:structure=tar";
    let report = chunk(&sandbox, &["-a", list]);
    let results = &report["results"];
    assert_eq!(results[0]["structure"], "none");
    assert_eq!(results[1]["structure"], "tar");
    let unique = |place: usize| results[place]["bytes_unique"].as_u64().unwrap();
    let contents = 300 * 6400;
    assert!(unique(0) > unique(1) + contents * 8 / 10, "{report}");
    let in_pieces = chunk(&sandbox, &["-a", list, "--memory", "600K"]);
    for place in 0..3 {
        let digests = [&report, &in_pieces].map(|it| &it["results"][place]["cuts_digest"]);
        assert_eq!(digests[0], digests[1]);
    }
    let line = ["chunk", "tree", "--structure", "zip"];
    let refused = sandbox.run(&line).expect(2);
    assert!(refused.stderr.contains("they are none, tar"));
}

#[test]
fn every_field_is_documented() {
    let sandbox = Sandbox::with_tree();
    symlink("first", sandbox.path("tree/link")).unwrap();
    let report = chunk(
        &sandbox,
        &["-a", "fastcdc,rabin:polynomial=0x3da3358b4dc173"],
    );
    assert_documented(&report, "summary of chunk");
    for part in ["settings", "machine", "data"] {
        assert_documented(&report[part], part);
    }
    assert_documented(&report["data"]["problems"][0], "problem");
    assert_documented(&report["results"][0], "result");
    assert_documented(&report["results"][0]["histogram"][0], "bin");
    assert_eq!(
        report["results"][1]["own"]["polynomial"],
        "0x3da3358b4dc173"
    );
    assert_eq!(report["data"]["files"], 4);
    assert_eq!(report["data"]["empty_files"], 1);
    assert_eq!(report["data"]["skipped"], 1);
}

#[test]
fn every_algorithm_agrees_with_a_simple_count() {
    let sandbox = Sandbox::with_tree();
    let report = chunk(&sandbox, &[]);
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), ALGORITHMS.len());
    for result in results {
        let algorithm = Algorithm::from_name(result["algorithm"].as_str().unwrap()).unwrap();
        let (chunks, bytes, unique) = naive(&sandbox, &Parameters::new(algorithm));
        assert_eq!(result["chunks"], chunks, "{algorithm}");
        assert_eq!(result["bytes"], bytes, "{algorithm}");
        assert_eq!(result["bytes_unique"], unique, "{algorithm}");
        let ratio = result["dedup_ratio"].as_f64().unwrap();
        assert!((ratio - bytes as f64 / unique as f64).abs() < 1e-9);
        let saved = result["dedup_saved_percent"].as_f64().unwrap();
        assert!((saved - 100.0 * (1.0 - 1.0 / ratio)).abs() < 1e-9);
        let bins = result["histogram"].as_array().unwrap();
        let binned: u64 = bins.iter().map(|bin| bin["chunks"].as_u64().unwrap()).sum();
        assert_eq!(binned, chunks);
        assert_eq!(result["chunks_last"], 4);
    }
}

#[test]
fn little_memory_changes_nothing_but_the_batches() {
    let sandbox = Sandbox::with_tree();
    let list = "gear:max=16K,fastcdc:max=16K,ae:max=16K";
    let whole = chunk(&sandbox, &["-a", list, "--rivals", "--max", "16K"]);
    let arguments = ["-a", list, "--rivals", "--max", "16K", "--memory", "80K"];
    let pieces = chunk(&sandbox, &arguments);
    assert_eq!(whole["data"]["batches"], 1);
    assert!(pieces["data"]["batches"].as_u64().unwrap() > 5);
    assert_eq!(pieces["data"]["bytes"], whole["data"]["bytes"]);
    let (whole, pieces) = (&whole["results"], &pieces["results"]);
    for (whole, piece) in whole
        .as_array()
        .unwrap()
        .iter()
        .zip(pieces.as_array().unwrap())
    {
        for field in [
            "label",
            "cuts_digest",
            "bytes_unique",
            "chunks",
            "histogram",
        ] {
            assert_eq!(whole[field], piece[field], "{}", whole["label"]);
        }
    }
}

#[test]
fn people_get_a_table() {
    let sandbox = Sandbox::with_tree();
    let line = [
        "chunk",
        "tree",
        "-a",
        "fastcdc,gear,fixed",
        "--rivals",
        "--runs",
        "2",
    ];
    let text = sandbox.ok(&line);
    assert!(
        text.starts_with("4 files, 595.7 KiB; 1 batch in memory"),
        "{text}"
    );
    assert!(text.contains("median of 2 passes"));
    for word in [
        "ALGORITHM",
        "RATIO",
        "\nfastcdc ",
        "\ngear ",
        "crate mincdc 0.1.0",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn csv_has_a_row_for_each_contestant() {
    let sandbox = Sandbox::with_tree();
    let list = "fastcdc:min=1K,level=1,gear";
    let line = ["chunk", "tree", "-q", "--csv", "-a", list, "--runs", "1"];
    let text = sandbox.ok(&line);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("\"fastcdc:min=1K,level=1\",fastcdc,,1024,"));
    let columns = |line: &str| line.split(',').count();
    assert_eq!(columns(lines[2]), columns(lines[0]));
    for name in lines[0].split(',') {
        assert!(documented("result").contains(&name), "{name}");
        assert!(
            PAGE.split("## CSV")
                .nth(1)
                .unwrap()
                .contains(&format!("`{name}`"))
        );
    }
    let line = [
        "chunk",
        "tree",
        "-q",
        "--csv=out.csv",
        "-a",
        "gear",
        "--runs",
        "1",
    ];
    let text = sandbox.ok(&line);
    assert!(text.contains("ALGORITHM"));
    let file = fs::read_to_string(sandbox.path("out.csv")).unwrap();
    assert_eq!(file.lines().next(), Some(lines[0]));
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let sandbox = Sandbox::with_tree();
    let line = [
        "chunk",
        "tree",
        "-q",
        "--html",
        "page.html",
        "--rivals",
        "--runs",
        "1",
    ];
    sandbox.ok(&line);
    let page = fs::read_to_string(sandbox.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    // A panel for each contestant, the cumulative plots, speed against dedup, stages.
    assert!(page.matches("<svg viewBox").count() > ALGORITHMS.len() + 7);
    let outward = [
        "http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link",
    ];
    for word in outward {
        assert!(!page.contains(word), "{word}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf"));
    for info in ALGORITHMS {
        assert!(page.contains(info.name));
    }
}

#[test]
fn wrong_usage_is_2_and_says_what_is_right() {
    let sandbox = Sandbox::with_tree();
    for (arguments, words) in [
        (&["-a", "fastdcd"][..], "they are fastcdc, fixed, gear"),
        (
            &["-a", "gear", "--level", "1"],
            "gear has no setting 'level'",
        ),
        (&["-a", "gear", "--avg", "5000"], "power of two"),
        (&["--runs", "0"], "at least one pass"),
        (
            &["-a", "gear", "--memory", "64K"],
            "--memory 64K is too little",
        ),
        (&["--avg", "8X"], "is no unit of size"),
        (&["--json", "--csv"], "cannot be used with"),
    ] {
        let run = sandbox.run(&[&["chunk", "tree"], arguments].concat());
        let run = run.expect(2);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
    sandbox.run(&["chunk"]).expect(2);
    let run = sandbox
        .run(&["chunk", "tree", "--json", "-a", "x"])
        .expect(2);
    assert_documented(&run.json(), "error");
    assert_eq!(run.json()["code"], 2);
}

#[test]
fn all_says_what_it_ignores() {
    let sandbox = Sandbox::with_tree();
    let report = chunk(&sandbox, &["--level", "1", "--max", "32K"]);
    let notes = report["notes"].to_string();
    assert!(notes.contains("'level' is ignored"), "{notes}");
    assert!(notes.contains("restic is left out"), "{notes}");
}

#[test]
fn files_that_can_not_be_had_are_named() {
    let sandbox = Sandbox::with_tree();
    let run = sandbox.run(&["chunk", "tree", "nowhere"]).expect(1);
    assert!(run.stderr.contains("cannot read nowhere"), "{}", run.stderr);
    assert!(run.stderr.contains("Hint: "));
    let run = sandbox.run(&["chunk", "tree/empty"]).expect(1);
    assert!(run.stderr.contains("the only file in tree/empty is empty"));
    fs::create_dir(sandbox.path("nothing")).unwrap();
    let run = sandbox.run(&["chunk", "nothing"]).expect(1);
    assert!(run.stderr.contains("there is no file in nothing"));
    let run = sandbox
        .run(&["chunk", "tree", "-a", "gear", "--html", "no/page.html"])
        .expect(1);
    assert!(run.stderr.contains("cannot write no/page.html"));
}

#[test]
fn a_file_below_a_directory_that_can_not_be_read_makes_it_partial() {
    let sandbox = Sandbox::with_tree();
    let secret = sandbox.path("tree/sub/third");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&secret).is_ok() {
        // Run by root, to whom everything is open: a vanished file stands in for it in loader.rs.
        return;
    }
    let line = ["chunk", "tree", "--json", "-a", "gear", "--runs", "1"];
    let run = sandbox.run(&line).expect(3);
    assert_eq!(run.json()["data"]["failed"], 1);
    assert_eq!(run.json()["data"]["files"], 3);
    assert!(run.stderr.contains("tree/sub/third"));
}

#[test]
fn ctrl_c_stops_it_with_130() {
    let sandbox = Sandbox::with_tree();
    let line = ["chunk", "tree", "--runs", "60000", "-q", "-a", "gear"];
    let mut child = sandbox.command(&line).spawn().unwrap();
    // Long enough for it to have begun, far too short for it to have ended.
    std::thread::sleep(std::time::Duration::from_millis(400));
    let id = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
