//! The label of a key slot: who made it, when and where, and what it is for (docs/format/v1.md, §5).
//!
//! Enters: a [`SlotLabel`]. Leaves: a sealed document under the slot's id, which whoever holds the
//! repository's secrets can read, whatever slot gave them: so the slots of others can be told apart
//! without their passwords, and the store learns nothing. It says nothing about what the slot
//! opens; one that can't be read keeps nobody out.

use engine::format::{
    DecodeError, Decoder, FieldList, FieldWriter, ObjectError, UnknownFields, Vault, open_document,
    seal_document,
};
use engine::object::ObjectKey;

use super::exchange::PublicKey;
use crate::timestamp::Timestamp;

/// Most bytes of a sealed label.
pub(super) const LABEL_BYTES_MAX: usize = 4 << 10;

/// Tags of the fields.
mod tag {
    pub const CREATED: u64 = 2;
    pub const HOST: u64 = 4;
    pub const USER: u64 = 6;
    pub const NAME: u64 = 8;
    pub const PUBLIC_KEY: u64 = 10;
    pub const EPOCH: u64 = 12;
}

/// What is known of a key slot beside what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotLabel {
    /// When it was made.
    pub created: Timestamp,
    /// The machine that made it.
    pub host: String,
    /// The user who made it.
    pub user: String,
    /// What a person calls it; empty when it has no name.
    pub name: String,
}

/// A label as it is stored: with what others need to know of the slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredLabel {
    pub label: SlotLabel,
    /// The public key of the slot's own pair, and the newest epoch that it was made with. Slots of
    /// older versions have neither.
    pub rotates: Option<(PublicKey, u32)>,
}

/// The sealed form.
pub(super) fn seal(
    vault: &Vault,
    key: ObjectKey,
    stored: &StoredLabel,
) -> Result<Vec<u8>, DecodeError> {
    let label = &stored.label;
    let mut fields = FieldWriter::new();
    fields.field(tag::CREATED, |out| label.created.encode(out));
    let texts = [
        (tag::HOST, &label.host),
        (tag::USER, &label.user),
        (tag::NAME, &label.name),
    ];
    for (tag, text) in texts {
        if !text.is_empty() {
            fields.field(tag, |out| out.extend_from_slice(text.as_bytes()));
        }
    }
    if let Some((public, epoch)) = stored.rotates {
        fields.field(tag::PUBLIC_KEY, |out| out.extend_from_slice(&public.0));
        fields.varint(tag::EPOCH, u64::from(epoch));
    }
    let mut body = Vec::new();
    fields.finish(&mut body);
    let sealed = seal_document(vault, key, &body)?;
    if sealed.len() > LABEL_BYTES_MAX {
        return Err(DecodeError::new(format!(
            "it takes {} bytes, at most {LABEL_BYTES_MAX} are possible",
            sealed.len()
        )));
    }
    Ok(sealed)
}

/// The label of a sealed form.
pub(super) fn open(
    vault: &Vault,
    key: ObjectKey,
    sealed: &[u8],
) -> Result<StoredLabel, LabelError> {
    let body = open_document(vault, key, sealed.to_vec())?;
    Ok(decode(&body)?)
}

/// Why a label can't be read.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// It does not open.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// What it holds is not a label.
    #[error("its label is damaged: {0}")]
    Body(#[from] DecodeError),
}

fn decode(body: &[u8]) -> Result<StoredLabel, DecodeError> {
    let mut label = SlotLabel::default();
    let (mut public, mut epoch) = (None, None);
    // A label is never written again, so what is not known need not be kept.
    let mut unknown = UnknownFields::default();
    let mut fields = FieldList::new(body);
    while let Some(field) = fields.next_field()? {
        match field.tag {
            tag::CREATED => {
                let mut value = Decoder::new(field.value);
                label.created = Timestamp::decode(&mut value)?;
                value.finish()?;
            }
            tag::HOST => label.host = text(field.value)?,
            tag::USER => label.user = text(field.value)?,
            tag::NAME => label.name = text(field.value)?,
            tag::PUBLIC_KEY => {
                let mut value = Decoder::new(field.value);
                public = Some(PublicKey(value.array()?));
                value.finish()?;
            }
            tag::EPOCH => {
                let mut value = Decoder::new(field.value);
                epoch = Some(value.varint_at_most(u64::from(u32::MAX), "an epoch")? as u32);
                value.finish()?;
            }
            _ => unknown.keep(field)?,
        }
    }
    let rotates = public.zip(epoch);
    Ok(StoredLabel { label, rotates })
}

fn text(bytes: &[u8]) -> Result<String, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::new("a text is not UTF-8"))?;
    Ok(text.to_owned())
}
