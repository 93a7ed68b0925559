//! Bandwidth limits: at most so many bytes a second, over all threads together.
//!
//! Transfers are queued on one line of time: each takes as long of it as its bytes take at the limit,
//! and begins when those before it are through. A transfer itself runs as fast as it can (an object is
//! at most some MiB), so the limit holds on average over a few objects.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// A limit on one direction.
#[derive(Debug)]
pub(crate) struct Throttle {
    bytes_a_second: Option<u64>,
    free_at: Mutex<Option<Instant>>,
}

impl Throttle {
    /// At most `bytes_a_second`, or no limit.
    pub fn new(bytes_a_second: Option<u64>) -> Self {
        Self {
            bytes_a_second,
            free_at: Mutex::new(None),
        }
    }

    /// Waits until `bytes` may be transferred.
    pub fn wait_for(&self, bytes: u64) {
        let wait = self.reserve(bytes, Instant::now());
        if !wait.is_zero() {
            thread::sleep(wait);
        }
    }

    /// Takes the next free piece of time for `bytes`; returns how long it is until that begins.
    fn reserve(&self, bytes: u64, now: Instant) -> Duration {
        let Some(limit) = self.bytes_a_second else {
            return Duration::ZERO;
        };
        let mut free_at = crate::lock(&self.free_at);
        let begin = free_at.map_or(now, |at| at.max(now));
        let takes = Duration::from_secs_f64(bytes as f64 / limit.max(1) as f64);
        // Beyond what a clock can hold there is no limit to speak of.
        *free_at = begin.checked_add(takes).or(Some(begin));
        begin - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_take_their_turns() {
        let throttle = Throttle::new(Some(1000));
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let seconds = Duration::from_secs;
        assert_eq!(throttle.reserve(3000, now), seconds(0));
        assert_eq!(throttle.reserve(1000, now), seconds(3));
        assert_eq!(throttle.reserve(1000, after(1)), seconds(3));
        // Time in which nothing was transferred is not saved up.
        assert_eq!(throttle.reserve(1000, after(100)), seconds(0));
        assert_eq!(throttle.reserve(1000, after(100)), seconds(1));
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let throttle = Throttle::new(None);
        let now = Instant::now();
        assert_eq!(throttle.reserve(u64::MAX, now), Duration::ZERO);
        assert_eq!(throttle.reserve(u64::MAX, now), Duration::ZERO);
    }
}
