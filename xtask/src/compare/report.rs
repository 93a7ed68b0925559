//! The report of a comparison, for people (Markdown) and programs (JSON).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::figures::{Column, Table, ToolRuns, columns};
use super::machine::Machine;
use super::ratios::{Ratio, ratios_json, targets, targets_json};

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
    /// Where.
    pub machine: Machine,
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
            "machine": self.machine.json(),
            "tools": self.tools.iter().map(ToolRuns::json).collect::<Vec<_>>(),
            "ratios": ratios_json(&self.tools),
            "targets": targets_json(&self.tools),
        });
        let json = serde_json::to_string_pretty(&json)?;
        for (ending, text) in [("md", self.text()), ("json", json)] {
            let mut path = prefix.as_os_str().to_owned();
            path.push(format!(".{ending}"));
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Medians as Markdown tables, a line for each tool, and ours beside the best peer.
    pub fn text(&self) -> String {
        format!(
            "Data set `{}`: {} versions, {} files, {} bytes; mode {}; medians.\n\
             {}.\n\n{}\n{}{}",
            self.dataset,
            self.versions,
            self.files,
            self.bytes,
            self.mode,
            self.machine.text(),
            self.table(Table::Results),
            self.table(Table::Costs),
            self.targets()
        )
    }

    /// One of the tables; below the tools, ours over the best peer of each column.
    fn table(&self, which: Table) -> String {
        let columns: Vec<Column> = columns()
            .into_iter()
            .filter(|column| column.table == which)
            .collect();
        let heads: Vec<_> = columns.iter().map(|column| column.head).collect();
        let rule = " --: |".repeat(columns.len());
        let mut table = String::new();
        // Writing to a text can't fail.
        let _ = writeln!(table, "| tool | runs | {} | restored |", heads.join(" | "));
        let _ = writeln!(table, "| --- | --: |{rule} :-: |");
        for tool in &self.tools {
            let cells = columns.iter().map(|column| match tool.median(column) {
                Some(value) => format!("{value:.*}", column.digits),
                None => String::new(),
            });
            let cells = cells.collect::<Vec<_>>().join(" | ");
            let failed = match tool.failures.len() {
                0 => String::new(),
                count => format!(" (+{count} failed)"),
            };
            let (runs, restored) = (tool.figures.len(), restored(tool));
            let _ = writeln!(
                table,
                "| {} {} | {runs}{failed} | {cells} | {restored} |",
                tool.label, tool.version
            );
        }
        for ours in self.tools.iter().filter(|tool| !tool.is_peer) {
            let ratios: Vec<_> = columns
                .iter()
                .map(|column| Ratio::of(ours, &self.tools, column))
                .collect();
            if ratios.iter().all(Option::is_none) {
                continue;
            }
            let cells = ratios.iter().map(|ratio| match ratio {
                Some(ratio) => format!("×{:.2}", ratio.ratio),
                None => String::new(),
            });
            let cells = cells.collect::<Vec<_>>().join(" | ");
            let _ = writeln!(table, "| {}, of the best peer | | {cells} | |", ours.label);
        }
        table
    }

    /// Ours beside what is wanted.
    fn targets(&self) -> String {
        let targets = targets(&self.tools);
        if targets.is_empty() {
            return String::new();
        }
        let mut table =
            "\n| ours | what | median | best peer | ratio (least to most) | wanted | met |\n\
                         | --- | --- | --: | --- | --: | --- | :-: |\n"
                .to_owned();
        for target in targets {
            let (peer, ratio) = match &target.ratio {
                Some(ratio) => (
                    format!("{} {:.2}", ratio.peer, ratio.peer_value),
                    format!(
                        "{:.2} ({:.2} to {:.2})",
                        ratio.ratio, ratio.least, ratio.most
                    ),
                ),
                None => (String::new(), String::new()),
            };
            let met = match target.is_met {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            let _ = writeln!(
                table,
                "| {} | {} | {:.2} | {peer} | {ratio} | {} | {met} |",
                target.label,
                target.head,
                target.value,
                target.aim_text()
            );
        }
        table
    }
}

fn restored(tool: &ToolRuns) -> &'static str {
    match tool.restores() {
        None => "",
        Some(true) => "same",
        Some(false) => "DIFFERS",
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figures;
    use super::super::measure::Usage;
    use super::*;

    fn report(tools: Vec<ToolRuns>) -> Report {
        Report {
            dataset: "set".to_owned(),
            mode: "batch",
            versions: 3,
            files: 4,
            bytes: 5,
            machine: Machine::here(),
            tools,
        }
    }

    fn tool(label: &str, is_peer: bool, seconds: f64) -> ToolRuns {
        let mut runs = ToolRuns::new(label.to_owned(), "1.0".to_owned(), is_peer);
        runs.figures.push(Figures {
            run: 1,
            backups: vec![Usage {
                seconds,
                ..Usage::default()
            }],
            ..Figures::default()
        });
        runs
    }

    #[test]
    fn tables_tell_what_failed_and_what_differs() {
        let mut bad = tool("bad", true, 2.0);
        bad.failures.push("it broke".to_owned());
        bad.figures[0].difference = Some("a: not there".to_owned());
        let report = report(vec![tool("good", true, 1.0), bad]);
        for table in [Table::Results, Table::Costs] {
            let table = report.table(table);
            let lines: Vec<&str> = table.lines().collect();
            assert!(lines[2].starts_with("| good 1.0 | 1 |") && lines[2].ends_with("same |"));
            assert!(lines[3].starts_with("| bad 1.0 | 1 (+1 failed) |"));
            assert!(lines[3].ends_with("DIFFERS |"));
            let columns = |line: &&str| line.matches('|').count();
            assert!(lines.iter().all(|line| columns(line) == columns(&lines[0])));
            assert_eq!(lines.len(), 4, "without ours there are no ratios");
        }
        assert_eq!(report.targets(), "");
    }

    #[test]
    fn ours_stands_beside_the_best_peer() {
        let tools = vec![
            tool("slow", true, 9.0),
            tool("fast", true, 4.0),
            tool("onefold:--threads=1", false, 1.0),
        ];
        let text = report(tools).text();
        let ratios = "| onefold:--threads=1, of the best peer | | ×0.25 | ×0.25 |";
        assert!(text.contains(ratios), "{text}");
        let target = "| onefold:--threads=1 | backup, s | 1.00 | fast 4.00 | 0.25 (0.25 to 0.25) | \
                      ≤ 0.5 of the best peer | yes |";
        assert!(text.contains(target), "{text}");
    }
}
