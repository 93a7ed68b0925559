//! How a snapshot, or a path in one, is named on the command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::builder::{OsStringValueParser, TypedValueParser};
use repository::snapshot::{SnapshotError, SnapshotSpec};

use crate::names;

/// `SNAPSHOT` or `SNAPSHOT:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPath {
    /// Which snapshot.
    pub spec: SnapshotSpec,
    /// What of it, if not all; begins with `/`.
    pub path: Option<Vec<u8>>,
}

impl SnapshotPath {
    /// Reads an argument: what stands before the first colon names the snapshot.
    pub fn parse(argument: OsString) -> Result<Self, SnapshotError> {
        let bytes = argument.into_vec();
        let (spec, path) = match bytes.iter().position(|&byte| byte == b':') {
            Some(colon) => (&bytes[..colon], Some(&bytes[colon + 1..])),
            None => (&bytes[..], None),
        };
        Ok(Self {
            spec: String::from_utf8_lossy(spec).parse()?,
            path: path.map(names::snapshot_path),
        })
    }

    /// The same as a parser of arguments.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(Self::parse)
    }
}

/// A path in a snapshot; begins with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPath(pub Vec<u8>);

impl InnerPath {
    /// A parser of arguments.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().map(|path| Self(names::snapshot_path(&path.into_vec())))
    }
}

/// Reads the name of a snapshot.
pub fn parse_spec(text: &str) -> Result<SnapshotSpec, SnapshotError> {
    text.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_divides() {
        let parse = |text: &str| SnapshotPath::parse(text.into()).unwrap();
        assert_eq!(
            parse("latest:/a:b/"),
            SnapshotPath {
                spec: SnapshotSpec::Latest,
                path: Some(b"/a:b".to_vec()),
            }
        );
        assert_eq!(parse("0aF3").spec, SnapshotSpec::Prefix("0af3".to_owned()));
        assert_eq!(parse("latest").path, None);
        assert_eq!(parse("latest:").path, Some(b"/".to_vec()));
        assert!(SnapshotPath::parse("yesterday".into()).is_err());
    }
}
