//! What programs do to a file system, and what must be there after it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::common::Random;
use crate::programs::{is_there, run};

/// Files, by their path under the root, and their bytes.
#[derive(Debug, Default)]
pub struct Files(BTreeMap<PathBuf, Vec<u8>>);

/// Bytes of one of three sorts: random, text, blocks of few kinds.
pub fn bytes(random: &mut Random, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 4096);
    let sort = random.below(3);
    while bytes.len() < length {
        match sort {
            0 => bytes.extend(random.bits().to_le_bytes()),
            1 => bytes.extend(format!("line {} of a text\n", random.below(1000)).bytes()),
            _ => bytes.extend([random.below(6) as u8; 4096]),
        }
    }
    bytes.truncate(length);
    bytes
}

impl Files {
    /// A tree of files of many sizes; some have the bytes of others.
    pub fn write_tree(&mut self, root: &Path, random: &mut Random, count: u64) -> io::Result<()> {
        const SIZES: [usize; 10] = [
            0, 1, 700, 1024, 4096, 4097, 20_000, 100_000, 300_000, 900_000,
        ];
        for _ in 0..count {
            let directory = format!("tree/{}/{}", random.below(3), random.below(4));
            let name = PathBuf::from(directory).join(format!("file {}", random.below(1 << 20)));
            let contents = match self.any(random).filter(|_| random.below(4) == 0) {
                Some(other) => self.0[&other].clone(),
                None => {
                    let size = SIZES[random.below(SIZES.len() as u64) as usize];
                    bytes(random, size)
                }
            };
            let path = root.join(&name);
            fs::create_dir_all(path.parent().unwrap())?;
            fs::write(path, &contents)?;
            self.0.insert(name, contents);
        }
        Ok(())
    }

    /// One of the files that [`Files::write_tree`] wrote.
    fn any(&self, random: &mut Random) -> Option<PathBuf> {
        let tree = || self.0.keys().filter(|name| name.starts_with("tree"));
        let count = tree().count() as u64;
        (count > 0).then(|| tree().nth(random.below(count) as usize).unwrap().clone())
    }

    /// As mail servers and databases do: little is added, and made durable.
    pub fn append(&mut self, root: &Path, random: &mut Random, count: u64) -> io::Result<()> {
        for _ in 0..count {
            let name = PathBuf::from(format!("log {}", random.below(3)));
            let length = 1 + random.below(6000) as usize;
            let more = bytes(random, length);
            let path = root.join(&name);
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            file.write_all(&more)?;
            file.sync_data()?;
            self.0.entry(name).or_default().extend(more);
        }
        Ok(())
    }

    /// Renames, deletes, overwrites, cuts.
    pub fn change(&mut self, root: &Path, random: &mut Random, count: u64) -> io::Result<()> {
        for _ in 0..count {
            let Some(name) = self.any(random) else {
                return Ok(());
            };
            let path = root.join(&name);
            match random.below(5) {
                0 => {
                    let other = self.any(random).unwrap();
                    fs::rename(path, root.join(&other))?;
                    let contents = self.0.remove(&name).unwrap();
                    self.0.insert(other, contents);
                }
                1 => {
                    fs::remove_file(path)?;
                    self.0.remove(&name);
                }
                2 => {
                    let contents = self.0.get_mut(&name).unwrap();
                    let length = random.below(contents.len() as u64 + 5000);
                    contents.resize(length as usize, 0);
                    OpenOptions::new().write(true).open(path)?.set_len(length)?;
                }
                _ => {
                    let contents = self.0.get_mut(&name).unwrap();
                    let at = random.below(contents.len() as u64 + 1) as usize;
                    let length = 1 + random.below(9000) as usize;
                    let new = bytes(random, length);
                    contents.resize(contents.len().max(at + new.len()), 0);
                    contents[at..at + new.len()].copy_from_slice(&new);
                    let file = OpenOptions::new().write(true).open(path)?;
                    file.write_all_at(&new, at as u64)?;
                }
            }
        }
        Ok(())
    }

    /// A database, where `sqlite3` is there.
    pub fn use_database(&mut self, root: &Path, random: &mut Random, count: u64) {
        if !is_there("sqlite3") {
            println!("sqlite3 is missing: no database");
            return;
        }
        let mut script = String::from("PRAGMA journal_mode=DELETE; PRAGMA synchronous=NORMAL;\n");
        script.push_str("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b BLOB);\n");
        for _ in 0..count {
            let (key, length) = (random.below(500), random.below(3000));
            script.push_str(&format!(
                "BEGIN; INSERT OR REPLACE INTO t VALUES ({key}, randomblob({length}));
                 UPDATE t SET b = zeroblob(900) WHERE a % 50 = {}; COMMIT;\n",
                key % 50
            ));
        }
        self.ask_database(&root.join("database"), &script);
        self.take_in(root, "database");
    }

    fn ask_database(&self, path: &Path, script: &str) -> String {
        run("sqlite3", &[path.to_str().unwrap(), script])
    }

    /// Files as benchmarks of file systems write them, where `fio` is there: many small ones with a sync
    /// after every write, and larger ones.
    pub fn run_jobs(&mut self, root: &Path) {
        if !is_there("fio") {
            println!("fio is missing: no jobs");
            return;
        }
        let directory = root.join("jobs");
        fs::create_dir_all(&directory).unwrap();
        let directory = format!("--directory={}", directory.to_str().unwrap());
        let mail = "--name=mail --rw=randwrite --bs=2k --nrfiles=40 --filesize=4k-16k --fsync=4";
        let files = "--name=files --rw=write --bs=64k --nrfiles=10 --filesize=64k-256k";
        let shared = "--create_on_open=1 --ioengine=psync --thread --minimal --refill_buffers \
                      --allrandrepeat=1 --file_service_type=random --openfiles=8 --size=400k";
        for job in [mail, files] {
            let mut arguments: Vec<&str> = job.split_whitespace().collect();
            arguments.extend(shared.split_whitespace());
            arguments.push(&directory);
            run("fio", &arguments);
        }
        for name in names(&root.join("jobs")) {
            self.take_in(root, &format!("jobs/{}", name.to_str().unwrap()));
        }
    }

    /// What a program wrote is what must be there from now on.
    fn take_in(&mut self, root: &Path, name: &str) {
        let contents = fs::read(root.join(name)).unwrap();
        self.0.insert(name.into(), contents);
    }

    /// That these files, and no others, are there.
    pub fn compare(&self, root: &Path) -> Result<(), String> {
        let found = names(root);
        let wanted: Vec<PathBuf> = self.0.keys().cloned().collect();
        if found != wanted {
            return Err(format!("there are {found:?}, not {wanted:?}"));
        }
        for (name, contents) in &self.0 {
            let found = fs::read(root.join(name)).map_err(|error| format!("{name:?}: {error}"))?;
            if found != *contents {
                let at = found.iter().zip(contents).position(|(a, b)| a != b);
                return Err(format!("{name:?}: byte {at:?} of {}", contents.len()));
            }
        }
        Ok(())
    }

    /// That the database is whole; it is copied, as a read-only file system has no place for its journal.
    pub fn check_database(&self, directory: &Path) {
        let Some(contents) = self.0.get(Path::new("database")) else {
            return;
        };
        let copy = directory.join("copy of the database");
        fs::write(&copy, contents).unwrap();
        let said = self.ask_database(&copy, "PRAGMA integrity_check");
        assert_eq!(said.trim(), "ok");
    }
}

/// Files under a directory, sorted.
fn names(root: &Path) -> Vec<PathBuf> {
    let (mut waiting, mut found) = (vec![root.to_path_buf()], Vec::new());
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if !kind.is_dir() => found.push(path.strip_prefix(root).unwrap().into()),
                Ok(_) if entry.file_name() != "lost+found" => waiting.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}
