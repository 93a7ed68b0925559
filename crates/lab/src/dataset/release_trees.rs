//! `gcc` and `gdb`: successive releases of one project as trees `v01` …: RocksDB, 9 of about 33 MB, and
//! librdkafka, 10 of about 10 MB.
//!
//! Stand for GCC and GDB of MACS, unpacked releases of one project each: a large one and a small one,
//! fewer and smaller here. The releases are those of `source_tars`. All entries of a version get one
//! time, a month after the version before.

use anyhow::Result;

use super::release::fitting;
use super::site::Site;
use super::source_tars::releases_of;

/// 2021-01-01 in seconds since 1970; a release a month.
const FIRST_SECONDS: u64 = 1_609_459_200;
const STEP_SECONDS: u64 = 30 * 86_400;

/// Releases of RocksDB, and their bytes, about.
pub const GCC_VERSIONS: usize = 9;
pub const GCC_BYTES: u64 = 284 << 20;
/// Releases of librdkafka, and their bytes, about.
pub const GDB_VERSIONS: usize = 10;
pub const GDB_BYTES: u64 = 100 << 20;

/// Adds the trees of `gcc` that are missing.
///
/// # Errors
/// When a release can't be had.
pub fn build_gcc(site: &mut Site) -> Result<()> {
    build(site, "librocksdb-sys")
}

/// Adds the trees of `gdb` that are missing.
///
/// # Errors
/// When a release can't be had.
pub fn build_gdb(site: &mut Site) -> Result<()> {
    build(site, "rdkafka-sys")
}

fn build(site: &mut Site, package: &str) -> Result<()> {
    let all = releases_of(package);
    let (releases, share) = fitting(all, site.bytes_asked(), site.versions_asked())?;
    for (number, release) in (1..).zip(releases) {
        if site.lacks(number) {
            let seconds = FIRST_SECONDS + number as u64 * STEP_SECONDS;
            let tree = release.fetch(site, share, seconds)?;
            let label = format!("{} {}", release.package, release.version);
            site.add(number, &tree, "", &label)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_releases_fit_the_usual_size() {
        for (package, versions, bytes) in [
            ("librocksdb-sys", GCC_VERSIONS, GCC_BYTES),
            ("rdkafka-sys", GDB_VERSIONS, GDB_BYTES),
        ] {
            let releases = releases_of(package);
            let sum: u64 = releases.iter().map(|release| release.bytes).sum();
            assert_eq!(releases.len(), versions, "{package}");
            assert!(sum <= bytes && bytes - sum < 8 << 20, "{package}: {sum}");
        }
    }
}
