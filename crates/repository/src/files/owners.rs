//! Names and numbers of users and groups, from `/etc/passwd` and `/etc/group`.
//!
//! Only these two files are read, once: asking the system's name services takes C code that
//! loads plug-ins. Users of a directory service keep their numbers and have no name.

use std::collections::HashMap;
use std::path::Path;

/// A table of names and numbers of one kind.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Names {
    names: HashMap<u32, Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl Names {
    /// Reads lines `name:password:number:…`; of several for one name or number the first counts,
    /// as it does for the system.
    fn parse(text: &[u8]) -> Self {
        let mut table = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut fields = line.split(|&byte| byte == b':');
            let (Some(name), Some(_), Some(number)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let number = str::from_utf8(number)
                .ok()
                .and_then(|text| text.parse().ok());
            let Some(number) = number else { continue };
            if name.is_empty() || matches!(name[0], b'#' | b'+' | b'-') {
                continue;
            }
            table.names.entry(number).or_insert_with(|| name.to_vec());
            table.numbers.entry(name.to_vec()).or_insert(number);
        }
        table
    }

    fn read(path: &Path) -> Self {
        std::fs::read(path).map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }
}

/// The users and groups that this machine knows by name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OwnerNames {
    users: Names,
    groups: Names,
}

impl OwnerNames {
    /// Those of this machine; none where the files can't be read.
    #[must_use]
    pub fn of_system() -> Self {
        Self {
            users: Names::read(Path::new("/etc/passwd")),
            groups: Names::read(Path::new("/etc/group")),
        }
    }

    /// Those that the texts of a passwd and a group file list.
    #[must_use]
    pub fn parse(passwd: &[u8], group: &[u8]) -> Self {
        Self {
            users: Names::parse(passwd),
            groups: Names::parse(group),
        }
    }

    /// The name of a user, empty when unknown.
    #[must_use]
    pub fn user(&self, uid: u32) -> &[u8] {
        self.users.names.get(&uid).map_or(b"", Vec::as_slice)
    }

    /// The name of a group, empty when unknown.
    #[must_use]
    pub fn group(&self, gid: u32) -> &[u8] {
        self.groups.names.get(&gid).map_or(b"", Vec::as_slice)
    }

    /// The number of the user of that name.
    #[must_use]
    pub fn uid(&self, user: &[u8]) -> Option<u32> {
        self.users.numbers.get(user).copied()
    }

    /// The number of the group of that name.
    #[must_use]
    pub fn gid(&self, group: &[u8]) -> Option<u32> {
        self.groups.numbers.get(group).copied()
    }
}

/// The name of this machine.
#[must_use]
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The name of the user who runs this program; its number where the name is unknown or no text.
#[must_use]
pub fn current_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    match str::from_utf8(OwnerNames::of_system().user(uid)) {
        Ok(name) if !name.is_empty() => name.to_owned(),
        _ => uid.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_parsed() {
        let passwd = b"root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/:\ntoor:x:0:0::/:\n\
            broken\n#x:x:5:5:\n+nis:x:6:6:\nfar:x:4294967296:1::\nk\xe4the:x:7:7::/:";
        let names = OwnerNames::parse(passwd, b"wheel:x:0:\nanna:x:1000:anna\n");
        assert_eq!(names.user(0), b"root");
        assert_eq!(names.uid(b"toor"), Some(0));
        assert_eq!(
            (names.user(1000), names.uid(b"anna")),
            (&b"anna"[..], Some(1000))
        );
        assert_eq!(names.user(7), b"k\xe4the");
        for uid in [5, 6, 4] {
            assert_eq!(names.user(uid), b"");
        }
        assert_eq!(
            (names.group(0), names.gid(b"wheel")),
            (&b"wheel"[..], Some(0))
        );
        assert_eq!(names.gid(b"nobody"), None);
    }
}
