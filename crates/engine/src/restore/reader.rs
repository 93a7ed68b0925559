//! Reads a stream in order from its recipe, chunk by chunk.

use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chunks::{ChunkBytes, StoredChunk};
use super::group_cache::GroupCache;
use crate::container::{
    ChunkAddress, ContainerId, ContainerReader, FrontDecompressor, LoadedSection, Slot,
};
use crate::fingerprint::{CheckValue, StreamCheck};
use crate::format::{DecodeError, Decoder, ObjectError};
use crate::object::ObjectId;
use crate::recipe::{ContainerTable, Recipe, Run};
use crate::similarity::Undelta;

/// Why a stream can't be read back.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A container is missing, unreadable or damaged.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A recipe does not agree with the containers it names.
    #[error("a recipe does not agree with container {container}: {reason}")]
    Recipe {
        /// The container it names.
        container: ContainerId,
        /// What is wrong.
        reason: String,
    },
    /// A page of a long recipe is not one.
    #[error("a page of a recipe is damaged: {0}")]
    Page(DecodeError),
    /// The chunks are not those that were backed up.
    #[error("its chunks are not those that were backed up (its check value differs)")]
    Check,
    /// There is no such chunk.
    #[error("there is no chunk in {0}")]
    NoChunk(ChunkAddress),
    /// A chunk stored as a delta can't be had, because a chunk that it is made of can't.
    #[error("{}", base_message(chunk, base, error))]
    Base {
        /// The chunk stored as a delta.
        chunk: ChunkAddress,
        /// Its base, or that one's.
        base: ChunkAddress,
        /// What is wrong with that.
        error: Box<ReadError>,
    },
    /// A chunk that is no file data stands as a base.
    #[error("what is in {0} is no file data")]
    NotData(ChunkAddress),
    /// A base is as deep as the delta to it: following on might never end.
    #[error(
        "it is stored as a delta of depth {depth}, where what is made of it has depth {delta_depth}: \
         deltas go in a circle"
    )]
    TooDeep {
        /// Depth of the base.
        depth: u8,
        /// Depth of the delta.
        delta_depth: u8,
    },
}

/// What [`ReadError::Base`] says.
pub(super) fn base_message(
    chunk: &ChunkAddress,
    base: &ChunkAddress,
    error: &dyn fmt::Display,
) -> String {
    format!("the chunk in {chunk} is made of the one in {base}, which can't be had: {error}")
}

impl ReadError {
    /// The chunk can't be had because `base` can't.
    pub(crate) fn base(chunk: ChunkAddress, base: ChunkAddress, error: ReadError) -> Self {
        let error = Box::new(error);
        ReadError::Base { chunk, base, error }
    }

    /// The container object that is missing, if that is what is wrong.
    pub(crate) fn missing_object(&self) -> Option<ObjectId> {
        match self {
            ReadError::Object(error) if error.is_missing() => Some(error.key()?.id),
            ReadError::Base { error, .. } => error.missing_object(),
            _ => None,
        }
    }

    /// Does this mean that stored bytes are gone or wrong?
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            ReadError::Object(error) => error.is_damage(),
            ReadError::Base { error, .. } => error.is_damage(),
            ReadError::Recipe { .. }
            | ReadError::Page(_)
            | ReadError::Check
            | ReadError::NoChunk(_)
            | ReadError::NotData(_)
            | ReadError::TooDeep { .. } => true,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Reads streams of one repository; may be shared by threads.
#[derive(Debug, Clone)]
pub struct Reader {
    containers: Arc<ContainerReader>,
    groups: Arc<GroupCache>,
    deltas: Arc<Undelta>,
    /// As many as were at work at a time.
    fronts: Arc<Mutex<Vec<FrontDecompressor>>>,
}

impl Reader {
    /// A reader that keeps at most `cache_bytes` of decompressed groups.
    #[must_use]
    pub fn new(containers: Arc<ContainerReader>, cache_bytes: usize) -> Self {
        Self {
            containers,
            groups: Arc::new(GroupCache::new(cache_bytes)),
            deltas: Arc::default(),
            fronts: Arc::default(),
        }
    }

    /// The containers it reads from.
    #[must_use]
    pub fn containers(&self) -> &Arc<ContainerReader> {
        &self.containers
    }

    /// The stream of a recipe, in order.
    #[must_use]
    pub fn stream(&self, recipe: &Recipe) -> StreamReader {
        StreamReader {
            reader: self.clone(),
            runs: self.runs(recipe),
            current: Current::default(),
            check: self.containers.fingerprinter().check(),
            failed: false,
        }
    }

    /// The runs of a recipe, fetching the pages of a long one as they are needed.
    #[must_use]
    pub fn runs(&self, recipe: &Recipe) -> Runs {
        Runs {
            reader: self.clone(),
            stack: vec![Level::of(recipe.clone())],
        }
    }

    /// Where the first chunks of a run lie, as many as lie in one place, and what of the run is left; nothing for
    /// a hole. All but containers that a compaction has moved several times lie in one place.
    ///
    /// # Errors
    /// When the container is not readable or does not have the first of these chunks, or their lengths do not
    /// agree with the run's.
    pub fn locate(&self, run: &Run) -> Result<Option<LocatedFront>, ReadError> {
        let Run::Slots {
            container,
            first,
            count,
            bytes,
        } = *run
        else {
            return Ok(None);
        };
        let mismatch = |reason| ReadError::Recipe { container, reason };
        let found = self.containers.find_front(container, first, count)?;
        let (section, chunks) = found.ok_or_else(|| {
            let Slot(first) = first;
            mismatch(format!("it has no {count} chunks from slot {first} on"))
        })?;
        let lengths = &section.section.lengths[chunks.clone()];
        let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let rest_count = count - chunks.len() as u32;
        let rest_bytes = bytes.checked_sub(total);
        let rest_bytes = rest_bytes.filter(|&rest| (rest == 0) == (rest_count == 0));
        let Some(rest_bytes) = rest_bytes else {
            return Err(mismatch(format!(
                "{total} bytes where {bytes} are expected"
            )));
        };
        let last = section.section.slots[chunks.end - 1];
        let rest = (rest_count > 0).then(|| Run::Slots {
            container,
            // There is no slot after the last; what is not there is told then.
            first: Slot(last.0.saturating_add(1)),
            count: rest_count,
            bytes: rest_bytes,
        });
        Ok(Some(LocatedFront {
            located: LocatedRun { section, chunks },
            rest,
        }))
    }

    /// Works out the check value of a stream from its chunks' fingerprints, without reading
    /// the chunks, and calls `visit` with each run and where it lies (nothing for holes); one that lies in several
    /// places comes in parts.
    ///
    /// # Errors
    /// When a container or page is not readable or does not agree with the recipe.
    pub fn visit_runs(
        &self,
        recipe: &Recipe,
        visit: &mut dyn FnMut(&Run, Option<&LocatedRun>),
    ) -> Result<(u64, CheckValue), ReadError> {
        let mut check = self.containers.fingerprinter().check();
        let mut stream_bytes = 0;
        let mut runs = self.runs(recipe);
        while let Some((run, located)) = runs.next_located()? {
            add_to_check(&mut check, &run, located.as_ref());
            stream_bytes += run.bytes();
            visit(&run, located.as_ref());
        }
        Ok((stream_bytes, check.finish()))
    }

    pub(super) fn groups(&self) -> &GroupCache {
        &self.groups
    }

    /// Decompressors that nobody uses.
    pub(super) fn idle_fronts(&self) -> MutexGuard<'_, Vec<FrontDecompressor>> {
        self.fronts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What applies deltas.
    pub(crate) fn deltas(&self) -> &Undelta {
        &self.deltas
    }
}

/// Adds the chunks of a run, or a hole, to a check value.
pub(crate) fn add_to_check(check: &mut StreamCheck, run: &Run, located: Option<&LocatedRun>) {
    match located {
        None => check.hole(run.bytes()),
        Some(located) => {
            let section = &located.section.section;
            for chunk in located.chunks.clone() {
                check.chunk(section.lengths[chunk], &section.fingerprints[chunk]);
            }
        }
    }
}

/// Where the first chunks of a run lie.
#[derive(Debug, Clone)]
pub struct LocatedFront {
    /// Those that lie in one place.
    pub located: LocatedRun,
    /// The others, if there are any.
    pub rest: Option<Run>,
}

impl LocatedFront {
    /// The part of `run` that is located.
    pub(crate) fn part_of(&self, run: &Run) -> Run {
        match (*run, &self.rest) {
            (
                Run::Slots {
                    container,
                    first,
                    bytes,
                    ..
                },
                Some(rest),
            ) => Run::Slots {
                container,
                first,
                count: self.located.chunks.len() as u32,
                bytes: bytes - rest.bytes(),
            },
            (whole, _) => whole,
        }
    }
}

/// Where the chunks of a run lie.
#[derive(Debug, Clone)]
pub struct LocatedRun {
    /// The container's section.
    pub section: Arc<LoadedSection>,
    /// Indices of the chunks in it.
    pub chunks: std::ops::Range<usize>,
}

impl LocatedRun {
    /// Leaves out chunks from the front, as many as fit in so many bytes, and takes their bytes off.
    pub(crate) fn skip(&mut self, bytes: &mut u64) {
        while let Some(&length) = self.section.section.lengths[self.chunks.clone()].first()
            && u64::from(length) <= *bytes
        {
            *bytes -= u64::from(length);
            self.chunks.start += 1;
        }
    }
}

/// Runs of a recipe in stream order.
#[derive(Debug)]
pub struct Runs {
    reader: Reader,
    stack: Vec<Level>,
}

#[derive(Debug)]
enum Level {
    Runs(std::vec::IntoIter<Run>),
    Pages(u8, std::vec::IntoIter<crate::recipe::RecipePage>),
}

impl Level {
    fn of(recipe: Recipe) -> Self {
        match recipe {
            Recipe::Runs(runs) => Level::Runs(runs.into_iter()),
            Recipe::Paged { level, pages } => Level::Pages(level, pages.into_iter()),
        }
    }
}

impl Runs {
    /// The next run, or as much of it as lies in one place, and where that is (nothing for holes); nothing at the end.
    ///
    /// # Errors
    /// When a page or a container is not readable or does not agree with the recipe.
    pub fn next_located(&mut self) -> Result<Option<(Run, Option<LocatedRun>)>, ReadError> {
        let Some(run) = self.next() else {
            return Ok(None);
        };
        let run = run?;
        let Some(front) = self.reader.locate(&run)? else {
            return Ok(Some((run, None)));
        };
        let part = front.part_of(&run);
        self.put_back(front.rest);
        Ok(Some((part, Some(front.located))))
    }

    /// What is left of the run that came last comes next.
    pub(crate) fn put_back(&mut self, rest: Option<Run>) {
        if let Some(rest) = rest {
            self.stack.push(Level::Runs(vec![rest].into_iter()));
        }
    }
}

impl Iterator for Runs {
    type Item = Result<Run, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.stack.last_mut()? {
                Level::Runs(runs) => match runs.next() {
                    Some(run) => return Some(Ok(run)),
                    None => drop(self.stack.pop()),
                },
                Level::Pages(level, pages) => {
                    let level = *level;
                    let Some(page) = pages.next() else {
                        self.stack.pop();
                        continue;
                    };
                    match self.reader.recipe_page(&page, level) {
                        Ok(recipe) => self.stack.push(Level::of(recipe)),
                        Err(error) => {
                            self.stack.clear();
                            return Some(Err(error));
                        }
                    }
                }
            }
        }
    }
}

/// Most bytes in a page of a recipe: 1,024 runs or pages with their containers.
const RECIPE_PAGE_BYTES_MAX: u64 = 1 << 20;

impl Reader {
    /// The recipe that a page of a paged recipe of that level holds.
    ///
    /// # Errors
    /// When it can't be read, or is not what was announced.
    pub fn recipe_page(
        &self,
        page: &crate::recipe::RecipePage,
        level: u8,
    ) -> Result<Recipe, ReadError> {
        let runs = Recipe::Runs(page.page.clone());
        if runs.stream_bytes() > RECIPE_PAGE_BYTES_MAX {
            return Err(ReadError::Page(DecodeError::new("it is too long")));
        }
        let mut bytes = Vec::new();
        let mut stream = self.stream(&runs);
        while let Some(chunk) = stream.next_chunk()? {
            bytes.extend_from_slice(&chunk);
        }
        let mut decoder = Decoder::new(&bytes);
        let table = ContainerTable::decode(&mut decoder).map_err(ReadError::Page)?;
        let recipe = Recipe::decode(&mut decoder, &table).map_err(ReadError::Page)?;
        decoder.finish().map_err(ReadError::Page)?;
        let recipe_level = match &recipe {
            Recipe::Runs(_) => 0,
            Recipe::Paged { level, .. } => *level,
        };
        if recipe_level + 1 != level || recipe.stream_bytes() != page.stream_bytes {
            let reason = DecodeError::new("it is not the page that was announced");
            return Err(ReadError::Page(reason));
        }
        Ok(recipe)
    }
}

/// A stream read in order. Reading stops at the first damage.
#[derive(Debug)]
pub struct StreamReader {
    reader: Reader,
    runs: Runs,
    current: Current,
    check: StreamCheck,
    failed: bool,
}

/// What of the current run is still to be read.
#[derive(Debug, Default)]
struct Current {
    hole_bytes: u64,
    located: Option<LocatedRun>,
    /// A chunk, and how much of it was given.
    chunk: Option<(ChunkBytes, usize)>,
}

impl StreamReader {
    /// The bytes of the next chunk or part of a hole; nothing at the end.
    ///
    /// # Errors
    /// When a container is not readable or damaged.
    pub fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        if !self.advance()? {
            return Ok(None);
        }
        if let Some((chunk, given)) = self.current.chunk.take() {
            return Ok(Some(chunk[given..].to_vec()));
        }
        let bytes = self.current.hole_bytes.min(1 << 20);
        self.current.hole_bytes -= bytes;
        Ok(Some(vec![0; bytes as usize]))
    }

    /// The check value of what was read so far; of the whole stream once it is at its end.
    #[must_use]
    pub fn check(&self) -> CheckValue {
        self.check.finish()
    }

    /// Makes sure that there are bytes to give; false at the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            if self.current.hole_bytes > 0
                || self
                    .current
                    .chunk
                    .as_ref()
                    .is_some_and(|(chunk, given)| *given < chunk.len())
            {
                return Ok(true);
            }
            if let Some(located) = &mut self.current.located
                && let Some(chunk) = located.chunks.next()
            {
                let loaded = Arc::clone(&located.section);
                let bytes = self.reader.located_chunk(StoredChunk { loaded, chunk })?;
                self.current.chunk = Some((bytes, 0));
                continue;
            }
            let Some((run, located)) = self.runs.next_located()? else {
                return Ok(false);
            };
            add_to_check(&mut self.check, &run, located.as_ref());
            self.current.hole_bytes = if located.is_none() { run.bytes() } else { 0 };
            self.current.located = located;
        }
    }
}

impl Read for StreamReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.failed {
            return Err(io::Error::other("the stream has failed before"));
        }
        match self.advance() {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(error) => {
                self.failed = true;
                return Err(error.into());
            }
        }
        if let Some((chunk, given)) = &mut self.current.chunk
            && *given < chunk.len()
        {
            let count = (chunk.len() - *given).min(buffer.len());
            buffer[..count].copy_from_slice(&chunk[*given..*given + count]);
            *given += count;
            return Ok(count);
        }
        let count = usize::try_from(self.current.hole_bytes)
            .map_or(buffer.len(), |bytes| bytes.min(buffer.len()));
        buffer[..count].fill(0);
        self.current.hole_bytes -= count as u64;
        Ok(count)
    }
}
