//! Reads the metadata of many container objects, on the threads that read back.

use crate::container::{ContainerReader, ContainerSummary, GroupOpener, ObjectMetadata};
use crate::format::ObjectError;
use crate::object::ObjectKey;
use crate::pipeline::{Fetching, ReadingRoom, ReadingWork, Stopped};

/// Where metadata goes. Called from several threads, in any order.
pub trait MetadataSink: Sync {
    /// What is in an object of so many bytes, or why that can't be said.
    fn metadata(
        &self,
        key: ObjectKey,
        object_bytes: u64,
        outcome: Result<(ObjectMetadata, ContainerSummary), ObjectError>,
    );

    /// Is nothing more wanted?
    fn is_cancelled(&self) -> bool;
}

/// Reads the metadata of objects, which are given with their lengths.
pub fn read_metadata(
    containers: &ContainerReader,
    room: &ReadingRoom,
    objects: &[(ObjectKey, u64)],
    sink: &dyn MetadataSink,
) {
    room.run(objects, &Work { containers, sink }, || ());
}

struct Work<'a> {
    containers: &'a ContainerReader,
    sink: &'a dyn MetadataSink,
}

impl ReadingWork for Work<'_> {
    type Job = (ObjectKey, u64);
    type Fetched = ();

    fn fetch(
        &self,
        &(key, object_bytes): &Self::Job,
        fetching: &Fetching<'_, ()>,
    ) -> Result<(), Stopped> {
        let outcome = fetching.read(0, || self.containers.object(key));
        self.sink.metadata(key, object_bytes, outcome);
        Ok(())
    }

    fn compute(&self, _: (), _: &mut GroupOpener) {}

    fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }
}
