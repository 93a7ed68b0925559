//! The ways to chunk files that are compared: Ni's Tables 2.1 and 2.2.
//!
//! Each can be run as one file on several threads (SF) or a file a thread (MF), and gives the lengths
//! of all chunks.

use chunking::segments::Segments;
use chunking::two_stage::{Much, TwoStage, lossy_jobs};
use chunking::{Algorithm, Chunker, Isa, KeyMaterial, OwnParameter, Parameters, Rolling};

use crate::failure::Failure;
use crate::paper::dedup::{Lengths, lengths};
use crate::paper::threads;

/// A way to chunk, made ready.
pub enum Form {
    /// One position after the other.
    Sequential(Chunker),
    /// Segments cut each by itself (SFSS; Shredder's row).
    Segments(Chunker, usize),
    /// The same, joined at their borders (P-Dedupe).
    Joined(Segments),
    /// Exact, byte after byte, put right afterwards (MUCH).
    Much(Much),
    /// Two stages, every position (SS-CDC).
    TwoStage(TwoStage),
}

/// A chunker as the papers print it.
pub fn sequential(parameters: &Parameters) -> Result<Chunker, Failure> {
    let chunker = Chunker::new(parameters, KeyMaterial::Unkeyed)
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(chunker.with_rolling(Rolling::OneByte))
}

/// Chunkers of these sizes; CRC-32 and Rabin over 256 bytes.
pub fn sized(algorithm: Algorithm, [min, avg, max]: [u32; 3]) -> Parameters {
    let mut parameters = Parameters {
        min_bytes: min,
        avg_bytes: avg,
        max_bytes: max,
        ..Parameters::new(algorithm)
    };
    if OwnParameter::WindowBytes.is_of(algorithm) {
        parameters.own.set(OwnParameter::WindowBytes, 256);
    }
    parameters
}

impl Form {
    /// Two stages of a chunker at a level of instruction sets.
    pub fn two_stage(chunker: &Chunker, isa: Isa, segment_bytes: usize) -> Result<Self, Failure> {
        let two_stage = TwoStage::new(chunker.clone().with_isa(isa), segment_bytes);
        Ok(Self::TwoStage(two_stage.map_err(usage)?))
    }

    /// MUCH of a chunker.
    pub fn much(chunker: &Chunker, segment_bytes: usize) -> Result<Self, Failure> {
        Ok(Self::Much(
            Much::new(chunker.clone(), segment_bytes).map_err(usage)?,
        ))
    }

    /// P-Dedupe's segments of a chunker.
    pub fn joined(chunker: &Chunker, segment_bytes: usize) -> Result<Self, Failure> {
        let bytes = u32::try_from(segment_bytes).unwrap_or(u32::MAX);
        let segments = Segments::new(chunker.clone(), bytes, true).map_err(usage)?;
        Ok(Self::Joined(segments))
    }

    /// Lazy two stages: what lies between a cut and the least size behind it is skipped.
    pub fn lazy(chunker: &Chunker) -> Self {
        Self::Sequential(chunker.clone().with_rolling(Rolling::TwoStage))
    }

    /// One file after the other, each on so many threads.
    pub fn one_file(&self, threads: usize, files: &[&[u8]]) -> Vec<Lengths> {
        files
            .iter()
            .map(|file| self.cut_on_threads(threads, file))
            .collect()
    }

    /// A file a thread.
    pub fn file_a_thread(&self, threads: usize, files: &[&[u8]]) -> Vec<Lengths> {
        threads::run(threads, 1, files.len(), |index| match self {
            Self::TwoStage(two_stage) => to_lengths(two_stage.cuts(files[index])),
            // On one core, segments are worth nothing: the file as it is.
            Self::Segments(chunker, _) => lengths(chunker, files[index]),
            _ => self.cut_on_threads(1, files[index]),
        })
    }

    fn cut_on_threads(&self, threads: usize, file: &[u8]) -> Lengths {
        match self {
            Self::Sequential(chunker) => lengths(chunker, file),
            Self::Segments(chunker, segment_bytes) => {
                let jobs: Vec<_> = lossy_jobs(chunker, file, *segment_bytes).collect();
                let parts = threads::run(threads, 1, jobs.len(), |index| {
                    to_lengths(jobs[index].clone().run())
                });
                parts.concat()
            }
            Self::Joined(segments) => {
                let jobs: Vec<_> = segments.jobs(file).collect();
                let parts = threads::run(threads, 1, jobs.len(), |index| jobs[index].run());
                to_lengths(segments.join(file, &parts).0)
            }
            Self::Much(much) => {
                let jobs: Vec<_> = much.jobs(file).collect();
                let parts = threads::run(threads, 1, jobs.len(), |index| jobs[index].clone().run());
                to_lengths(much.marshal(file, &parts))
            }
            Self::TwoStage(two_stage) => {
                let marked = marked(two_stage, threads, file);
                to_lengths(two_stage.join(file, &marked))
            }
        }
    }
}

/// The first stage of a file.
pub fn marked(
    two_stage: &TwoStage,
    threads: usize,
    file: &[u8],
) -> Vec<chunking::two_stage::MarkedSegment> {
    let jobs: Vec<_> = two_stage.jobs(file, TwoStage::BATCH).collect();
    let parts = threads::run(threads, 1, jobs.len(), |index| jobs[index].clone().run());
    parts.into_iter().flatten().collect()
}

fn to_lengths(chunks: Vec<std::ops::Range<usize>>) -> Lengths {
    chunks.iter().map(|chunk| chunk.len() as u32).collect()
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::data::random_bytes;

    #[test]
    fn exact_forms_cut_as_the_sequential_one_and_segments_do_not() {
        let file = random_bytes(3, 3_000_000);
        let files: [&[u8]; 2] = [&file, &file[..100_000]];
        let parameters = sized(Algorithm::Crc32, [2 << 10, 16 << 10, 64 << 10]);
        let chunker = sequential(&parameters).unwrap();
        let segment_bytes = 256 << 10;
        let expected = Form::Sequential(chunker.clone()).one_file(1, &files);
        let exact = [
            Form::much(&chunker, segment_bytes).unwrap(),
            Form::two_stage(&chunker, Isa::best(), segment_bytes).unwrap(),
            Form::lazy(&chunker),
        ];
        for threads in [1, 3] {
            for form in &exact {
                assert_eq!(form.one_file(threads, &files), expected);
                assert_eq!(form.file_a_thread(threads, &files), expected);
            }
            let segments = Form::Segments(chunker.clone(), segment_bytes);
            assert_ne!(segments.one_file(threads, &files), expected);
            assert_eq!(segments.file_a_thread(threads, &files), expected);
            let joined = Form::joined(&chunker, segment_bytes).unwrap();
            let sums = |cuts: &[Lengths]| -> Vec<u32> {
                cuts.iter().map(|lengths| lengths.iter().sum()).collect()
            };
            let cuts = joined.one_file(threads, &files);
            assert_eq!(sums(&cuts), sums(&expected));
        }
    }
}
