//! What `onefold-lab similar` measures: one thing varies at a time, everything else stays as asked.
//!
//! Enters: distinct chunks and the [`Choices`] that stay. Leaves: a [`Finding`] for each setting. Features
//! are made once for each detector and used by all studies; times are medians of passes, of one thread, in
//! which other programs do not count.

use chunking::Isa;
use clap::ValueEnum;
use engine::container::CompressionLevel;

use super::base_index::{Choice, ENTRY_BYTES, Forgetting, Limit};
use super::chunks::UniqueChunks;
use super::coder::{Codec, Coder};
use super::detector::DetectorChoice;
use super::layouts::{Ground, LAYOUTS, Layout, Reductions, Stored};
use super::reduction::{Reduction, Rule};
use super::super_features::SuperFeatures;
use crate::chunk::sizes::median;
use crate::interrupt;
use crate::paper::timing::thread_seconds;
use crate::progress::Progress;

/// What varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Study {
    /// What finds similar chunks
    Detectors,
    /// Which of several similar chunks is the base
    Bases,
    /// How many deltas may stand between a chunk and one that is whole
    Depths,
    /// How much of a chunk a delta may have
    Limits,
    /// How differences are written down
    Codecs,
    /// How much memory the index of super-features has
    Index,
    /// How chunks and deltas are compressed together
    Groups,
}

impl Study {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Detectors,
        Self::Bases,
        Self::Depths,
        Self::Limits,
        Self::Codecs,
        Self::Index,
        Self::Groups,
    ];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Detectors => "detectors",
            Self::Bases => "bases",
            Self::Depths => "depths",
            Self::Limits => "limits",
            Self::Codecs => "codecs",
            Self::Index => "index",
            Self::Groups => "groups",
        }
    }
}

/// The limits of depth that are tried; none is no limit.
const DEPTHS: [Option<u32>; 5] = [Some(1), Some(2), Some(3), Some(8), None];
/// The longest deltas that are tried, of 100 of their chunk.
const LIMIT_PERCENTS: [u32; 6] = [100, 75, 50, 35, 25, 15];
/// Bytes of index for a chunk: 64 MiB for 10 M chunks are 6.7.
const INDEX_BYTES: [f64; 6] = [24.0, 12.0, 6.7, 3.35, 1.7, 0.8];

/// What stays as it is where something else varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// What finds similar chunks.
    pub detector: DetectorChoice,
    /// Which of several.
    pub choice: Choice,
    /// Most deltas to a whole chunk; none is no limit.
    pub depth: Option<u32>,
    /// The longest delta that is kept, of 100 of its chunk.
    pub limit_percent: u32,
    /// How differences are written down.
    pub codec: Codec,
    /// zstd's level.
    pub level: CompressionLevel,
    /// The level of instruction sets.
    pub isa: Isa,
    /// Timed passes.
    pub runs: usize,
}

/// An index that does not hold everything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    /// Bytes of index for each distinct chunk.
    pub bytes_per_chunk: f64,
    /// Super-features of a chunk that are put in.
    pub indexed: usize,
    /// What a full one forgets.
    pub forgetting: Forgetting,
}

/// What a setting gives.
#[derive(Debug)]
pub struct Finding {
    /// What varied.
    pub study: Study,
    /// The setting.
    pub choices: Choices,
    /// The same of the index; none holds everything.
    pub bounded: Option<Bounded>,
    /// Super-features of a chunk.
    pub super_features: usize,
    /// What became of chunks.
    pub reduction: Reduction,
    /// Chunks without features.
    pub failures: u64,
    /// Speed of making features.
    pub feature_bytes_per_second: f64,
    /// Speed of encoding, by bytes of chunks.
    pub encode_bytes_per_second: f64,
    /// Speed of decoding a delta whose base is there, by bytes of chunks.
    pub decode_bytes_per_second: f64,
}

/// A layout, and what it gives.
pub type LayoutFinding = (&'static Layout, Stored);

/// Measures on distinct chunks.
pub struct Bench<'a> {
    unique: &'a UniqueChunks<'a>,
    choices: Choices,
    made: Vec<(DetectorChoice, SuperFeatures)>,
}

impl<'a> Bench<'a> {
    /// Nothing is measured yet.
    pub fn new(unique: &'a UniqueChunks<'a>, choices: Choices) -> Self {
        Self {
            unique,
            choices,
            made: Vec::new(),
        }
    }

    /// The settings of a study, measured; none for that of groups.
    ///
    /// # Errors
    /// When a delta does not give its chunk back, or somebody asked for a stop.
    pub fn run(&mut self, study: Study, progress: &mut Progress) -> anyhow::Result<Vec<Finding>> {
        let settings = self.settings(study);
        let passes = 2 + 2 * self.choices.runs as u64;
        progress.expect(self.unique.bytes * passes * settings.len() as u64);
        let mut findings = Vec::new();
        for (choices, bounded) in settings {
            interrupt::check()?;
            findings.push(self.measure(study, choices, bounded)?);
            progress.advance(self.unique.bytes * passes, study.name());
        }
        Ok(findings)
    }

    /// What each layout gives.
    ///
    /// # Errors
    /// When zstd fails, or somebody asked for a stop.
    pub fn layouts(&mut self, progress: &mut Progress) -> anyhow::Result<Vec<LayoutFinding>> {
        let place = self.features_of(self.choices.detector)?;
        let super_features = &self.made[place].1;
        let ground = Ground {
            unique: self.unique,
            super_features,
            feature_seconds: super_features.seconds,
            choice: self.choices.choice,
            limit_percent: self.choices.limit_percent,
            level: self.choices.level,
        };
        let mut reductions = Reductions::default();
        let mut findings = Vec::new();
        progress.expect(self.unique.bytes * LAYOUTS.len() as u64);
        for layout in LAYOUTS {
            findings.push((layout, ground.measure(layout, &mut reductions)?));
            progress.advance(self.unique.bytes, layout.label);
        }
        Ok(findings)
    }

    fn settings(&self, study: Study) -> Vec<(Choices, Option<Bounded>)> {
        let base = self.choices;
        let whole = |choices: Choices| (choices, None);
        match study {
            Study::Detectors => DetectorChoice::ALL
                .map(|detector| whole(Choices { detector, ..base }))
                .to_vec(),
            Study::Bases => Choice::ALL
                .map(|choice| whole(Choices { choice, ..base }))
                .to_vec(),
            Study::Depths => DEPTHS
                .map(|depth| whole(Choices { depth, ..base }))
                .to_vec(),
            Study::Limits => LIMIT_PERCENTS
                .map(|limit_percent| {
                    whole(Choices {
                        limit_percent,
                        ..base
                    })
                })
                .to_vec(),
            Study::Codecs => Codec::ALL
                .map(|codec| whole(Choices { codec, ..base }))
                .to_vec(),
            Study::Index => bounds(base.detector.super_features())
                .into_iter()
                .map(|bounded| (base, bounded))
                .collect(),
            Study::Groups => Vec::new(),
        }
    }

    fn measure(
        &mut self,
        study: Study,
        choices: Choices,
        mut bounded: Option<Bounded>,
    ) -> anyhow::Result<Finding> {
        let place = self.features_of(choices.detector)?;
        let super_features = &self.made[place].1;
        let chunks = &self.unique.chunks;
        let limit = bounded.as_mut().map(|bounded| {
            let mut bytes = (bounded.bytes_per_chunk * chunks.len() as f64) as usize;
            if bounded.forgetting == Forgetting::AsStored {
                // Its size is a power of two: that nearest, not the largest below.
                let above = bytes.next_power_of_two();
                bytes = if above / 4 * 3 <= bytes {
                    above
                } else {
                    above / 2
                };
                bounded.bytes_per_chunk = bytes as f64 / chunks.len() as f64;
            }
            Limit {
                bytes,
                forgetting: bounded.forgetting,
            }
        });
        let rule = Rule {
            choice: choices.choice,
            depth: choices.depth,
            limit_percent: choices.limit_percent,
            limit,
            indexed: bounded.map(|bounded| bounded.indexed),
        };
        let mut coder = Coder::new(choices.codec, choices.level);
        let reduction = Reduction::of(chunks, super_features, rule, &mut coder)?;
        reduction.verify(chunks, &mut coder)?;
        let [encode, decode] = self.coding_seconds(&reduction, &mut coder)?;
        let coded = reduction.delta_coded_bytes() as f64;
        let per_second =
            |bytes: f64, seconds: f64| if seconds > 0.0 { bytes / seconds } else { 0.0 };
        Ok(Finding {
            study,
            choices,
            bounded,
            super_features: choices.detector.super_features(),
            failures: super_features.failures,
            feature_bytes_per_second: per_second(self.unique.bytes as f64, super_features.seconds),
            encode_bytes_per_second: per_second(coded, encode),
            decode_bytes_per_second: per_second(coded, decode),
            reduction,
        })
    }

    /// Seconds for encoding all deltas once more, and for decoding them.
    fn coding_seconds(&self, reduction: &Reduction, coder: &mut Coder) -> anyhow::Result<[f64; 2]> {
        let chunks = &self.unique.chunks;
        let mut seconds = [Vec::new(), Vec::new()];
        let mut scratch = Vec::new();
        for _ in 0..self.choices.runs {
            interrupt::check()?;
            let clock = thread_seconds();
            for (number, base, _) in reduction.pairs() {
                scratch.clear();
                let target = chunks[number];
                coder.encode(chunks[base], target, target.len(), &mut scratch);
            }
            seconds[0].push(thread_seconds() - clock);
            interrupt::check()?;
            let clock = thread_seconds();
            for (number, base, delta) in reduction.pairs() {
                scratch.clear();
                coder.decode(chunks[base], delta, chunks[number].len(), &mut scratch)?;
            }
            seconds[1].push(thread_seconds() - clock);
        }
        Ok(seconds.map(|seconds| median(&seconds)))
    }

    /// The place of a detector's super-features, which are made if they are not there.
    fn features_of(&mut self, detector: DetectorChoice) -> anyhow::Result<usize> {
        let found = self.made.iter().position(|(other, _)| *other == detector);
        if let Some(place) = found {
            return Ok(place);
        }
        let detection = detector.detection();
        let mut passes = Vec::new();
        for _ in 0..self.choices.runs {
            let chunks = &self.unique.chunks;
            passes.push(SuperFeatures::extract(
                &detection,
                chunks,
                self.choices.isa,
            )?);
        }
        let times: Vec<f64> = passes.iter().map(|pass| pass.seconds).collect();
        let mut made = passes.pop().unwrap_or_default();
        made.seconds = median(&times);
        self.made.push((detector, made));
        Ok(self.made.len() - 1)
    }
}

/// Indexes of several sizes, after one that holds everything.
fn bounds(super_features: usize) -> Vec<Option<Bounded>> {
    let mut bounds = vec![None];
    for bytes_per_chunk in INDEX_BYTES {
        for indexed in [super_features, 1] {
            for forgetting in Forgetting::ALL {
                // One super-feature a chunk fits where all of them fill three times as much.
                let is_wanted = indexed > 1
                    || (bytes_per_chunk <= ENTRY_BYTES as f64
                        && forgetting != Forgetting::AsStored);
                if is_wanted {
                    bounds.push(Some(Bounded {
                        bytes_per_chunk,
                        indexed,
                        forgetting,
                    }));
                }
            }
        }
    }
    bounds
}
