//! A sound repository to be damaged, and what must come out of it all the same.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use repository::snapshot::Snapshot;
use repository::{BackupOptions, CreateOptions, Progress, Repository, RepositoryError};

use super::damage::{Change, changes, damaged, restore_what_is_left};
use super::sources::{Picture, Source};
use super::{backup, backup_options, check_restore, create_options, open, password, settings};

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics in the threads of the pipeline and of restores.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Threads of tests have the tests' names; their panics are not hidden from anybody.
            let is_test = std::thread::current()
                .name()
                .is_some_and(|name| name.contains('_'));
            PANICS.fetch_add(usize::from(!is_test), Ordering::Relaxed);
            before(panic);
        }));
    });
}

/// What a snapshot holds.
pub struct Saved {
    pub snapshot: Snapshot,
    pub picture: Arc<Picture>,
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

/// A sound repository with two snapshots, and what they hold.
pub struct Fixture {
    pub encrypted: bool,
    pub source: Source,
    pub store: MemoryStore,
    pub saved: Vec<Saved>,
    /// A repository of somebody else with the same password.
    pub other: MemoryStore,
}

fn contents(root: &Path, picture: &Picture) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = picture.keys().map(|path| (path.clone(), root.join(path)));
    files
        .filter(|(_, path)| std::fs::symlink_metadata(path).is_ok_and(|entry| entry.is_file()))
        .map(|(name, path)| (name, std::fs::read(path).expect("a file")))
        .collect()
}

impl Fixture {
    pub fn new(encrypted: bool) -> Self {
        Self::with(encrypted, &create_options())
    }

    /// One whose repositories are created so.
    pub fn with(encrypted: bool, options: &CreateOptions) -> Self {
        count_panics();
        let source = Source::new();
        let store = Arc::new(MemoryStore::new());
        let create = |store: &Arc<MemoryStore>| {
            let shared = Arc::clone(store) as Arc<dyn ObjectStore>;
            let password = password(encrypted);
            let created = Repository::create(shared, password.as_ref(), options, settings());
            created.expect("created")
        };
        let repository = create(&store);
        let mut saved = Vec::new();
        for version in 0..2 {
            if version > 0 {
                source.advance(version);
            }
            // So that the next backup takes the files for unchanged, and stores equal pages.
            std::thread::sleep(std::time::Duration::from_millis(50));
            let report = backup(&repository, source.root()).expect("backed up");
            assert!(report.repository_warnings.is_empty());
            let picture = source.picture();
            saved.push(Saved {
                snapshot: report.snapshot,
                files: contents(source.root(), &picture),
                picture,
            });
        }
        let other = Arc::new(MemoryStore::new());
        let foreign = create(&other);
        backup(&foreign, source.root()).expect("backed up");
        Self {
            encrypted,
            source,
            store: store.fork(),
            saved,
            other: other.fork(),
        }
    }

    pub fn latest(&self) -> &Saved {
        &self.saved[1]
    }

    pub fn keys(&self, kind: ObjectKind) -> Vec<ObjectKey> {
        let keys = self.store.keys().into_iter();
        keys.filter(|key| key.kind == kind).collect()
    }

    pub fn containers(&self, kind: ContainerKind) -> Vec<ObjectKey> {
        let repository = self.open(self.store.fork()).expect("opened");
        let reader = repository.engine().reader().expect("a reader");
        let is_of_kind = |key: &ObjectKey| {
            let (metadata, _) = reader.containers().object(*key).expect("a container");
            metadata.sections[0].kind == kind
        };
        let keys = self.keys(ObjectKind::Container).into_iter();
        keys.filter(is_of_kind).collect()
    }

    pub fn open(&self, store: MemoryStore) -> Result<Repository, RepositoryError> {
        open(Arc::new(store), self.encrypted)
    }

    /// Calls `judge` with a repository in which `key` is damaged, for every change.
    pub fn damage(
        &self,
        key: ObjectKey,
        mut judge: impl FnMut(Change, MemoryStore) -> Result<(), String>,
    ) {
        let bytes = self.store.object(&key).expect("an object");
        let of_kind = |key: &ObjectKey| self.kind_of(key);
        let others = self.store.keys().into_iter();
        let other = others
            .filter(|other| *other != key && of_kind(other) == of_kind(&key))
            .map(|other| (other, self.store.object(&other).expect("an object")))
            .next();
        let foreign = self.other.keys().into_iter();
        let foreign = foreign
            .filter(|other| other.kind == key.kind)
            .map(|other| (other, self.other.object(&other).expect("an object")))
            .next();
        let (other, other_bytes) = other.or(foreign).expect("another object of its kind");
        for change in changes(bytes.len()) {
            let store = damaged(&self.store, key, change, (other, &other_bytes));
            if let Err(error) = judge(change, store) {
                panic!("{key}, {change}, encrypted: {}: {error}", self.encrypted);
            }
            assert_eq!(
                PANICS.load(Ordering::Relaxed),
                0,
                "{key}, {change}: a panic"
            );
        }
    }

    /// Containers of data are not swapped with those of metadata: lengths would differ wildly.
    pub fn kind_of(&self, key: &ObjectKey) -> (ObjectKind, bool) {
        let is_metadata =
            key.kind == ObjectKind::Container && self.metadata_containers().contains(key);
        (key.kind, is_metadata)
    }

    pub fn metadata_containers(&self) -> Vec<ObjectKey> {
        self.containers(ContainerKind::Metadata)
    }

    /// Restores, dumps, lists, compares, counts: whatever comes out is right. Returns how many
    /// paths are lost, and checks that what is said of them contains `word`.
    pub fn read_everything(&self, repository: &Repository, word: &str) -> Result<usize, String> {
        let mut lost = 0;
        let list = repository.snapshots().map_err(|error| error.to_string())?;
        for snapshot in &list.snapshots {
            let saved = self
                .saved
                .iter()
                .find(|saved| saved.snapshot.id == snapshot.id);
            let saved = saved.ok_or("a snapshot from nowhere")?;
            let losses =
                restore_what_is_left(repository, snapshot, self.source.root(), &saved.picture)?;
            lost += losses.paths.len();
            for message in &losses.messages {
                if !message.contains(word) && !message.contains("hard link") {
                    return Err(format!("{message:?} does not name {word}"));
                }
            }
            self.dump_everything(repository, saved)?;
            if let Ok(tree) = repository.tree(snapshot) {
                let _ = tree.visit(b"", true, &mut |_, _| ControlFlow::Continue(()));
            }
        }
        let [first, second] = &self.saved[..] else {
            return Err("two snapshots".to_owned());
        };
        let _ = repository.diff(&first.snapshot, &second.snapshot, &mut |_| {});
        repository
            .stats(&Progress::default())
            .map_err(|error| format!("stats: {error}"))?;
        Ok(lost)
    }

    pub fn dump_everything(&self, repository: &Repository, saved: &Saved) -> Result<(), String> {
        for (name, content) in saved.files.iter().step_by(5) {
            let path = self.source.root().join(name);
            let mut out = Vec::new();
            let path = path.as_os_str().as_encoded_bytes();
            let outcome = repository.dump(&saved.snapshot, path, &mut out, &Progress::default());
            let is_right = match &outcome {
                Ok(_) => out == *content,
                Err(_) => content.starts_with(&out),
            };
            if !is_right {
                return Err(format!("{} is dumped wrong: {outcome:?}", name.display()));
            }
        }
        Ok(())
    }

    /// The next backup saves everything, and its snapshot is whole; so is the one after it.
    pub fn backups_are_whole(
        &self,
        repository: &Repository,
        options: &BackupOptions,
    ) -> Result<(), String> {
        for options in [options, &backup_options()] {
            let sources = [self.source.root().to_owned()];
            let report = repository
                .backup(&sources, options, &Progress::default())
                .map_err(|error| format!("not backed up: {error}"))?;
            if report.errors > 0 {
                return Err(format!("backed up in part: {:?}", report.snapshot.errors));
            }
            let (root, picture) = (self.source.root(), &self.latest().picture);
            check_restore(repository, &report.snapshot, root, picture)
                .map_err(|error| format!("the new snapshot: {error}"))?;
        }
        Ok(())
    }
}

impl Fixture {
    /// How many paths of the first two snapshots are lost.
    pub fn read_old(&self, repository: &Repository, word: &str) -> Result<usize, String> {
        let mut lost = 0;
        for saved in &self.saved {
            let root = self.source.root();
            let losses = restore_what_is_left(repository, &saved.snapshot, root, &saved.picture)?;
            if let Some(message) = losses
                .messages
                .iter()
                .find(|message| !message.contains(word) && !message.contains("hard link"))
            {
                return Err(format!("{message:?} does not name {word}"));
            }
            lost += losses.paths.len();
        }
        Ok(lost)
    }
}
