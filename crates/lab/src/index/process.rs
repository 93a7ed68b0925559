//! What the system says of this process and its files.

use std::fs::{self, File};
use std::path::Path;

use anyhow::Context as _;
use rustix::fs::Advice;

/// The most memory that this process has had, if the system says so.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    peak_of(&status)
}

/// Seconds of processor that this process has had.
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Drops the pages of all index runs below `directory` from the page cache. What they hold is synced,
/// so that none has to stay.
pub fn drop_pages(directory: &Path) -> anyhow::Result<()> {
    let runs = directory.join("index");
    let named = || format!("cannot read {}", runs.display());
    for entry in fs::read_dir(&runs).with_context(named)? {
        let file = File::open(entry?.path()).with_context(named)?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).with_context(named)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read() {
        let status = "Name:\tlab\nVmPeak:\t  9 kB\nVmHWM:\t   2048 kB\nVmRSS:\t  7 kB\n";
        assert_eq!(peak_of(status), Some(2 << 20));
        assert_eq!(peak_of("Name:\tlab\n"), None);
    }
}
