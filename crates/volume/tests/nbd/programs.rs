//! Clients that others wrote. Where one is missing, its test says so and passes.

use std::path::Path;
use std::process::{Command, Output};

use volume::nbd::Limits;

use crate::Served;
use crate::disk::TestDisk;

const DISK_BYTES: usize = 32 << 20;

fn served(sector_bytes: u32) -> Served {
    Served::with(TestDisk::new(DISK_BYTES, sector_bytes), Limits::default())
}

/// Whether a program is there.
fn have(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("{program} is missing: skipped");
    }
    found
}

/// Runs it; it must succeed. What it said.
fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it is there");
    let said = String::from_utf8_lossy(&stdout).into_owned();
    let complained = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {said}{complained}");
    said
}

fn uri(served: &Served) -> String {
    format!("nbd+unix:///disk?socket={}", served.socket().display())
}

/// A file with data and holes, of the size of the disk.
fn image(path: &Path) -> Vec<u8> {
    let mut bytes = vec![0; DISK_BYTES];
    let mut state = 1_u32;
    for (index, sector) in bytes.chunks_mut(4096).enumerate() {
        // A third of it is data, in runs from 4 KiB to 1 MiB.
        if (index / 256 + index / 3) % 3 != 0 {
            continue;
        }
        for byte in sector {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
    }
    std::fs::write(path, &bytes).unwrap();
    bytes
}

#[test]
fn nbdinfo_understands_what_it_is_told() {
    if !have("nbdinfo") {
        return;
    }
    let served = served(4096);
    let said = run(Command::new("nbdinfo").arg(uri(&served)));
    for expected in [
        "newstyle-fixed without TLS, using structured packets",
        "the disk of a test",
        "base:allocation",
        "can_df: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_zero: true",
        "is_read_only: false",
        "block_size_minimum: 4096",
        "block_size_maximum: 33554432",
    ] {
        assert!(said.contains(expected), "{expected} is not in {said}");
    }
    let said = run(Command::new("nbdinfo").arg("--list").arg(uri(&served)));
    assert!(said.contains("export=\"other\""), "{said}");
    let said = run(Command::new("nbdinfo").arg("--map").arg(uri(&served)));
    assert!(said.contains("hole,zero"), "{said}");
}

#[test]
fn nbdcopy_brings_an_image_in_and_out() {
    if !have("nbdcopy") {
        return;
    }
    for sector_bytes in [512, 4096] {
        let served = served(sector_bytes);
        let [source, target] = ["in", "out"].map(|name| served.directory.path().join(name));
        let bytes = image(&source);
        run(Command::new("nbdcopy")
            .args(["--flush", "--"])
            .arg(&source)
            .arg(uri(&served)));
        assert!(served.disk.bytes(0, DISK_BYTES) == bytes);
        assert!(served.disk.flushes() > 0);
        // Several connections, and one with large requests.
        for options in [
            &["--connections=4"][..],
            &["--request-size=33554432", "--connections=1"],
        ] {
            run(Command::new("nbdcopy")
                .args(options)
                .arg(uri(&served))
                .arg(&target));
            assert!(std::fs::read(&target).unwrap() == bytes, "{options:?}");
            std::fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn qemu_io_writes_reads_and_discards() {
    if !have("qemu-io") {
        return;
    }
    let served = served(512);
    let said = run(Command::new("qemu-io")
        .args([
            "-f",
            "raw",
            "-d",
            "unmap",
            "--cache=none",
            "-c",
            "write -P 0x5a 0 1M",
            "-c",
            "write -f -P 0xa5 1M 3M",
            "-c",
            "discard 64k 64k",
            "-c",
            "write -z 256k 64k",
            "-c",
            "write -z -u 512k 64k",
            "-c",
            "read -P 0x5a 0 64k",
            "-c",
            "read -P 0 64k 64k",
            "-c",
            "read -P 0 256k 64k",
            "-c",
            "read -P 0xa5 1M 3M",
            "-c",
            "flush",
            "-c",
            "aio_write -P 1 8M 4M",
            "-c",
            "aio_write -P 2 12M 4M",
            "-c",
            "aio_flush",
            "-c",
            "read -P 2 12M 4M",
        ])
        .arg(uri(&served)));
    assert!(!said.contains("verification failed"), "{said}");
    assert!(!said.contains("error"), "{said}");
    let mut expected = vec![0; 16 << 20];
    expected[..1 << 20].fill(0x5a);
    expected[1 << 20..4 << 20].fill(0xa5);
    for start in [64 << 10, 256 << 10, 512 << 10] {
        expected[start..start + (64 << 10)].fill(0);
    }
    expected[8 << 20..12 << 20].fill(1);
    expected[12 << 20..].fill(2);
    assert!(served.disk.bytes(0, 16 << 20) == expected);
    assert!(served.disk.flushes() > 0);
}

#[test]
fn qemu_img_converts_and_compares() {
    if !have("qemu-img") {
        return;
    }
    let served = served(4096);
    let source = served.directory.path().join("in");
    let bytes = image(&source);
    let raw = ["-f", "raw", "-O", "raw"];
    run(Command::new("qemu-img")
        .args(["convert", "-n"])
        .args(raw)
        .arg(&source)
        .arg(uri(&served)));
    assert!(served.disk.bytes(0, DISK_BYTES) == bytes);
    let compare = ["compare", "-f", "raw", "-F", "raw"];
    run(Command::new("qemu-img")
        .args(compare)
        .arg(&source)
        .arg(uri(&served)));
    let map = ["map", "--output=json", "-f", "raw"];
    let said = run(Command::new("qemu-img").args(map).arg(uri(&served)));
    assert!(said.contains("\"zero\": true"), "{said}");
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !have("fio") {
        return;
    }
    let engines = run(Command::new("fio").arg("--enghelp"));
    if !engines.lines().any(|line| line.trim() == "nbd") {
        println!("fio has no nbd engine: skipped");
        return;
    }
    let served = served(512);
    let uri = format!("nbd+unix:///disk?socket={}", served.socket().display());
    run(Command::new("fio")
        .args([
            "--name=verify",
            "--ioengine=nbd",
            "--rw=randrw",
            "--bsrange=512-64k",
            "--iodepth=16",
            "--size=32m",
            "--io_size=64m",
            "--verify=crc32c",
            "--verify_backlog=512",
            "--trim_percentage=0",
            "--randseed=4711",
        ])
        .arg(format!("--uri={uri}"))
        .current_dir(served.directory.path()));
}
