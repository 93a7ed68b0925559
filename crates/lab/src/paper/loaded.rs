//! Data sets that lie in memory as a whole, for experiments that go through them many times.
//!
//! Enters: paths, random numbers, or versions that were made up. Leaves: files, each beginning at a
//! cache line, in huge pages where the system gives them; loading takes no part in any time.

use std::ops::Range;

use super::{GivenSet, MeasuredSet, Plan, Results};
use crate::chunk::data::{DataSet, fill_random};
use crate::chunk::loader::{Loader, Reading};
use crate::chunk::memory::{Memory, available_bytes};
use crate::failure::{FAILED, Failure};
use crate::progress::Progress;
use crate::report::chunk_report::DataReport;
use crate::units;

/// Where files begin in memory.
const LINE: usize = 64;

/// A data set in memory.
pub struct LoadedSet {
    /// The paper's name of it, or another.
    pub name: String,
    memory: Memory,
    ranges: Vec<Range<usize>>,
}

impl LoadedSet {
    /// The first bytes of a data set that an experiment goes through: the person is told which it
    /// is, and `results` of what it consists.
    ///
    /// # Errors
    /// As [`LoadedSet::load`].
    pub fn load_for(
        set: &GivenSet,
        plan: &Plan,
        results: &mut Results,
        progress: &mut Progress,
    ) -> anyhow::Result<Self> {
        let (set, measured) = Self::load(set, plan.size_bytes)?;
        progress.note(&format!("{}: {}", set.name, units::bytes(set.bytes())));
        results.sets.push(measured);
        Ok(set)
    }

    /// The first bytes of a data set.
    ///
    /// # Errors
    /// When nothing of it can be read, or the memory does not suffice.
    pub fn load(set: &GivenSet, size_bytes: u64) -> anyhow::Result<(Self, MeasuredSet)> {
        let mut data = DataSet::of_paths(&set.paths)?;
        let whole = data.bytes();
        data.limit(size_bytes);
        let room = data.bytes() + (LINE * data.streams.len()) as u64;
        let mut memory = allocate(room)?;
        let mut loader = Loader::new(&data);
        let batch = loader.next_batch(&mut memory, 0..0)?.unwrap_or_default();
        if loader.reading.bytes == 0 {
            let message = format!("none of the files of {} could be read", set.name);
            return Err(Failure::new(FAILED, message).into());
        }
        let notices = data.notices.iter().chain(&loader.reading.notices);
        let measured = MeasuredSet {
            name: set.name.clone(),
            is_sample: whole > data.bytes(),
            notices: notices.cloned().collect(),
            data: DataReport::new(&set.paths, &data, &loader.reading),
        };
        let segments = batch.segments.into_iter();
        let loaded = Self {
            name: set.name.clone(),
            ranges: segments.map(|segment| segment.range).collect(),
            memory,
        };
        Ok((loaded, measured))
    }

    /// Files of these lengths, each filled by `fill`, which gets its number.
    ///
    /// # Errors
    /// When the memory does not suffice.
    pub fn made(
        name: &str,
        lengths: &[usize],
        mut fill: impl FnMut(usize, &mut [u8]),
    ) -> Result<Self, Failure> {
        let room = lengths.iter().map(|length| length.next_multiple_of(LINE));
        let mut memory = allocate(room.sum::<usize>() as u64)?;
        let mut ranges = Vec::with_capacity(lengths.len());
        let mut start = 0;
        for (number, length) in lengths.iter().enumerate() {
            let range = start..start + length;
            fill(number, &mut memory.bytes_mut()[range.clone()]);
            start += length.next_multiple_of(LINE);
            ranges.push(range);
        }
        Ok(Self {
            name: name.to_owned(),
            memory,
            ranges,
        })
    }

    /// Random numbers, in files of `file_bytes`; the same for the same seed.
    ///
    /// # Errors
    /// When the memory does not suffice.
    pub fn random(name: &str, seed: u64, bytes: u64, file_bytes: usize) -> Result<Self, Failure> {
        let bytes = usize::try_from(bytes).map_err(|_| too_much(bytes))?;
        let mut lengths = vec![file_bytes; bytes / file_bytes];
        if !bytes.is_multiple_of(file_bytes) {
            lengths.push(bytes % file_bytes);
        }
        Self::made(name, &lengths, |number, file| {
            fill_random(seed + number as u64, 0, file);
        })
    }

    /// What reports say of data that was made up.
    pub fn measured(&self) -> MeasuredSet {
        let reading = Reading {
            bytes: self.bytes(),
            streams: self.ranges.len() as u64,
            batches: 1,
            ..Reading::default()
        };
        let paths: [&str; 0] = [];
        MeasuredSet {
            name: self.name.clone(),
            is_sample: false,
            notices: Vec::new(),
            data: DataReport::new(&paths, &DataSet::default(), &reading),
        }
    }

    /// Its files.
    pub fn files(&self) -> Vec<&[u8]> {
        let bytes = self.memory.bytes();
        self.ranges
            .iter()
            .map(|range| &bytes[range.clone()])
            .collect()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.len() as u64).sum()
    }
}

fn allocate(bytes: u64) -> Result<Memory, Failure> {
    if available_bytes().is_some_and(|available| bytes > available) {
        return Err(too_much(bytes));
    }
    let length = usize::try_from(bytes).map_err(|_| too_much(bytes))?;
    Memory::new(length.max(1)).map_err(|_| too_much(bytes))
}

fn too_much(bytes: u64) -> Failure {
    let message = format!("cannot get {} of memory", units::bytes(bytes));
    Failure::new(FAILED, message).with_hint("these experiments hold a whole data set in memory: take less of each with --size, or make up less with --synthetic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_loaded_whole_up_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        for (name, length) in [("a", 100), ("b", 1000), ("c", 5000)] {
            std::fs::write(
                directory.path().join(name),
                vec![name.as_bytes()[0]; length],
            )
            .unwrap();
        }
        let set = GivenSet {
            name: "TAR".to_owned(),
            paths: vec![directory.path().to_owned()],
        };
        let (loaded, measured) = LoadedSet::load(&set, 3000).unwrap();
        let lengths: Vec<usize> = loaded.files().iter().map(|file| file.len()).collect();
        assert_eq!(lengths, [100, 1000, 1900]);
        assert_eq!(loaded.files()[2][1899], b'c');
        assert!(measured.is_sample);
        assert_eq!((loaded.bytes(), measured.data.bytes), (3000, 3000));
    }

    #[test]
    fn random_files_have_the_lengths_asked_for() {
        let set = LoadedSet::random("RANDOM", 1, 250, 100).unwrap();
        let lengths: Vec<usize> = set.files().iter().map(|file| file.len()).collect();
        assert_eq!(lengths, [100, 100, 50]);
        assert_eq!(set.measured().data.files, 3);
        assert_ne!(set.files()[0], set.files()[1]);
    }
}
