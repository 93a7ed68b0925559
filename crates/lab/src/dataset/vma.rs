//! `vma`: ext4 images of different systems, `v01.img` ….
//!
//! Stands for VMA of FastCDC and Odess, and for Centos, Fedora and Freebsd of P-Dedupe: images
//! of virtual machines of different releases. With 64 MiB or more an image, root and debootstrap
//! they are Debian systems, three releases with different packages in turn: little more than the
//! minimum, or from 384 MiB on compilers, interpreters and servers, so that most of an image is
//! not empty. Otherwise they are made of different packages of this machine's release, unpacked.

use std::collections::HashMap;

use anyhow::Result;

use super::debian::{self, Packages};
use super::ext4::Image;
use super::site::Site;

/// From here on a bootstrapped system fits.
pub const BOOTSTRAP_BYTES: u64 = 64 << 20;

/// 2024-01-01, and a month between images.
const FIRST_SECONDS: u64 = 1_704_067_200;
const STEP_SECONDS: u64 = 30 * 86_400;

/// Releases and what is installed beside the minimum.
const SYSTEMS: [(&str, &str); 9] = [
    ("bookworm", ""),
    ("trixie", ""),
    ("bookworm", "python3-minimal"),
    ("bullseye", ""),
    ("trixie", "python3-minimal"),
    ("bookworm", "openssh-server"),
    ("trixie", "openssh-server"),
    ("bullseye", "python3-minimal"),
    ("bookworm", "nginx-light,sqlite3"),
];

/// From here on the larger systems fit.
const LARGE_BYTES: u64 = 384 << 20;

/// Releases and what is installed beside the minimum where there is room.
const LARGE_SYSTEMS: [(&str, &str); 9] = [
    ("bookworm", "build-essential"),
    ("trixie", "build-essential"),
    ("bookworm", "gcc,python3,git,sqlite3"),
    ("bullseye", "build-essential"),
    ("trixie", "gcc,python3,git,sqlite3"),
    ("bookworm", "default-jre-headless,python3"),
    ("trixie", "openssh-server,nginx-light,python3,vim"),
    ("bullseye", "default-jre-headless,python3"),
    (
        "bookworm",
        "openssh-server,nginx-light,vim,gcc,redis-server",
    ),
];

/// Adds the images that are missing.
///
/// # Errors
/// When a program is missing or fails.
pub fn build(site: &mut Site) -> Result<()> {
    site.note_tool("e2fsprogs", &Image::tools()?);
    let bytes = site.bytes_asked() / site.versions_asked() as u64;
    let is_bootstrapped = bytes >= BOOTSTRAP_BYTES && debian::can_bootstrap();
    if !is_bootstrapped {
        eprintln!("images of unpacked packages: debootstrap needs root and 64 MiB an image");
    }
    let mut packages = Packages::default();
    for number in 1..=site.versions_asked() {
        if !site.lacks(number) {
            continue;
        }
        let (trees, label) = if is_bootstrapped {
            let systems = if bytes < LARGE_BYTES {
                SYSTEMS
            } else {
                LARGE_SYSTEMS
            };
            let (release, extra) = systems[(number - 1) % systems.len()];
            let tree = debian::bootstrap(site, "system", release, extra)?;
            (vec![tree], format!("{release} {extra}").trim().to_owned())
        } else {
            // Each system lacks another third of the packages.
            let mut names = packages.fitting(site, bytes * 6 / 10)?;
            let mut index = number;
            names.retain(|_| {
                index += 1;
                index % 3 != 0
            });
            let mut trees = Vec::new();
            for name in &names {
                trees.push(packages.tree(site, name)?.0);
            }
            (trees, names.join(" "))
        };
        let mut used = 0;
        for tree in &trees {
            used += debian::used_bytes(tree)?;
        }
        let seconds = FIRST_SECONDS + number as u64 * STEP_SECONDS;
        let path = site.scratch().join("img");
        let mut image = Image::create(&path, image_bytes(bytes, used), number as u64, seconds)?;
        let mut is_there = already_there();
        for tree in &trees {
            image.tree(tree, "", &mut is_there)?;
        }
        image.apply()?;
        site.add(number, &path, ".img", &label)?;
    }
    Ok(())
}

/// What was asked, unless the system needs more.
#[must_use]
pub fn image_bytes(asked: u64, used: u64) -> u64 {
    let needed = used * 5 / 4 + (1 << 20);
    asked.max(needed).next_multiple_of(1 << 20)
}

/// What a new file system holds: path, and whether it is a directory.
#[must_use]
pub fn already_there() -> HashMap<String, bool> {
    HashMap::from([("/lost+found".to_owned(), true)])
}
