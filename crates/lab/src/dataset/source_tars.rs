//! `tar`: releases of five projects, each release as one tar, `v01.tar` ….
//!
//! Stands for TAR of FastCDC and Odess: tarred releases of GCC, GDB, Emacs and others. Here they
//! are libraries in C and C++ whose whole source is published as a crate: jemalloc, libgit2,
//! librdkafka, SQLite, RocksDB. A project's releases stand together in their order, the smallest
//! project first, so that few bytes are still several releases of one project.

use anyhow::Result;

use super::archive::Archive;
use super::release::{Release, fitting};
use super::site::Site;

/// 2021-01-01 in seconds since 1970; a release a month.
const FIRST_SECONDS: u64 = 1_609_459_200;
const STEP_SECONDS: u64 = 30 * 86_400;

/// How many there are.
pub const VERSIONS_ALL: usize = RELEASES.len();

/// What they have together, about.
pub const BYTES_ALL: u64 = 650 << 20;

const fn release(
    package: &'static str,
    version: &'static str,
    bytes: u64,
    digest: &'static str,
) -> Release {
    Release {
        package,
        version,
        directory: "",
        bytes,
        digest,
    }
}

#[rustfmt::skip]
static RELEASES: [Release; 45] = [
    release("tikv-jemalloc-sys", "0.4.0+5.2.1", 2_945_022, "3200f02f1a09607e4722009d67577291f4c056a4072b34955158ecb58aa8ad58"),
    release("tikv-jemalloc-sys", "0.4.3+5.2.1-patched.2", 2_945_327, "64ba45a8866d8473e384bfe16d53e90540556594d61efea4940b29a3f62a2da3"),
    release("tikv-jemalloc-sys", "0.5.0+5.3.0", 3_898_700, "aa16511b081ff3ccb75af51cf6d5f9bfbcc1d77a13cc166725d300c4c9790996"),
    release("tikv-jemalloc-sys", "0.5.4+5.3.0-patched", 3_912_680, "eab48b3638f64515eba7991ab92700b7a670ace1393b822bd8387eded87e787f"),
    release("tikv-jemalloc-sys", "0.6.1+5.3.0-1-ge13ca993e8ccb9ba9847cc330696e02839f328f7", 3_921_972, "d8f47fdb0cab0c03c8426ab54070f7a3056fdc44cd65c6de155381124972e13c"),
    release("tikv-jemalloc-sys", "0.7.1+5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8", 4_761_556, "4edf4040d931b5c2a979f902136a95f3eeb68b9394c74ee288fed6daf7ff23b2"),
    release("libgit2-sys", "0.12.26+1.3.0", 6_728_529, "9e1ea40a97913c1aa54e0a07b210bd3e99250f8caceeff38f407279111fa5a15"),
    release("libgit2-sys", "0.13.0+1.4.1", 6_798_138, "39c711f9050c0298f09c562f1d4e160b4ca6e8872a702ceb5e6d3c16445c4f99"),
    release("libgit2-sys", "0.13.5+1.4.5", 7_398_520, "39190f3f41db131b184bd4519ae9aa0753116ebaf6c053ea1736e1cabb9f8fe2"),
    release("libgit2-sys", "0.14.0+1.5.0", 7_518_323, "e89add199e2f6fc22e16cf5990679882935e86bd795d3e1843ed8570aef79370"),
    release("libgit2-sys", "0.14.2+1.5.1", 7_525_294, "bb04c040314374ed9b0751f885d71ab8973137261a078200674d4bc4609bec5a"),
    release("libgit2-sys", "0.15.0+1.6.3", 7_593_404, "76fff48b57bc87db886d2e828896694a95bb344df39a7dce23fe95e7af481da6"),
    release("libgit2-sys", "0.15.2+1.6.4", 7_594_641, "d6c566c80923821b40c441daaffe74dc471f74deefb27f66876066851f0c70de"),
    release("libgit2-sys", "0.16.1+1.7.1", 7_674_390, "8e1b6e3210ee90f5940ee7ee617fa9b4ac769617840c413e83cb6b54b5058fd6"),
    release("libgit2-sys", "0.17.0+1.8.1", 8_091_006, "fcd46e7c88b7b5cc35028cb1a55b44943fa02219e71d1f64b568474affd5e171"),
    release("libgit2-sys", "0.18.0+1.9.0", 8_292_015, "7c37a8175f3b17a867308eb83ec37119729955e424d6394c0951a0c1a45cb284"),
    release("rdkafka-sys", "2.0.0+1.4.2", 7_905_133, "db6f80ce7eb1260bb847d77e82d2ceb5b4e990b1643c48cfde9b398899104017"),
    release("rdkafka-sys", "2.1.0+1.5.0", 8_034_217, "7b87cb527fe1c7450d1bacaeedb8659e496bb08092bbe070ab77806c0cb896d0"),
    release("rdkafka-sys", "3.0.0+1.6.0", 8_961_994, "54c9216983d60ded3653660ea001516d9c2009dfea1ec00e11eb2f68a584d740"),
    release("rdkafka-sys", "4.0.0+1.6.1", 9_031_676, "052aa59329e0fad0d7277c4cedaa24b0a36b87f25ecdf4ced190f624fc384cbb"),
    release("rdkafka-sys", "4.1.0+1.7.0", 9_160_093, "faa8b6a3a8b20d34a3f3531a792ddedab8ccc9e58e8201c8b079e65d058e95df"),
    release("rdkafka-sys", "4.2.0+1.8.2", 10_378_482, "ae527c2eb2d2b25ea542952f39826f88ed6f8022f93aec88de098b7b6bb5d08b"),
    release("rdkafka-sys", "4.3.0+1.9.2", 11_070_926, "d15141280454b9dd7ab16d03a279d21e0aeb2c21064152964f688dc8ebf58126"),
    release("rdkafka-sys", "4.6.0+2.2.0", 12_091_742, "67a90907bc2f52ad436a096d281f06f9627b8aaa6592de408d55c2d9a2dc2755"),
    release("rdkafka-sys", "4.7.0+2.3.0", 12_390_615, "3156990ad025b485990ee7c802421cdba83bc23f3cf01594a549b8dffa1fa37b"),
    release("rdkafka-sys", "4.9.0+2.10.0", 13_774_356, "c84dfaa37a4eb08f7b58e4639b7b7e0c89dd57a61ea1f1a49865e231958e3031"),
    release("libsqlite3-sys", "0.20.1", 9_390_534, "36b192a17246d2fbe22379b3ddef9e97f5f2de24fcf2d692580801f8d04d4d4e"),
    release("libsqlite3-sys", "0.22.2", 9_537_192, "68ecb3be6bc7b21fa7642190c3926abd4cd4efd45b6f73ed63bec17054a164ba"),
    release("libsqlite3-sys", "0.23.2", 18_870_565, "c9eebd0ad92ffaa3e2768feb4f11b7d7d6789e4693da6440e2ceba33fe9b70d3"),
    release("libsqlite3-sys", "0.25.2", 19_561_863, "7590283534704cc47eee2dd97e0395a72fd00029bced79e0b6922d5749fd9ba2"),
    release("libsqlite3-sys", "0.26.0", 19_169_490, "a40b8fe05dfdde69a5e42683da3af45030aaf847ade446ec49bff374d4bfb33f"),
    release("libsqlite3-sys", "0.27.0", 20_056_500, "6b3ca0e6ca308330d9443dfe0cdbb6742434e88b36680871b83e37bdd99d91fd"),
    release("libsqlite3-sys", "0.28.0", 20_167_021, "1b88d608597608fd04f49ec9cb073a9c2ffd8667a065ee51d7c9b56e1617a70a"),
    release("libsqlite3-sys", "0.30.0", 20_674_489, "2b245f89ef1635d7fd63efa138802d27f80bf6d32ddd39a15a9bdbb3d1a98a96"),
    release("libsqlite3-sys", "0.33.0", 20_911_065, "2c0beb23172422579942da945b961d0196858edb244434c2be87bd9f602f2a6a"),
    release("libsqlite3-sys", "0.35.0", 20_964_085, "1be169fd76fab7c07d72922f0d02d6b75eb548a9f037fd172b85e2560743b263"),
    release("librocksdb-sys", "0.10.0+7.9.2", 30_948_652, "b967b31ede0a9cff4c37bfefbcc916bc0da0887fed13dcc1aff32c48d037d812"),
    release("librocksdb-sys", "0.11.0+8.1.1", 31_265_267, "610489c50ddd47f58ceb4892b19006f138427e0d53f5c0fc0bc6136f0ad5d12d"),
    release("librocksdb-sys", "0.12.0+8.5.3", 31_999_961, "d6f0a102d9f8c0cd6639f37253ae6a8c3578f42f1fa71f74113e3d8036bdd521"),
    release("librocksdb-sys", "0.13.0+8.6.7", 31_999_961, "ec9ecfea1eb3f6f2cdea45d826a568a76112ab2bad196dbeb143cb3bd1352091"),
    release("librocksdb-sys", "0.14.0+8.8.1", 32_635_337, "5f7e601ac930352e994699fe2cb337c7e8c19d75ae257e7e1e1cd3bbfb1bd143"),
    release("librocksdb-sys", "0.15.0+8.9.1", 33_158_773, "7f8931e9f9111b2a260a110268d32b18483f1ecc7a86425affcbd126289791be"),
    release("librocksdb-sys", "0.16.0+8.10.0", 33_344_030, "b5b1516f707ab21a815c79222814bd18b1d43aca96f92d56f6315fddd5bd5763"),
    release("librocksdb-sys", "0.17.1+9.9.3", 34_658_672, "db446fc5116afdd64a5fa7f8ddace924a133dfb68521f444f6f95b769d205db0"),
    release("librocksdb-sys", "0.17.3+10.4.2", 35_498_386, "ed4767cfb15c0090d94346c3237dae1f4669f6983fda8ac4a190a0cf9f3a9420"),
];

/// The releases of one project, in their order.
pub fn releases_of(package: &str) -> &'static [Release] {
    let is_it = |release: &Release| release.package == package;
    let start = RELEASES
        .iter()
        .take_while(|release| !is_it(release))
        .count();
    let count = RELEASES[start..]
        .iter()
        .take_while(|release| is_it(release))
        .count();
    &RELEASES[start..start + count]
}

/// Adds the tars that are missing.
///
/// # Errors
/// When a release can't be had.
pub fn build(site: &mut Site) -> Result<()> {
    let (releases, share) = fitting(&RELEASES, site.bytes_asked(), site.versions_asked())?;
    for (number, release) in (1..).zip(releases) {
        if site.lacks(number) {
            let seconds = FIRST_SECONDS + number as u64 * STEP_SECONDS;
            let tree = release.fetch(site, share, seconds)?;
            let path = site.scratch().join("tar");
            let mut archive = Archive::create(&path, seconds)?;
            let top = format!("{}-{}", release.package, release.upstream());
            archive.directory(&top, 0o755)?;
            archive.tree(&tree, &top)?;
            archive.finish()?;
            let label = format!("{} {}", release.package, release.version);
            site.add(number, &path, ".tar", &label)?;
        }
    }
    Ok(())
}
