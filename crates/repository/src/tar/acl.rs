//! POSIX ACLs: the attribute that the system has, and the text that a tar has.
//!
//! The attribute (`system.posix_acl_access`, `…_default`; Linux, `include/uapi/linux/posix_acl_xattr.h`): u32 version
//! 2, then entries of `u16 tag, u16 permissions, u32 id`, little-endian. The text (star(5), `SCHILY.acl.access`):
//! entries apart by commas or newlines, each `tag:qualifier:rwx`; users and groups are named, and may be followed by
//! `:number`. What is written here has numbers for names, which every reader takes.

use crate::files::OwnerNames;

const VERSION: u32 = 2;
const HEAD_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;

const USER_OBJECT: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJECT: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// The id where an entry needs none.
const NO_ID: u32 = u32::MAX;

/// Permissions: read, write, execute.
const PERMISSIONS: [(u16, char); 3] = [(4, 'r'), (2, 'w'), (1, 'x')];

/// The text of an attribute; nothing where that is no ACL of this version.
pub fn text(attribute: &[u8]) -> Option<String> {
    let (head, entries) = attribute.split_at_checked(HEAD_BYTES)?;
    if u32::from_le_bytes(head.try_into().ok()?) != VERSION || entries.len() % ENTRY_BYTES != 0 {
        return None;
    }
    let mut lines = Vec::new();
    for entry in entries.chunks_exact(ENTRY_BYTES) {
        let tag = u16::from_le_bytes(entry[..2].try_into().ok()?);
        let permissions = u16::from_le_bytes(entry[2..4].try_into().ok()?);
        let id = u32::from_le_bytes(entry[4..].try_into().ok()?);
        if permissions > 7 {
            return None;
        }
        let (name, qualifier) = match tag {
            USER_OBJECT => ("user", None),
            USER => ("user", Some(id)),
            GROUP_OBJECT => ("group", None),
            GROUP => ("group", Some(id)),
            MASK => ("mask", None),
            OTHER => ("other", None),
            _ => return None,
        };
        // What the text has no room for would not come back.
        if qualifier.is_none() && id != NO_ID {
            return None;
        }
        let mut line = format!("{name}:");
        if let Some(id) = qualifier {
            line.push_str(&id.to_string());
        }
        line.push(':');
        for (bit, letter) in PERMISSIONS {
            line.push(if permissions & bit != 0 { letter } else { '-' });
        }
        lines.push(line);
    }
    Some(lines.join(","))
}

/// The attribute of a text.
///
/// # Errors
/// The entry that is none, or names somebody whom this machine does not know and gives no number.
pub fn attribute(text: &[u8], names: &OwnerNames) -> Result<Vec<u8>, String> {
    let mut entries = Vec::new();
    for line in text.split(|&byte| byte == b',' || byte == b'\n') {
        let line = line.split(|&byte| byte == b'#').next().unwrap_or_default();
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let entry = entry_of(line, names);
        entries.push(entry.ok_or_else(|| format!("'{}'", line.escape_ascii()))?);
    }
    // The system wants them in this order.
    entries.sort_unstable();
    let mut attribute = VERSION.to_le_bytes().to_vec();
    for (tag, id, permissions) in entries {
        attribute.extend_from_slice(&tag.to_le_bytes());
        attribute.extend_from_slice(&permissions.to_le_bytes());
        attribute.extend_from_slice(&id.to_le_bytes());
    }
    Ok(attribute)
}

/// Tag, id, permissions.
fn entry_of(line: &[u8], names: &OwnerNames) -> Option<(u16, u32, u16)> {
    let parts: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
    let (tag, qualifier, permissions, number) = match parts[..] {
        // `other` and `mask` may come without a qualifier's place.
        [tag @ (b"other" | b"mask" | b"o" | b"m"), permissions] => {
            (tag, &b""[..], permissions, None)
        }
        [tag, qualifier, permissions] => (tag, qualifier, permissions, None),
        [tag, qualifier, permissions, number] => (tag, qualifier, permissions, Some(number)),
        _ => return None,
    };
    let is_named = !qualifier.is_empty();
    let tag = match (tag, is_named) {
        (b"user" | b"u", false) => USER_OBJECT,
        (b"user" | b"u", true) => USER,
        (b"group" | b"g", false) => GROUP_OBJECT,
        (b"group" | b"g", true) => GROUP,
        (b"mask" | b"m", false) => MASK,
        (b"other" | b"o", false) => OTHER,
        _ => return None,
    };
    let parsed = |digits: &[u8]| std::str::from_utf8(digits).ok()?.trim().parse::<u32>().ok();
    let id = match tag {
        USER => names.uid(qualifier),
        GROUP => names.gid(qualifier),
        _ => Some(NO_ID),
    };
    let id = id
        .or_else(|| number.and_then(parsed))
        .or_else(|| parsed(qualifier))?;
    let mut bits = 0;
    for &letter in permissions.trim_ascii() {
        let bit = PERMISSIONS
            .iter()
            .find(|(_, name)| *name == char::from(letter));
        match bit {
            Some((bit, _)) => bits |= bit,
            None if letter == b'-' => {}
            None => return None,
        }
    }
    Some((tag, id, bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> OwnerNames {
        OwnerNames::parse(b"anna:x:1000:1000::/:\n", b"staff:x:50:\n")
    }

    #[test]
    fn texts_of_other_programs_are_read() {
        let ours = attribute(
            b"user::rwx,user:1000:r-x,group::r--,group:50:-w-,mask::rwx,other::---",
            &names(),
        );
        let ours = ours.unwrap();
        assert_eq!(
            text(&ours).unwrap(),
            "user::rwx,user:1000:r-x,group::r--,group:50:-w-,mask::rwx,other::---"
        );
        for same in [
            "user::rwx\nuser:anna:r-x\ngroup::r--\ngroup:staff:-w-\nmask::rwx\nother::---\n",
            "u::rwx,u:nobody-here:rx:1000,g::r,g:staff:w:77,m::rwx,o::-",
            "other:---,mask:rwx,user::rwx,group::r--,group:50:-w-,user:anna:r-x:1 # effective"
                .replace(":1 #", " #")
                .as_str(),
        ] {
            assert_eq!(
                attribute(same.as_bytes(), &names()).as_ref(),
                Ok(&ours),
                "{same}"
            );
        }
        for bad in [
            "user",
            "user:nobody-here:rwx",
            "mask:1000:rwx",
            "user::rwz",
            "king::rwx",
            "a:b:c:d:e",
        ] {
            assert!(attribute(bad.as_bytes(), &names()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn attributes_come_back(entries in proptest::collection::btree_map((0usize..6, 0u32..5000), 0u16..8, 0..12)) {
            let tags = [USER_OBJECT, USER, GROUP_OBJECT, GROUP, MASK, OTHER];
            let mut stored = VERSION.to_le_bytes().to_vec();
            for ((tag, id), permissions) in entries {
                let tag = tags[tag];
                let id = if matches!(tag, USER | GROUP) { id } else { NO_ID };
                stored.extend_from_slice(&tag.to_le_bytes());
                stored.extend_from_slice(&permissions.to_le_bytes());
                stored.extend_from_slice(&id.to_le_bytes());
            }
            let text = text(&stored).unwrap();
            let back = attribute(text.as_bytes(), &OwnerNames::default()).unwrap();
            // Entries that differ in their permissions alone can't be told apart; the system has none.
            let mut expected: Vec<_> = stored[4..].chunks(8).map(<[u8]>::to_vec).collect();
            let mut actual: Vec<_> = back[4..].chunks(8).map(<[u8]>::to_vec).collect();
            expected.sort();
            actual.sort();
            prop_assert_eq!(actual, expected);
        }

        #[test]
        fn nothing_panics(bytes: Vec<u8>) {
            let _ = text(&bytes);
            let _ = attribute(&bytes, &OwnerNames::default());
        }
    }
}
