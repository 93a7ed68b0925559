//! How cutting is accelerated, where that changes what is cut: a part of the configuration.

use chunking::rapid::{Criterion, RapidChunker};
use chunking::segments::Segments;
use chunking::two_stage::TwoStage;
use chunking::{Chunker, Parameters, Rolling};
use engine::pipeline::Cutter;

use super::ConfigError;

/// Bytes of a segment unless something else is asked (P-Dedupe §3.3: 1 MB).
pub const SEGMENT_BYTES_DEFAULT: u32 = 1 << 20;

/// How cutting is accelerated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Acceleration {
    /// Not at all: every stream is cut from its start to its end.
    #[default]
    None,
    /// Every position is judged before cuts are chosen (SS-CDC), segments of a stream at the same
    /// time: the cuts of none.
    TwoStage,
    /// Segments of a stream are cut at the same time (P-Dedupe).
    Segments {
        /// Bytes of a segment.
        segment_bytes: u32,
        /// Whether the chunks at their borders are joined.
        has_jointing: bool,
    },
    /// Chunks are tried to end as they did in the parent snapshot (RapidCDC). Cuts depend on what was
    /// backed up before.
    Rapid(Criterion),
}

/// The numbers of kinds, as stored.
mod kind {
    pub const TWO_STAGE: u64 = 1;
    pub const SEGMENTS: u64 = 2;
    pub const RAPID: u64 = 3;
}

/// Every acceleration with its name and what there is to say about it; segments of the usual size.
const ACCELERATIONS: [(Acceleration, &str, &str); 8] = [
    (
        Acceleration::None,
        "none",
        "each file from its start to its end",
    ),
    (
        Acceleration::TwoStage,
        "two-stage",
        "segments at the same time, all positions judged first (SS-CDC): the cuts of none",
    ),
    (
        Acceleration::Segments {
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            has_jointing: true,
        },
        "segments",
        "segments at the same time, joined at their borders (P-Dedupe)",
    ),
    (
        Acceleration::Segments {
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            has_jointing: false,
        },
        "segments-unjoined",
        "segments at the same time, as they are",
    ),
    (
        Acceleration::Rapid(Criterion::FastForward),
        "rapid-ff",
        "where chunks ended in the parent snapshot, untested (RapidCDC)",
    ),
    (
        Acceleration::Rapid(Criterion::RollingWindow),
        "rapid-ff+rwt",
        "the same, where the chunker could cut there",
    ),
    (
        Acceleration::Rapid(Criterion::Marker),
        "rapid-ff+mt",
        "the same, where the last byte is the same",
    ),
    (
        Acceleration::Rapid(Criterion::RollingWindowAndFingerprint),
        "rapid-ff+rwt+fpt",
        "the same, where the chunk is the same: the cuts of none",
    ),
];

impl Acceleration {
    /// The names of all, with what there is to say about each.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        ACCELERATIONS.iter().map(|&(_, name, about)| (name, about))
    }

    /// The acceleration called `name`, with segments of the usual size.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let row = ACCELERATIONS.iter().find(|row| row.1 == name)?;
        Some(row.0)
    }

    /// What it is called, whatever the size of segments.
    #[must_use]
    pub fn name(self) -> &'static str {
        let is_same = |row: &Self| match (*row, self) {
            (
                Self::Segments { has_jointing, .. },
                Self::Segments {
                    has_jointing: it, ..
                },
            ) => has_jointing == it,
            (row, it) => row == it,
        };
        let row = ACCELERATIONS.iter().find(|row| is_same(&row.0));
        row.map_or("unknown", |row| row.1)
    }

    /// What cuts, made of `chunker`.
    ///
    /// # Errors
    /// When the size of segments is impossible.
    pub(crate) fn cutter(self, chunker: Chunker) -> Result<Cutter, ConfigError> {
        Ok(match self {
            Self::None => Cutter::Plain(chunker),
            Self::TwoStage => {
                let two_stage = TwoStage::new(chunker, TwoStage::SEGMENT_BYTES);
                let impossible = |error| ConfigError::parameter("acceleration", format!("{error}"));
                Cutter::TwoStage(two_stage.map_err(impossible)?)
            }
            Self::Segments {
                segment_bytes,
                has_jointing,
            } => {
                let segments = Segments::new(chunker, segment_bytes, has_jointing);
                let impossible = |error| ConfigError::parameter("segment size", format!("{error}"));
                Cutter::Segments(segments.map_err(impossible)?)
            }
            Self::Rapid(criterion) => Cutter::Rapid(RapidChunker::new(chunker, criterion)),
        })
    }

    /// Whether it can accelerate a chunker of these valid parameters.
    pub(super) fn validate(self, chunker: &Parameters) -> Result<(), ConfigError> {
        let refuse = |name, reason| Err(ConfigError::parameter(name, reason));
        match self {
            Self::Segments { segment_bytes, .. } => {
                let lowest = chunker.max_bytes.saturating_mul(2);
                if (lowest..=Segments::BYTES_HIGHEST).contains(&segment_bytes) {
                    return Ok(());
                }
                let highest = Segments::BYTES_HIGHEST;
                refuse(
                    "segment size",
                    format!(
                        "{segment_bytes} bytes, between {lowest}, twice the greatest chunk, and {highest} make sense"
                    ),
                )
            }
            Self::TwoStage if !Rolling::TwoStage.is_of(chunker.algorithm) => refuse(
                "acceleration",
                format!("{} has no form in two stages", chunker.algorithm),
            ),
            Self::Rapid(
                criterion @ (Criterion::RollingWindow | Criterion::RollingWindowAndFingerprint),
            ) if !chunker.algorithm.judges_windows() => refuse(
                "acceleration",
                format!(
                    "{criterion} tests a window, and {} has none to test",
                    chunker.algorithm
                ),
            ),
            _ => Ok(()),
        }
    }

    /// What is stored of it: its kind and what belongs to that; nothing for none.
    pub(super) fn numbers(self) -> Vec<u64> {
        match self {
            Self::None => Vec::new(),
            Self::TwoStage => vec![kind::TWO_STAGE],
            Self::Segments {
                segment_bytes,
                has_jointing,
            } => vec![
                kind::SEGMENTS,
                u64::from(segment_bytes),
                u64::from(has_jointing),
            ],
            Self::Rapid(criterion) => vec![kind::RAPID, u64::from(criterion.info().id)],
        }
    }

    /// Of what is stored, or what is not known about it.
    pub(super) fn from_numbers(numbers: &[u64]) -> Result<Self, String> {
        match *numbers {
            [kind::TWO_STAGE] => Ok(Self::TwoStage),
            [kind::SEGMENTS, segment_bytes, jointing @ (0 | 1)] => {
                let segment_bytes = u32::try_from(segment_bytes)
                    .map_err(|_| format!("segments of {segment_bytes} bytes are not possible"))?;
                Ok(Self::Segments {
                    segment_bytes,
                    has_jointing: jointing == 1,
                })
            }
            [kind::RAPID, number] => u8::try_from(number)
                .ok()
                .and_then(Criterion::from_id)
                .map(Self::Rapid)
                .ok_or_else(|| format!("acceleration 3 by criterion {number} is not known")),
            [
                number @ (kind::TWO_STAGE | kind::SEGMENTS | kind::RAPID),
                ..,
            ] => Err(format!(
                "acceleration {number} has other numbers than it takes"
            )),
            [number, ..] => Err(format!("acceleration {number} is not known")),
            [] => Err("an acceleration has no number".to_owned()),
        }
    }
}

impl std::fmt::Display for Acceleration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
