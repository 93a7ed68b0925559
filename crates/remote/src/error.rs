//! What goes wrong on the way to a server, as the engine's errors.
//!
//! Which failures pass by themselves is decided in one place: the library marks them (timeouts, broken
//! connections, answers 429, 500, 502, 503, 504, and codes of the service that say so), and the layer in
//! `operators.rs` repeats what is marked. What arrives here was repeated already, or never will help.
//! Messages hold no URL and no header: both may carry credentials.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use engine::object::{ObjectKey, StoreError};

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteErrorKind {
    /// The server does not let us: wrong credentials, or not enough permission.
    Denied,
    /// There is no such bucket, or the address is wrong in another way.
    Address,
    /// The server could not be reached, or kept failing: it may work later.
    Unreachable,
    /// Anything else.
    Other,
}

/// What a server, or the way to it, says.
#[derive(Debug)]
pub struct RemoteError {
    /// What kind of failure it is.
    pub kind: RemoteErrorKind,
    message: String,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for RemoteError {}

impl RemoteError {
    /// The client can't be set up.
    pub(crate) fn setup(error: &dyn Error) -> Self {
        Self {
            kind: RemoteErrorKind::Other,
            message: with_sources(error),
        }
    }

    /// One of our own making.
    pub(crate) fn new(kind: RemoteErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// What the library says.
    pub(crate) fn of(error: &opendal::Error) -> Self {
        use opendal::ErrorKind as Kind;
        let kind = match error.kind() {
            Kind::PermissionDenied => RemoteErrorKind::Denied,
            Kind::ConfigInvalid => RemoteErrorKind::Address,
            Kind::RateLimited => RemoteErrorKind::Unreachable,
            _ if error.is_temporary() || error.is_persistent() => RemoteErrorKind::Unreachable,
            _ => RemoteErrorKind::Other,
        };
        let mut message = plain(error.message());
        if let Some(source) = error.source() {
            message = format!("{message}: {}", with_sources(source));
        }
        if error.is_persistent() {
            message.push_str(" (tried again several times)");
        }
        Self { kind, message }
    }

    /// The error found below layers of others, if it is one.
    #[must_use]
    pub fn find(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    pub(crate) fn into_io(self) -> io::Error {
        let kind = match self.kind {
            RemoteErrorKind::Denied => ErrorKind::PermissionDenied,
            RemoteErrorKind::Address => ErrorKind::InvalidInput,
            RemoteErrorKind::Unreachable => ErrorKind::NotConnected,
            RemoteErrorKind::Other => ErrorKind::Other,
        };
        io::Error::new(kind, self)
    }
}

/// What the services' libraries print as a structure, in words: `code: message`.
fn plain(message: &str) -> String {
    let field = |name: &str| {
        let (_, rest) = message.split_once(&format!("{name}: \""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    match (field("code"), field("message")) {
        (Some(code), Some(text)) if text.is_empty() => code,
        (Some(code), Some(text)) => format!("{code}: {text}"),
        _ if message.is_empty() => "the server refuses, without saying why".to_owned(),
        _ => message.trim().to_owned(),
    }
}

fn with_sources(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        next = source.source();
    }
    message
}

/// What the operation concerned, for the engine's errors.
pub(crate) struct Subject<'a> {
    pub action: &'static str,
    pub subject: String,
    pub location: &'a str,
}

impl Subject<'_> {
    pub fn failed(&self, error: RemoteError) -> StoreError {
        StoreError::Io {
            action: self.action,
            subject: self.subject.clone(),
            location: self.location.to_owned(),
            source: error.into_io(),
        }
    }
}

/// The engine's error for what the library says of an object.
pub(crate) fn of_object(
    action: &'static str,
    key: &ObjectKey,
    location: &str,
    error: &opendal::Error,
) -> StoreError {
    match error.kind() {
        // What is missing when something is written (a bucket, a part, what was to be renamed) is not the object.
        opendal::ErrorKind::NotFound if action != "write" => StoreError::Missing {
            key: *key,
            location: location.to_owned(),
        },
        _ if is_full(error) => StoreError::Full {
            key: *key,
            location: location.to_owned(),
        },
        _ => Subject {
            action,
            subject: key.to_string(),
            location,
        }
        .failed(RemoteError::of(error)),
    }
}

/// Does the server say that it has no room left? Each says it in its own words.
fn is_full(error: &opendal::Error) -> bool {
    let text = error.message();
    ["XMinioStorageFull", "QuotaExceeded", "InsufficientStorage"]
        .iter()
        .any(|code| text.contains(code))
        || text.contains("no space left on device")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_become_words() {
        let text = r#"S3Error { code: "AccessDenied", message: "Access Denied.", resource: "/b", request_id: "1" }"#;
        assert_eq!(plain(text), "AccessDenied: Access Denied.");
        assert_eq!(plain("  timeout "), "timeout");
        assert!(!plain("").is_empty());
    }

    #[test]
    fn kinds_are_told_apart() {
        use opendal::ErrorKind as Kind;
        let kind = |error: opendal::Error| RemoteError::of(&error).kind;
        let error = |kind| opendal::Error::new(kind, "x").with_context("url", "https://secret");
        assert_eq!(kind(error(Kind::PermissionDenied)), RemoteErrorKind::Denied);
        assert_eq!(kind(error(Kind::ConfigInvalid)), RemoteErrorKind::Address);
        assert_eq!(kind(error(Kind::Unexpected)), RemoteErrorKind::Other);
        let passing = error(Kind::Unexpected).set_persistent();
        assert!(!RemoteError::of(&passing).to_string().contains("secret"));
        assert_eq!(kind(passing), RemoteErrorKind::Unreachable);
    }
}
