//! Containers of the paper's form to the byte, and back.
//!
//! Enters: what a [`Container`] holds, with fingerprints and data. Leaves: [`CONTAINER_BYTES`] bytes; of
//! those, or of their beginning, the entries again. Numbers are little-endian, what is unused is 0.
//!
//! | scheme | from 0 | then | then |
//! |---|---|---|---|
//! | fixed | N entries | chunks | |
//! | table | k (4 bytes) | 2^k entries, each in the first free place from its fingerprint's first 8 bytes mod 2^k on | chunks |
//! | adaptive | tag: length of the metadata region without it (4 bytes), 28 bytes of 0 | entries | chunks |
//!
//! An entry is a fingerprint (20 bytes), where in the container the chunk begins (4), its length (4);
//! one of length 0 is none. Invariant: an entry that is decoded lies behind the region and within the
//! container.

use anyhow::{Result, bail, ensure};

use super::layout::{CONTAINER_BYTES, Container, ENTRY_BYTES, Region, TABLE_HEAD_BYTES, TAG_BYTES};

/// SHA-1, as in the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 20]);

impl Fingerprint {
    /// That of a chunk.
    pub fn of(chunk: &[u8]) -> Self {
        let algorithm = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
        let digest = aws_lc_rs::digest::digest(algorithm, chunk);
        let mut bytes = [0; 20];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    fn first_place(&self, log2_entries: u32) -> usize {
        let first = self
            .0
            .first_chunk::<8>()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        (first & ((1 << log2_entries) - 1)) as usize
    }
}

/// A chunk in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Where in the container it begins.
    pub offset: u32,
    /// Its length.
    pub bytes: u32,
    /// What it is.
    pub fingerprint: Fingerprint,
}

/// What a reader knows of a container before it reads it: which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A fixed region of so many entries.
    Fixed(u32),
    /// A hash table.
    Table,
    /// A tag.
    Adaptive,
}

impl Form {
    /// That of a container.
    pub fn of(region: Region) -> Self {
        match region {
            Region::Fixed { entries } => Self::Fixed(entries),
            Region::Table { .. } => Self::Table,
            Region::Adaptive => Self::Adaptive,
        }
    }
}

const ENTRY: usize = ENTRY_BYTES as usize;

/// The bytes of a container.
///
/// # Panics
/// When chunks and data are not what `container` says.
pub fn encode(container: &Container, chunks: &[(Fingerprint, u32)], data: &[u8]) -> Vec<u8> {
    assert_eq!(
        (chunks.len(), data.len()),
        (container.chunks as usize, container.data_bytes as usize),
        "the contents of this container"
    );
    let mut bytes = vec![0; CONTAINER_BYTES as usize];
    let data_start = container.region_bytes();
    let mut offset = data_start;
    let entries = match container.region {
        Region::Fixed { .. } => 0,
        Region::Table { log2_entries } => {
            bytes[..4].copy_from_slice(&log2_entries.to_le_bytes());
            TABLE_HEAD_BYTES
        }
        Region::Adaptive => {
            let length = data_start - TAG_BYTES;
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            TAG_BYTES
        }
    } as usize;
    for (index, &(fingerprint, length)) in chunks.iter().enumerate() {
        let place = match container.region {
            Region::Table { log2_entries } => {
                let table = &bytes[entries..][..ENTRY << log2_entries];
                free_place(table, fingerprint.first_place(log2_entries))
            }
            _ => index,
        };
        let entry = Entry {
            offset,
            bytes: length,
            fingerprint,
        };
        write_entry(&mut bytes[entries + ENTRY * place..][..ENTRY], &entry);
        offset += length;
    }
    bytes[data_start as usize..][..data.len()].copy_from_slice(data);
    bytes
}

/// The first free place of a table from `first` on.
fn free_place(table: &[u8], first: usize) -> usize {
    let places = table.len() / ENTRY;
    let after = (first..places).chain(0..first);
    let is_free = |place: &usize| table[ENTRY * place + 24..][..4] == [0; 4];
    let mut free = after.filter(is_free);
    free.next().expect("a table has a place for every chunk")
}

fn write_entry(place: &mut [u8], entry: &Entry) {
    place[..20].copy_from_slice(&entry.fingerprint.0);
    place[20..24].copy_from_slice(&entry.offset.to_le_bytes());
    place[24..28].copy_from_slice(&entry.bytes.to_le_bytes());
}

fn number(bytes: &[u8], at: usize) -> Result<u32> {
    let Some(four) = bytes
        .get(at..at + 4)
        .and_then(|four| four.first_chunk::<4>())
    else {
        bail!("it ends at {} bytes, within a number", bytes.len());
    };
    Ok(u32::from_le_bytes(*four))
}

/// How long the metadata region is with its tag or head, by the beginning of a container.
///
/// # Errors
/// When it can't be.
pub fn region_bytes(form: Form, bytes: &[u8]) -> Result<u32> {
    let region = match form {
        Form::Fixed(entries) => u64::from(ENTRY_BYTES) * u64::from(entries),
        Form::Table => {
            let log2_entries = number(bytes, 0)?;
            ensure!(log2_entries < 32, "a table of 2^{log2_entries} entries");
            u64::from(TABLE_HEAD_BYTES) + (u64::from(ENTRY_BYTES) << log2_entries)
        }
        Form::Adaptive => {
            let length = number(bytes, 0)?;
            ensure!(
                length.is_multiple_of(ENTRY_BYTES),
                "a metadata region of {length} bytes, which are no whole entries"
            );
            ensure!(
                bytes
                    .get(4..TAG_BYTES as usize)
                    .is_some_and(|rest| rest.iter().all(|byte| *byte == 0)),
                "a tag with something behind its length"
            );
            u64::from(TAG_BYTES) + u64::from(length)
        }
    };
    ensure!(
        region <= u64::from(CONTAINER_BYTES),
        "a metadata region of {region} bytes"
    );
    Ok(region as u32)
}

/// The entries of a container, by its beginning, which holds at least the metadata region; in the
/// order in which they lie there.
///
/// # Errors
/// When the bytes are no container of that form.
pub fn entries(form: Form, bytes: &[u8]) -> Result<Vec<Entry>> {
    let region = region_bytes(form, bytes)? as usize;
    let start = match form {
        Form::Fixed(_) => 0,
        Form::Table => TABLE_HEAD_BYTES as usize,
        Form::Adaptive => TAG_BYTES as usize,
    };
    let Some(places) = bytes.get(start..region) else {
        bail!("it ends at {} bytes, within its metadata", bytes.len());
    };
    let mut found = Vec::with_capacity(places.len() / ENTRY);
    for place in places.chunks_exact(ENTRY) {
        let mut fingerprint = [0; 20];
        fingerprint.copy_from_slice(&place[..20]);
        let entry = Entry {
            offset: number(place, 20)?,
            bytes: number(place, 24)?,
            fingerprint: Fingerprint(fingerprint),
        };
        if entry.bytes == 0 {
            ensure!(
                form != Form::Adaptive && place.iter().all(|byte| *byte == 0),
                "an entry of a chunk without bytes"
            );
            continue;
        }
        let end = u64::from(entry.offset) + u64::from(entry.bytes);
        ensure!(
            entry.offset as usize >= region && end <= u64::from(CONTAINER_BYTES),
            "a chunk of {} bytes at {}, outside of the data region",
            entry.bytes,
            entry.offset
        );
        found.push(entry);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::layout::{Layout, Scheme, entries_of};
    use super::*;
    use crate::chunk::data::random_bytes;
    use proptest::prelude::*;

    /// A container of each form with these chunks, and its bytes.
    fn made(scheme: Scheme, lengths: &[u32]) -> (Container, Vec<(Fingerprint, u32)>, Vec<u8>) {
        let mut layout = Layout::new(scheme, entries_of(16_384));
        let mut chunks = Vec::new();
        let mut data = Vec::new();
        for (seed, &length) in lengths.iter().enumerate() {
            if layout.place(length) > 0 {
                break;
            }
            let chunk = random_bytes(seed as u64, length as usize);
            chunks.push((Fingerprint::of(&chunk), length));
            data.extend(chunk);
        }
        let mut container = layout.containers()[0];
        container.chunks = chunks.len() as u32;
        container.data_bytes = data.len() as u32;
        let bytes = encode(&container, &chunks, &data);
        (container, chunks, bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn what_is_encoded_comes_back(lengths in prop::collection::vec(1..1023u32, 1..700)) {
            for scheme in Scheme::ALL {
                let (container, chunks, bytes) = made(scheme, &lengths);
                prop_assert_eq!(bytes.len(), CONTAINER_BYTES as usize);
                let form = Form::of(container.region);
                let mut found = entries(form, &bytes).unwrap();
                let region = container.region_bytes();
                prop_assert_eq!(region_bytes(form, &bytes).unwrap(), region);
                prop_assert_eq!(&entries(form, &bytes[..region as usize]).unwrap(), &found);
                found.sort();
                prop_assert_eq!(found.len(), chunks.len());
                for (entry, (fingerprint, length)) in found.iter().zip(&chunks) {
                    prop_assert_eq!((entry.fingerprint, entry.bytes), (*fingerprint, *length));
                    let chunk = &bytes[entry.offset as usize..][..entry.bytes as usize];
                    prop_assert_eq!(Fingerprint::of(chunk), *fingerprint);
                }
            }
        }

        #[test]
        fn damage_is_an_error_or_other_entries_and_never_a_panic(
            places in prop::collection::vec((0..2000usize, any::<u8>()), 1..8),
            length in 0..3000usize,
        ) {
            for scheme in Scheme::ALL {
                let (container, _, mut bytes) = made(scheme, &[10, 20, 30]);
                for (place, byte) in &places {
                    bytes[*place] = *byte;
                }
                let form = Form::of(container.region);
                let _ = entries(form, &bytes[..length]);
                if let Ok(found) = entries(form, &bytes) {
                    for entry in found {
                        let end = u64::from(entry.offset) + u64::from(entry.bytes);
                        prop_assert!(end <= u64::from(CONTAINER_BYTES));
                    }
                }
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let message = |form, bytes: &[u8]| entries(form, bytes).unwrap_err().to_string();
        let (_, _, macs) = made(Scheme::Macs, &[10, 20]);
        assert!(message(Form::Adaptive, &macs[..40]).contains("within its metadata"));
        assert!(message(Form::Adaptive, &macs[..3]).contains("within a number"));
        let mut odd = macs.clone();
        odd[0] += 1;
        assert!(message(Form::Adaptive, &odd).contains("no whole entries"));
        odd[..4].copy_from_slice(&(28u32 << 20).to_le_bytes());
        assert!(message(Form::Adaptive, &odd).contains("region of 29360160 bytes"));
        let mut behind = macs.clone();
        behind[20] = 1;
        assert!(message(Form::Adaptive, &behind).contains("behind its length"));
        let mut outside = macs;
        outside[32 + 20..32 + 24].copy_from_slice(&5u32.to_le_bytes());
        assert!(message(Form::Adaptive, &outside).contains("outside of the data region"));
        let (_, _, mut table) = made(Scheme::Sacs, &[10]);
        table[0] = 40;
        assert!(message(Form::Table, &table).contains("2^40"));
    }
}
