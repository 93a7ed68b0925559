//! Storing streams whose bytes are read here: whole ones, and parts between holes.

use std::collections::VecDeque;
use std::io::Read;

use super::{WriteError, Writer};
use crate::fingerprint::CheckValue;
use crate::pipeline::chunk_stream::chunk_stream;
use crate::pipeline::incoming::IncomingStream;
use crate::pipeline::pending::PendingRecipe;
use crate::pipeline::stages::Stage;
use crate::pipeline::trail::Trail;

impl Writer {
    /// Reads a stream to its end and stores it, segments being fingerprinted while it is read on.
    /// `trail` is what it was in the parent, for a cutter that takes hints. Returns its recipe and
    /// its check value.
    ///
    /// # Errors
    /// When the stream can't be read or the store can't be written. What was read before is stored
    /// all the same.
    pub fn store_stream(
        &mut self,
        stream: &mut dyn Read,
        trail: Option<&mut Trail>,
    ) -> Result<(PendingRecipe, CheckValue), WriteError> {
        self.count_stream_threads();
        let with = self.chunking.clone();
        let mut incoming = IncomingStream::new(with.fingerprints.fingerprinter());
        self.store_part(&mut incoming, stream, None, trail)?;
        Ok(incoming.take(with.fingerprints.fingerprinter()))
    }

    /// Tells the meters that streams are read, cut and fingerprinted by the caller's thread: once, before the first.
    pub fn count_stream_threads(&self) {
        let stages = &self.chunking.stages;
        for stage in [Stage::Read, Stage::Chunk] {
            stages.meter(stage).set_threads(1);
        }
        stages.meter(Stage::Fingerprint).add_threads(1);
    }

    /// Reads a part of a stream, up to its end or a hole, to its end and stores it. Chunks don't go on in the next
    /// part. Where it is known how many bytes come (`expected_bytes`), no more memory is taken. Returns how many came.
    ///
    /// # Errors
    /// As [`Writer::store_stream`].
    pub fn store_part(
        &mut self,
        incoming: &mut IncomingStream,
        part: &mut dyn Read,
        expected_bytes: Option<u64>,
        trail: Option<&mut Trail>,
    ) -> Result<u64, WriteError> {
        let with = self.chunking.clone();
        let index = with.stages.meter(Stage::Index);
        let waiting_max = self.stream_segments_max;
        let mut waiting = VecDeque::with_capacity(waiting_max);
        let mut store = |writer: &mut Self, segment| {
            index.busy_but_for_waits(0, || {
                incoming.segment(segment, writer)?;
                writer.page_out(incoming.recipe_mut())
            })
        };
        let mut stored = Ok(());
        let read = chunk_stream(&with, part, expected_bytes, trail, &mut |segment| {
            waiting.push_back(segment);
            while waiting.len() >= waiting_max
                && stored.is_ok()
                && let Some(segment) = waiting.pop_front()
            {
                stored = store(self, segment);
            }
            stored.is_ok()
        });
        stored?;
        for segment in waiting {
            store(self, segment)?;
        }
        Ok(read?)
    }
}
