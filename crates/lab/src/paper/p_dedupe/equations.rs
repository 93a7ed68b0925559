//! Eqs. 3 to 6 of §2.3: how fast deduplication is, of how long its stages take.
//!
//! Enters: what the stages take for a byte of input, each on one thread. Leaves: bytes a second.
//! Writing stands for what is new only, Tw/D: that is what is measured.
//!
//! Eq. 6 divides chunking and fingerprinting by their threads, as if each had a core of its own. The
//! paper's own 4 + 4 threads ran on four cores. So there is a fifth form here, [`StageTimes::on_cores`]:
//! Eq. 6, and no more than what so many cores can do when they do nothing but the stages. It counts the
//! joining of segments as well, which one thread does. None of them knows of memory bandwidth, of
//! clocks that fall when more cores work, or of what threads wait for each other.

use super::system::Split;

/// Seconds for a byte of input, on one thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct StageTimes {
    /// Tc.
    pub chunk: f64,
    /// Joining segments at their borders; the equations leave it out.
    pub join: f64,
    /// Tf.
    pub fingerprint: f64,
    /// Ti.
    pub index: f64,
    /// Tw/D.
    pub write: f64,
    /// D: bytes over bytes of distinct chunks.
    pub factor: f64,
}

impl StageTimes {
    /// Eq. 3: without deduplication everything is written, 1 / Tw.
    pub fn only_writing(&self) -> f64 {
        1.0 / (self.write * self.factor)
    }

    /// Eq. 4: the stages after one another.
    pub fn serial(&self) -> f64 {
        1.0 / (self.chunk + self.fingerprint + self.index + self.write)
    }

    /// Eq. 5: a thread each, the slowest tells.
    pub fn pipelined(&self) -> f64 {
        let slowest = self.chunk.max(self.fingerprint);
        1.0 / slowest.max(self.index).max(self.write)
    }

    /// Eq. 6: chunking and fingerprinting on more threads; the paper's N is both of them.
    pub fn parallel(&self, split: Split) -> f64 {
        let chunk = self.chunk / split.chunking.max(1) as f64;
        let fingerprint = self.fingerprint / split.fingerprinting.max(1) as f64;
        1.0 / chunk.max(fingerprint).max(self.index).max(self.write)
    }

    /// Eq. 6 with joining, on so many cores, which all threads share.
    pub fn on_cores(&self, split: Split, cores: f64) -> f64 {
        let all = self.chunk + self.join + self.fingerprint + self.index + self.write;
        let limit = self.parallel(split).min(cores / all);
        if self.join > 0.0 {
            limit.min(1.0 / self.join)
        } else {
            limit
        }
    }

    /// So many threads, split by the costs of the two stages.
    pub fn split(&self, threads: usize) -> Split {
        Split::by_cost(threads, self.chunk, self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::p_dedupe::published;

    fn is_near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn equations_are_those_of_the_paper() {
        let times = StageTimes {
            chunk: 4.0,
            join: 0.1,
            fingerprint: 3.0,
            index: 0.5,
            write: 0.25,
            factor: 4.0,
        };
        assert!(is_near(times.only_writing(), 1.0));
        assert!(is_near(times.serial(), 1.0 / 7.75));
        assert!(is_near(times.pipelined(), 0.25));
        let split = |chunking, fingerprinting| Split {
            chunking,
            fingerprinting,
        };
        assert!(is_near(times.parallel(split(4, 4)), 1.0));
        assert!(is_near(times.parallel(split(2, 1)), 1.0 / 3.0));
        assert!(is_near(times.parallel(split(8, 60)), 2.0));
        assert!(is_near(times.on_cores(split(4, 4), 4.0), 4.0 / 7.85));
        assert!(is_near(times.on_cores(split(4, 4), 100.0), 1.0));
        let joining = StageTimes { join: 5.0, ..times };
        assert!(is_near(joining.on_cores(split(4, 4), 100.0), 0.2));
        assert_eq!(times.split(7), split(4, 3));
    }

    /// §2.2 gives 245 and 345 MB/s for Rabin and SHA-1 on one core.
    #[test]
    fn the_papers_own_stages_give_more_than_its_machine_did() {
        let times = published::STAGES;
        assert!((times.serial() / 1e6 - 143.26).abs() < 0.01);
        assert!((times.pipelined() / 1e6 - 245.0).abs() < 0.01);
        let split = published::SPLIT;
        assert!((times.parallel(split) / 1e6 - 980.0).abs() < 0.01);
        assert!((times.on_cores(split, 4.0) / 1e6 - 573.05).abs() < 0.01);
    }
}
