//! What a power failure, or a failed sync, leaves of bytes and names that were not synced.
//!
//! Deliberately harsher than any one file system: what POSIX does not promise is lost for some
//! seed. In the manner of FoundationDB's `AsyncFileNonDurable` and of the application crash
//! states of Pillai et al. ("All file systems are not created equal", OSDI 2014).
//!
//! * Names: of the unsynced changes in a directory none, all, or any subset survives; the
//!   later without the earlier, and in every directory on its own.
//! * Bytes: of an unsynced file none, all, a part from the front, or any set of sectors
//!   survives, the others being what was there before, zeros, or what the medium held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::nodes::{DirectoryNode, FileNode, Node, NodeId, ROOT, Tree};
use crate::random::Random;

/// The unit that disks write whole.
const SECTOR_BYTES: usize = 512;
/// The unit that page caches write back.
const PAGE_BYTES: usize = 4096;

/// The tree as the next start of the machine finds it: everything in it is durable.
pub(super) fn after_power_loss(tree: &Tree, random: &mut Random) -> Tree {
    let mut tree = tree.clone();
    for node in tree.nodes.values_mut() {
        match node {
            Node::File(file) => {
                if file.dirty {
                    file.durable = surviving_bytes(file, random);
                }
                file.current = Arc::clone(&file.durable);
                file.dirty = false;
            }
            Node::Directory(directory) => {
                directory.durable = surviving_names(directory, random);
                directory.current = directory.durable.clone();
                directory.pending.clear();
            }
        }
    }
    drop_nameless(&mut tree);
    tree
}

/// The names in a directory if its unsynced changes are written by chance.
pub(super) fn surviving_names(
    directory: &DirectoryNode,
    random: &mut Random,
) -> BTreeMap<String, NodeId> {
    let mut names = directory.durable.clone();
    let fate = random.below(4);
    for change in &directory.pending {
        let survives = match fate {
            0 => false,
            1 => true,
            _ => random.coin(),
        };
        if survives {
            change.apply(&mut names);
        }
    }
    names
}

/// The content of a file if its unsynced bytes are written by chance.
pub(super) fn surviving_bytes(file: &FileNode, random: &mut Random) -> Arc<[u8]> {
    match random.below(4) {
        0 => Arc::clone(&file.durable),
        1 => Arc::clone(&file.current),
        2 => {
            let sectors = file.current.len() / SECTOR_BYTES;
            let length = SECTOR_BYTES * random.index(sectors + 1);
            Arc::from(&file.current[..length])
        }
        _ => surviving_sectors(file, random),
    }
}

fn surviving_sectors(file: &FileNode, random: &mut Random) -> Arc<[u8]> {
    let unit = if random.coin() {
        SECTOR_BYTES
    } else {
        PAGE_BYTES
    };
    let medium_held_zeros = random.coin();
    let mut bytes = file.current.to_vec();
    for (number, sector) in bytes.chunks_mut(unit).enumerate() {
        if random.coin() {
            continue;
        }
        if medium_held_zeros {
            sector.fill(0);
        } else {
            random.fill(sector);
        }
        let before = file.durable.get(number * unit..).unwrap_or_default();
        let known = before.len().min(sector.len());
        sector[..known].copy_from_slice(&before[..known]);
    }
    Arc::from(bytes)
}

fn drop_nameless(tree: &mut Tree) {
    let mut named = BTreeSet::from([ROOT]);
    let mut unvisited = vec![ROOT];
    while let Some(number) = unvisited.pop() {
        if let Node::Directory(directory) = &tree.nodes[&number] {
            let new = directory
                .current
                .values()
                .filter(|node| named.insert(**node));
            unvisited.extend(new);
        }
    }
    tree.nodes.retain(|number, _| named.contains(number));
}
