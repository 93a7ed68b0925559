//! How fast something goes, and how long it will take: from what happened lately, so that a
//! slow beginning is soon forgotten.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How far back the speed is measured.
const WINDOW: Duration = Duration::from_secs(15);
/// Least time between two samples: they stay few.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// The speed of a counter that only grows.
#[derive(Debug)]
pub struct Rate {
    samples: VecDeque<(Instant, u64)>,
}

impl Rate {
    /// A counter that stands at zero at `start`.
    pub fn new(start: Instant) -> Self {
        Self {
            samples: VecDeque::from([(start, 0)]),
        }
    }

    /// Takes note that the counter stands at `value` at `now`; returns the speed a second.
    pub fn update(&mut self, now: Instant, value: u64) -> f64 {
        while self.samples.len() > 1 && now.duration_since(self.samples[0].0) > WINDOW {
            self.samples.pop_front();
        }
        let (oldest, before) = self.samples[0];
        let seconds = now.duration_since(oldest).as_secs_f64();
        let newest = self.samples.back().map_or(oldest, |sample| sample.0);
        if now.duration_since(newest) >= SAMPLE_EVERY {
            self.samples.push_back((now, value));
        }
        if seconds > 0.0 {
            value.saturating_sub(before) as f64 / seconds
        } else {
            0.0
        }
    }
}

/// How long the rest takes at that speed. None when it does not move.
pub fn time_left(done: u64, total: u64, per_second: f64) -> Option<Duration> {
    let seconds = total.saturating_sub(done) as f64 / per_second;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_forgotten() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        assert_eq!(rate.update(start, 0), 0.0);
        let mut speed = 0.0;
        for second in 1..=60u64 {
            // Nothing for half a minute, then 100 a second.
            let value = 100 * second.saturating_sub(30);
            speed = rate.update(start + Duration::from_secs(second), value);
        }
        assert!((speed - 100.0).abs() < 1e-9, "{speed}");
        assert!(rate.samples.len() < 32);
    }

    #[test]
    fn no_speed_no_end() {
        assert_eq!(time_left(0, 10, 0.0), None);
        assert_eq!(time_left(5, 10, 1.0), Some(Duration::from_secs(5)));
        assert_eq!(time_left(20, 10, 1.0), Some(Duration::ZERO));
    }
}
