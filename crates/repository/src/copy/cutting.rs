//! Copies files by cutting them again.
//!
//! The contents of the files of a batch are read as one stream, in the order of the tree, and go through the target's
//! chunker, each file for itself and apart from its holes: what comes out is what a backup of the files would have stored.

use std::io::{self, Read};

use engine::fingerprint::CheckValue;
use engine::pipeline::Pieces;
use engine::recipe::{Recipe, Run};
use engine::restore::ReadError;

use super::{Copy, CopyError, Current, Item};
use crate::progress::Progress;
use crate::tree::Entry;

impl Copy<'_> {
    /// Enters a file into the batch; one whose recipe is paged is stored at once, after what waits.
    pub(super) fn gather_file(
        &mut self,
        entry: Entry,
        path: &[u8],
        current: &mut Current,
    ) -> Result<(), CopyError> {
        let read_error = |error: ReadError| CopyError::Read {
            path: path.to_vec(),
            error,
        };
        let item = |entry| Item::File {
            entry: Box::new(entry),
            path: path.to_vec(),
        };
        match entry.content.clone() {
            Recipe::Runs(runs) => {
                let visited = self.reader.visit_runs(&entry.content, &mut |_, _| ());
                let (_, actual) = visited.map_err(read_error)?;
                if entry.check.is_some_and(|expected| expected != actual) {
                    return Err(read_error(ReadError::Check));
                }
                current.batch.runs.extend(runs);
                current.batch.items.push(item(entry));
                Ok(())
            }
            recipe @ Recipe::Paged { .. } => {
                self.store(current)?;
                let check = entry.check;
                current.batch.items.push(item(entry));
                self.cut(&recipe, check, current)
            }
        }
    }

    /// Reads the files of the batch, and stores them.
    pub(super) fn cut_again(&mut self, current: &mut Current) -> Result<(), CopyError> {
        let recipe = Recipe::Runs(std::mem::take(&mut current.batch.runs));
        self.cut(&recipe, None, current)
    }

    fn cut(
        &mut self,
        recipe: &Recipe,
        check: Option<CheckValue>,
        current: &mut Current,
    ) -> Result<(), CopyError> {
        let cache_bytes = self.source.settings().memory_bytes / 4;
        let (room, reader) = (self.room.clone(), self.reader.clone());
        let mut path = Vec::new();
        let mut take = |pieces: &mut Pieces| -> Result<bool, CopyError> {
            for item in std::mem::take(&mut current.batch.items) {
                match item {
                    Item::File { entry, path: of } => {
                        path = of;
                        if !self.file(*entry, pieces, current)? {
                            return Ok(false);
                        }
                    }
                    item => self.plain_item(item, &mut current.tree)?,
                }
            }
            Ok(true)
        };
        if recipe.stream_bytes() == 0 {
            // There is nothing to be read.
            take(&mut Pieces::none())?;
            return Ok(());
        }
        let (taken, read) = room.read_beside(&reader, recipe, check, cache_bytes, &mut take);
        match (taken, read) {
            // Why the stream ended early is known to who read it.
            (None | Some(Ok(_)), Err(error)) => Err(Self::in_order_error(&path, error)),
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(true)), Ok(report)) => {
                self.report.bytes_read += report.bytes;
                self.report.containers_read += report.containers_read;
                Ok(())
            }
            (None | Some(Ok(false)), Ok(_)) => Err(CopyError::Read {
                path,
                error: ReadError::Check,
            }),
        }
    }

    /// Stores a file whose contents come next; false when they end early.
    fn file(
        &mut self,
        entry: Entry,
        pieces: &mut Pieces,
        current: &mut Current,
    ) -> Result<bool, CopyError> {
        let mut runs = self.reader.runs(&entry.content);
        let mut data_bytes = 0;
        loop {
            let run = match runs.next() {
                None => None,
                Some(Ok(run)) => Some(run),
                Some(Err(_)) => return Ok(false), // Who reads the stream meets it, too.
            };
            if let Some(Run::Slots { bytes, .. }) = run {
                data_bytes += bytes;
                continue;
            }
            if data_bytes > 0 && !self.part(data_bytes, pieces, current)? {
                return Ok(false);
            }
            data_bytes = 0;
            let Some(run) = run else {
                break;
            };
            if !pieces.pass_hole(run.bytes()) {
                return Ok(false);
            }
            current.incoming.hole(run.bytes());
            Progress::add(&self.progress.bytes_done, run.bytes());
        }
        self.end_file(entry, &mut current.incoming, &mut current.tree)?;
        Ok(true)
    }

    /// Stores a part of a file without holes.
    fn part(
        &mut self,
        bytes: u64,
        pieces: &mut Pieces,
        current: &mut Current,
    ) -> Result<bool, CopyError> {
        let mut part = Part {
            pieces,
            left: bytes,
            progress: self.progress,
        };
        let incoming = &mut current.incoming;
        let stored = self
            .writer
            .store_part(incoming, &mut part, Some(bytes), None);
        if self.progress.is_cancelled() {
            return Err(CopyError::Interrupted);
        }
        Ok(stored? == bytes)
    }
}

struct Part<'a> {
    pieces: &'a mut Pieces,
    left: u64,
    progress: &'a Progress,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let count = self.pieces.read(&mut buffer[..wanted]);
        self.left -= count as u64;
        Progress::add(&self.progress.bytes_done, count as u64);
        Ok(count)
    }
}
