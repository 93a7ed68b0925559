//! What the tests of the index share: keys, synthetic entries, a store that fails on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use testkit::random::Random;
use zeroize::Zeroizing;

use super::block::BLOCK_BYTES;
use super::cache::PieceCache;
use super::run_reader::{RunContext, RunReader};
use super::run_writer::{ContainerTable, RunWriter};
use super::statistics::Counters;
use super::{IndexEntry, RunSet};
use crate::container::{ChunkAddress, ContainerId, Slot};
use crate::format::{LENGTH_TAG_BYTES, Vault};
use crate::object::{
    MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, PutOutcome,
    StoreError, Tail, WholeWriter,
};

/// A vault with the secrets of `epochs`.
pub(super) fn vault_of(epochs: std::ops::RangeInclusive<u32>, is_padded: bool) -> Arc<Vault> {
    let secrets: BTreeMap<_, _> = epochs
        .map(|epoch| (epoch, Zeroizing::new([epoch as u8; 32])))
        .collect();
    Arc::new(Vault::new(ObjectId([9; 16]), secrets, is_padded))
}

pub(super) fn vault() -> Arc<Vault> {
    vault_of(1..=1, false)
}

/// Container number `number`; ids do not ascend with their numbers.
pub(super) fn container(number: u64) -> ContainerId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&Random::new(number).bits().to_le_bytes());
    id[8..].copy_from_slice(&number.to_le_bytes());
    ContainerId(ObjectId(id))
}

pub(super) fn entry(prefix: u64, number: u64, slot: u16) -> IndexEntry {
    IndexEntry {
        prefix,
        address: ChunkAddress {
            container: container(number),
            slot: Slot(slot),
        },
    }
}

/// `count` entries of random prefixes in full containers of `slots` each, from container
/// `first` on.
pub(super) fn synthetic(seed: u64, first: u64, count: usize, slots: usize) -> Vec<IndexEntry> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|n| {
            entry(
                random.bits(),
                first + (n / slots) as u64,
                (n % slots) as u16,
            )
        })
        .collect()
}

pub(super) fn index_keys(store: &MemoryStore) -> Vec<ObjectKey> {
    store
        .keys()
        .into_iter()
        .filter(|key| key.kind == ObjectKind::Index)
        .collect()
}

pub(super) fn open_set(store: &Arc<impl ObjectStore + 'static>, memory_bytes: usize) -> RunSet {
    let store: Arc<dyn ObjectStore> = store.clone();
    RunSet::open(store, vault(), memory_bytes).unwrap()
}

/// What the set says of `prefix`, each address once.
pub(super) fn candidates(set: &RunSet, prefix: u64) -> BTreeSet<ChunkAddress> {
    let mut out = Vec::new();
    set.candidates(prefix, &mut out);
    out.into_iter().collect()
}

/// All addresses by their prefix.
pub(super) fn model_of<'a>(
    entries: impl IntoIterator<Item = &'a IndexEntry>,
) -> BTreeMap<u64, BTreeSet<ChunkAddress>> {
    let mut model = BTreeMap::<_, BTreeSet<_>>::new();
    for entry in entries {
        model.entry(entry.prefix).or_default().insert(entry.address);
    }
    model
}

/// A run of partitions that a test can fill.
pub(super) fn begin<'a>(
    store: &'a MemoryStore,
    vault: &Vault,
    id: ObjectId,
    ids: Vec<ContainerId>,
) -> RunWriter<'a> {
    let table = ContainerTable {
        ids,
        ..ContainerTable::default()
    };
    RunWriter::begin(store, vault, id, table, 1 << 15).unwrap()
}

/// One run in a store of its own.
pub(super) struct TestRun {
    pub(super) store: Arc<MemoryStore>,
    pub(super) vault: Arc<Vault>,
    pub(super) key: ObjectKey,
    pub(super) object: Vec<u8>,
}

impl TestRun {
    pub(super) fn new(entries: &[IndexEntry], vault: Arc<Vault>) -> Self {
        let mut sorted = entries.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let table: BTreeSet<_> = sorted.iter().map(|entry| entry.address.container).collect();
        let table: Vec<_> = table.into_iter().collect();
        let id = ObjectId([3; 16]);
        let store = Arc::new(MemoryStore::new());
        let mut writer = begin(&store, &vault, id, table.clone());
        for entry in &sorted {
            let number = table.binary_search(&entry.address.container).unwrap();
            let number = number as u32;
            writer
                .push(entry.prefix, number, entry.address.slot)
                .unwrap();
        }
        let (key, object_bytes) = writer.finish(Vec::new()).unwrap();
        let object = store.object(&key).unwrap();
        assert_eq!(object.len() as u64, object_bytes);
        Self {
            store,
            vault,
            key,
            object,
        }
    }

    pub(super) fn context(&self, cache_bytes: usize) -> RunContext {
        RunContext {
            store: self.store.clone(),
            cache: Arc::new(PieceCache::new(cache_bytes)),
            counters: Arc::new(Counters::default()),
            planes_bytes: Arc::default(),
        }
    }

    pub(super) fn open(
        &self,
        context: &RunContext,
    ) -> Result<RunReader, crate::format::ObjectError> {
        RunReader::open(context, &self.vault, self.key.id, 0)
    }

    /// Replaces the stored object.
    pub(super) fn store_object(&self, object: Vec<u8>) {
        self.store.insert_raw(self.key, object);
    }

    /// The object with the plaintext of block `number` (of the first partition) changed and sealed again.
    pub(super) fn with_block(&self, number: usize, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut object = self.object.clone();
        let sealer = self.vault.new_object(self.key);
        let place = number * BLOCK_BYTES..(number + 1) * BLOCK_BYTES;
        let piece = 2 + number as u32;
        let mut block = object[place.clone()].to_vec();
        sealer.open(piece, &mut block).unwrap();
        change(&mut block);
        sealer.seal(piece, &mut block, 0);
        object[place].copy_from_slice(&block);
        object
    }

    /// The object with the plaintext of the footer changed and sealed again.
    pub(super) fn with_footer(&self, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let sealer = self.vault.new_object(self.key);
        let (rest, tag) = self.object.split_last_chunk::<LENGTH_TAG_BYTES>().unwrap();
        let length = sealer.open_length_tag(tag).unwrap() as usize;
        let (body, footer) = rest.split_at(rest.len() - length);
        let mut footer = footer.to_vec();
        sealer.open(1, &mut footer).unwrap();
        change(&mut footer);
        sealer.seal(1, &mut footer, 0);
        let mut object = body.to_vec();
        object.extend_from_slice(&footer);
        object.extend_from_slice(&sealer.length_tag(footer.len() as u32));
        object
    }
}

/// A store whose medium dies after some changes, or whose reads fail.
pub(super) struct FailingStore {
    pub(super) inner: Arc<MemoryStore>,
    /// Calls of `put` and `delete` until every later one fails.
    pub(super) changes_left: AtomicI64,
    /// Calls of `get_range` until every later one fails.
    pub(super) ranges_left: AtomicI64,
    /// This object is listed, and gone when it is read.
    pub(super) hidden: Mutex<Option<ObjectKey>>,
}

impl FailingStore {
    pub(super) fn new(inner: &Arc<MemoryStore>, changes_left: i64, ranges_left: i64) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            changes_left: AtomicI64::new(changes_left),
            ranges_left: AtomicI64::new(ranges_left),
            hidden: Mutex::default(),
        })
    }

    fn count_down(&self, left: &AtomicI64, key: &ObjectKey) -> Result<(), StoreError> {
        if left.fetch_sub(1, Ordering::Relaxed) > 0 {
            return Ok(());
        }
        Err(StoreError::Io {
            action: "reach",
            subject: key.to_string(),
            location: self.location(),
            source: io::Error::other("the medium died"),
        })
    }
}

impl ObjectStore for FailingStore {
    fn location(&self) -> String {
        "a failing store".to_owned()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.count_down(&self.changes_left, key)?;
        self.inner.put(key, bytes)
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        Ok(Box::new(WholeWriter::new(self, key)))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        self.inner.put_if_absent(key, bytes)
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        self.inner.persist(keys)
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        self.inner.get(key, limit_bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        self.count_down(&self.ranges_left, key)?;
        if *self.hidden.lock().unwrap() == Some(*key) {
            let (key, location) = (*key, self.location());
            return Err(StoreError::Missing { key, location });
        }
        self.inner.get_range(key, offset, length)
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        self.inner.get_tail(key, length)
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        self.inner.list(kind, visit)
    }

    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError> {
        self.count_down(&self.changes_left, key)?;
        self.inner.delete(key)
    }
}
