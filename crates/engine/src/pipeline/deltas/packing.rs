//! The thread that packs deltas: they join groups, which are compressed together and placed into
//! containers of their own.
//!
//! The thread that decides says where a group ends, by the bytes of the chunks that the deltas stand for:
//! so it knows of every delta whether it may have a place yet, whatever became of it.
//!
//! Deltas are a few hundredths of the chunks that they stand for, so one thread keeps up with the
//! compressing of what many encode.

use std::sync::Arc;

use super::encoding::{DeltaDone, EncodedBatch};
use crate::container::{Compressor, ContainerBuilder, NewChunk};
use crate::pipeline::budget::Stopped;
use crate::pipeline::ordered::Results;
use crate::pipeline::packer::{BasePlace, EndNotice, Packer, PlainGroup};
use crate::pipeline::stages::Stage;

/// What makes groups of deltas, and has them packed.
pub struct DeltaPacker {
    pub packer: Packer,
}

/// The open group.
#[derive(Default)]
struct OpenGroup {
    bytes: Vec<u8>,
    chunks: Vec<NewChunk>,
    bases: Vec<Option<BasePlace>>,
}

impl DeltaPacker {
    /// Runs until there are no more batches, or until something failed.
    pub fn run(self, batches: Results<DeltaDone>) {
        let _end = EndNotice(Arc::clone(&self.packer.placements));
        // Not an error here: whoever stopped the pipeline has reported why.
        let _ = self.pack_all(batches);
    }

    fn pack_all(&self, mut batches: Results<DeltaDone>) -> Result<(), Stopped> {
        let mut open = OpenGroup::default();
        let mut builder = None;
        let mut compressor = Compressor::new(self.packer.effort.level());
        let meter = self.packer.stages.meter(Stage::Pack);
        while let Some(done) = meter.starved(|| batches.next_result()) {
            match done {
                DeltaDone::Batch(batch) => open.extend(batch),
                DeltaDone::Close => self.close(&mut open, &mut builder, &mut compressor)?,
                DeltaDone::Flush => {
                    self.close(&mut open, &mut builder, &mut compressor)?;
                    if let Some(last) = builder.take() {
                        meter.busy_but_for_waits(0, || self.packer.seal(last, true))?;
                    }
                    self.packer.flushed();
                }
            }
            self.packer.placements.changed.notify_all();
        }
        Ok(())
    }

    fn close(
        &self,
        open: &mut OpenGroup,
        builder: &mut Option<ContainerBuilder>,
        compressor: &mut Compressor,
    ) -> Result<(), Stopped> {
        let OpenGroup {
            bytes,
            chunks,
            bases,
        } = std::mem::take(open);
        if chunks.is_empty() {
            return Ok(());
        }
        let group = PlainGroup::new(bytes, chunks, bases);
        compressor.set_level(self.packer.effort.level());
        let compress = self.packer.stages.meter(Stage::Compress);
        let plain_bytes = group.plain().len() as u64;
        let compressed = compress.busy(plain_bytes, || compressor.compress(group.plain()));
        let meter = self.packer.stages.meter(Stage::Pack);
        meter.busy_but_for_waits(plain_bytes, || {
            self.packer.place(builder, compressor, group, compressed)
        })
    }
}

impl OpenGroup {
    fn extend(&mut self, batch: EncodedBatch) {
        self.bytes.extend_from_slice(&batch.bytes);
        self.chunks.extend(batch.chunks);
        self.bases.extend(batch.bases);
    }
}
