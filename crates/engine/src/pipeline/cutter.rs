//! What cuts the streams of a repository: a chunker, alone or with an acceleration whose cuts are
//! its own.

use chunking::Chunker;
use chunking::rapid::RapidChunker;
use chunking::segments::Segments;
use chunking::two_stage::TwoStage;

/// What cuts streams.
#[derive(Debug, Clone)]
pub enum Cutter {
    /// A chunker, from the start of a stream to its end.
    Plain(Chunker),
    /// A chunker whose first stage runs on segments at the same time.
    TwoStage(TwoStage),
    /// Segments of a stream at the same time.
    Segments(Segments),
    /// A chunker that tries what followed a chunk in the parent first ([`Trail`](super::Trail)).
    Rapid(RapidChunker),
}

impl Cutter {
    /// The chunker in it.
    #[must_use]
    pub fn chunker(&self) -> &Chunker {
        match self {
            Self::Plain(chunker) => chunker,
            Self::TwoStage(two_stage) => two_stage.chunker(),
            Self::Segments(segments) => segments.chunker(),
            Self::Rapid(rapid) => rapid.chunker(),
        }
    }

    /// Bytes of a segment, where a stream is cut on several threads.
    #[must_use]
    pub fn segment_bytes(&self) -> Option<usize> {
        match self {
            Self::TwoStage(two_stage) => Some(two_stage.segment_bytes()),
            Self::Segments(segments) => Some(segments.segment_bytes()),
            Self::Plain(_) | Self::Rapid(_) => None,
        }
    }

    /// Whether its cuts follow what the parent had.
    #[must_use]
    pub fn takes_hints(&self) -> bool {
        matches!(self, Self::Rapid(_))
    }

    /// Whether containers must keep the last byte of each chunk for it.
    #[must_use]
    pub fn needs_markers(&self) -> bool {
        matches!(self, Self::Rapid(rapid) if rapid.criterion().looks_at_markers())
    }
}

impl From<Chunker> for Cutter {
    fn from(chunker: Chunker) -> Self {
        Self::Plain(chunker)
    }
}
