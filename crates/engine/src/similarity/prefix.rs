//! Prefix deltas: a target chunk as a zstd frame that may refer to its base, as if the base stood
//! before it.
//!
//! Enter: base and target, 0 … [`CHUNK_BYTES_MAX`](crate::container::CHUNK_BYTES_MAX) bytes each.
//! Leaves: the frame without what the reader knows: its magic and its content size, four to eight
//! bytes of a few hundred (docs/format/delta.md). It is compressed: nothing is gained by
//! compressing such deltas together, and each can be read alone.
//!
//! zstd takes a base that begins with the magic of its trained dictionaries for one. Neither side
//! here does: such bases have no prefix deltas.

use zstd::zstd_safe::{self, CCtx, DCtx};

use crate::container::{CHUNK_BYTES_MAX, CompressionLevel};

/// Most bytes of a base and of a target.
const SIDE_BYTES_MAX: usize = CHUNK_BYTES_MAX as usize;

/// The first bytes of a zstd frame (RFC 8878, §3.1.1).
const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// The first bytes of a trained dictionary (RFC 8878, §5).
const DICTIONARY_MAGIC: [u8; 4] = 0xec30_a437_u32.to_le_bytes();

/// Most bytes of a frame before its blocks: magic, descriptor, window, content size.
const HEADER_BYTES_MAX: usize = 4 + 1 + 1 + 8;

/// Bits of a frame header's descriptor that are never set here: unused, reserved, checksum,
/// dictionary id.
const DESCRIPTOR_FORBIDDEN: u8 = 0b0001_1111;

/// The bit of the descriptor that says: no window, the content is one segment.
const DESCRIPTOR_SINGLE_SEGMENT: u8 = 1 << 5;

/// Why a prefix delta could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The base or the target is longer than any chunk.
    #[error("a {side} of {bytes} bytes is longer than a chunk can be ({limit} bytes)")]
    TooLong {
        /// `"base"` or `"target"`.
        side: &'static str,
        /// Its length.
        bytes: usize,
        /// The greatest length.
        limit: usize,
    },
    /// The base begins as a trained dictionary does.
    #[error("the base begins as a zstd dictionary does: no delta has such a base")]
    DictionaryBase,
    /// The delta has no header, or one that is not for a target of this length.
    #[error(
        "the delta's header is not one of a target of {target_bytes} bytes: \
         the delta is damaged, or its target is another"
    )]
    BadHeader {
        /// Bytes that the target should have.
        target_bytes: usize,
    },
    /// The delta is not exactly one frame.
    #[error("the delta has {delta_bytes} bytes and its frame does not: it is damaged")]
    NotOneFrame {
        /// Bytes of the delta.
        delta_bytes: usize,
    },
    /// zstd could not decode it.
    #[error("the delta does not decode ({reason}): it is damaged, or its base is another")]
    Undecodable {
        /// What zstd says.
        reason: &'static str,
    },
    /// It decodes to fewer bytes than the target has.
    #[error("the delta decodes to {bytes} bytes where its target has {target_bytes}")]
    WrongLength {
        /// Bytes that came out.
        bytes: usize,
        /// Bytes that the target should have.
        target_bytes: usize,
    },
}

/// Encodes chunks against bases, keeping zstd's working memory from one to the next.
pub struct PrefixEncoder {
    level: CompressionLevel,
    context: CCtx<'static>,
    frame: Vec<u8>,
}

impl std::fmt::Debug for PrefixEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrefixEncoder")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl PrefixEncoder {
    /// An encoder of that level; one of [`CompressionLevel::NONE`] never finds a delta.
    ///
    /// # Panics
    /// When zstd can't get its working memory.
    #[must_use]
    pub fn new(level: CompressionLevel) -> Self {
        Self {
            level,
            context: CCtx::create(),
            frame: Vec::new(),
        }
    }

    /// Appends the delta that makes `target` of `base` to `out`. `false`, with `out` as it was, when
    /// the delta would have more than `limit` bytes, when base or target are longer than any chunk,
    /// and for a base that begins as a zstd dictionary does. The same bytes in, the same delta
    /// out, whatever was encoded before.
    pub fn encode(&mut self, base: &[u8], target: &[u8], limit: usize, out: &mut Vec<u8>) -> bool {
        let is_possible = base.len().max(target.len()) <= SIDE_BYTES_MAX
            && !base.starts_with(&DICTIONARY_MAGIC)
            && self.level != CompressionLevel::NONE;
        if !is_possible {
            return false;
        }
        // zstd stops where the buffer ends.
        let bound = zstd_safe::compress_bound(target.len());
        let frame_bytes = limit.saturating_add(HEADER_BYTES_MAX).min(bound);
        if self.frame.len() < frame_bytes {
            self.frame.resize(frame_bytes, 0);
        }
        let frame = &mut self.frame[..frame_bytes];
        let level = self.level.number();
        let encoded = self.context.compress_using_dict(frame, target, base, level);
        let Ok(frame_bytes) = encoded else {
            return false;
        };
        let Some(parts) = FrameParts::of(&self.frame[..frame_bytes]) else {
            return false;
        };
        let fits = parts.header.len() + parts.blocks.len() <= limit;
        if fits {
            out.extend_from_slice(parts.header);
            out.extend_from_slice(parts.blocks);
        }
        fits
    }
}

/// Decodes deltas of [`PrefixEncoder`], keeping zstd's working memory from one to the next.
pub struct PrefixDecoder {
    context: DCtx<'static>,
    frame: Vec<u8>,
}

impl Default for PrefixDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for PrefixDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrefixDecoder").finish_non_exhaustive()
    }
}

impl PrefixDecoder {
    /// A decoder.
    ///
    /// # Panics
    /// When zstd can't get its working memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            context: DCtx::create(),
            frame: Vec::new(),
        }
    }

    /// Appends the target of `delta` to `out`: exactly `target_bytes` bytes.
    ///
    /// Any bytes may be given: no more than `target_bytes` and a copy of the delta is ever
    /// allocated. What comes out of a wrong delta or a wrong base is an error or other bytes of
    /// that length: the caller compares fingerprints.
    ///
    /// # Errors
    /// As [`PrefixError`] lists; `out` is then as it was.
    pub fn decode(
        &mut self,
        base: &[u8],
        delta: &[u8],
        target_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PrefixError> {
        for (side, bytes) in [("base", base.len()), ("target", target_bytes)] {
            if bytes > SIDE_BYTES_MAX {
                let limit = SIDE_BYTES_MAX;
                return Err(PrefixError::TooLong { side, bytes, limit });
            }
        }
        if base.starts_with(&DICTIONARY_MAGIC) {
            return Err(PrefixError::DictionaryBase);
        }
        self.make_frame(delta, target_bytes)?;
        if zstd_safe::find_frame_compressed_size(&self.frame) != Ok(self.frame.len()) {
            let delta_bytes = delta.len();
            return Err(PrefixError::NotOneFrame { delta_bytes });
        }
        let start = out.len();
        out.resize(start + target_bytes, 0);
        let target = &mut out[start..];
        let decoded = self
            .context
            .decompress_using_dict(target, &self.frame, base);
        let result = match decoded {
            Ok(bytes) if bytes == target_bytes => Ok(()),
            Ok(bytes) => Err(PrefixError::WrongLength {
                bytes,
                target_bytes,
            }),
            Err(code) => Err(PrefixError::Undecodable {
                reason: zstd_safe::get_error_name(code),
            }),
        };
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Puts the frame of `delta` together again.
    fn make_frame(&mut self, delta: &[u8], target_bytes: usize) -> Result<(), PrefixError> {
        let bad_header = PrefixError::BadHeader { target_bytes };
        let Some(&descriptor) = delta.first() else {
            return Err(bad_header);
        };
        let Some((header, blocks)) = delta.split_at_checked(header_bytes(descriptor)) else {
            return Err(bad_header);
        };
        let size_bytes = content_size_bytes(descriptor);
        if descriptor & DESCRIPTOR_FORBIDDEN != 0 || size_bytes != size_bytes_of(target_bytes) {
            return Err(bad_header);
        }
        // A field of two bytes counts from 256.
        let size = target_bytes as u64 - if size_bytes == 2 { 256 } else { 0 };
        self.frame.clear();
        self.frame.extend_from_slice(&FRAME_MAGIC);
        self.frame.extend_from_slice(header);
        self.frame
            .extend_from_slice(&size.to_le_bytes()[..size_bytes]);
        self.frame.extend_from_slice(blocks);
        Ok(())
    }
}

/// The parts of a frame that are stored.
struct FrameParts<'a> {
    /// Descriptor and window, if there is one.
    header: &'a [u8],
    blocks: &'a [u8],
}

impl<'a> FrameParts<'a> {
    /// `None` when the frame has a header that [`PrefixDecoder`] would refuse.
    fn of(frame: &'a [u8]) -> Option<Self> {
        let rest = frame.strip_prefix(&FRAME_MAGIC)?;
        let descriptor = *rest.first()?;
        if descriptor & DESCRIPTOR_FORBIDDEN != 0 {
            return None;
        }
        let (header, rest) = rest.split_at_checked(header_bytes(descriptor))?;
        let (_, blocks) = rest.split_at_checked(content_size_bytes(descriptor))?;
        Some(Self { header, blocks })
    }
}

/// Bytes of the descriptor and the window.
fn header_bytes(descriptor: u8) -> usize {
    if descriptor & DESCRIPTOR_SINGLE_SEGMENT == 0 {
        2
    } else {
        1
    }
}

/// Bytes of the content size that the descriptor announces (RFC 8878, §3.1.1.1.1).
fn content_size_bytes(descriptor: u8) -> usize {
    match descriptor >> 6 {
        0 if descriptor & DESCRIPTOR_SINGLE_SEGMENT == 0 => 0,
        0 => 1,
        1 => 2,
        2 => 4,
        _ => 8,
    }
}

/// Bytes in which the content size of a target is given.
fn size_bytes_of(target_bytes: usize) -> usize {
    match target_bytes {
        0..256 => 1,
        256..65_792 => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lose_what_the_reader_knows() {
        let base = b"the same words again and again ".repeat(300);
        let mut target = base.clone();
        target[4000] ^= 1;
        let mut encoder = PrefixEncoder::new(CompressionLevel::DEFAULT);
        let mut delta = Vec::new();
        assert!(encoder.encode(&base, &target, 100, &mut delta));
        // Descriptor, one block header, and a few bytes of sequences.
        assert!(delta.len() < 30, "{} bytes", delta.len());
        let (bytes, mut back) = (target.len(), b"before".to_vec());
        let mut decoder = PrefixDecoder::new();
        decoder.decode(&base, &delta, bytes, &mut back).unwrap();
        assert_eq!(back, [b"before", target.as_slice()].concat());
    }
}
