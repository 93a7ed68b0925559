//! The table of containers that the recipes of one page refer to by number.

use std::collections::HashMap;

use crate::container::ContainerId;
use crate::format::{DecodeError, Decoder, put_varint};
use crate::object::ObjectId;

/// Most containers in one table.
const TABLE_CONTAINERS_MAX: u64 = 65_536;

/// Containers in the order of their first use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerTable {
    containers: Vec<ContainerId>,
    numbers: HashMap<ContainerId, u32>,
}

impl ContainerTable {
    /// The number of `container`, entering it if it is new.
    pub fn number_of(&mut self, container: ContainerId) -> u32 {
        let next = self.containers.len() as u32;
        *self.numbers.entry(container).or_insert_with(|| {
            self.containers.push(container);
            next
        })
    }

    /// The container of that number.
    ///
    /// # Errors
    /// When the table is shorter.
    pub fn container(&self, number: u64) -> Result<ContainerId, DecodeError> {
        usize::try_from(number)
            .ok()
            .and_then(|number| self.containers.get(number))
            .copied()
            .ok_or_else(|| {
                DecodeError::new(format!(
                    "a recipe names container {number} of a table of {}",
                    self.containers.len()
                ))
            })
    }

    /// All containers, in the order of their numbers.
    #[must_use]
    pub fn containers(&self) -> &[ContainerId] {
        &self.containers
    }

    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.containers.len() as u64);
        for container in &self.containers {
            out.extend_from_slice(&container.0.0);
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When it is cut off, too long, or names a container twice.
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = decoder.clone().varint()?;
        if count > TABLE_CONTAINERS_MAX {
            return Err(DecodeError::new(format!(
                "a table of {count} containers exceeds the limit of {TABLE_CONTAINERS_MAX}"
            )));
        }
        let count = decoder.count(ObjectId::BYTES, "container ids")?;
        let mut table = Self::default();
        for number in 0..count as u32 {
            let container = ContainerId(ObjectId(decoder.array()?));
            if table.number_of(container) != number {
                return Err(DecodeError::new(format!(
                    "container {container} stands twice in a table"
                )));
            }
        }
        Ok(table)
    }
}
