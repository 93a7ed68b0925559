//! `lnx` and `lnx-tar`: 16 successive releases of a large C source tree, OpenSSL 3.0.0 to 3.5.2,
//! as trees `v01` … `v16` or as tars: about 58,000 files, 660 MB.
//!
//! Stands for LNX, releases of Linux: untarred in FastCDC and MACS, tarred in Odess, P-Dedupe
//! and Ni. The sources are those in the crate `openssl-src`, which carries the whole upstream
//! tree.
//!
//! All entries of a version get one time, 90 days after the version before, as in an unpacked
//! release (files of crates all carry the same made-up time, which a tool that goes by size and
//! time would read as "unchanged").

use std::path::Path;

use anyhow::Result;

use super::archive::Archive;
use super::release::{Release, fitting};
use super::site::Site;

/// 2021-01-01 in seconds since 1970.
const FIRST_SECONDS: u64 = 1_609_459_200;

/// From one version to the next.
const STEP_SECONDS: u64 = 90 * 86_400;

/// How many there are.
pub const VERSIONS_ALL: usize = RELEASES.len();

/// What they have together.
pub const BYTES_ALL: u64 = 650 << 20;

const fn openssl(version: &'static str, bytes: u64, digest: &'static str) -> Release {
    Release {
        package: "openssl-src",
        version,
        directory: "openssl",
        bytes,
        digest,
    }
}

/// In order of the upstream versions.
#[rustfmt::skip]
static RELEASES: [Release; 16] = [
    openssl("300.0.2+3.0.0", 37_401_738, "2a29965886de704de069fc95a9c6f7c8f90856512c8208184967372957a3d0e7"),
    openssl("300.0.5+3.0.2", 37_640_787, "f0f0143716f5f9c22b99266243b01a7a23391763e6cf81326ac743e46c334ca4"),
    openssl("300.0.9+3.0.5", 37_728_100, "f0ded8ce0c492ac6e12c8f324a56a58db3b7eaf61f0c67d3442ea541a42d9ab0"),
    openssl("300.0.12+3.0.8", 37_994_694, "e609335cbbcf8bed5ff6861559687b817f0339da899802b49260f62d4217e22d"),
    openssl("300.1.0+3.1.0", 39_270_714, "8d22a418fe6f790e3cb5dd2dd2c0179e17a6c0153808c828a4fb88985da84337"),
    openssl("300.1.3+3.1.2", 39_356_909, "71649620c5991953d08155e38596d5fbf2f2a20fab7e311837b7b3953235e742"),
    openssl("300.1.6+3.1.4", 39_424_777, "aa3ac1e1d9202c500d5efc16309162e23923bd408063ec6a03133fc8a9c5585f"),
    openssl("300.2.0+3.2.0", 41_909_847, "99a6846a55cb984f6a8c297c616221d18293373275f8eae6a4210e63c22c6294"),
    openssl("300.2.2+3.2.1", 41_973_080, "84446e2cbe4b8453be7106e74dba55c7d512031a9143eb39649c100c617af715"),
    openssl("300.3.0+3.3.0", 42_895_717, "c589c025e3411f52dd8cbc0e82316886c4e525073868ed598a29627cced2bf32"),
    openssl("300.3.1+3.3.1", 42_945_995, "cdf60a5e3fdd35e7d248bfc302fc5829cf993a86921e762bf272842bad90f033"),
    openssl("300.3.2+3.3.2", 43_012_388, "57060367100101ea808696015bcb2828af5de5241e656ce23936e4431890654f"),
    openssl("300.4.0+3.4.0", 43_777_859, "45cb987b98af9b9353a575dec80d9e89f0fe383ddee86443c5150b0af4977789"),
    openssl("300.4.2+3.4.1", 43_818_000, "bee39908a32938ec181907bfc179471c44d6bc98fc2067e0f938c45da5331f1f"),
    openssl("300.5.0+3.5.0", 46_540_685, "48e98199a1bfe82349a230c6bd790886582a8b10f69eabf905a1e91ef5c476f6"),
    openssl("300.5.2+3.5.2", 46_687_770, "a965355e48d24ca95a3c3f7f63849d35392758d0859de4bc28d5072e0ba6f3e8"),
];

/// Adds the trees that are missing.
///
/// # Errors
/// When a release can't be had.
pub fn build_trees(site: &mut Site) -> Result<()> {
    each(site, |site, number, tree, _, label| {
        site.add(number, tree, "", label)
    })
}

/// Adds the tars that are missing.
///
/// # Errors
/// When a release can't be had.
pub fn build_tars(site: &mut Site) -> Result<()> {
    each(site, |site, number, tree, seconds, label| {
        let path = site.scratch().join("tar");
        let mut archive = Archive::create(&path, seconds)?;
        let top = label.replace(' ', "-");
        archive.directory(&top, 0o755)?;
        archive.tree(tree, &top)?;
        archive.finish()?;
        site.add(number, &path, ".tar", label)
    })
}

fn each(
    site: &mut Site,
    mut put: impl FnMut(&mut Site, usize, &Path, u64, &str) -> Result<()>,
) -> Result<()> {
    let (releases, share) = fitting(&RELEASES, site.bytes_asked(), site.versions_asked())?;
    for (number, release) in (1..).zip(releases) {
        if site.lacks(number) {
            let seconds = FIRST_SECONDS + number as u64 * STEP_SECONDS;
            let tree = release.fetch(site, share, seconds)?;
            let label = format!("openssl {}", release.upstream());
            put(site, number, &tree, seconds, &label)?;
        }
    }
    Ok(())
}
