//! Rewriting: which duplicates are worth storing again, so that a restore reads fewer containers.
//!
//! Enter: the chunks of a stream in order, each with the container that has it, or none, and
//! whatever the caller wants back with it. Leave: the same in the same order, each with a
//! [`Decision`]. Pure: no I/O, no threads, no clock; decisions follow from the chunks alone.
//!
//! Over the versions of a data set a stream's duplicates come to lie in ever more containers,
//! of which each gives it only a little (*fragmentation*). A chunk that is stored again, beside
//! its neighbours of today, costs its bytes once and saves the read of a container at each
//! restore. Two policies say for which chunks that pays:
//!
//! * [`LookBackWindow`] (Cao et al., FAST 2019; MACS, §IV-C): few references in a window that
//!   slides over the stream;
//! * [`Capping`] (Lillibridge et al., FAST 2013): so many old containers a segment, no more.
//!
//! **Memory**: what waits for its decision is bounded by the window ([`Rewriting::window_bytes`]):
//! at most that many bytes of chunks, and less than one chunk more for each step of the window.
//! A chunk counts with at least [`CHUNK_BYTES_MIN`], so that many small ones are bounded in
//! number, too.

mod capping;
mod look_back_window;
#[cfg(test)]
mod tests;

use std::hash::Hash;

pub use capping::Capping;
pub use look_back_window::LookBackWindow;

use capping::CappingRewriter;
use look_back_window::LookBackRewriter;

/// What a chunk takes of a window at least.
pub const CHUNK_BYTES_MIN: u32 = 512;

/// Which duplicates are stored again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rewriting {
    /// None.
    #[default]
    Off,
    /// Those of containers with few references in a sliding window.
    LookBackWindow(LookBackWindow),
    /// Those of all but the most referenced containers of a segment.
    Capping(Capping),
}

impl Rewriting {
    /// The policies by their names, with their default parameters.
    pub const NAMES: [(&'static str, Rewriting); 3] = [
        ("off", Rewriting::Off),
        ("lbw", Rewriting::LookBackWindow(LookBackWindow::DEFAULT)),
        ("capping", Rewriting::Capping(Capping::DEFAULT)),
    ];

    /// The policy's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Rewriting::Off => "off",
            Rewriting::LookBackWindow(_) => "lbw",
            Rewriting::Capping(_) => "capping",
        }
    }

    /// The policy of that name with its default parameters.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names.find(|known| known.0 == name).map(|known| known.1)
    }

    /// Bytes of chunks that wait for a decision at most (but see the file's top).
    #[must_use]
    pub fn window_bytes(&self, container_bytes: u32) -> u64 {
        match self {
            Rewriting::Off => 0,
            Rewriting::LookBackWindow(window) => window.window_bytes(container_bytes),
            Rewriting::Capping(capping) => capping.segment_bytes,
        }
    }

    /// What can be had for `memory_bytes`: the policy and the container size to decide by, both
    /// as they are when the window fits.
    #[must_use]
    pub fn within(self, container_bytes: u32, memory_bytes: u64) -> (Self, u32) {
        let fits = self.window_bytes(container_bytes) <= memory_bytes;
        match self {
            Rewriting::LookBackWindow(window) if !fits => {
                let fitting = memory_bytes / u64::from(window.window_containers.max(1));
                (self, fitting.min(u64::from(container_bytes)) as u32)
            }
            Rewriting::Capping(mut capping) if !fits => {
                // As many old containers a byte as before, but one at least.
                let share = u64::from(capping.containers_max) * memory_bytes;
                capping.containers_max = share.div_ceil(capping.segment_bytes.max(1)) as u32;
                capping.segment_bytes = memory_bytes;
                (Rewriting::Capping(capping), container_bytes)
            }
            _ => (self, container_bytes),
        }
    }
}

/// Where a chunk of the stream is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkPlace<C> {
    /// In no container yet: it goes to the open one. So do chunks that repeat a new one.
    New,
    /// In this one.
    Stored(C),
}

/// A chunk of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamChunk<C> {
    /// Its length.
    pub bytes: u32,
    /// Where it is stored.
    pub place: ChunkPlace<C>,
}

impl<C> StreamChunk<C> {
    /// What it takes of a window.
    fn weight(&self) -> u64 {
        u64::from(self.bytes.max(CHUNK_BYTES_MIN))
    }
}

/// What becomes of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It stays where it is; a new one is stored anyway.
    Keep,
    /// It is stored again.
    Rewrite,
}

/// Decides over a stream of chunks; `T` is what the caller gets back with each decision.
#[derive(Debug)]
pub struct Rewriter<C, T> {
    policy: Policy<C, T>,
}

#[derive(Debug)]
enum Policy<C, T> {
    Off,
    LookBackWindow(LookBackRewriter<C, T>),
    Capping(CappingRewriter<C, T>),
}

impl<C: Copy + Eq + Hash, T> Rewriter<C, T> {
    /// Begins a stream whose new chunks go to containers of `container_bytes`.
    #[must_use]
    pub fn new(rewriting: &Rewriting, container_bytes: u32) -> Self {
        let policy = match *rewriting {
            Rewriting::Off => Policy::Off,
            Rewriting::LookBackWindow(window) => {
                Policy::LookBackWindow(LookBackRewriter::new(window, container_bytes))
            }
            Rewriting::Capping(capping) => Policy::Capping(CappingRewriter::new(capping)),
        };
        Self { policy }
    }

    /// Takes the next chunk, and hands out those that are decided by now. Every payload comes
    /// out once, in the order of the stream; a new chunk always with [`Decision::Keep`].
    pub fn push(&mut self, chunk: StreamChunk<C>, payload: T, decide: &mut dyn FnMut(T, Decision)) {
        match &mut self.policy {
            Policy::Off => decide(payload, Decision::Keep),
            Policy::LookBackWindow(window) => window.push(chunk, payload, decide),
            Policy::Capping(capping) => capping.push(chunk, payload, decide),
        }
    }

    /// The stream ends, or pauses: hands out all that is left. What was learned stays.
    pub fn finish(&mut self, decide: &mut dyn FnMut(T, Decision)) {
        match &mut self.policy {
            Policy::Off => {}
            Policy::LookBackWindow(window) => window.finish(decide),
            Policy::Capping(capping) => capping.finish(decide),
        }
    }
}
