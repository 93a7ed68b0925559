//! Where one contestant's repository, its own files and the tree lie during one run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A directory for one run of one contestant.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
}

impl Place {
    /// An empty place of that name below `scratch`.
    ///
    /// # Errors
    /// When the directories can't be made.
    pub fn make(scratch: &Path, name: &str) -> Result<Self> {
        let root = scratch.join(name);
        let place = Self { root };
        for directory in [place.state(), place.target()] {
            fs::create_dir_all(directory)?;
        }
        Ok(place)
    }

    /// The directory that is backed up.
    pub fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    /// The repository.
    pub fn repository(&self) -> PathBuf {
        self.root.join("repository")
    }

    /// The home directory and all else that the tool keeps.
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Where the tree is restored to.
    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// What the tool printed last.
    pub fn log(&self) -> PathBuf {
        self.root.join("output.log")
    }

    /// Where in `target` the tree is: tools restore whole paths, or the contents alone.
    pub fn restored_tree(&self) -> PathBuf {
        let (tree, target) = (self.tree(), self.target());
        let below = tree.strip_prefix("/").unwrap_or(&tree);
        match target.join(below) {
            whole_path if whole_path.is_dir() => whole_path,
            _ => target,
        }
    }

    /// Removes everything.
    ///
    /// # Errors
    /// When that fails.
    pub fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.root)
            .with_context(|| format!("cannot remove {}", self.root.display()))
    }
}
