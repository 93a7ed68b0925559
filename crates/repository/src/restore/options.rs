//! What a restore is asked to do, and what it did.

/// What happens where a file stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// It stays, and the file is reported as not restored.
    #[default]
    Never,
    /// It is replaced.
    Always,
}

/// How a restore is to be done.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// Only paths that match one of these, if there are any.
    pub include: Vec<String>,
    /// No paths that match one of these.
    pub exclude: Vec<String>,
    /// What to do about files in the way.
    pub overwrite: Overwrite,
    /// Use numeric owner and group ids even where the names are known.
    pub numeric_ids: bool,
    /// Say what would be restored, and write nothing.
    pub dry_run: bool,
}

/// What a restore did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Files restored whole.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symlinks, hard links, devices, FIFOs.
    pub others: u64,
    /// Bytes of restored files.
    pub bytes: u64,
    /// Files and other entries that could not be restored.
    pub failed: u64,
    /// Entries restored without some of their metadata.
    pub incomplete_metadata: u64,
    /// Container reads: the speed factor is MiB restored over this.
    pub containers_read: u64,
    /// Containers that were needed: as many as read when the plan of all fits the memory.
    pub containers: u64,
}
