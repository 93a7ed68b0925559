//! A loop device on the file, and ext4 on that: the whole way that a machine without NBD goes.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::Mounted;
use crate::disk::TestDisk;

const DISK_BYTES: usize = 64 << 20;

/// Runs a program, which must succeed; what it said.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    let what = format!("{program} {arguments:?}: {said}{complained}");
    assert!(output.status.success(), "{what}");
    said
}

/// Whether all that is needed is there.
fn have_programs() -> bool {
    let missing = [
        "losetup",
        "mkfs.ext4",
        "e2fsck",
        "mount",
        "umount",
        "fstrim",
    ]
    .into_iter()
    .find(|program| Command::new(program).arg("-V").output().is_err());
    if let Some(program) = missing {
        println!("{program} is missing: skipped");
        return false;
    }
    let free = Command::new("losetup").arg("--find").output();
    if !free.is_ok_and(|output| output.status.success()) {
        println!("there is no loop device: skipped");
        return false;
    }
    true
}

/// A loop device, detached when dropped.
struct Loop(String);

impl Loop {
    fn attach(file: &Path, sector_bytes: u32) -> Self {
        let sector = sector_bytes.to_string();
        let file = file.to_str().unwrap();
        let options = ["--direct-io=on", "--sector-size", &sector];
        let arguments = [&options[..], &["--show", "--find", file]].concat();
        let device = run("losetup", &arguments).trim().to_string();
        let attached = Self(device);
        let direct = ["--list", "--noheadings", "--output", "DIO", &attached.0];
        assert_eq!(run("losetup", &direct).trim(), "1", "direct I/O is on");
        attached
    }

    fn detach(self) {
        run("losetup", &["--detach", &self.0]);
        std::mem::forget(self);
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// A mounted ext4, unmounted when dropped.
struct Ext4(TempDir);

impl Ext4 {
    fn mount(device: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().to_str().unwrap();
        run("mount", &["-t", "ext4", device, place]);
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn unmount(self) {
        run("umount", &[self.path().to_str().unwrap()]);
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // After `unmount` there is nothing to unmount, and it fails.
        let lazily = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(self.path(), lazily);
    }
}

/// Files of many sizes: names and bytes.
fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let mut state = 7_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let sizes = [0, 1, 511, 4096, 4097, 100_000, 3 << 20, 9 << 20];
    let numbered = sizes.into_iter().cycle().take(20).enumerate();
    numbered
        .map(|(index, size)| {
            let name = format!("directory {}/file {index}", index % 3);
            (name.into(), (0..size).map(|_| byte()).collect())
        })
        .collect()
}

/// That e2fsck has nothing to say about what the disk holds.
fn check(mounted: &Mounted, image: &Path) {
    std::fs::write(image, mounted.disk.bytes(0, DISK_BYTES)).unwrap();
    run("e2fsck", &["-f", "-n", image.to_str().unwrap()]);
}

fn ext4_lives_on(disk_sector: u32, loop_sector: u32) {
    let disk = TestDisk::new(DISK_BYTES, disk_sector);
    let Some(mounted) = Mounted::new(disk) else {
        return;
    };
    if !have_programs() {
        return;
    }
    let images = tempfile::tempdir().unwrap();
    let image = images.path().join("image");
    let files = files();

    let attached = Loop::attach(&mounted.file(), loop_sector);
    run("mkfs.ext4", &["-q", "-F", "-b", "4096", &attached.0]);
    check(&mounted, &image);
    let ext4 = Ext4::mount(&attached.0);
    for (name, bytes) in &files {
        let path = ext4.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let marked = ext4.path().join("deleted");
    std::fs::write(&marked, vec![0x5a; 4 << 20]).unwrap();
    run("sync", &["-f", marked.to_str().unwrap()]);
    let is_marked = |sector: &[u8]| sector.iter().all(|&byte| byte == 0x5a);
    let marked_sectors = || {
        let bytes = mounted.disk.bytes(0, DISK_BYTES);
        bytes
            .chunks(4096)
            .filter(|sector| is_marked(sector))
            .count()
    };
    assert!(marked_sectors() >= 1024);
    std::fs::remove_file(&marked).unwrap();
    // What is freed in a transaction can be trimmed when that is over.
    run("sync", &["-f", ext4.path().to_str().unwrap()]);
    run("fstrim", &[ext4.path().to_str().unwrap()]);
    assert_eq!(marked_sectors(), 0, "discards reach the disk");
    ext4.unmount();
    attached.detach();
    check(&mounted, &image);

    // Everything anew, so that nothing is remembered but by the disk.
    let attached = Loop::attach(&mounted.file(), loop_sector);
    let ext4 = Ext4::mount(&attached.0);
    for (name, bytes) in &files {
        assert!(
            std::fs::read(ext4.path().join(name)).unwrap() == *bytes,
            "{name:?}"
        );
    }
    ext4.unmount();
    attached.detach();
    assert!(mounted.disk.flushes() > 0);
}

#[test]
fn ext4_lives_on_a_loop_device() {
    // The last one changes parts of the disk's sectors.
    for (disk_sector, loop_sector) in [(4096, 4096), (512, 512), (4096, 512)] {
        ext4_lives_on(disk_sector, loop_sector);
    }
}
