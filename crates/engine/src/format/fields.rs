//! Field lists: tag-length-value with a rule for what a reader does not know
//! (docs/format/v1.md, §1): even tags may be ignored and are kept, odd ones refuse.

use super::decode::{DecodeError, Decoder, put_bytes, put_varint};

/// One field: its tag and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The tag; even ones may be ignored by readers that do not know them.
    pub tag: u64,
    /// The value's bytes.
    pub value: &'a [u8],
}

/// Walks the fields of a list in ascending order of their tags.
#[derive(Debug, Clone)]
pub struct FieldList<'a> {
    decoder: Decoder<'a>,
    least_tag: u64,
}

impl<'a> FieldList<'a> {
    /// The fields that make up the whole of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            decoder: Decoder::new(bytes),
            least_tag: 0,
        }
    }

    /// The next field, or nothing at the end.
    ///
    /// # Errors
    /// When a field is cut off or tags do not ascend.
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, DecodeError> {
        if self.decoder.is_empty() {
            return Ok(None);
        }
        let tag = self.decoder.varint()?;
        if tag < self.least_tag || tag == u64::MAX {
            return Err(DecodeError::new(format!("field {tag} is out of order")));
        }
        self.least_tag = tag + 1;
        let value = self.decoder.bytes()?;
        Ok(Some(Field { tag, value }))
    }
}

/// Builds a field list; fields must be given in ascending order of their tags, except that
/// fields kept from an earlier reading are merged in where they belong.
#[derive(Debug, Default)]
pub struct FieldWriter {
    fields: Vec<(u64, Vec<u8>)>,
}

impl FieldWriter {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field whose value `fill` appends to the vector it is given.
    pub fn field(&mut self, tag: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut value = Vec::new();
        fill(&mut value);
        self.fields.push((tag, value));
    }

    /// Adds a field that is one varint.
    pub fn varint(&mut self, tag: u64, value: u64) {
        self.field(tag, |out| put_varint(out, value));
    }

    /// Adds the fields that a reader kept without knowing them.
    pub fn unknown(&mut self, unknown: &UnknownFields) {
        self.fields.extend(unknown.0.iter().cloned());
    }

    /// Appends the list to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.fields.sort_by_key(|(tag, _)| *tag);
        for (tag, value) in &self.fields {
            put_varint(out, *tag);
            put_bytes(out, value);
        }
    }
}

/// Fields that this version does not know and keeps as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct UnknownFields(Vec<(u64, Vec<u8>)>);

impl UnknownFields {
    /// Keeps a field that the reader does not know.
    ///
    /// # Errors
    /// When its tag is odd: then it must be understood.
    pub fn keep(&mut self, field: Field<'_>) -> Result<(), DecodeError> {
        if field.tag % 2 == 1 {
            return Err(DecodeError::new(format!(
                "it has the mandatory field {}, which this version does not know; a newer onefold may read it",
                field.tag
            )));
        }
        self.0.push((field.tag, field.value.to_vec()));
        Ok(())
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_kept_or_refused() {
        let mut writer = FieldWriter::new();
        writer.varint(1, 7);
        writer.field(200, |out| out.extend_from_slice(b"later"));
        let mut bytes = Vec::new();
        writer.finish(&mut bytes);

        let mut unknown = UnknownFields::default();
        let mut list = FieldList::new(&bytes);
        assert_eq!(list.next_field().unwrap().unwrap().tag, 1);
        unknown.keep(list.next_field().unwrap().unwrap()).unwrap();
        assert_eq!(list.next_field().unwrap(), None);

        let mut again = FieldWriter::new();
        again.unknown(&unknown);
        again.varint(1, 7);
        let mut bytes_again = Vec::new();
        again.finish(&mut bytes_again);
        assert_eq!(bytes, bytes_again);

        let odd = Field {
            tag: 201,
            value: b"",
        };
        assert!(unknown.keep(odd).is_err());
    }

    #[test]
    fn order_matters() {
        for bad in [&[2, 0, 1, 0][..], &[1, 0, 1, 0], &[1, 5, 0]] {
            let mut list = FieldList::new(bad);
            let outcome = (|| {
                while list.next_field()?.is_some() {}
                Ok::<(), DecodeError>(())
            })();
            assert!(outcome.is_err(), "{bad:?}");
        }
    }
}
