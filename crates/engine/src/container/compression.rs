//! Compression of groups: zstd, or stored as they are when that does not help.

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
