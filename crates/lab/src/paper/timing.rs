//! Times that can be compared: ways take turns, so that a machine that gets slower meanwhile does so
//! for all; the median of each counts.

use std::time::Instant;

use crate::chunk::sizes::median;
use crate::interrupt;
use crate::progress::Progress;

/// Seconds that this thread ran: waiting, and other programs, do not count.
pub fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Something that is timed.
pub struct Way<'a> {
    name: String,
    run: Box<dyn FnMut() -> Timed + 'a>,
}

/// What a pass took, if the clock outside does not tell.
pub enum Timed {
    /// From its beginning to its end.
    Whole,
    /// So many seconds.
    Seconds(f64),
}

impl<'a> Way<'a> {
    /// A way whose whole pass counts.
    pub fn new(name: impl Into<String>, mut run: impl FnMut() + 'a) -> Self {
        Self {
            name: name.into(),
            run: Box::new(move || {
                run();
                Timed::Whole
            }),
        }
    }

    /// A way that says itself how many seconds count.
    pub fn telling(name: impl Into<String>, mut run: impl FnMut() -> f64 + 'a) -> Self {
        Self {
            name: name.into(),
            run: Box::new(move || Timed::Seconds(run())),
        }
    }
}

/// Runs all ways in turn, `runs` times, each over so many bytes; the median of the seconds of each.
///
/// # Errors
/// When somebody asked for a stop.
pub fn alternate(
    runs: usize,
    bytes: u64,
    ways: &mut [Way<'_>],
    progress: &mut Progress,
) -> anyhow::Result<Vec<f64>> {
    progress.expect(bytes * (runs * ways.len()) as u64);
    let mut seconds = vec![Vec::with_capacity(runs); ways.len()];
    for _ in 0..runs {
        for (way, seconds) in ways.iter_mut().zip(&mut seconds) {
            interrupt::check()?;
            let clock = Instant::now();
            let timed = (way.run)();
            let elapsed = clock.elapsed().as_secs_f64();
            seconds.push(match timed {
                Timed::Whole => elapsed,
                Timed::Seconds(seconds) => seconds,
            });
            progress.advance(bytes, &way.name);
        }
    }
    Ok(seconds.iter().map(|seconds| median(seconds)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_take_turns() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut ways = [
            Way::new("a", || order.borrow_mut().push('a')),
            Way::telling("b", || {
                order.borrow_mut().push('b');
                7.0
            }),
        ];
        let seconds = alternate(2, 10, &mut ways, &mut Progress::new(true)).unwrap();
        assert_eq!(seconds[1], 7.0);
        assert!(seconds[0] < 7.0);
        assert_eq!(*order.borrow(), ['a', 'b', 'a', 'b']);
    }
}
