//! The report of a comparison, for people (Markdown) and programs (JSON).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::figures::{ToolRuns, columns};

/// What was compared, on what.
#[derive(Debug)]
pub struct Report {
    /// Name of the data set.
    pub dataset: String,
    /// `versions` or `batch`.
    pub mode: &'static str,
    /// How many versions it has.
    pub versions: usize,
    /// Files in all of them.
    pub files: u64,
    /// And their bytes.
    pub bytes: u64,
    /// The tools, in the order in which they ran.
    pub tools: Vec<ToolRuns>,
}

impl Report {
    /// Writes `prefix.md` and `prefix.json`.
    ///
    /// # Errors
    /// When they can't be written.
    pub fn write(&self, prefix: &Path) -> Result<()> {
        let json = json!({
            "dataset": {
                "name": self.dataset,
                "versions": self.versions,
                "files": self.files,
                "bytes": self.bytes,
            },
            "mode": self.mode,
            "cores": cores(),
            "tools": self.tools.iter().map(ToolRuns::json).collect::<Vec<_>>(),
        });
        let json = serde_json::to_string_pretty(&json)?;
        for (ending, text) in [("md", self.table()), ("json", json)] {
            let mut path = prefix.as_os_str().to_owned();
            path.push(format!(".{ending}"));
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Medians as a Markdown table, a line for each tool.
    pub fn table(&self) -> String {
        let mut table = format!(
            "Data set `{}`: {} versions, {} files, {} bytes; mode {}; {} cores; medians.\n\n",
            self.dataset,
            self.versions,
            self.files,
            self.bytes,
            self.mode,
            cores()
        );
        let columns = columns();
        let heads: Vec<_> = columns.iter().map(|column| column.head).collect();
        let rule = " --: |".repeat(columns.len());
        // Writing to a text can't fail.
        let _ = writeln!(table, "| tool | runs | {} | restored |", heads.join(" | "));
        let _ = writeln!(table, "| --- | --: |{rule} :-: |");
        for tool in &self.tools {
            let failed = match tool.failures.len() {
                0 => String::new(),
                count => format!(" (+{count} failed)"),
            };
            let cells = columns.iter().map(|column| match tool.median(column) {
                Some(value) => format!("{value:.*}", column.digits),
                None => String::new(),
            });
            let cells = cells.collect::<Vec<_>>().join(" | ");
            let restored = match tool.restores() {
                None => "",
                Some(true) => "same",
                Some(false) => "DIFFERS",
            };
            let runs = tool.figures.len();
            let _ = writeln!(
                table,
                "| {} {} | {runs}{failed} | {cells} | {restored} |",
                tool.name, tool.version
            );
        }
        table
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figures;
    use super::super::measure::Usage;
    use super::*;

    #[test]
    fn tables_tell_what_failed_and_what_differs() {
        let mut good = ToolRuns::new("good", "1.0".to_owned());
        good.figures.push(Figures {
            backups: vec![Usage::default()],
            ..Figures::default()
        });
        let mut bad = ToolRuns::new("bad", "2.0".to_owned());
        bad.failures.push("it broke".to_owned());
        bad.figures.push(Figures {
            difference: Some("a: not there".to_owned()),
            ..Figures::default()
        });
        let report = Report {
            dataset: "set".to_owned(),
            mode: "batch",
            versions: 3,
            files: 4,
            bytes: 5,
            tools: vec![good, bad],
        };
        let table = report.table();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[4].starts_with("| good 1.0 | 1 | 0.00 |") && lines[4].ends_with("same |"));
        assert!(lines[5].starts_with("| bad 2.0 | 1 (+1 failed) |"));
        assert!(lines[5].ends_with("DIFFERS |"));
        let columns = |line: &str| line.matches('|').count();
        assert!(
            lines[2..]
                .iter()
                .all(|line| columns(line) == columns(lines[2]))
        );
    }
}
