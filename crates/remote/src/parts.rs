//! An object on its way to a server in parts, in the memory of a few parts.
//!
//! Where the service takes objects in parts (S3's multipart uploads), nothing is visible before the
//! last call, and giving up removes what was sent. Elsewhere the parts go to a name of their own, which is
//! renamed at the end.

use engine::object::{ObjectKey, ObjectWriter, StoreError};
use opendal::{Buffer, Writer};

use crate::error;
use crate::store::RemoteStore;

/// Bytes of a part. S3 takes 10,000 of them: objects of up to 78 GiB.
pub(crate) const PART_BYTES: usize = 8 << 20;

/// Parts of one object that are sent at the same time.
pub(crate) const PARTS_AT_ONCE: usize = 2;

pub(crate) struct PartsWriter<'a> {
    store: &'a RemoteStore,
    key: ObjectKey,
    /// None once it has failed or is done.
    writer: Option<Writer>,
    /// The name that the parts go to, where that is not the object's.
    temporary: Option<String>,
    bytes: u64,
}

impl<'a> PartsWriter<'a> {
    pub fn new(
        store: &'a RemoteStore,
        key: &ObjectKey,
        writer: Writer,
        temporary: Option<String>,
    ) -> Self {
        Self {
            store,
            key: *key,
            writer: Some(writer),
            temporary,
            bytes: 0,
        }
    }

    fn fail(&mut self, error: &opendal::Error) -> StoreError {
        self.give_up();
        error::of_object("write", &self.key, self.store.shown(), error)
    }

    /// Removes what was sent. Where even that fails, the server keeps parts that nobody sees.
    fn give_up(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            let _ = self.store.wait(async move { writer.abort().await });
            if let Some(name) = self.temporary.take() {
                self.store.discard(&name);
            }
        }
    }
}

impl ObjectWriter for PartsWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let Some(writer) = &mut self.writer else {
            let error = opendal::Error::new(opendal::ErrorKind::Unexpected, "a part has failed");
            return Err(self.fail(&error));
        };
        self.store.before_upload(bytes.len() as u64);
        let sent = self.store.wait(writer.write(Buffer::from(bytes.to_vec())));
        self.bytes += bytes.len() as u64;
        sent.map_err(|error| self.fail(&error))
    }

    fn finish(mut self: Box<Self>) -> Result<(), StoreError> {
        let Some(writer) = &mut self.writer else {
            let error = opendal::Error::new(opendal::ErrorKind::Unexpected, "a part has failed");
            return Err(self.fail(&error));
        };
        let mut closed = self.store.wait(writer.close()).map(|_| ());
        if let Some(temporary) = &self.temporary {
            closed = closed.and_then(|()| self.store.check_temporary(temporary, self.bytes));
        }
        match closed {
            Ok(()) => {}
            // An upload that the server knows no more, after an answer that was lost.
            Err(error)
                if self.temporary.is_none()
                    && self.store.was_done_before(&error, &self.key, self.bytes) => {}
            Err(error) => return Err(self.fail(&error)),
        }
        if let Some(temporary) = self.temporary.take() {
            let published = self.store.publish(&temporary, &self.key, self.bytes);
            if published.is_err() {
                self.store.discard(&temporary);
            }
            published?;
        }
        self.writer = None;
        self.store.count(|counts| {
            counts.puts += 1;
            counts.put_bytes += self.bytes;
        });
        Ok(())
    }
}

impl Drop for PartsWriter<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}
