//! How chunks are compressed together: each row of the table of issue and guide, measured.
//!
//! Enters: distinct chunks, what resemblance found among them. Leaves: for each layout the bytes that are
//! stored, the seconds of one core that this takes, and what it costs to read one chunk back: the units
//! that hold it and its bases, each read and decompressed as a whole.

use super::base_index::Choice;
use super::chunks::UniqueChunks;
use super::coder::{Codec, Coder};
use super::packing::{Packed, Packing, Unit};
use super::reduction::{Form, Reduction, Rule};
use super::super_features::SuperFeatures;
use crate::interrupt;
use engine::container::CompressionLevel;

/// Bytes of a group.
const KIB_64: usize = 64 << 10;
const KIB_256: usize = 256 << 10;
const MIB: usize = 1 << 20;
/// Bytes of a container, compressed as a whole.
const CONTAINER: usize = 4 << 20;
/// A window as large as a container.
const CONTAINER_LOG: u32 = 22;

/// What is done with similar chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resemblance {
    /// Nothing.
    Unused,
    /// They are stored next to each other (migratory compression).
    Beside,
    /// They become deltas of at most so many steps; none is no limit.
    Deltas(Codec, Option<u32>),
}

/// A way to store chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// What it is called in reports.
    pub label: &'static str,
    /// What is done with similar chunks.
    pub resemblance: Resemblance,
    /// How chunks that are whole are compressed.
    pub whole: Unit,
    /// How deltas are, where they are apart.
    pub deltas: Option<Unit>,
}

const fn plain(label: &'static str, whole: Unit) -> Layout {
    Layout {
        label,
        resemblance: Resemblance::Unused,
        whole,
        deltas: None,
    }
}

const fn beside(label: &'static str, whole: Unit) -> Layout {
    Layout {
        label,
        resemblance: Resemblance::Beside,
        whole,
        deltas: None,
    }
}

const fn together(label: &'static str, depth: Option<u32>, whole: Unit) -> Layout {
    Layout {
        label,
        resemblance: Resemblance::Deltas(Codec::Instructions, depth),
        whole,
        deltas: None,
    }
}

const fn apart(label: &'static str, depth: Option<u32>, whole: Unit, deltas: Unit) -> Layout {
    Layout {
        label,
        resemblance: Resemblance::Deltas(Codec::Instructions, depth),
        whole,
        deltas: Some(deltas),
    }
}

const fn prefix(label: &'static str, depth: Option<u32>, whole: Unit) -> Layout {
    Layout {
        label,
        resemblance: Resemblance::Deltas(Codec::Prefix, depth),
        whole,
        deltas: Some(Unit::ItemAsItIs),
    }
}

/// Every layout that is measured.
pub const LAYOUTS: &[Layout] = &[
    plain("no delta: per chunk", Unit::Item),
    plain("no delta: per chunk, dictionary", Unit::ItemWithDictionary),
    plain("no delta: groups 64K", Unit::Group(KIB_64)),
    plain("no delta: groups 256K", Unit::Group(KIB_256)),
    plain("no delta: groups 1M", Unit::Group(MIB)),
    plain("no delta: containers 4M", Unit::Group(CONTAINER)),
    plain(
        "no delta: containers 4M, window 4M",
        Unit::GroupWithWindow(CONTAINER, CONTAINER_LOG),
    ),
    plain(
        "no delta: containers 4M, long",
        Unit::GroupLong(CONTAINER, CONTAINER_LOG),
    ),
    beside("beside their base: groups 256K", Unit::Group(KIB_256)),
    beside("beside their base: groups 1M", Unit::Group(MIB)),
    beside("beside their base: containers 4M", Unit::Group(CONTAINER)),
    prefix("prefix, depth 1: rest per chunk", Some(1), Unit::Item),
    prefix(
        "prefix, depth 1: rest in groups 256K",
        Some(1),
        Unit::Group(KIB_256),
    ),
    prefix(
        "prefix, depth 1: rest in groups 1M",
        Some(1),
        Unit::Group(MIB),
    ),
    prefix(
        "prefix, depth 3: rest in groups 1M",
        Some(3),
        Unit::Group(MIB),
    ),
    together("deltas, depth 1: groups 64K", Some(1), Unit::Group(KIB_64)),
    together(
        "deltas, depth 1: groups 256K",
        Some(1),
        Unit::Group(KIB_256),
    ),
    together("deltas, depth 1: groups 1M", Some(1), Unit::Group(MIB)),
    together(
        "deltas, depth 1: containers 4M",
        Some(1),
        Unit::Group(CONTAINER),
    ),
    apart(
        "deltas apart, depth 1: groups 64K",
        Some(1),
        Unit::Group(KIB_64),
        Unit::Group(KIB_64),
    ),
    apart(
        "deltas apart, depth 1: groups 256K",
        Some(1),
        Unit::Group(KIB_256),
        Unit::Group(KIB_256),
    ),
    apart(
        "deltas apart, depth 1: groups 1M, deltas 64K",
        Some(1),
        Unit::Group(MIB),
        Unit::Group(KIB_64),
    ),
    apart(
        "deltas apart, depth 1: groups 1M",
        Some(1),
        Unit::Group(MIB),
        Unit::Group(MIB),
    ),
    apart(
        "deltas apart, depth 1: containers 4M",
        Some(1),
        Unit::Group(CONTAINER),
        Unit::Group(CONTAINER),
    ),
    apart(
        "deltas apart, depth 3: groups 1M",
        Some(3),
        Unit::Group(MIB),
        Unit::Group(MIB),
    ),
    apart(
        "deltas apart, depth 8: groups 1M",
        Some(8),
        Unit::Group(MIB),
        Unit::Group(MIB),
    ),
    apart(
        "deltas apart, any depth: groups 1M",
        None,
        Unit::Group(MIB),
        Unit::Group(MIB),
    ),
    together(
        "deltas, any depth: containers 4M",
        None,
        Unit::Group(CONTAINER),
    ),
    plain("floor: one stream, long", Unit::Stream),
];

/// What a layout gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// Bytes of everything.
    pub bytes: u64,
    /// Seconds that one thread ran: features, look-ups, deltas, compression.
    pub seconds: f64,
    /// What one chunk costs to read, on average.
    pub read: ReadCost,
}

/// What it takes to read one chunk from nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadCost {
    /// Units that are read.
    pub units: f64,
    /// Bytes of them as they are stored.
    pub stored_bytes: f64,
    /// Bytes that are decompressed.
    pub plain_bytes: f64,
}

/// What layouts are measured on.
pub struct Ground<'a> {
    /// Distinct chunks.
    pub unique: &'a UniqueChunks<'a>,
    /// Theirs.
    pub super_features: &'a SuperFeatures,
    /// What those took.
    pub feature_seconds: f64,
    /// Which of several bases.
    pub choice: Choice,
    /// The longest delta that is kept, of 100 of its chunk.
    pub limit_percent: u32,
    /// zstd's.
    pub level: CompressionLevel,
}

impl Ground<'_> {
    /// What a layout gives; reductions are made once for each codec and depth.
    ///
    /// # Errors
    /// When zstd can't, or somebody asked for a stop.
    pub fn measure(&self, layout: &Layout, reductions: &mut Reductions) -> anyhow::Result<Stored> {
        interrupt::check()?;
        let chunks = &self.unique.chunks;
        let level = self.level.number();
        match layout.resemblance {
            Resemblance::Unused => {
                let packing = Packing::of(chunks, layout.whole, level)?;
                let reduction = Reduction::default();
                let places = (0..chunks.len()).map(|item| (Part::Whole, item)).collect();
                Ok(stored(
                    &Pieces {
                        reduction: &reduction,
                        places,
                        whole: packing,
                        deltas: None,
                    },
                    0.0,
                ))
            }
            Resemblance::Beside => {
                let (codec, depth) = (Codec::Instructions, None);
                let reduction = reductions.get(self, codec, depth)?;
                let order = beside_bases(&reduction.forms);
                let items: Vec<&[u8]> = order.iter().map(|chunk| chunks[*chunk]).collect();
                let packing = Packing::of(&items, layout.whole, level)?;
                let mut places = vec![(Part::Whole, 0); chunks.len()];
                for (item, chunk) in order.into_iter().enumerate() {
                    places[chunk] = (Part::Whole, item);
                }
                // No delta is made: finding similar chunks is all that it takes.
                let seconds = self.feature_seconds + reduction.lookup_seconds;
                let none = Reduction::default();
                Ok(stored(
                    &Pieces {
                        reduction: &none,
                        places,
                        whole: packing,
                        deltas: None,
                    },
                    seconds,
                ))
            }
            Resemblance::Deltas(codec, depth) => {
                let reduction = reductions.get(self, codec, depth)?;
                let seconds =
                    self.feature_seconds + reduction.lookup_seconds + reduction.encode_seconds;
                let pieces = self.pieces(layout, reduction)?;
                Ok(stored(&pieces, seconds))
            }
        }
    }

    /// Chunks and deltas, in one sequence or two.
    fn pieces<'b>(&self, layout: &Layout, reduction: &'b Reduction) -> anyhow::Result<Pieces<'b>> {
        let chunks = &self.unique.chunks;
        let level = self.level.number();
        let (mut whole, mut deltas): (Vec<&[u8]>, Vec<&[u8]>) = (Vec::new(), Vec::new());
        let mut places = Vec::with_capacity(chunks.len());
        for (chunk, form) in chunks.iter().zip(&reduction.forms) {
            match (form, layout.deltas) {
                (Form::Delta { range, .. }, Some(_)) => {
                    places.push((Part::Deltas, deltas.len()));
                    deltas.push(&reduction.deltas[range.clone()]);
                }
                (Form::Delta { range, .. }, None) => {
                    places.push((Part::Whole, whole.len()));
                    whole.push(&reduction.deltas[range.clone()]);
                }
                (Form::Whole, _) => {
                    places.push((Part::Whole, whole.len()));
                    whole.push(chunk);
                }
            }
        }
        let deltas = match layout.deltas {
            Some(unit) => Some(Packing::of(&deltas, unit, level)?),
            None => None,
        };
        Ok(Pieces {
            reduction,
            places,
            whole: Packing::of(&whole, layout.whole, level)?,
            deltas,
        })
    }
}

/// Reductions that were made already.
#[derive(Default)]
pub struct Reductions(Vec<((Codec, Option<u32>), Reduction)>);

impl Reductions {
    fn get(
        &mut self,
        ground: &Ground<'_>,
        codec: Codec,
        depth: Option<u32>,
    ) -> anyhow::Result<&Reduction> {
        let found = self.0.iter().position(|(of, _)| *of == (codec, depth));
        let place = match found {
            Some(place) => place,
            None => {
                let rule = Rule {
                    choice: ground.choice,
                    depth,
                    limit_percent: ground.limit_percent,
                    limit: None,
                    indexed: None,
                };
                let mut coder = Coder::new(codec, ground.level);
                let (chunks, own) = (&ground.unique.chunks, ground.super_features);
                let reduction = Reduction::of(chunks, own, rule, &mut coder)?;
                self.0.push(((codec, depth), reduction));
                self.0.len() - 1
            }
        };
        Ok(&self.0[place].1)
    }
}

/// Chunks so that each stands behind the one that it is similar to, with all that are similar to it in
/// turn before the next.
fn beside_bases(forms: &[Form]) -> Vec<usize> {
    let mut similar: Vec<Vec<usize>> = vec![Vec::new(); forms.len()];
    let mut order = Vec::with_capacity(forms.len());
    for (chunk, form) in forms.iter().enumerate() {
        if let Form::Delta { base, .. } = form {
            similar[*base as usize].push(chunk);
        }
    }
    let mut waiting = Vec::new();
    for (chunk, form) in forms.iter().enumerate() {
        if *form != Form::Whole {
            continue;
        }
        waiting.push(chunk);
        while let Some(next) = waiting.pop() {
            order.push(next);
            waiting.extend(similar[next].iter().rev());
        }
    }
    order
}

/// In which sequence an item lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Deltas,
}

/// What was packed, and where each chunk lies.
struct Pieces<'a> {
    reduction: &'a Reduction,
    /// For each chunk the sequence, and its number there.
    places: Vec<(Part, usize)>,
    whole: Packing,
    deltas: Option<Packing>,
}

impl Pieces<'_> {
    /// The unit that holds a chunk.
    fn unit(&self, chunk: usize) -> ((Part, u32), Packed) {
        let (part, item) = self.places[chunk];
        let packing = match (part, &self.deltas) {
            (Part::Deltas, Some(deltas)) => deltas,
            _ => &self.whole,
        };
        let number = packing.unit_of[item];
        ((part, number), packing.units[number as usize])
    }

    /// What it takes to read a chunk on average.
    fn read_cost(&self) -> ReadCost {
        let mut sum = ReadCost::default();
        let mut read: Vec<(Part, u32)> = Vec::new();
        for chunk in 0..self.places.len() {
            read.clear();
            let mut next = Some(chunk);
            while let Some(chunk) = next {
                let (name, unit) = self.unit(chunk);
                if !read.contains(&name) {
                    read.push(name);
                    sum.units += 1.0;
                    sum.stored_bytes += unit.stored_bytes as f64;
                    sum.plain_bytes += unit.plain_bytes as f64;
                }
                next = match self.reduction.forms.get(chunk) {
                    Some(Form::Delta { base, .. }) => Some(*base as usize),
                    _ => None,
                };
            }
        }
        let count = self.places.len().max(1) as f64;
        ReadCost {
            units: sum.units / count,
            stored_bytes: sum.stored_bytes / count,
            plain_bytes: sum.plain_bytes / count,
        }
    }
}

fn stored(pieces: &Pieces<'_>, seconds_before: f64) -> Stored {
    let deltas = pieces.deltas.as_ref();
    let seconds = deltas.map_or(0.0, |deltas| deltas.seconds);
    Stored {
        bytes: pieces.whole.stored_bytes() + deltas.map_or(0, Packing::stored_bytes),
        seconds: seconds_before + pieces.whole.seconds + seconds,
        read: pieces.read_cost(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(base: u32) -> Form {
        Form::Delta {
            base,
            range: 0..0,
            depth: 1,
        }
    }

    #[test]
    fn similar_chunks_stand_behind_their_base() {
        let forms = [
            Form::Whole,
            Form::Whole,
            delta(0),
            delta(1),
            delta(0),
            delta(2),
        ];
        assert_eq!(beside_bases(&forms), [0, 2, 5, 4, 1, 3]);
    }

    #[test]
    fn a_chain_costs_every_unit_once() {
        // Chunks 0 and 1 in a unit; 2 a delta of 1, 3 of 2, both in one unit of deltas.
        let reduction = Reduction::made(vec![Form::Whole, Form::Whole, delta(1), delta(2)]);
        let items: [&[u8]; 2] = [&[1; 300], &[2; 500]];
        let deltas: [&[u8]; 2] = [&[3; 8], &[4; 12]];
        let pieces = Pieces {
            reduction: &reduction,
            places: vec![
                (Part::Whole, 0),
                (Part::Whole, 1),
                (Part::Deltas, 0),
                (Part::Deltas, 1),
            ],
            whole: Packing::of(&items, Unit::Group(1000), 3).unwrap(),
            deltas: Some(Packing::of(&deltas, Unit::Group(1000), 3).unwrap()),
        };
        let cost = pieces.read_cost();
        assert_eq!(cost.units, (1.0 + 1.0 + 2.0 + 2.0) / 4.0);
        assert_eq!(cost.plain_bytes, (800.0 * 4.0 + 20.0 * 2.0) / 4.0);
    }

    #[test]
    fn every_layout_has_its_own_name() {
        for (index, layout) in LAYOUTS.iter().enumerate() {
            let others = &LAYOUTS[index + 1..];
            assert!(others.iter().all(|other| other.label != layout.label));
        }
    }
}
