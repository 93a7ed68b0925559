//! Crashes under a file system: what was synced through ext4, a loop device and a volume is there, `e2fsck` has only to
//! replay the journal, and the volume's own check finds nothing. Who ignores syncs or flushes is caught.
//!
//! Every change is made durable before the next one begins. So in any state at most one is in doubt, and of
//! that one it is known what may be seen. Changes beside them that nobody syncs keep transactions large.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use volume::backing::{Backing, Event, MemoryBacking, RecordingBacking};
use volume::{
    BlockDevice, DeviceError, Extent, Geometry, Persistence, Policy, Volume, VolumeSettings,
};

use crate::common::{BLOCK, Random, crashed, options, recorded};
use crate::programs::{check_clean, replay};
use crate::stack::{Ext4, Layout, Stack, dump};
use crate::workload::{Files, bytes};

/// How a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// At its end: of what is new, a beginning may be there.
    Append,
    /// By a rename or a removal: it is as before or as after.
    Replace,
    /// In its middle: each block is as before or as after.
    Overwrite,
}

/// Who says that something is durable, and does nothing for it, in the second half of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Liar {
    Nobody,
    /// It ignores some syncs.
    Store,
    /// It ignores flushes.
    Front,
}

/// A volume's front, which may ignore flushes.
struct Front {
    volume: Volume,
    lies: AtomicBool,
}

impl BlockDevice for Front {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.volume.read(offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.volume.write(offset, data)
    }

    fn write_zeroes(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        self.volume.write_zeroes(offset, length_bytes)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        if self.lies.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.volume.flush()
    }

    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError> {
        self.volume.extents(offset, length_bytes, extents_max)
    }
}

/// A change that was made durable.
#[derive(Debug)]
struct Step {
    name: String,
    change: Change,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    /// Events of the store before it began, and when it was durable.
    events: std::ops::Range<usize>,
}

/// What happened.
struct History {
    settings: VolumeSettings,
    store_bytes: u64,
    events: Vec<Event>,
    /// Events until the file system was mounted.
    mounted: usize,
    /// Events in the first half.
    lied: usize,
    steps: Vec<Step>,
}

/// A mounted file system whose changes are written down.
struct Changer<'a> {
    root: &'a Path,
    recorder: &'a RecordingBacking<MemoryBacking>,
    steps: Vec<Step>,
    random: Random,
}

impl Changer<'_> {
    fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let newest = self.steps.iter().rfind(|step| step.name == name);
        newest.and_then(|step| step.after.clone())
    }

    fn bytes(&mut self, length_max: u64) -> Vec<u8> {
        let length = 1 + self.random.below(length_max) as usize;
        bytes(&mut self.random, length)
    }

    fn step(&mut self) {
        let began = self.recorder.event_count();
        let number = self.random.below(6);
        let (name, change) = match self.random.below(3) {
            0 => (format!("log {number}"), Change::Append),
            1 => (format!("document {number}"), Change::Replace),
            _ => ("table".to_owned(), Change::Overwrite),
        };
        let (path, before) = (self.root.join(&name), self.contents(&name));
        let old = before.clone().unwrap_or_default();
        let after = match change {
            Change::Append => Some(self.append(&path, old)),
            Change::Overwrite => Some(self.overwrite(&path, old)),
            Change::Replace if before.is_some() && self.random.below(3) == 0 => {
                fs::remove_file(&path).unwrap();
                None
            }
            Change::Replace => Some(self.replace(&path)),
        };
        File::open(self.root).unwrap().sync_all().unwrap();
        let events = began..self.recorder.event_count();
        self.steps.push(Step {
            name,
            change,
            before,
            after,
            events,
        });
    }

    fn append(&mut self, path: &Path, mut contents: Vec<u8>) -> Vec<u8> {
        let more = self.bytes(20_000);
        contents.extend(&more);
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(path).unwrap();
        file.write_all(&more).unwrap();
        file.sync_all().unwrap();
        contents
    }

    fn replace(&mut self, path: &Path) -> Vec<u8> {
        let other = self.root.join("new");
        let contents = self.bytes(100_000);
        let mut file = File::create(&other).unwrap();
        file.write_all(&contents).unwrap();
        file.sync_all().unwrap();
        fs::rename(other, path).unwrap();
        contents
    }

    fn overwrite(&mut self, path: &Path, mut contents: Vec<u8>) -> Vec<u8> {
        contents.resize(60_000, 0);
        let new = self.bytes(9000);
        let at = self.random.below(50) as usize * 1000;
        contents[at..at + new.len()].copy_from_slice(&new);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = options.open(path).unwrap();
        file.set_len(60_000).unwrap();
        file.write_all_at(&new, at as u64).unwrap();
        file.sync_data().unwrap();
        contents
    }
}

/// Lives on a volume.
fn record(
    mounted_with: &'static str,
    policy: Policy,
    persistence: Persistence,
    seed: u64,
    liar: Liar,
) -> History {
    let settings = VolumeSettings {
        policy,
        persistence,
        zone_blocks: 64,
        window_blocks: 64,
        ..VolumeSettings::new(48 << 20)
    };
    // Less than the disk: blocks are used again soon.
    let store_bytes = 24 << 20;
    let (recorder, mut events) = recorded(&settings, store_bytes);
    let front = Arc::new(Front {
        volume: Volume::open(Arc::new(recorder.clone()), &options()).unwrap(),
        lies: AtomicBool::new(false),
    });
    let layout = Layout {
        block_bytes: 4096,
        sector_bytes: 4096,
        options: mounted_with,
        external_journal: false,
    };
    let mut stack = Stack::new(front.clone(), layout);
    stack.make();
    let root = stack.mount();
    let mounted = recorder.event_count();
    let mut changer = Changer {
        root: &root,
        recorder: &recorder,
        steps: Vec::new(),
        random: Random(seed),
    };
    let (mut beside, mut random) = (Files::default(), Random(seed + 1));
    let mut lied = mounted;
    for number in 0..90 {
        if number == 45 {
            lied = recorder.event_count();
            front.lies.store(liar == Liar::Front, Ordering::Relaxed);
            if liar == Liar::Store {
                let next = front.volume.counters().syncs;
                recorder.ignore_syncs(next..next + 20);
            }
        }
        if number % 6 == 0 {
            let root = root.join("beside");
            beside.write_tree(&root, &mut random, 4).unwrap();
            beside.change(&root, &mut random, 8).unwrap();
        }
        changer.step();
    }
    let made = events.len();
    let mut steps = changer.steps;
    for step in &mut steps {
        step.events = step.events.start + made..step.events.end + made;
    }
    stack.end();
    events.extend(recorder.take_events());
    History {
        settings,
        store_bytes,
        events,
        mounted: mounted + made,
        lied: lied + made,
        steps,
    }
}

/// Whether a file may have these bytes after a crash in a step, or after it.
fn may_be(step: &Step, found: Option<&Vec<u8>>, is_durable: bool) -> bool {
    if found == step.after.as_ref() {
        return true;
    }
    if is_durable {
        return false;
    }
    if found == step.before.as_ref() {
        return true;
    }
    let (Some(found), Some(after)) = (found, &step.after) else {
        return false;
    };
    let empty = Vec::new();
    let before = step.before.as_ref().unwrap_or(&empty);
    match step.change {
        Change::Replace => false,
        Change::Append => found.starts_with(before) && after.starts_with(found),
        // The first of them makes the file longer.
        Change::Overwrite if before.is_empty() => true,
        Change::Overwrite => {
            let old_or_new = |at: usize| {
                let block = at..(at + BLOCK).min(found.len());
                found[block.clone()] == before[block.clone()]
                    || found[block.clone()] == after[block]
            };
            found.len() == after.len() && (0..found.len()).step_by(BLOCK).all(old_or_new)
        }
    }
}

/// That what was durable after `done` events is there.
fn compare(history: &History, root: &Path, done: usize) -> Result<(), String> {
    let begun = history
        .steps
        .iter()
        .filter(|step| step.events.start <= done);
    let mut newest = std::collections::BTreeMap::new();
    for step in begun {
        newest.insert(&step.name, step);
    }
    for (name, step) in newest {
        let found = match fs::read(root.join(name)) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(format!("{name}: {error}")),
        };
        let is_durable = step.events.end <= done;
        if !may_be(step, found.as_ref(), is_durable) {
            let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(Vec::len);
            return Err(format!(
                "{name} ({:?}, durable: {is_durable}) has {:?} bytes, before {:?}, after {:?}",
                step.change,
                length(&found),
                length(&step.before),
                length(&step.after),
            ));
        }
    }
    Ok(())
}

/// Whether all is there that a client may rely on. An error says what is wrong.
fn judge(history: &History, store: MemoryBacking, done: usize) -> Result<(), String> {
    let backing: Arc<dyn Backing> = Arc::new(store);
    let volume = Volume::open(backing, &options()).map_err(|error| error.to_string())?;
    let report = volume.check(true).map_err(|error| error.to_string())?;
    if !report.is_fine() {
        return Err(format!("check: {report:#?}"));
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    dump(&volume, 0..volume.geometry().size_bytes, &image);
    replay(&image)?;
    check_clean(&image, None)?;
    let ext4 = Ext4::of_image(&image, "defaults")?;
    let compared = compare(history, ext4.path(), done);
    ext4.unmount();
    compared
}

fn crash(
    mounted_with: &'static str,
    policy: Policy,
    persistence: Persistence,
    seed: u64,
    states: u64,
) {
    let start = Instant::now();
    let history = record(mounted_with, policy, persistence, seed, Liar::Nobody);
    let recorded = start.elapsed();
    let mut random = Random(seed);
    let events = history.mounted..history.events.len();
    let syncs: Vec<usize> = events
        .clone()
        .filter(|&number| history.events[number] == Event::Sync)
        .collect();
    for number in 0..states {
        let done = match number % 2 {
            0 => syncs[random.below(syncs.len() as u64) as usize] + 1,
            _ => events.start + 1 + random.below(events.len() as u64) as usize,
        };
        let state = random.0;
        let store = crashed(&history.events, history.store_bytes, done, &mut random);
        if let Err(error) = judge(&history, store, done) {
            panic!(
                "{mounted_with} {} {} seed {seed}, after event {done} of {} (state {state:#x}): {error}",
                history.settings.policy.name(),
                history.settings.persistence.name(),
                history.events.len(),
            );
        }
    }
    println!(
        "{mounted_with:20} {:12} {:7}: {} events, {} syncs in {:.1} s, {states} states in {:.1} s",
        policy.name(),
        persistence.name(),
        history.events.len(),
        syncs.len(),
        recorded.as_secs_f64(),
        (start.elapsed() - recorded).as_secs_f64(),
    );
}

#[test]
fn what_was_synced_survives_crashes() {
    if !crate::can_run() {
        return;
    }
    crash(
        "data=journal,discard",
        Policy::FullAndJournal,
        Persistence::Thin,
        1,
        8,
    );
    crash("data=journal", Policy::Journal, Persistence::Ordered, 2, 5);
    crash(
        "data=ordered,discard",
        Policy::Full,
        Persistence::Thin,
        3,
        8,
    );
    crash(
        "data=ordered",
        Policy::FullAndJournal,
        Persistence::Cow,
        4,
        4,
    );
}

fn catch(liar: Liar) {
    let policy = Policy::FullAndJournal;
    let history = record("data=journal", policy, Persistence::Thin, 5, liar);
    // Until what was said before is made true.
    let later = &history.events[history.lied..];
    let unsynced = later.iter().position(|event| *event == Event::Sync);
    let unsynced = unsynced.unwrap() as u64;
    let (mut random, states) = (Random(6), 8);
    let caught = (0..states).filter(|_| {
        let done = history.lied + (unsynced - random.below(unsynced / 2 + 1)) as usize;
        let store = crashed(&history.events, history.store_bytes, done, &mut random);
        let judged = judge(&history, store, done);
        let said = judged.as_ref().err().map_or("nothing", |error| error);
        let line = said.lines().next().unwrap_or_default();
        println!("{liar:?}, after event {done}: {line}");
        judged.is_err()
    });
    let caught = caught.count();
    assert!(caught >= states / 2, "caught {caught} times of {states}");
}

#[test]
fn who_lies_is_caught() {
    if !crate::can_run() {
        return;
    }
    catch(Liar::Store);
    catch(Liar::Front);
}
