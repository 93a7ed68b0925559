//! A disk in memory that counts what is asked of it, fails when told to, and can be held up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

use volume::{BlockDevice, DeviceError, Extent, Geometry, RamDisk};

pub struct TestDisk {
    ram: RamDisk,
    geometry: Geometry,
    pub flushes: AtomicU64,
    pub writes: AtomicU64,
    /// Whether everything fails, as a damaged disk does.
    pub is_damaged: AtomicBool,
    /// Whether writes fail for want of room.
    pub is_full: AtomicBool,
    /// Whether writes wait.
    held: Mutex<bool>,
    released: Condvar,
    /// Writes that wait.
    pub waiting: AtomicU64,
}

impl TestDisk {
    pub fn new(size_bytes: usize, sector_bytes: u32) -> Self {
        let ram = RamDisk::new(size_bytes, sector_bytes);
        Self {
            geometry: ram.geometry(),
            ram,
            flushes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            is_damaged: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            held: Mutex::new(false),
            released: Condvar::new(),
            waiting: AtomicU64::new(0),
        }
    }

    pub fn read_only(mut self) -> Self {
        self.geometry.read_only = true;
        self
    }

    pub fn hold(&self) {
        *self.held.lock().unwrap() = true;
    }

    pub fn release(&self) {
        *self.held.lock().unwrap() = false;
        self.released.notify_all();
    }

    pub fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::SeqCst)
    }

    /// The bytes at a range, past all that is set to fail.
    pub fn bytes(&self, offset: u64, length_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; length_bytes];
        self.ram.read(offset, &mut bytes).expect("within the disk");
        bytes
    }

    fn check(&self) -> Result<(), DeviceError> {
        if self.is_damaged.load(Ordering::SeqCst) {
            return Err(DeviceError::Damaged("a test says so".to_string()));
        }
        Ok(())
    }

    fn check_write(&self) -> Result<(), DeviceError> {
        self.check()?;
        if self.geometry.read_only {
            return Err(DeviceError::ReadOnly);
        }
        if self.is_full.load(Ordering::SeqCst) {
            return Err(DeviceError::Full("a test says so".to_string()));
        }
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let held = self.held.lock().unwrap();
        drop(self.released.wait_while(held, |held| *held).unwrap());
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

impl BlockDevice for TestDisk {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.check()?;
        self.ram.read(offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.check_write()?;
        self.ram.write(offset, data)
    }

    fn write_zeroes(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        self.check_write()?;
        self.ram.write_zeroes(offset, length_bytes)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.check()?;
        self.flushes.fetch_add(1, Ordering::SeqCst);
        self.ram.flush()
    }

    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError> {
        self.check()?;
        self.ram.extents(offset, length_bytes, extents_max)
    }
}
