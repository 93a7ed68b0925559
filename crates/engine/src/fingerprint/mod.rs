//! Fingerprints: keyed BLAKE3-256 of a chunk (docs/format/v1.md, §3 and §6).
//!
//! File data and metadata pages are fingerprinted under different keys, so that a chunk of
//! the one kind is never taken for one of the other.

mod many;

use std::fmt;

use zeroize::Zeroizing;

use self::many::ManyHasher;
use crate::container::ContainerKind;

/// Chunks fingerprinted together: some lanes full, and bytes that the second cache holds.
const CHUNKS_TOGETHER: usize = 64;

/// The keyed BLAKE3-256 of a chunk. Chunks of equal fingerprints are equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// The first eight bytes as a big-endian integer: what the index is sorted by.
    #[must_use]
    pub fn prefix(&self) -> u64 {
        let mut first = [0u8; 8];
        first.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(first)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({:016x}…)", self.prefix())
    }
}

/// The keys under which chunks are fingerprinted.
pub struct Fingerprinter {
    data: Zeroizing<[u8; 32]>,
    metadata: Zeroizing<[u8; 32]>,
    check: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for Fingerprinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprinter")
    }
}

impl Fingerprinter {
    /// Derives the keys from the fingerprint secret of a repository.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        let derive = |context| Zeroizing::new(blake3::derive_key(context, secret));
        Self {
            data: derive("onefold v1 fingerprint data"),
            metadata: derive("onefold v1 fingerprint metadata"),
            check: derive("onefold v1 file check"),
        }
    }

    /// The fingerprint of a chunk that lies, or would lie, in a container of `kind`.
    #[must_use]
    pub fn fingerprint(&self, kind: ContainerKind, chunk: &[u8]) -> Fingerprint {
        Fingerprint(*blake3::keyed_hash(self.key(kind), chunk).as_bytes())
    }

    /// The fingerprints of consecutive chunks of these lengths, which lie, or would lie, in
    /// containers of `kind`: those of [`fingerprint`](Self::fingerprint), made together, which is
    /// faster.
    ///
    /// # Panics
    /// When there are fewer bytes than the lengths say.
    #[must_use]
    pub fn fingerprints(
        &self,
        kind: ContainerKind,
        bytes: &[u8],
        lengths: &[u32],
    ) -> Vec<Fingerprint> {
        let hasher = ManyHasher::new(self.key(kind));
        let mut fingerprints = vec![Fingerprint([0; Fingerprint::BYTES]); lengths.len()];
        let mut start = 0;
        let batches = lengths.chunks(CHUNKS_TOGETHER);
        for (batch, lengths) in batches.enumerate() {
            let chunk = |&length: &u32| {
                let chunk = &bytes[start..start + length as usize];
                start += chunk.len();
                chunk
            };
            let chunks: Vec<&[u8]> = lengths.iter().map(chunk).collect();
            hasher.hash(&chunks, &mut |number, hash| {
                fingerprints[batch * CHUNKS_TOGETHER + number] = Fingerprint(hash);
            });
        }
        fingerprints
    }

    fn key(&self, kind: ContainerKind) -> &[u8; 32] {
        match kind {
            ContainerKind::Data | ContainerKind::Deltas => &self.data,
            ContainerKind::Metadata => &self.metadata,
        }
    }

    /// Keyed hash of a name, which decides where directory pages are cut.
    #[must_use]
    pub fn name_hash(&self, name: &[u8]) -> u32 {
        let hash = blake3::keyed_hash(&self.check, name);
        let mut first = [0u8; 4];
        first.copy_from_slice(&hash.as_bytes()[..4]);
        u32::from_le_bytes(first)
    }

    /// Starts the check value of a stream (docs/format/v1.md, §9).
    #[must_use]
    pub fn check(&self) -> StreamCheck {
        StreamCheck(Box::new(blake3::Hasher::new_keyed(&self.check)))
    }
}

/// The check value of a stream: keyed BLAKE3 over its chunks and holes, in order.
#[derive(Debug, Clone)]
pub struct StreamCheck(Box<blake3::Hasher>);

impl StreamCheck {
    /// Adds a chunk of `length` bytes.
    pub fn chunk(&mut self, length: u32, fingerprint: &Fingerprint) {
        let mut item = [0u8; 37];
        item[0] = 1;
        item[1..5].copy_from_slice(&length.to_le_bytes());
        item[5..].copy_from_slice(&fingerprint.0);
        self.0.update(&item);
    }

    /// Adds a hole of `length` bytes.
    pub fn hole(&mut self, length: u64) {
        let mut item = [0u8; 9];
        item[0] = 2;
        item[1..].copy_from_slice(&length.to_le_bytes());
        self.0.update(&item);
    }

    /// The value: the first 16 bytes of the hash.
    #[must_use]
    pub fn finish(&self) -> CheckValue {
        let mut value = [0u8; 16];
        value.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        CheckValue(value)
    }
}

/// The check value of a stream, 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckValue(pub [u8; 16]);
