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
use crate::operators::RemoteSettings;
use crate::store::{RemoteStore, TEMPORARY_DIRECTORY};

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
