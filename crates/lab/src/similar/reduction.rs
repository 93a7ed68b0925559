//! Chunks in the order of the stream, each stored whole or as a delta of one before it: the prototype
//! of Odess (§4.3), and what repositories do.
//!
//! Enters: distinct chunks with their super-features, a [`Rule`]. Leaves: a [`Reduction`]: the form of
//! each chunk, and the paper's three ratios.
//!
//! A chunk whose base is stored as a delta of k steps has k + 1. A chunk becomes known to the index as
//! long as another step is allowed; with one step, chunks stored whole alone. A delta is kept only
//! where it is shorter than a share of the chunk; otherwise the chunk is whole, though it counts as
//! detected.

use std::ops::Range;
use std::time::Instant;

use super::base_index::{BaseIndex, Choice, Limit};
use super::coder::Coder;
use super::super_features::SuperFeatures;
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use crate::paper::timing::thread_seconds;

/// Chunks between two looks whether somebody asked for a stop.
const CHECK_EVERY: usize = 4096;

/// How bases are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Which of several similar chunks.
    pub choice: Choice,
    /// Most deltas between a chunk and one that is whole; none is no limit.
    pub depth: Option<u32>,
    /// The longest delta that is kept, of 100 of its chunk; 100 asks that it be shorter.
    pub limit_percent: u32,
    /// How much the index holds; none is everything.
    pub limit: Option<Limit>,
    /// Super-features of a chunk that make it known; none is all of them.
    pub indexed: Option<usize>,
}

impl Rule {
    /// As in the paper: FirstFit, bases are whole.
    pub const PAPER: Self = Self {
        choice: Choice::First,
        depth: Some(1),
        limit_percent: 100,
        limit: None,
        indexed: None,
    };
}

/// How a chunk is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Whole,
    /// As a delta.
    Delta {
        /// Number of the chunk that it is a delta of.
        base: u32,
        /// Where the delta lies among the deltas.
        range: Range<usize>,
        /// Deltas to go through, this one included.
        depth: u32,
    },
}

/// What became of chunks.
#[derive(Debug, Default)]
pub struct Reduction {
    /// The form of each chunk.
    pub forms: Vec<Form>,
    /// All deltas, one after another.
    pub deltas: Vec<u8>,
    /// Bytes of all chunks.
    pub bytes: u64,
    /// Bytes of the chunks stored whole.
    pub whole_bytes: u64,
    /// Chunks for which a base was found.
    pub detected: u64,
    /// The sum over those of the share of bytes that a delta saves.
    saved_shares: f64,
    /// Super-features that the index held in the end.
    pub entries: usize,
    /// Seconds for finding bases, and making chunks known.
    pub lookup_seconds: f64,
    /// Seconds for encoding.
    pub encode_seconds: f64,
}

impl Reduction {
    /// Chunks of these forms.
    #[cfg(test)]
    pub fn made(forms: Vec<Form>) -> Self {
        Self {
            forms,
            ..Self::default()
        }
    }

    /// Stores chunks by a rule.
    ///
    /// # Errors
    /// When somebody asked for a stop.
    pub fn of(
        chunks: &[&[u8]],
        super_features: &SuperFeatures,
        rule: Rule,
        coder: &mut Coder,
    ) -> anyhow::Result<Self> {
        let started = thread_seconds();
        let mut reducer = Reducer::new(rule, coder);
        for number in 0..chunks.len() {
            if number % CHECK_EVERY == 0 {
                interrupt::check()?;
            }
            reducer.add(&chunks[..=number], super_features.of(number));
        }
        let mut reduction = reducer.finish();
        reduction.scale_seconds(thread_seconds() - started);
        Ok(reduction)
    }

    /// Makes the seconds add up to those that the thread ran, for a clock of that kind is too slow to be
    /// asked for every chunk.
    fn scale_seconds(&mut self, thread_seconds: f64) {
        let scale = thread_seconds / (self.lookup_seconds + self.encode_seconds).max(1e-9);
        self.lookup_seconds *= scale;
        self.encode_seconds *= scale;
    }

    /// Deltas to go through for a chunk.
    pub fn depth_of(&self, chunk: usize) -> u32 {
        match self.forms[chunk] {
            Form::Whole => 0,
            Form::Delta { depth, .. } => depth,
        }
    }

    /// Chunks stored as deltas: their numbers, those of their bases, their deltas.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize, &[u8])> + '_ {
        let numbered = self.forms.iter().enumerate();
        numbered.filter_map(|(number, form)| match form {
            Form::Whole => None,
            Form::Delta { base, range, .. } => {
                Some((number, *base as usize, &self.deltas[range.clone()]))
            }
        })
    }

    /// Bytes of what is stored: chunks and deltas, nothing compressed.
    pub fn bytes_left(&self) -> u64 {
        self.whole_bytes + self.deltas.len() as u64
    }

    /// DCR, the delta compression ratio: bytes before and after (Eq. 12).
    pub fn compression_ratio(&self) -> f64 {
        self.bytes as f64 / self.bytes_left().max(1) as f64
    }

    /// DCE, the delta compression efficiency: the share that a delta saves, on average over detected
    /// chunks (Eq. 13).
    pub fn efficiency(&self) -> f64 {
        self.saved_shares / self.detected.max(1) as f64
    }

    /// SCR, the similar chunk ratio: detected chunks over the others (Eq. 14).
    pub fn similar_ratio(&self) -> f64 {
        let others = self.forms.len() as u64 - self.detected;
        self.detected as f64 / others.max(1) as f64
    }

    /// Deltas to go through for a chunk that is one, on average and at most.
    pub fn depths(&self) -> (f64, u32) {
        let depths = (0..self.forms.len()).map(|chunk| self.depth_of(chunk));
        let (mut sum, mut count, mut most) = (0u64, 0u64, 0);
        for depth in depths.filter(|depth| *depth > 0) {
            sum += u64::from(depth);
            count += 1;
            most = most.max(depth);
        }
        (sum as f64 / count.max(1) as f64, most)
    }

    /// Bytes of the chunks that are stored as deltas.
    pub fn delta_coded_bytes(&self) -> u64 {
        self.bytes - self.whole_bytes
    }

    /// Decodes every delta and compares it with its chunk.
    ///
    /// # Errors
    /// When one does not come back.
    pub fn verify(&self, chunks: &[&[u8]], coder: &mut Coder) -> anyhow::Result<()> {
        let mut back = Vec::new();
        for (number, base, delta) in self.pairs() {
            back.clear();
            let chunk = chunks[number];
            let decoded = coder.decode(chunks[base], delta, chunk.len(), &mut back);
            if decoded.is_err() || back != chunk {
                let message = format!("the delta of chunk {number} does not give it back");
                return Err(Failure::new(FAILED, message).into());
            }
        }
        Ok(())
    }
}

/// Stores one chunk after another.
pub struct Reducer<'a> {
    rule: Rule,
    index: BaseIndex,
    coder: &'a mut Coder,
    reduction: Reduction,
}

impl<'a> Reducer<'a> {
    /// Nothing is stored yet.
    pub fn new(rule: Rule, coder: &'a mut Coder) -> Self {
        Self {
            rule,
            index: BaseIndex::new(rule.choice, rule.limit),
            coder,
            reduction: Reduction::default(),
        }
    }

    /// Stores the last of `chunks`, of which all others were stored before; whether it is whole.
    pub fn add(&mut self, chunks: &[&[u8]], super_features: &[u32]) -> bool {
        let Some((number, chunk)) = chunks.iter().enumerate().next_back() else {
            return false;
        };
        let clock = Instant::now();
        let base = self.index.find(super_features);
        let found = Instant::now();
        let form = base.and_then(|base| self.delta(chunks, chunk, base));
        let encoded = Instant::now();
        let reduction = &mut self.reduction;
        let depth = match form {
            Some(Form::Delta { depth, .. }) => depth,
            _ => {
                reduction.whole_bytes += chunk.len() as u64;
                0
            }
        };
        reduction.bytes += chunk.len() as u64;
        reduction.forms.push(form.unwrap_or(Form::Whole));
        if self.rule.depth.is_none_or(|most| depth < most) {
            let most = self.rule.indexed.unwrap_or(usize::MAX);
            let indexed = &super_features[..super_features.len().min(most)];
            self.index.insert(number as u32, indexed);
        }
        let inserting = encoded.elapsed();
        reduction.encode_seconds += (encoded - found).as_secs_f64();
        reduction.lookup_seconds += (found - clock + inserting).as_secs_f64();
        depth == 0
    }

    /// What became of all of them.
    pub fn finish(mut self) -> Reduction {
        self.reduction.entries = self.index.entries();
        self.reduction
    }

    /// The chunk as a delta, if it gets shorter.
    fn delta(&mut self, chunks: &[&[u8]], chunk: &[u8], base: u32) -> Option<Form> {
        let reduction = &mut self.reduction;
        reduction.detected += 1;
        let start = reduction.deltas.len();
        let percent = self.rule.limit_percent as usize;
        let limit = (chunk.len() * percent / 100).min(chunk.len().saturating_sub(1));
        let base_chunk = chunks[base as usize];
        let is_kept = self
            .coder
            .encode(base_chunk, chunk, limit, &mut reduction.deltas);
        if !is_kept {
            return None;
        }
        let range = start..reduction.deltas.len();
        reduction.saved_shares += 1.0 - range.len() as f64 / chunk.len() as f64;
        let depth = reduction.depth_of(base as usize) + 1;
        Some(Form::Delta { base, range, depth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::data::random_bytes;
    use crate::similar::base_index::Choice;
    use crate::similar::coder::Codec;
    use engine::container::CompressionLevel;

    /// A chunk, each next one changed a little, and one that is like none; all say that they are similar.
    fn versions() -> Vec<Vec<u8>> {
        let mut chunk = random_bytes(1, 8000);
        let mut all = Vec::new();
        for version in 0..5 {
            all.push(chunk.clone());
            chunk[1000 * version] ^= 0xff;
        }
        all.push(random_bytes(2, 8000));
        all
    }

    fn reduce(rule: Rule, codec: Codec) -> Reduction {
        let versions = versions();
        let chunks: Vec<&[u8]> = versions.iter().map(Vec::as_slice).collect();
        let same = SuperFeatures::made(1, &[7; 6]);
        let mut coder = Coder::new(codec, CompressionLevel::DEFAULT);
        let reduction = Reduction::of(&chunks, &same, rule, &mut coder).unwrap();
        reduction.verify(&chunks, &mut coder).unwrap();
        reduction
    }

    #[test]
    fn ratios_are_those_of_the_paper() {
        for codec in Codec::ALL {
            let reduction = reduce(Rule::PAPER, codec);
            // The last one is detected, too, but no delta of it is shorter.
            assert_eq!((reduction.detected, reduction.pairs().count()), (5, 4));
            assert_eq!(reduction.similar_ratio(), 5.0);
            let left = 16_000 + reduction.deltas.len() as u64;
            assert_eq!(reduction.bytes_left(), left);
            assert!(reduction.deltas.len() < 400);
            assert!((reduction.compression_ratio() - 48_000.0 / left as f64).abs() < 1e-9);
            let saved = 4.0 - reduction.deltas.len() as f64 / 8000.0;
            assert!((reduction.efficiency() - saved / 5.0).abs() < 1e-9);
            assert_eq!(reduction.depths(), (1.0, 1));
        }
    }

    #[test]
    fn depth_is_limited() {
        let depths = |depth| {
            let rule = Rule {
                choice: Choice::Latest,
                depth,
                limit_percent: 100,
                limit: None,
                indexed: None,
            };
            let reduction = reduce(rule, Codec::Instructions);
            let depths: Vec<u32> = (0..5).map(|chunk| reduction.depth_of(chunk)).collect();
            depths
        };
        assert_eq!(depths(Some(1)), [0, 1, 1, 1, 1]);
        assert_eq!(depths(Some(2)), [0, 1, 2, 2, 2]);
        assert_eq!(depths(None), [0, 1, 2, 3, 4]);
        assert_eq!(depths(Some(0)), [0; 5]);
    }
}
