//! A disk in bytes instead of sectors.
//!
//! A range that does not begin and end at sectors is read whole, changed, and written back. Between
//! the two nobody else may write: such changes are made alone, others together. (That holds for one
//! mount; whoever writes the same sectors through another front at the same time has two caches for
//! one disk, and nothing here can help.) A change that fails may have been made in part, as on any
//! disk.

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use crate::device::{BlockDevice, DeviceError, ExtentKind};

/// A disk whose bytes can be changed one by one.
pub(super) struct Bytes {
    device: Arc<dyn BlockDevice>,
    /// Held for writing by who changes parts of sectors, for reading by others who change it.
    changes: RwLock<()>,
}

/// How a range becomes zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zeroing {
    Trim,
    Write,
}

impl Bytes {
    pub fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self {
            device,
            changes: RwLock::new(()),
        }
    }

    pub fn device(&self) -> &dyn BlockDevice {
        &*self.device
    }

    pub fn size_bytes(&self) -> u64 {
        self.device.geometry().size_bytes
    }

    /// Reads what there is of a range into a buffer, which may get longer; where it lies in it.
    pub fn read(
        &self,
        offset: u64,
        length_bytes: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Range<usize>, DeviceError> {
        let range = self.clip(offset, length_bytes);
        if range.is_empty() {
            return Ok(0..0);
        }
        let whole = self.sectors(&range);
        let bytes = (whole.end - whole.start) as usize;
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        self.device.read(whole.start, &mut buffer[..bytes])?;
        let start = (range.start - whole.start) as usize;
        Ok(start..start + (range.end - range.start) as usize)
    }

    /// Writes what fits onto the disk; how many bytes that were.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<usize, DeviceError> {
        let range = self.clip(offset, data.len() as u64);
        if range.is_empty() {
            return Ok(0);
        }
        let data = &data[..(range.end - range.start) as usize];
        let whole = self.sectors(&range);
        if whole == range {
            let changes = self.changes.read();
            let _changes = changes.unwrap_or_else(PoisonError::into_inner);
            self.device.write(offset, data)?;
        } else {
            let changes = self.changes.write();
            let _changes = changes.unwrap_or_else(PoisonError::into_inner);
            self.patch(&range, &whole, |bytes| bytes.copy_from_slice(data))?;
        }
        Ok(data.len())
    }

    /// Makes what there is of a range zeros.
    pub fn zero(&self, offset: u64, length_bytes: u64, how: Zeroing) -> Result<(), DeviceError> {
        let range = self.clip(offset, length_bytes);
        let inner = self.whole_sectors(&range);
        if inner == range {
            let changes = self.changes.read();
            let _changes = changes.unwrap_or_else(PoisonError::into_inner);
            return self.zero_sectors(&inner, how);
        }
        let changes = self.changes.write();
        let _changes = changes.unwrap_or_else(PoisonError::into_inner);
        if inner.is_empty() {
            // Parts of one sector or of two.
            let whole = self.sectors(&range);
            return self.patch(&range, &whole, |bytes| bytes.fill(0));
        }
        self.zero_sectors(&inner, how)?;
        for part in [range.start..inner.start, inner.end..range.end] {
            if !part.is_empty() {
                let whole = self.sectors(&part);
                self.patch(&part, &whole, |bytes| bytes.fill(0))?;
            }
        }
        Ok(())
    }

    /// The first byte at or behind `offset` that is of a kind, if there is any.
    pub fn find(&self, offset: u64, kind: ExtentKind) -> Result<Option<u64>, DeviceError> {
        let end = self.size_bytes();
        let sector = u64::from(self.device.geometry().sector_bytes);
        let mut at = offset - offset % sector;
        while at < end {
            let before = at;
            for extent in self.device.extents(at, end - at, 2)? {
                if extent.kind == kind {
                    return Ok(Some(at.max(offset)));
                }
                at += extent.length_bytes;
            }
            if at == before {
                // A disk that says nothing has data there.
                let is_data = kind == ExtentKind::Data;
                return Ok(is_data.then_some(at.max(offset)));
            }
        }
        Ok(None)
    }

    fn zero_sectors(&self, range: &Range<u64>, how: Zeroing) -> Result<(), DeviceError> {
        let length = range.end - range.start;
        match how {
            _ if length == 0 => Ok(()),
            Zeroing::Trim => self.device.trim(range.start, length),
            Zeroing::Write => self.device.write_zeroes(range.start, length),
        }
    }

    /// Changes a range within whole sectors; nobody else may change the disk meanwhile.
    fn patch(
        &self,
        range: &Range<u64>,
        whole: &Range<u64>,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<(), DeviceError> {
        let sector = self.device.geometry().sector_bytes as usize;
        let mut bytes = vec![0; (whole.end - whole.start) as usize];
        let last = bytes.len() - sector;
        if range.start != whole.start {
            self.device.read(whole.start, &mut bytes[..sector])?;
        }
        let is_read = last == 0 && range.start != whole.start;
        if range.end != whole.end && !is_read {
            let at = whole.start + last as u64;
            self.device.read(at, &mut bytes[last..])?;
        }
        let start = (range.start - whole.start) as usize;
        change(&mut bytes[start..start + (range.end - range.start) as usize]);
        self.device.write(whole.start, &bytes)
    }

    /// What of a range lies on the disk.
    fn clip(&self, offset: u64, length_bytes: u64) -> Range<u64> {
        let size = self.size_bytes();
        let end = offset.saturating_add(length_bytes).min(size);
        offset.min(end)..end
    }

    /// The sectors that a range touches.
    fn sectors(&self, range: &Range<u64>) -> Range<u64> {
        let sector = u64::from(self.device.geometry().sector_bytes);
        range.start - range.start % sector..range.end.next_multiple_of(sector)
    }

    /// The sectors that a range covers.
    fn whole_sectors(&self, range: &Range<u64>) -> Range<u64> {
        let sector = u64::from(self.device.geometry().sector_bytes);
        let start = range.start.next_multiple_of(sector);
        let end = range.end - range.end % sector;
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::device::RamDisk;

    const SIZE: u64 = 16 * 4096;

    fn disk(sector_bytes: u32) -> Bytes {
        Bytes::new(Arc::new(RamDisk::new(SIZE as usize, sector_bytes)))
    }

    #[derive(Debug, Clone)]
    enum Step {
        Read,
        Write(u8),
        Zero(Zeroing),
        Find(ExtentKind),
    }

    fn step() -> impl Strategy<Value = (Step, u64, u64)> {
        let step = prop_oneof![
            Just(Step::Read),
            (1..255_u8).prop_map(Step::Write),
            Just(Step::Zero(Zeroing::Trim)),
            Just(Step::Zero(Zeroing::Write)),
            Just(Step::Find(ExtentKind::Data)),
            Just(Step::Find(ExtentKind::Hole)),
        ];
        let length = prop_oneof![0..20_u64, 500..530_u64, 4000..9000_u64, 0..SIZE];
        let offset = prop_oneof![0..SIZE + 100, (0..17_u64).prop_map(|sector| sector * 4096)];
        (step, offset, length)
    }

    fn run(sector_bytes: u32, steps: &[(Step, u64, u64)]) {
        let disk = disk(sector_bytes);
        let mut model = vec![0; SIZE as usize];
        let mut buffer = Vec::new();
        for (step, offset, length) in steps {
            let end = (offset + length).min(SIZE);
            let range = (*offset).min(end) as usize..end as usize;
            match step {
                Step::Read => {
                    let found = disk.read(*offset, *length, &mut buffer).expect("read");
                    assert_eq!(buffer[found], model[range]);
                }
                Step::Write(byte) => {
                    let data = vec![*byte; *length as usize];
                    let written = disk.write(*offset, &data).expect("written");
                    assert_eq!(written, range.len());
                    model[range].fill(*byte);
                }
                Step::Zero(how) => {
                    disk.zero(*offset, *length, *how).expect("zeroed");
                    model[range].fill(0);
                }
                Step::Find(kind) => {
                    let found = disk.find(*offset, *kind).expect("found");
                    assert_eq!(found, find(&model, *offset, sector_bytes, *kind));
                }
            }
        }
        let all = disk.read(0, SIZE, &mut buffer).expect("read");
        assert!(buffer[all] == model);
    }

    fn find(model: &[u8], offset: u64, sector_bytes: u32, kind: ExtentKind) -> Option<u64> {
        let sector = sector_bytes as usize;
        let mut at = offset as usize;
        while at < model.len() {
            let start = at - at % sector;
            let is_hole = model[start..start + sector].iter().all(|&byte| byte == 0);
            if is_hole == (kind == ExtentKind::Hole) {
                return Some(at as u64);
            }
            at = start + sector;
        }
        None
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_changed(
            steps in prop::collection::vec(step(), 1..40),
            sector_bytes in prop::sample::select(vec![512_u32, 1024, 4096]),
        ) {
            run(sector_bytes, &steps);
        }
    }

    #[test]
    fn neighbours_in_a_sector_do_not_undo_each_other() {
        let disk = disk(4096);
        std::thread::scope(|scope| {
            for index in 0..8_u64 {
                let disk = &disk;
                scope.spawn(move || {
                    for round in 1..200_u8 {
                        disk.write(index * 512, &[round; 512]).expect("written");
                    }
                });
            }
        });
        let mut buffer = Vec::new();
        let all = disk.read(0, 4096, &mut buffer).expect("read");
        assert_eq!(buffer[all], [199; 4096]);
    }
}
