//! Verifies many container objects, on the threads that read back.

use crate::container::{ContainerReader, ContainerSummary, FetchedObject, GroupOpener};
use crate::format::ObjectError;
use crate::object::ObjectKey;
use crate::pipeline::{Fetching, ReadingRoom, ReadingWork, Stopped};

/// Where the outcomes of a verification go. Called from several threads, in any order.
pub trait VerifySink: Sync {
    /// An object, so many bytes long, is what it should be, or it is not.
    fn verified(
        &self,
        key: ObjectKey,
        object_bytes: u64,
        outcome: Result<ContainerSummary, ObjectError>,
    );

    /// Is nothing more to be verified?
    fn is_cancelled(&self) -> bool;
}

/// Verifies container objects, given with their lengths: all that is in them, or their metadata
/// alone. Does `meanwhile` on the calling thread.
pub fn verify_objects<R>(
    containers: &ContainerReader,
    room: &ReadingRoom,
    objects: &[(ObjectKey, u64)],
    read_data: bool,
    sink: &dyn VerifySink,
    meanwhile: impl FnOnce() -> R,
) -> R {
    let work = Verifying {
        containers,
        read_data,
        sink,
    };
    room.run(objects, &work, meanwhile)
}

struct Verifying<'a> {
    containers: &'a ContainerReader,
    read_data: bool,
    sink: &'a dyn VerifySink,
}

/// An object with its key and its length.
type FetchedJob = (ObjectKey, u64, FetchedObject);

impl ReadingWork for Verifying<'_> {
    type Job = (ObjectKey, u64);
    type Fetched = FetchedJob;

    fn fetch(
        &self,
        &(key, object_bytes): &Self::Job,
        fetching: &Fetching<'_, FetchedJob>,
    ) -> Result<(), Stopped> {
        let bytes = ContainerReader::fetch_bytes(object_bytes, self.read_data);
        let room = fetching.reserve(bytes)?;
        let fetch = || self.containers.fetch_object(key, self.read_data);
        match fetching.read(bytes, fetch) {
            Ok(object) => fetching.hand_on(room, (key, object_bytes, object)),
            Err(error) => {
                self.sink.verified(key, object_bytes, Err(error));
                Ok(())
            }
        }
    }

    fn compute(&self, (key, object_bytes, object): FetchedJob, opener: &mut GroupOpener) {
        let outcome = self.containers.verify_fetched(object, opener);
        self.sink.verified(key, object_bytes, outcome);
    }

    fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }
}
