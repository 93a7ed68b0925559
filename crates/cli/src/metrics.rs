//! A file for Prometheus: when a verb ran last, how it ended, and its figures.
//!
//! Enters: the summary of a run. Leaves: a file in the text format that Prometheus and its node exporter read, with
//! one gauge for each number of the summary: `onefold_last_run_bytes_stored{verb="backup",profile="home"}`. What other
//! verbs and profiles left in the file stays, so that one file may serve all; a run that fails leaves the figures
//! and the time of the last one that did not. The file is replaced as a whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::exit_code::ExitCode;

/// What every name begins with.
const PREFIX: &str = "onefold_last_";

/// Longest file that is taken over, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A run that has ended.
#[derive(Debug)]
pub struct Ended<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The profile, if there is one.
    pub profile: Option<&'a str>,
    /// How it ended.
    pub code: ExitCode,
    /// Did the verb run at all?
    pub has_run: bool,
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// What it told at the end, if it got there.
    pub summary: Option<&'a Value>,
}

/// Values by the name of the metric, then by labels.
#[derive(Debug, Default, PartialEq)]
struct Metrics(BTreeMap<String, BTreeMap<String, String>>);

impl Ended<'_> {
    /// Writes the file.
    ///
    /// # Errors
    /// When it can't be written, or is something else.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut metrics = match read(path)? {
            Some(text) => Metrics::parse(&text).ok_or_else(|| {
                io::Error::other(
                    "it holds something else than metrics of onefold, and is left alone",
                )
            })?,
            None => Metrics::default(),
        };
        self.put(&mut metrics);
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.tmp", std::process::id()));
        let beside = PathBuf::from(beside);
        let written = fs::write(&beside, metrics.text()).and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn put(&self, metrics: &mut Metrics) {
        let labels = self.labels();
        let is_good = match self.code {
            ExitCode::Done | ExitCode::Partial => true,
            // Of a command after it.
            ExitCode::Hook => self.has_run,
            _ => false,
        };
        let mut put = |name: &str, value: String| {
            let values = metrics.0.entry(format!("{PREFIX}{name}")).or_default();
            values.insert(labels.clone(), value);
        };
        let since_1970 = self.began.duration_since(SystemTime::UNIX_EPOCH);
        let began = since_1970.unwrap_or_default().as_secs().to_string();
        put("run_timestamp_seconds", began.clone());
        put(
            "run_duration_seconds",
            format!("{:.3}", self.took.as_secs_f64()),
        );
        put("run_exit_code", self.code.number().to_string());
        if !is_good {
            return;
        }
        put("success_timestamp_seconds", began);
        let fields = self.summary.and_then(Value::as_object);
        for (name, value) in fields.into_iter().flatten() {
            let value = match value {
                Value::Number(number) => number.to_string(),
                Value::Bool(value) => u8::from(*value).to_string(),
                _ => continue,
            };
            put(&format!("success_{name}"), value);
        }
    }

    fn labels(&self) -> String {
        let mut labels = format!("verb=\"{}\"", escaped(self.verb));
        if let Some(profile) = self.profile {
            let _ = write!(labels, ",profile=\"{}\"", escaped(profile));
        }
        labels
    }
}

impl Metrics {
    /// What stands in a file; nothing if it is not one of ours.
    fn parse(text: &str) -> Option<Self> {
        let mut metrics = Self::default();
        for line in text.lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, rest) = line.split_once('{')?;
            let (labels, value) = rest.rsplit_once("} ")?;
            if !name.starts_with(PREFIX) {
                return None;
            }
            let values = metrics.0.entry(name.to_owned()).or_default();
            values.insert(labels.to_owned(), value.to_owned());
        }
        Some(metrics)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, values) in &self.0 {
            let _ = writeln!(text, "# TYPE {name} gauge");
            for (labels, value) in values {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        }
        text
    }
}

/// The file, if it is there.
fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.is_file() => return Err(io::Error::other("it is no file")),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Err(io::Error::other("it is too long to be one of onefold"));
        }
        Ok(_) => {}
    }
    fs::read_to_string(path).map(Some)
}

/// The value of a label as it stands between quotes.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ended<'a>(verb: &'a str, code: ExitCode, summary: Option<&'a Value>) -> Ended<'a> {
        Ended {
            verb,
            profile: Some("a \"b\""),
            code,
            has_run: true,
            began: SystemTime::UNIX_EPOCH + Duration::from_secs(1000),
            took: Duration::from_millis(1500),
            summary,
        }
    }

    #[test]
    fn runs_stand_beside_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onefold.prom");
        let summary =
            json!({"command": "backup", "bytes_stored": 7, "is_dry_run": false, "list": [1]});
        ended("backup", ExitCode::Done, Some(&summary))
            .write(&path)
            .unwrap();
        ended("prune", ExitCode::Done, None).write(&path).unwrap();
        let mut failed = ended("backup", ExitCode::Failed, None);
        failed.began += Duration::from_secs(60);
        failed.write(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let expected = r#"# TYPE onefold_last_run_duration_seconds gauge
onefold_last_run_duration_seconds{verb="backup",profile="a \"b\""} 1.500
onefold_last_run_duration_seconds{verb="prune",profile="a \"b\""} 1.500
# TYPE onefold_last_run_exit_code gauge
onefold_last_run_exit_code{verb="backup",profile="a \"b\""} 1
onefold_last_run_exit_code{verb="prune",profile="a \"b\""} 0
# TYPE onefold_last_run_timestamp_seconds gauge
onefold_last_run_timestamp_seconds{verb="backup",profile="a \"b\""} 1060
onefold_last_run_timestamp_seconds{verb="prune",profile="a \"b\""} 1000
# TYPE onefold_last_success_bytes_stored gauge
onefold_last_success_bytes_stored{verb="backup",profile="a \"b\""} 7
# TYPE onefold_last_success_is_dry_run gauge
onefold_last_success_is_dry_run{verb="backup",profile="a \"b\""} 0
# TYPE onefold_last_success_timestamp_seconds gauge
onefold_last_success_timestamp_seconds{verb="backup",profile="a \"b\""} 1000
onefold_last_success_timestamp_seconds{verb="prune",profile="a \"b\""} 1000
"#;
        assert_eq!(text, expected);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn other_files_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        for other in ["my notes\n", "node_load1{a=\"b\"} 3\n"] {
            let path = directory.path().join("other");
            fs::write(&path, other).unwrap();
            assert!(ended("backup", ExitCode::Done, None).write(&path).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
        assert!(
            ended("backup", ExitCode::Done, None)
                .write(directory.path())
                .is_err()
        );
        let nowhere = directory.path().join("none/metrics");
        assert!(
            ended("backup", ExitCode::Done, None)
                .write(&nowhere)
                .is_err()
        );
    }
}
