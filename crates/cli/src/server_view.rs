//! What a run asked of the server that its repository lies on, for people and for programs.

use remote::{CacheCounts, RemoteCounts};
use serde::Serialize;

use crate::units;

/// The same in JSON.
#[derive(Debug, Clone, Serialize)]
pub struct ServerEvent {
    requests: u64,
    retries: u64,
    puts: u64,
    put_bytes: u64,
    reads: u64,
    read_bytes: u64,
    lists: u64,
    deletes: u64,
    cache_hits: u64,
    cache_hit_bytes: u64,
}

impl ServerEvent {
    /// What these counts say.
    pub fn new(counts: RemoteCounts, cache: CacheCounts) -> Self {
        let operations = counts.operations;
        Self {
            requests: counts.requests,
            retries: counts.retries,
            puts: operations.puts,
            put_bytes: operations.put_bytes,
            reads: operations.reads(),
            read_bytes: operations.read_bytes(),
            lists: operations.lists,
            deletes: operations.deletes,
            cache_hits: cache.hits,
            cache_hit_bytes: cache.hit_bytes,
        }
    }

    /// The same in a line.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Server: {} ({}), {} with {}, {} with {}, {}, {}",
            units::counted(self.requests, "request", "requests"),
            match self.retries {
                0 => "none tried again".to_owned(),
                retries => format!("{retries} tried again"),
            },
            units::counted(self.puts, "put", "puts"),
            units::bytes(self.put_bytes),
            units::counted(self.reads, "read", "reads"),
            units::bytes(self.read_bytes),
            units::counted(self.lists, "listing", "listings"),
            units::counted(self.deletes, "deletion", "deletions"),
        );
        if self.cache_hits > 0 {
            let hits = units::counted(self.cache_hits, "read", "reads");
            let bytes = units::bytes(self.cache_hit_bytes);
            text.push_str(&format!(
                "; {hits} with {bytes} from copies on this machine"
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::object::OperationCounts;

    #[test]
    fn a_line_says_what_was_asked_for() {
        let operations = OperationCounts {
            puts: 1,
            put_bytes: 4 << 20,
            gets: 2,
            ranges: 3,
            range_bytes: 1 << 10,
            lists: 4,
            ..OperationCounts::default()
        };
        let counts = RemoteCounts {
            operations,
            requests: 12,
            retries: 2,
        };
        let text = ServerEvent::new(counts, CacheCounts::default()).text();
        assert_eq!(
            text,
            "Server: 12 requests (2 tried again), 1 put with 4.0 MiB, 5 reads with 1.0 KiB, \
             4 listings, 0 deletions"
        );
    }
}
