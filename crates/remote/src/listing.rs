//! [`RemoteStore`]'s listings: all names, or an error.
//!
//! Object services list a whole prefix, page by page; a page that fails is asked for again where it was. Servers with
//! directories (SFTP, WebDAV) are asked for one directory at a time, and for the whole of it anew after
//! a failure: a directory that was begun can't be gone on with, and the library's listings of trees go on
//! without the one that failed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::object::{ObjectId, ObjectKey, ObjectKind, StoreError};
use futures::TryStreamExt as _;
use opendal::options::ListOptions;
use opendal::{Entry, ErrorKind};

use crate::error::{RemoteError, Subject};
use crate::store::RemoteStore;
use crate::writing::Tries;

/// Names that are read of a listing at a time.
const LISTED_AT_ONCE: usize = 1000;

/// The id in a path of that kind; nothing where it is no key.
fn id_of(kind: ObjectKind, path: &str) -> Option<ObjectId> {
    let name = path.trim_start_matches('/');
    let id: ObjectId = name.rsplit('/').next()?.parse().ok()?;
    (ObjectKey::new(kind, id).to_string() == name).then_some(id)
}

impl RemoteStore {
    pub(crate) fn list_error(&self, subject: &str, error: &opendal::Error) -> StoreError {
        Subject {
            action: "list",
            subject: subject.to_owned(),
            location: self.shown(),
        }
        .failed(RemoteError::of(error))
    }

    /// Objects of a kind that has a directory.
    pub(crate) fn list_kind(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        // Outside of the library: the visitor may call the store.
        let mut show = |entries: &[Entry]| {
            for entry in entries {
                if let Some(id) = id_of(kind, entry.path()) {
                    visit(id, entry.metadata().content_length());
                }
            }
        };
        let listed = match self.writes_whole() {
            true => self.list_prefix(kind, &mut show),
            false => self.list_directories(kind, &mut show),
        };
        listed.map_err(|error| self.list_error(kind.directory(), &error))
    }

    fn list_directories(
        &self,
        kind: ObjectKind,
        show: &mut dyn FnMut(&[Entry]),
    ) -> opendal::Result<()> {
        let list = |directory: &str| {
            let _turn = self.turn();
            self.list_directory(directory)
        };
        let entries = list(&format!("{}/", kind.directory()))?;
        show(&entries);
        if kind != ObjectKind::Container {
            return Ok(());
        }
        // Containers lie one level deeper.
        for entry in entries.iter().filter(|entry| entry.metadata().is_dir()) {
            let name = entry.path().trim_start_matches('/');
            if name.matches('/').count() == 2 {
                show(&list(name)?);
            }
        }
        Ok(())
    }

    /// All that is right in a directory, which ends with `/`. One that nobody has made is empty. The caller has a turn.
    pub(crate) fn list_directory(&self, directory: &str) -> opendal::Result<Vec<Entry>> {
        if self.writes_whole() {
            return self.wait(self.operator().list(directory));
        }
        let mut tries = Tries::of(self);
        loop {
            match self.list_directory_once(directory) {
                Err(error) if tries.again(&error) => {}
                outcome => return outcome,
            }
        }
    }

    fn list_directory_once(&self, directory: &str) -> opendal::Result<Vec<Entry>> {
        let listing = || {
            self.wait(async {
                let mut entries = Vec::new();
                let mut lister = match self.once().lister(directory).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(entries),
                    lister => lister?,
                };
                loop {
                    match lister.try_next().await {
                        Ok(Some(entry)) => entries.push(entry),
                        Ok(None) => return Ok(entries),
                        Err(error) if error.kind() == ErrorKind::NotFound && entries.is_empty() => {
                            return Ok(entries);
                        }
                        Err(error) => return Err(error),
                    }
                }
            })
        };
        // The library panics at names that are no text.
        catch_unwind(AssertUnwindSafe(listing)).unwrap_or_else(|_| {
            let message = format!("{directory} has a name that is not UTF-8, or an odd file");
            Err(opendal::Error::new(ErrorKind::Unexpected, message))
        })
    }

    /// A flat listing below a prefix: one request for every thousand names.
    fn list_prefix(&self, kind: ObjectKind, show: &mut dyn FnMut(&[Entry])) -> opendal::Result<()> {
        let options = ListOptions {
            recursive: kind == ObjectKind::Container,
            ..ListOptions::default()
        };
        let turn = self.turn();
        let prefix = format!("{}/", kind.directory());
        let mut lister = self.wait(self.operator().lister_options(&prefix, options))?;
        drop(turn);
        loop {
            let turn = self.turn();
            let page: Vec<Entry> = self.wait(async {
                let mut page = Vec::new();
                while page.len() < LISTED_AT_ONCE {
                    match lister.try_next().await? {
                        Some(entry) => page.push(entry),
                        None => break,
                    }
                }
                Ok(page)
            })?;
            drop(turn);
            show(&page);
            if page.len() < LISTED_AT_ONCE {
                return Ok(());
            }
        }
    }
}
