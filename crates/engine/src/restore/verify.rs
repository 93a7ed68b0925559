//! Verifies many container objects, on the threads that read back.

use crate::container::{
    ContainerReader, ContainerSummary, Examined, FetchedGroups, FetchedObject, GroupChoice,
    GroupOpener,
};
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

    /// Groups of a sample are what they should be: how many, and their bytes; or they are not. The object's
    /// metadata is told of on its own.
    fn sampled(&self, key: ObjectKey, outcome: Result<(u64, u64), ObjectError>);

    /// Is nothing more to be verified?
    fn is_cancelled(&self) -> bool;
}

/// Verifies container objects, given with their lengths: all that is in them, their metadata
/// alone, or that and a sample of their groups. Does `meanwhile` on the calling thread.
pub fn verify_objects<R>(
    containers: &ContainerReader,
    room: &ReadingRoom,
    objects: &[(ObjectKey, u64)],
    choice: GroupChoice,
    sink: &dyn VerifySink,
    meanwhile: impl FnOnce() -> R,
) -> R {
    let work = Verifying {
        containers,
        choice,
        sink,
    };
    room.run(objects, &work, meanwhile)
}

struct Verifying<'a> {
    containers: &'a ContainerReader,
    choice: GroupChoice,
    sink: &'a dyn VerifySink,
}

/// What was fetched.
enum Fetched {
    /// An object with its key and its length.
    Object(ObjectKey, u64, FetchedObject),
    /// Groups of a sample.
    Groups(FetchedGroups),
}

impl Verifying<'_> {
    fn fetch_sample(
        &self,
        (key, object_bytes): (ObjectKey, u64),
        fetching: &Fetching<'_, Fetched>,
    ) -> Result<(), Stopped> {
        let found = fetching.read(0, || self.containers.sample_of(key, self.choice));
        let reads = match found {
            Ok((summary, reads)) => {
                self.sink.verified(key, object_bytes, Ok(summary));
                reads
            }
            Err(error) => {
                self.sink.verified(key, object_bytes, Err(error));
                return Ok(());
            }
        };
        for (loaded, read) in reads {
            let bytes = read.bytes;
            let room = fetching.reserve(bytes)?;
            let fetch = || self.containers.fetch_sample((loaded, read));
            match fetching.read(bytes, fetch) {
                Ok(groups) => fetching.hand_on(room, Fetched::Groups(groups))?,
                Err(error) => self.sink.sampled(key, Err(error)),
            }
        }
        Ok(())
    }
}

impl ReadingWork for Verifying<'_> {
    type Job = (ObjectKey, u64);
    type Fetched = Fetched;

    fn fetch(
        &self,
        &(key, object_bytes): &Self::Job,
        fetching: &Fetching<'_, Fetched>,
    ) -> Result<(), Stopped> {
        if self.choice.is_sample() {
            return self.fetch_sample((key, object_bytes), fetching);
        }
        let is_whole = self.choice == GroupChoice::All;
        let bytes = ContainerReader::fetch_bytes(object_bytes, is_whole);
        let room = fetching.reserve(bytes)?;
        let fetch = || self.containers.fetch_object(key, is_whole);
        match fetching.read(bytes, fetch) {
            Ok(object) => fetching.hand_on(room, Fetched::Object(key, object_bytes, object)),
            Err(error) => {
                self.sink.verified(key, object_bytes, Err(error));
                Ok(())
            }
        }
    }

    fn compute(&self, fetched: Fetched, opener: &mut GroupOpener) {
        match fetched {
            Fetched::Object(key, object_bytes, object) => {
                let outcome = self.containers.verify_fetched(object, opener);
                self.sink.verified(key, object_bytes, outcome);
            }
            Fetched::Groups(groups) => {
                let key = groups.key();
                let outcome = self.containers.verify_sample(groups, opener);
                self.sink.sampled(key, outcome);
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }
}

/// Where the outcomes of an examination go. Called from several threads, in any order.
pub trait ExamineSink: Sync {
    /// What of an object, so many bytes long, is whole; or nothing can be said of it.
    fn examined(&self, key: ObjectKey, object_bytes: u64, outcome: Result<Examined, ObjectError>);

    /// Is nothing more to be examined?
    fn is_cancelled(&self) -> bool;
}

/// Reads container objects, given with their lengths, to their ends, and says what of each is damaged.
pub fn examine_objects(
    containers: &ContainerReader,
    room: &ReadingRoom,
    objects: &[(ObjectKey, u64)],
    sink: &dyn ExamineSink,
) {
    room.run(objects, &Examining { containers, sink }, || ());
}

struct Examining<'a> {
    containers: &'a ContainerReader,
    sink: &'a dyn ExamineSink,
}

impl ReadingWork for Examining<'_> {
    type Job = (ObjectKey, u64);
    type Fetched = (ObjectKey, u64, FetchedObject);

    fn fetch(
        &self,
        &(key, object_bytes): &Self::Job,
        fetching: &Fetching<'_, Self::Fetched>,
    ) -> Result<(), Stopped> {
        let bytes = ContainerReader::fetch_bytes(object_bytes, true);
        let room = fetching.reserve(bytes)?;
        match fetching.read(bytes, || self.containers.fetch_object(key, true)) {
            Ok(object) => fetching.hand_on(room, (key, object_bytes, object)),
            Err(error) => {
                self.sink.examined(key, object_bytes, Err(error));
                Ok(())
            }
        }
    }

    fn compute(&self, (key, object_bytes, object): Self::Fetched, opener: &mut GroupOpener) {
        let outcome = self.containers.examine_fetched(object, opener);
        self.sink.examined(key, object_bytes, outcome);
    }

    fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }
}
