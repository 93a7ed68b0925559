//! `vmb`: one system's ext4 image after successive changes, `v01.img` ….
//!
//! Stands for VMB of FastCDC and Odess: backups of one virtual machine in use, 96 % duplicates.
//! From one backup to the next, the image itself is changed (it ages: freed blocks are taken
//! again): a package is installed, at times one that was there again, which moves its files as an
//! upgrade does; logs grow and are rotated; settings are edited; a user's files come and go.
//!
//! The system is bootstrapped where `vma` would do so, or made of unpacked packages. A version is
//! made from the one before, so when one is missing all behind it are made again.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::content::{Contents, Grain};
use super::debian::{self, PACKAGES, Packages};
use super::ext4::Image;
use super::seeded::Seeded;
use super::site::{Site, version_name};
use super::vma::{BOOTSTRAP_BYTES, already_there, image_bytes};

/// 2024-01-01, and a day between backups.
const FIRST_SECONDS: u64 = 1_704_067_200;
const STEP_SECONDS: u64 = 86_400;

/// Settings that are edited, and their length.
const SETTINGS: u64 = 24;
const SETTING_BYTES: u64 = 3000;

/// Backups that a user's file lives for, and backups between two rotations of a log.
const LIFETIME: u64 = 6;
const ROTATION: u64 = 7;

/// Of the packages, how many may be installed in one day's change, if the image has room.
const SMALL_PACKAGES: usize = 9;

/// Purposes of random numbers.
const FILES: u64 = 1;
const EDITS: u64 = 2;
const LOG: u64 = 3;

/// Adds the images that are missing, and those behind them.
///
/// # Errors
/// When a program is missing or fails.
pub fn build(site: &mut Site) -> Result<()> {
    site.note_tool("e2fsprogs", &Image::tools()?);
    let bytes = site.bytes_asked() / site.versions_asked() as u64;
    let mut packages = Packages::default();
    let (mut small, mut small_bytes) = (Vec::new(), 0);
    for name in &PACKAGES[..SMALL_PACKAGES] {
        let (_, size) = packages.tree(site, name)?;
        if size > bytes / 30 && !small.is_empty() {
            break;
        }
        small.push(*name);
        small_bytes += size;
    }
    let mut machine = Machine {
        contents: Contents::new(site.seed()),
        seed: site.seed(),
        day_bytes: bytes / 400,
        small,
        small_bytes,
        is_there: already_there(),
    };
    if site.lacks(1) {
        site.start_over()?;
        machine.install(site, &mut packages, bytes)?;
    }
    let path = site.scratch().join("img");
    let mut is_changed = false;
    for number in 2..=site.versions_asked() {
        if !(is_changed || site.lacks(number)) {
            continue;
        }
        is_changed = true;
        fs::copy(
            site.directory().join(version_name(number - 1, ".img")),
            &path,
        )?;
        let seconds = FIRST_SECONDS + number as u64 * STEP_SECONDS;
        let mut image = Image::open(&path, seconds)?;
        machine.live_to(site, &mut packages, &mut image, number as u64)?;
        image.apply()?;
        let label = format!("day {number}");
        site.add(number, &path, ".img", &label)?;
    }
    Ok(())
}

/// The system, and how it changes.
struct Machine {
    contents: Contents,
    seed: u64,
    /// What a day writes into logs, and as much again into a user's files.
    day_bytes: u64,
    /// Packages that are installed one by one, and what all of them take.
    small: Vec<&'static str>,
    small_bytes: u64,
    is_there: HashMap<String, bool>,
}

impl Machine {
    /// Makes the first image.
    fn install(&mut self, site: &mut Site, packages: &mut Packages, bytes: u64) -> Result<()> {
        let mut trees = Vec::new();
        if bytes >= BOOTSTRAP_BYTES && debian::can_bootstrap() {
            trees.push(debian::bootstrap(site, "system", "bookworm", "")?);
        } else {
            for name in packages.fitting(site, bytes * 4 / 10)? {
                trees.push(packages.tree(site, name)?.0);
            }
        }
        let mut used = self.day_bytes * 30 + self.small_bytes + SETTINGS * 4096;
        for tree in &trees {
            used += debian::used_bytes(tree)?;
        }
        let path = site.scratch().join("img");
        let bytes = image_bytes(bytes, used);
        let mut image = Image::create(&path, bytes, 1, FIRST_SECONDS)?;
        for tree in &trees {
            image.tree(tree, "", &mut self.is_there)?;
        }
        for directory in ["/srv", "/srv/log", "/srv/settings", "/srv/user"] {
            if self.is_there.insert(directory.to_owned(), true).is_none() {
                image.directory(directory)?;
            }
        }
        let staged = site.fresh("staged")?;
        for number in 0..SETTINGS {
            self.write_setting(&mut image, &staged, number, 1)?;
        }
        image.apply()?;
        site.add(1, &path, ".img", "day 1, a fresh system")
    }

    /// Makes the changes of one day.
    fn live_to(
        &mut self,
        site: &mut Site,
        packages: &mut Packages,
        image: &mut Image,
        number: u64,
    ) -> Result<()> {
        let staged = site.fresh("staged")?;
        let mut numbers = Seeded::new(self.seed, &[EDITS, number]);
        // Under a directory of its own, so that it meets nothing of the system.
        let chosen = |numbers: &mut Seeded| self.small[numbers.index(self.small.len())];
        let name = chosen(&mut numbers);
        let (tree, _) = packages.tree(site, name)?;
        let target = format!("/srv/{name}");
        let mut before = (2..number).map(|day| Seeded::new(self.seed, &[EDITS, day]));
        let mut there = HashMap::new();
        if before.any(|mut numbers| chosen(&mut numbers) == name) {
            list(&tree, &target, &mut there)?;
        } else {
            image.directory(&target)?;
        }
        image.tree(&tree, &target, &mut there)?;

        self.log(image, &staged, number)?;
        for _ in 0..2 {
            let setting = numbers.below(SETTINGS);
            image.remove(&format!("/srv/settings/{setting:02}.conf"))?;
            self.write_setting(image, &staged, setting, number)?;
        }
        for index in 0..3 {
            self.write_file(image, &staged, number, index)?;
            if number > LIFETIME + 1 {
                image.remove(&file_name(number - LIFETIME, index))?;
            }
        }
        Ok(())
    }

    /// A log holds what was said since the last rotation.
    fn log(&self, image: &mut Image, staged: &Path, number: u64) -> Result<()> {
        let stream = Seeded::new(self.seed, &[LOG, number / ROTATION]).next();
        let name = |number: u64| format!("/srv/log/{:03}.log", number / ROTATION);
        let days = number % ROTATION + 1;
        if days > 1 && number > 2 {
            image.remove(&name(number))?;
        } else if number / ROTATION >= 2 {
            image.remove(&name(number - 2 * ROTATION))?;
        }
        let mut text = Vec::new();
        let length = days * self.day_bytes;
        self.contents
            .append(&mut text, stream, Grain::Text, 0, length);
        let path = staged.join("log");
        fs::write(&path, text)?;
        image.write(&path, &name(number))
    }

    /// One block of it is another with each edit.
    fn write_setting(&self, image: &mut Image, staged: &Path, number: u64, day: u64) -> Result<()> {
        let mut text = Vec::new();
        self.contents
            .append(&mut text, number, Grain::Text, 0, SETTING_BYTES);
        let edit = format!("edited = {day}\n");
        text.splice(600..600, edit.into_bytes());
        let path = staged.join(format!("setting-{number}"));
        fs::write(&path, text)?;
        image.write(&path, &format!("/srv/settings/{number:02}.conf"))
    }

    fn write_file(&self, image: &mut Image, staged: &Path, number: u64, index: u64) -> Result<()> {
        let mut numbers = Seeded::new(self.seed, &[FILES, number, index]);
        let grain = [Grain::Text, Grain::Records, Grain::Noise][index as usize % 3];
        let most = self.day_bytes.max(4096);
        let length = numbers.log_normal(most as f64 / 4.0, 1.5).clamp(1, most);
        let mut content = Vec::new();
        self.contents
            .append(&mut content, numbers.next(), grain, 0, length);
        let path = staged.join(format!("file-{index}"));
        fs::write(&path, content)?;
        image.write(&path, &file_name(number, index))
    }
}

fn file_name(day: u64, index: u64) -> String {
    format!("/srv/user/{day:04}-{index}")
}

/// Lists a tree as one that is there.
fn list(path: &Path, inside: &str, there: &mut HashMap<String, bool>) -> Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = format!("{inside}/{}", entry.file_name().to_string_lossy());
        let is_directory = entry.file_type()?.is_dir();
        if is_directory {
            list(&entry.path(), &name, there)?;
        }
        there.insert(name, is_directory);
    }
    Ok(())
}
