//! Reads a stream in order while another thread takes it: for who wants to pull, not to be pushed.
//!
//! Limit: some pieces wait between the two threads, at most [`PIECES_WAITING_MAX`] of a chunk each.

use std::collections::VecDeque;
use std::io;
use std::thread;

use crossbeam_channel::{Receiver, bounded};

use super::reading::ReadingRoom;
use super::reading_in_order::{InOrderError, InOrderReport, StreamPiece};
use crate::fingerprint::CheckValue;
use crate::recipe::Recipe;
use crate::restore::Reader;

/// Pieces between the threads.
const PIECES_WAITING_MAX: usize = 64;

/// A piece that nobody else holds.
#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    Hole(u64),
}

/// The pieces of a stream, in order. It ends early where the stream can't be read: who reads it learns why afterwards.
#[derive(Debug)]
pub struct Pieces {
    receiver: Receiver<Piece>,
    bytes: VecDeque<u8>,
    hole_bytes: u64,
}

impl Pieces {
    /// Those of an empty stream.
    #[must_use]
    pub fn none() -> Self {
        Self {
            receiver: bounded(0).1,
            bytes: VecDeque::new(),
            hole_bytes: 0,
        }
    }

    /// Goes on to the next piece when there is nothing left of the last; false at the end.
    fn advance(&mut self) -> bool {
        while self.bytes.is_empty() && self.hole_bytes == 0 {
            match self.receiver.recv() {
                Ok(Piece::Bytes(bytes)) => self.bytes = bytes.into(),
                Ok(Piece::Hole(bytes)) => self.hole_bytes = bytes,
                Err(_) => return false,
            }
        }
        true
    }

    /// Reads stored bytes; 0 at the stream's end, or where a hole begins.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        if buffer.is_empty() || !self.advance() || self.hole_bytes > 0 {
            return 0;
        }
        let (front, _) = self.bytes.as_slices();
        let count = front.len().min(buffer.len());
        buffer[..count].copy_from_slice(&front[..count]);
        self.bytes.drain(..count);
        count
    }

    /// Passes a hole of that length; false when there is none.
    pub fn pass_hole(&mut self, mut bytes: u64) -> bool {
        while bytes > 0 {
            if !self.advance() || self.hole_bytes == 0 {
                return false;
            }
            let now = self.hole_bytes.min(bytes);
            self.hole_bytes -= now;
            bytes -= now;
        }
        true
    }
}

impl ReadingRoom {
    /// As [`ReadingRoom::read_in_order`], on a thread of its own, while `take` takes the pieces here. Returns what `take`
    /// does, and how the reading went: when `take` leaves some of it, that is a failure to take.
    pub fn read_beside<T>(
        &self,
        reader: &Reader,
        recipe: &Recipe,
        check: Option<CheckValue>,
        cache_bytes: usize,
        take: impl FnOnce(&mut Pieces) -> T,
    ) -> (Option<T>, Result<InOrderReport, InOrderError>) {
        let (sender, receiver) = bounded(PIECES_WAITING_MAX);
        thread::scope(|scope| {
            let read = thread::Builder::new().name("read".to_owned());
            let read = read.spawn_scoped(scope, move || {
                let mut hand_on = |piece: StreamPiece<'_>| {
                    let piece = match piece {
                        StreamPiece::Bytes(bytes) => Piece::Bytes(bytes.to_vec()),
                        StreamPiece::Hole(bytes) => Piece::Hole(bytes),
                    };
                    let sent = sender.send(piece);
                    sent.map_err(|_| io::Error::other("nobody takes the stream any more"))
                };
                self.read_in_order(reader, recipe, check, cache_bytes, &mut hand_on)
            });
            let read = match read {
                Ok(read) => read,
                Err(error) => return (None, Err(InOrderError::Threads(error))),
            };
            let mut pieces = Pieces {
                receiver,
                bytes: VecDeque::new(),
                hole_bytes: 0,
            };
            let taken = take(&mut pieces);
            // Whoever waits for room learns that nobody is there.
            drop(pieces);
            match read.join() {
                Ok(report) => (Some(taken), report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}
