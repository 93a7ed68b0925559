//! Where a repository lies: a directory, or a place on a server.
//!
//! Enters: what a person types after `--repo`. Leaves: a [`Location`]; it holds no secret, and is shown
//! as it can be typed again. Credentials come from the environment alone, so that none is in a list of
//! processes, a log, or a shell's history.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a location begins with when it is no directory.
pub const SCHEMES: [&str; 5] = ["s3", "sftp", "webdav", "gcs", "azure"];

/// Where a repository lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A place on a server.
    Remote(Address),
}

/// A place on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A bucket of an S3 server.
    S3 {
        /// `https://host:port`; AWS itself where none is given.
        endpoint: Option<String>,
        /// The bucket, which must be there.
        bucket: String,
        /// What the keys of all objects begin with: parts with `/` between, none around.
        prefix: String,
    },
    /// A directory that an SSH server hands out.
    Sftp {
        /// `[user@]host` or `ssh://[user@]host:port`, as `ssh` takes it.
        host: String,
        /// The directory, from the root that the server shows: begins with `/`.
        path: String,
    },
    /// A collection of a WebDAV server.
    WebDav {
        /// `https://host:port`.
        endpoint: String,
        /// The path of the collection, no `/` around.
        path: String,
    },
    /// A bucket of Google Cloud Storage.
    Gcs {
        /// The bucket, which must be there.
        bucket: String,
        /// As that of S3.
        prefix: String,
    },
    /// A container of Azure Blob Storage.
    Azure {
        /// The container, which must be there.
        container: String,
        /// As that of S3.
        prefix: String,
    },
}

/// A text names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Something is missing or in its wrong place.
    #[error("{reason}; it is written {form}, as in {example}")]
    Form {
        /// What is wrong.
        reason: String,
        /// How it is written.
        form: &'static str,
        /// One.
        example: &'static str,
    },
    /// It holds a password.
    #[error(
        "a password does not belong into the address, where others can see it; put it into {variables}"
    )]
    Password {
        /// Where it belongs.
        variables: &'static str,
    },
    /// It is not text.
    #[error("an address on a server is text; this is not UTF-8")]
    NotText,
}

const S3_FORM: (&str, &str) = (
    "s3:BUCKET/PREFIX or s3:https://HOST:PORT/BUCKET/PREFIX",
    "s3:https://s3.example.org/backups/laptop",
);
const SFTP_FORM: (&str, &str) = (
    "sftp:[USER@]HOST:/PATH or sftp://[USER@]HOST[:PORT]/PATH",
    "sftp:me@nas.example.org:/backups/laptop",
);
const WEBDAV_FORM: (&str, &str) = (
    "webdav:https://HOST[:PORT]/PATH",
    "webdav:https://cloud.example.org/dav/laptop",
);
const GCS_FORM: (&str, &str) = ("gcs:BUCKET/PREFIX", "gcs:backups/laptop");
const AZURE_FORM: (&str, &str) = ("azure:CONTAINER/PREFIX", "azure:backups/laptop");

impl Location {
    /// Reads a location. What begins with none of [`SCHEMES`] and a colon is a directory, and so is
    /// `./s3:…`.
    ///
    /// # Errors
    /// When it begins with a scheme and goes on wrongly.
    pub fn parse(text: &OsStr) -> Result<Self, LocationError> {
        let bytes = text.as_encoded_bytes();
        let is = |scheme: &str| {
            let rest = bytes.strip_prefix(scheme.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b":"))
        };
        let Some(scheme) = SCHEMES.into_iter().find(|scheme| is(scheme)) else {
            return Ok(Self::Directory(PathBuf::from(text)));
        };
        let text = text.to_str().ok_or(LocationError::NotText)?;
        let rest = &text[scheme.len() + 1..];
        let address = match scheme {
            "s3" => s3(rest),
            "sftp" => sftp(rest),
            "webdav" => webdav(rest),
            "gcs" => bucket(rest, GCS_FORM).map(|(bucket, prefix)| Address::Gcs { bucket, prefix }),
            _ => bucket(rest, AZURE_FORM)
                .map(|(container, prefix)| Address::Azure { container, prefix }),
        };
        address.map(Self::Remote)
    }

    /// The directory, if it is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::Remote(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
            Self::Remote(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = |prefix: &str| match prefix {
            "" => String::new(),
            prefix => format!("/{prefix}"),
        };
        match self {
            Self::S3 {
                endpoint,
                bucket,
                prefix,
            } => match endpoint {
                Some(endpoint) => write!(f, "s3:{endpoint}/{bucket}{}", below(prefix)),
                None => write!(f, "s3:{bucket}{}", below(prefix)),
            },
            Self::Sftp { host, path } => match host.strip_prefix("ssh://") {
                Some(host) => write!(f, "sftp://{host}/{}", path.trim_start_matches('/')),
                None => write!(f, "sftp:{host}:{path}"),
            },
            Self::WebDav { endpoint, path } => write!(f, "webdav:{endpoint}{}", below(path)),
            Self::Gcs { bucket, prefix } => write!(f, "gcs:{bucket}{}", below(prefix)),
            Self::Azure { container, prefix } => write!(f, "azure:{container}{}", below(prefix)),
        }
    }
}

fn form(reason: &str, (form, example): (&'static str, &'static str)) -> LocationError {
    LocationError::Form {
        reason: reason.to_owned(),
        form,
        example,
    }
}

/// `BUCKET/PREFIX`, each part without a `/` around.
fn bucket(
    rest: &str,
    how: (&'static str, &'static str),
) -> Result<(String, String), LocationError> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(form("the bucket is missing", how));
    }
    Ok((bucket.to_owned(), path_within(prefix, how)?))
}

/// A path below a root: no empty parts, none that leads elsewhere.
fn path_within(path: &str, how: (&'static str, &'static str)) -> Result<String, LocationError> {
    let path = path.trim_matches('/');
    let is_odd = |part: &str| matches!(part, "" | "." | "..") || part.contains(char::is_control);
    if !path.is_empty() && path.split('/').any(is_odd) {
        return Err(form("the path has an empty or relative part", how));
    }
    Ok(path.to_owned())
}

/// Splits `scheme://host:port/path`, and refuses a password before the host.
fn url<'a>(
    text: &'a str,
    how: (&'static str, &'static str),
    variables: &'static str,
) -> Result<(String, &'a str), LocationError> {
    let (scheme, rest) = text
        .split_once("://")
        .ok_or_else(|| form("the URL has no ://", how))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.contains('@') {
        return Err(LocationError::Password { variables });
    }
    if host.is_empty() || host.contains(['?', '#', ' ']) || path.contains(['?', '#']) {
        return Err(form("the host is missing or odd", how));
    }
    Ok((format!("{scheme}://{host}"), path))
}

fn is_web(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn s3(rest: &str) -> Result<Address, LocationError> {
    if !is_web(rest) {
        let (bucket, prefix) = bucket(rest, S3_FORM)?;
        return Ok(Address::S3 {
            endpoint: None,
            bucket,
            prefix,
        });
    }
    let variables = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    let (endpoint, path) = url(rest, S3_FORM, variables)?;
    let (bucket, prefix) = bucket(path, S3_FORM)?;
    Ok(Address::S3 {
        endpoint: Some(endpoint),
        bucket,
        prefix,
    })
}

fn webdav(rest: &str) -> Result<Address, LocationError> {
    if !is_web(rest) {
        return Err(form("an http:// or https:// URL is wanted", WEBDAV_FORM));
    }
    let variables = "ONEFOLD_WEBDAV_USER and ONEFOLD_WEBDAV_PASSWORD";
    let (endpoint, path) = url(rest, WEBDAV_FORM, variables)?;
    let path = path_within(path, WEBDAV_FORM)?;
    Ok(Address::WebDav { endpoint, path })
}

fn sftp(rest: &str) -> Result<Address, LocationError> {
    let (host, path) = match rest.strip_prefix("//") {
        Some(url) => {
            let (host, path) = url
                .split_once('/')
                .ok_or_else(|| form("the path is missing", SFTP_FORM))?;
            (host, format!("/{path}"))
        }
        None => {
            let (host, path) = rest
                .split_once(':')
                .ok_or_else(|| form("the colon between host and path is missing", SFTP_FORM))?;
            (host, path.to_owned())
        }
    };
    let (user, machine) = host.rsplit_once('@').unwrap_or(("", host));
    // `me:secret@host:/path` looks like the host `me`.
    let first = path.split('/').next().unwrap_or_default();
    if user.contains(':') || (first.contains('@') && first.contains(':')) {
        return Err(LocationError::Password {
            variables: "the keys that ssh uses (ssh-agent, ~/.ssh/config)",
        });
    }
    // What begins with a dash would be an option of `ssh`.
    if machine.is_empty() || host.starts_with('-') || machine.starts_with('-') {
        return Err(form("the host is missing or odd", SFTP_FORM));
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return Err(form("the path is missing", SFTP_FORM));
    }
    // The library would take `backups` for `/backups`, not for what lies in the home directory, as `scp` does.
    if !trimmed.starts_with('/') {
        let reason = format!(
            "the path {trimmed} is relative; write it from the root of the server, as in /home/USER/{}",
            trimmed.trim_start_matches("~/")
        );
        return Err(form(&reason, SFTP_FORM));
    }
    if trimmed.split('/').any(|part| part == "..") {
        return Err(form("the path has a relative part", SFTP_FORM));
    }
    let host = match rest.starts_with("//") {
        true => format!("ssh://{host}"),
        false => host.to_owned(),
    };
    Ok(Address::Sftp {
        host,
        path: trimmed.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Location, LocationError> {
        Location::parse(OsStr::new(text))
    }

    #[test]
    fn directories_are_what_is_no_address() {
        for text in ["", "/a/b", "./s3:x", "s3", "s3x:y", "backup:old", "S3:a"] {
            assert_eq!(parsed(text), Ok(Location::Directory(text.into())), "{text}");
        }
    }

    #[test]
    fn addresses_are_shown_as_they_are_typed() {
        for text in [
            "s3:bucket",
            "s3:bucket/a/b",
            "s3:https://host:9000/bucket",
            "s3:http://127.0.0.1:9000/bucket/a/b",
            "sftp:me@host:/a/b",
            "sftp:host:/a",
            "sftp://me@host:2222/a/b",
            "webdav:https://host/dav/a",
            "gcs:bucket/a",
            "azure:container/a",
        ] {
            let location = parsed(text).unwrap();
            assert!(location.directory().is_none(), "{text}");
            assert_eq!(location.to_string(), text);
        }
        for (text, shown) in [
            ("s3://bucket/a/", "s3:bucket/a"),
            ("s3:https://host/bucket//", "s3:https://host/bucket"),
            ("webdav:https://host/", "webdav:https://host"),
            ("sftp:host:/a/b/", "sftp:host:/a/b"),
        ] {
            assert_eq!(parsed(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn odd_addresses_are_refused() {
        for text in [
            "s3:",
            "s3:/a",
            "s3:https://host",
            "s3:https:///bucket",
            "s3:bucket/../other",
            "s3:bucket/a//b",
            "sftp:host",
            "sftp:host:",
            "sftp:host:a",
            "sftp:me@host:~/a/b",
            "sftp:host:./a",
            "sftp:-oProxyCommand=x:/a",
            "sftp:me@-oProxyCommand=x:/a",
            "sftp://host",
            "sftp:host:/a/../b",
            "webdav:host/a",
            "webdav:https://host/a?b",
            "gcs:",
            "azure:",
        ] {
            let error = parsed(text).expect_err(text);
            assert!(matches!(error, LocationError::Form { .. }), "{text}");
        }
    }

    #[test]
    fn passwords_are_refused_and_not_repeated() {
        for text in [
            "s3:https://key:secret@host/bucket",
            "sftp:me:secret@host:/a",
            "webdav:https://me:secret@host/a",
        ] {
            let error = parsed(text).expect_err(text);
            assert!(matches!(error, LocationError::Password { .. }), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
