//! Prefetching for scans that skip: the bytes behind a cut that are never judged break the streams that
//! the hardware would prefetch.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// How far ahead of what is judged to prefetch, beside the bytes that are skipped at each cut: 1 to 2 KiB
/// were best of 512 bytes to 8 KiB, by a tenth.
const AHEAD: usize = 2048;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Up to where lines were prefetched, and how far ahead that should be.
#[derive(Clone, Copy)]
pub(super) struct Prefetch {
    done: usize,
    ahead: usize,
}

impl Prefetch {
    /// For a scan that begins to judge at `first`. The scan of the chunk before has prefetched as far
    /// as this one would begin to.
    pub(super) fn new(first: usize) -> Self {
        Self {
            done: first + AHEAD,
            ahead: first + AHEAD,
        }
    }

    /// Prefetches what a scan needs soon that takes a block of `BLOCK` bytes at `position`: at most
    /// half more lines than a block has, or catching up would cost more than it brings. Lines may lie
    /// beyond the data.
    #[inline(always)]
    pub(super) fn advance<const BLOCK: usize>(&mut self, data: &[u8], position: usize) {
        let target = (position + self.ahead).min(self.done + BLOCK + BLOCK / 2);
        while self.done < target {
            // A prefetch may name any address: it loads nothing that is seen, and never fails.
            let line = data.as_ptr().wrapping_add(self.done);
            // SAFETY: as said; SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
            self.done += LINE;
        }
    }
}
