//! Ours beside the peers: ratios and targets.
//!
//! In each column the best peer is the one with the least median. A ratio is ours over its, of
//! the same run (tools take turns, so that a machine that gets slower does so for both); told are
//! the median, the least and the most of all runs.

use serde_json::{Value, json};

use super::figures::{Column, ToolRuns, columns, median};

/// Ours over the best peer in one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Label of that peer.
    pub peer: String,
    /// Its median.
    pub peer_value: f64,
    /// Median of the ratios of all runs.
    pub ratio: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Ratio {
    /// That of `ours` in a column; nothing without a peer, or where the best has none of it.
    pub fn of(ours: &ToolRuns, all: &[ToolRuns], column: &Column) -> Option<Self> {
        let peers = all.iter().filter(|tool| tool.is_peer);
        let medians = peers.filter_map(|peer| Some((peer, peer.median(column)?)));
        let (peer, peer_value) = medians.min_by(|left, right| left.1.total_cmp(&right.1))?;
        let paired = ours.figures.iter().filter_map(|our| {
            let their = peer.figures.iter().find(|their| their.run == our.run)?;
            let ratio = (column.value)(our) / (column.value)(their);
            ratio.is_finite().then_some(ratio)
        });
        let ratios: Vec<f64> = paired.collect();
        Some(Self {
            peer: peer.label.clone(),
            peer_value,
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            most: ratios.iter().copied().fold(0.0, f64::max),
            ratio: median(ratios)?,
        })
    }

    fn json(&self) -> Value {
        json!({
            "peer": self.peer,
            "peer_value": self.peer_value,
            "ratio": self.ratio,
            "ratio_least": self.least,
            "ratio_most": self.most,
        })
    }
}

/// What is wanted of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    /// At most so much of the best peer's.
    OfBestPeer(f64),
    /// At most so much.
    AtMost(f64),
}

/// The columns that something is wanted of.
pub const AIMS: [(&str, Aim); 5] = [
    ("backup_s", Aim::OfBestPeer(0.5)),
    ("unchanged_s", Aim::AtMost(0.3)),
    ("restore_s", Aim::OfBestPeer(1.0)),
    ("check_s", Aim::OfBestPeer(1.0)),
    ("repository_mib", Aim::OfBestPeer(1.0)),
];

/// One of ours beside one aim.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Who of ours.
    pub label: String,
    /// Name of the column.
    pub column: &'static str,
    /// Its head.
    pub head: &'static str,
    /// Our median.
    pub value: f64,
    /// Ours over the best peer, where there is one.
    pub ratio: Option<Ratio>,
    /// What is wanted.
    pub aim: Aim,
    /// Whether it is so; unknown without a peer to compare with.
    pub is_met: Option<bool>,
}

impl Target {
    /// What is wanted, in words.
    pub fn aim_text(&self) -> String {
        match self.aim {
            Aim::OfBestPeer(share) => format!("≤ {share} of the best peer"),
            Aim::AtMost(value) => format!("≤ {value}"),
        }
    }

    fn json(&self) -> Value {
        json!({
            "tool": self.label,
            "column": self.column,
            "value": self.value,
            "aim": self.aim_text(),
            "is_met": self.is_met,
        })
    }
}

/// All of ours beside all aims.
pub fn targets(all: &[ToolRuns]) -> Vec<Target> {
    let columns = columns();
    let mut targets = Vec::new();
    for ours in all.iter().filter(|tool| !tool.is_peer) {
        for (name, aim) in AIMS {
            let Some(column) = columns.iter().find(|column| column.name == name) else {
                continue;
            };
            let Some(value) = ours.median(column) else {
                continue;
            };
            let ratio = Ratio::of(ours, all, column);
            let is_met = match aim {
                Aim::OfBestPeer(share) => ratio.as_ref().map(|ratio| ratio.ratio <= share),
                Aim::AtMost(most) => Some(value <= most),
            };
            targets.push(Target {
                label: ours.label.clone(),
                column: column.name,
                head: column.head,
                value,
                ratio,
                aim,
                is_met,
            });
        }
    }
    targets
}

/// Ratios in all columns, of each of ours.
pub fn ratios_json(all: &[ToolRuns]) -> Value {
    let of_tool = |ours: &ToolRuns| {
        let columns = columns();
        let ratios = columns.iter().filter_map(|column| {
            let ratio = Ratio::of(ours, all, column)?;
            Some((column.name.to_owned(), ratio.json()))
        });
        let ratios: serde_json::Map<_, _> = ratios.collect();
        json!({ "tool": ours.label, "columns": ratios })
    };
    let ours = all.iter().filter(|tool| !tool.is_peer);
    ours.map(of_tool).collect()
}

/// The targets for programs.
pub fn targets_json(all: &[ToolRuns]) -> Value {
    targets(all).iter().map(Target::json).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figures;
    use super::super::measure::Usage;
    use super::*;

    /// A tool whose runs backed up and checked in so many seconds.
    fn tool(label: &str, is_peer: bool, seconds: &[f64]) -> ToolRuns {
        let mut runs = ToolRuns::new(label.to_owned(), "1".to_owned(), is_peer);
        for (run, &seconds) in (1..).zip(seconds) {
            let usage = Usage {
                seconds,
                ..Usage::default()
            };
            runs.figures.push(Figures {
                run,
                backups: vec![usage],
                check: usage,
                unchanged: usage,
                ..Figures::default()
            });
        }
        runs
    }

    fn column(name: &str) -> Column {
        let found = columns().into_iter().find(|column| column.name == name);
        found.unwrap()
    }

    #[test]
    fn ratios_are_of_the_same_run_and_the_best_peer() {
        let all = [
            tool("slow", true, &[9.0, 9.0, 9.0]),
            tool("fast", true, &[4.0, 8.0, 2.0]),
            tool("ours", false, &[2.0, 2.0, 3.0]),
        ];
        let ratio = Ratio::of(&all[2], &all, &column("backup_s")).unwrap();
        assert_eq!((ratio.peer.as_str(), ratio.peer_value), ("fast", 4.0));
        assert_eq!((ratio.least, ratio.ratio, ratio.most), (0.25, 0.5, 1.5));
        // The best peer's is nothing.
        assert_eq!(Ratio::of(&all[2], &all, &column("restore_s")), None);
        assert_eq!(Ratio::of(&all[2], &all[2..], &column("backup_s")), None);
    }

    #[test]
    fn runs_that_failed_have_no_partner() {
        let mut all = [
            tool("fast", true, &[4.0, 8.0]),
            tool("ours", false, &[2.0, 2.0]),
        ];
        all[0].figures.remove(0);
        let ratio = Ratio::of(&all[1], &all, &column("backup_s")).unwrap();
        assert_eq!((ratio.least, ratio.most), (0.25, 0.25));
    }

    #[test]
    fn targets_are_met_or_not_or_unknown() {
        let all = [tool("fast", true, &[1.0]), tool("ours", false, &[0.6])];
        let met = |all: &[ToolRuns], name: &str| {
            let found = targets(all).into_iter().find(|one| one.column == name);
            found.unwrap().is_met
        };
        assert_eq!(met(&all, "backup_s"), Some(false));
        assert_eq!(met(&all, "check_s"), Some(true));
        assert_eq!(met(&all, "unchanged_s"), Some(false));
        assert_eq!(met(&all[1..], "backup_s"), None);
        assert_eq!(targets(&all[..1]), []);
    }
}
