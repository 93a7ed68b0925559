//! Chunks of bytes that are handed in piece by piece: for callers that have no reader to lend.
//!
//! Enters: pieces of any sizes. Leaves: the chunks of all pieces laid end to end, each as soon as it
//! is certain, the same as of the whole in memory.
//!
//! Memory: what is not yet cut, fewer than `max_bytes` bytes between two pieces and fewer than twice
//! as many while one is taken. A piece is cut where it lies as far as that goes; only bytes near
//! the borders of pieces are copied.

use crate::Chunker;
use crate::two_stage::Ahead;
use std::fmt;

/// Cuts pieces that are fed to it; see [`FeedChunker::feed`].
///
/// ```
/// use chunking::{Chunker, FeedChunker, KeyMaterial, Parameters};
/// let chunker = Chunker::new(&Parameters::default(), KeyMaterial::Unkeyed)?;
/// let mut feed = FeedChunker::new(chunker);
/// let mut lengths = Vec::new();
/// for piece in [&[7u8; 60_000][..], &[7; 40_000]] {
///     feed.feed(piece, |chunk| lengths.push(chunk.len()));
/// }
/// let total = feed.finish(|chunk| lengths.push(chunk.len()));
/// assert_eq!((lengths, total), (vec![65_536, 34_464], 100_000));
/// # Ok::<(), chunking::ParameterError>(())
/// ```
#[derive(Clone)]
pub struct FeedChunker {
    chunker: Chunker,
    /// What was fed and is not yet cut.
    pending: Vec<u8>,
    /// Where in the stream `pending` begins.
    offset: u64,
    /// Marks of bytes behind it.
    ahead: Option<Ahead>,
}

impl FeedChunker {
    /// A stream of which nothing was fed yet.
    #[must_use]
    pub fn new(chunker: Chunker) -> Self {
        Self {
            chunker,
            pending: Vec::new(),
            offset: 0,
            ahead: None,
        }
    }

    /// Takes the next piece of the stream, and hands each chunk that is certain now to `each`, in
    /// order.
    pub fn feed(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) {
        let max_bytes = self.chunker.parameters().max_bytes as usize;
        let old = self.pending.len();
        // Bytes of `pending` that are cut, and bytes of the piece that were copied there.
        let (mut start, mut copied) = (0, 0);
        while start < old {
            let wanted = (start + max_bytes).saturating_sub(old);
            if wanted > piece.len() {
                self.pending.extend_from_slice(&piece[copied..]);
                self.pending.drain(..start);
                return;
            }
            self.pending
                .extend_from_slice(&piece[copied..wanted.max(copied)]);
            copied = wanted.max(copied);
            let rest = &self.pending[start..];
            let length = self.chunker.cut_next(&mut self.ahead, rest);
            each(&self.pending[start..start + length]);
            start += length;
            self.offset += length as u64;
        }
        // The next chunk begins in the piece itself.
        self.pending.clear();
        let mut rest = &piece[start - old..];
        while rest.len() >= max_bytes {
            let length = self.chunker.cut_next(&mut self.ahead, rest);
            each(&rest[..length]);
            rest = &rest[length..];
            self.offset += length as u64;
        }
        self.pending.extend_from_slice(rest);
    }

    /// Hands out what is left: the stream ends here. Returns its length in bytes.
    pub fn finish(mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let mut rest = &self.pending[..];
        while !rest.is_empty() {
            let length = self.chunker.cut_next(&mut self.ahead, rest);
            each(&rest[..length]);
            rest = &rest[length..];
        }
        self.offset + self.pending.len() as u64
    }

    /// Where in the stream the next chunk begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that were fed and not handed out: fewer than `max_bytes`.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }
}

/// Never shows the key or the data.
impl fmt::Debug for FeedChunker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedChunker")
            .field("chunker", &self.chunker)
            .field("offset", &self.offset)
            .field("pending_bytes", &self.pending.len())
            .finish_non_exhaustive()
    }
}
