//! What a volume is made with, and how it is opened.

use crate::address::{BLOCK_BYTES, PHYSICAL_BLOCKS_MAX};
use crate::error::VolumeError;
use crate::fingerprint::FingerprintKind;
use crate::journal::JournalSetting;

/// Which duplicates are stored once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Policy {
    /// None.
    None = 0,
    /// All that are found, when they are written (Ni, ch. 5).
    #[default]
    Full = 1,
    /// A block written home that is in a file system's journal already: WOJ (Ni, ch. 4).
    Journal = 2,
    /// Both.
    FullAndJournal = 3,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [Self::None, Self::Full, Self::Journal, Self::FullAndJournal];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Journal => "journal",
            Self::FullAndJournal => "full+journal",
        }
    }

    /// The policy of that stored number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| *policy as u8 == number)
    }

    /// Whether all blocks are looked up.
    #[must_use]
    pub fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::FullAndJournal)
    }

    /// Whether blocks of a journal are looked up.
    #[must_use]
    pub fn has_journal(self) -> bool {
        matches!(self, Self::Journal | Self::FullAndJournal)
    }
}

/// How the mapping is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Persistence {
    /// Inside compressed blocks of the window, without an order between data and metadata: ThinDedup
    /// (Ni, §5.2).
    #[default]
    Thin = 1,
    /// Data, flush, then pages of the mapping in place, flush: OrderedWrites (Ni, §5.3.1).
    Ordered = 2,
    /// With every window, pages of the mapping and those above them in new places, as Dmdedup does
    /// (Ni, §5.3.1).
    Cow = 3,
    /// Not at all: Ideal (Ni, §5.3.1). Everything is lost when the volume is closed.
    Ram = 4,
}

impl Persistence {
    /// All of them.
    pub const ALL: [Persistence; 4] = [Self::Thin, Self::Ordered, Self::Cow, Self::Ram];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Thin => "thin",
            Self::Ordered => "ordered",
            Self::Cow => "cow",
            Self::Ram => "ram",
        }
    }

    /// The persistence of that stored number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// What a volume is made with; all of it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSettings {
    /// Bytes of the disk that clients see: a multiple of 4096.
    pub size_bytes: u64,
    /// The smallest unit that clients read and write: 512, 1024 or 4096.
    pub sector_bytes: u32,
    /// Which duplicates are stored once.
    pub policy: Policy,
    /// How the mapping is made durable.
    pub persistence: Persistence,
    /// How blocks are recognised.
    pub fingerprint: FingerprintKind,
    /// Blocks of a zone, 16 … 32,768 (Ni, §5.2.2: 4 MiB).
    pub zone_blocks: u32,
    /// Blocks that one window holds at most, 1 … 1024 (Ni, §5.2.1).
    pub window_blocks: u32,
    /// Zones of compressed blocks that fill up before their metadata is committed (Ni, §5.3.1: 2).
    pub commit_zones: u32,
    /// Where the journal of the file system lies: what [`crate::Policy::Journal`] needs.
    pub journal: String,
}

impl VolumeSettings {
    /// A disk of that size, everything else as it is best for most.
    #[must_use]
    pub fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            sector_bytes: 4096,
            policy: Policy::default(),
            persistence: Persistence::default(),
            fingerprint: FingerprintKind::default(),
            zone_blocks: 1024,
            window_blocks: 256,
            commit_zones: 2,
            journal: "auto".to_owned(),
        }
    }

    /// # Errors
    /// When the settings can't be.
    pub fn check(&self) -> Result<(), VolumeError> {
        let refuse = |what: String| Err(VolumeError::Settings(what));
        if self.size_bytes == 0 || !self.size_bytes.is_multiple_of(BLOCK_BYTES as u64) {
            return refuse(format!(
                "a disk of {} bytes: the size must be a multiple of {BLOCK_BYTES}, and not 0",
                self.size_bytes
            ));
        }
        if self.size_bytes / BLOCK_BYTES as u64 >= PHYSICAL_BLOCKS_MAX / 4 {
            return refuse(format!("a disk of {} bytes is too large", self.size_bytes));
        }
        if !matches!(self.sector_bytes, 512 | 1024 | 4096) {
            return refuse(format!(
                "sectors of {} bytes: 512, 1024 and 4096 are possible",
                self.sector_bytes
            ));
        }
        if !(16..=32_768).contains(&self.zone_blocks) {
            return refuse(format!(
                "zones of {} blocks: 16 to 32768 are possible",
                self.zone_blocks
            ));
        }
        if !(1..=1024).contains(&self.window_blocks) {
            return refuse(format!(
                "windows of {} blocks: 1 to 1024 are possible",
                self.window_blocks
            ));
        }
        if !(1..=32).contains(&self.commit_zones) {
            return refuse(format!(
                "{} zones before a commit: 1 to 32 are possible",
                self.commit_zones
            ));
        }
        let journal: JournalSetting = self
            .journal
            .parse()
            .map_err(|error| VolumeError::Settings(format!("where the journal is: {error}")))?;
        if let Err(error) = journal.ranges(self.size_bytes) {
            return refuse(format!("where the journal is: {error}"));
        }
        if self.journal.len() > crate::superblock::JOURNAL_BYTES_MAX {
            return refuse("the description of the journal is too long".to_owned());
        }
        Ok(())
    }

    /// Blocks of the disk that clients see.
    #[must_use]
    pub fn logical_blocks(&self) -> u64 {
        self.size_bytes / BLOCK_BYTES as u64
    }
}

/// How a volume is opened; nothing of it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Bytes of memory for pages of metadata.
    pub cache_bytes: u64,
    /// Whether nothing may be changed.
    pub read_only: bool,
    /// Whether a volume may be used whose contents are lost when it is closed.
    pub allow_volatile: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            read_only: false,
            allow_volatile: false,
        }
    }
}
