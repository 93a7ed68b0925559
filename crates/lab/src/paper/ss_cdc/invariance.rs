//! Table 2.1, tested: lists of cuts are compared with those of the sequential chunker.
//!
//! For every approach: with several chunkers, sizes of segments, numbers of threads and, where it
//! has them, levels of instruction sets. A list is the cuts of one file. One list that differs, and the
//! approach is not invariant.

use chunking::{Algorithm, Isa};

use super::SIZES;
use super::forms::{Form, sequential, sized};
use crate::interrupt;
use crate::paper::dedup::Lengths;
use crate::paper::figure::Figure;
use crate::paper::loaded::LoadedSet;
use crate::paper::timing::{Way, alternate};
use crate::paper::{Plan, Results};
use crate::progress::Progress;

use super::published;

/// The approaches of the table, and the lazy form.
pub const APPROACHES: [&str; 5] = ["P-Dedupe", "MUCH", "Shredder", "SS-CDC", "SS-CDC, lazy"];

/// Files are taken up to so many bytes together: MUCH goes byte after byte.
const SAMPLE_BYTES: usize = 48 << 20;
/// The last is no power of two, nor a multiple of what vectors take.
const SEGMENTS: [usize; 3] = [1 << 20, 256 << 10, 1_000_003];
const THREADS: [usize; 2] = [1, 3];
const CHUNKERS: [Algorithm; 4] = [
    Algorithm::Crc32,
    Algorithm::FastCdc,
    Algorithm::Gear,
    Algorithm::Rabin,
];

/// How often lists were the same.
#[derive(Default, Clone, Copy)]
struct Compared {
    lists: u64,
    different: u64,
}

impl Compared {
    fn add(&mut self, expected: &[Lengths], cuts: &[Lengths]) {
        for (expected, cuts) in expected.iter().zip(cuts) {
            self.lists += 1;
            self.different += u64::from(expected != cuts);
        }
    }
}

/// The first files of a set; of the first, what is left of the room.
fn sample<'a>(files: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut left = SAMPLE_BYTES;
    let mut taken = Vec::new();
    for file in files {
        let length = file.len().min(left);
        if length == 0 {
            break;
        }
        taken.push(&file[..length]);
        left -= length;
    }
    taken
}

/// Compares on one data set.
pub fn on_set(
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = sample(&set.files());
    let bytes: usize = files.iter().map(|file| file.len()).sum();
    progress.expect((bytes * CHUNKERS.len()) as u64);
    let mut compared = [Compared::default(); APPROACHES.len()];
    for algorithm in CHUNKERS {
        compare(algorithm, &files, &mut compared)?;
        progress.advance(bytes as u64, "comparing cuts");
    }
    let gains = gains(&files, plan, progress)?;
    for (index, approach) in APPROACHES.into_iter().enumerate() {
        let mut add = |metric, ours, paper| {
            let figure = Figure::new("table2.1", &set.name, approach, metric);
            results.figures.push(figure.with(ours, paper));
        };
        let Compared { lists, different } = compared[index];
        let is_invariant = f64::from(u8::from(different == 0));
        add(
            "is_invariant",
            is_invariant,
            published::is_invariant(approach),
        );
        add("cut_lists", lists as f64, None);
        add("cut_lists_different", different as f64, None);
        let (by_threads, by_simd) = gains[index];
        if let Some(gain) = by_threads {
            add("two_threads_speed_up", gain, None);
        }
        if let Some(gain) = by_simd {
            add("simd_speed_up", gain, None);
        }
    }
    Ok(())
}

/// Compares all approaches over one chunker.
fn compare(
    algorithm: Algorithm,
    files: &[&[u8]],
    compared: &mut [Compared; APPROACHES.len()],
) -> anyhow::Result<()> {
    let chunker = sequential(&sized(algorithm, SIZES))?;
    let expected = Form::Sequential(chunker.clone()).one_file(1, files);
    for segment_bytes in SEGMENTS {
        let forms = [
            Form::joined(&chunker, segment_bytes)?,
            Form::much(&chunker, segment_bytes)?,
            Form::Segments(chunker.clone(), segment_bytes),
        ];
        for (form, compared) in forms.iter().zip(compared.iter_mut()) {
            interrupt::check()?;
            // Their cuts do not hang on threads: all there are to see to that.
            compared.add(&expected, &form.one_file(THREADS[1], files));
        }
        for isa in Isa::available() {
            let form = Form::two_stage(&chunker, isa, segment_bytes)?;
            for threads in THREADS {
                interrupt::check()?;
                compared[3].add(&expected, &form.one_file(threads, files));
            }
        }
    }
    for isa in Isa::available() {
        let lazy = Form::lazy(&chunker.clone().with_isa(isa));
        compared[4].add(&expected, &lazy.one_file(1, files));
    }
    Ok(())
}

/// What two threads gain, and what SIMD does, with CRC-32.
type Gains = (Option<f64>, Option<f64>);

fn gains(
    files: &[&[u8]],
    plan: &Plan,
    progress: &mut Progress,
) -> anyhow::Result<[Gains; APPROACHES.len()]> {
    let chunker = sequential(&sized(Algorithm::Crc32, SIZES))?;
    let segment_bytes = SEGMENTS[0];
    let best = Isa::best();
    let forms = [
        Form::joined(&chunker, segment_bytes)?,
        Form::much(&chunker, segment_bytes)?,
        Form::Segments(chunker.clone(), segment_bytes),
        Form::two_stage(&chunker, best, segment_bytes)?,
        Form::lazy(&chunker.clone().with_isa(best)),
    ];
    let scalar = [
        Form::two_stage(&chunker, Isa::Scalar, segment_bytes)?,
        Form::lazy(&chunker.clone().with_isa(Isa::Scalar)),
    ];
    let mut ways = Vec::new();
    for threads in [1, 2] {
        for form in &forms {
            ways.push(Way::new("threads", move || {
                std::hint::black_box(form.one_file(threads, files));
            }));
        }
    }
    for form in &scalar {
        ways.push(Way::new("scalar", || {
            std::hint::black_box(form.one_file(1, files));
        }));
    }
    let bytes: usize = files.iter().map(|file| file.len()).sum();
    let seconds = alternate(plan.runs, bytes as u64, &mut ways, progress)?;
    let count = forms.len();
    let mut gains = [(None, None); APPROACHES.len()];
    for (index, gain) in gains.iter_mut().enumerate() {
        // The lazy form knows no threads inside of a file.
        let has_threads = index + 1 < count && plan.threads > 1;
        gain.0 = has_threads.then(|| seconds[index] / seconds[count + index]);
    }
    gains[3].1 = Some(seconds[2 * count] / seconds[3]);
    gains[4].1 = Some(seconds[2 * count + 1] / seconds[4]);
    Ok(gains)
}
