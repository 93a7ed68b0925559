//! [`RemoteStore`]'s put-if-absent: by the server's own condition where it keeps to it, else by claims.

use std::thread;
use std::time::Duration;

use engine::object::{ObjectKey, PutOutcome, StoreError};
use opendal::options::WriteOptions;
use opendal::{Buffer, ErrorKind};

use crate::claims::{self, ClaimError, ConditionalPut, Names};
use crate::error::{RemoteError, RemoteErrorKind, Subject};
use crate::operators::RemoteSettings;
use crate::store::RemoteStore;

impl RemoteStore {
    /// Puts an object unless there is one.
    pub(crate) fn create_once(
        &self,
        key: &ObjectKey,
        bytes: &[u8],
    ) -> Result<PutOutcome, StoreError> {
        if self
            .keeps_to_conditions()
            .map_err(|error| self.error("write", key, &error))?
        {
            return self.create_by_condition(key, bytes);
        }
        let refused = |error: ClaimError<CreationError>| {
            match error {
            ClaimError::Server(CreationError::Names(error)) => self.error("write", key, &error),
            ClaimError::Server(CreationError::Put(error)) => error,
            ClaimError::Held(claim) => Subject {
                action: "create",
                subject: key.to_string(),
                location: self.shown(),
            }
            .failed(RemoteError::new(
                RemoteErrorKind::Other,
                format!(
                    "somebody else is about to create it, or died doing so; if nobody is, delete the object {claim} and try again"
                ),
            )),
        }
        };
        let put = || self.put_whole(key, bytes).map_err(CreationError::Put);
        claims::create(self, &key.to_string(), put).map_err(refused)
    }

    /// Asks the server twice to create one thing, the first time.
    fn keeps_to_conditions(&self) -> opendal::Result<bool> {
        if let Some(known) = self.conditions().get() {
            return Ok(*known);
        }
        // A name that is reserved for the writer shows a part of the object.
        let keeps = self.writes_whole()
            && claims::honours_conditions(self).map_err(|error| match error {
                CreationError::Names(error) => error,
                CreationError::Put(_) => unreachable!("the probe puts no object"),
            })?;
        Ok(*self.conditions().get_or_init(|| keeps))
    }

    /// Tries again where the network fails. A try whose answer was lost may have created the object: then
    /// it is there, and has our bytes.
    fn create_by_condition(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        let path = key.to_string();
        let mut is_unsure = false;
        let mut delay = self.settings().retry_delay;
        for attempt in 0.. {
            match self.conditional_put(&path, bytes) {
                Ok(ConditionalPut::Done) => return Ok(PutOutcome::Created),
                Ok(ConditionalPut::Refused) => {
                    let is_ours = is_unsure
                        && self
                            .holds(&path, bytes)
                            .map_err(|error| self.error("write", key, &error))?;
                    return Ok(match is_ours {
                        true => PutOutcome::Created,
                        false => PutOutcome::Exists,
                    });
                }
                Ok(ConditionalPut::NotUnderstood) => {
                    let message = "the server took conditions before, and does not any more";
                    let error = opendal::Error::new(ErrorKind::Unsupported, message);
                    return Err(self.error("write", key, &error));
                }
                Err(error) => {
                    let passes = error.is_temporary() || error.kind() == ErrorKind::Conflict;
                    if !passes || attempt >= self.settings().retries {
                        return Err(self.error("write", key, &error));
                    }
                    is_unsure |= error.kind() != ErrorKind::Conflict;
                    self.count_retry();
                    thread::sleep(delay + claims::random_part(delay));
                    delay = (delay * 2).min(self.settings().retry_delay_max);
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    fn conditional_put(&self, path: &str, bytes: &[u8]) -> opendal::Result<ConditionalPut> {
        let options = WriteOptions {
            if_not_exists: true,
            ..WriteOptions::default()
        };
        let buffer = Buffer::from(bytes.to_vec());
        match self.wait(self.once().write_options(path, buffer, options)) {
            Ok(_) => Ok(ConditionalPut::Done),
            Err(error) => match error.kind() {
                ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists => {
                    Ok(ConditionalPut::Refused)
                }
                ErrorKind::Unsupported => Ok(ConditionalPut::NotUnderstood),
                _ if error.message().contains("NotImplemented") => {
                    Ok(ConditionalPut::NotUnderstood)
                }
                _ => Err(error),
            },
        }
    }
}

/// Why a creation by claims failed.
#[derive(Debug)]
pub(crate) enum CreationError {
    /// Around the claims.
    Names(opendal::Error),
    /// With the object itself.
    Put(StoreError),
}

impl From<opendal::Error> for CreationError {
    fn from(error: opendal::Error) -> Self {
        Self::Names(error)
    }
}

impl Names for RemoteStore {
    type Error = CreationError;

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), CreationError> {
        let buffer = Buffer::from(bytes.to_vec());
        self.wait(self.operator().write(name, buffer))?;
        Ok(())
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<ConditionalPut, CreationError> {
        let mut delay = self.settings().retry_delay;
        for _ in 0..RemoteSettings::FIRST_RETRIES {
            match self.conditional_put(name, bytes) {
                Err(error) if error.is_temporary() => {
                    self.count_retry();
                    thread::sleep(delay);
                    delay *= 2;
                }
                outcome => return Ok(outcome?),
            }
        }
        Ok(self.conditional_put(name, bytes)?)
    }

    fn exists(&self, name: &str) -> Result<bool, CreationError> {
        Ok(self.wait(self.operator().exists(name))?)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, CreationError> {
        let entries = self.list_directory(&format!("{directory}/"))?;
        let objects = entries
            .into_iter()
            .filter(|entry| entry.metadata().is_file());
        Ok(objects.map(|entry| entry.path().to_owned()).collect())
    }

    fn delete(&self, name: &str) -> Result<(), CreationError> {
        Ok(self.wait(self.operator().delete(name))?)
    }

    fn pause(&self, wait: Duration) {
        thread::sleep(wait);
    }
}
