//! Where the memory of a backup goes: one total, shared out.
//!
//! First the index has its own share, as set: by default 64 MiB, and not more than a quarter of the
//! total. Where similar chunks are stored as deltas, their super-features have at most an eighth of the
//! total (the table grows as it fills), new chunks that are kept as bases a sixteenth, groups that
//! bases were read from another. The others have parts of the rest:
//!
//! | share | of the rest | what it bounds |
//! |---|--:|---|
//! | `read_bytes` | 2/7 | files on their way from the disk to the thread that decides |
//! | `group_bytes` | 2/7 | groups that are compressed or wait for it, plain and compressed |
//! | `put_bytes` | 1/7 | sealed containers on their way to the store |
//! | `locality_bytes` | 1/7 | metadata of containers near those that held the last chunks |
//! | `container_bytes` | 1/14 | metadata of other containers that were read |
//! | `tree_bytes` | 1/14 | pages of the parents' trees and recipes |
//!
//! Chunks of which deltas are made have a third of `group_bytes`.
//!
//! Where duplicates are stored again, chunks that wait for that to be decided take `window_bytes` of
//! what would be `read_bytes`: as much as the window wants, at most two thirds.
//!
//! Metadata that waits to be looked at for bases of deltas may take a quarter of `locality_bytes` more.
//!
//! A thing that is larger than a share goes through alone. Beside the total stand one open group
//! and two open containers, the working memory of each compressor, a group's length for each thread that
//! opens groups of bases, and entries of the snapshot's tree that wait for their chunks to be placed.

/// The shares of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryShares {
    /// Files being read, and segments that wait to be looked up.
    pub read_bytes: usize,
    /// Groups being compressed.
    pub group_bytes: usize,
    /// Containers being put.
    pub put_bytes: usize,
    /// The index: its runs, recent chunks, the list of containers.
    pub index_bytes: usize,
    /// Containers' metadata kept for the chunks that follow.
    pub locality_bytes: usize,
    /// Other containers' metadata.
    pub container_bytes: usize,
    /// Pages of the parents.
    pub tree_bytes: usize,
    /// Chunks of which it is not decided yet whether they are stored again.
    pub window_bytes: usize,
    /// Super-features.
    pub feature_bytes: usize,
    /// New chunks kept as bases.
    pub recent_bytes: usize,
    /// Groups that bases are read from.
    pub base_bytes: usize,
    /// Chunks of which deltas are made.
    pub delta_bytes: usize,
}

/// The share of the index where none is set, in a total that is large enough.
pub const INDEX_BYTES_DEFAULT: usize = 64 << 20;

impl MemoryShares {
    /// Shares out `total` bytes, of which the index has `index_bytes` if that is given.
    #[must_use]
    pub fn of(total: usize, index_bytes: Option<usize>) -> Self {
        let index_bytes = index_bytes
            .unwrap_or(INDEX_BYTES_DEFAULT.min(total / 4))
            .min(total);
        let seventh = (total - index_bytes) / 7;
        Self {
            read_bytes: 2 * seventh,
            group_bytes: 2 * seventh,
            put_bytes: seventh,
            index_bytes,
            locality_bytes: seventh,
            container_bytes: seventh / 2,
            tree_bytes: seventh / 2,
            window_bytes: 0,
            feature_bytes: 0,
            recent_bytes: 0,
            base_bytes: 0,
            delta_bytes: 0,
        }
    }

    /// The same total, with shares for deltas.
    #[must_use]
    pub fn of_deltas(total: usize, index_bytes: Option<usize>) -> Self {
        let sixteenth = total / 16;
        let index_bytes = Self::of(total, index_bytes)
            .index_bytes
            .min(total - 4 * sixteenth);
        let shares = Self::of(total - 4 * sixteenth, Some(index_bytes));
        let delta_bytes = shares.group_bytes / 3;
        Self {
            group_bytes: shares.group_bytes - delta_bytes,
            feature_bytes: 2 * sixteenth,
            recent_bytes: sixteenth,
            base_bytes: sixteenth,
            delta_bytes,
            ..shares
        }
    }

    /// Makes room for a window of `wanted_bytes`, or less.
    #[must_use]
    pub fn with_window(mut self, wanted_bytes: u64) -> Self {
        let both = self.read_bytes + self.window_bytes;
        let most = both / 3 * 2;
        self.window_bytes = usize::try_from(wanted_bytes).map_or(most, |wanted| wanted.min(most));
        self.read_bytes = both - self.window_bytes;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_takes_of_what_is_read() {
        let shares = MemoryShares::of(256 << 20, None);
        assert_eq!(shares.with_window(0), shares);
        let some = shares.with_window(32 << 20);
        assert_eq!(some.window_bytes, 32 << 20);
        assert_eq!(some.read_bytes, shares.read_bytes - (32 << 20));
        let much = shares.with_window(u64::MAX);
        assert_eq!(much.window_bytes + much.read_bytes, shares.read_bytes);
        assert!(much.read_bytes >= shares.read_bytes / 3);
    }

    fn sum_of(shares: MemoryShares) -> usize {
        shares.read_bytes
            + shares.group_bytes
            + shares.put_bytes
            + shares.index_bytes
            + shares.locality_bytes
            + shares.container_bytes
            + shares.tree_bytes
            + shares.feature_bytes
            + shares.recent_bytes
            + shares.base_bytes
            + shares.delta_bytes
    }

    #[test]
    fn shares_make_the_total() {
        for total in [32 << 20, 64 << 20, 256 << 20, 12_345_678] {
            for index_bytes in [None, Some(5 << 20)] {
                let plain = MemoryShares::of(total, index_bytes).index_bytes;
                let shares = MemoryShares::of_deltas(total, index_bytes);
                assert_eq!(shares.index_bytes, plain);
                assert!(shares.feature_bytes > 0 && shares.delta_bytes > 0);
                assert!(total - sum_of(shares) < 32);
            }
            for index_bytes in [None, Some(5 << 20), Some(total)] {
                let shares = MemoryShares::of(total, index_bytes);
                assert_eq!(shares.delta_bytes, 0);
                let sum = sum_of(shares);
                assert!(sum <= total && total - sum < 16);
                assert_eq!(
                    index_bytes.unwrap_or(shares.index_bytes),
                    shares.index_bytes
                );
            }
        }
    }

    #[test]
    fn the_index_has_64_mib_or_a_quarter() {
        let index_of = |total| MemoryShares::of(total, None).index_bytes;
        assert_eq!(index_of(32 << 20), 8 << 20);
        assert_eq!(index_of(256 << 20), 64 << 20);
        assert_eq!(index_of(1 << 30), 64 << 20);
    }
}
