//! Every decoder of bytes that the engine stores, each with samples that it takes and a check
//! that must hold for any bytes: no panic, and what it takes means the same when it is encoded
//! and decoded again.
//!
//! Two callers: the short runs of `tests/decoders.rs`, and the fuzz targets (`fuzz/`), which
//! include this file by its path.
//!
//! Most stored bytes are sealed, so that damage never reaches a decoder. The checks seal the
//! hostile bytes themselves: they play a client that holds the secrets and means harm, or has
//! a bug.

pub mod containers;
pub mod deltas;
pub mod documents;
pub mod index_runs;
pub mod recipes;
pub mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::container::{ContainerReader, RemapSet};
use engine::fingerprint::Fingerprinter;
use engine::format::Vault;
use engine::object::{MemoryStore, ObjectId};
use testkit::mutate::Target;
use zeroize::Zeroizing;

/// All targets of this crate.
pub const TARGETS: &[Target] = &[
    Target {
        name: "integers",
        check: values::integers,
        samples: values::integer_samples,
        rounds: 20_000,
    },
    Target {
        name: "field_list",
        check: values::field_list,
        samples: values::field_list_samples,
        rounds: 20_000,
    },
    Target {
        name: "container_metadata",
        check: containers::metadata,
        samples: containers::metadata_samples,
        rounds: 20_000,
    },
    Target {
        name: "container_group",
        check: containers::group,
        samples: containers::group_samples,
        rounds: 5_000,
    },
    Target {
        name: "container_sealed",
        check: containers::sealed,
        samples: containers::sealed_samples,
        rounds: 5_000,
    },
    Target {
        name: "container_object",
        check: containers::object,
        samples: containers::object_samples,
        rounds: 5_000,
    },
    Target {
        name: "remap",
        check: containers::remap,
        samples: containers::remap_samples,
        rounds: 20_000,
    },
    Target {
        name: "recipe",
        check: recipes::recipe,
        samples: recipes::recipe_samples,
        rounds: 20_000,
    },
    Target {
        name: "recipe_page",
        check: recipes::page,
        samples: recipes::recipe_samples,
        rounds: 10_000,
    },
    Target {
        name: "document_plaintext",
        check: documents::plaintext,
        samples: documents::plaintext_samples,
        rounds: 10_000,
    },
    Target {
        name: "document_object",
        check: documents::object,
        samples: documents::object_samples,
        rounds: 10_000,
    },
    Target {
        name: "index_parts",
        check: index_runs::parts,
        samples: index_runs::parts_samples,
        rounds: 3_000,
    },
    Target {
        name: "index_object",
        check: index_runs::object,
        samples: index_runs::object_samples,
        rounds: 1_000,
    },
    Target {
        name: "delta_instructions",
        check: deltas::instructions,
        samples: deltas::instruction_samples,
        rounds: 10_000,
    },
    Target {
        name: "delta_prefix",
        check: deltas::prefix,
        samples: deltas::prefix_samples,
        rounds: 3_000,
    },
];

/// The vault of all targets.
fn vault() -> Arc<Vault> {
    let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
    Arc::new(Vault::new(ObjectId([1; 16]), secrets, false))
}

fn fingerprinter() -> Arc<Fingerprinter> {
    Arc::new(Fingerprinter::new(&[9; 32]))
}

/// A reader of the containers in `store`.
fn container_reader(store: Arc<MemoryStore>) -> ContainerReader {
    let cache_bytes = 1 << 20;
    ContainerReader::new(
        store,
        vault(),
        fingerprinter(),
        RemapSet::default(),
        cache_bytes,
    )
}
