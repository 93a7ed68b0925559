//! Which blocks are written: the paper's synthetic writes, its traces where they are given, and what stands for
//! them where they are not.
//!
//! Enters: a [`Source`], traces in files. Leaves: writes of whole blocks. A trace is read up to so many blocks;
//! reads are skipped. A request covers the blocks that it begins in, as many as its length is rounded up:
//! partitions do not begin at multiples of 4 KiB, and a trace whose every request lies across two blocks would
//! measure that.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use volume::trace::{
    Access, BLOCK_BYTES, ContentId, ContentSource, FIU_DAYS, TraceFormat, TraceKind, TraceReader,
    Workload,
};

use super::driving::BlockWrite;
use super::published::SPAN_BYTES;
use crate::paper::GivenSet;

/// What chance follows from.
const SEED: u64 = 5;

/// Which writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// The paper's, of single blocks.
    Synthetic {
        /// Where they go.
        access: Access,
        /// Deduplication ratio.
        ratio: f64,
    },
    /// Random writes of a day's deduplication ratio: the number of a row of Table 5.1.
    LikeDay(usize),
    /// Random requests of so many blocks.
    Requests {
        /// Blocks of each.
        blocks: u64,
        /// Deduplication ratio.
        ratio: f64,
    },
    /// A trace that is given, with a deduplication ratio where it has no contents.
    Given {
        /// Its number.
        trace: usize,
        /// Deduplication ratio.
        ratio: f64,
    },
}

/// A trace that was read.
#[derive(Debug)]
pub struct GivenTrace {
    /// What it is called.
    pub name: String,
    /// Whether its records say what blocks hold: FIU's.
    pub has_contents: bool,
    /// Blocks that it writes.
    writes: Vec<(u64, Option<ContentId>)>,
    /// Lines that were not understood.
    pub malformed: u64,
    /// Whether it goes on.
    pub is_sample: bool,
}

impl GivenTrace {
    /// Reads the first blocks that files write.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn read(set: &GivenSet, writes_max: u64) -> Result<Self> {
        let mut trace = Self {
            name: set.name.clone(),
            has_contents: false,
            writes: Vec::new(),
            malformed: 0,
            is_sample: false,
        };
        for path in &set.paths {
            let add = || format!("reading the trace {}", path.display());
            trace.add(path, writes_max).with_context(add)?;
        }
        Ok(trace)
    }

    fn add(&mut self, path: &Path, writes_max: u64) -> Result<()> {
        let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
        // FIU's has no commas, the other one nothing but fields between commas.
        let format = match input.fill_buf()?.contains(&b',') {
            true => TraceFormat::MsrCambridge,
            false => TraceFormat::Fiu,
        };
        for record in TraceReader::new(format, input) {
            let record = match record {
                Ok(record) => record,
                Err(volume::trace::TraceError::Malformed { .. }) => {
                    self.malformed += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if record.kind == TraceKind::Read {
                continue;
            }
            self.has_contents |= record.content.is_some();
            for number in 0..record.length_bytes.div_ceil(BLOCK_BYTES) {
                if self.writes.len() as u64 == writes_max {
                    self.is_sample = true;
                    return Ok(());
                }
                // One content for several blocks is none that they share.
                let content = record.content.map(|content| {
                    let name = u128::from_le_bytes(content.0) ^ u128::from(number) << 64;
                    ContentId(name.to_le_bytes())
                });
                let block = record.offset_bytes / BLOCK_BYTES + number;
                self.writes.push((block, content));
            }
        }
        Ok(())
    }

    /// How many blocks it writes.
    pub fn len(&self) -> u64 {
        self.writes.len() as u64
    }

    fn span_bytes(&self) -> u64 {
        let blocks = self.writes.iter().map(|(block, _)| block + 1).max();
        SPAN_BYTES.max(blocks.unwrap_or(0) * BLOCK_BYTES)
    }
}

/// The writes of a source, at most so many, and the bytes of the disk.
///
/// # Errors
/// When there can't be such.
pub fn writes_of<'a>(
    source: Source,
    given: &'a [GivenTrace],
    writes: u64,
) -> Result<(u64, Box<dyn Iterator<Item = BlockWrite> + 'a>)> {
    let single = |workload: Workload| -> Result<Box<dyn Iterator<Item = BlockWrite>>> {
        Ok(Box::new(workload.records()?.filter_map(|record| {
            Some(BlockWrite {
                block: record.offset_bytes / BLOCK_BYTES,
                content: record.content?,
            })
        })))
    };
    let writes_of: Box<dyn Iterator<Item = BlockWrite>> = match source {
        Source::Synthetic { access, ratio } => single(Workload {
            deduplication_ratio: ratio,
            ..Workload::synthetic(access, writes, SEED)
        })?,
        Source::LikeDay(day) => single(Workload::like(&FIU_DAYS[day], writes, SEED))?,
        Source::Requests { blocks, ratio } => {
            let places = Workload {
                span_bytes: SPAN_BYTES / blocks,
                ..Workload::synthetic(Access::Random, writes.div_ceil(blocks), SEED)
            };
            let mut contents = ContentSource::new(ratio, SEED)?;
            let places = places
                .records()?
                .map(move |record| record.offset_bytes / BLOCK_BYTES * blocks);
            let all = places.flat_map(move |first| first..first + blocks);
            Box::new(all.map(move |block| BlockWrite {
                block,
                content: contents.next_content(),
            }))
        }
        Source::Given { trace, ratio } => {
            let trace = &given[trace];
            let mut contents = ContentSource::new(ratio, SEED)?;
            let all = trace
                .writes
                .iter()
                .map(move |&(block, content)| BlockWrite {
                    block,
                    content: content.unwrap_or_else(|| contents.next_content()),
                });
            return Ok((trace.span_bytes(), Box::new(all)));
        }
    };
    Ok((SPAN_BYTES, writes_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_read_as_whole_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let name = |digit: &str| digit.repeat(32);
        let lines = format!(
            "1 2 cron 8 8 W 0 0 {}\n2 2 cron 8 8 R 0 0 {}\nnothing\n3 2 cron 17 16 W 0 0 {}\n",
            name("a"),
            name("a"),
            name("b")
        );
        std::fs::write(&path, lines).unwrap();
        let set = GivenSet {
            name: "x".to_owned(),
            paths: vec![path],
        };
        let trace = GivenTrace::read(&set, 10).unwrap();
        let blocks: Vec<u64> = trace.writes.iter().map(|(block, _)| *block).collect();
        assert_eq!(blocks, [1, 2, 3]);
        assert!(trace.has_contents && !trace.is_sample && trace.malformed == 1);
        assert_ne!(trace.writes[1].1, trace.writes[2].1);
        let trace = GivenTrace::read(&set, 2).unwrap();
        assert!(trace.is_sample && trace.len() == 2);
        let given = [trace];
        let source = Source::Given {
            trace: 0,
            ratio: 2.0,
        };
        let (span, writes) = writes_of(source, &given, 10).unwrap();
        assert_eq!((span, writes.count()), (SPAN_BYTES, 2));
    }

    #[test]
    fn requests_are_runs_of_blocks() {
        let source = Source::Requests {
            blocks: 8,
            ratio: 2.0,
        };
        let (_, writes) = writes_of(source, &[], 64).unwrap();
        let blocks: Vec<u64> = writes.map(|write| write.block).collect();
        assert_eq!(blocks.len(), 64);
        for request in blocks.chunks(8) {
            assert!(request[0].is_multiple_of(8) && request[7] == request[0] + 7);
        }
    }
}
