//! Tars made block by block, honest or lying: for tests of what finds their members.
//!
//! Knows nothing but its arguments, so that tests of crates below this one can include the file.

/// Whose headers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarFormat {
    /// Without magic.
    V7,
    /// POSIX.1-1988; pax has the same headers.
    Ustar,
    /// With GNU's magic.
    Gnu,
}

/// All formats.
pub const TAR_FORMATS: [TarFormat; 3] = [TarFormat::V7, TarFormat::Ustar, TarFormat::Gnu];

/// Bytes of a block.
pub const TAR_BLOCK_BYTES: usize = 512;

/// A tar that grows.
#[derive(Debug, Clone)]
pub struct TarBuilder {
    /// What there is so far.
    pub bytes: Vec<u8>,
    format: TarFormat,
    /// The time of the members that follow, in seconds.
    pub modified: u64,
}

impl TarBuilder {
    /// A tar without members.
    #[must_use]
    pub fn new(format: TarFormat) -> Self {
        Self {
            bytes: Vec::new(),
            format,
            modified: 1_000_000_000,
        }
    }

    /// A file.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.header(name, b'0', content.len() as u64);
        self.content(content);
    }

    /// Something without contents: `5` is a directory, `2` a symlink.
    pub fn empty(&mut self, name: &str, kind: u8) {
        self.header(name, kind, 0);
    }

    /// A header that announces so many bytes, which need not follow. Sizes beyond octal's are in base
    /// 256.
    pub fn header(&mut self, name: &str, kind: u8, size: u64) {
        let mut block = [0; TAR_BLOCK_BYTES];
        let name = &name.as_bytes()[..name.len().min(100)];
        block[..name.len()].copy_from_slice(name);
        block[100..108].copy_from_slice(b"0000644\0");
        block[108..124].copy_from_slice(b"0001750\x000001750\0");
        put_size(&mut block[124..136], size);
        block[136..148].copy_from_slice(format!("{:011o}\0", self.modified).as_bytes());
        block[156] = kind;
        match self.format {
            TarFormat::V7 => {}
            TarFormat::Ustar => block[257..265].copy_from_slice(b"ustar\x0000"),
            TarFormat::Gnu => block[257..265].copy_from_slice(b"ustar  \0"),
        }
        self.bytes.extend_from_slice(&with_checksum(block));
    }

    /// Bytes of a content, and zeros up to the next block.
    pub fn content(&mut self, content: &[u8]) {
        self.bytes.extend_from_slice(content);
        let length = self.bytes.len().next_multiple_of(TAR_BLOCK_BYTES);
        self.bytes.resize(length, 0);
    }

    /// Pax records about the next member (`x`) or all (`g`).
    pub fn records(&mut self, kind: u8, records: &[(&str, &str)]) {
        let text: String = records
            .iter()
            .map(|(key, value)| record(key, value))
            .collect();
        self.header("PaxHeaders/0", kind, text.len() as u64);
        self.content(text.as_bytes());
    }

    /// The tar with its end: two blocks of zeros.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let length = self.bytes.len() + 2 * TAR_BLOCK_BYTES;
        self.bytes.resize(length, 0);
        self.bytes
    }
}

/// A block with its checksum put in.
#[must_use]
pub fn with_checksum(mut block: [u8; TAR_BLOCK_BYTES]) -> [u8; TAR_BLOCK_BYTES] {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn put_size(field: &mut [u8], size: u64) {
    if size < 1 << 33 {
        field.copy_from_slice(format!("{size:011o}\0").as_bytes());
        return;
    }
    field.fill(0);
    field[0] = 0x80;
    field[4..].copy_from_slice(&size.to_be_bytes());
}

/// `LENGTH KEY=VALUE\n`, where the length counts itself.
fn record(key: &str, value: &str) -> String {
    let without = key.len() + value.len() + 3;
    let mut length = without + 1;
    while length != without + length.to_string().len() {
        length += 1;
    }
    format!("{length} {key}={value}\n")
}
