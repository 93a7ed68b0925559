//! The memory that the data lies in while it is cut: anonymous, touched beforehand, of huge pages
//! where the system gives them.
//!
//! Pages of 4 KiB would make a chunker that reads 25 GB/s wait for the page tables. Whether huge
//! pages were given is read back from /proc/self/smaps: asking for them is only a hint.

use std::fs;
use std::io;

use memmap2::{Advice, MmapMut};

/// A huge page of x86-64, and of AArch64 with pages of 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

/// A block of memory at a huge page's boundary.
pub struct Memory {
    map: MmapMut,
    start: usize,
    length: usize,
}

impl Memory {
    /// Memory of `length` bytes, every page of which is there.
    pub fn new(length: usize) -> io::Result<Self> {
        let wanted = length
            .checked_next_multiple_of(HUGE_PAGE)
            .and_then(|length| length.checked_add(HUGE_PAGE))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let mut map = MmapMut::map_anon(wanted)?;
        // A kernel without huge pages refuses; it is slower then, and the report says so.
        let _ = map.advise(Advice::HugePage);
        let address = map.as_ptr().addr();
        let start = address.next_multiple_of(HUGE_PAGE) - address;
        for page in map[start..start + length].chunks_mut(4096) {
            page[0] = 1;
        }
        Ok(Self { map, start, length })
    }

    /// The memory.
    pub fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.start + self.length]
    }

    /// The memory, to fill.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.length]
    }

    /// How many of its bytes lie in huge pages; `None` where the system does not tell.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        let smaps = fs::read_to_string("/proc/self/smaps").ok()?;
        let address = self.bytes().as_ptr().addr() as u64;
        let bytes = huge_page_bytes(&smaps, address, address + self.length as u64)?;
        Some(bytes.min(self.length as u64))
    }
}

/// How much memory the system can give without pushing other things out; `None` where it does not
/// tell.
pub fn available_bytes() -> Option<u64> {
    available(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

/// The bytes in huge pages of the mappings that overlap `start..end`.
fn huge_page_bytes(smaps: &str, start: u64, end: u64) -> Option<u64> {
    let mut is_ours = false;
    let mut found = None;
    for line in smaps.lines() {
        let first = line.split_whitespace().next()?;
        if let Some((from, to)) = range(first) {
            is_ours = from < end && start < to;
        } else if is_ours && first == "AnonHugePages:" {
            let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
            *found.get_or_insert(0) += kilobytes << 10;
        }
    }
    found
}

/// `7f0000000000-7f0000200000`
fn range(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(from)?, number(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_as_long_as_asked_for() {
        let mut memory = Memory::new(5_000_000).unwrap();
        assert_eq!(memory.bytes().len(), 5_000_000);
        assert_eq!(memory.bytes().as_ptr().addr() % HUGE_PAGE, 0);
        memory.bytes_mut()[4_999_999] = 7;
        assert_eq!(memory.bytes()[4_999_999], 7);
        assert!(memory.huge_page_bytes().unwrap_or(0) <= 5_000_000);
        assert!(Memory::new(usize::MAX).is_err());
    }

    #[test]
    fn the_system_is_asked_for_what_is_available() {
        let meminfo = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   4 kB\n";
        assert_eq!(available(meminfo), Some(4096));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn huge_pages_are_counted_where_they_are_ours() {
        let smaps = "\
1000-3000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
3000-5000 rw-p 00000000 00:00 0
Size:  8 kB
AnonHugePages:      4096 kB
9000-a000 rw-p 00000000 00:00 0
AnonHugePages:      8192 kB
";
        assert_eq!(huge_page_bytes(smaps, 0x2000, 0x4000), Some(6 << 20));
        assert_eq!(huge_page_bytes(smaps, 0x3000, 0x4000), Some(4 << 20));
        assert_eq!(huge_page_bytes(smaps, 0x6000, 0x7000), None);
    }
}
