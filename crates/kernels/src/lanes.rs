//! Scans of hashes over a sliding window, in four lanes.
//!
//! Enters: a hash that is a function of the last `window` bytes and nothing else, how it slides by
//! one byte, and data. Leaves: the first position whose hash cuts.
//!
//! Method. A sliding hash is bound by its chain: the next table index comes from the hash before,
//! about seven cycles a byte where a core could do four such bytes. As the hash knows only its
//! window, it can begin anywhere, `window` bytes early. So the data is taken in blocks of four
//! equal lanes that lie end to end; their four chains run in lockstep and hide each other's
//! latency. The first lane goes on from the block before, the others take in their window first.
//! When a lane cuts, the lanes behind it are void, and those before it run on alone: a cut in one
//! of them comes first.
//!
//! Two things are lost: what void lanes have hashed, about half a block for each cut, and three
//! windows for each block (four for the first). With lanes of s bytes, a window of w and a cut in d bytes on average
//! these are 2s / d and 3w / 4s of the work, least together near s = √(wd / 4), for taking a byte
//! in costs less than judging one. See `examples/window_speed.rs`.

use crate::marks::Marks;

const LANES: usize = 4;

/// Lanes shorter than this are not worth their beginning.
const LANE_BYTES_LEAST: usize = 64;

/// A hash of the last `window_bytes` bytes.
pub(crate) trait Sliding {
    /// The hash.
    type Hash: Copy + Default;

    /// How many bytes the hash knows.
    fn window_bytes(&self) -> usize;

    /// The hash of no bytes.
    fn start(&self) -> Self::Hash;

    /// The hash with one byte more, while the window is not full.
    fn enter(&self, hash: Self::Hash, entering: u8) -> Self::Hash;

    /// The hash of the window one byte further.
    fn slide(&self, hash: Self::Hash, entering: u8, leaving: u8) -> Self::Hash;

    /// Whether it cuts here.
    fn is_cut(&self, hash: Self::Hash) -> bool;
}

/// The first position i, from `first` on, whose window `data[i + 1 - window_bytes..=i]` cuts, where
/// a cut is expected once in `distance` bytes (a matter of speed only).
///
/// # Panics
/// When the first window begins before the data.
#[inline(always)]
pub(crate) fn find_cut<S: Sliding>(
    sliding: &S,
    distance: u64,
    data: &[u8],
    first: usize,
) -> Option<usize> {
    let window = sliding.window_bytes();
    assert!(window <= first + 1, "the first window lies in the data");
    let mut start = first;
    let mut hash = None;
    if first < window && first < data.len() {
        // Lanes need a window before the first byte that they judge.
        let judged = hash_of(sliding, &data[..=first]);
        if sliding.is_cut(judged) {
            return Some(first);
        }
        start = first + 1;
        hash = Some(judged);
    }
    let lane_wanted = lane_bytes(window, distance);
    loop {
        let lane = lane_wanted.min(data.len().saturating_sub(start) / LANES);
        if lane < LANE_BYTES_LEAST {
            break;
        }
        // From the first byte that leaves to the last one that enters.
        let block = &data[start - window..start + LANES * lane];
        match scan_block(sliding, block, lane, hash) {
            Ok(last) => hash = Some(last),
            Err(position) => return Some(start + position),
        }
        start += LANES * lane;
    }
    if start >= data.len() {
        return None;
    }
    let mut hash = hash.unwrap_or_else(|| hash_of(sliding, &data[start - window..start]));
    let leaving = &data[start - window..];
    for (index, (&entering, &leaving)) in data[start..].iter().zip(leaving).enumerate() {
        hash = sliding.slide(hash, entering, leaving);
        if sliding.is_cut(hash) {
            return Some(start + index);
        }
    }
    None
}

/// The same as [`find_cut`], in one chain: the loop that papers print.
///
/// # Panics
/// When the first window begins before the data.
#[inline(always)]
pub(crate) fn find_cut_in_order<S: Sliding>(
    sliding: &S,
    data: &[u8],
    first: usize,
) -> Option<usize> {
    let window = sliding.window_bytes();
    assert!(window <= first + 1, "the first window lies in the data");
    if first >= data.len() {
        return None;
    }
    let mut hash = hash_of(sliding, &data[first + 1 - window..=first]);
    if sliding.is_cut(hash) {
        return Some(first);
    }
    let entering = data[first + 1..].iter();
    let leaving = &data[first + 1 - window..];
    for (index, (&entering, &leaving)) in entering.zip(leaving).enumerate() {
        hash = sliding.slide(hash, entering, leaving);
        if sliding.is_cut(hash) {
            return Some(first + 1 + index);
        }
    }
    None
}

/// Marks the positions `first + from..data.len()`, counted from `first`: those whose hash `is_loose`,
/// and of these which `is_strict`. Four lanes of equal lengths, to the end.
///
/// # Panics
/// When the first window begins before the data, or the marks are too few.
#[inline(always)]
pub(crate) fn mark<S: Sliding>(
    sliding: &S,
    judge: impl Fn(S::Hash) -> (bool, bool),
    data: &[u8],
    (first, from): (usize, usize),
    marks: &mut Marks<'_>,
) {
    let window = sliding.window_bytes();
    let mut mark = |hash: S::Hash, position: usize| {
        let (is_loose, is_strict) = judge(hash);
        if is_loose {
            marks.set(position - first, is_strict);
        }
    };
    let mut start = first + from;
    if start >= data.len() {
        return;
    }
    assert!(window <= start + 1, "the first window lies in the data");
    let mut hash = hash_of(sliding, &data[start + 1 - window..=start]);
    mark(hash, start);
    start += 1;
    let lane = (data.len() - start) / LANES;
    if lane >= LANE_BYTES_LEAST {
        let block = &data[start - window..start + LANES * lane];
        let entering: [&[u8]; LANES] = std::array::from_fn(|k| &block[window + k * lane..][..lane]);
        let leaving: [&[u8]; LANES] = std::array::from_fn(|k| &block[k * lane..][..lane]);
        let mut hashes = [hash; LANES];
        for (k, hash) in hashes.iter_mut().enumerate().skip(1) {
            *hash = hash_of(sliding, &block[k * lane..][..window]);
        }
        for index in 0..lane {
            for k in 0..LANES {
                hashes[k] = sliding.slide(hashes[k], entering[k][index], leaving[k][index]);
                mark(hashes[k], start + k * lane + index);
            }
        }
        hash = hashes[LANES - 1];
        start += LANES * lane;
    }
    let leaving = &data[start - window..];
    for (index, (&entering, &leaving)) in data[start..].iter().zip(leaving).enumerate() {
        hash = sliding.slide(hash, entering, leaving);
        mark(hash, start + index);
    }
}

/// See the method.
fn lane_bytes(window: usize, distance: u64) -> usize {
    (window as u64 * distance / 4).isqrt() as usize
}

fn hash_of<S: Sliding>(sliding: &S, bytes: &[u8]) -> S::Hash {
    bytes.iter().fold(sliding.start(), |hash, &entering| {
        sliding.enter(hash, entering)
    })
}

/// The hash after the last lane, or the first position that cuts. `block` has a window in front of
/// the lanes; `hash` is that of this window, if it is known.
#[inline(always)]
fn scan_block<S: Sliding>(
    sliding: &S,
    block: &[u8],
    lane: usize,
    hash: Option<S::Hash>,
) -> Result<S::Hash, usize> {
    let window = sliding.window_bytes();
    let lanes = Lanes {
        entering: std::array::from_fn(|k| &block[window + k * lane..][..lane]),
        leaving: std::array::from_fn(|k| &block[k * lane..][..lane]),
    };
    let mut hashes = [sliding.start(); LANES];
    let windows: [&[u8]; LANES] = std::array::from_fn(|k| &block[k * lane..][..window]);
    if let Some(hash) = hash {
        fill::<S, 1>(sliding, &windows, &mut hashes);
        hashes[0] = hash;
    } else {
        fill::<S, 0>(sliding, &windows, &mut hashes);
    }
    let mut cut = lanes.run::<S, LANES>(sliding, lane, 0, &mut hashes);
    let mut found = None;
    while let Some((k, index)) = cut {
        found = Some(k * lane + index);
        cut = match k {
            0 => None,
            1 => lanes.run::<S, 1>(sliding, lane, index + 1, &mut hashes),
            2 => lanes.run::<S, 2>(sliding, lane, index + 1, &mut hashes),
            _ => lanes.run::<S, 3>(sliding, lane, index + 1, &mut hashes),
        };
    }
    found.map_or(Ok(hashes[LANES - 1]), Err)
}

/// Takes the windows in, in lockstep, from lane `FROM` on.
#[inline(always)]
fn fill<S: Sliding, const FROM: usize>(
    sliding: &S,
    windows: &[&[u8]; LANES],
    hashes: &mut [S::Hash; LANES],
) {
    let window = windows[0].len();
    let windows: [&[u8]; LANES] = std::array::from_fn(|k| &windows[k][..window]);
    for index in 0..window {
        for (hash, window) in hashes.iter_mut().zip(&windows).skip(FROM) {
            *hash = sliding.enter(*hash, window[index]);
        }
    }
}

/// The bytes of a block that enter and leave, lane by lane.
struct Lanes<'a> {
    entering: [&'a [u8]; LANES],
    leaving: [&'a [u8]; LANES],
}

impl Lanes<'_> {
    /// Runs the first `RUNNING` lanes from byte `from` on, until one of them cuts: which, and at
    /// which of its bytes. Of several at the same byte, the first.
    #[inline(always)]
    fn run<S: Sliding, const RUNNING: usize>(
        &self,
        sliding: &S,
        lane: usize,
        from: usize,
        hashes: &mut [S::Hash; LANES],
    ) -> Option<(usize, usize)> {
        // Slices of one length, so that one check serves for all.
        let entering: [&[u8]; RUNNING] = std::array::from_fn(|k| &self.entering[k][..lane]);
        let leaving: [&[u8]; RUNNING] = std::array::from_fn(|k| &self.leaving[k][..lane]);
        let mut running: [S::Hash; RUNNING] = std::array::from_fn(|k| hashes[k]);
        let mut cut = None;
        'bytes: for index in from..lane {
            for k in 0..RUNNING {
                running[k] = sliding.slide(running[k], entering[k][index], leaving[k][index]);
            }
            for (k, &hash) in running.iter().enumerate() {
                if sliding.is_cut(hash) {
                    cut = Some((k, index));
                    break 'bytes;
                }
            }
        }
        hashes[..RUNNING].copy_from_slice(&running);
        cut
    }
}
