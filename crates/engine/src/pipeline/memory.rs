//! Where the memory of a backup goes: one total, shared out.
//!
//! | share | of the total | what it bounds |
//! |---|--:|---|
//! | `read_bytes` | 1/4 | files on their way from the disk to the thread that decides |
//! | `group_bytes` | 1/4 | groups that are compressed or wait for it, plain and compressed |
//! | `put_bytes` | 1/8 | sealed containers on their way to the store |
//! | `index_bytes` | 1/8 | blocks and filters of the index |
//! | `locality_bytes` | 1/8 | metadata of containers near those that held the last chunks |
//! | `container_bytes` | 1/16 | metadata of other containers that were read |
//! | `tree_bytes` | 1/16 | pages of the parents' trees and recipes |
//!
//! A thing that is larger than a share goes through alone. Beside the total stand one open group
//! and two open containers, the working memory of each compressor, and entries of the snapshot's
//! tree that wait for their chunks to be placed.

/// The shares of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryShares {
    /// Files being read, and segments that wait to be looked up.
    pub read_bytes: usize,
    /// Groups being compressed.
    pub group_bytes: usize,
    /// Containers being put.
    pub put_bytes: usize,
    /// The index's blocks and filters.
    pub index_bytes: usize,
    /// Containers' metadata kept for the chunks that follow.
    pub locality_bytes: usize,
    /// Other containers' metadata.
    pub container_bytes: usize,
    /// Pages of the parents.
    pub tree_bytes: usize,
}

impl MemoryShares {
    /// Shares out `total` bytes.
    #[must_use]
    pub fn of(total: usize) -> Self {
        let eighth = total / 8;
        Self {
            read_bytes: 2 * eighth,
            group_bytes: 2 * eighth,
            put_bytes: eighth,
            index_bytes: eighth,
            locality_bytes: eighth,
            container_bytes: eighth / 2,
            tree_bytes: eighth / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_make_the_total() {
        for total in [32 << 20, 64 << 20, 256 << 20, 12_345_678] {
            let shares = MemoryShares::of(total);
            let sum = shares.read_bytes
                + shares.group_bytes
                + shares.put_bytes
                + shares.index_bytes
                + shares.locality_bytes
                + shares.container_bytes
                + shares.tree_bytes;
            assert!(sum <= total && total - sum < 16);
        }
    }
}
