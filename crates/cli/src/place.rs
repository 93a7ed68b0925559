//! Where a repository lies, opened: a directory of this machine, or a place on a server.
//!
//! Nothing here asks for a password. A directory is made by [`Place::create`] only; a place on a server
//! needs no making: its bucket has to be there.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use engine::object::{
    LocalStore, ObjectId, ObjectKind, ObjectStore, StoreError, TEMPORARY_STALE_AFTER,
};
use remote::{CachingStore, Location, RemoteSettings, RemoteStore};
use repository::Repository;
use repository::config::UnverifiedConfig;

use crate::arguments::RemoteArguments;
use crate::exit_code::ExitCode;
use crate::failure::{self, Failure};
use crate::names;
use crate::server_view::ServerEvent;
use crate::units;

/// Names in a directory that is laid out for objects, besides those of kinds of objects.
const LAYOUT_NAMES: [&str; 2] = ["tmp", "lost+found"];

/// The most that is kept of a repository's metadata on this machine, in bytes.
const CACHE_BYTES_DEFAULT: u64 = 4 << 30;

/// What is at the place of a repository.
pub enum Found {
    /// A repository.
    Repository {
        store: Arc<dyn ObjectStore>,
        config: Box<UnverifiedConfig>,
    },
    /// Nothing, or an empty directory: there is room for a repository.
    Nothing,
    /// Something else, which must be left alone.
    Other {
        /// What, for a person.
        reason: String,
    },
}

/// The settings of stores on servers.
pub fn remote_settings(arguments: &RemoteArguments) -> RemoteSettings {
    let default = RemoteSettings::default();
    RemoteSettings {
        connections: arguments
            .connections
            .map_or(default.connections, std::num::NonZeroUsize::get),
        upload_bytes_a_second: arguments.limit_upload,
        download_bytes_a_second: arguments.limit_download,
        ..default
    }
}

/// A place, opened as far as that is possible.
#[derive(Debug)]
pub enum Place {
    /// A directory, there or not.
    Directory(PathBuf),
    /// A store on a server.
    Remote(RemotePlace),
}

/// A store on a server, and what is kept of it here.
#[derive(Debug)]
pub struct RemotePlace {
    store: Arc<RemoteStore>,
    /// The most that is kept, in bytes; nothing where nothing is to be kept.
    cache_bytes: Option<u64>,
    cache: Arc<OnceLock<Arc<CachingStore>>>,
}

impl Place {
    /// The place of a location.
    pub fn open(location: &Location, arguments: &RemoteArguments) -> anyhow::Result<Self> {
        Ok(match location {
            Location::Directory(path) => Self::Directory(path.clone()),
            Location::Remote(address) => Self::Remote(RemotePlace {
                store: Arc::new(RemoteStore::open(address, remote_settings(arguments))?),
                cache_bytes: (!arguments.no_cache)
                    .then(|| arguments.cache_size.unwrap_or(CACHE_BYTES_DEFAULT)),
                cache: Arc::default(),
            }),
        })
    }

    /// The store on a server, if it is one.
    pub fn remote(&self) -> Option<&RemotePlace> {
        match self {
            Self::Directory(_) => None,
            Self::Remote(place) => Some(place),
        }
    }

    /// Looks what is there, without any password.
    pub fn look(&self) -> anyhow::Result<Found> {
        match self {
            Self::Directory(path) => look_in_directory(path),
            Self::Remote(place) => place.look(),
        }
    }

    /// The store for a new repository, where [`Place::look`] has found nothing.
    pub fn create(&self) -> anyhow::Result<Arc<dyn ObjectStore>> {
        Ok(match self {
            Self::Directory(path) => Arc::new(LocalStore::create(path)?),
            Self::Remote(place) => Arc::clone(&place.store) as Arc<dyn ObjectStore>,
        })
    }
}

fn look_in_directory(location: &Path) -> anyhow::Result<Found> {
    let shown = names::escaped_path(location);
    match fs::metadata(location) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error).with_context(|| format!("cannot open {shown}")),
        Ok(metadata) if !metadata.is_dir() => {
            return Ok(Found::Other {
                reason: format!("{shown} is not a directory"),
            });
        }
        Ok(_) => {}
    }
    let store = Arc::new(LocalStore::open(location)?);
    if let Some(config) = Repository::inspect(store.as_ref())? {
        // What killed runs left half-written a day ago or more. It only takes room: where it
        // can't be removed (a read-only medium), it stays.
        let _ = store.remove_stale_temporaries(TEMPORARY_STALE_AFTER);
        let config = Box::new(config);
        return Ok(Found::Repository { store, config });
    }
    let has_config = location.join(ObjectKind::Config.directory()).exists();
    refuse_beheaded(store.as_ref(), &shown, has_config)?;
    match foreign_name(location).with_context(|| format!("cannot read {shown}"))? {
        None => Ok(Found::Nothing),
        Some(name) => Ok(Found::Other {
            reason: format!("{shown} holds other things ('{name}' among them), and no repository"),
        }),
    }
}

impl RemotePlace {
    /// The store itself.
    pub fn store(&self) -> &RemoteStore {
        &self.store
    }

    /// Tells what was asked of the server so far, whenever it is called.
    pub fn counting(&self) -> impl Fn() -> ServerEvent + Send + Sync + 'static {
        let (store, cache) = (Arc::clone(&self.store), Arc::clone(&self.cache));
        move || {
            let cached = cache.get().map(|cache| cache.counts()).unwrap_or_default();
            ServerEvent::new(store.counts(), cached)
        }
    }

    fn look(&self) -> anyhow::Result<Found> {
        if let Some(config) = Repository::inspect(self.store.as_ref())? {
            let store = self.with_cache(config.id());
            let config = Box::new(config);
            return Ok(Found::Repository { store, config });
        }
        let shown = names::escaped_text(&self.store.location());
        refuse_beheaded(self.store.as_ref(), &shown, false)?;
        match self.store.foreign_name()? {
            None => Ok(Found::Nothing),
            Some(name) => Ok(Found::Other {
                reason: format!(
                    "{shown} holds other things ('{}' among them), and no repository",
                    names::escaped_text(&name)
                ),
            }),
        }
    }

    /// The store with copies before it, where there is room for them on this machine: else without.
    fn with_cache(&self, repository: ObjectId) -> Arc<dyn ObjectStore> {
        let plain = || Arc::clone(&self.store) as Arc<dyn ObjectStore>;
        let directory = cache_directory().map(|above| above.join(repository.to_string()));
        let (Some(limit_bytes), Some(directory)) = (self.cache_bytes, directory) else {
            return plain();
        };
        match CachingStore::new(plain(), &directory, limit_bytes) {
            Ok(cache) => {
                let cache = self.cache.get_or_init(|| Arc::new(cache));
                Arc::clone(cache) as Arc<dyn ObjectStore>
            }
            Err(_) => plain(),
        }
    }
}

/// Where copies of metadata lie, a directory for each repository.
fn cache_directory() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("onefold"))
}

/// A repository whose `config` is gone must not be taken for an empty place.
fn refuse_beheaded(store: &dyn ObjectStore, shown: &str, has_config: bool) -> anyhow::Result<()> {
    // A key without a `config` is what is left of an `init` that was interrupted.
    let kinds = [
        ObjectKind::Snapshot,
        ObjectKind::Container,
        ObjectKind::Index,
        ObjectKind::Key,
    ];
    for kind in &kinds[..if has_config { 4 } else { 3 }] {
        let mut count = 0u64;
        match store.list(*kind, &mut |_, _| count += 1) {
            Ok(()) => {}
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        if count > 0 {
            return Err(beheaded(shown, count, kind.directory()));
        }
    }
    Ok(())
}

fn beheaded(shown: &str, count: u64, directory: &str) -> anyhow::Error {
    let message = format!(
        "the file `config` of the repository at {shown} is missing or overwritten ({} in `{directory}`)",
        units::counted(count, "object is", "objects are"),
    );
    Failure::new(ExitCode::Damaged, message)
        .with_hint(failure::HINT_CONFIG_DAMAGE)
        .into()
}

/// A name in a directory that is none of a repository's, for a person.
fn foreign_name(directory: &Path) -> std::io::Result<Option<String>> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let is_ours = LAYOUT_NAMES.iter().any(|ours| name == *ours)
            || ObjectKind::ALL
                .iter()
                .any(|&kind| kind != ObjectKind::Config && name == kind.directory());
        if !is_ours {
            return Ok(Some(names::escaped_path(Path::new(&name))));
        }
    }
    Ok(None)
}
