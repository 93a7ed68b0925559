//! Who is measured: an algorithm of ours with its parameters, or a chunker of another crate.
//!
//! Enters: a [`Contestant`], which is data. Leaves: a [`Cutter`] that cuts bytes in memory.
//!
//! Invariant: a cutter cuts a stream as a whole, whatever pieces of it lie in memory at a time: a
//! chunk is cut only where `max_bytes` bytes follow or the stream ends there.

use chunking::structure::{Sections, Structure};
use chunking::{
    Chunker, Isa, KeyMaterial, ParameterError, Parameters, Rolling, gear_table_from_bytes,
};

use super::rivals::{Rival, RivalCutter};

/// Something that cuts, and what it is called in the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Contestant {
    /// Its name, distinct within a measurement.
    pub label: String,
    /// How it cuts.
    pub method: Method,
}

/// How a contestant cuts.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// One of ours.
    Own {
        /// Algorithm and sizes.
        parameters: Parameters,
        /// What is a matter of speed.
        running: Running,
        /// The seed of its key; none: no key.
        key_seed: Option<u64>,
        /// Formats whose parts it cuts apart.
        structure: Structure,
    },
    /// One of another crate.
    Rival(Rival),
}

/// How one of ours runs: the cuts are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Which loop, where there is a choice.
    pub rolling: Rolling,
    /// The level of instruction sets of its kernels.
    pub isa: Isa,
}

impl Default for Running {
    fn default() -> Self {
        Self {
            rolling: Rolling::default(),
            isa: Isa::best(),
        }
    }
}

impl Contestant {
    /// A contestant of ours, without a key.
    pub fn own(label: impl Into<String>, parameters: Parameters, running: Running) -> Self {
        Self {
            label: label.into(),
            method: Method::Own {
                parameters,
                running,
                key_seed: None,
                structure: Structure::None,
            },
        }
    }

    /// The same, which cuts parts of these formats apart; of another crate's it stays as it is.
    pub fn with_structure(mut self, wanted: Structure) -> Self {
        if let Method::Own { structure, .. } = &mut self.method {
            *structure = wanted;
        }
        self
    }

    /// Formats whose parts it cuts apart.
    pub fn structure(&self) -> Structure {
        match self.method {
            Method::Own { structure, .. } => structure,
            Method::Rival(_) => Structure::None,
        }
    }

    /// What it is called among algorithms or crates.
    pub fn algorithm_name(&self) -> &'static str {
        match &self.method {
            Method::Own { parameters, .. } => parameters.algorithm.name(),
            Method::Rival(rival) => rival.kind.info().crate_name,
        }
    }

    /// The smallest chunk but the last of a stream, the size asked for, the greatest.
    pub fn sizes(&self) -> [u32; 3] {
        match &self.method {
            Method::Own { parameters, .. } => [
                parameters.min_bytes,
                parameters.avg_bytes,
                parameters.max_bytes,
            ],
            Method::Rival(rival) => rival.effective_sizes(),
        }
    }

    /// What cuts.
    ///
    /// # Errors
    /// When its parameters are impossible.
    pub fn cutter(&self) -> Result<Cutter, ParameterError> {
        let method = match &self.method {
            Method::Own {
                parameters,
                running,
                key_seed,
                ..
            } => {
                let key = key_seed.map_or(KeyMaterial::Unkeyed, key_of_seed);
                let chunker = Chunker::new(parameters, key)?
                    .with_rolling(running.rolling)
                    .with_isa(running.isa);
                CutterMethod::Own(Box::new(chunker))
            }
            Method::Rival(rival) => CutterMethod::Rival(RivalCutter::new(rival)),
        };
        Ok(Cutter {
            method,
            max: self.sizes()[2] as usize,
            structure: self.structure(),
        })
    }
}

/// A key for experiments: the digest of a seed, made as long as a key is.
fn key_of_seed(seed: u64) -> KeyMaterial {
    let mut bytes = [0; 2048];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    KeyMaterial::Table(Box::new(gear_table_from_bytes(&bytes)))
}

/// What a loop is called on the command line and in reports.
pub fn rolling_name(rolling: Rolling) -> &'static str {
    match rolling {
        Rolling::OneByte => "one",
        Rolling::TwoBytes => "two",
        Rolling::InOrder => "in-order",
        Rolling::TwoStage => "two-stage",
        _ => "fastest",
    }
}

/// A contestant made ready to run.
pub struct Cutter {
    method: CutterMethod,
    /// No chunk is longer.
    max: usize,
    structure: Structure,
}

enum CutterMethod {
    Own(Box<Chunker>),
    Rival(RivalCutter),
}

impl Cutter {
    /// The sections of a stream that stands at its start. One of another crate does not look at them.
    pub fn sections(&self) -> Sections {
        match &self.method {
            CutterMethod::Own(chunker) => Sections::new(self.structure, chunker),
            CutterMethod::Rival(_) => Sections::none(),
        }
    }

    /// Cuts a piece of a stream, whose sections are known up to there, and hands the length of each chunk to `visit`. Returns how many
    /// bytes were cut: all of them where the stream ends with them (`is_end`), otherwise up to
    /// where fewer than `max` follow.
    pub fn cut(
        &mut self,
        data: &[u8],
        is_end: bool,
        sections: &mut Sections,
        mut visit: impl FnMut(usize),
    ) -> usize {
        let max = self.max;
        match &mut self.method {
            CutterMethod::Own(chunker) if self.structure != Structure::None => {
                let mut start = 0;
                while let Some(length) = sections.cut(chunker, &data[start..], is_end) {
                    visit(length);
                    start += length;
                }
                start
            }
            CutterMethod::Own(chunker) if is_end => {
                for chunk in chunker.chunks(data) {
                    visit(chunk.len());
                }
                data.len()
            }
            CutterMethod::Own(chunker) => walk(data, is_end, max, |rest| chunker.cut(rest), visit),
            CutterMethod::Rival(rival) => rival.cut(data, is_end, max, visit),
        }
    }
}

/// Calls `cut` for one chunk after another; see [`Cutter::cut`].
#[inline]
pub fn walk(
    data: &[u8],
    is_end: bool,
    max: usize,
    mut cut: impl FnMut(&[u8]) -> usize,
    mut visit: impl FnMut(usize),
) -> usize {
    let mut start = 0;
    loop {
        let rest = &data[start..];
        if rest.is_empty() || (!is_end && rest.len() < max) {
            return start;
        }
        let length = cut(rest);
        assert!(
            (1..=rest.len()).contains(&length),
            "a chunk of {length} bytes of {}",
            rest.len()
        );
        visit(length);
        start += length;
    }
}
