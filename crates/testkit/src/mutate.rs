//! Hostile bytes: stored samples, changed a little, for the tests of decoders.
//!
//! Enter: samples that a decoder takes. Leave: bytes that are nearly so, which reach deeper
//! than noise does: noise fails at the first length. [`attack`] gives a decoder thousands of
//! them, prints what is needed to replay the one that broke it, and sees to it that none makes
//! the process take much memory: a length that is believed before it is checked.
//!
//! A crate lists its decoders as [`Target`]s and names them in [`attack_tests!`](crate::attack_tests).
//! Fuzzers (`fuzz/`) run the same checks with mutations of their own, guided by coverage, for
//! as long as one likes; this is the short run that belongs to every test run.

use std::fs;
use std::sync::{Mutex, PoisonError};

use engine::format::put_varint;

use crate::random::Random;

/// Address space that the attacks of a process may add. Generous, because the watch sees the whole
/// process: allocators reserve 64 MiB for each thread, and other tests work beside an attack.
/// A hostile length that is believed asks for far more.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Mutations between two looks at the memory of the process, which cost a system call each.
const ROUNDS_A_LOOK: u64 = 64;

/// Most changes to one sample.
const CHANGES_MAX: u64 = 4;

/// Most bytes inserted, deleted or repeated by one change.
const CHANGE_BYTES_MAX: usize = 40;

/// Numbers at which limits lie and arithmetic overflows.
const NUMBERS: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x1_0000,
    1 << 20,
    1 << 24,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 62,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// One decoder under attack.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the test and of the fuzz target.
    pub name: &'static str,
    /// Panics when the decoder does something wrong with these bytes.
    pub check: fn(&[u8]),
    /// Bytes that the decoder takes.
    pub samples: fn() -> Vec<Vec<u8>>,
    /// Mutations in a test run: a second or less.
    pub rounds: u64,
}

/// A test of each [`Target`] in a list, and one that no target was forgotten, here or in `fuzz/`.
///
/// `attack_tests!(TARGETS; integers, field_list);`
#[macro_export]
macro_rules! attack_tests {
    ($targets:expr; $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let name = stringify!($name);
                let target = $targets.iter().find(|target| target.name == name);
                let target = target.expect("it is in the list");
                let samples = (target.samples)();
                $crate::mutate::attack(name, &samples, target.rounds, target.check);
            }
        )*

        #[test]
        fn every_target_is_attacked_and_fuzzed() {
            let attacked = [$(stringify!($name)),*];
            let fuzz = ::std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
            for target in $targets {
                assert!(attacked.contains(&target.name), "{} has no test", target.name);
                let file = fuzz.join("fuzz_targets").join(target.name).with_extension("rs");
                assert!(file.exists(), "{} has no fuzz target", target.name);
            }
        }
    };
}

/// Gives `check` the samples, nothing at all, every beginning of the shortest sample, and
/// `rounds` mutations. `check` panics when it finds a decoder wanting.
///
/// Attacks wait for each other: the memory of all threads is counted together.
///
/// # Panics
/// When `check` does, without samples, or when memory grows beyond a bound.
pub fn attack(name: &str, samples: &[Vec<u8>], rounds: u64, check: impl Fn(&[u8])) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = MemoryWatch::start();
    let give = |what: &str, bytes: &[u8]| {
        let witness = Witness { name, what, bytes };
        check(bytes);
        drop(witness);
    };
    for (number, sample) in samples.iter().enumerate() {
        give(&format!("sample {number}"), sample);
    }
    let shortest = samples.iter().min_by_key(|sample| sample.len());
    let shortest = shortest.expect("there are samples");
    let stride = shortest.len() / 1024 + 1;
    for end in (0..shortest.len()).step_by(stride) {
        give(&format!("the first {end} bytes"), &shortest[..end]);
    }
    for round in 0..rounds {
        let bytes = mutated(samples, round);
        give(&format!("mutation {round}"), &bytes);
        if round % ROUNDS_A_LOOK == 0 {
            memory.look(name, round);
        }
    }
    memory.look(name, rounds);
}

/// One of the samples with one to four changes: the same for the same samples and seed.
///
/// # Panics
/// Without samples.
#[must_use]
pub fn mutated(samples: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = samples[random.index(samples.len())].clone();
    for _ in 0..=random.below(CHANGES_MAX) {
        change(&mut bytes, samples, &mut random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, samples: &[Vec<u8>], random: &mut Random) {
    let place = place_in(bytes, random);
    let end = (place + 1 + random.index(CHANGE_BYTES_MAX)).min(bytes.len());
    match random.below(10) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = random.bits() as u8;
            }
        }
        3 => bytes.truncate(place),
        4 => {
            let count = random.index(CHANGE_BYTES_MAX);
            let new = random.bytes(count);
            bytes.splice(place..place, new);
        }
        5 => drop(bytes.drain(place..end)),
        6 => {
            let repeated = bytes[place..end].to_vec();
            bytes.splice(place..place, repeated);
        }
        7 => {
            let other = &samples[random.index(samples.len())];
            let other_place = place_in(other, random);
            bytes.truncate(place);
            bytes.extend_from_slice(&other[other_place..]);
        }
        _ => put_number(bytes, place, random),
    }
}

/// A place in `bytes` or at their end; half of the time near the beginning, where the counts
/// and lengths are.
fn place_in(bytes: &[u8], random: &mut Random) -> usize {
    let limit = bytes.len() + 1;
    let limit = if random.coin() { limit.min(64) } else { limit };
    random.index(limit)
}

/// Puts a number that is likely to be trouble over what stands at `place`, or before it.
fn put_number(bytes: &mut Vec<u8>, place: usize, random: &mut Random) {
    let number = NUMBERS[random.index(NUMBERS.len())];
    let mut new = Vec::with_capacity(10);
    match random.below(4) {
        0 => new.extend_from_slice(&(number as u32).to_le_bytes()),
        1 => new.extend_from_slice(&number.to_le_bytes()),
        _ => put_varint(&mut new, number),
    }
    let over = match random.below(3) {
        0 => 0,
        1 => 1,
        _ => new.len(),
    };
    let end = (place + over).min(bytes.len());
    bytes.splice(place..end, new);
}

/// Says what was being decoded when a check panics.
struct Witness<'a> {
    name: &'a str,
    what: &'a str,
    bytes: &'a [u8],
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let shown = &self.bytes[..self.bytes.len().min(4096)];
        let digits: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        let length = self.bytes.len();
        eprintln!("{}: {}, {length} bytes: {digits}", self.name, self.what);
    }
}

/// Watches the greatest address space that this process ever had (`VmPeak`): memory that was
/// reserved counts, whether it was touched or not. Where the system does not say, nothing is
/// watched.
struct MemoryWatch {
    bytes_before: Option<u64>,
}

impl MemoryWatch {
    fn start() -> Self {
        Self {
            bytes_before: peak_bytes(),
        }
    }

    fn look(&self, name: &str, round: u64) {
        let (Some(before), Some(now)) = (self.bytes_before, peak_bytes()) else {
            return;
        };
        let grown = now - before;
        assert!(
            grown <= MEMORY_BYTES_MAX,
            "{name}: one of the {ROUNDS_A_LOOK} mutations before {round} took {grown} bytes"
        );
    }
}

fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmPeak:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use super::*;

    fn samples() -> Vec<Vec<u8>> {
        vec![(0..200).collect(), vec![7; 30]]
    }

    #[test]
    fn mutations_replay_and_differ() {
        let samples = samples();
        let all: Vec<_> = (0..500).map(|seed| mutated(&samples, seed)).collect();
        let again: Vec<_> = (0..500).map(|seed| mutated(&samples, seed)).collect();
        assert_eq!(all, again);
        let distinct: HashSet<_> = all.iter().collect();
        assert!(distinct.len() > 400, "{} distinct", distinct.len());
        assert!(all.iter().all(|bytes| bytes.len() < 1000));
    }

    #[test]
    fn an_attack_gives_everything() {
        let given = RefCell::new(Vec::new());
        attack("test", &samples(), 100, |bytes| {
            given.borrow_mut().push(bytes.to_vec());
        });
        let given = given.into_inner();
        assert_eq!(given.len(), 2 + 30 + 100);
        assert_eq!(given[..2], samples());
        assert!(given.contains(&Vec::new()));
    }

    #[test]
    #[should_panic(expected = "found it")]
    fn what_breaks_a_check_is_not_hidden() {
        attack("test", &samples(), 1000, |bytes| {
            assert!(bytes.len() < 220, "found it");
        });
    }

    #[test]
    fn memory_is_seen_where_the_system_tells() {
        let expected = cfg!(target_os = "linux");
        assert_eq!(peak_bytes().is_some_and(|bytes| bytes > 0), expected);
    }
}
