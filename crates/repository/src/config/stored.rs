//! The stored form of the configuration, and reading it before it can be trusted.

use chunking::structure::Structure;
use chunking::{Algorithm, OwnParameter, OwnParameters, Parameters};
use engine::format::{
    DecodeError, Decoder, FieldList, FieldWriter, UnknownFields, put_signed, put_varint,
};
use engine::object::{ObjectId, ObjectKey, ObjectStore, StoreError};
use engine::pipeline::DeltaLevel;
use engine::rewriting::Rewriting;

use super::{Acceleration, Config, ConfigError, Encryption, Features};
use super::{rewriting, structure};
use crate::keys::Secrets;

const MAGIC: &[u8; 8] = b"ONEFOLD\n";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 56;
const BODY_BYTES_MAX: usize = 64 << 10;
const HASH_BYTES: usize = 32;

/// Limit of the whole object in bytes.
const CONFIG_BYTES_MAX: u64 = (HEADER_BYTES + BODY_BYTES_MAX + 2 * HASH_BYTES) as u64;

/// Tags of the body's fields.
mod tag {
    pub const ENCRYPTION: u64 = 1;
    pub const CHUNKER: u64 = 3;
    pub const CHUNK_SIZES: u64 = 5;
    pub const CONTAINER_BYTES: u64 = 7;
    pub const GROUP_BYTES: u64 = 9;
    pub const CREATED: u64 = 10;
    pub const CHUNKER_OWN: u64 = 11;
    pub const PROGRAM: u64 = 12;
    pub const ACCELERATION: u64 = 13;
    pub const REWRITING: u64 = 14;
    pub const STRUCTURE: u64 = 16;
    pub const DELTAS: u64 = 18;
}

pub(super) fn encode(config: &Config, secrets: &Secrets) -> Result<Vec<u8>, ConfigError> {
    let mut body = Vec::new();
    write_body(config, &mut body);
    if body.len() > BODY_BYTES_MAX {
        let reason = format!(
            "{} bytes, at most {BODY_BYTES_MAX} can be stored",
            body.len()
        );
        return Err(ConfigError::parameter("configuration", reason));
    }
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len() + 2 * HASH_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&config.features.compatible.to_le_bytes());
    out.extend_from_slice(&config.features.read_only_compatible.to_le_bytes());
    out.extend_from_slice(&config.features.incompatible.to_le_bytes());
    out.extend_from_slice(&config.id.0);
    out.extend_from_slice(&body);
    let authentication = blake3::keyed_hash(&secrets.config_key(), &out);
    out.extend_from_slice(authentication.as_bytes());
    let checksum = blake3::hash(&out);
    out.extend_from_slice(checksum.as_bytes());
    Ok(out)
}

fn write_body(config: &Config, out: &mut Vec<u8>) {
    let mut fields = FieldWriter::new();
    fields.varint(tag::ENCRYPTION, config.encryption as u64);
    fields.varint(tag::CHUNKER, u64::from(config.chunker.algorithm.id()));
    fields.field(tag::CHUNK_SIZES, |value| {
        let chunker = &config.chunker;
        for bytes in [chunker.min_bytes, chunker.avg_bytes, chunker.max_bytes] {
            put_varint(value, u64::from(bytes));
        }
        put_varint(value, u64::from(chunker.normalization));
    });
    fields.varint(tag::CONTAINER_BYTES, u64::from(config.container_bytes));
    fields.varint(tag::GROUP_BYTES, u64::from(config.group_bytes));
    fields.field(tag::CREATED, |value| {
        put_signed(value, config.created_seconds)
    });
    if config.chunker.own != OwnParameters::default() {
        fields.field(tag::CHUNKER_OWN, |value| {
            for (parameter, number) in config.chunker.own.given() {
                put_varint(value, u64::from(parameter.info().id));
                put_varint(value, number);
            }
        });
    }
    fields.field(tag::PROGRAM, |value| {
        value.extend_from_slice(config.program.as_bytes())
    });
    if config.acceleration != Acceleration::None {
        fields.field(tag::ACCELERATION, |value| {
            for number in config.acceleration.numbers() {
                put_varint(value, number);
            }
        });
    }
    if config.rewriting != Rewriting::Off {
        fields.field(tag::REWRITING, |value| {
            for number in rewriting::numbers(&config.rewriting) {
                put_varint(value, number);
            }
        });
    }
    if let Some(number) = structure::number(config.structure) {
        fields.varint(tag::STRUCTURE, number);
    }
    if let Some(number) = deltas_number(config.deltas) {
        fields.varint(tag::DELTAS, number);
    }
    fields.unknown(&config.unknown);
    fields.finish(out);
}

/// A configuration that is intact and understood, and may yet be anybody's: it tells what is
/// needed to open the key slots, no more.
#[derive(Debug)]
pub struct UnverifiedConfig {
    config: Config,
    authenticated: Vec<u8>,
    authentication: blake3::Hash,
}

impl UnverifiedConfig {
    /// Reads the configuration of the repository in `store`.
    ///
    /// # Errors
    /// [`ConfigError::NotARepository`] when there is none, [`ConfigError::Store`], and as
    /// [`UnverifiedConfig::parse`].
    pub fn read(store: &dyn ObjectStore) -> Result<Self, ConfigError> {
        match store.get(&ObjectKey::CONFIG, CONFIG_BYTES_MAX) {
            Ok(bytes) => Self::parse(&bytes),
            Err(error @ StoreError::Missing { .. }) => Err(ConfigError::NotARepository {
                reason: error.to_string(),
            }),
            Err(StoreError::TooLong { object_bytes, .. }) => Err(ConfigError::Damaged {
                reason: DecodeError::new(format!("it has {object_bytes} bytes")),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// In this order: [`ConfigError::NotARepository`] (the magic), [`ConfigError::Damaged`]
    /// (the checksum), [`ConfigError::VersionTooNew`], [`ConfigError::UnknownFeatures`],
    /// [`ConfigError::Unsupported`] (the body), and as [`Config::validate`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        check_magic(bytes)?;
        let damaged = |reason| ConfigError::Damaged { reason };
        let covered = checked(bytes).map_err(damaged)?;
        let mut decoder = Decoder::new(covered);
        let header = Header::read(&mut decoder).map_err(damaged)?;
        if header.version > VERSION {
            return Err(ConfigError::VersionTooNew {
                version: header.version,
            });
        }
        header.features.check_readable()?;
        let body = header.body_of(&mut decoder).map_err(damaged)?;
        let config = read_body(&header, body)?;
        config.validate()?;
        let authentication = decoder.array::<HASH_BYTES>().map_err(damaged)?;
        Ok(Self {
            config,
            authenticated: covered[..covered.len() - HASH_BYTES].to_vec(),
            authentication: blake3::Hash::from_bytes(authentication),
        })
    }

    /// The id that it names.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.config.id
    }

    /// Whether it asks for a password.
    #[must_use]
    pub fn encryption(&self) -> Encryption {
        self.config.encryption
    }

    /// The configuration, once it proves to be that of the holder of `secrets`.
    ///
    /// # Errors
    /// [`ConfigError::NotAuthentic`].
    pub fn authenticate(self, secrets: &Secrets) -> Result<Config, ConfigError> {
        // `blake3::Hash` compares in constant time.
        if blake3::keyed_hash(&secrets.config_key(), &self.authenticated) == self.authentication {
            Ok(self.config)
        } else {
            Err(ConfigError::NotAuthentic)
        }
    }
}

/// A file cut off within the magic is a damaged one; anything else without it is not ours.
fn check_magic(bytes: &[u8]) -> Result<(), ConfigError> {
    if bytes.starts_with(MAGIC) || MAGIC.starts_with(bytes) {
        return Ok(());
    }
    Err(ConfigError::NotARepository {
        reason: "its config does not begin as onefold's does".to_owned(),
    })
}

/// The bytes that the checksum at the end covers, once it matches. The checksum stands at the
/// end in every version, so that damage is told from a newer version.
fn checked(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let covered_bytes = bytes
        .len()
        .checked_sub(HASH_BYTES)
        .filter(|&length| length >= HEADER_BYTES + HASH_BYTES)
        .ok_or_else(|| DecodeError::new(format!("it has only {} bytes", bytes.len())))?;
    let (covered, checksum) = bytes.split_at(covered_bytes);
    if blake3::hash(covered).as_bytes() != checksum {
        return Err(DecodeError::new("its checksum does not match its bytes"));
    }
    Ok(covered)
}

struct Header {
    version: u32,
    body_bytes: u32,
    features: Features,
    id: ObjectId,
}

impl Header {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.take(MAGIC.len())?;
        let version = decoder.u32()?;
        if version == 0 {
            return Err(DecodeError::new("it names format version 0"));
        }
        Ok(Self {
            version,
            body_bytes: decoder.u32()?,
            features: Features {
                compatible: decoder.u64()?,
                read_only_compatible: decoder.u64()?,
                incompatible: decoder.u64()?,
            },
            id: ObjectId(decoder.array()?),
        })
    }

    /// The body, after which nothing but the authentication may stand.
    fn body_of<'a>(&self, decoder: &mut Decoder<'a>) -> Result<&'a [u8], DecodeError> {
        let body_bytes = self.body_bytes as usize;
        let left = decoder.rest().len();
        if body_bytes > BODY_BYTES_MAX || left != body_bytes + HASH_BYTES {
            return Err(DecodeError::new(format!(
                "a body of {body_bytes} bytes is announced, {} are there",
                left.saturating_sub(HASH_BYTES)
            )));
        }
        decoder.take(body_bytes)
    }
}

/// Fields as they come; the mandatory ones must all be there at the end.
#[derive(Default)]
struct Body {
    encryption: Option<Encryption>,
    algorithm: Option<Algorithm>,
    chunk_sizes: Option<ChunkSizes>,
    chunker_own: OwnParameters,
    acceleration: Acceleration,
    rewriting: Rewriting,
    structure: Structure,
    deltas: DeltaLevel,
    container_bytes: Option<u32>,
    group_bytes: Option<u32>,
    created_seconds: i64,
    program: String,
    unknown: UnknownFields,
}

/// The parameters of a chunker but for its algorithm.
struct ChunkSizes {
    min_bytes: u32,
    avg_bytes: u32,
    max_bytes: u32,
    normalization: u8,
}

fn read_body(header: &Header, bytes: &[u8]) -> Result<Config, ConfigError> {
    let unsupported = |reason| ConfigError::Unsupported { reason };
    let body = read_fields(bytes).map_err(unsupported)?;
    let missing = |name: &str| unsupported(DecodeError::new(format!("it does not say {name}")));
    let sizes = body.chunk_sizes.ok_or_else(|| missing("the chunk sizes"))?;
    Ok(Config {
        id: header.id,
        encryption: body.encryption.ok_or_else(|| missing("the encryption"))?,
        chunker: Parameters {
            algorithm: body.algorithm.ok_or_else(|| missing("the chunker"))?,
            min_bytes: sizes.min_bytes,
            avg_bytes: sizes.avg_bytes,
            max_bytes: sizes.max_bytes,
            normalization: sizes.normalization,
            own: body.chunker_own,
        },
        acceleration: body.acceleration,
        rewriting: body.rewriting,
        structure: body.structure,
        deltas: body.deltas,
        container_bytes: body
            .container_bytes
            .ok_or_else(|| missing("the container size"))?,
        group_bytes: body.group_bytes.ok_or_else(|| missing("the group size"))?,
        created_seconds: body.created_seconds,
        program: body.program,
        features: header.features,
        unknown: body.unknown,
    })
}

fn read_fields(bytes: &[u8]) -> Result<Body, DecodeError> {
    let mut body = Body {
        deltas: DeltaLevel::Off,
        ..Body::default()
    };
    let mut fields = FieldList::new(bytes);
    while let Some(field) = fields.next_field()? {
        let mut value = Decoder::new(field.value);
        match field.tag {
            tag::ENCRYPTION => {
                let number = value.varint()?;
                body.encryption = Some(Encryption::from_number(number).ok_or_else(|| {
                    DecodeError::new(format!("encryption {number} is not known"))
                })?);
            }
            tag::CHUNKER => {
                let number = value.varint()?;
                body.algorithm =
                    Some(algorithm(number).ok_or_else(|| {
                        DecodeError::new(format!("chunker {number} is not known"))
                    })?);
            }
            tag::CHUNK_SIZES => {
                body.chunk_sizes = Some(ChunkSizes {
                    min_bytes: read_u32(&mut value, "the least chunk size")?,
                    avg_bytes: read_u32(&mut value, "the average chunk size")?,
                    max_bytes: read_u32(&mut value, "the greatest chunk size")?,
                    normalization: value
                        .varint_at_most(u64::from(u8::MAX), "the normalization level")?
                        as u8,
                });
            }
            tag::CONTAINER_BYTES => {
                body.container_bytes = Some(read_u32(&mut value, "the container size")?);
            }
            tag::GROUP_BYTES => body.group_bytes = Some(read_u32(&mut value, "the group size")?),
            tag::CHUNKER_OWN => body.chunker_own = read_own(&mut value)?,
            tag::ACCELERATION => body.acceleration = read_acceleration(&mut value)?,
            tag::REWRITING => match read_rewriting(&mut value)? {
                Some(rewriting) => body.rewriting = rewriting,
                None => {
                    body.unknown.keep(field)?;
                    continue;
                }
            },
            tag::STRUCTURE => match structure::from_number(value.varint()?) {
                Some(structure) => body.structure = structure,
                None => {
                    body.unknown.keep(field)?;
                    continue;
                }
            },
            tag::DELTAS => match deltas_of(value.varint()?) {
                Some(deltas) => body.deltas = deltas,
                None => {
                    body.unknown.keep(field)?;
                    continue;
                }
            },
            tag::CREATED => body.created_seconds = value.signed()?,
            tag::PROGRAM => {
                let text = std::str::from_utf8(value.take(field.value.len())?);
                body.program = text
                    .map_err(|_| DecodeError::new("the program's name is not UTF-8"))?
                    .to_owned();
            }
            _ => {
                body.unknown.keep(field)?;
                continue;
            }
        }
        value.finish()?;
    }
    Ok(body)
}

/// The stored number of a level; none where there is nothing to store.
fn deltas_number(level: DeltaLevel) -> Option<u64> {
    match level {
        DeltaLevel::Off => None,
        DeltaLevel::Fast => Some(1),
        DeltaLevel::Best => Some(2),
    }
}

fn deltas_of(number: u64) -> Option<DeltaLevel> {
    let mut levels = DeltaLevel::NAMES.iter().map(|(_, level)| *level);
    levels.find(|&level| deltas_number(level) == Some(number))
}

/// Pairs of number and value, the numbers rising.
fn read_own(value: &mut Decoder<'_>) -> Result<OwnParameters, DecodeError> {
    let mut own = OwnParameters::default();
    let mut last = 0;
    while !value.rest().is_empty() {
        let number = value.varint_at_most(u64::from(u16::MAX), "a chunker parameter's number")?;
        if number <= last {
            return Err(DecodeError::new("chunker parameters are not in order"));
        }
        last = number;
        let parameter = OwnParameter::from_id(number as u16)
            .ok_or_else(|| DecodeError::new(format!("chunker parameter {number} is not known")))?;
        own.set(parameter, value.varint()?);
    }
    Ok(own)
}

/// Its kind, and the numbers that belong to it: at most three.
fn read_acceleration(value: &mut Decoder<'_>) -> Result<Acceleration, DecodeError> {
    let mut numbers = Vec::new();
    while !value.rest().is_empty() && numbers.len() < 4 {
        numbers.push(value.varint()?);
    }
    Acceleration::from_numbers(&numbers).map_err(DecodeError::new)
}

/// Its kind, and the numbers that belong to it; nothing when the kind is not known.
fn read_rewriting(value: &mut Decoder<'_>) -> Result<Option<Rewriting>, DecodeError> {
    let mut numbers = Vec::new();
    while !value.rest().is_empty() && numbers.len() < rewriting::NUMBERS_MAX {
        numbers.push(value.varint()?);
    }
    rewriting::from_numbers(&numbers).map_err(DecodeError::new)
}

fn algorithm(number: u64) -> Option<Algorithm> {
    Algorithm::from_id(number.try_into().ok()?)
}

fn read_u32(value: &mut Decoder<'_>, what: &str) -> Result<u32, DecodeError> {
    Ok(value.varint_at_most(u64::from(u32::MAX), what)? as u32)
}
