//! Tars that come from anywhere (`repository::tar`).

use repository::files::OwnerNames;
use repository::tar::TarReader;

/// Bytes of a block.
const BLOCK_BYTES: usize = 512;

/// An archive, its headers' checksums put right: members come until it ends or is refused, and none has more contents than
/// the archive has bytes.
pub fn archive(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    for block in bytes.chunks_exact_mut(BLOCK_BYTES) {
        // What has the magic is taken for a header.
        if block[257..262] == *b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    let mut source = &bytes[..];
    let mut reader = TarReader::new(&mut source, OwnerNames::default());
    let mut buffer = [0; 4096];
    let mut offset = 0;
    while let Ok(Some(member)) = reader.next_member() {
        assert!(member.offset >= offset, "members come one after the other");
        offset = member.offset + BLOCK_BYTES as u64;
        let mut stored = 0u64;
        loop {
            match reader.read_content(&mut buffer) {
                Ok(0) => break,
                Ok(count) => stored += count as u64,
                Err(_) => return,
            }
        }
        if let Some(extents) = &member.sparse {
            let total: u64 = extents.iter().map(|extent| extent.bytes).sum();
            assert_eq!(total, stored, "a map of holes agrees with what is stored");
            let ends = extents.iter().map(|extent| extent.offset + extent.bytes);
            assert!(ends.max().unwrap_or(0) <= member.size);
        }
    }
    assert!(reader.offset() <= bytes.len() as u64);
}

fn header(name: &str, kind: u8, size: usize) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    block
}

fn member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, kind, content.len());
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
    bytes
}

fn whole(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = parts.concat();
    bytes.resize(bytes.len() + 2 * BLOCK_BYTES, 0);
    bytes
}

pub fn archive_samples() -> Vec<Vec<u8>> {
    let sparse = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n28 GNU.sparse.realsize=4096\n22 GNU.sparse.name=abc\n";
    let map = [&b"1\n512\n3\n"[..], &[0; 504], b"abc"].concat();
    let attributes =
        b"23 SCHILY.xattr.user.a=b\n43 SCHILY.acl.access=user::rw-,user:1:r--\n17 mtime=-1.2345\n";
    let mut old = header("old", b'S', 3);
    old[386..397].copy_from_slice(b"00000001000");
    old[398..409].copy_from_slice(b"00000000003");
    old[483..494].copy_from_slice(b"00000010000");
    old.extend_from_slice(b"abc");
    old.resize(2 * BLOCK_BYTES, 0);
    vec![
        whole(&[]),
        whole(&[
            member("directory/", b'5', b""),
            member("file", b'0', b"content"),
            member("link", b'2', b""),
        ]),
        whole(&[member("x", b'x', sparse), member("abc", b'0', &map)]),
        whole(&[
            member("x", b'x', attributes),
            member("file", b'0', b"content"),
        ]),
        whole(&[
            member("g", b'g', attributes),
            member("L", b'L', b"a long name\0"),
            member("file", b'0', b""),
        ]),
        whole(&[old]),
    ]
}
