//! Runs that experiments share: each is made once, several at a time.

use anyhow::Result;
use volume::Persistence;
use volume::trace::Access;

use super::device::Device;
use super::driving::{self, Manner, Measured, Place};
use super::published::{COMMIT_ZONES, COMPRESSIBLE_PERCENT};
use super::sources::{GivenTrace, Source, writes_of};
use crate::paper::threads;
use crate::progress::Progress;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// What it is called.
    pub name: &'static str,
    /// What a volume is made with.
    pub persistence: Persistence,
    /// Whether only pages of the mapping count that are written in place.
    pub is_mapping_only: bool,
}

const fn scheme(name: &'static str, persistence: Persistence) -> Scheme {
    Scheme {
        name,
        persistence,
        is_mapping_only: false,
    }
}

/// ThinDedup.
pub const THIN: Scheme = scheme("thin", Persistence::Thin);
/// OrderedWrites.
pub const ORDERED: Scheme = scheme("ordered", Persistence::Ordered);
/// OrderedWrites with no more metadata than the paper calls critical.
pub const MAPPING_ONLY: Scheme = Scheme {
    name: "ordered, mapping only",
    persistence: Persistence::Ordered,
    is_mapping_only: true,
};
/// Dmdedup.
pub const COW: Scheme = scheme("cow", Persistence::Cow);
/// Ideal.
pub const RAM: Scheme = scheme("ram", Persistence::Ram);
/// All of them.
pub const SCHEMES: [Scheme; 5] = [THIN, ORDERED, MAPPING_ONLY, COW, RAM];

/// A run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setup {
    /// What is written.
    pub source: Source,
    /// To what.
    pub manner: Manner,
    /// How many blocks, at most.
    pub writes: u64,
}

/// What was run.
pub struct Bench<'a> {
    /// Traces that are given.
    pub given: &'a [GivenTrace],
    /// Blocks of a run.
    pub writes: u64,
    threads: usize,
    done: Vec<(Setup, Measured)>,
}

impl<'a> Bench<'a> {
    /// Nothing yet.
    pub fn new(given: &'a [GivenTrace], writes: u64, threads: usize) -> Self {
        Self {
            given,
            writes,
            threads,
            done: Vec::new(),
        }
    }

    /// A run as most are.
    pub fn setup(&self, source: Source, scheme: Scheme, window: u32) -> Setup {
        Setup {
            source,
            manner: Manner {
                persistence: scheme.persistence,
                window,
                commit_zones: COMMIT_ZONES,
                compressible_percent: COMPRESSIBLE_PERCENT,
            },
            writes: self.writes,
        }
    }

    /// Makes the runs that were not made yet.
    ///
    /// # Errors
    /// When one fails, or somebody asked for a stop.
    pub fn run(&mut self, setups: &[Setup], doing: &str, progress: &mut Progress) -> Result<()> {
        let mut missing: Vec<Setup> = Vec::new();
        for setup in setups {
            if self.find(setup).is_none() && !missing.contains(setup) {
                missing.push(*setup);
            }
        }
        let bytes = |setup: &Setup| setup.writes * volume::trace::BLOCK_BYTES;
        progress.expect(missing.iter().map(bytes).sum());
        for part in missing.chunks(self.threads) {
            let given = self.given;
            let results = threads::run(self.threads, 1, part.len(), |index| {
                let setup = &part[index];
                let (span_bytes, writes) = writes_of(setup.source, given, setup.writes)?;
                driving::run(&setup.manner, span_bytes, Place::Nowhere, writes)
            });
            for (setup, measured) in part.iter().zip(results) {
                self.done.push((*setup, measured?));
                progress.advance(bytes(setup), doing);
            }
        }
        Ok(())
    }

    fn find(&self, setup: &Setup) -> Option<&Measured> {
        let found = self.done.iter().find(|(other, _)| other == setup);
        found.map(|(_, measured)| measured)
    }

    /// What a run gave that was made.
    ///
    /// # Panics
    /// When it was not.
    pub fn get(&self, setup: &Setup) -> &Measured {
        self.find(setup).expect("the run was made before")
    }

    /// The same for a scheme.
    pub fn of(&self, source: Source, scheme: Scheme, window: u32) -> Measured {
        let measured = self.get(&self.setup(source, scheme, window));
        match scheme.is_mapping_only {
            true => measured.with_mapping_only(),
            false => measured.clone(),
        }
    }
}

/// The paper's synthetic writes.
pub fn synthetic(access: Access) -> Source {
    Source::Synthetic { access, ratio: 2.0 }
}

/// Both kinds of access, with their names.
pub const ACCESSES: [(&str, Access); 2] = [
    ("random", Access::Random),
    ("sequential", Access::Sequential),
];

/// Throughput in the path of writes.
pub fn path_rate(measured: &Measured, device: &Device) -> f64 {
    1e3 * measured.writes() as f64 / device.ms(measured.path())
}

/// Throughput with all commits, the last one included.
pub fn whole_rate(measured: &Measured, device: &Device) -> f64 {
    1e3 * measured.writes() as f64 / device.ms(measured.path() + measured.commits())
}
