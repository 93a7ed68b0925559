//! Tables of containers, recipes, and pages of long recipes (docs/format/v1.md, §8).

use std::sync::Arc;

use engine::container::{Compression, ContainerBuilder, ContainerId, ContainerKind, Slot};
use engine::format::{DecodeError, Decoder};
use engine::object::{MemoryStore, ObjectId, ObjectStore};
use engine::recipe::{ContainerTable, Recipe, RecipePage, Run, RunJoiner};
use engine::restore::Reader;

use super::{container_reader, fingerprinter, vault};

/// Most runs that are followed: a page of a few bytes may stand for very many empty ones.
const RUNS_FOLLOWED: usize = 1000;

/// A table and a recipe, as they stand in a page: decoded, encoded, decoded again.
pub fn recipe(bytes: &[u8]) {
    let Ok((table, recipe)) = decode(bytes) else {
        return;
    };
    for (number, &container) in table.containers().iter().enumerate() {
        assert_eq!(table.container(number as u64), Ok(container));
    }
    for container in recipe.containers() {
        assert!(table.containers().contains(&container));
    }
    assert_eq!(decode(&encode(&recipe)).expect("it comes back").1, recipe);
    if let Recipe::Runs(runs) = &recipe {
        let mut joiner = RunJoiner::default();
        runs.iter().for_each(|run| joiner.push(*run));
        let joined = joiner.finish();
        assert!(joined.len() <= runs.len());
        assert_eq!(Recipe::Runs(joined).stream_bytes(), recipe.stream_bytes());
    }
}

/// The bytes of a page that a longer recipe refers to: a reader comes to its runs, or says what
/// is wrong.
pub fn page(bytes: &[u8]) {
    if bytes.is_empty() || bytes.len() > 1 << 16 {
        return; // No chunk is empty; large pages show nothing that smaller ones don't.
    }
    let store = Arc::new(MemoryStore::new());
    let page = store_chunk(&store, bytes);
    let decoded = decode(bytes).ok().map(|(_, recipe)| recipe);
    let level = match &decoded {
        Some(Recipe::Paged { level, .. }) => level + 1,
        _ => 1,
    };
    let stream_bytes = decoded.as_ref().map_or(0, Recipe::stream_bytes);
    let pages = vec![RecipePage {
        stream_bytes,
        page: vec![page],
    }];
    let reader = Reader::new(Arc::new(container_reader(store)), 1 << 20);
    let paged = Recipe::Paged { level, pages };
    let runs: Vec<_> = reader.runs(&paged).take(RUNS_FOLLOWED).collect();
    match decoded {
        None => assert!(matches!(runs[..], [Err(_)])),
        Some(Recipe::Runs(expected)) => {
            assert!(
                runs.iter()
                    .flatten()
                    .eq(expected.iter().take(RUNS_FOLLOWED))
            );
        }
        Some(Recipe::Paged { .. }) => {}
    }
    for run in runs.iter().flatten() {
        assert_eq!(reader.locate(run).is_ok(), matches!(run, Run::Hole { .. }));
    }
}

fn store_chunk(store: &MemoryStore, bytes: &[u8]) -> Run {
    let kind = ContainerKind::Metadata;
    let mut builder = ContainerBuilder::new(&vault(), kind, 1 << 20);
    let fingerprint = fingerprinter().fingerprint(kind, bytes);
    builder.push_group(
        bytes,
        Compression::Stored,
        &[(fingerprint, bytes.len() as u32)],
    );
    let container = builder.id();
    let sealed = builder.finish(true);
    store
        .put(&sealed.key, &sealed.bytes)
        .expect("memory takes it");
    Run::Slots {
        container,
        first: Slot(0),
        count: 1,
        bytes: bytes.len() as u64,
    }
}

fn decode(bytes: &[u8]) -> Result<(ContainerTable, Recipe), DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let table = ContainerTable::decode(&mut decoder)?;
    let recipe = Recipe::decode(&mut decoder, &table)?;
    decoder.finish()?;
    Ok((table, recipe))
}

fn encode(recipe: &Recipe) -> Vec<u8> {
    let mut table = ContainerTable::default();
    let mut body = Vec::new();
    recipe.encode(&mut table, &mut body);
    let mut out = Vec::new();
    table.encode(&mut out);
    out.extend_from_slice(&body);
    out
}

pub fn recipe_samples() -> Vec<Vec<u8>> {
    let slots = |container, first, count, bytes| Run::Slots {
        container: ContainerId(ObjectId([container; 16])),
        first: Slot(first),
        count,
        bytes,
    };
    let runs = vec![
        slots(1, 0, 500, 4_000_000),
        slots(1, 500, 20, 100_000),
        Run::Hole { bytes: 1 << 40 },
        Run::Hole { bytes: 1 },
        slots(2, 65_535, 1, 1),
        slots(3, 0, 65_536, 1 << 50),
    ];
    let page = |stream_bytes, container| RecipePage {
        stream_bytes,
        page: vec![slots(container, 7, 1, 9000)],
    };
    let paged = |level| Recipe::Paged {
        level,
        pages: vec![page(1 << 30, 1), page(1 << 31, 2), page(0, 1)],
    };
    let recipes = [Recipe::default(), Recipe::Runs(runs), paged(1), paged(3)];
    recipes.iter().map(encode).collect()
}
