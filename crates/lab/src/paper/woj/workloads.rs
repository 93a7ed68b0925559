//! What programs do: jobs on a file system, each counted in the blocks that it writes.
//!
//! A job first *prepares* what must be there, then *runs*; in between the file system is unmounted, so that nothing
//! of the former is left to be written. [`Client`] counts blocks that writes touch, and notes at each
//! fsync what the volume had counted: the windows of Figs. 4.2 to 4.5.
//!
//! Contents are random numbers. The jobs `varmail` and `fileserver` do what Filebench's do, on one thread; in place
//! of time that passes the latter syncs after so many operations. `LevelDB-like` is no LevelDB: a log, sorted
//! files of 2 MiB, and the merging of its first two levels.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use volume::address::BLOCK_BYTES;
use volume::stat::Counters;

use super::observed::Observed;
use crate::interrupt;

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Bytes of a write where a program writes a lot.
const STEP_BYTES: u64 = 1 << 20;
/// A small file (Fig. 4.6).
const SMALL_BYTES: u64 = 64 << 10;
/// Files and mean sizes of varmail.
const MAILS: u64 = 1000;
const MAIL_BYTES: u64 = 16 << 10;
/// Files, mean sizes and appends of fileserver; operations between syncs.
const SERVED_BYTES: u64 = 128 << 10;
const APPEND_BYTES: u64 = 16 << 10;
const OPERATIONS_PER_SYNC: u64 = 500;
/// Of LevelDB: the table in memory, a sorted file, files of the first level before they are merged, bytes of the
/// second before some of it goes further down, bytes of a key, of a record besides.
const MEMORY_TABLE_BYTES: u64 = 4 << 20;
const SORTED_BYTES: u64 = 2 << 20;
const FIRST_LEVEL_FILES: usize = 4;
const SECOND_LEVEL_FILES: usize = 5;
const KEY_BYTES: u64 = 16;
const RECORD_BYTES: u64 = 12;

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Job {
    /// Blocks one after the other to a new file.
    Sequential { window: u32 },
    /// Blocks anywhere in a file.
    Random { window: u32 },
    /// A mail server.
    Varmail,
    /// A file server.
    Fileserver,
    /// One large file.
    CopyLarge,
    /// Many small ones.
    CopySmall,
    /// Values of so many bytes put under random keys.
    LevelDb { value_bytes: u32 },
    /// Files that are given, copied twice.
    Given { name: String, paths: Vec<PathBuf> },
}

impl Job {
    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Self::Sequential { window } => format!("sequential, window {window}"),
            Self::Random { window } => format!("random, window {window}"),
            Self::Varmail => "varmail-like".to_owned(),
            Self::Fileserver => "fileserver-like".to_owned(),
            Self::CopyLarge => "cp_L".to_owned(),
            Self::CopySmall => "cp_S".to_owned(),
            Self::LevelDb { value_bytes } => format!("LevelDB-like, values of {value_bytes}"),
            Self::Given { name, .. } => format!("{name}, copied twice"),
        }
    }

    /// Makes what must be there before.
    pub fn prepare(&self, client: &mut Client<'_>) -> Result<()> {
        match self {
            Self::Random { .. } => {
                let file = client.create("file")?;
                let bytes = client.bytes;
                client.fill(&file, 0, bytes)
            }
            Self::Varmail => (0..MAILS).try_for_each(|number| client.whole(number, MAIL_BYTES)),
            Self::Fileserver => {
                let files = client.bytes / SERVED_BYTES;
                (0..files).try_for_each(|number| client.whole(number, SERVED_BYTES))
            }
            _ => Ok(()),
        }
    }

    /// Does it.
    pub fn run(&self, client: &mut Client<'_>) -> Result<()> {
        match self {
            Self::Sequential { window } => client.blocks(*window, false),
            Self::Random { window } => client.blocks(*window, true),
            Self::Varmail => varmail(client),
            Self::Fileserver => fileserver(client),
            Self::CopyLarge => {
                let file = client.create("large")?;
                let bytes = client.bytes;
                client.fill(&file, 0, bytes)?;
                client.sync(&file)
            }
            Self::CopySmall => {
                let files = client.bytes / SMALL_BYTES;
                (0..files).try_for_each(|number| {
                    let file = client.create(&format!("small{number}"))?;
                    client.fill(&file, 0, SMALL_BYTES)
                })?;
                client.sync_all()
            }
            Self::LevelDb { value_bytes } => level_db(client, u64::from(*value_bytes)),
            Self::Given { paths, .. } => given(client, paths),
        }
    }
}

/// A program on a file system.
pub struct Client<'a> {
    root: PathBuf,
    device: &'a Observed,
    /// How much a job is about.
    bytes: u64,
    random: u64,
    buffer: Vec<u8>,
    /// Blocks that were written.
    pub blocks: u64,
    /// What the volume had counted at the end of each window.
    pub windows: Vec<Counters>,
}

impl<'a> Client<'a> {
    /// A program that works in a directory.
    pub fn new(root: PathBuf, device: &'a Observed, bytes: u64, seed: u64) -> Self {
        Self {
            root,
            device,
            bytes,
            random: seed | 1,
            buffer: vec![0; STEP_BYTES as usize],
            blocks: 0,
            windows: Vec::new(),
        }
    }

    /// The next random number (xorshift64*).
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random() % limit.max(1)
    }

    fn create(&self, name: &str) -> Result<File> {
        let path = self.root.join(name);
        File::create(&path).with_context(|| format!("making {}", path.display()))
    }

    /// Writes random numbers.
    fn fill(&mut self, file: &File, offset: u64, bytes: u64) -> Result<()> {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let length = STEP_BYTES.min(end - at);
            for start in (0..length as usize).step_by(8) {
                let number = self.random().to_le_bytes();
                self.buffer[start..start + 8].copy_from_slice(&number);
            }
            file.write_all_at(&self.buffer[..length as usize], at)?;
            self.touched(at, length);
            at += length;
        }
        Ok(())
    }

    fn touched(&mut self, offset: u64, bytes: u64) {
        self.blocks += (offset + bytes).div_ceil(BLOCK) - offset / BLOCK;
    }

    /// The end of a window.
    fn sync(&mut self, file: &File) -> Result<()> {
        file.sync_all()?;
        self.windows.push(self.device.volume().counters());
        Ok(interrupt::check()?)
    }

    fn sync_all(&mut self) -> Result<()> {
        rustix::fs::syncfs(File::open(&self.root)?)?;
        self.windows.push(self.device.volume().counters());
        Ok(interrupt::check()?)
    }

    /// A new file of about so many bytes, under a number.
    fn whole(&mut self, number: u64, mean_bytes: u64) -> Result<()> {
        let file = self.create(&format!("f{number}"))?;
        let bytes = self.about(mean_bytes);
        self.fill(&file, 0, bytes)
    }

    fn about(&mut self, mean_bytes: u64) -> u64 {
        mean_bytes / 2 + self.below(mean_bytes)
    }

    fn append(&mut self, number: u64, mean_bytes: u64, is_synced: bool) -> Result<()> {
        let path = self.root.join(format!("f{number}"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let bytes = self.about(mean_bytes);
        self.fill(&file, file.metadata()?.len(), bytes)?;
        if is_synced { self.sync(&file) } else { Ok(()) }
    }

    fn remove(&self, number: u64) -> Result<()> {
        Ok(fs::remove_file(self.root.join(format!("f{number}")))?)
    }

    /// Single blocks, with an fsync after each window.
    fn blocks(&mut self, window: u32, is_random: bool) -> Result<()> {
        let path = self.root.join("file");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let span = self.bytes / BLOCK;
        // With windows of one block that takes long.
        let count = if window == 1 { span / 8 } else { span };
        let count = count.max(u64::from(window));
        for number in 0..count {
            let block = match is_random {
                true => self.below(span),
                false => number,
            };
            self.fill(&file, block * BLOCK, BLOCK)?;
            if (number + 1) % u64::from(window) == 0 {
                self.sync(&file)?;
            }
        }
        self.sync(&file)
    }
}

/// Delete one; a new one of one append and an fsync; append to one, with an fsync; read it.
fn varmail(client: &mut Client<'_>) -> Result<()> {
    let mut there: Vec<u64> = (0..MAILS).collect();
    let rounds = (client.bytes / MAIL_BYTES / 8).max(1);
    for number in 0..rounds {
        let place = client.below(there.len() as u64) as usize;
        client.remove(there[place])?;
        there[place] = MAILS + number;
        client.append(there[place], MAIL_BYTES, true)?;
        let other = there[client.below(there.len() as u64) as usize];
        client.append(other, MAIL_BYTES, true)?;
        fs::read(client.root.join(format!("f{other}")))?;
    }
    Ok(())
}

/// A new file; append to one; read one; delete one; ask about one.
fn fileserver(client: &mut Client<'_>) -> Result<()> {
    let first = (client.bytes / SERVED_BYTES).max(1);
    let mut there: Vec<u64> = (0..first).collect();
    let rounds = (client.bytes / SERVED_BYTES).max(1);
    for number in 0..rounds {
        client.whole(first + number, SERVED_BYTES)?;
        there.push(first + number);
        let any = there[client.below(there.len() as u64) as usize];
        client.append(any, APPEND_BYTES, false)?;
        fs::read(client.root.join(format!("f{any}")))?;
        let place = client.below(there.len() as u64) as usize;
        client.remove(there.swap_remove(place))?;
        let any = there[client.below(there.len() as u64) as usize];
        fs::metadata(client.root.join(format!("f{any}")))?;
        if (number + 1) * 5 % OPERATIONS_PER_SYNC < 5 {
            client.sync_all()?;
        }
    }
    client.sync_all()
}

/// Records go to a log; when the table in memory is full, they are a sorted file of the first level; four of those
/// are merged with all of the second level, whose files beyond five are no longer touched.
fn level_db(client: &mut Client<'_>, value_bytes: u64) -> Result<()> {
    let record = KEY_BYTES + value_bytes + RECORD_BYTES;
    let mut number = 0;
    let mut first_level: BTreeSet<u64> = BTreeSet::new();
    let mut second_level: BTreeSet<u64> = BTreeSet::new();
    let mut left = client.bytes;
    while left > 0 {
        let log = client.create("log")?;
        let before = client.blocks;
        let mut at = 0;
        while at < MEMORY_TABLE_BYTES.min(left) {
            client.fill(&log, at, record)?;
            at += record;
        }
        // Many records to a block.
        client.blocks = before + at.div_ceil(BLOCK);
        left = left.saturating_sub(at);
        for _ in 0..at.div_ceil(SORTED_BYTES) {
            number += 1;
            sorted_file(client, number)?;
            first_level.insert(number);
        }
        if first_level.len() < FIRST_LEVEL_FILES {
            continue;
        }
        let merged = first_level.len() + second_level.len();
        let mut old: Vec<u64> = first_level.iter().chain(&second_level).copied().collect();
        first_level.clear();
        second_level.clear();
        for _ in 0..merged {
            number += 1;
            sorted_file(client, number)?;
            second_level.insert(number);
        }
        old.drain(..).try_for_each(|number| client.remove(number))?;
        while second_level.len() > SECOND_LEVEL_FILES {
            second_level.pop_first();
        }
    }
    client.sync_all()
}

fn sorted_file(client: &mut Client<'_>, number: u64) -> Result<()> {
    let file = client.create(&format!("f{number}"))?;
    client.fill(&file, 0, SORTED_BYTES)?;
    client.sync(&file)
}

/// Copies what is given, twice, as far as the size goes.
fn given(client: &mut Client<'_>, paths: &[PathBuf]) -> Result<()> {
    for round in ["one", "two"] {
        let mut left = client.bytes;
        let into = client.root.join(round);
        fs::create_dir(&into)?;
        for (number, path) in paths.iter().enumerate() {
            copy(client, path, &into.join(number.to_string()), &mut left)?;
        }
        client.sync_all()?;
    }
    Ok(())
}

/// Files of a directory, and their bytes.
///
/// # Errors
/// When it can't be read.
pub fn count(path: &Path, files: &mut u64, bytes: &mut u64) -> Result<()> {
    let reading = || format!("reading {}", path.display());
    let metadata = fs::symlink_metadata(path).with_context(reading)?;
    if metadata.is_file() {
        *files += 1;
        *bytes += metadata.len();
    } else if metadata.is_dir() {
        for entry in fs::read_dir(path).with_context(reading)? {
            count(&entry.with_context(reading)?.path(), files, bytes)?;
        }
    }
    Ok(())
}

/// Files and directories in the order of their names; others are left out.
fn copy(client: &mut Client<'_>, from: &Path, to: &Path, left: &mut u64) -> Result<()> {
    interrupt::check()?;
    let reading = || format!("reading {}", from.display());
    let kind = fs::symlink_metadata(from)
        .with_context(reading)?
        .file_type();
    if *left == 0 {
        return Ok(());
    }
    if kind.is_dir() {
        fs::create_dir(to)?;
        let entries: Result<Vec<_>, _> = fs::read_dir(from).with_context(reading)?.collect();
        let mut names: Vec<_> = entries?.iter().map(fs::DirEntry::file_name).collect();
        names.sort_unstable();
        return names
            .iter()
            .try_for_each(|name| copy(client, &from.join(name), &to.join(name), left));
    }
    if !kind.is_file() {
        return Ok(());
    }
    let mut source = File::open(from).with_context(reading)?;
    let target = File::create(to)?;
    let mut buffer = vec![0; STEP_BYTES as usize];
    let mut at = 0;
    loop {
        let length = source.read(&mut buffer).with_context(reading)?;
        let length = length.min(*left as usize);
        if length == 0 {
            return Ok(());
        }
        target.write_all_at(&buffer[..length], at)?;
        client.touched(at, length as u64);
        at += length as u64;
        *left -= length as u64;
    }
}
