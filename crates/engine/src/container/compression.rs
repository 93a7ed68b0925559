//! Compression of groups: zstd, or stored as they are when that does not help.

use std::io;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::metadata::GROUP_BYTES_MAX;
use crate::format::DecodeError;

/// How the plaintext of a group is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compression {
    /// As it is.
    Stored = 0,
    /// One zstd frame.
    Zstd = 1,
}

impl Compression {
    /// The compression of that stored number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Stored),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A zstd level, or no compression at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionLevel(i32);

impl CompressionLevel {
    /// Groups are stored as they are.
    pub const NONE: CompressionLevel = CompressionLevel(0);

    /// Good size at a few hundred MB/s a core.
    pub const DEFAULT: CompressionLevel = CompressionLevel(3);

    /// Level `level`: 0 is none, 1 … 19 are zstd's, negative ones its fast levels to −7.
    #[must_use]
    pub fn new(level: i32) -> Option<Self> {
        (-7..=19).contains(&level).then_some(Self(level))
    }

    /// The number given to [`CompressionLevel::new`].
    #[must_use]
    pub fn number(self) -> i32 {
        self.0
    }
}

/// Who decides on the level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionChoice {
    /// The user did.
    Level(CompressionLevel),
    /// The pipeline may, by what its stages wait for (`pipeline::adaptive`).
    Auto,
}

impl From<CompressionLevel> for CompressionChoice {
    fn from(level: CompressionLevel) -> Self {
        CompressionChoice::Level(level)
    }
}

impl CompressionChoice {
    /// The level where nothing is adapted.
    #[must_use]
    pub fn level(self) -> CompressionLevel {
        match self {
            CompressionChoice::Level(level) => level,
            CompressionChoice::Auto => CompressionLevel::DEFAULT,
        }
    }
}

/// Bytes of a group that are compressed fast to see whether the rest is worth the effort.
const PROBE_BYTES: usize = 16 << 10;

/// Groups from this size on are probed first.
const PROBE_FROM_BYTES: usize = 128 << 10;

/// Places in the group that are probed.
const PROBES: usize = 4;

/// Compresses groups, keeping zstd's working memory from one to the next.
pub struct Compressor {
    level: CompressionLevel,
    context: Option<zstd::bulk::Compressor<'static>>,
    probe: Option<zstd::bulk::Compressor<'static>>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl Compressor {
    /// A compressor of that level.
    ///
    /// # Panics
    /// When zstd can't get its working memory.
    #[must_use]
    pub fn new(level: CompressionLevel) -> Self {
        let context = |number| {
            zstd::bulk::Compressor::new(number).expect("zstd gets memory for a level it knows")
        };
        let compresses = level != CompressionLevel::NONE;
        Self {
            level,
            context: compresses.then(|| context(level.number())),
            probe: compresses.then(|| context(1)),
        }
    }

    /// Compresses at another level from now on.
    pub fn set_level(&mut self, level: CompressionLevel) {
        if level != self.level {
            *self = Self::new(level);
        }
    }

    /// The compressed form of `plain`, or `None` when it should be stored as it is:
    /// compression saves less than 1/64 of it, or a probe of a large group says it would.
    pub fn compress(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        if plain.len() >= PROBE_FROM_BYTES && !self.probe_says_worthwhile(plain) {
            return None;
        }
        let compressed = self.context.as_mut()?.compress(plain).ok()?;
        (compressed.len() + plain.len() / 64 < plain.len()).then_some(compressed)
    }

    /// Compresses a few samples fast: if any shrinks by 1/32, the group is worth the effort.
    fn probe_says_worthwhile(&mut self, plain: &[u8]) -> bool {
        let Some(probe) = self.probe.as_mut() else {
            return false;
        };
        let stride = (plain.len() - PROBE_BYTES) / (PROBES - 1);
        (0..PROBES).any(|sample| {
            let start = sample * stride;
            probe
                .compress(&plain[start..start + PROBE_BYTES])
                .is_ok_and(|small| small.len() + PROBE_BYTES / 32 < PROBE_BYTES)
        })
    }
}

/// The plaintext of a group, which must have exactly `plain_bytes` bytes.
///
/// # Errors
/// When the stored bytes do not decompress to that length.
pub fn decompress(
    compression: Compression,
    stored: &[u8],
    plain_bytes: usize,
) -> Result<Vec<u8>, DecodeError> {
    let plain = match compression {
        Compression::Stored => stored.to_vec(),
        Compression::Zstd => zstd::bulk::decompress(stored, plain_bytes)
            .map_err(|error| DecodeError::new(format!("it does not decompress: {error}")))?,
    };
    check_length(&plain, plain_bytes)?;
    Ok(plain)
}

/// Decompresses one group after the other, into memory that is used again.
#[derive(Default)]
pub struct Decompressor {
    context: Option<zstd::bulk::Decompressor<'static>>,
    plain: Vec<u8>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor")
            .field("plain_bytes", &self.plain.capacity())
            .finish_non_exhaustive()
    }
}

impl Decompressor {
    /// As [`decompress`]; what is stored as it is comes back where it stands.
    ///
    /// # Errors
    /// When the stored bytes do not decompress to that length.
    pub fn decompress<'a>(
        &'a mut self,
        compression: Compression,
        stored: &'a [u8],
        plain_bytes: usize,
    ) -> Result<&'a [u8], DecodeError> {
        let failed = |error| DecodeError::new(format!("it does not decompress: {error}"));
        let plain = match compression {
            Compression::Stored => stored,
            Compression::Zstd => {
                if self.context.is_none() {
                    self.context = Some(zstd::bulk::Decompressor::new().map_err(failed)?);
                }
                let context = self.context.as_mut().expect("it was just made");
                self.plain.clear();
                // The capacity bounds what comes out; where it is larger, the length tells.
                self.plain.reserve(plain_bytes);
                context
                    .decompress_to_buffer(stored, &mut self.plain)
                    .map_err(failed)?;
                &self.plain
            }
        };
        check_length(plain, plain_bytes)?;
        Ok(plain)
    }
}

/// Decompresses fronts of groups, keeping zstd's working memory from one to the next.
#[derive(Default)]
pub struct FrontDecompressor(Option<Decoder<'static>>);

/// The window of a group's frame has at most two to the power of so many bytes.
const GROUP_BYTES_LOG_MAX: u32 = GROUP_BYTES_MAX.trailing_zeros();
const _: () = assert!(GROUP_BYTES_MAX == 1 << GROUP_BYTES_LOG_MAX);

impl std::fmt::Debug for FrontDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrontDecompressor").finish_non_exhaustive()
    }
}

impl FrontDecompressor {
    /// The first `front_bytes` bytes of a group's plaintext. What follows them is not looked at.
    ///
    /// # Errors
    /// When the stored bytes do not decompress to so many.
    pub fn decompress(
        &mut self,
        compression: Compression,
        stored: &[u8],
        front_bytes: usize,
    ) -> Result<Vec<u8>, DecodeError> {
        let front = match compression {
            Compression::Stored => stored[..front_bytes.min(stored.len())].to_vec(),
            Compression::Zstd => self
                .inflate(stored, front_bytes)
                .map_err(|error| DecodeError::new(format!("it does not decompress: {error}")))?,
        };
        check_length(&front, front_bytes)?;
        Ok(front)
    }

    fn inflate(&mut self, stored: &[u8], front_bytes: usize) -> io::Result<Vec<u8>> {
        let decoder = match &mut self.0 {
            Some(decoder) => decoder,
            none => {
                let mut decoder = Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(GROUP_BYTES_LOG_MAX))?;
                none.insert(decoder)
            }
        };
        decoder.reinit()?;
        let mut front = Vec::with_capacity(front_bytes);
        let mut input = InBuffer::around(stored);
        let mut output = OutBuffer::around(&mut front);
        while output.pos() < front_bytes {
            let before = (input.pos(), output.pos());
            let left = decoder.run(&mut input, &mut output)?;
            if left == 0 || before == (input.pos(), output.pos()) {
                break;
            }
        }
        // The memory may have had room for more.
        front.truncate(front_bytes);
        Ok(front)
    }
}

fn check_length(plain: &[u8], plain_bytes: usize) -> Result<(), DecodeError> {
    if plain.len() == plain_bytes {
        return Ok(());
    }
    Err(DecodeError::new(format!(
        "it has {} bytes where its chunks have {plain_bytes}",
        plain.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that no compressor shrinks.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut noise = vec![0; bytes];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        noise
    }

    #[test]
    fn text_shrinks_noise_is_stored() {
        let mut compressor = Compressor::new(CompressionLevel::DEFAULT);
        for bytes in [100, 10_000, 300_000] {
            let text = b"the same words again ".repeat(bytes / 20);
            let small = compressor.compress(&text).expect("text compresses");
            assert!(small.len() < text.len() / 2);
            let back = decompress(Compression::Zstd, &small, text.len()).unwrap();
            assert_eq!(back, text);
            assert_eq!(compressor.compress(&noise(bytes)), None);
        }
        let mut none = Compressor::new(CompressionLevel::NONE);
        assert_eq!(none.compress(&[0; 1000]), None);
    }

    #[test]
    fn a_group_half_text_is_compressed() {
        let mut half = noise(300_000);
        half.extend(b"words ".repeat(50_000));
        assert!(
            Compressor::new(CompressionLevel::DEFAULT)
                .compress(&half)
                .is_some()
        );
    }

    #[test]
    fn fronts_are_what_the_whole_begins_with() {
        let mut plain = Vec::new();
        for number in 0..60_000u32 {
            plain.extend(blake3::hash(&(number / 3).to_le_bytes()).as_bytes());
            plain.extend(b"and words");
        }
        let stored = Compressor::new(CompressionLevel::DEFAULT)
            .compress(&plain)
            .unwrap();
        let mut fronts = FrontDecompressor::default();
        let all = plain.len();
        let lengths = [1, 5000, 128 << 10, (128 << 10) + 1, all / 2, all - 1, all];
        for bytes in lengths.into_iter().chain(lengths) {
            let front = fronts.decompress(Compression::Zstd, &stored, bytes);
            assert!(front.unwrap() == plain[..bytes], "{bytes} bytes");
            let front = fronts.decompress(Compression::Stored, &plain, bytes);
            assert!(front.unwrap() == plain[..bytes], "{bytes} bytes");
            // What is wrong is an error, and harms nothing that follows.
            let cut_off = &stored[..stored.len() * 9 / 10];
            assert!(fronts.decompress(Compression::Zstd, cut_off, all).is_err());
            let garbage = fronts.decompress(Compression::Zstd, &plain[..9000], bytes);
            assert!(garbage.is_err());
        }
        assert!(
            fronts
                .decompress(Compression::Zstd, &stored, all + 1)
                .is_err()
        );
        assert!(
            fronts
                .decompress(Compression::Stored, &plain, all + 1)
                .is_err()
        );
    }

    #[test]
    fn wrong_lengths_and_garbage_are_errors() {
        let small = Compressor::new(CompressionLevel::DEFAULT)
            .compress(&[7; 5000])
            .unwrap();
        assert!(decompress(Compression::Zstd, &small, 4999).is_err());
        assert!(decompress(Compression::Zstd, &small, 5001).is_err());
        assert!(decompress(Compression::Zstd, &small[..small.len() - 1], 5000).is_err());
        assert!(decompress(Compression::Zstd, &[1, 2, 3], 5000).is_err());
        assert!(decompress(Compression::Stored, &[1, 2, 3], 4).is_err());
        // With memory that has room for more, all the same.
        let mut decompressor = Decompressor::default();
        let mut plain = |stored: &[u8], bytes| {
            let plain = decompressor.decompress(Compression::Zstd, stored, bytes);
            plain.map(<[u8]>::to_vec)
        };
        for _ in 0..2 {
            assert_eq!(plain(&small, 5000), Ok(vec![7; 5000]));
            assert!(plain(&small, 4999).is_err());
            assert!(plain(&small, 5001).is_err());
            assert!(plain(&small[..small.len() - 1], 5000).is_err());
            assert!(plain(&[1, 2, 3], 5000).is_err());
        }
    }
}
