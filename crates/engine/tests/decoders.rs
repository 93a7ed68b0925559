//! A short attack on every decoder of stored bytes, the same in every run. Longer ones are for
//! the fuzz targets in `fuzz/`, which have the same names and checks.

#[path = "decoders/targets.rs"]
mod targets;

use targets::TARGETS;

testkit::attack_tests!(
    TARGETS;
    integers,
    field_list,
    container_metadata,
    container_group,
    container_sealed,
    container_object,
    remap,
    recipe,
    recipe_page,
    document_plaintext,
    document_object,
    index_parts,
    index_object,
    delta_instructions,
    delta_prefix,
);
