//! `onefold-lab chunk-passes`, hidden: cuts data so many times and prints nothing. For what counts
//! the instructions of a program from outside (`paper/fastcdc/counting.rs`).

use std::hint::black_box;
use std::path::PathBuf;

use clap::Args;

use crate::chunk::data::DataSet;
use crate::chunk::loader::Loader;
use crate::chunk::memory::Memory;
use crate::chunk::selection;
use crate::failure::Failure;
use crate::units::parse_bytes;

/// The seed of random numbers, where no file is given.
const SEED: u64 = 6;

/// What to cut, and how often.
#[derive(Debug, Args)]
pub struct ChunkPassesArguments {
    /// Files to cut; without any, random numbers
    pub files: Vec<PathBuf>,
    /// One entry of `chunk --algorithm`
    #[arg(long)]
    pub algorithm: String,
    /// How often
    #[arg(long)]
    pub passes: u64,
    /// How much of the data
    #[arg(long, value_parser = parse_bytes)]
    pub size: u64,
}

/// Cuts.
pub fn run(arguments: &ChunkPassesArguments) -> anyhow::Result<()> {
    let mut data = if arguments.files.is_empty() {
        DataSet::random(SEED, arguments.size)
    } else {
        DataSet::of_paths(&arguments.files)?
    };
    data.limit(arguments.size);
    let room = data.bytes() + 64 * data.streams.len() as u64;
    let mut memory = Memory::new(usize::try_from(room)?)?;
    let selection = selection::select(&arguments.algorithm, &[])?;
    let [contestant] = &selection.contestants[..] else {
        return Err(Failure::usage("--algorithm must be one algorithm").into());
    };
    let mut cutter = contestant.cutter()?;
    let Some(batch) = Loader::new(&data).next_batch(&mut memory, 0..0)? else {
        return Ok(());
    };
    for _ in 0..arguments.passes {
        for segment in &batch.segments {
            let bytes = &memory.bytes()[segment.range.clone()];
            let sections = &mut cutter.sections();
            cutter.cut(black_box(bytes), segment.is_end, sections, |length| {
                black_box(length);
            });
        }
    }
    Ok(())
}
