//! Migrations: what brings a repository to what a later version can do with it.
//!
//! A migration changes feature flags in `config`, and whatever has to be there before they are. The only one so far sets a
//! flag that repositories did not have at first ([`MIGRATIONS`]); the table is where others come.
//!
//! `config` is replaced as a whole ([`ObjectStore::replace`]), so that at every instant of a crash there is the old one or the
//! new one. Parameters and the id never change. Older versions, which refuse flags that they do not know, are kept out
//! from then on; those at work do not see it, so a migration begins only when nobody is registered, and a person makes sure
//! that no older version, which does not register, is at work.

use std::sync::Arc;

use engine::object::{ObjectKey, ObjectStore};

use crate::config::{Config, Features, UnverifiedConfig};
use crate::deletion::runs::{self, Registration, Run, RunKind};
use crate::keyring::Keyring;
use crate::repository::RepositoryError;

/// A migration that this version knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// What it is called.
    pub name: &'static str,
    /// What it brings.
    pub about: &'static str,
    /// Incompatible flags that it sets.
    sets: u64,
}

/// All of them, in the order in which they are to be done.
pub const MIGRATIONS: [Migration; 1] = [Migration {
    name: "several-sections",
    about: "prune may pack what is needed of several containers into one (versions from before it can't read that)",
    sets: Features::MULTI_SECTION,
}];

/// Feature flags by name: bit, name.
pub const INCOMPATIBLE_FEATURES: [(u64, &str); 3] = [
    (Features::UNKEYED_CHUNKER, "unkeyed-chunker"),
    (Features::DELTAS, "deltas"),
    (Features::MULTI_SECTION, "several-sections"),
];

impl Migration {
    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        MIGRATIONS
            .into_iter()
            .find(|migration| migration.name == name)
    }

    /// Is a repository of that configuration as the migration would make it?
    #[must_use]
    pub fn is_done(&self, config: &Config) -> bool {
        config.features.incompatible & self.sets == self.sets
    }

    /// The configuration as the migration makes it.
    fn of(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.features.incompatible |= self.sets;
        config
    }
}

/// Why a repository was not migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// Somebody is at work who has read the old configuration.
    #[error("{} is at work in the repository (a {} on {})", runs.len(), runs[0].kind.name(), runs[0].host)]
    AtWork {
        /// Who.
        runs: Vec<Run>,
    },
}

impl Keyring {
    /// Does a migration; false when it is done already. A crash leaves the repository as it was before or as it is after.
    ///
    /// # Errors
    /// When somebody is at work, or the store fails.
    pub fn migrate(&mut self, migration: &Migration, host: &str) -> Result<bool, MigrateError> {
        let config = self.config();
        config.check_writable().map_err(RepositoryError::from)?;
        if migration.is_done(config) {
            return Ok(false);
        }
        let vault = Arc::new(self.vault());
        let store = Arc::clone(self.store());
        // As one that deletes: no other migration, and no prune, begins beside it.
        let registration = Registration::begin(&store, &vault, RunKind::Prune, host);
        let registration = registration.map_err(RepositoryError::from)?;
        let migrated = self.migrate_alone(migration, &registration);
        let ended = registration.end();
        let migrated = migrated?;
        ended.map_err(RepositoryError::from)?;
        Ok(migrated)
    }

    fn migrate_alone(
        &mut self,
        migration: &Migration,
        own: &Registration,
    ) -> Result<bool, MigrateError> {
        let store = Arc::clone(self.store());
        let at_work = self.at_work(store.as_ref(), own)?;
        if !at_work.is_empty() {
            return Err(MigrateError::AtWork { runs: at_work });
        }
        // Another migration may have ended since it was read.
        let current = self.read_config(store.as_ref())?;
        if migration.is_done(&current) {
            self.set_config(current);
            return Ok(false);
        }
        let bytes = migration.of(&current).encode(self.secrets());
        let bytes = bytes.map_err(RepositoryError::from)?;
        let replaced = store.replace(&ObjectKey::CONFIG, &bytes);
        replaced.map_err(RepositoryError::from)?;
        let migrated = self.read_config(store.as_ref())?;
        let is_done = migration.is_done(&migrated);
        self.set_config(migrated);
        Ok(is_done)
    }

    fn at_work(
        &self,
        store: &dyn ObjectStore,
        own: &Registration,
    ) -> Result<Vec<Run>, MigrateError> {
        let vault = self.vault();
        let expired = runs::expired(store).map_err(RepositoryError::from)?;
        let runs = runs::registered(store, &vault).map_err(RepositoryError::from)?;
        let others = runs
            .into_values()
            .filter(|run| run.id != own.id() && !expired.contains(&run.id) && !run.has_died());
        Ok(others.collect())
    }

    fn read_config(&self, store: &dyn ObjectStore) -> Result<Config, MigrateError> {
        let read = UnverifiedConfig::read(store);
        let read = read.and_then(|config| config.authenticate(self.secrets()));
        Ok(read.map_err(RepositoryError::from)?)
    }
}
