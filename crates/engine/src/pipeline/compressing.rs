//! The threads that compress groups, which come out in the order in which they went in.

use std::io;

use super::adaptive::CompressionEffort;
use super::budget::{ByteBudget, Failure};
use super::ordered::{Emitter, OrderedPool, PoolOptions, ordered_pool};
use super::packer::{GroupDone, GroupJob};
use super::stages::{Stage, Stages};
use crate::container::Compressor;
use crate::engine::EngineSettings;

/// Starts the threads that compress groups.
pub(super) fn start_compressing(
    settings: &EngineSettings,
    stages: &Stages,
    effort: &CompressionEffort,
    failure: &Failure,
) -> io::Result<OrderedPool<GroupJob, GroupDone>> {
    let shares = settings.shares();
    let options = PoolOptions {
        stage: Stage::Compress,
        stages: stages.clone(),
        workers: settings.threads,
        budget: ByteBudget::new(shares.group_bytes),
    };
    failure.watch(&options.budget);
    let (effort, stages) = (effort.clone(), stages.clone());
    ordered_pool(&options, move || {
        let mut compressor = Compressor::new(effort.level());
        let (effort, stages) = (effort.clone(), stages.clone());
        Box::new(move |job, out: &Emitter<GroupDone>| {
            // Nobody takes results once something failed; then there is nothing to do.
            let _ = out.emit(match job {
                GroupJob::Flush => GroupDone::Flush,
                GroupJob::Group(group) => {
                    let bytes = group.plain().len() as u64;
                    let meter = stages.meter(Stage::Compress);
                    compressor.set_level(effort.level());
                    let compress = || compressor.compress(group.plain());
                    let compressed = effort.at_work(|| meter.busy(bytes, compress));
                    let stored = compressed.as_deref().unwrap_or(group.plain()).len();
                    stages.meter(Stage::Pack).queue(stored as u64);
                    GroupDone::Group { group, compressed }
                }
            });
        })
    })
}
