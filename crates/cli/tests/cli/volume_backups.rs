//! `onefold backup --volume`: what comes back is the disk at that moment, and only changes are read.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use volume::backing::FileBacking;
use volume::{BlockDevice, OpenOptions, Volume};

use crate::sandbox::{Run, Sandbox, noise};
use crate::volumes::Server;

const MIB: usize = 1 << 20;

/// A repository, and a volume of 64 MiB with 24 MiB in it.
fn place() -> (Sandbox, Vec<u8>) {
    let sandbox = Sandbox::new();
    sandbox.ok(&["init", "--no-encryption", "-q"]);
    let disk = sandbox.text("disk.1fv");
    sandbox.ok(&["volume", "create", &disk, "--size", "64MiB"]);
    let mut image = vec![0; 64 * MIB];
    write(&disk, &mut image, &[(0, 16), (40, 8)]);
    (sandbox, image)
}

fn open(disk: &str) -> Volume {
    let backing = Arc::new(FileBacking::open(Path::new(disk), true).unwrap());
    Volume::open(backing, &OpenOptions::default()).unwrap()
}

/// Writes new bytes at places, in MiB, to the volume and the image of it.
fn write(disk: &str, image: &mut [u8], places: &[(usize, usize)]) {
    let volume = open(disk);
    for (number, (start, length)) in places.iter().enumerate() {
        let range = start * MIB..(start + length) * MIB;
        let seed = (number + 1) as u64 + u64::from(image[range.start]) * 100;
        image[range.clone()].copy_from_slice(&noise(length * MIB, seed));
        volume.write(range.start as u64, &image[range]).unwrap();
    }
    volume.close().unwrap();
}

fn summary(sandbox: &Sandbox, more: &[&str]) -> Value {
    let disk = sandbox.text("disk.1fv");
    let mut arguments = vec!["backup", "--volume", &disk];
    arguments.extend_from_slice(more);
    sandbox.events(&arguments).pop().unwrap()
}

fn generations(sandbox: &Sandbox) -> Vec<(u64, bool)> {
    let listed = sandbox.events(&["volume", "generations", &sandbox.text("disk.1fv")]);
    let listed = listed.iter().filter(|event| event["event"] == "generation");
    listed
        .map(|event| {
            (
                event["number"].as_u64().unwrap(),
                event["owner"].is_string(),
            )
        })
        .collect()
}

fn assert_latest_is(sandbox: &Sandbox, image: &[u8]) {
    let dumped = sandbox.run(&["dump", "latest", &sandbox.text("disk.img")]);
    let dumped = dumped.expect(0);
    assert!(dumped.stdout_bytes == image, "the latest image is the disk");
}

#[test]
fn only_what_changed_is_read() {
    let (sandbox, mut image) = place();
    let disk = sandbox.text("disk.1fv");
    let first = summary(&sandbox, &[]);
    assert_eq!(first["bytes_read"], 24 * MIB);
    assert_eq!(first["bytes"], 64 * MIB);
    assert!(first["bytes_changed"].is_null());
    assert_latest_is(&sandbox, &image);
    write(&disk, &mut image, &[(3, 1), (50, 2)]);
    let second = summary(&sandbox, &[]);
    assert_eq!(second["bytes_changed"], 3 * MIB);
    let read = second["bytes_read"].as_u64().unwrap() as usize;
    assert!((3 * MIB..4 * MIB).contains(&read), "{read} bytes read");
    assert_eq!(second["parent"], first["snapshot"]);
    assert_latest_is(&sandbox, &image);
    // The earlier generation is gone, the new one is the repository's.
    assert_eq!(
        generations(&sandbox),
        [(second["generation"].as_u64().unwrap(), true)]
    );
    let third = summary(&sandbox, &[]);
    assert_eq!(
        (&third["bytes_read"], &third["chunks_new"]),
        (&0.into(), &0.into())
    );
    assert_latest_is(&sandbox, &image);
    let forced = summary(&sandbox, &["--force", "--image-name", "all.raw"]);
    assert_eq!(forced["bytes_read"], 26 * MIB);
    assert_eq!(forced["chunks_new"], 0);
    let listed = sandbox.ok(&["ls", "latest"]);
    assert!(listed.contains("all.raw"), "{listed}");
    let from = format!("latest:{}", sandbox.text("all.raw"));
    sandbox.ok(&["restore", &from, &sandbox.text("out")]);
    assert!(fs::read(sandbox.path("out/all.raw")).unwrap() == image);
    sandbox.ok(&["check", "--read-data"]);
    sandbox.ok(&["volume", "check", &disk, "--read-data"]);
}

#[test]
fn a_disk_in_use_is_backed_up_as_it_was() {
    let (sandbox, mut image) = place();
    let disk = sandbox.text("disk.1fv");
    let server = Server::start(&sandbox, &[&disk]);
    let first = summary(&sandbox, &[]);
    assert_eq!(first["bytes_read"], 24 * MIB);
    assert_latest_is(&sandbox, &image);
    let stat = sandbox.events(&["volume", "stat", &disk]);
    assert_eq!(stat[0]["generations"], 1);
    // The client is gone and the generation is there still.
    assert_eq!(generations(&sandbox).len(), 1);
    assert_eq!(sandbox.ok(&["volume", "pin", &disk]).trim(), "2");
    assert_eq!(generations(&sandbox), [(1, true), (2, false)]);
    server.end();
    write(&disk, &mut image, &[(20, 1)]);
    let server = Server::start(&sandbox, &[&disk]);
    let second = summary(&sandbox, &[]);
    assert_eq!(second["bytes_changed"], MIB);
    assert_latest_is(&sandbox, &image);
    // What a person pinned is a person's to remove.
    assert_eq!(generations(&sandbox), [(2, false), (3, true)]);
    sandbox.ok(&["volume", "unpin", &disk, "2"]);
    sandbox.ok(&["volume", "compact", &disk]);
    sandbox.ok(&["volume", "check", &disk]);
    server.end();
    assert!(!sandbox.path("disk.1fv.control").exists());
    sandbox.ok(&["volume", "check", &disk, "--read-data"]);
}

#[test]
fn a_copy_of_a_volume_goes_its_own_way() {
    let (sandbox, mut image) = place();
    let (disk, copy) = (sandbox.text("disk.1fv"), sandbox.text("copy.1fv"));
    fs::copy(&disk, &copy).unwrap();
    let mut other = image.clone();
    write(&copy, &mut other, &[(5, 2)]);
    write(&disk, &mut image, &[(9, 1)]);
    // Both pin generation 1, and they are not the same.
    summary(&sandbox, &[]);
    let of_copy = sandbox
        .events(&["backup", "--volume", &copy])
        .pop()
        .unwrap();
    assert_eq!(of_copy["generation"], 1);
    assert!(of_copy["bytes_changed"].is_null(), "nothing to start from");
    let dumped = sandbox.run(&["dump", "latest", &sandbox.text("copy.img")]);
    let dumped = dumped.expect(0);
    assert!(dumped.stdout_bytes == other);
    write(&disk, &mut image, &[(30, 1)]);
    assert_eq!(summary(&sandbox, &[])["bytes_changed"], MIB);
    assert_latest_is(&sandbox, &image);
}

#[test]
fn nothing_stays_of_a_backup_that_is_none() {
    let (sandbox, mut image) = place();
    let disk = sandbox.text("disk.1fv");
    let dry = summary(&sandbox, &["--dry-run"]);
    assert_eq!(
        (&dry["bytes_read"], &dry["generation"]),
        (&(24 * MIB).into(), &Value::Null)
    );
    assert_eq!(generations(&sandbox), []);
    summary(&sandbox, &[]);
    write(&disk, &mut image, &[(7, 1)]);
    // A backup died: its generation is still there, and goes with the next.
    let owner = sandbox.events(&["volume", "generations", &disk]);
    let owner = owner[0]["owner"].as_str().unwrap().to_owned();
    let mut id = [0; 16];
    for (at, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&owner[2 * at..2 * at + 2], 16).unwrap();
    }
    let volume = open(&disk);
    volume.pin_for(volume::OwnerId(id)).unwrap();
    volume.close().unwrap();
    drop(volume);
    assert_eq!(generations(&sandbox).len(), 2);
    assert_eq!(summary(&sandbox, &["--dry-run"])["bytes_changed"], MIB);
    assert_eq!(generations(&sandbox).len(), 2);
    assert_eq!(summary(&sandbox, &[])["bytes_changed"], MIB);
    assert_latest_is(&sandbox, &image);
    assert_eq!(generations(&sandbox).len(), 1);
    // Without the generation everything is read, and everything is right.
    let number = generations(&sandbox)[0].0.to_string();
    sandbox.ok(&["volume", "unpin", &disk, &number]);
    assert_eq!(summary(&sandbox, &[])["bytes_read"], 24 * MIB);
    assert_latest_is(&sandbox, &image);
}

#[test]
fn what_can_not_be_backed_up_is_told() {
    let (sandbox, _) = place();
    let disk = sandbox.text("disk.1fv");
    sandbox
        .run(&["backup", "--volume", &sandbox.text("none.1fv")])
        .expect(10)
        .says("none.1fv");
    sandbox
        .run(&["backup", "--volume", &disk, "tree"])
        .expect(2);
    sandbox
        .run(&["backup", "--image-name", "x", "tree"])
        .expect(2);
    sandbox
        .run(&["backup", "--volume", &disk, "--image-name", "a/b"])
        .expect(2);
    let held = FileBacking::open(Path::new(&disk), true).unwrap();
    sandbox
        .run(&["backup", "--volume", &disk])
        .expect(1)
        .says("in use");
    drop(held);
    let mut elsewhere = sandbox.command(&["backup", "--no-create", "--volume", &disk]);
    elsewhere.env("ONEFOLD_REPO", sandbox.path("nowhere"));
    Run::new(&mut elsewhere).expect(10);
    // No repository is made for a volume that is not there.
    let mut nothing = sandbox.command(&["backup", "--volume", &sandbox.text("none.1fv")]);
    nothing.env("ONEFOLD_REPO", sandbox.path("nowhere"));
    Run::new(&mut nothing).expect(10).says("none.1fv");
    assert!(!sandbox.path("nowhere").exists());
    assert_eq!(generations(&sandbox), []);
}

#[test]
fn repositories_and_files_do_not_get_in_each_others_way() {
    let (sandbox, mut image) = place();
    let disk = sandbox.text("disk.1fv");
    let elsewhere = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env("ONEFOLD_REPO", sandbox.path("elsewhere"));
        Run::new(&mut command).expect(0)
    };
    elsewhere(&["init", "--no-encryption", "-q"]);
    let is_elsewhere = |image: &[u8]| {
        let dumped = elsewhere(&["dump", "latest", &sandbox.text("disk.img")]);
        assert!(dumped.stdout_bytes == image, "the latest image is the disk");
    };
    summary(&sandbox, &[]);
    write(&disk, &mut image, &[(3, 1)]);
    elsewhere(&["backup", "--volume", &disk]);
    is_elsewhere(&image);
    write(&disk, &mut image, &[(20, 2)]);
    assert_eq!(summary(&sandbox, &[])["bytes_changed"], 3 * MIB);
    assert_latest_is(&sandbox, &image);
    assert_eq!(generations(&sandbox).len(), 2);
    // A file where the image seems to be.
    let other = noise(MIB, 99);
    sandbox.write("disk.img", &other);
    sandbox.ok(&["backup", &sandbox.text("disk.img")]);
    assert_latest_is(&sandbox, &other);
    sandbox.ok(&["volume", "grow", &disk, "--size", "80MiB"]);
    image.resize(80 * MIB, 0);
    write(&disk, &mut image, &[(30, 1), (78, 2)]);
    assert_eq!(summary(&sandbox, &[])["bytes_changed"], 3 * MIB);
    assert_latest_is(&sandbox, &image);
    sandbox.ok(&["backup", &sandbox.text("disk.img")]);
    assert_latest_is(&sandbox, &other);
    let server = Server::start(&sandbox, &[&disk]);
    elsewhere(&["backup", "--volume", &disk]);
    is_elsewhere(&image);
    assert_eq!(generations(&sandbox).len(), 2);
    server.end();
    sandbox.ok(&["check", "--read-data"]);
    elsewhere(&["check", "--read-data"]);
}

#[test]
fn who_is_killed_leaves_nothing_that_stays() {
    let (sandbox, mut image) = place();
    let disk = sandbox.text("disk.1fv");
    summary(&sandbox, &[]);
    for is_server_killed in [false, true] {
        write(&disk, &mut image, &[(20, 8)]);
        let before = generations(&sandbox);
        let server = Server::start(&sandbox, &[&disk]);
        let mut client = volume::control::Client::connect(Path::new(&disk));
        let client = client.as_mut().unwrap().as_mut().unwrap();
        let mut backup = sandbox.command(&["backup", "--volume", &disk]);
        let mut backup = backup.spawn().unwrap();
        while client.generations().unwrap().len() < 2 {
            assert_eq!(backup.try_wait().unwrap(), None, "it did not end before");
        }
        if is_server_killed {
            server.kill();
            assert_eq!(backup.wait().unwrap().code(), Some(1));
            assert_eq!(generations(&sandbox).len(), 2);
        } else {
            backup.kill().unwrap();
            backup.wait().unwrap();
            while client.generations().unwrap().len() > 1 {
                std::thread::yield_now();
            }
            server.end();
            assert_eq!(generations(&sandbox), before);
        }
        let next = summary(&sandbox, &[]);
        assert_eq!(next["bytes_changed"], 8 * MIB);
        assert_eq!(generations(&sandbox).len(), 1);
        assert_latest_is(&sandbox, &image);
    }
}
