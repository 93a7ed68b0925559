//! What a volume did, in blocks of 4 KiB.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a volume did in its life; blocks are of 4 KiB.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Names of all, in stored order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// All values, in stored order.
            #[must_use]
            pub fn values(&self) -> [u64; COUNTERS] {
                [$(self.$name),*]
            }

            /// From their values.
            #[must_use]
            pub fn from_values(values: [u64; COUNTERS]) -> Self {
                let [$($name),*] = values;
                Self { $($name),* }
            }
        }
    };
}

/// How many counters there are.
pub const COUNTERS: usize = 14;

counters! {
    /// Blocks that clients wrote, zeros included.
    user_blocks_written,
    /// Blocks that clients trimmed or made zero.
    user_blocks_unmapped,
    /// Blocks whose bytes went to the backing store, those of `compressed_blocks_written` included.
    data_blocks_written,
    /// Blocks with data and metadata of a window in them.
    compressed_blocks_written,
    /// Blocks with nothing but metadata of a window.
    window_metadata_blocks_written,
    /// Pages of tables, their directories and lists of generations.
    page_blocks_written,
    /// Superblocks.
    superblocks_written,
    /// Syncs of the backing store.
    syncs,
    /// Windows.
    windows,
    /// Commits of the tables.
    commits,
    /// Blocks that were there already: any duplicate.
    duplicate_hits,
    /// Blocks that were in the journal already (WOJ).
    journal_hits,
    /// Blocks of the journal that were written.
    journal_blocks_written,
    /// Blocks moved by compaction.
    blocks_moved,
}

impl Counters {
    /// Everything written to the backing store, in blocks.
    #[must_use]
    pub fn blocks_written(&self) -> u64 {
        self.data_blocks_written + self.metadata_blocks_written()
    }

    /// What was written and is no data, in blocks.
    #[must_use]
    pub fn metadata_blocks_written(&self) -> u64 {
        self.window_metadata_blocks_written + self.page_blocks_written + self.superblocks_written
    }

    /// The difference to what was counted earlier.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        let (mut values, before) = (self.values(), earlier.values());
        for (value, before) in values.iter_mut().zip(before) {
            *value -= before;
        }
        Counters::from_values(values)
    }
}

/// How full a volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Blocks of the disk that hold something.
    pub mapped_blocks: u64,
    /// Blocks of the disk.
    pub logical_blocks: u64,
    /// Blocks of the backing store.
    pub physical_blocks: u64,
    /// Blocks that hold data, those that wait for a commit to be free included.
    pub data_blocks: u64,
    /// Blocks that hold pages of tables.
    pub page_blocks: u64,
    /// Zones that hold nothing.
    pub free_zones: u64,
    /// Zones of blocks as they are (U-zones).
    pub data_zones: u64,
    /// Zones of compressed blocks (C-zones).
    pub compressed_zones: u64,
    /// Those of them that may hold what is not committed.
    pub uncommitted_zones: u64,
    /// Zones of pages.
    pub page_zones: u64,
    /// Bytes of memory that tables, zones and the pool take.
    pub memory_bytes: u64,
    /// Blocks of the journal in the pool of WOJ.
    pub pool_entries: u64,
}
