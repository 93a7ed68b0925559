//! What is measured of a tool in a run, and medians over runs.

use serde_json::{Value, json};

use super::measure::Usage;

/// All figures of one run of one tool.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Which run it was, from 1.
    pub run: u32,
    /// Each backup that stored something, in order.
    pub backups: Vec<Usage>,
    /// A backup of the tree as it was.
    pub unchanged: Usage,
    /// A restore of the latest snapshot.
    pub restore: Usage,
    /// A check that reads all data.
    pub check: Usage,
    /// Length of all files of the repository after the backups.
    pub repository_bytes: u64,
    /// How many they are.
    pub repository_files: u64,
    /// What the tool keeps besides: caches, configuration, logs.
    pub state_bytes: u64,
    /// Snapshots in the repository at the end.
    pub snapshots: usize,
    /// In what the restored tree differs from the original, if it does.
    pub difference: Option<String>,
}

/// Which table of the report a column stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Times and sizes.
    Results,
    /// Processor time and memory.
    Costs,
}

/// A column of the report: its name in JSON, its head in the table, its digits, its value.
pub struct Column {
    /// Where it stands.
    pub table: Table,
    /// Unit last.
    pub name: &'static str,
    /// For a person.
    pub head: &'static str,
    /// Digits behind the point in the table.
    pub digits: usize,
    /// What it is of a run.
    pub value: fn(&Figures) -> f64,
}

const MIB: f64 = 1_048_576.0;

fn result(
    name: &'static str,
    head: &'static str,
    digits: usize,
    value: fn(&Figures) -> f64,
) -> Column {
    Column {
        table: Table::Results,
        name,
        head,
        digits,
        value,
    }
}

fn cost(name: &'static str, head: &'static str, value: fn(&Figures) -> f64) -> Column {
    Column {
        table: Table::Costs,
        name,
        head,
        digits: if name.ends_with("_s") { 2 } else { 1 },
        value,
    }
}

/// The columns, in order.
pub fn columns() -> [Column; 17] {
    [
        result("backup_s", "backup, s", 2, |f| {
            f.backups.iter().map(|u| u.seconds).sum()
        }),
        result("first_backup_s", "first backup, s", 2, |f| {
            f.backups.first().map_or(0.0, |u| u.seconds)
        }),
        result("unchanged_s", "unchanged, s", 2, |f| f.unchanged.seconds),
        result("restore_s", "restore, s", 2, |f| f.restore.seconds),
        result("check_s", "check with data, s", 2, |f| f.check.seconds),
        result("repository_mib", "repository, MiB", 2, |f| {
            f.repository_bytes as f64 / MIB
        }),
        result("repository_files", "files", 0, |f| {
            f.repository_files as f64
        }),
        result("state_mib", "caches, MiB", 1, |f| {
            f.state_bytes as f64 / MIB
        }),
        cost("backup_processor_s", "backup, CPU s", |f| {
            f.backups.iter().map(|u| u.processor_seconds).sum()
        }),
        cost("unchanged_processor_s", "unchanged, CPU s", |f| {
            f.unchanged.processor_seconds
        }),
        cost("restore_processor_s", "restore, CPU s", |f| {
            f.restore.processor_seconds
        }),
        cost("check_processor_s", "check, CPU s", |f| {
            f.check.processor_seconds
        }),
        cost("backup_resident_mib", "backup, peak MiB", |f| {
            peak_mib(&f.backups)
        }),
        cost("unchanged_resident_mib", "unchanged, peak MiB", |f| {
            peak_mib(&[f.unchanged])
        }),
        cost("restore_resident_mib", "restore, peak MiB", |f| {
            peak_mib(&[f.restore])
        }),
        cost("check_resident_mib", "check, peak MiB", |f| {
            peak_mib(&[f.check])
        }),
        cost("resident_mib", "all, peak MiB", |f| {
            peak_mib(&f.backups).max(peak_mib(&[f.unchanged, f.restore, f.check]))
        }),
    ]
}

fn peak_mib(usages: &[Usage]) -> f64 {
    let peak = usages.iter().map(|usage| usage.resident_kib).max();
    peak.unwrap_or(0) as f64 / 1024.0
}

/// All runs of one tool.
#[derive(Debug)]
pub struct ToolRuns {
    /// How it was asked for.
    pub label: String,
    /// The version that ran.
    pub version: String,
    /// Is it another program than ours?
    pub is_peer: bool,
    /// The runs that came to their end.
    pub figures: Vec<Figures>,
    /// What went wrong in the others.
    pub failures: Vec<String>,
}

impl ToolRuns {
    /// No runs yet.
    pub fn new(label: String, version: String, is_peer: bool) -> Self {
        Self {
            label,
            version,
            is_peer,
            figures: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// The median of a column; nothing without a run.
    pub fn median(&self, column: &Column) -> Option<f64> {
        median(self.figures.iter().map(column.value).collect())
    }

    /// Was the restored tree the original one in every run? Nothing without a run.
    pub fn restores(&self) -> Option<bool> {
        let mut runs = self.figures.iter();
        (!self.figures.is_empty()).then(|| runs.all(|run| run.difference.is_none()))
    }

    /// Medians and every run.
    pub fn json(&self) -> Value {
        let columns = columns();
        let medians = columns
            .iter()
            .filter_map(|column| Some((column.name.to_owned(), json!(self.median(column)?))));
        let runs = self.figures.iter().map(|figures| {
            let mut run: serde_json::Map<_, _> = columns
                .iter()
                .map(|column| (column.name.to_owned(), json!((column.value)(figures))))
                .collect();
            let series: Vec<f64> = figures.backups.iter().map(|usage| usage.seconds).collect();
            run.insert("backup_series_s".to_owned(), json!(series));
            run.insert("run".to_owned(), json!(figures.run));
            run.insert("snapshots".to_owned(), json!(figures.snapshots));
            run.insert("difference".to_owned(), json!(figures.difference));
            Value::Object(run)
        });
        json!({
            "tool": self.label,
            "version": self.version,
            "median": medians.collect::<serde_json::Map<_, _>>(),
            "runs": runs.collect::<Vec<_>>(),
            "failures": self.failures,
        })
    }
}

/// The middle one, or half of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let upper = *values.get(count / 2)?;
    let lower = values[(count - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn sums_and_peaks() {
        let usage = |seconds, resident_kib| Usage {
            seconds,
            processor_seconds: 2.0 * seconds,
            resident_kib,
        };
        let figures = Figures {
            backups: vec![usage(1.0, 1024), usage(2.0, 3072)],
            check: usage(0.5, 4096),
            repository_bytes: 1 << 20,
            ..Figures::default()
        };
        let value = |name: &str| {
            let found = columns().into_iter().find(|column| column.name == name);
            (found.expect("there is such a column").value)(&figures)
        };
        assert_eq!(value("backup_s"), 3.0);
        assert_eq!(value("backup_processor_s"), 6.0);
        assert_eq!(value("backup_resident_mib"), 3.0);
        assert_eq!(value("resident_mib"), 4.0);
        assert_eq!(value("repository_mib"), 1.0);
    }
}
