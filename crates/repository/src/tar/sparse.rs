//! Maps of holes: which parts of a file a member has, the others being zeros that nobody stored.
//!
//! GNU tar has four forms of them (its manual, "Storing Sparse Files"): a header of type `S` with blocks of numbers
//! behind it; and, in pax, records `GNU.sparse.offset` and `…numbytes` again and again (0.0), one record
//! `GNU.sparse.map` (0.1), or numbers in front of the contents (1.0), which is the one written here.

use super::BLOCK_BYTES;

/// Parts of a file that a map may have at most; a file of more is written with its zeros.
pub const SPARSE_EXTENTS_MAX: usize = 1 << 20;

/// A part of a file that is not a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Checks that a map is one of a file of `size` bytes whose stored parts have `stored` bytes together: ascending,
/// apart from each other. Returns it without empty parts.
pub fn checked(map: &[Extent], size: u64, stored: u64) -> Result<Vec<Extent>, String> {
    let mut end = 0u64;
    let mut total = 0u64;
    let mut extents = Vec::with_capacity(map.len());
    for extent in map {
        let Extent { offset, bytes } = *extent;
        let next = offset.checked_add(bytes).filter(|&next| next <= size);
        let next = next.ok_or("its map of holes goes beyond its end")?;
        if bytes == 0 {
            continue;
        }
        if offset < end {
            return Err("its map of holes is out of order".to_owned());
        }
        end = next;
        total += bytes;
        extents.push(*extent);
    }
    if total != stored {
        return Err(format!(
            "its map of holes leaves {total} bytes, and {stored} follow"
        ));
    }
    Ok(extents)
}

/// The map as the beginning of a member's contents (1.0), padded to whole blocks. A hole at the end is told by an
/// empty part there, as GNU tar does.
pub fn encode(map: &[Extent], size: u64) -> Vec<u8> {
    let end = map.last().map_or(0, |last| last.offset + last.bytes);
    let has_hole_at_end = end < size;
    let count = map.len() + usize::from(has_hole_at_end);
    let mut out = format!("{count}\n").into_bytes();
    for extent in map {
        out.extend_from_slice(format!("{}\n{}\n", extent.offset, extent.bytes).as_bytes());
    }
    if has_hole_at_end {
        out.extend_from_slice(format!("{size}\n0\n").as_bytes());
    }
    out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
    out
}

/// Reads such a map, block by block.
#[derive(Debug, Default)]
pub struct MapReader {
    count: Option<usize>,
    offset: Option<u64>,
    digits: u64,
    has_digits: bool,
    map: Vec<Extent>,
}

impl MapReader {
    /// Takes the next block; says whether that was the last.
    pub fn take(&mut self, block: &[u8]) -> Result<bool, String> {
        for &byte in block {
            if self.is_whole() {
                return Ok(true); // The rest of the block is filled up.
            }
            match byte {
                b'0'..=b'9' => {
                    let digit = u64::from(byte - b'0');
                    let digits = self.digits.checked_mul(10);
                    let digits = digits.and_then(|digits| digits.checked_add(digit));
                    self.digits = digits.ok_or("its map of holes has a number beyond 64 bits")?;
                    self.has_digits = true;
                }
                b'\n' if self.has_digits => self.number()?,
                _ => return Err("its map of holes is not one".to_owned()),
            }
        }
        Ok(self.is_whole())
    }

    fn number(&mut self) -> Result<(), String> {
        let number = std::mem::take(&mut self.digits);
        self.has_digits = false;
        if self.count.is_none() {
            let count = usize::try_from(number).ok();
            let count = count.filter(|&count| count <= SPARSE_EXTENTS_MAX);
            self.count = Some(count.ok_or_else(too_many)?);
        } else if let Some(offset) = self.offset.take() {
            self.map.push(Extent {
                offset,
                bytes: number,
            });
        } else {
            self.offset = Some(number);
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.count == Some(self.map.len())
    }

    /// What it has read.
    pub fn finish(self) -> Vec<Extent> {
        self.map
    }
}

/// What a map of too many parts is told.
pub fn too_many() -> String {
    format!("its map of holes has more than {SPARSE_EXTENTS_MAX} parts")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_map() -> impl Strategy<Value = (Vec<Extent>, u64)> {
        let parts = proptest::collection::vec((0u64..1 << 40, 1u64..1 << 30), 0..200);
        (parts, 0u64..1 << 20).prop_map(|(parts, rest)| {
            let mut map = Vec::new();
            let mut end = 0;
            for (gap, bytes) in parts {
                map.push(Extent {
                    offset: end + gap,
                    bytes,
                });
                end += gap + bytes;
            }
            (map, end + rest)
        })
    }

    proptest! {
        #[test]
        fn maps_come_back((map, size) in any_map()) {
            let bytes = encode(&map, size);
            let mut reader = MapReader::default();
            let mut blocks = bytes.chunks(BLOCK_BYTES);
            while !reader.take(blocks.next().expect("a map that ends")).unwrap() {}
            prop_assert_eq!(blocks.count(), 0);
            let stored = map.iter().map(|extent| extent.bytes).sum();
            prop_assert_eq!(checked(&reader.finish(), size, stored), Ok(map));
        }

        #[test]
        fn hostile_maps_never_panic(blocks: Vec<Vec<u8>>, size: u64, stored: u64) {
            let mut reader = MapReader::default();
            for block in &blocks {
                match reader.take(block) {
                    Ok(false) => {}
                    _ => break,
                }
            }
            let _ = checked(&reader.finish(), size, stored);
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let extent = |offset, bytes| Extent { offset, bytes };
        for (map, size, stored) in [
            (vec![extent(0, 10), extent(5, 10)], 100, 20),
            (vec![extent(20, 10), extent(0, 10)], 100, 20),
            (vec![extent(95, 10)], 100, 10),
            (vec![extent(u64::MAX, 2)], u64::MAX, 2),
            (vec![extent(0, 10)], 100, 11),
        ] {
            assert!(checked(&map, size, stored).is_err(), "{map:?}");
        }
        let mut reader = MapReader::default();
        assert!(reader.take(b"1048577\n").is_err());
        let mut reader = MapReader::default();
        assert!(reader.take(b"1\n\n").is_err());
    }
}
