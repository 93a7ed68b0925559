//! The two delta codecs behind one pair of functions.

use clap::ValueEnum;
use engine::container::CompressionLevel;
use engine::similarity::delta::{self, DeltaEncoder};
use engine::similarity::prefix::{PrefixDecoder, PrefixEncoder};

/// How a chunk is written down as its difference from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Codec {
    /// Copies and inserts, nothing compressed: deltas may be compressed together
    Instructions,
    /// zstd with the base as the prefix of its window
    Prefix,
}

impl Codec {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Instructions, Self::Prefix];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Prefix => "prefix",
        }
    }
}

/// A codec with its working memory.
pub enum Coder {
    /// Copies and inserts.
    Instructions(Box<DeltaEncoder>),
    /// zstd.
    Prefix(Box<PrefixEncoder>, Box<PrefixDecoder>),
}

impl Coder {
    /// A codec; the level is zstd's.
    pub fn new(codec: Codec, level: CompressionLevel) -> Self {
        match codec {
            Codec::Instructions => Self::Instructions(Box::default()),
            Codec::Prefix => Self::Prefix(
                Box::new(PrefixEncoder::new(level)),
                Box::new(PrefixDecoder::new()),
            ),
        }
    }

    /// Appends the delta that makes `target` of `base`; `false`, and nothing appended, where it would
    /// have more than `limit` bytes.
    pub fn encode(&mut self, base: &[u8], target: &[u8], limit: usize, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Instructions(encoder) => encoder.encode(base, target, limit, out),
            Self::Prefix(encoder, _) => encoder.encode(base, target, limit, out),
        }
    }

    /// Appends the chunk of so many bytes that a delta makes of its base.
    ///
    /// # Errors
    /// When it does not make one.
    pub fn decode(
        &mut self,
        base: &[u8],
        delta: &[u8],
        target_bytes: usize,
        out: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        match self {
            Self::Instructions(_) => delta::decode(base, delta, target_bytes, out)?,
            Self::Prefix(_, decoder) => decoder.decode(base, delta, target_bytes, out)?,
        }
        Ok(())
    }
}
