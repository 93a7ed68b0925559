//! The sliding look-back window (LBW).
//!
//! Source: Cao et al., 'Sliding Look-Back Window Assisted Data Chunk Rewriting for Improving
//! Deduplication Restore Performance', FAST 2019, in the setting of MACS, §IV-C: a window of 8
//! containers that moves by one, a threshold of references that adapts between 5 and 60. What
//! these leave open is defined here.
//!
//! Enter and leave: as `rewriting`. The stream is cut into *steps* of
//! [`LookBackWindow::step_containers`] containers' bytes; the window is the last
//! [`LookBackWindow::window_containers`] of them. The duplicates that a step has of one old
//! container are a *reference*, with a count (chunks) and bytes; they are decided together,
//! because to keep one of them is to read the container. The *reference count* of a container is
//! that of all its references in the window.
//!
//! 1. **A step enters** at the head, and one looks back: its reference to a container is *kept* if
//!    the container's count is at or above the threshold, or if a reference to it in the window
//!    is kept (a restore has the container at hand then). Otherwise it is a *candidate*.
//! 2. **A step leaves** at the tail once the window is full. For a candidate the window is now what
//!    follows it. In ascending order of their containers' counts (among equals, of first chunks)
//!    candidates are judged again: those are kept that are at or above the threshold, or whose
//!    container a reference in the window keeps; the others are rewritten, while the rewritten
//!    bytes of the last window's length of stream stay within
//!    [`LookBackWindow::rewritten_permille_max`] of it. What the bound forbids is kept. Where a
//!    candidate is kept, so are all references in the window to its container.
//! 3. **The threshold adapts** as a step leaves: if the bound forbade something, it falls by a
//!    quarter, so that the bound is spent on the least referenced containers; otherwise, if the
//!    stream that left last, a window long, refers to more old containers than would fill it, it
//!    rises by 4; otherwise it falls by 1. It begins in the middle.
//!
//! So a stream never grows by more than that bound, and no promise is made on container reads;
//! [`super::Capping`] is the other way about.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use super::{ChunkPlace, Decision, StreamChunk};

/// By how much the threshold rises.
const THRESHOLD_RISE: u32 = 4;

/// Parameters of the look-back window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookBackWindow {
    /// Length of the window, in containers.
    pub window_containers: u32,
    /// By how many containers it moves.
    pub step_containers: u32,
    /// Least threshold: a container with fewer references in the window is one to rewrite from.
    pub threshold_min: u32,
    /// Greatest threshold.
    pub threshold_max: u32,
    /// How much of a window's bytes may be rewritten, in thousandths.
    pub rewritten_permille_max: u32,
}

impl LookBackWindow {
    /// Window, step and thresholds as published.
    pub const DEFAULT: Self = Self {
        window_containers: 8,
        step_containers: 1,
        threshold_min: 5,
        threshold_max: 60,
        rewritten_permille_max: 50,
    };

    pub(super) fn window_bytes(&self, container_bytes: u32) -> u64 {
        self.steps_max() as u64 * self.step_bytes(container_bytes)
    }

    fn step_bytes(&self, container_bytes: u32) -> u64 {
        u64::from(self.step_containers.max(1)) * u64::from(container_bytes.max(1))
    }

    /// Steps in a full window.
    fn steps_max(&self) -> usize {
        (self.window_containers / self.step_containers.max(1)).max(1) as usize
    }
}

impl Default for LookBackWindow {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The duplicates that a step has of one container.
#[derive(Debug)]
struct Reference<C> {
    container: C,
    count: u32,
    bytes: u64,
    /// None while it is a candidate.
    decision: Option<Decision>,
}

#[derive(Debug)]
struct Step<C, T> {
    /// The number of its reference, if it is a duplicate, and what to hand back.
    chunks: Vec<(Option<u32>, T)>,
    /// In the order of their first chunks.
    references: Vec<Reference<C>>,
    /// Which reference is to which container.
    numbers: HashMap<C, u32>,
    bytes: u64,
    /// What it takes of the window.
    weight: u64,
}

impl<C, T> Default for Step<C, T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            references: Vec::new(),
            numbers: HashMap::new(),
            bytes: 0,
            weight: 0,
        }
    }
}

/// A container in the window.
#[derive(Debug, Default)]
struct InWindow {
    /// Chunks of it, in all steps.
    count: u32,
    /// Steps that keep it.
    steps_kept: u32,
}

/// A step that left.
#[derive(Debug)]
struct Left<C> {
    bytes: u64,
    rewritten_bytes: u64,
    kept: Vec<C>,
}

/// Decides step by step.
#[derive(Debug)]
pub(super) struct LookBackRewriter<C, T> {
    parameters: LookBackWindow,
    step_bytes: u64,
    threshold: u32,
    /// The step that is being filled.
    open: Step<C, T>,
    /// Full steps, the oldest first.
    window: VecDeque<Step<C, T>>,
    containers: HashMap<C, InWindow>,
    /// The last steps that left, a window of them.
    left: VecDeque<Left<C>>,
    left_bytes: u64,
    left_rewritten_bytes: u64,
    /// The containers that they keep, and in how many of them.
    left_kept: HashMap<C, u32>,
}

impl<C: Copy + Eq + Hash, T> LookBackRewriter<C, T> {
    pub(super) fn new(parameters: LookBackWindow, container_bytes: u32) -> Self {
        let span = parameters
            .threshold_max
            .saturating_sub(parameters.threshold_min);
        Self {
            step_bytes: parameters.step_bytes(container_bytes),
            threshold: parameters.threshold_min + span / 2,
            parameters,
            open: Step::default(),
            window: VecDeque::new(),
            containers: HashMap::new(),
            left: VecDeque::new(),
            left_bytes: 0,
            left_rewritten_bytes: 0,
            left_kept: HashMap::new(),
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: StreamChunk<C>,
        payload: T,
        decide: &mut dyn FnMut(T, Decision),
    ) {
        let step = &mut self.open;
        let number = match chunk.place {
            ChunkPlace::New => None,
            ChunkPlace::Stored(container) => Some(step.refer(container, chunk.bytes)),
        };
        step.bytes += u64::from(chunk.bytes);
        step.weight += chunk.weight();
        step.chunks.push((number, payload));
        if step.weight >= self.step_bytes {
            self.enter();
            if self.window.len() >= self.parameters.steps_max() {
                self.leave(decide);
            }
        }
    }

    pub(super) fn finish(&mut self, decide: &mut dyn FnMut(T, Decision)) {
        if !self.open.chunks.is_empty() {
            self.enter();
        }
        while !self.window.is_empty() {
            self.leave(decide);
        }
    }

    /// The open step enters the window: rule 1.
    fn enter(&mut self) {
        let mut step = std::mem::take(&mut self.open);
        for reference in &mut step.references {
            let container = self.containers.entry(reference.container).or_default();
            container.count += reference.count;
            if container.count >= self.threshold || container.steps_kept > 0 {
                container.steps_kept += 1;
                reference.decision = Some(Decision::Keep);
            }
        }
        self.window.push_back(step);
    }

    /// The oldest step leaves the window: rules 2 and 3.
    fn leave(&mut self, decide: &mut dyn FnMut(T, Decision)) {
        let Some(mut step) = self.window.pop_front() else {
            return;
        };
        self.forget_oldest_left();
        let candidates = self.candidates(&step);
        let bytes_max = (self.left_bytes + step.bytes)
            .saturating_mul(u64::from(self.parameters.rewritten_permille_max))
            / 1000;
        let mut is_bound_met = false;
        let mut rewritten_bytes = 0;
        for (count, number) in candidates {
            let reference = &mut step.references[number];
            let with_it = self.left_rewritten_bytes + rewritten_bytes + reference.bytes;
            let is_fragment = count < self.threshold && !self.is_kept(reference.container);
            if is_fragment && with_it <= bytes_max {
                rewritten_bytes += reference.bytes;
                reference.decision = Some(Decision::Rewrite);
            } else {
                is_bound_met |= is_fragment;
                reference.decision = Some(Decision::Keep);
                self.keep(reference.container);
            }
        }
        for (number, payload) in step.chunks {
            let decision = number.and_then(|number| step.references[number as usize].decision);
            decide(payload, decision.unwrap_or(Decision::Keep));
        }
        self.note_left(&step.references, step.bytes, rewritten_bytes);
        self.adapt(is_bound_met);
    }

    /// The undecided references of a step that leaves, each with the count of its container, by
    /// these and by their first chunks.
    fn candidates(&self, step: &Step<C, T>) -> Vec<(u32, usize)> {
        let references = step.references.iter().enumerate();
        let mut candidates: Vec<_> = references
            .filter(|(_, reference)| reference.decision.is_none())
            .map(|(number, reference)| {
                let container = self.containers.get(&reference.container);
                (container.map_or(0, |container| container.count), number)
            })
            .collect();
        candidates.sort_unstable();
        candidates
    }

    /// Does a reference in the window keep that container?
    fn is_kept(&self, container: C) -> bool {
        let in_window = self.containers.get(&container);
        in_window.is_some_and(|container| container.steps_kept > 0)
    }

    /// A candidate that leaves is kept: so are all references to its container.
    fn keep(&mut self, container: C) {
        let mut steps_kept = 1;
        for step in &mut self.window {
            if let Some(&number) = step.numbers.get(&container) {
                let reference = &mut step.references[number as usize];
                reference.decision = Some(Decision::Keep);
                steps_kept += 1;
            }
        }
        if let Some(in_window) = self.containers.get_mut(&container) {
            in_window.steps_kept = steps_kept;
        }
    }

    /// Makes room for a step among those that left.
    fn forget_oldest_left(&mut self) {
        if self.left.len() < self.parameters.steps_max() {
            return;
        }
        let Some(oldest) = self.left.pop_front() else {
            return;
        };
        self.left_bytes -= oldest.bytes;
        self.left_rewritten_bytes -= oldest.rewritten_bytes;
        for container in oldest.kept {
            if let Some(steps) = self.left_kept.get_mut(&container) {
                *steps -= 1;
                if *steps == 0 {
                    self.left_kept.remove(&container);
                }
            }
        }
    }

    /// Takes a step's references out of the window, and remembers what became of them.
    fn note_left(&mut self, references: &[Reference<C>], bytes: u64, rewritten_bytes: u64) {
        let mut kept = Vec::new();
        for reference in references {
            let is_kept = reference.decision == Some(Decision::Keep);
            if let Some(container) = self.containers.get_mut(&reference.container) {
                container.count -= reference.count;
                container.steps_kept -= u32::from(is_kept);
                if container.count == 0 {
                    self.containers.remove(&reference.container);
                }
            }
            if is_kept {
                kept.push(reference.container);
                *self.left_kept.entry(reference.container).or_default() += 1;
            }
        }
        self.left_bytes += bytes;
        self.left_rewritten_bytes += rewritten_bytes;
        self.left.push_back(Left {
            bytes,
            rewritten_bytes,
            kept,
        });
    }

    fn adapt(&mut self, is_bound_met: bool) {
        let parameters = &self.parameters;
        let adapted = if is_bound_met {
            self.threshold - self.threshold.div_ceil(4)
        } else if self.left_kept.len() > parameters.window_containers as usize {
            self.threshold + THRESHOLD_RISE
        } else {
            self.threshold.saturating_sub(1)
        };
        let least = parameters.threshold_min;
        self.threshold = adapted.clamp(least, parameters.threshold_max.max(least));
    }
}

impl<C: Copy + Eq + Hash, T> Step<C, T> {
    /// Counts a duplicate; returns the number of its reference.
    fn refer(&mut self, container: C, bytes: u32) -> u32 {
        let next = self.references.len() as u32;
        let number = *self.numbers.entry(container).or_insert(next);
        if number == next {
            self.references.push(Reference {
                container,
                count: 0,
                bytes: 0,
                decision: None,
            });
        }
        let reference = &mut self.references[number as usize];
        reference.count += 1;
        reference.bytes += u64::from(bytes);
        number
    }
}
