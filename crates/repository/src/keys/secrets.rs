//! The secrets of a repository and what is derived from them (docs/format/v1.md, §3 and §5).
//!
//! Enters: randomness, or the plaintext of a key slot. Leaves: that plaintext, and the derived
//! keys. The secrets are independent of one another, so that a slot may one day hold a part of
//! them (a client that writes and can't read). Every secret is wiped from memory when dropped
//! and none is ever printed.

use std::collections::BTreeMap;
use std::fmt;

use chunking::{GearTable, gear_table_from_bytes};
use engine::fingerprint::Fingerprinter;
use engine::format::{DecodeError, Decoder, Vault, is_writer_epoch};
use engine::object::ObjectId;
use zeroize::{Zeroize, Zeroizing};

/// One secret: 32 random bytes.
pub type Secret = Zeroizing<[u8; 32]>;

/// The epoch of a new repository's data secret.
pub const FIRST_EPOCH: u32 = 1;

/// Most secrets in one key slot.
const SECRETS_MAX: usize = 1024;

/// Stored bytes of one secret: kind, 3 reserved, epoch, the secret.
const ENTRY_BYTES: usize = 1 + 3 + 4 + 32;

/// Bytes of the Gear table: 256 × u64.
const GEAR_TABLE_BYTES: usize = 256 * 8;

const GEAR_TABLE_CONTEXT: &str = "onefold v1 gear table";
const CONFIG_KEY_CONTEXT: &str = "onefold v1 config";
const RECIPIENT_CONTEXT: &str = "onefold v1 epoch key pair";
const SHARED_CONTEXT: &str = "onefold v1 shared by clients";

/// Number of a secret's kind in a key slot.
mod kind {
    pub const CHUNKER: u8 = 1;
    pub const FINGERPRINT: u8 = 2;
    pub const AUTHORITY: u8 = 3;
    pub const DATA: u8 = 4;
    pub const SLOT: u8 = 5;
}

/// All secrets of a repository.
#[derive(Clone)]
pub struct Secrets {
    chunker: Secret,
    fingerprint: Secret,
    authority: Secret,
    data: BTreeMap<u32, Secret>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("epochs", &self.data.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Secrets {
    /// New random secrets, with a data secret for [`FIRST_EPOCH`].
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe can go on then.
    #[must_use]
    pub fn random() -> Self {
        Self {
            chunker: random_secret(),
            fingerprint: random_secret(),
            authority: random_secret(),
            data: BTreeMap::from([(FIRST_EPOCH, random_secret())]),
        }
    }

    /// Secrets of known value, for tests and golden samples.
    #[must_use]
    pub fn from_parts(
        chunker: Secret,
        fingerprint: Secret,
        authority: Secret,
        first_data: Secret,
    ) -> Self {
        Self {
            chunker,
            fingerprint,
            authority,
            data: BTreeMap::from([(FIRST_EPOCH, first_data)]),
        }
    }

    /// The same secrets, but for the chunker's: it cuts as another repository does.
    #[must_use]
    pub(crate) fn with_chunker(self, chunker: Secret) -> Self {
        Self { chunker, ..self }
    }

    /// The chunker's secret.
    pub(crate) fn chunker(&self) -> &Secret {
        &self.chunker
    }

    /// Does it hold the data secret of that epoch?
    pub(crate) fn has_epoch(&self, epoch: u32) -> bool {
        self.data.contains_key(&epoch)
    }

    /// The data secret of an epoch.
    pub(crate) fn epoch(&self, epoch: u32) -> Option<&Secret> {
        self.data.get(&epoch)
    }

    /// Adds the data secret of an epoch, unless a slot could not hold one more.
    pub(crate) fn add_epoch(&mut self, epoch: u32, secret: Secret) {
        if self.count() < SECRETS_MAX {
            self.data.entry(epoch).or_insert(secret);
        }
    }

    /// The secret of an epoch's key pair: who has the data secret has it, too.
    pub(crate) fn recipient(&self, repository: ObjectId, epoch: u32) -> Option<Secret> {
        let data = self.data.get(&epoch)?;
        let mut hasher = blake3::Hasher::new_derive_key(RECIPIENT_CONTEXT);
        hasher.update(&**data).update(&repository.0);
        Some(Zeroizing::new(*hasher.finalize().as_bytes()))
    }

    /// What clients that can only write have as well, by which they prove that they are clients.
    pub(crate) fn shared_by_clients(&self, repository: ObjectId) -> Secret {
        shared_by_clients(&self.fingerprint, repository)
    }

    /// Adds a random data secret under the next epoch, which is returned: objects written from
    /// now on are sealed in it. The key slots must be written anew before any object is.
    /// Nothing is added when a slot could not hold one more.
    #[must_use]
    pub fn begin_epoch(&mut self) -> Option<u32> {
        let epoch = self.newest_epoch().checked_add(1)?;
        if self.count() >= SECRETS_MAX {
            return None;
        }
        self.data.insert(epoch, random_secret());
        Some(epoch)
    }

    /// The epoch that new objects are sealed in.
    ///
    /// # Panics
    /// Never: every constructor puts a data secret in.
    #[must_use]
    pub fn newest_epoch(&self) -> u32 {
        let (&epoch, _) = self.data.last_key_value().expect("there is a data secret");
        epoch
    }

    /// What seals and opens the objects of `repository`; `padded` says whether their lengths
    /// are hidden (encrypted repositories).
    #[must_use]
    pub fn vault(&self, repository: ObjectId, padded: bool) -> Vault {
        Vault::new(repository, self.data.clone(), padded)
    }

    /// The keys under which chunks are fingerprinted.
    #[must_use]
    pub fn fingerprinter(&self) -> Fingerprinter {
        Fingerprinter::new(&self.fingerprint)
    }

    /// The 2048 secret bytes that the chunker's tables are made of.
    #[must_use]
    pub fn gear_table_bytes(&self) -> Zeroizing<[u8; GEAR_TABLE_BYTES]> {
        let mut bytes = Zeroizing::new([0; GEAR_TABLE_BYTES]);
        blake3::Hasher::new_derive_key(GEAR_TABLE_CONTEXT)
            .update(&*self.chunker)
            .finalize_xof()
            .fill(&mut *bytes);
        bytes
    }

    /// The secret Gear table: 256 little-endian integers of [`Secrets::gear_table_bytes`].
    #[must_use]
    pub fn gear_table(&self) -> Box<GearTable> {
        Box::new(gear_table_from_bytes(&self.gear_table_bytes()))
    }

    /// The key that authenticates the configuration.
    pub(crate) fn config_key(&self) -> Secret {
        Zeroizing::new(blake3::derive_key(CONFIG_KEY_CONTEXT, &*self.authority))
    }

    /// Secrets in a slot of its own, the slot's included.
    fn count(&self) -> usize {
        4 + self.data.len()
    }

    /// The plaintext of a key slot that has no secret of its own.
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        self.encode_with(None)
    }

    /// The plaintext of a key slot.
    pub(crate) fn encode_with(&self, slot_key: Option<&Secret>) -> Zeroizing<Vec<u8>> {
        // The exact capacity: growing would leave a copy behind that nobody wipes.
        let count = 3 + self.data.len() + usize::from(slot_key.is_some());
        let mut out = Zeroizing::new(Vec::with_capacity(2 + count * ENTRY_BYTES));
        out.extend_from_slice(&(count as u16).to_le_bytes());
        let mut put = |kind: u8, epoch: u32, secret: &Secret| {
            out.extend_from_slice(&[kind, 0, 0, 0]);
            out.extend_from_slice(&epoch.to_le_bytes());
            out.extend_from_slice(&**secret);
        };
        put(kind::CHUNKER, 0, &self.chunker);
        put(kind::FINGERPRINT, 0, &self.fingerprint);
        put(kind::AUTHORITY, 0, &self.authority);
        for (&epoch, secret) in &self.data {
            put(kind::DATA, epoch, secret);
        }
        if let Some(secret) = slot_key {
            put(kind::SLOT, 0, secret);
        }
        out
    }

    /// Reads the plaintext of a key slot that has no secret of its own.
    pub(crate) fn decode(plain: &[u8]) -> Result<Self, DecodeError> {
        match Self::decode_with(plain)? {
            (secrets, None) => Ok(secrets),
            (_, Some(_)) => Err(DecodeError::new(
                "it holds a secret of its own, which slots of its version do not have",
            )),
        }
    }

    /// Reads the plaintext of a key slot, with the slot's own secret where it has one.
    pub(crate) fn decode_with(plain: &[u8]) -> Result<(Self, Option<Secret>), DecodeError> {
        let mut decoder = Decoder::new(plain);
        let count = usize::from(decoder.u16()?);
        if count > SECRETS_MAX {
            return Err(DecodeError::new(format!(
                "{count} secrets announced, at most {SECRETS_MAX} make sense"
            )));
        }
        let mut found = BTreeMap::new();
        for _ in 0..count {
            let (kind, epoch, secret) = decode_entry(&mut decoder)?;
            let ascends = found
                .last_key_value()
                .is_none_or(|(&last, _)| last < (kind, epoch));
            if !ascends {
                return Err(DecodeError::new(format!(
                    "the secret of kind {kind}, epoch {epoch} is out of order"
                )));
            }
            found.insert((kind, epoch), secret);
        }
        decoder.finish()?;
        let mut only = |kind: u8, name: &str| {
            found
                .remove(&(kind, 0))
                .ok_or_else(|| DecodeError::new(format!("the {name} secret is not in it")))
        };
        let chunker = only(kind::CHUNKER, "chunker")?;
        let fingerprint = only(kind::FINGERPRINT, "fingerprint")?;
        let authority = only(kind::AUTHORITY, "authority")?;
        let slot_key = found.remove(&(kind::SLOT, 0));
        if found.is_empty() {
            return Err(DecodeError::new("no data secret is in it"));
        }
        let data = found
            .into_iter()
            .map(|((_, epoch), secret)| (epoch, secret))
            .collect();
        let secrets = Self {
            chunker,
            fingerprint,
            authority,
            data,
        };
        Ok((secrets, slot_key))
    }
}

fn shared_by_clients(fingerprint: &Secret, repository: ObjectId) -> Secret {
    let mut hasher = blake3::Hasher::new_derive_key(SHARED_CONTEXT);
    hasher.update(&**fingerprint).update(&repository.0);
    Zeroizing::new(*hasher.finalize().as_bytes())
}

/// One secret of a slot with its kind and epoch, both of which make sense together.
fn decode_entry(decoder: &mut Decoder<'_>) -> Result<(u8, u32, Secret), DecodeError> {
    let kind = decoder.u8()?;
    Decoder::new(decoder.take(3)?).finish_zero()?;
    let epoch = decoder.u32()?;
    let mut secret = Zeroizing::new([0; 32]);
    secret.copy_from_slice(decoder.take(32)?);
    match kind {
        kind::CHUNKER | kind::FINGERPRINT | kind::AUTHORITY | kind::SLOT if epoch == 0 => {}
        kind::DATA if epoch >= FIRST_EPOCH && !is_writer_epoch(epoch) => {}
        kind::CHUNKER..=kind::SLOT => {
            return Err(DecodeError::new(format!(
                "a secret of kind {kind} names epoch {epoch}"
            )));
        }
        _ => {
            return Err(DecodeError::new(format!(
                "it holds a secret of kind {kind}, which this version does not know"
            )));
        }
    }
    Ok((kind, epoch, secret))
}

/// 32 bytes from the operating system.
pub(crate) fn random_secret() -> Secret {
    let mut secret = Zeroizing::new([0; 32]);
    if let Err(error) = getrandom::fill(&mut *secret) {
        secret.zeroize();
        panic!("the operating system gives no random bytes: {error}");
    }
    secret
}

const _: () = assert!(2 + SECRETS_MAX * ENTRY_BYTES < 64 << 10);

#[cfg(test)]
mod tests {
    use super::*;
    use engine::container::ContainerKind;
    use proptest::prelude::*;

    fn secrets() -> Secrets {
        let secret = |byte| Zeroizing::new([byte; 32]);
        Secrets::from_parts(secret(1), secret(2), secret(3), secret(4))
    }

    /// Stored secrets of these kinds and epochs.
    fn stored(entries: &[(u8, u32)]) -> Vec<u8> {
        let mut plain = (entries.len() as u16).to_le_bytes().to_vec();
        for &(kind, epoch) in entries {
            plain.extend_from_slice(&[kind, 0, 0, 0]);
            plain.extend_from_slice(&epoch.to_le_bytes());
            plain.extend_from_slice(&[kind; 32]);
        }
        plain
    }

    #[test]
    fn secrets_come_back() {
        let mut secrets = Secrets::random();
        for epoch in 2..=5 {
            assert_eq!(secrets.begin_epoch(), Some(epoch));
        }
        let decoded = Secrets::decode(&secrets.encode()).unwrap();
        assert_eq!(*decoded.encode(), *secrets.encode());
        assert_eq!(decoded.newest_epoch(), 5);
    }

    #[test]
    fn random_secrets_differ() {
        let secrets = Secrets::random();
        let plain = secrets.encode();
        let mut parts: Vec<&[u8]> = plain[2..].chunks(ENTRY_BYTES).map(|e| &e[8..]).collect();
        let other = Secrets::random();
        parts.push(&*other.chunker);
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), 5);
    }

    #[test]
    fn the_number_of_epochs_is_bounded() {
        let mut secrets = secrets();
        while secrets.begin_epoch().is_some() {}
        assert_eq!(secrets.count(), SECRETS_MAX);
        assert!(Secrets::decode(&secrets.encode()).is_ok());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = [(1, 0), (2, 0), (3, 0), (4, 1), (4, 7)];
        assert!(Secrets::decode(&stored(&good)).is_ok());
        for bad in [
            &[][..],
            &[(2, 0), (3, 0), (4, 1)],
            &[(1, 0), (3, 0), (4, 1)],
            &[(1, 0), (2, 0), (4, 1)],
            &[(1, 0), (2, 0), (3, 0)],
            &[(1, 0), (2, 0), (3, 0), (4, 0)],
            &[(1, 1), (2, 0), (3, 0), (4, 1)],
            &[(1, 0), (1, 0), (2, 0), (3, 0), (4, 1)],
            &[(2, 0), (1, 0), (3, 0), (4, 1)],
            &[(1, 0), (2, 0), (3, 0), (4, 2), (4, 1)],
            &[(1, 0), (2, 0), (3, 0), (4, 1), (5, 0)],
            &[(1, 0), (2, 0), (3, 0), (4, 1 << 31)],
            &[(1, 0), (2, 0), (3, 0), (4, 1), (8, 0)],
        ] {
            assert!(Secrets::decode(&stored(bad)).is_err(), "{bad:?}");
        }
        let good = stored(&good);
        for end in 0..good.len() {
            assert!(Secrets::decode(&good[..end]).is_err());
        }
        let mut reserved = good.clone();
        reserved[4] = 1;
        assert!(Secrets::decode(&reserved).is_err());
        let mut longer = good;
        longer.push(0);
        assert!(Secrets::decode(&longer).is_err());
    }

    /// Values from a program of its own (Python: blake3).
    #[test]
    fn derived_values() {
        let table = secrets().gear_table();
        assert_eq!(table[0], 0x3e3d_6f2c_24ed_6840);
        assert_eq!(table[1], 0x2cdb_2149_8dcf_2222);
        assert_eq!(table[255], 0xc520_cef5_1a0a_0b58);
        let fingerprinter = secrets().fingerprinter();
        let [data, metadata] = [ContainerKind::Data, ContainerKind::Metadata]
            .map(|kind| fingerprinter.fingerprint(kind, b"chunk"));
        assert_ne!(data, metadata);
    }

    #[test]
    fn nothing_secret_is_printed() {
        assert_eq!(format!("{:?}", secrets()), "Secrets { epochs: [1], .. }");
    }

    proptest! {
        #[test]
        fn hostile_plaintexts_never_panic(
            plain in proptest::collection::vec(any::<u8>(), 0..300),
            entries in proptest::collection::vec((0u8..6, 0u32..3), 0..8),
        ) {
            let _ = Secrets::decode(&plain);
            let _ = Secrets::decode(&stored(&entries));
        }
    }
}
