//! The chunks of a plan that are stored as deltas, and the bases that they are made of.
//!
//! Each such chunk and each base is one *node*, however many streams want it and however many chunks are
//! made of it. A node knows its base, the nodes made of it (*dependents*), and where its bytes go
//! (*outputs*). A base that is stored whole is a *root*; every chain ends at one, because a base is less
//! deep than what is made of it (`chunks.rs`). Everything is added at the end of lists, so that what a
//! stream added can be taken back when the stream turns out to be lost.

use std::collections::HashMap;

use super::chunks::StoredChunk;
use super::reader::ReadError;
use crate::container::{ChunkAddress, ContainerKind, ContainerReader, DeltaMethod, SectionPlace};
use crate::fingerprint::Fingerprint;
use crate::object::ObjectId;

/// No node, no output.
const NONE: u32 = u32::MAX;

/// A chunk stored as a delta, or a base.
#[derive(Debug)]
pub(super) struct Node {
    pub address: ChunkAddress,
    /// The object that it was found in.
    object: ObjectId,
    pub fingerprint: Fingerprint,
    /// Bytes of the chunk.
    pub length: u32,
    /// How it is made of its base; nothing for a root.
    pub method: Option<DeltaMethod>,
    /// What of it is kept from the first pass to the second: a delta, or a root out of a container of
    /// deltas.
    kept_bytes: u32,
    base: u32,
    first_dependent: u32,
    next_dependent: u32,
    first_output: u32,
}

impl Node {
    /// Is it a root that is read before the containers of data?
    pub fn is_early_root(&self) -> bool {
        self.method.is_none() && self.is_kept()
    }

    /// Does what is stored of it stay in memory from the first pass to the second?
    pub fn is_kept(&self) -> bool {
        self.kept_bytes > 0
    }
}

/// Where the bytes of a chunk go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    pub stream: u32,
    pub offset: u64,
}

#[derive(Debug)]
struct ListedOutput {
    output: Output,
    node: u32,
    next: u32,
}

/// The nodes of a plan.
#[derive(Debug, Default)]
pub(super) struct DeltaNodes {
    nodes: Vec<Node>,
    outputs: Vec<ListedOutput>,
    numbers: HashMap<ChunkAddress, u32>,
    kept_bytes: usize,
}

/// Memory beside its place in the list: what holds its bytes between the passes, with what the allocator
/// adds.
const NODE_BYTES: usize = 48;

impl DeltaNodes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node of that number.
    pub fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    /// Memory that they take, and will take when the deltas are read.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.nodes.len() * NODE_BYTES
            + self.outputs.capacity() * size_of::<ListedOutput>()
            + self.numbers.capacity() * (size_of::<(ChunkAddress, u32)>() + 2)
            + self.kept_bytes
    }

    /// The nodes that are made of one.
    pub fn dependents(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let known = |number: u32| Some(number).filter(|&number| number != NONE);
        let first = known(self.node(number).first_dependent);
        std::iter::successors(first, move |&dependent| {
            known(self.node(dependent).next_dependent)
        })
    }

    /// Where the bytes of a node go.
    pub fn outputs(&self, number: u32) -> impl Iterator<Item = Output> + '_ {
        let known = |at: u32| self.outputs.get(at as usize);
        let first = known(self.node(number).first_output);
        let all = std::iter::successors(first, move |listed| known(listed.next));
        all.map(|listed| listed.output)
    }

    /// Adds a chunk stored as a delta, with its bases. Returns the new nodes, whose containers are to be
    /// read.
    ///
    /// # Errors
    /// When a base is not what the delta says; nothing is added then.
    pub fn add(
        &mut self,
        containers: &ContainerReader,
        chunk: StoredChunk,
        output: Output,
    ) -> Result<Vec<(u32, StoredChunk)>, ReadError> {
        let mut chain = Vec::new();
        let mut at = chunk;
        let mut number = loop {
            if let Some(&known) = self.numbers.get(&at.address()) {
                break known;
            }
            let Some(&delta) = at.delta() else {
                chain.push(at);
                break NONE;
            };
            let base = at.base(containers, &delta)?;
            chain.push(std::mem::replace(&mut at, base));
        };
        let mut new = Vec::with_capacity(chain.len());
        for chunk in chain.into_iter().rev() {
            number = self.push(&chunk, number);
            new.push((number, chunk));
        }
        let node = &mut self.nodes[number as usize];
        let next = std::mem::replace(&mut node.first_output, self.outputs.len() as u32);
        self.outputs.push(ListedOutput {
            output,
            node: number,
            next,
        });
        Ok(new)
    }

    /// Adds a node behind its base, or a root.
    fn push(&mut self, chunk: &StoredChunk, base: u32) -> u32 {
        let number = self.nodes.len() as u32;
        let section = &chunk.loaded.section;
        let is_early = section.kind == ContainerKind::Deltas;
        let kept_bytes = match is_early {
            true => section.stored_bytes(chunk.chunk),
            false => 0,
        };
        let next_dependent = match self.nodes.get_mut(base as usize) {
            Some(base) => std::mem::replace(&mut base.first_dependent, number),
            None => NONE,
        };
        self.nodes.push(Node {
            address: chunk.address(),
            object: chunk.loaded.object.id,
            fingerprint: section.fingerprints[chunk.chunk],
            length: section.lengths[chunk.chunk],
            method: chunk.delta().map(|delta| delta.method),
            kept_bytes,
            base,
            first_dependent: NONE,
            next_dependent,
            first_output: NONE,
        });
        self.numbers.insert(chunk.address(), number);
        self.kept_bytes += kept_bytes as usize;
        number
    }

    /// How much there is: for [`DeltaNodes::take_back`].
    pub fn mark(&self) -> (usize, usize) {
        (self.nodes.len(), self.outputs.len())
    }

    /// Takes out what came after a mark. Returns where the nodes taken out lie, the last first.
    pub fn take_back(&mut self, (nodes, outputs): (usize, usize)) -> Vec<SectionPlace> {
        while self.outputs.len() > outputs
            && let Some(listed) = self.outputs.pop()
        {
            self.nodes[listed.node as usize].first_output = listed.next;
        }
        let mut places = Vec::new();
        while self.nodes.len() > nodes
            && let Some(node) = self.nodes.pop()
        {
            if let Some(base) = self.nodes.get_mut(node.base as usize) {
                base.first_dependent = node.next_dependent;
            }
            self.numbers.remove(&node.address);
            self.kept_bytes -= node.kept_bytes as usize;
            places.push(SectionPlace {
                container: node.address.container,
                object: node.object,
            });
        }
        places
    }
}
