//! A restore plan on its way into the files.
//!
//! Needed groups are read and decompressed once. Every chunk that goes to the sink, and every base that is
//! stored whole, is verified by its full fingerprint, and neighbouring chunks of one stream are handed
//! to the sink in one piece. Where chunks are stored as deltas there are two passes. The first reads the
//! containers of deltas: deltas, which are small, stay in memory; whole chunks go to the sink, and stay as
//! well if they are bases. The second reads the containers of data: the thread that has a base, verified,
//! applies the deltas that wait for it, and to what comes out those that wait for that. Each chunk is made
//! once, whatever wants it. A base that can't be had takes with it what is made of it, and nothing else.
//!
//! Where an object is gone since the streams were planned, what it was needed for is read chunk by chunk from
//! wherever it was moved.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::delta_nodes::DeltaNodes;
use super::plan::{ChunkSink, Job, Piece};
use super::reader::{ReadError, Reader, base_message};
use crate::container::{
    ChunkAddress, ChunkPlaces, ContainerId, ContainerKind, DeltaMethod, GroupOpener, GroupRead,
    LoadedSection, Slot,
};
use crate::format::ObjectError;
use crate::pipeline::{Fetching, ReadingRoom, ReadingWork, Stage, Stages, Stopped};

/// Reads what these jobs need, and hands it to the sink.
pub(super) fn execute(
    reader: &Reader,
    room: &ReadingRoom,
    sink: &dyn ChunkSink,
    jobs: Vec<Job>,
    nodes: &DeltaNodes,
) {
    let restoring = Restoring {
        reader,
        read_bytes_max: room.read_bytes_max(),
        sink,
        stages: room.stages().clone(),
        nodes,
        kept: (0..nodes.len()).map(|_| Mutex::default()).collect(),
    };
    let (deltas, data): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.is_deltas);
    if !deltas.is_empty() {
        room.run(&deltas, &restoring, || ());
        let is_early_root = |&node: &u32| nodes.node(node).is_early_root();
        let roots: Vec<u32> = (0..nodes.len() as u32).filter(is_early_root).collect();
        room.run(&roots, &EarlyRoots(&restoring), || ());
    }
    room.run(&data, &restoring, || ());
}

struct Restoring<'a> {
    reader: &'a Reader,
    read_bytes_max: usize,
    sink: &'a dyn ChunkSink,
    stages: Stages,
    nodes: &'a DeltaNodes,
    /// What is kept of each node.
    kept: Vec<Mutex<Kept>>,
}

/// What is kept of a node from the first pass to the second.
#[derive(Debug, Default)]
enum Kept {
    /// Nothing yet, or any more.
    #[default]
    Nothing,
    Bytes(Box<[u8]>),
    /// It can't be had, and whoever wants it was told.
    Lost,
}

/// A container that is being read, and what each of its groups is needed for.
struct Wanted {
    loaded: Arc<LoadedSection>,
    needs: Vec<Vec<Need>>,
    nodes: Vec<Vec<NeedOfNode>>,
    /// What this takes in memory while it waits, shared out over its reads.
    bytes_a_read: usize,
}

/// Chunks of one group, stored whole, that are part of a stream.
#[derive(Debug, Clone)]
struct Need {
    stream: u32,
    offset: u64,
    chunks: Range<usize>,
}

/// A chunk of a group that is a node.
#[derive(Debug, Clone, Copy)]
struct NeedOfNode {
    node: u32,
    chunk: usize,
}

/// Sealed groups of a container.
struct FetchedGroups {
    wanted: Arc<Wanted>,
    read: GroupRead,
    bytes: Vec<u8>,
}

impl ReadingWork for Restoring<'_> {
    type Job = Job;
    type Fetched = FetchedGroups;

    fn fetch(&self, job: &Job, fetching: &Fetching<'_, FetchedGroups>) -> Result<(), Stopped> {
        if job.pieces.is_empty() && job.nodes.is_empty() {
            return Ok(());
        }
        let section = || self.reader.containers().section_in(job.place, None);
        let loaded = match fetching.read(0, section) {
            Ok(loaded) => loaded,
            Err(error) if error.is_missing() => {
                self.reader.containers().note_gone(job.place.object);
                fetching.read(0, || self.restore_moved(job));
                return Ok(());
            }
            Err(error) => {
                self.lose_container(job, &error.to_string());
                return Ok(());
            }
        };
        // Objects never change; one that is not what it was when it was planned was put in its place.
        let Some(mut wanted) = Wanted::new(loaded, &job.pieces) else {
            self.lose_container(job, "the container is not the one that was there before");
            return Ok(());
        };
        self.want_nodes(&mut wanted, &job.nodes);
        let groups = wanted.groups();
        let reads = wanted
            .loaded
            .section
            .group_reads(&groups, self.read_bytes_max);
        wanted.bytes_a_read = wanted.memory_bytes() / reads.len().max(1);
        let wanted = Arc::new(wanted);
        for read in reads {
            self.fetch_groups(&wanted, read, fetching)?;
        }
        Ok(())
    }

    fn compute(&self, fetched: FetchedGroups, opener: &mut GroupOpener) {
        let FetchedGroups {
            wanted,
            read,
            mut bytes,
        } = fetched;
        let section = &wanted.loaded.section;
        for &group in &read.groups {
            if self.sink.is_cancelled() {
                return;
            }
            let sealed = &mut bytes[read.range_of(section, group)];
            self.restore_group(&wanted, group, sealed, opener);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }
}

impl Wanted {
    /// What a job needs; nothing if the container does not hold it.
    fn new(loaded: Arc<LoadedSection>, pieces: &[Piece]) -> Option<Self> {
        let section = &loaded.section;
        let mut needs: Vec<Vec<Need>> = vec![Vec::new(); section.groups.len()];
        for piece in pieces {
            let mut offset = piece.offset;
            let chunks = section.chunks_in(piece.first, piece.chunk_count)?;
            let (mut chunk, end) = (chunks.start, chunks.end);
            while chunk < end {
                let index = section.group_of(chunk);
                let group = &section.groups[index];
                let group_end = (group.first_chunk + group.chunk_count) as usize;
                let chunks = chunk..end.min(group_end);
                let lengths = &section.lengths[chunks.clone()];
                chunk = chunks.end;
                needs[index].push(Need {
                    stream: piece.stream,
                    offset,
                    chunks,
                });
                offset += lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
            }
        }
        Some(Self {
            nodes: vec![Vec::new(); needs.len()],
            loaded,
            needs,
            bytes_a_read: 0,
        })
    }

    fn memory_bytes(&self) -> usize {
        let needs: usize = self.needs.iter().map(Vec::capacity).sum();
        let nodes: usize = self.nodes.iter().map(Vec::capacity).sum();
        self.loaded.section.memory_bytes()
            + needs * size_of::<Need>()
            + nodes * size_of::<NeedOfNode>()
    }

    /// The groups that are needed, ascending.
    fn groups(&self) -> Vec<usize> {
        let all = 0..self.needs.len();
        all.filter(|&index| !self.needs[index].is_empty() || !self.nodes[index].is_empty())
            .collect()
    }
}

/// Groups: fetched, opened, given away.
impl Restoring<'_> {
    fn want_nodes(&self, wanted: &mut Wanted, nodes: &[u32]) {
        let section = &wanted.loaded.section;
        for &node in nodes {
            match section.chunk_in(self.nodes.node(node).address.slot) {
                Some(chunk) => {
                    let group = section.group_of(chunk);
                    wanted.nodes[group].push(NeedOfNode { node, chunk });
                }
                None => self.lose(node, "it is not there any more"),
            }
        }
    }

    /// Fetches groups, together if that can be done.
    fn fetch_groups(
        &self,
        wanted: &Arc<Wanted>,
        read: GroupRead,
        fetching: &Fetching<'_, FetchedGroups>,
    ) -> Result<(), Stopped> {
        let room = fetching.reserve(read.bytes + wanted.bytes_a_read)?;
        let containers = self.reader.containers();
        let fetch = || containers.fetch_groups(&wanted.loaded, &read);
        match fetching.read(read.bytes, fetch) {
            Ok(bytes) => {
                let wanted = Arc::clone(wanted);
                let fetched = FetchedGroups {
                    wanted,
                    read,
                    bytes,
                };
                fetching.hand_on(room, fetched)
            }
            Err(_) if read.groups.len() > 1 => {
                drop(room);
                for read in read.one_by_one(&wanted.loaded.section) {
                    self.fetch_groups(wanted, read, fetching)?;
                }
                Ok(())
            }
            Err(error) if error.is_missing() => {
                self.reader.containers().note_gone(wanted.loaded.object.id);
                fetching.read(0, || self.restore_moved_group(wanted, read.groups[0]));
                Ok(())
            }
            Err(error) => {
                self.lose_group(wanted, read.groups[0], &error);
                Ok(())
            }
        }
    }

    fn lose_container(&self, job: &Job, error: &str) {
        for piece in &job.pieces {
            let parts = piece.group_count as usize;
            self.sink.lost(piece.stream, piece.offset, parts, error);
        }
        job.nodes.iter().for_each(|&node| self.lose(node, error));
    }

    fn lose_group(&self, wanted: &Wanted, group: usize, error: &ObjectError) {
        let error = error.to_string();
        for need in &wanted.needs[group] {
            self.sink.lost(need.stream, need.offset, 1, &error);
        }
        for need in &wanted.nodes[group] {
            self.lose(need.node, &error);
        }
    }

    fn restore_group(
        &self,
        wanted: &Wanted,
        group: usize,
        sealed: &mut [u8],
        opener: &mut GroupOpener,
    ) {
        let stages = opener.stages().clone();
        let plain = match opener.open(&wanted.loaded, group, sealed) {
            Ok(plain) => plain,
            Err(error) => return self.lose_group(wanted, group, &error),
        };
        let places = wanted.loaded.section.places_in(group);
        let verify = stages.meter(Stage::Verify);
        let damage = verify.busy(plain.len() as u64, || {
            self.damage(wanted, group, &places, plain)
        });
        for need in &wanted.needs[group] {
            let damaged = damage.iter().find(|(chunk, _)| need.chunks.contains(chunk));
            match damaged {
                None => {
                    let bytes = &plain[places.of_all(&need.chunks)];
                    self.sink.write(need.stream, need.offset, bytes);
                }
                Some((_, error)) => {
                    let error = error.to_string();
                    self.sink.lost(need.stream, need.offset, 1, &error);
                }
            }
        }
        for &NeedOfNode { node, chunk } in &wanted.nodes[group] {
            let damaged = damage.iter().find(|(damaged, _)| *damaged == chunk);
            let bytes = &plain[places.of(chunk)];
            let is_deltas = wanted.loaded.section.kind == ContainerKind::Deltas;
            match damaged {
                Some((_, error)) => self.lose(node, &error.to_string()),
                None if is_deltas => self.keep(node, bytes),
                None => self.resolve(node, bytes, &stages),
            }
        }
    }

    /// The needed chunks of a group, stored whole, that do not have their fingerprints. Each is looked at
    /// once, however many streams it goes to.
    fn damage(
        &self,
        wanted: &Wanted,
        group: usize,
        places: &ChunkPlaces,
        plain: &[u8],
    ) -> Vec<(usize, ObjectError)> {
        let loaded = &wanted.loaded;
        let mut is_verified = vec![false; places.count()];
        let mut damage = Vec::new();
        let needs = wanted.needs[group].iter();
        let roots = wanted.nodes[group].iter().map(|need| need.chunk);
        let roots = roots.filter(|&chunk| loaded.section.delta(chunk).is_none());
        for chunk in needs.flat_map(|need| need.chunks.clone()).chain(roots) {
            let is_known = &mut is_verified[chunk - places.first()];
            if std::mem::replace(is_known, true) {
                continue;
            }
            let bytes = &plain[places.of(chunk)];
            if let Err(error) = self.reader.containers().verify_chunk(loaded, chunk, bytes) {
                damage.push((chunk, error));
            }
        }
        damage
    }
}

/// What lay in objects that are gone, from wherever it lies now.
impl Restoring<'_> {
    /// What was needed of a container whose object is gone: in as many parts as were announced, as long as each
    /// other.
    fn restore_moved(&self, job: &Job) {
        for piece in &job.pieces {
            let first = u32::from(piece.first.0);
            let (parts, count) = (piece.group_count, piece.chunk_count);
            let part_end =
                |part: u32| (u64::from(part) * u64::from(count) / u64::from(parts)) as u32;
            let mut offset = piece.offset;
            for part in 0..parts {
                if self.sink.is_cancelled() {
                    return;
                }
                let slots = first + part_end(part)..first + part_end(part + 1);
                match self.read_chunks(job.place.container, slots) {
                    Ok(bytes) => {
                        self.sink.write(piece.stream, offset, &bytes);
                        offset += bytes.len() as u64;
                    }
                    Err(error) => {
                        // How long they are is not known, so where the others belong is not.
                        let (lost, error) = ((parts - part) as usize, error.to_string());
                        self.sink.lost(piece.stream, offset, lost, &error);
                        break;
                    }
                }
            }
        }
        job.nodes.iter().for_each(|&node| self.restore_node(node));
    }

    /// The same of a group.
    fn restore_moved_group(&self, wanted: &Wanted, group: usize) {
        let section = &wanted.loaded.section;
        for need in &wanted.needs[group] {
            if self.sink.is_cancelled() {
                return;
            }
            let first = u32::from(section.slots[need.chunks.start].0);
            let slots = first..first + need.chunks.len() as u32;
            match self.read_chunks(section.id, slots) {
                Ok(bytes) => self.sink.write(need.stream, need.offset, &bytes),
                Err(error) => {
                    let error = error.to_string();
                    self.sink.lost(need.stream, need.offset, 1, &error);
                }
            }
        }
        for need in &wanted.nodes[group] {
            self.restore_node(need.node);
        }
    }

    fn read_chunks(&self, container: ContainerId, slots: Range<u32>) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        for slot in slots {
            let slot = Slot(slot as u16);
            bytes.extend_from_slice(&self.reader.chunk(ChunkAddress { container, slot })?);
        }
        Ok(bytes)
    }

    fn restore_node(&self, number: u32) {
        let node = self.nodes.node(number);
        match self.reader.stored(node.address) {
            Err(error) => self.lose(number, &error.to_string()),
            Ok((_, bytes)) if node.is_kept() => self.keep(number, &bytes),
            Ok((_, bytes)) => self.resolve(number, &bytes, &self.stages),
        }
    }
}

/// Nodes: kept, made of each other, lost.
impl Restoring<'_> {
    fn kept(&self, node: u32) -> std::sync::MutexGuard<'_, Kept> {
        let kept = self.kept[node as usize].lock();
        kept.unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a delta, or a root, unless what it is for is lost.
    fn keep(&self, node: u32, bytes: &[u8]) {
        let mut kept = self.kept(node);
        if !matches!(*kept, Kept::Lost) {
            *kept = Kept::Bytes(bytes.into());
        }
    }

    /// What was kept of a node; nothing when it is lost.
    fn take(&self, node: u32) -> Option<Box<[u8]>> {
        let mut kept = self.kept(node);
        match std::mem::take(&mut *kept) {
            Kept::Bytes(bytes) => Some(bytes),
            other => {
                *kept = other;
                None
            }
        }
    }

    /// Makes what waits for a chunk, whose bytes these are, and what waits for that. As deep as its chain
    /// is long.
    fn resolve(&self, base: u32, bytes: &[u8], stages: &Stages) {
        for number in self.nodes.dependents(base) {
            if self.sink.is_cancelled() {
                return;
            }
            let method = self.nodes.node(number).method;
            let (Some(method), Some(delta)) = (method, self.take(number)) else {
                continue;
            };
            match self.undelta(number, method, bytes, &delta, stages) {
                Ok(chunk) => {
                    drop(delta);
                    for output in self.nodes.outputs(number) {
                        self.sink.write(output.stream, output.offset, &chunk);
                    }
                    self.resolve(number, &chunk, stages);
                }
                Err(error) => self.lose(number, &error),
            }
        }
    }

    /// The chunk that a delta makes of its base. Verified if a stream wants it: what is only a base is right
    /// if what is made of it is.
    fn undelta(
        &self,
        number: u32,
        method: DeltaMethod,
        base: &[u8],
        delta: &[u8],
        stages: &Stages,
    ) -> Result<Vec<u8>, String> {
        let node = self.nodes.node(number);
        let meter = stages.meter(Stage::Decompress);
        let apply = || self.reader.deltas().apply(method, base, delta, node.length);
        let chunk = meter.busy(u64::from(node.length), apply);
        let chunk = chunk.map_err(|error| format!("the delta in {}: {error}", node.address))?;
        if self.nodes.outputs(number).next().is_none() {
            return Ok(chunk);
        }
        let fingerprinter = self.reader.containers().fingerprinter();
        let meter = stages.meter(Stage::Verify);
        let actual = meter.busy(u64::from(node.length), || {
            fingerprinter.fingerprint(ContainerKind::Deltas, &chunk)
        });
        if actual != node.fingerprint {
            return Err(format!(
                "the chunk made of the delta in {} does not have its fingerprint",
                node.address
            ));
        }
        Ok(chunk)
    }

    /// A node can't be had, nor what is made of it: tells all that want them, once.
    fn lose(&self, first: u32, error: &str) {
        let lost = self.nodes.node(first).address;
        let mut waiting = vec![first];
        while let Some(number) = waiting.pop() {
            let before = std::mem::replace(&mut *self.kept(number), Kept::Lost);
            if matches!(before, Kept::Lost) {
                continue;
            }
            let address = self.nodes.node(number).address;
            for output in self.nodes.outputs(number) {
                let (stream, offset) = (output.stream, output.offset);
                match number == first {
                    true => self.sink.lost(stream, offset, 1, error),
                    false => {
                        let message = base_message(&address, &lost, &error);
                        self.sink.lost(stream, offset, 1, &message);
                    }
                }
            }
            waiting.extend(self.nodes.dependents(number));
        }
    }
}

/// Between the passes: what is made of the roots that are in memory.
struct EarlyRoots<'a>(&'a Restoring<'a>);

impl ReadingWork for EarlyRoots<'_> {
    type Job = u32;
    type Fetched = u32;

    fn fetch(&self, &root: &u32, fetching: &Fetching<'_, u32>) -> Result<(), Stopped> {
        let room = fetching.reserve(0)?;
        fetching.hand_on(room, root)
    }

    fn compute(&self, root: u32, opener: &mut GroupOpener) {
        if let Some(bytes) = self.0.take(root) {
            self.0.resolve(root, &bytes, opener.stages());
        }
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}
