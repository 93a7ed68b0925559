//! Policies against plain models, which look at the whole stream again for every decision.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

type Chunk = StreamChunk<u8>;

const CHUNK_BYTES_TESTED_MAX: u32 = 3000;

fn stored(container: u8, bytes: u32) -> Chunk {
    StreamChunk {
        bytes,
        place: ChunkPlace::Stored(container),
    }
}

fn new(bytes: u32) -> Chunk {
    StreamChunk {
        bytes,
        place: ChunkPlace::New,
    }
}

fn container_of(chunk: &Chunk) -> Option<u8> {
    match chunk.place {
        ChunkPlace::New => None,
        ChunkPlace::Stored(container) => Some(container),
    }
}

/// Runs a policy; checks order, and how much waits.
fn decisions(rewriting: &Rewriting, container_bytes: u32, chunks: &[Chunk]) -> Vec<Decision> {
    let mut rewriter = Rewriter::new(rewriting, container_bytes);
    let mut out = Vec::new();
    let window_bytes = rewriting.window_bytes(container_bytes);
    for (number, chunk) in chunks.iter().enumerate() {
        rewriter.push(*chunk, number, &mut |number, decision| {
            assert_eq!(number, out.len());
            out.push(decision);
        });
        let waiting: u64 = chunks[out.len()..=number].iter().map(Chunk::weight).sum();
        let beyond = 8 * u64::from(CHUNK_BYTES_TESTED_MAX);
        assert!(
            waiting < window_bytes + beyond,
            "{waiting} of {window_bytes}"
        );
    }
    rewriter.finish(&mut |number, decision| {
        assert_eq!(number, out.len());
        out.push(decision);
    });
    assert_eq!(out.len(), chunks.len());
    rewriter.finish(&mut |_, _| panic!("nothing is left"));
    out
}

/// Cuts a stream after the chunk that brings a part to `part_bytes`.
fn parts(chunks: &[Chunk], part_bytes: u64) -> Vec<&[Chunk]> {
    let mut parts = Vec::new();
    let mut rest = chunks;
    while !rest.is_empty() {
        let mut weight = 0;
        let is_end = |chunk: &Chunk| {
            weight += chunk.weight();
            weight >= part_bytes
        };
        let end = rest
            .iter()
            .position(is_end)
            .map_or(rest.len(), |end| end + 1);
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}

fn bytes_of(chunks: &[Chunk], container: u8) -> u64 {
    let those = chunks
        .iter()
        .filter(|chunk| container_of(chunk) == Some(container));
    those.map(|chunk| u64::from(chunk.bytes)).sum()
}

fn count_of(chunks: &[Chunk], container: u8) -> u32 {
    let those = chunks
        .iter()
        .filter(|chunk| container_of(chunk) == Some(container));
    those.count() as u32
}

/// The containers of these chunks, in order of their first ones.
fn containers_of(chunks: &[Chunk]) -> Vec<u8> {
    let mut containers = Vec::new();
    for container in chunks.iter().filter_map(container_of) {
        if !containers.contains(&container) {
            containers.push(container);
        }
    }
    containers
}

fn capping_model(capping: &Capping, chunks: &[Chunk]) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for segment in parts(chunks, capping.segment_bytes) {
        let mut ranked = containers_of(segment);
        ranked.sort_by_key(|&container| u64::MAX - bytes_of(segment, container));
        ranked.truncate(capping.containers_max as usize);
        for chunk in segment {
            decisions.push(match container_of(chunk) {
                Some(container) if !ranked.contains(&container) => Decision::Rewrite,
                _ => Decision::Keep,
            });
        }
    }
    decisions
}

/// The rules of `look_back_window`, with every sum made anew from the steps.
struct WindowModel<'a> {
    parameters: LookBackWindow,
    steps: Vec<&'a [Chunk]>,
    decided: BTreeMap<(usize, u8), Decision>,
    threshold: u32,
}

impl WindowModel<'_> {
    fn is_kept(&self, step: usize, container: u8) -> bool {
        self.decided.get(&(step, container)) == Some(&Decision::Keep)
    }

    fn enter(&mut self, head: usize, tail: usize) {
        for container in containers_of(self.steps[head]) {
            let count: u32 = (tail..=head)
                .map(|step| count_of(self.steps[step], container))
                .sum();
            let is_kept = (tail..head).any(|step| self.is_kept(step, container));
            if count >= self.threshold || is_kept {
                self.decided.insert((head, container), Decision::Keep);
            }
        }
    }

    fn leave(&mut self, tail: usize, head: usize) {
        let window = self.steps_max();
        let first_left = (tail + 1).saturating_sub(window);
        let count = |container: u8| -> u32 {
            let counts = (tail..=head).map(|step| count_of(self.steps[step], container));
            counts.sum()
        };
        let mut candidates = containers_of(self.steps[tail]);
        candidates.retain(|&container| !self.decided.contains_key(&(tail, container)));
        candidates.sort_by_key(|&container| count(container));
        let counts: Vec<u32> = candidates
            .iter()
            .map(|&container| count(container))
            .collect();
        let last_left: u64 = (first_left..=tail)
            .flat_map(|step| self.steps[step])
            .map(|chunk| u64::from(chunk.bytes))
            .sum();
        let bytes_max = last_left * u64::from(self.parameters.rewritten_permille_max) / 1000;
        let mut is_bound_met = false;
        for (container, count) in candidates.into_iter().zip(counts) {
            let is_kept = (tail..=head).any(|step| self.is_kept(step, container));
            let is_fragment = count < self.threshold && !is_kept;
            let with_it =
                self.rewritten_bytes(first_left, tail) + bytes_of(self.steps[tail], container);
            if is_fragment && with_it <= bytes_max {
                self.decided.insert((tail, container), Decision::Rewrite);
            } else {
                is_bound_met |= is_fragment;
                for step in tail..=head {
                    if count_of(self.steps[step], container) > 0 {
                        self.decided.insert((step, container), Decision::Keep);
                    }
                }
            }
        }
        let kept: BTreeSet<u8> = self
            .decided
            .iter()
            .filter(|((step, _), decision)| {
                (first_left..=tail).contains(step) && **decision == Decision::Keep
            })
            .map(|((_, container), _)| *container)
            .collect();
        self.adapt(is_bound_met, kept.len());
    }

    fn rewritten_bytes(&self, first: usize, last: usize) -> u64 {
        let decided = self.decided.iter();
        decided
            .filter(|((step, _), decision)| {
                (first..=last).contains(step) && **decision == Decision::Rewrite
            })
            .map(|((step, container), _)| bytes_of(self.steps[*step], *container))
            .sum()
    }

    fn adapt(&mut self, is_bound_met: bool, kept: usize) {
        let threshold = i64::from(self.threshold);
        let adapted = match is_bound_met {
            true => threshold * 3 / 4,
            false if kept > self.parameters.window_containers as usize => threshold + 4,
            false => threshold - 1,
        };
        let least = i64::from(self.parameters.threshold_min);
        self.threshold = adapted
            .min(i64::from(self.parameters.threshold_max))
            .max(least) as u32;
    }

    fn steps_max(&self) -> usize {
        (self.parameters.window_containers / self.parameters.step_containers).max(1) as usize
    }
}

fn window_model(
    parameters: LookBackWindow,
    container_bytes: u32,
    chunks: &[Chunk],
) -> Vec<Decision> {
    let step_bytes = u64::from(container_bytes * parameters.step_containers);
    let mut model = WindowModel {
        parameters,
        steps: parts(chunks, step_bytes),
        decided: BTreeMap::new(),
        threshold: (parameters.threshold_min + parameters.threshold_max) / 2,
    };
    let mut tail = 0;
    let count = model.steps.len();
    for head in 0..count {
        model.enter(head, tail);
        let weight: u64 = model.steps[head].iter().map(Chunk::weight).sum();
        if head + 1 - tail == model.steps_max() && weight >= step_bytes {
            model.leave(tail, head);
            tail += 1;
        }
    }
    while tail < count {
        model.leave(tail, count - 1);
        tail += 1;
    }
    let decided = &model.decided;
    let steps = model.steps.iter().enumerate();
    steps
        .flat_map(|(number, step)| {
            step.iter().map(move |chunk| match container_of(chunk) {
                Some(container) => decided[&(number, container)],
                None => Decision::Keep,
            })
        })
        .collect()
}

fn streams() -> impl Strategy<Value = Vec<Chunk>> {
    let chunk =
        (0u8..12, 1..CHUNK_BYTES_TESTED_MAX).prop_map(|(container, bytes)| match container {
            0 => new(bytes),
            container => stored(container, bytes),
        });
    // Runs of one container among single chunks, as streams have them.
    let run = (chunk, 1usize..12).prop_map(|(chunk, count)| vec![chunk; count]);
    prop::collection::vec(run, 0..60).prop_map(|runs| runs.concat())
}

proptest! {
    #[test]
    fn capping_is_as_its_model(
        chunks in streams(),
        segment_bytes in 1u64..60_000,
        containers_max in 0u32..5,
    ) {
        let capping = Capping { segment_bytes, containers_max };
        let expected = capping_model(&capping, &chunks);
        prop_assert_eq!(decisions(&Rewriting::Capping(capping), 1, &chunks), expected);
    }

    #[test]
    fn the_window_is_as_its_model(
        chunks in streams(),
        container_bytes in 1000u32..20_000,
        window_containers in 1u32..6,
        step_containers in 1u32..3,
        threshold_min in 0u32..8,
        threshold_span in 0u32..30,
        rewritten_permille_max in 0u32..1001,
    ) {
        let parameters = LookBackWindow {
            window_containers,
            step_containers,
            threshold_min,
            threshold_max: threshold_min + threshold_span,
            rewritten_permille_max,
        };
        let expected = window_model(parameters, container_bytes, &chunks);
        let rewriting = Rewriting::LookBackWindow(parameters);
        prop_assert_eq!(decisions(&rewriting, container_bytes, &chunks), expected);
    }

    #[test]
    fn the_window_stays_within_its_bound(chunks in streams(), permille in 0u32..300) {
        let parameters = LookBackWindow {
            rewritten_permille_max: permille,
            ..LookBackWindow::DEFAULT
        };
        let rewriting = Rewriting::LookBackWindow(parameters);
        let decisions = decisions(&rewriting, 10_000, &chunks);
        let bytes = |chunk: &Chunk| u64::from(chunk.bytes);
        let all: u64 = chunks.iter().map(bytes).sum();
        let rewritten = chunks.iter().zip(&decisions);
        let rewritten: u64 = rewritten
            .filter(|(_, decision)| **decision == Decision::Rewrite)
            .map(|(chunk, _)| bytes(chunk))
            .sum();
        prop_assert!(rewritten * 1000 <= all * u64::from(permille));
    }
}

#[test]
fn off_keeps_everything_at_once() {
    let chunks = [stored(1, 5), new(7), stored(2, 1)];
    assert_eq!(decisions(&Rewriting::Off, 1, &chunks), [Decision::Keep; 3]);
}

#[test]
fn a_fragment_is_rewritten_and_its_neighbours_are_not() {
    // 64 steps of 100 chunks from a container each, and one chunk from elsewhere in the middle.
    let mut chunks: Vec<Chunk> = (0..64).flat_map(|c| vec![stored(c, 1000); 100]).collect();
    chunks.insert(3210, stored(200, 1000));
    let rewriting = Rewriting::LookBackWindow(LookBackWindow::DEFAULT);
    let decided = decisions(&rewriting, 100_000, &chunks);
    for (number, decision) in decided.iter().enumerate() {
        let is_fragment = number == 3210;
        assert_eq!(
            *decision == Decision::Rewrite,
            is_fragment,
            "chunk {number}"
        );
    }
}

#[test]
fn names_lead_back() {
    for (name, rewriting) in Rewriting::NAMES {
        assert_eq!(rewriting.name(), name);
        assert_eq!(Rewriting::named(name), Some(rewriting));
    }
    assert_eq!(Rewriting::named("LBW"), None);
}

#[test]
fn windows_shrink_to_the_memory_there_is() {
    for (_, rewriting) in Rewriting::NAMES {
        for memory_bytes in [1 << 20, 10 << 20, 100 << 20] {
            let (fitting, container_bytes) = rewriting.within(4 << 20, memory_bytes);
            assert!(fitting.window_bytes(container_bytes) <= memory_bytes);
            if rewriting.window_bytes(4 << 20) <= memory_bytes {
                assert_eq!((fitting, container_bytes), (rewriting, 4 << 20));
            }
        }
    }
}
