//! `layers`: successive images of one container, each as one tar, `v01.tar` ….
//!
//! Stands for the sets of Ni that are container images saved as tars. An image has the layout of
//! `docker save`: `manifest.json`, a configuration, and a directory for each layer with
//! `layer.tar`. Its layers are a base system (packages of Debian, unpacked; another base halfway),
//! a runtime (larger packages, always the same), the application (successive releases of libgit2
//! with their sources) and a small one with its settings. Layers are named by BLAKE3 where Docker
//! takes SHA-256, which nothing here depends on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::archive::Archive;
use super::debian::Packages;
use super::release::{Release, Share};
use super::site::Site;
use super::source_tars::releases_of;

/// 2024-01-01, and a month between images.
const FIRST_SECONDS: u64 = 1_704_067_200;
const STEP_SECONDS: u64 = 30 * 86_400;

/// A layer that is ready.
struct Layer {
    id: String,
    path: PathBuf,
}

/// Adds the images that are missing.
///
/// # Errors
/// When a program, a package or a release can't be had.
pub fn build(site: &mut Site) -> Result<()> {
    let versions = site.versions_asked();
    let bytes = site.bytes_asked() / versions as u64;
    let Some(releases) = releases_of("libgit2-sys").get(..versions) else {
        bail!("there are {} releases", releases_of("libgit2-sys").len());
    };
    let total: u64 = releases.iter().map(|release| release.bytes).sum();
    let share = Share::of(site.bytes_asked() / 4, total);
    let mut packages = Packages::default();
    let names = packages.fitting(site, bytes * 3 / 4)?;
    let (system, runtime) = names.split_at(names.len() * 2 / 3);
    let scratch = site.fresh("layers")?;
    for (number, release) in (1..).zip(releases) {
        if !site.lacks(number) {
            continue;
        }
        let seconds = FIRST_SECONDS + number as u64 * STEP_SECONDS;
        // The second base has one package less.
        let (base, is_second) = if number > versions / 2 {
            (&system[1..], 1)
        } else {
            (system, 0)
        };
        let layers = [
            package_layer(site, &mut packages, &scratch, base, is_second)?,
            package_layer(site, &mut packages, &scratch, runtime, 2)?,
            application(site, &scratch, release, share, seconds)?,
            settings(&scratch, release, seconds)?,
        ];
        let path = scratch.join("image");
        write_image(&path, &layers, release, seconds)?;
        let label = format!("libgit2 {}, base {}", release.upstream(), is_second + 1);
        site.add(number, &path, ".tar", &label)?;
    }
    Ok(())
}

/// Packages laid over each other, all of one time, since the layer is reused.
fn package_layer(
    site: &mut Site,
    packages: &mut Packages,
    scratch: &Path,
    names: &[&'static str],
    kind: u64,
) -> Result<Layer> {
    let path = scratch.join(format!("packages-{kind}"));
    if !path.exists() {
        let mut archive = Archive::create(&path, FIRST_SECONDS + kind * STEP_SECONDS)?;
        for name in names {
            let (tree, _) = packages.tree(site, name)?;
            archive.tree(&tree, "")?;
        }
        archive.finish()?;
    }
    Layer::of(path)
}

fn application(
    site: &mut Site,
    scratch: &Path,
    release: &Release,
    share: Share,
    seconds: u64,
) -> Result<Layer> {
    let tree = release.fetch(site, share, seconds)?;
    let path = scratch.join("application");
    let mut archive = Archive::create(&path, seconds)?;
    archive.directory("opt", 0o755)?;
    archive.directory("opt/application", 0o755)?;
    archive.tree(&tree, "opt/application")?;
    archive.finish()?;
    Layer::of(path)
}

fn settings(scratch: &Path, release: &Release, seconds: u64) -> Result<Layer> {
    let path = scratch.join("settings");
    let mut archive = Archive::create(&path, seconds)?;
    let text = format!("version = \"{}\"\nbuilt = {seconds}\n", release.upstream());
    archive.directory("etc", 0o755)?;
    let name = "etc/application.toml";
    archive.file(name, 0o644, text.len() as u64, text.as_bytes())?;
    archive.finish()?;
    Layer::of(path)
}

impl Layer {
    fn of(path: PathBuf) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(&path)?)?;
        let id = hasher.finalize().to_string();
        Ok(Self { id, path })
    }
}

fn write_image(path: &Path, layers: &[Layer], release: &Release, seconds: u64) -> Result<()> {
    let identities: Vec<_> = layers.iter().map(|layer| &layer.id).collect();
    let configuration = json!({
        "architecture": "amd64",
        "os": "linux",
        "created": seconds,
        "config": { "Cmd": ["/opt/application/run"], "Labels": { "version": release.upstream() } },
        "rootfs": { "type": "layers", "diff_ids": identities },
    });
    let configuration = serde_json::to_vec(&configuration)?;
    let name = format!("{}.json", blake3::hash(&configuration));
    let inside: Vec<_> = layers
        .iter()
        .map(|layer| format!("{}/layer.tar", layer.id))
        .collect();
    let manifest = json!([{
        "Config": name,
        "RepoTags": [format!("application:{}", release.upstream())],
        "Layers": inside,
    }]);
    let manifest = serde_json::to_vec(&manifest)?;
    let mut archive = Archive::create(path, seconds)?;
    for (layer, inside) in layers.iter().zip(&inside) {
        archive.directory(&layer.id, 0o755)?;
        let bytes = fs::metadata(&layer.path)?.len();
        let file = File::open(&layer.path).context("a layer is gone")?;
        archive.file(inside, 0o644, bytes, file)?;
    }
    archive.file(
        &name,
        0o644,
        configuration.len() as u64,
        configuration.as_slice(),
    )?;
    archive.file(
        "manifest.json",
        0o644,
        manifest.len() as u64,
        manifest.as_slice(),
    )?;
    archive.finish()?;
    Ok(())
}
