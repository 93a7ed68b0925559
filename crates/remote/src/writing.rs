//! [`RemoteStore`]'s writing of objects whole: under their own names, or under others that are renamed.
//!
//! A service that shows objects from their first byte (SFTP, WebDAV) is never written to by a handle that
//! tries again: the library's writers keep where they are, and a try that is repeated on one appends what was
//! sent already, or says that all is well because the failure was told once. So each try has a name of its
//! own, written once, and what the server then has is as long as what was sent before it gets the
//! object's name.

use std::thread;
use std::time::Duration;

use engine::object::{ObjectId, ObjectKey, StoreError};
use opendal::{Buffer, ErrorKind};

use crate::claims::random_part;
use crate::error::{RemoteError, Subject};
use crate::operators::RemoteSettings;
use crate::store::{RemoteStore, TEMPORARY_DIRECTORY};

/// How often an object is renamed into the place of another that has gone.
const REPLACING_RENAMES: u32 = 4;

/// Tries of one operation that are repeated here, as the library's layer does it elsewhere.
pub(crate) struct Tries<'a> {
    store: &'a RemoteStore,
    left: usize,
    delay: Duration,
}

impl<'a> Tries<'a> {
    pub fn of(store: &'a RemoteStore) -> Self {
        let retries = store.settings().retries;
        let left = match store.has_answered() {
            true => retries,
            false => retries.min(RemoteSettings::FIRST_RETRIES),
        };
        Self {
            store,
            left,
            delay: store.settings().retry_delay,
        }
    }

    /// After a failure: waits, and says whether to try again.
    pub fn again(&mut self, error: &opendal::Error) -> bool {
        if !error.is_temporary() || self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.store.count_retry();
        thread::sleep(self.delay + random_part(self.delay));
        self.delay = (self.delay * 2).min(self.store.settings().retry_delay_max);
        true
    }
}

/// A new name for what is not whole yet.
pub(crate) fn temporary_name() -> String {
    format!("{TEMPORARY_DIRECTORY}/{}", ObjectId::random())
}

impl RemoteStore {
    pub(crate) fn put_whole(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        if self.writes_whole() {
            let buffer = Buffer::from(bytes.to_vec());
            let written = self.wait(self.operator().write(&key.to_string(), buffer));
            return written
                .map(|_| ())
                .map_err(|error| self.error("write", key, &error));
        }
        let temporary = self.put_temporary(key, bytes)?;
        let published = self.publish(&temporary, key, bytes.len() as u64);
        if published.is_err() {
            self.discard(&temporary);
        }
        published
    }

    /// Puts an object in the place of another. A server that renames over a file may remove that file first, and fail
    /// then: so nothing is cleaned up after a failure, and where the object is missing, the rename is tried again.
    pub(crate) fn replace_renamed(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        let temporary = self.put_temporary(key, bytes)?;
        let path = key.to_string();
        let mut delay = self.settings().retry_delay;
        for renames_left in (0..REPLACING_RENAMES).rev() {
            let Err(error) = self.wait(self.operator().rename(&temporary, &path)) else {
                return Ok(());
            };
            match self.holds(&path, bytes) {
                Ok(true) => {
                    self.discard(&temporary);
                    return Ok(());
                }
                Err(missing) if missing.kind() == ErrorKind::NotFound && renames_left > 0 => {}
                _ => return Err(self.replacing_error(key, &temporary, &error)),
            }
            thread::sleep(delay);
            delay = (delay * 2).min(self.settings().retry_delay_max);
        }
        unreachable!("the last rename returns")
    }

    fn replacing_error(
        &self,
        key: &ObjectKey,
        temporary: &str,
        error: &opendal::Error,
    ) -> StoreError {
        let failed = RemoteError::of(error);
        let message = format!(
            "{failed}; what was to be written lies whole in {temporary}: should {key} be missing, rename that to {key}"
        );
        Subject {
            action: "write",
            subject: key.to_string(),
            location: self.shown(),
        }
        .failed(RemoteError::new(failed.kind, message))
    }

    /// Has an object these bytes?
    pub(crate) fn holds(&self, path: &str, bytes: &[u8]) -> opendal::Result<bool> {
        let there = self.wait(self.operator().stat(path))?;
        if there.content_length() != bytes.len() as u64 {
            return Ok(false);
        }
        Ok(self.wait(self.operator().read(path))?.to_vec() == bytes)
    }

    /// Puts what shall be an object under another name, which is returned: all of it.
    fn put_temporary(&self, key: &ObjectKey, bytes: &[u8]) -> Result<String, StoreError> {
        let buffer = Buffer::from(bytes.to_vec());
        let mut tries = Tries::of(self);
        loop {
            let temporary = temporary_name();
            let written = self.wait(async {
                self.once().write(&temporary, buffer.clone()).await?;
                let there = self.once().stat(&temporary).await?.content_length();
                as_long_as(there, bytes.len() as u64)
            });
            let Err(error) = written else {
                return Ok(temporary);
            };
            self.discard(&temporary);
            if !tries.again(&error) {
                return Err(self.error("write", key, &error));
            }
        }
    }

    /// Is what lies under a temporary name as long as what was sent?
    pub(crate) fn check_temporary(&self, temporary: &str, bytes: u64) -> opendal::Result<()> {
        let there = self.wait(self.operator().stat(temporary))?;
        as_long_as(there.content_length(), bytes)
    }

    /// Removes what shall be no object, if that can be done at once; else it stays, and nobody reads it.
    pub(crate) fn discard(&self, temporary: &str) {
        let _ = self.wait(self.once().delete(temporary));
    }

    /// Gives an object its name. A try whose answer was lost may have done so: then there is nothing to rename any
    /// more, and the object is there.
    pub(crate) fn publish(
        &self,
        temporary: &str,
        key: &ObjectKey,
        bytes: u64,
    ) -> Result<(), StoreError> {
        match self.wait(self.operator().rename(temporary, &key.to_string())) {
            Ok(_) => Ok(()),
            Err(error) if self.was_done_before(&error, key, bytes) => Ok(()),
            Err(error) => Err(self.error("write", key, &error)),
        }
    }

    /// Does a server that does not know what was to become an object have the object already?
    pub(crate) fn was_done_before(
        &self,
        error: &opendal::Error,
        key: &ObjectKey,
        bytes: u64,
    ) -> bool {
        error.kind() == ErrorKind::NotFound
            && self
                .wait(self.operator().stat(&key.to_string()))
                .is_ok_and(|there| there.content_length() == bytes)
    }
}

fn as_long_as(there: u64, sent: u64) -> opendal::Result<()> {
    if there == sent {
        return Ok(());
    }
    let message = format!("the server has {there} bytes of {sent} that were sent");
    Err(opendal::Error::new(ErrorKind::Unexpected, message).set_temporary())
}
