//! Which container takes a chunk: the three schemes of MACS as rules about lengths.
//!
//! Enters: lengths of chunks that are stored, one after another. Leaves: the number of the container
//! of each, and what every container holds. Contents don't matter here; `container_bytes` makes bytes
//! of it. Invariant: what a container holds, with its metadata region, is at most [`CONTAINER_BYTES`].
//!
//! - *Baseline* (§II-B): a fixed metadata region, Eq. 1 with ε = 0: 28 bytes for each of
//!   [`CONTAINER_BYTES`] / expected chunk size entries. A container is full when the next chunk's entry
//!   or data does not fit.
//! - *SACS* (§III-A): chunks shorter than 1 KiB go to containers of their own, whose metadata is a hash
//!   table of 2^k entries (Eq. 2). k begins as in the baseline, rounded up (Eq. 1), and grows by one when
//!   the table is full and, with the next chunk, a table of twice the size still fits: the paper says
//!   "while the data region remains much available space". The others are as in the baseline.
//! - *MACS* (§III-B): Eq. 4, with a tag of 32 bytes.
//!
//! Where the paper is silent: a container stays open from backup to backup until it is full, unless
//! [`Layout::close`] is called.

use clap::ValueEnum;

/// S_c of the paper.
pub const CONTAINER_BYTES: u32 = 4 << 20;
/// L_entry: fingerprint, offset, length.
pub const ENTRY_BYTES: u32 = 28;
/// L_flag.
pub const TAG_BYTES: u32 = 32;
/// What says how large a hash table is: ours, the paper has nothing for it.
pub const TABLE_HEAD_BYTES: u32 = 4;
/// Shorter chunks are small (§IV-B).
pub const SMALL_BYTES: u32 = 1 << 10;

/// A container scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scheme {
    /// A metadata region of fixed length
    Baseline,
    /// Two kinds of containers, one of them for small chunks
    Sacs,
    /// The boundary between metadata and data is decided by what arrives
    Macs,
}

impl Scheme {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Sacs, Self::Macs];

    /// The paper's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Sacs => "SACS",
            Self::Macs => "MACS",
        }
    }
}

/// The metadata region of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// Room for so many entries.
    Fixed {
        /// How many.
        entries: u32,
    },
    /// A hash table of 2^k entries behind a head that says k.
    Table {
        /// k.
        log2_entries: u32,
    },
    /// As many entries as there are, behind a tag that says how many bytes they take.
    Adaptive,
}

/// What a container holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container {
    /// Its metadata region.
    pub region: Region,
    /// Chunks.
    pub chunks: u32,
    /// Bytes of them.
    pub data_bytes: u32,
    /// It takes no more once so many chunks were stored in all containers.
    pub sealed_at: u64,
}

impl Container {
    fn new(region: Region) -> Self {
        Self {
            region,
            chunks: 0,
            data_bytes: 0,
            sealed_at: u64::MAX,
        }
    }

    /// Bytes of the metadata region, used or not.
    pub fn region_bytes(&self) -> u32 {
        match self.region {
            Region::Fixed { entries } => ENTRY_BYTES * entries,
            Region::Table { log2_entries } => TABLE_HEAD_BYTES + (ENTRY_BYTES << log2_entries),
            Region::Adaptive => TAG_BYTES + ENTRY_BYTES * self.chunks,
        }
    }

    /// Bytes that say something: chunks, their entries, tag or head.
    pub fn filled_bytes(&self) -> u32 {
        let head = match self.region {
            Region::Fixed { .. } => 0,
            Region::Table { .. } => TABLE_HEAD_BYTES,
            Region::Adaptive => TAG_BYTES,
        };
        head + ENTRY_BYTES * self.chunks + self.data_bytes
    }

    /// The region with which one more chunk fits, if it does.
    fn region_for(&self, bytes: u32) -> Option<Region> {
        let data = u64::from(self.data_bytes) + u64::from(bytes);
        let fits = |region_bytes: u64| data + region_bytes <= u64::from(CONTAINER_BYTES);
        let own = u64::from(self.region_bytes());
        match self.region {
            Region::Fixed { entries } => {
                (self.chunks < entries && fits(own)).then_some(self.region)
            }
            Region::Table { log2_entries } => {
                if self.chunks >> log2_entries == 0 {
                    return fits(own).then_some(self.region);
                }
                let grown = Region::Table {
                    log2_entries: log2_entries + 1,
                };
                let table = u64::from(ENTRY_BYTES) << (log2_entries + 1);
                fits(u64::from(TABLE_HEAD_BYTES) + table).then_some(grown)
            }
            Region::Adaptive => fits(own + u64::from(ENTRY_BYTES)).then_some(self.region),
        }
    }
}

/// How many entries a fixed region has for chunks of an expected size: N_chunk of Eq. 1.
pub fn entries_of(expected_bytes: u32) -> u32 {
    CONTAINER_BYTES / expected_bytes
}

/// Containers in the making and those that are full.
#[derive(Debug, Clone)]
pub struct Layout {
    scheme: Scheme,
    entries: u32,
    /// The open container for chunks that are not small, or all; that for small ones.
    open: [Option<u32>; 2],
    containers: Vec<Container>,
    placed: u64,
}

impl Layout {
    /// No container yet; fixed regions have room for so many entries.
    pub fn new(scheme: Scheme, entries: u32) -> Self {
        Self {
            scheme,
            entries,
            open: [None; 2],
            containers: Vec::new(),
            placed: 0,
        }
    }

    /// Stores a chunk of that length; returns the number of its container.
    ///
    /// # Panics
    /// When it is longer than an empty container has room for.
    pub fn place(&mut self, bytes: u32) -> u32 {
        let is_small = self.scheme == Scheme::Sacs && bytes < SMALL_BYTES;
        let which = usize::from(is_small);
        if let Some(number) = self.open[which] {
            let container = &mut self.containers[number as usize];
            if let Some(region) = container.region_for(bytes) {
                container.region = region;
                return self.put(number, bytes);
            }
            container.sealed_at = self.placed;
        }
        let container = Container::new(self.first_region(is_small));
        assert!(
            container.region_for(bytes).is_some(),
            "a chunk of {bytes} bytes fits into an empty container"
        );
        let number = self.containers.len() as u32;
        self.containers.push(container);
        self.open[which] = Some(number);
        self.put(number, bytes)
    }

    fn first_region(&self, is_small: bool) -> Region {
        match self.scheme {
            Scheme::Macs => Region::Adaptive,
            Scheme::Sacs if is_small => Region::Table {
                log2_entries: self.entries.next_power_of_two().ilog2(),
            },
            _ => Region::Fixed {
                entries: self.entries,
            },
        }
    }

    fn put(&mut self, number: u32, bytes: u32) -> u32 {
        let container = &mut self.containers[number as usize];
        container.chunks += 1;
        container.data_bytes += bytes;
        self.placed += 1;
        number
    }

    /// Closes what is open.
    pub fn close(&mut self) {
        for number in self.open.iter_mut().filter_map(Option::take) {
            self.containers[number as usize].sealed_at = self.placed;
        }
    }

    /// Whether a container takes more.
    pub fn is_open(&self, number: u32) -> bool {
        self.open.contains(&Some(number))
    }

    /// All containers, by their numbers.
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// Chunks stored in all of them.
    pub fn placed(&self) -> u64 {
        self.placed
    }

    /// What the containers are filled with, of 100 of what they take on disk: chunks and metadata.
    pub fn filling_percent(&self) -> f64 {
        self.percent(Container::filled_bytes)
    }

    /// The same, chunks alone.
    pub fn data_percent(&self) -> f64 {
        self.percent(|container| container.data_bytes)
    }

    fn percent(&self, bytes: impl Fn(&Container) -> u32) -> f64 {
        let sum: u64 = self
            .containers
            .iter()
            .map(|container| u64::from(bytes(container)))
            .sum();
        let all = u64::from(CONTAINER_BYTES) * self.containers.len() as u64;
        100.0 * sum as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores chunks of one length until a second container is opened; returns the first.
    fn first_full(scheme: Scheme, expected: u32, bytes: u32) -> Container {
        let mut layout = Layout::new(scheme, entries_of(expected));
        while layout.place(bytes) == 0 {}
        layout.containers()[0]
    }

    #[test]
    fn a_fixed_region_is_full_before_the_data_is() {
        let container = first_full(Scheme::Baseline, 4096, 2048);
        assert_eq!((container.chunks, container.region_bytes()), (1024, 28_672));
        assert_eq!(container.sealed_at, 1024);
        // Larger chunks than expected: the data region is full first.
        let container = first_full(Scheme::Baseline, 4096, 8192);
        assert_eq!(container.chunks, (CONTAINER_BYTES - 28_672) / 8192);
    }

    /// Eq. 3: 1 KB chunks need 112 KB for 4096 entries.
    #[test]
    fn tables_grow_by_two_while_they_fit() {
        let container = first_full(Scheme::Sacs, 4096, 1023);
        assert_eq!(container.region, Region::Table { log2_entries: 12 });
        assert_eq!(container.region_bytes() - TABLE_HEAD_BYTES, 112 << 10);
        assert!(container.filled_bytes() > CONTAINER_BYTES - 8192);
        // 28 · 2^17 is the largest table that leaves room for chunks of a byte each.
        let container = first_full(Scheme::Sacs, 16_384, 1);
        assert_eq!(container.region, Region::Table { log2_entries: 17 });
        assert_eq!(container.chunks, 1 << 17);
        // What is not small goes elsewhere.
        let mut layout = Layout::new(Scheme::Sacs, 256);
        assert_eq!(
            [1023, 1024, 5, 4096].map(|bytes| layout.place(bytes)),
            [0, 1, 0, 1]
        );
        layout.close();
        assert_eq!(layout.place(1), 2);
        assert!(layout.is_open(2) && !layout.is_open(0));
        assert_eq!(layout.containers()[1].sealed_at, 4);
    }

    #[test]
    fn the_boundary_of_macs_moves() {
        for bytes in [1, 100, 4096, 100_000] {
            let container = first_full(Scheme::Macs, 4096, bytes);
            let each = ENTRY_BYTES + bytes;
            assert_eq!(container.chunks, (CONTAINER_BYTES - TAG_BYTES) / each);
            assert_eq!(
                container.filled_bytes(),
                container.region_bytes() + container.data_bytes
            );
        }
        let mut layout = Layout::new(Scheme::Macs, 0);
        layout.place(CONTAINER_BYTES - TAG_BYTES - ENTRY_BYTES);
        assert_eq!(layout.filling_percent(), 100.0);
        assert_eq!(layout.place(1), 1);
    }
}
