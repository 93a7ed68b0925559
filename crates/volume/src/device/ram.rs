//! A disk in memory: the model that volumes are tested against, and what fronts are tested with.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{BlockDevice, DeviceError, Extent, ExtentKind, Geometry, collect_extents};

/// A disk of bytes in memory. A sector of zeros counts as a hole.
#[derive(Debug)]
pub struct RamDisk {
    geometry: Geometry,
    bytes: RwLock<Vec<u8>>,
}

impl RamDisk {
    /// A disk of zeros.
    ///
    /// # Panics
    /// When `sector_bytes` is not 512, 1024 or 4096, or `size_bytes` not a multiple of it.
    #[must_use]
    pub fn new(size_bytes: usize, sector_bytes: u32) -> Self {
        assert!(matches!(sector_bytes, 512 | 1024 | 4096));
        assert!(size_bytes.is_multiple_of(sector_bytes as usize));
        Self {
            geometry: Geometry {
                size_bytes: size_bytes as u64,
                sector_bytes,
                preferred_bytes: 4096,
                read_only: false,
            },
            bytes: RwLock::new(vec![0; size_bytes]),
        }
    }

    fn bytes(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes_mut(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockDevice for RamDisk {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.geometry.check(offset, buffer.len() as u64)?;
        let start = offset as usize;
        buffer.copy_from_slice(&self.bytes()[start..start + buffer.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.geometry.check(offset, data.len() as u64)?;
        let start = offset as usize;
        self.bytes_mut()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        self.geometry.check(offset, length_bytes)?;
        let start = offset as usize;
        self.bytes_mut()[start..start + length_bytes as usize].fill(0);
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError> {
        self.geometry.check(offset, length_bytes)?;
        let bytes = self.bytes();
        collect_extents(offset..offset + length_bytes, extents_max, |at| {
            let end = at + u64::from(self.geometry.sector_bytes);
            let sector = &bytes[at as usize..end as usize];
            let kind = if sector.iter().all(|&byte| byte == 0) {
                ExtentKind::Hole
            } else {
                ExtentKind::Data
            };
            Ok((kind, end))
        })
    }
}
