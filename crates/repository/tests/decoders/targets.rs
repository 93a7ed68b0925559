//! Every decoder of bytes that the repository stores, each with samples that it takes and a
//! check that must hold for any bytes: no panic, and what it takes means the same when it is
//! encoded and decoded again.
//!
//! Two callers: the short runs of `tests/decoders.rs`, and the fuzz targets (`fuzz/`), which
//! include this file by its path. Checksums and seals are put right by the checks, so that
//! hostile bytes reach the decoders behind them.

pub mod archives;
pub mod keys_and_config;
pub mod pages;
pub mod snapshots;

use engine::container::{ContainerId, Slot};
use engine::object::ObjectId;
use engine::recipe::{Recipe, RecipePage, Run};
use repository::keys::Secrets;
use testkit::mutate::Target;
use zeroize::Zeroizing;

/// All targets of this crate.
pub const TARGETS: &[Target] = &[
    Target {
        name: "archive",
        check: archives::archive,
        samples: archives::archive_samples,
        rounds: 10_000,
    },
    Target {
        name: "directory_page",
        check: pages::page,
        samples: pages::page_samples,
        rounds: 10_000,
    },
    Target {
        name: "snapshot",
        check: snapshots::snapshot,
        samples: snapshots::snapshot_samples,
        rounds: 10_000,
    },
    Target {
        name: "config",
        check: keys_and_config::config,
        samples: keys_and_config::config_samples,
        rounds: 20_000,
    },
    Target {
        name: "key_slot",
        check: keys_and_config::key_slot,
        samples: keys_and_config::key_slot_samples,
        rounds: 20_000,
    },
    Target {
        name: "epoch",
        check: keys_and_config::epoch,
        samples: keys_and_config::epoch_samples,
        rounds: 20_000,
    },
];

/// The repository that everything here belongs to.
const REPOSITORY: ObjectId = ObjectId([1; 16]);

/// Its authority secret, which authenticates the configuration.
const AUTHORITY: [u8; 32] = [3; 32];

fn secrets() -> Secrets {
    let secret = |byte| Zeroizing::new([byte; 32]);
    Secrets::from_parts(secret(1), secret(2), Zeroizing::new(AUTHORITY), secret(4))
}

fn slots(container: u8, count: u32, bytes: u64) -> Run {
    Run::Slots {
        container: ContainerId(ObjectId([container; 16])),
        first: Slot(7),
        count,
        bytes,
    }
}

/// A recipe so long that it is paged.
fn paged_recipe() -> Recipe {
    let page = |stream_bytes, container| RecipePage {
        stream_bytes,
        page: vec![slots(container, 1, 9000)],
    };
    Recipe::Paged {
        level: 1,
        pages: vec![page(1 << 40, 1), page(1 << 20, 2)],
    }
}
