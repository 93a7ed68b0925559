//! Recipes: which chunks make a stream (docs/format/v1.md, §8).
//!
//! A recipe is a list of runs: consecutive slots of one container with their total length, or
//! a hole. Long recipes are paged: their runs lie in pages, which are chunks in metadata
//! containers, and the recipe lists the pages. Stored recipes name containers by their place
//! in a [`ContainerTable`] that stands once in the page around them.

mod table;

pub use table::ContainerTable;

use crate::container::{ContainerId, Slot};
use crate::format::{DecodeError, Decoder, put_varint};

/// Most runs in one recipe or page; longer recipes are paged.
pub const RUNS_PER_PAGE_MAX: usize = 1024;

/// Most levels of paging.
pub const RECIPE_LEVEL_MAX: u8 = 4;

/// Part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// Chunks in consecutive slots of one container.
    Slots {
        /// The logical container.
        container: ContainerId,
        /// Slot of the first chunk.
        first: Slot,
        /// How many chunks, at least one.
        count: u32,
        /// Sum of the chunks' lengths.
        bytes: u64,
    },
    /// Zeros that are not stored.
    Hole {
        /// How many.
        bytes: u64,
    },
}

impl Run {
    /// Bytes of the stream that this run makes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Run::Slots { bytes, .. } | Run::Hole { bytes } => *bytes,
        }
    }
}

/// A page of a long recipe.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecipePage {
    /// Bytes of the stream that the runs in the page make.
    pub stream_bytes: u64,
    /// Where the page itself lies.
    pub page: Vec<Run>,
}

/// Which chunks make a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Recipe {
    /// The runs themselves (level 0).
    Runs(Vec<Run>),
    /// Pages that hold recipes of one level less.
    Paged {
        /// How many levels of pages, at least 1.
        level: u8,
        /// The pages, in stream order.
        pages: Vec<RecipePage>,
    },
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe::Runs(Vec::new())
    }
}

impl Recipe {
    /// Length of the stream in bytes.
    #[must_use]
    pub fn stream_bytes(&self) -> u64 {
        match self {
            Recipe::Runs(runs) => runs.iter().map(Run::bytes).sum(),
            Recipe::Paged { pages, .. } => pages.iter().map(|page| page.stream_bytes).sum(),
        }
    }

    /// The containers that the recipe itself names (of pages, not of what they list).
    pub fn containers(&self) -> impl Iterator<Item = ContainerId> + '_ {
        let runs: Box<dyn Iterator<Item = &Run>> = match self {
            Recipe::Runs(runs) => Box::new(runs.iter()),
            Recipe::Paged { pages, .. } => Box::new(pages.iter().flat_map(|page| &page.page)),
        };
        runs.filter_map(|run| match run {
            Run::Slots { container, .. } => Some(*container),
            Run::Hole { .. } => None,
        })
    }

    /// Appends the stored form, entering containers into `table`.
    pub fn encode(&self, table: &mut ContainerTable, out: &mut Vec<u8>) {
        match self {
            Recipe::Runs(runs) => {
                put_varint(out, 0);
                encode_runs(runs, table, out);
            }
            Recipe::Paged { level, pages } => {
                put_varint(out, u64::from(*level));
                put_varint(out, pages.len() as u64);
                for page in pages {
                    put_varint(out, page.stream_bytes);
                    put_varint(out, 0);
                    encode_runs(&page.page, table, out);
                }
            }
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When it is cut off, names a container that is not in `table`, or breaks a limit.
    pub fn decode(decoder: &mut Decoder<'_>, table: &ContainerTable) -> Result<Self, DecodeError> {
        let level = decoder.varint_at_most(u64::from(RECIPE_LEVEL_MAX), "a recipe's level")? as u8;
        if level == 0 {
            return Ok(Recipe::Runs(decode_runs(decoder, table)?));
        }
        let count = decoder.count(3, "recipe pages")?;
        let mut pages = Vec::with_capacity(count);
        let mut total = 0u64;
        for _ in 0..count {
            let stream_bytes = decoder.varint()?;
            total = total
                .checked_add(stream_bytes)
                .ok_or_else(|| DecodeError::new("a recipe's length exceeds 64 bits"))?;
            decoder.varint_at_most(0, "the level of a recipe page's own recipe")?;
            let page = decode_runs(decoder, table)?;
            pages.push(RecipePage { stream_bytes, page });
        }
        Ok(Recipe::Paged { level, pages })
    }
}

fn encode_runs(runs: &[Run], table: &mut ContainerTable, out: &mut Vec<u8>) {
    put_varint(out, runs.len() as u64);
    for run in runs {
        match *run {
            Run::Slots {
                container,
                first,
                count,
                bytes,
            } => {
                put_varint(out, u64::from(table.number_of(container)) << 1);
                put_varint(out, u64::from(first.0));
                put_varint(out, u64::from(count));
                put_varint(out, bytes);
            }
            Run::Hole { bytes } => put_varint(out, bytes << 1 | 1),
        }
    }
}

fn decode_runs(decoder: &mut Decoder<'_>, table: &ContainerTable) -> Result<Vec<Run>, DecodeError> {
    let count = decoder.count(1, "runs")?;
    let mut runs = Vec::with_capacity(count);
    let mut total = 0u64;
    for _ in 0..count {
        let run = decode_run(decoder, table)?;
        total = total
            .checked_add(run.bytes())
            .ok_or_else(|| DecodeError::new("a recipe's length exceeds 64 bits"))?;
        runs.push(run);
    }
    Ok(runs)
}

fn decode_run(decoder: &mut Decoder<'_>, table: &ContainerTable) -> Result<Run, DecodeError> {
    let head = decoder.varint()?;
    if head & 1 == 1 {
        return Ok(Run::Hole { bytes: head >> 1 });
    }
    let container = table.container(head >> 1)?;
    let first = decoder.varint_at_most(u64::from(u16::MAX), "a slot")? as u16;
    let slots_left = u64::from(u16::MAX) + 1 - u64::from(first);
    let count = decoder.varint_at_most(slots_left, "a run's count of slots")? as u32;
    if count == 0 {
        return Err(DecodeError::new("a run has no slots"));
    }
    let bytes = decoder.varint()?;
    Ok(Run::Slots {
        container,
        first: Slot(first),
        count,
        bytes,
    })
}

/// Joins runs as they come: a run that continues the one before it becomes part of it.
#[derive(Debug, Default)]
pub struct RunJoiner {
    runs: Vec<Run>,
}

impl RunJoiner {
    /// Adds the next run of the stream.
    pub fn push(&mut self, run: Run) {
        if let Some(last) = self.runs.last_mut()
            && let Some(joined) = join(*last, run)
        {
            *last = joined;
        } else {
            self.runs.push(run);
        }
    }

    /// Takes the first `count` runs out, if more than that are there: they can't grow any more.
    pub fn split_front(&mut self, count: usize) -> Option<Vec<Run>> {
        if self.runs.len() <= count {
            return None;
        }
        let rest = self.runs.split_off(count);
        Some(std::mem::replace(&mut self.runs, rest))
    }

    /// The runs so far.
    #[must_use]
    pub fn finish(self) -> Vec<Run> {
        self.runs
    }
}

fn join(left: Run, right: Run) -> Option<Run> {
    match (left, right) {
        (Run::Hole { bytes: a }, Run::Hole { bytes: b }) => Some(Run::Hole {
            bytes: a.checked_add(b)?,
        }),
        (
            Run::Slots {
                container,
                first,
                count,
                bytes,
            },
            Run::Slots {
                container: container_next,
                first: first_next,
                count: count_next,
                bytes: bytes_next,
            },
        ) if container == container_next
            && u32::from(first.0) + count == u32::from(first_next.0) =>
        {
            Some(Run::Slots {
                container,
                first,
                count: count + count_next,
                bytes: bytes + bytes_next,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectId;
    use proptest::prelude::*;

    fn any_run() -> impl Strategy<Value = Run> {
        prop_oneof![
            (0u8..5, 0u16..2000, 1u32..500, 0u64..1 << 40).prop_map(|(id, first, count, bytes)| {
                Run::Slots {
                    container: ContainerId(ObjectId([id; 16])),
                    first: Slot(first),
                    count,
                    bytes,
                }
            }),
            (0u64..1 << 50).prop_map(|bytes| Run::Hole { bytes }),
        ]
    }

    fn any_recipe() -> impl Strategy<Value = Recipe> {
        let runs = proptest::collection::vec(any_run(), 0..20);
        let page = (0u64..1 << 50, proptest::collection::vec(any_run(), 0..4))
            .prop_map(|(stream_bytes, page)| RecipePage { stream_bytes, page });
        prop_oneof![
            runs.prop_map(Recipe::Runs),
            (1u8..=4, proptest::collection::vec(page, 0..5))
                .prop_map(|(level, pages)| Recipe::Paged { level, pages }),
        ]
    }

    proptest! {
        #[test]
        fn recipes_come_back(recipe in any_recipe()) {
            let mut table = ContainerTable::default();
            let mut out = Vec::new();
            recipe.encode(&mut table, &mut out);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(Recipe::decode(&mut decoder, &table).unwrap(), recipe);
            prop_assert!(decoder.finish().is_ok());
            for end in 0..out.len() {
                prop_assert!(Recipe::decode(&mut Decoder::new(&out[..end]), &table).is_err());
            }
        }

        #[test]
        fn hostile_recipes_never_panic(bytes: Vec<u8>) {
            let mut table = ContainerTable::default();
            table.number_of(ContainerId(ObjectId([1; 16])));
            let _ = Recipe::decode(&mut Decoder::new(&bytes), &table);
        }
    }

    #[test]
    fn neighbours_join() {
        let container = ContainerId(ObjectId([1; 16]));
        let slots = |first, count| Run::Slots {
            container,
            first: Slot(first),
            count,
            bytes: u64::from(count) * 10,
        };
        let mut joiner = RunJoiner::default();
        for run in [
            slots(3, 1),
            slots(4, 2),
            Run::Hole { bytes: 5 },
            Run::Hole { bytes: 6 },
        ] {
            joiner.push(run);
        }
        joiner.push(slots(6, 1));
        joiner.push(slots(6, 1));
        let expected = [
            slots(3, 3),
            Run::Hole { bytes: 11 },
            slots(6, 1),
            slots(6, 1),
        ];
        assert_eq!(joiner.finish(), expected);
    }
}
