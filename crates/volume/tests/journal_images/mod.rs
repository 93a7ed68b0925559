//! Images of file systems made by `mke2fs`, and what `debugfs` says of their journals.

#![allow(dead_code)] // Each test uses some of it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use volume::device::DeviceError;
use volume::journal::{JournalError, JournalRanges, find_ext_journal};

/// Kinds of file systems that have a journal: a name, the arguments of `mke2fs`, size in MiB.
pub const JOURNALLED: &[(&str, &str, u32)] = &[
    ("ext4, 4 KiB", "-t ext4 -b 4096 -O 64bit,metadata_csum", 64),
    ("ext4, 2 KiB", "-t ext4 -b 2048 -O ^64bit", 64),
    ("ext4, 1 KiB", "-t ext4 -b 1024 -O 64bit", 64),
    (
        "ext4, 1 KiB, 32 bits",
        "-t ext4 -b 1024 -O ^64bit,^metadata_csum",
        64,
    ),
    ("ext4, 64 KiB", "-t ext4 -b 65536 -F", 256),
    (
        "ext4, no flexible groups",
        "-t ext4 -b 4096 -O ^flex_bg",
        300,
    ),
    (
        "ext4, meta groups",
        "-t ext4 -b 4096 -O meta_bg,^resize_inode",
        64,
    ),
    (
        "ext4, meta groups, 1 KiB",
        "-t ext4 -b 1024 -O meta_bg,^resize_inode,64bit",
        64,
    ),
    (
        "ext4, clusters",
        "-t ext4 -b 1024 -O bigalloc,^resize_inode -C 16384",
        128,
    ),
    ("ext4, large", "-t ext4 -b 4096 -J size=64", 2048),
    ("ext4, small inodes", "-t ext4 -I 128 -b 4096", 64),
    (
        "ext4, large inodes",
        "-t ext4 -I 1024 -b 2048 -E lazy_itable_init=0",
        64,
    ),
    ("ext3, 4 KiB", "-t ext3 -b 4096", 128),
    ("ext3, 2 KiB", "-t ext3 -b 2048 -O ^resize_inode", 128),
    (
        "ext3, 1 KiB, three levels",
        "-t ext3 -b 1024 -J size=80",
        256,
    ),
    ("ext3, small inodes", "-t ext3 -I 128 -b 1024", 32),
];

/// A file system in a file.
pub struct Image {
    directory: TempDir,
    path: PathBuf,
}

/// Says whether the tools are there; prints a line when they are not.
pub fn tools_are_there() -> bool {
    for tool in ["mke2fs", "debugfs", "tune2fs"] {
        let found = Command::new(tool).arg("-V").stderr(Stdio::null()).status();
        if found.is_err() {
            println!("skipped: {tool} is not installed");
            return false;
        }
    }
    true
}

/// Runs a tool, which must succeed, and returns what it says.
pub fn run(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

impl Image {
    /// Makes a file system.
    pub fn new(arguments: &str, mebibytes: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let image = Self { directory, path };
        image.make(arguments, mebibytes);
        image
    }

    /// Makes another file system in its place.
    pub fn make(&self, arguments: &str, mebibytes: u32) {
        let size = format!("{mebibytes}M");
        let mut all: Vec<&str> = arguments.split(' ').collect();
        all.extend(["-q", "-F", self.path(), &size]);
        run("mke2fs", &all);
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Runs commands of `debugfs`, one a line.
    pub fn debug(&self, commands: &str) {
        let script = self.directory.path().join("script");
        fs::write(&script, commands).unwrap();
        run(
            "debugfs",
            &["-w", "-f", script.to_str().unwrap(), self.path()],
        );
    }

    /// All its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// Looks for the journal, in the file.
    pub fn find(&self) -> Result<Option<JournalRanges>, JournalError> {
        let file = fs::File::open(&self.path).unwrap();
        let length = file.metadata().unwrap().len();
        let read = |offset, buffer: &mut [u8]| {
            file.read_exact_at(buffer, offset).unwrap();
            Ok(())
        };
        find_ext_journal(read, length)
    }

    /// Runs `tune2fs`.
    pub fn tune(&self, arguments: &str) {
        let mut all: Vec<&str> = arguments.split(' ').collect();
        all.extend(["-f", self.path()]);
        run("tune2fs", &all);
    }

    /// Replaces the journal by one of which no two blocks are neighbours on the disk.
    pub fn scatter_journal(&self, size: &str, blocks_per_group: u32, blocks: u32, gap: u32) {
        self.tune("-O ^has_journal");
        let mut commands = String::new();
        for block in (blocks_per_group / 16..blocks).step_by(gap as usize) {
            commands.push_str(&format!("setb {block} 1\n"));
        }
        self.debug(&commands);
        self.tune(&format!("-J size={size}"));
    }

    /// Blocks of 4 KiB all of whose parts are the journal's, as `debugfs` has them, ascending.
    pub fn journal_blocks(&self) -> Vec<u64> {
        let statistics = run("debugfs", &["-R", "stats -h", self.path()]);
        let line = statistics
            .lines()
            .find(|line| line.starts_with("Block size:"));
        let block_bytes: u64 = line.unwrap()[11..].trim().parse().unwrap();
        let inode = run("debugfs", &["-R", "stat <8>", self.path()]);
        let (_, list) = inode
            .split_once("EXTENTS:")
            .unwrap_or_else(|| inode.split_once("BLOCKS:").expect("debugfs lists blocks"));
        let mut kibibytes = Vec::new();
        let list = list.split("\nTOTAL").next().unwrap();
        for part in list.split([',', '\n']).map(str::trim) {
            // "(0-11):24-35", or of the tree itself "(IND):36", "(ETB0):36"
            let Some((of, at)) = part.split_once("):") else {
                continue;
            };
            if of[1..].starts_with(|letter: char| letter.is_ascii_alphabetic()) {
                continue;
            }
            let (first, last) = at.split_once('-').unwrap_or((at, at));
            let first: u64 = first.parse().unwrap();
            let last: u64 = last.parse().unwrap();
            kibibytes.extend(first * block_bytes / 1024..(last + 1) * block_bytes / 1024);
        }
        kibibytes.sort_unstable();
        kibibytes.dedup();
        let whole = kibibytes
            .windows(4)
            .filter(|part| part[0] % 4 == 0 && part[3] == part[0] + 3);
        whole.map(|part| part[0] / 4).collect()
    }
}

/// Reads of bytes in memory.
pub fn reader(bytes: &[u8]) -> impl FnMut(u64, &mut [u8]) -> Result<(), DeviceError> + '_ {
    |offset, buffer| {
        assert!(offset % 4096 == 0, "reads are aligned");
        let start = offset as usize;
        buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
        Ok(())
    }
}
