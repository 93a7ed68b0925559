//! Writes a trace, for other tools to read.

use std::io::{self, Write};

use super::{TraceFormat, TraceRecord, fiu, msr_cambridge};

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The format has no line for it. Nothing of it was written.
    #[error("record {index} of the trace can't be written as {format}: {what}")]
    Unsupported {
        /// Which record, counted from 0.
        index: u64,
        /// In which format.
        format: TraceFormat,
        /// What the format can't say.
        what: &'static str,
    },
    /// It can't be written, and nothing more will be.
    #[error("record {index} of the trace: {source}")]
    Io {
        /// Which record, counted from 0.
        index: u64,
        /// What the operating system says.
        source: io::Error,
    },
}

/// Writes records, a line each.
#[derive(Debug)]
pub struct TraceWriter<W> {
    output: W,
    format: TraceFormat,
    records: u64,
    has_failed: bool,
}

impl<W: Write> TraceWriter<W> {
    /// Writes a format.
    pub fn new(format: TraceFormat, output: W) -> Self {
        Self {
            output,
            format,
            records: 0,
            has_failed: false,
        }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// When the format has no line for it, or it can't be written, or an earlier one could not.
    pub fn write(&mut self, record: &TraceRecord) -> Result<(), WriteError> {
        let index = self.records;
        if self.has_failed {
            let source = io::Error::other("an earlier record could not be written");
            return Err(WriteError::Io { index, source });
        }
        let line = match self.format {
            TraceFormat::Fiu => fiu::line(record),
            TraceFormat::MsrCambridge => msr_cambridge::line(record),
        };
        let format = self.format;
        let line = line.map_err(|what| WriteError::Unsupported {
            index,
            format,
            what,
        })?;
        let written = self.output.write_all(line.as_bytes());
        self.has_failed = written.is_err();
        written.map_err(|source| WriteError::Io { index, source })?;
        self.records += 1;
        Ok(())
    }

    /// Hands all to the output and returns it, and how many records there were.
    ///
    /// # Errors
    /// When it can't, or a record could not be written.
    pub fn finish(mut self) -> Result<(W, u64), WriteError> {
        let index = self.records;
        let flushed = match self.has_failed {
            true => Err(io::Error::other("an earlier record could not be written")),
            false => self.output.flush(),
        };
        flushed.map_err(|source| WriteError::Io { index, source })?;
        Ok((self.output, self.records))
    }
}
