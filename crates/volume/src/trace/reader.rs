//! Reads a trace, line by line.

use std::io::{self, BufRead, Read};
use std::vec;

use super::{TraceFormat, TraceRecord, fiu, msr_cambridge};

/// Longest line, in bytes: a request of 4 MiB of FIU's with an MD5 for each sector.
const LINE_BYTES_MAX: usize = 320 << 10;

/// Why a trace was not read on, or a line of it not understood.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It can't be read. It ends there.
    #[error("line {line} of the trace: {source}")]
    Io {
        /// The line, counted from 1.
        line: u64,
        /// What the operating system says.
        source: io::Error,
    },
    /// This is no trace. It ends there.
    #[error("line {line} of the trace is longer than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// The line, counted from 1.
        line: u64,
    },
    /// A line is none of the format's. The next one may be.
    #[error("line {line} of the trace: {what}")]
    Malformed {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// The records of a trace, in its order. Empty lines are skipped. After a line that is not
/// understood it goes on with the next.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    format: TraceFormat,
    line: u64,
    has_ended: bool,
    bytes: Vec<u8>,
    /// Records of the line that was read last.
    records: vec::IntoIter<TraceRecord>,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads a format.
    pub fn new(format: TraceFormat, input: R) -> Self {
        Self {
            input,
            format,
            line: 0,
            has_ended: false,
            bytes: Vec::new(),
            records: Vec::new().into_iter(),
        }
    }

    /// The next line, without its end; `None` at the end of the trace.
    fn next_line(&mut self) -> Result<Option<String>, TraceError> {
        self.line += 1;
        let line = self.line;
        self.bytes.clear();
        let most = LINE_BYTES_MAX as u64 + 2;
        let mut input = Read::take(&mut self.input, most);
        let read = input.read_until(b'\n', &mut self.bytes);
        if read.map_err(|source| TraceError::Io { line, source })? == 0 {
            return Ok(None);
        }
        while self
            .bytes
            .last()
            .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
        {
            self.bytes.pop();
        }
        if self.bytes.len() > LINE_BYTES_MAX {
            return Err(TraceError::TooLong { line });
        }
        // A name of a process may be anything, and is not kept.
        Ok(Some(String::from_utf8_lossy(&self.bytes).into_owned()))
    }

    fn parse(&self, line: &str) -> Result<Vec<TraceRecord>, TraceError> {
        let is_header = self.line == 1 && line.eq_ignore_ascii_case(msr_cambridge::HEADER);
        let records = match self.format {
            _ if line.trim().is_empty() => Ok(Vec::new()),
            TraceFormat::Fiu => fiu::parse(line),
            TraceFormat::MsrCambridge if is_header => Ok(Vec::new()),
            TraceFormat::MsrCambridge => msr_cambridge::parse(line).map(|record| vec![record]),
        };
        let line = self.line;
        records.map_err(|what| TraceError::Malformed { line, what })
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.records.next() {
                return Some(Ok(record));
            }
            if self.has_ended {
                return None;
            }
            match self.next_line() {
                Ok(Some(line)) => match self.parse(&line) {
                    Ok(records) => self.records = records.into_iter(),
                    Err(error) => return Some(Err(error)),
                },
                Ok(None) => self.has_ended = true,
                Err(error) => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
