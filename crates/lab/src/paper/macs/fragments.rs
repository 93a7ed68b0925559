//! Backups that store some duplicates again: containers by a scheme, under a rewriting policy.
//!
//! Enters: a trace, a scheme, a policy of the engine. Leaves: for each version its references as a
//! restore needs them, and how many bytes are stored by then. Containers are laid out by their lengths
//! alone, which is exact in the paper's form.
//!
//! A chunk that the same version stored already, or is about to, is new to the policy; one that it
//! stores again is from then on where it was stored last, for this version and later ones.

use engine::rewriting::{ChunkPlace, Decision, Rewriter, Rewriting, StreamChunk};

use super::layout::{CONTAINER_BYTES, Layout, Scheme};
use super::trace::Trace;
use crate::restore_caches::Reference;

/// A version in containers.
#[derive(Debug, Clone, Default)]
pub struct Fragments {
    /// Its chunks, and in which containers they are.
    pub references: Vec<Reference<u32>>,
    /// Bytes of all versions up to this one.
    pub bytes: u64,
    /// Bytes stored for them.
    pub stored_bytes: u64,
    /// Bytes stored again for this one.
    pub rewritten_bytes: u64,
}

/// A chunk as the versions so far left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// It waits for this version's decision.
    Waiting,
    /// In this container, by that version.
    In(u32, usize),
}

/// All versions, one after another.
pub fn versions(
    trace: &Trace,
    scheme: Scheme,
    entries: u32,
    rewriting: &Rewriting,
) -> Vec<Fragments> {
    let mut layout = Layout::new(scheme, entries);
    let mut places = vec![Place::Nowhere; trace.chunks.len()];
    let mut all = Vec::new();
    let (mut bytes, mut stored_bytes) = (0, 0);
    for (number, version) in trace.versions.iter().enumerate() {
        let mut fragments = Fragments::default();
        let mut rewriter: Rewriter<u32, u32> = Rewriter::new(rewriting, CONTAINER_BYTES);
        let mut decided: Vec<(u32, Decision)> = Vec::new();
        let mut settle = |decided: &mut Vec<(u32, Decision)>, places: &mut [Place]| {
            for (chunk, decision) in decided.drain(..) {
                let length = trace.chunks[chunk as usize].bytes;
                let container = match places[chunk as usize] {
                    Place::In(container, by) if by == number || decision == Decision::Keep => {
                        container
                    }
                    place => {
                        if matches!(place, Place::In(..)) {
                            fragments.rewritten_bytes += u64::from(length);
                        }
                        stored_bytes += u64::from(length);
                        let container = layout.place(length);
                        places[chunk as usize] = Place::In(container, number);
                        container
                    }
                };
                fragments.references.push(Reference {
                    container,
                    chunk,
                    bytes: length,
                });
            }
        };
        for &chunk in &version.chunks {
            let place = match places[chunk as usize] {
                Place::In(container, by) if by != number => ChunkPlace::Stored(container),
                Place::In(..) | Place::Waiting => ChunkPlace::New,
                Place::Nowhere => {
                    places[chunk as usize] = Place::Waiting;
                    ChunkPlace::New
                }
            };
            let stream_chunk = StreamChunk {
                bytes: trace.chunks[chunk as usize].bytes,
                place,
            };
            rewriter.push(stream_chunk, chunk, &mut |chunk, decision| {
                decided.push((chunk, decision));
            });
            settle(&mut decided, &mut places);
        }
        rewriter.finish(&mut |chunk, decision| decided.push((chunk, decision)));
        settle(&mut decided, &mut places);
        bytes += version.bytes;
        all.push(Fragments {
            bytes,
            stored_bytes,
            ..fragments
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::container_bytes::Fingerprint;
    use super::super::layout::entries_of;
    use super::super::trace::{Chunk, Version};
    use super::*;
    use engine::rewriting::Capping;

    /// Versions that take every third chunk from what is old, here and there.
    fn trace() -> Trace {
        let chunks = (0..30_000u32).map(|number| Chunk {
            fingerprint: Fingerprint([number as u8; 20]),
            bytes: 2000 + number % 3000,
        });
        let version = |chunks: Vec<u32>| Version {
            bytes: 0,
            files: Vec::new(),
            chunks,
        };
        let mut trace = Trace {
            expected_bytes: 4096,
            chunks: chunks.collect(),
            versions: vec![
                version((0..20_000).collect()),
                version(
                    (0..10_000)
                        .map(|place| match place % 3 {
                            0 => (place * 7919) % 20_000,
                            _ => 20_000 + place % 8000,
                        })
                        .collect(),
                ),
            ],
        };
        for version in &mut trace.versions {
            let lengths = version
                .chunks
                .iter()
                .map(|chunk| 2000 + u64::from(chunk % 3000));
            version.bytes = lengths.sum();
        }
        trace
    }

    #[test]
    fn what_is_rewritten_is_stored_and_counted_and_nothing_is_lost() {
        let trace = trace();
        let run =
            |rewriting: Rewriting| versions(&trace, Scheme::Macs, entries_of(4096), &rewriting);
        let off = run(Rewriting::Off);
        let capped = run(Rewriting::Capping(Capping {
            segment_bytes: 8 << 20,
            containers_max: 2,
        }));
        for (fragments, version) in off.iter().chain(&capped).zip(trace.versions.iter().cycle()) {
            let chunks: Vec<u32> = fragments.references.iter().map(|one| one.chunk).collect();
            assert_eq!(chunks, version.chunks);
        }
        assert_eq!(off[1].rewritten_bytes, 0);
        assert!(capped[1].rewritten_bytes > 0);
        let more = capped[1].stored_bytes - off[1].stored_bytes;
        assert_eq!(more, capped[1].rewritten_bytes);
    }
}
