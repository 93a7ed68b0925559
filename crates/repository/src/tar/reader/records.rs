//! What records say of a member, with those of all members.

use std::collections::BTreeMap;

use crate::tar::pax;
use crate::tar::sparse::{self, SPARSE_EXTENTS_MAX};
use crate::timestamp::Timestamp;

/// Records by their keys. Of `GNU.sparse.offset` and `…numbytes` all count, in their order.
#[derive(Debug, Default, Clone)]
pub struct Records {
    pub values: BTreeMap<Vec<u8>, Vec<u8>>,
    pub extents: Vec<Vec<u8>>,
}

impl Records {
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        let records = pax::records(bytes)
            .map_err(|at| format!("its records are damaged from byte {at} on"))?;
        for (key, value) in records {
            if key == b"GNU.sparse.offset" || key == b"GNU.sparse.numbytes" {
                if self.extents.len() >= 2 * SPARSE_EXTENTS_MAX {
                    return Err(sparse::too_many());
                }
                self.extents.push(value.to_vec());
            } else {
                self.values.insert(key.to_vec(), value.to_vec());
            }
        }
        Ok(())
    }

    /// What a record says; an empty one says nothing, so that it can take one of all members back.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let value = self.values.get(key)?;
        (!value.is_empty()).then_some(value.as_slice())
    }

    pub fn number(&self, key: &'static str) -> Result<Option<u64>, String> {
        let Some(value) = self.get(key.as_bytes()) else {
            return Ok(None);
        };
        match pax::decimal(value) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("its record '{key}' is no number")),
        }
    }

    pub fn time(&self, key: &'static str) -> Result<Option<Timestamp>, String> {
        let Some(value) = self.get(key.as_bytes()) else {
            return Ok(None);
        };
        match pax::time(value) {
            Some(time) => Ok(Some(time)),
            None => Err(format!("its record '{key}' is no time")),
        }
    }
}
