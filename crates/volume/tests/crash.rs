//! Crashes: what a backing store may hold after its machine stopped, at every sync and between them.
//!
//! The writes and syncs that a volume does are recorded. A crash state is what was synced, and of the
//! writes after that some sectors. Whatever the state, the volume opens, `check` finds nothing, and the disk is
//! what it was at some moment at or after the last flush that was answered. A disk that ignores syncs must fail.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use common::*;
use volume::backing::{Backing, Event, MemoryBacking};
use volume::{BlockDevice, Persistence, Policy, RamDisk, Volume, VolumeSettings};

const BLOCKS: u64 = 400;

/// What happened: the store's events, and for each moment when a client was answered how many there were.
struct History {
    settings: VolumeSettings,
    store_bytes: u64,
    events: Vec<Event>,
    /// For each operation: events when it was answered, and whether it was a flush.
    answers: Vec<(usize, bool)>,
    operations: Vec<Operation>,
    pinned: Option<(u32, usize)>,
    /// Operations between two steps of a commit.
    amid_commits: usize,
}

/// How the volume is used.
#[derive(Clone)]
struct Use {
    policy: Policy,
    persistence: Persistence,
    /// Whether there is room for commits to be done aside, a step now and then; else whoever writes does
    /// them whole.
    aside: bool,
    /// Whether generations are pinned and removed, zones emptied and all of it checked meanwhile, by another
    /// thread: then a seed is no other time what it was.
    upkeep: bool,
    ignored_syncs: std::ops::Range<u64>,
}

impl Use {
    fn new(policy: Policy, persistence: Persistence) -> Self {
        Self {
            policy,
            persistence,
            aside: false,
            upkeep: false,
            ignored_syncs: 0..0,
        }
    }
}

fn record(how: &Use, seed: u64) -> History {
    let policy = how.policy;
    let settings = small(BLOCKS, policy, how.persistence);
    // Not much more than the disk takes: blocks are used again soon.
    let room = match (how.aside, how.upkeep) {
        (_, true) => 4,
        (true, _) => 2,
        _ => 1,
    };
    let store_bytes = room * Volume::backing_bytes_for(&settings);
    let (recorder, mut events) = recorded(&settings, store_bytes);
    recorder.ignore_syncs(how.ignored_syncs.clone());
    let volume = Volume::open(Arc::new(recorder.clone()), &options()).unwrap();
    let mut amid_commits = 0;
    let mut random = Random(seed);
    let (mut operations, mut answers) = (Vec::new(), Vec::new());
    let mut pinned = None;
    let (rounds, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        if how.upkeep {
            scope.spawn(|| keep_up(&volume, &rounds, &ends));
        }
        let mut step = 0;
        while step < 400 || (how.upkeep && step < 800 && rounds.load(Relaxed) < 3) {
            let operation = operation(&mut random, settings.size_bytes, 4096, 200);
            apply(&volume, &operation);
            answers.push((recorder.event_count(), operation == Operation::Flush));
            operations.push(operation);
            if how.aside && random.below(24) == 0 {
                amid_commits += usize::from(volume.commit_step().unwrap());
            }
            step += 1;
            let pins = policy == Policy::Full && !how.upkeep;
            if step == 150 && pins {
                let number = volume.pin().unwrap();
                pinned = Some((number, recorder.event_count()));
            }
            if step == 300
                && let Some((number, _)) = pinned
            {
                volume.unpin(number).unwrap();
            }
        }
        ends.store(true, Relaxed);
    });
    for (answer, _) in &mut answers {
        *answer += events.len();
    }
    events.extend(recorder.take_events());
    History {
        settings,
        store_bytes,
        events,
        answers,
        operations,
        pinned,
        amid_commits,
    }
}

/// Everything that goes on beside clients.
fn keep_up(volume: &Volume, rounds: &AtomicUsize, ends: &AtomicBool) {
    while !ends.load(Relaxed) {
        let older = volume.pin().unwrap();
        let newer = volume.pin().unwrap();
        volume.compact().unwrap();
        assert_fine(volume, "while it is written to");
        volume.unpin(newer).unwrap();
        volume.compact().unwrap();
        volume.unpin(older).unwrap();
        assert_fine(volume, "while it is written to");
        rounds.fetch_add(1, Relaxed);
    }
}

/// Operations as a disk of that persistence takes them: block by block.
fn single_steps(operation: &Operation) -> Vec<Operation> {
    match operation {
        Operation::Write { offset, data } => data
            .chunks(BLOCK)
            .enumerate()
            .map(|(number, block)| Operation::Write {
                offset: offset + (number * BLOCK) as u64,
                data: block.to_vec(),
            })
            .collect(),
        other => vec![other.clone()],
    }
}

/// Whether the volume in a store is what a client may find. An error says what is wrong.
fn judge(
    history: &History,
    store: MemoryBacking,
    done: usize,
    random: &mut Random,
) -> Result<(), String> {
    let backing: Arc<dyn Backing> = Arc::new(store);
    let volume =
        Volume::open(Arc::clone(&backing), &options()).map_err(|error| error.to_string())?;
    let report = volume.check(true).map_err(|error| error.to_string())?;
    if !report.is_fine() {
        return Err(format!("check: {report:#?}"));
    }
    // At least what the last answered flush covered, at most what was begun.
    let flushed = history
        .answers
        .iter()
        .rposition(|&(events, flush)| flush && events <= done)
        .map_or(0, |at| at + 1);
    let begun = history
        .answers
        .iter()
        .position(|&(events, _)| events > done)
        .map_or(history.answers.len(), |at| at + 1);
    let found = contents_of(&volume);
    let model = RamDisk::new(history.settings.size_bytes as usize, 4096);
    for operation in &history.operations[..flushed] {
        apply(&model, operation);
    }
    // What came after the flush is there as a prefix; with pages written in place, block by block.
    let mut fits = vec![contents_of(&model) == found];
    let mut blocks = block_matches(&found, &contents_of(&model));
    for operation in &history.operations[flushed..begun] {
        for step in single_steps(operation) {
            apply(&model, &step);
            let now = contents_of(&model);
            fits.push(now == found);
            for (fit, now) in blocks.iter_mut().zip(block_matches(&found, &now)) {
                *fit |= now;
            }
        }
    }
    let in_place = history.settings.persistence == Persistence::Ordered;
    if let Some(block) = blocks.iter().position(|fit| !fit) {
        return Err(format!(
            "block {block} is as it was at no moment between operations {flushed} and {begun}"
        ));
    }
    if !in_place && !fits.contains(&true) {
        return Err(format!(
            "the disk is as it was at no moment between operations {flushed} and {begun}"
        ));
    }
    go_on(&volume, &backing, found, random)
}

/// A volume that came back from a crash works.
fn go_on(
    volume: &Volume,
    backing: &Arc<dyn Backing>,
    found: Vec<u8>,
    random: &mut Random,
) -> Result<(), String> {
    if random.below(8) != 0 {
        return Ok(());
    }
    let model = RamDisk::new(found.len(), 4096);
    model.write(0, &found).unwrap();
    for _ in 0..60 {
        let operation = operation(random, found.len() as u64, 4096, 200);
        apply(volume, &operation);
        apply(&model, &operation);
    }
    volume.flush().unwrap();
    // As after another crash: it is not closed.
    let again = Volume::open(Arc::clone(backing), &options()).map_err(|error| error.to_string())?;
    let report = again.check(true).map_err(|error| error.to_string())?;
    if !report.is_fine() || contents_of(&again) != contents_of(&model) {
        return Err(format!("after it went on: {report:#?}"));
    }
    Ok(())
}

fn block_matches(found: &[u8], wanted: &[u8]) -> Vec<bool> {
    found
        .chunks(BLOCK)
        .zip(wanted.chunks(BLOCK))
        .map(|(a, b)| a == b)
        .collect()
}

fn crash_everywhere(how: &Use, seed: u64, states_between: usize) {
    let history = record(how, seed);
    assert!(
        !how.aside || history.amid_commits > 4,
        "{} steps aside",
        history.amid_commits
    );
    let mut random = Random(seed ^ 0x0c4a_54e5);
    let mut points: Vec<usize> = (2..=history.events.len())
        .filter(|&at| history.events[at - 1] == Event::Sync)
        .collect();
    if how.upkeep {
        points.clear();
    }
    for _ in 0..states_between {
        points.push(2 + random.below(history.events.len() as u64 - 1) as usize);
    }
    for done in points {
        let state = random.0;
        let store = crashed(&history.events, history.store_bytes, done, &mut random);
        if let Err(error) = judge(&history, store, done, &mut random) {
            panic!(
                "{} {} seed {seed}, after event {done} of {} (state {state:#x}, pinned {:?}): {error}",
                how.policy.name(),
                how.persistence.name(),
                history.events.len(),
                history.pinned,
            );
        }
    }
}

#[test]
fn thin_survives_crashes() {
    for policy in Policy::ALL {
        crash_everywhere(&Use::new(policy, Persistence::Thin), 11, 80);
    }
}

#[test]
fn commits_that_are_done_aside_survive_crashes() {
    let seeds = std::env::var("SEEDS").map_or(2, |count| count.parse().unwrap());
    for seed in 31..31 + seeds {
        for policy in [Policy::None, Policy::Full] {
            let aside = true;
            let how = Use::new(policy, Persistence::Thin);
            crash_everywhere(&Use { aside, ..how }, seed, 200);
        }
    }
}

#[test]
fn upkeep_beside_clients_survives_crashes() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        let how = Use {
            upkeep: true,
            ..Use::new(Policy::Full, persistence)
        };
        crash_everywhere(&how, 41, 60);
    }
}

#[test]
fn windows_go_on_while_a_commit_waits() {
    let settings = small(BLOCKS, Policy::Full, Persistence::Thin);
    let store_bytes = 4 * Volume::backing_bytes_for(&settings);
    let memory = MemoryBacking::new(store_bytes);
    Volume::create(&memory, &settings, Some(store_bytes)).unwrap();
    let backing: Arc<dyn Backing> = Arc::new(memory);
    let volume = open(&backing);
    let model = RamDisk::new(settings.size_bytes as usize, 4096);
    let mut random = Random(3);
    let write = |random: &mut Random| {
        let offset = random.below(BLOCKS) * BLOCK as u64;
        let data = content(random.below(10_000) * 8 + 5);
        volume.write(offset, &data).unwrap();
        model.write(offset, &data).unwrap();
    };
    for turn in 0..10 {
        while !volume.commit_step().unwrap() {
            write(&mut random);
        }
        // More than the zones have room for that the durable superblock names.
        for _ in 0..2000 {
            write(&mut random);
        }
        volume.flush().unwrap();
        let again = open(&crash_copy(&backing, store_bytes));
        assert_equal(&again, &model, &format!("turn {turn}"));
        assert_fine(&again, &format!("turn {turn}"));
    }
}

fn crash_copy(backing: &Arc<dyn Backing>, bytes: u64) -> Arc<dyn Backing> {
    let mut all = vec![0; bytes as usize];
    backing.read_at(0, &mut all).unwrap();
    let copy = MemoryBacking::new(bytes);
    copy.write_at(0, &all).unwrap();
    Arc::new(copy)
}

#[test]
fn ordered_survives_crashes() {
    for (policy, seed) in [(Policy::Full, 12), (Policy::Journal, 13)] {
        crash_everywhere(&Use::new(policy, Persistence::Ordered), seed, 100);
    }
}

#[test]
fn cow_survives_crashes() {
    for (policy, seed) in [(Policy::Full, 14), (Policy::None, 15)] {
        crash_everywhere(&Use::new(policy, Persistence::Cow), seed, 100);
    }
}

#[test]
fn a_disk_that_ignores_syncs_is_caught() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        let how = Use {
            ignored_syncs: 4..10_000,
            ..Use::new(Policy::Full, persistence)
        };
        let history = record(&how, 21);
        let mut random = Random(5);
        let caught = (0..60)
            .filter(|_| {
                let done = 2 + random.below(history.events.len() as u64 - 1) as usize;
                let store = crashed(&history.events, history.store_bytes, done, &mut random);
                judge(&history, store, done, &mut random).is_err()
            })
            .count();
        assert!(
            caught > 20,
            "{}: caught {caught} times of 60",
            persistence.name()
        );
    }
}
