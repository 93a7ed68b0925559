//! Is everything as it should be? References, zones and index are recomputed from the mapping and compared.

use crate::address::{BLOCK_BYTES, Lba, Pba};
use crate::core::Core;
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::index;
use crate::records::{self, BlockRecord};
use crate::tables::TableKind;
use crate::zones::ZoneKind;

/// Blocks whose references are counted in one pass over the mapping: 64 MiB of memory.
const PASS_BLOCKS: u64 = 16 << 20;

/// Problems that are told in words; further ones are counted.
const PROBLEMS_TOLD_MAX: usize = 100;

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Blocks of the disk that hold something.
    pub mapped_blocks: u64,
    /// Blocks of the backing store that hold data.
    pub stored_blocks: u64,
    /// Stored blocks that were read and compared with their fingerprint.
    pub blocks_read: u64,
    /// Stored blocks that look-ups do not find: they may be stored again.
    pub not_in_index: u64,
    /// Pinned generations.
    pub generations: u64,
    /// What is wrong, the first hundred.
    pub problems: Vec<String>,
    /// How much is wrong.
    pub problem_count: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        self.problem_count == 0
    }

    fn problem(&mut self, what: impl FnOnce() -> String) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_TOLD_MAX {
            self.problems.push(what());
        }
    }
}

impl Core {
    /// See [`crate::Volume::check`].
    pub(crate) fn check(&mut self, read_data: bool) -> Result<CheckReport, VolumeError> {
        let mut report = CheckReport {
            generations: self.generations.len() as u64,
            ..CheckReport::default()
        };
        for range in self.passes() {
            let counted = self.count_references(range.clone(), &mut report)?;
            self.compare_records(range.start, &counted, read_data, &mut report)?;
        }
        let (known, found) = (self.superblock.mapped_blocks, report.mapped_blocks);
        if known != found {
            report.problem(|| format!("{found} blocks hold something, {known} are recorded"));
        }
        self.check_index(&mut report)?;
        Ok(report)
    }

    /// Blocks of the backing store in ranges of whole zones, for one pass over the mapping each.
    pub(crate) fn passes(&self) -> Vec<std::ops::Range<u64>> {
        let physical = self.superblock.physical_blocks;
        let step = PASS_BLOCKS - PASS_BLOCKS % u64::from(self.zones.zone_blocks());
        let starts = (0..physical).step_by(step as usize);
        starts
            .map(|start| start..physical.min(start + step))
            .collect()
    }

    /// References to each block of a range, from the mapping and pinned generations.
    pub(crate) fn count_references(
        &mut self,
        range: std::ops::Range<u64>,
        report: &mut CheckReport,
    ) -> Result<Vec<u32>, VolumeError> {
        let mut counted = vec![0u32; (range.end - range.start) as usize];
        let physical = self.superblock.physical_blocks;
        let generation = self.superblock.generation;
        let first_pass = range.start == 0;
        for lba in 0..self.settings().logical_blocks() {
            if self.tables.is_absent(TableKind::Map, lba) {
                continue;
            }
            let reference = self.stored_reference(Lba(lba))?;
            let Some(pba) = reference.pba() else {
                continue;
            };
            if first_pass {
                report.mapped_blocks += 1;
                if pba.0 >= physical || reference.generation() > generation {
                    report.problem(|| format!("block {lba} of the disk: {reference:?} can't be"));
                }
            }
            if range.contains(&pba.0) {
                counted[(pba.0 - range.start) as usize] += 1;
            }
            self.tables.trim_cache();
        }
        self.visit_exclusive(&mut |_, _, reference| {
            if let Some(pba) = reference.pba().filter(|pba| range.contains(&pba.0)) {
                counted[(pba.0 - range.start) as usize] += 1;
            }
            Ok(())
        })?;
        Ok(counted)
    }

    fn compare_records(
        &mut self,
        start: u64,
        counted: &[u32],
        read_data: bool,
        report: &mut CheckReport,
    ) -> Result<(), VolumeError> {
        let mut waiting = std::collections::HashSet::new();
        let mut free_in_zone = 0u32;
        let mut bytes = vec![0; BLOCK_BYTES];
        for (number, &count) in counted.iter().enumerate() {
            let pba = Pba(start + number as u64);
            let record = records::record(&mut self.tables, pba)?;
            let zone = self.zones.of(pba);
            if pba == self.zones.first_block(zone) {
                waiting = self.waiting_blocks(zone);
            }
            if record.references != count {
                report.problem(|| {
                    format!(
                        "block {}: {} references are recorded, {count} are there",
                        pba.0, record.references
                    )
                });
            }
            if count == 0 && record.references == 0 && record != BlockRecord::default() {
                report.problem(|| format!("block {} is free and has a record", pba.0));
            }
            let holds_data = matches!(
                self.zones.get(zone).kind,
                ZoneKind::Data | ZoneKind::Compressed
            );
            if count > 0 && !holds_data {
                report.problem(|| format!("block {} is in use in a zone of something else", pba.0));
            }
            if count > 0 {
                report.stored_blocks += 1;
                if read_data {
                    self.check_data(pba, &record, &mut bytes, report);
                }
            } else if !waiting.contains(&pba) {
                free_in_zone += 1;
            }
            if (pba.0 + 1).is_multiple_of(u64::from(self.zones.zone_blocks())) {
                let known = self.zones.get(zone);
                let right = match known.kind {
                    ZoneKind::Pages => true,
                    ZoneKind::Free => free_in_zone == self.zones.zone_blocks(),
                    _ => u32::from(known.free_blocks) == free_in_zone,
                };
                if !right {
                    report.problem(|| {
                        format!("zone {zone}: {free_in_zone} blocks are free, not as in {known:?}")
                    });
                }
                free_in_zone = 0;
            }
            self.tables.trim_cache();
        }
        Ok(())
    }

    fn check_data(
        &self,
        pba: Pba,
        record: &BlockRecord,
        bytes: &mut [u8],
        report: &mut CheckReport,
    ) {
        report.blocks_read += 1;
        match self.read_stored(pba, bytes) {
            Err(error) => report.problem(|| error.to_string()),
            Ok(()) if record.fingerprint == Fingerprint::UNKNOWN => {}
            Ok(()) if self.fingerprinter.of(bytes) == record.fingerprint => {}
            Ok(()) => report.problem(|| {
                format!(
                    "block {} is not what was written (block {} of the disk refers to it, or did)",
                    pba.0, record.owner.0
                )
            }),
        }
    }

    fn check_index(&mut self, report: &mut CheckReport) -> Result<(), VolumeError> {
        if !self.settings().policy.is_full() {
            return Ok(());
        }
        for pba in (0..self.superblock.physical_blocks).map(Pba) {
            if self.tables.is_absent(TableKind::Blocks, pba.0) {
                continue;
            }
            let record = records::record(&mut self.tables, pba)?;
            if record.references == 0 || record.fingerprint == Fingerprint::UNKNOWN {
                continue;
            }
            let (candidates, count) = index::candidates(&mut self.tables, record.fingerprint)?;
            report.not_in_index += u64::from(!candidates[..count].contains(&pba));
            self.tables.trim_cache();
        }
        Ok(())
    }
}
