//! Integers, byte strings and field lists (docs/format/v1.md, §1).

use engine::format::{
    DecodeError, Decoder, FieldList, FieldWriter, UnknownFields, put_bytes, put_signed, put_varint,
    varint_bytes,
};

/// The bytes are a program: each step is a byte that says what to read, and the value. What is
/// read is written again; stored forms are unique, so the same bytes come out.
pub fn integers(bytes: &[u8]) {
    let mut decoder = Decoder::new(bytes);
    let mut again = Vec::new();
    while let Ok(step) = decoder.u8() {
        again.push(step);
        if read_and_write(step, &mut decoder, &mut again).is_err() {
            return;
        }
        let read = bytes.len() - decoder.rest().len();
        assert_eq!(again, bytes[..read], "step {step}");
    }
    assert!(decoder.is_empty() && decoder.finish().is_ok());
}

fn read_and_write(
    step: u8,
    decoder: &mut Decoder<'_>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    match step % 8 {
        0 => {
            let value = decoder.varint()?;
            let start = out.len();
            put_varint(out, value);
            assert_eq!(out.len() - start, varint_bytes(value));
        }
        1 => put_signed(out, decoder.signed()?),
        2 => put_bytes(out, decoder.bytes()?),
        3 => put_bytes(out, decoder.text()?.as_bytes()),
        4 => out.extend_from_slice(&decoder.u64()?.to_le_bytes()),
        5 => {
            let count = decoder.count(3, "things")?;
            assert!(count <= decoder.rest().len() / 3);
            put_varint(out, count as u64);
        }
        6 => {
            let value = decoder.varint_at_most(1000, "a number")?;
            assert!(value <= 1000);
            put_varint(out, value);
        }
        _ => {
            let length = usize::from(step);
            out.extend_from_slice(decoder.take(length)?);
        }
    }
    Ok(())
}

pub fn integer_samples() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
        all.push(0);
        put_varint(&mut all, value);
        all.push(1);
        put_signed(&mut all, value as i64);
        all.push(2);
        put_bytes(&mut all, &value.to_le_bytes());
        all.push(3);
        put_bytes(&mut all, "größe".as_bytes());
        all.push(4);
        all.extend_from_slice(&value.to_le_bytes());
        all.extend_from_slice(&[6, 100, 7]);
        all.extend_from_slice(&[9; 7]);
    }
    vec![all, vec![5, 2, 0, 1, 0, 1, 0, 1]]
}

/// A list that is read comes out the same when its fields are written again, those that are
/// kept without being known included.
pub fn field_list(bytes: &[u8]) {
    let mut fields = FieldList::new(bytes);
    let mut writer = FieldWriter::new();
    let mut unknown = UnknownFields::default();
    loop {
        match fields.next_field() {
            Err(_) => return,
            Ok(None) => break,
            Ok(Some(field)) => {
                if unknown.keep(field).is_err() {
                    assert_eq!(field.tag % 2, 1, "only odd tags must be understood");
                    writer.field(field.tag, |out| out.extend_from_slice(field.value));
                }
            }
        }
    }
    writer.unknown(&unknown);
    let mut again = Vec::new();
    writer.finish(&mut again);
    assert_eq!(again, bytes);
}

pub fn field_list_samples() -> Vec<Vec<u8>> {
    let mut writer = FieldWriter::new();
    writer.varint(1, 7);
    writer.varint(2, u64::MAX);
    writer.field(3, |out| out.extend_from_slice(b"a text"));
    writer.field(200, |out| out.extend_from_slice(&[0; 300]));
    writer.field(u64::MAX - 1, |_| {});
    let mut list = Vec::new();
    writer.finish(&mut list);
    vec![list, Vec::new()]
}
