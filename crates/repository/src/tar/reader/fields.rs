//! What the fields of a header and the records beside it mean.

use std::collections::{BTreeMap, HashSet};

use super::MemberKind;
use super::records::Records;
use crate::files::OwnerNames;
use crate::tar::sparse::{self, Extent, SPARSE_EXTENTS_MAX};
use crate::tar::writer::{ACLS, ATTRIBUTE_KEY};
use crate::tar::{Block, PATH_BYTES_MAX, acl, header, pax};
use crate::tree::EntryKind;

/// In front of the name of an extended attribute, in records of libarchive; values are in base 64.
const LIBARCHIVE_ATTRIBUTE_KEY: &[u8] = b"LIBARCHIVE.xattr.";

pub fn has_magic(block: &Block) -> bool {
    block[header::MAGIC].starts_with(b"ustar")
}

/// GNU's header has other things in the place of the prefix.
fn has_prefix(block: &Block) -> bool {
    block[header::MAGIC] == *header::USTAR
}

pub fn number(block: &Block, field: std::ops::Range<usize>, what: &str) -> Result<u64, String> {
    let number = header::number(&block[field]);
    let number = number.ok_or_else(|| format!("its {what} is no number"))?;
    u64::try_from(number).map_err(|_| format!("its {what} is below zero"))
}

pub fn path_of(block: &Block, records: &Records, long: Option<Vec<u8>>) -> Vec<u8> {
    for key in [&b"GNU.sparse.name"[..], b"path"] {
        if let Some(path) = records.get(key) {
            return path.to_vec();
        }
    }
    if let Some(long) = long {
        return long;
    }
    let name = header::text(&block[header::NAME]);
    let prefix = match has_prefix(block) {
        true => header::text(&block[header::PREFIX]),
        false => b"",
    };
    match prefix {
        b"" => name.to_vec(),
        prefix => [prefix, b"/", name].concat(),
    }
}

pub fn kind_of(
    block: &Block,
    records: &Records,
    long: Option<Vec<u8>>,
    path: &[u8],
) -> Result<MemberKind, String> {
    let link = || match (records.get(b"linkpath"), &long) {
        (Some(link), _) => link.to_vec(),
        (None, Some(long)) => long.clone(),
        (None, None) => header::text(&block[header::LINK]).to_vec(),
    };
    let device = |key, field| -> Result<u32, String> {
        let number = match records.number(key)? {
            Some(number) => number,
            None => number(block, field, "device")?,
        };
        u32::try_from(number).map_err(|_| "its device is beyond 32 bits".to_owned())
    };
    let major = || device("SCHILY.devmajor", header::MAJOR);
    let minor = || device("SCHILY.devminor", header::MINOR);
    let kind = match block[header::TYPE] {
        // Before POSIX a directory was told by its name.
        0 | b'0' if path.ends_with(b"/") => EntryKind::Directory,
        0 | b'0' | b'7' | b'S' => EntryKind::File,
        b'1' => return Ok(MemberKind::HardLink(link())),
        b'2' => {
            let target = link();
            if target.is_empty() || target.contains(&0) || target.len() > PATH_BYTES_MAX {
                return Err("a symbolic link to nothing".to_owned());
            }
            EntryKind::Symlink { target }
        }
        b'3' => EntryKind::CharacterDevice {
            major: major()?,
            minor: minor()?,
        },
        b'4' => EntryKind::BlockDevice {
            major: major()?,
            minor: minor()?,
        },
        b'5' | b'D' => EntryKind::Directory,
        b'6' => EntryKind::Fifo,
        b'M' => {
            return Err("it goes on from another archive (GNU's multi-volume archives)".to_owned());
        }
        kind => {
            let kind = [kind].escape_ascii().to_string();
            return Ok(MemberKind::Unknown(kind));
        }
    };
    Ok(MemberKind::Entry(kind))
}

/// Pairs of numbers.
pub fn extents_of(numbers: &[&[u8]]) -> Result<Vec<Extent>, String> {
    if numbers == [b""] {
        return Ok(Vec::new());
    }
    if numbers.len() > 2 * SPARSE_EXTENTS_MAX {
        return Err(sparse::too_many());
    }
    let wrong = || "its map of holes is not one".to_owned();
    if !numbers.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let pairs = numbers.chunks_exact(2);
    let extent = |pair: &[&[u8]]| {
        Some(Extent {
            offset: pax::decimal(pair[0])?,
            bytes: pax::decimal(pair[1])?,
        })
    };
    pairs.map(|pair| extent(pair).ok_or_else(wrong)).collect()
}

/// Parts of a file in the numbers of a header; an empty field ends them.
pub fn old_parts(fields: &[u8], map: &mut Vec<Extent>) -> Result<(), String> {
    for pair in fields.chunks_exact(24) {
        if pair[0] == 0 || pair[12] == 0 {
            break;
        }
        if map.len() >= SPARSE_EXTENTS_MAX {
            return Err(sparse::too_many());
        }
        let number =
            |field: &[u8]| header::number(field).and_then(|number| u64::try_from(number).ok());
        let (offset, bytes) = (number(&pair[..12]), number(&pair[12..]));
        match (offset, bytes) {
            (Some(offset), Some(bytes)) => map.push(Extent { offset, bytes }),
            _ => return Err("its map of holes is not one".to_owned()),
        }
    }
    Ok(())
}

/// `%41` stands for a byte.
fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        if first != b'%' {
            out.push(first);
            rest = behind;
            continue;
        }
        let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &behind[2..];
    }
    Some(out)
}

/// RFC 4648, with or without what fills the last four letters up.
fn base64_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"=").unwrap_or(text);
    let text = text.strip_suffix(b"=").unwrap_or(text);
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.chunks(4) {
        let mut bits = 0u32;
        for &letter in four {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        let bytes = match four.len() {
            1 => return None,
            count => count - 1,
        };
        bits <<= 6 * (4 - four.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..=bytes]);
    }
    Some(out)
}

/// Extended attributes, ACLs among them, ascending by name.
pub fn attributes(
    records: &Records,
    names: &OwnerNames,
    notes: &mut Vec<String>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = BTreeMap::new();
    // libarchive has each twice, the name encoded both times: the one in base 64 counts.
    let mut encoded: HashSet<&[u8]> = HashSet::new();
    for (key, value) in &records.values {
        let Some(key) = key.strip_prefix(LIBARCHIVE_ATTRIBUTE_KEY) else {
            continue;
        };
        match (percent_decoded(key), base64_decoded(value)) {
            (Some(name), Some(value)) => {
                encoded.insert(key);
                found.insert(name, value);
            }
            _ => notes.push(format!(
                "extended attribute '{}' is not in base 64: left out",
                key.escape_ascii()
            )),
        }
    }
    for (key, value) in &records.values {
        if let Some(key) = key.strip_prefix(ATTRIBUTE_KEY)
            && !encoded.contains(key)
        {
            found.insert(pax::attribute_name(key), value.clone());
        }
    }
    if let Some(label) = records.get(b"RHT.security.selinux") {
        // The system counts the NUL at its end.
        let label = [label.strip_suffix(b"\0").unwrap_or(label), b"\0"].concat();
        found.entry(b"security.selinux".to_vec()).or_insert(label);
    }
    for (attribute, key) in ACLS {
        let Some(text) = records.get(key) else {
            continue;
        };
        match acl::attribute(text, names) {
            Ok(value) => drop(found.insert(attribute.to_vec(), value)),
            Err(reason) => notes.push(format!(
                "its ACL is left out: this machine can't tell who is meant by {reason}"
            )),
        }
    }
    let is_name = |name: &Vec<u8>| !name.is_empty() && !name.contains(&0);
    found
        .into_iter()
        .filter(|(name, _)| is_name(name))
        .collect()
}
