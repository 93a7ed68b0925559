//! A tree with everything that a tar can carry, and a picture of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use testkit::generate::random_bytes;

use crate::support::files::{acl_of, is_root, make_special, set_attribute, set_mode, set_modified};
use crate::support::sources::picture;

/// All that a tar can carry of a tree, by path.
pub fn whole_picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut whole = picture(root);
    let mut first_names = BTreeMap::new();
    for (name, line) in &mut whole {
        let path = root.join(name);
        let metadata = fs::symlink_metadata(&path).expect("metadata");
        if !metadata.is_dir() && metadata.nlink() > 1 {
            let first = first_names
                .entry(metadata.ino())
                .or_insert_with(|| name.clone());
            line.push_str(&format!(" is {}", first.display()));
        }
        line.push_str(&format!(
            " {}:{}.{:09}",
            metadata.rdev(),
            metadata.mtime(),
            metadata.mtime_nsec()
        ));
        for (name, value) in attributes(&path) {
            line.push_str(&format!(" {name}={}", value.escape_ascii()));
        }
    }
    whole
}

fn attributes(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = vec![0; 64 << 10];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names[..]) else {
        return BTreeMap::new();
    };
    let names = names[..length].split(|&byte| byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names
        .map(|name| {
            let name = String::from_utf8_lossy(name).into_owned();
            let mut value = vec![0; 64 << 10];
            let length = rustix::fs::lgetxattr(path, name.as_str(), &mut value[..]);
            value.truncate(length.expect("an attribute"));
            (name, value)
        })
        .collect()
}

/// Fills a directory with everything that a tar can carry.
pub fn fill(root: &Path) {
    let join = |name: &str| root.join(name);
    fs::create_dir_all(join("deep/er")).expect("made");
    fs::create_dir(join("empty")).expect("made");
    fs::write(join("empty file"), b"").expect("written");
    fs::write(join("deep/er/text"), b"text\n").expect("written");
    fs::write(join("deep/large"), random_bytes(1, 700_000)).expect("written");
    fs::write(join("deep/block"), [7; 512]).expect("written");
    for number in 0..40u64 {
        let bytes = random_bytes(100 + number, 97 * number as usize);
        fs::write(join(&format!("deep/small {number}")), bytes).expect("written");
    }
    // Names: long ones, of bytes that are no text, with what other formats give a meaning.
    let long = "n".repeat(200);
    fs::create_dir(join(&long)).expect("made");
    fs::write(join(&long).join("l".repeat(250)), b"long").expect("written");
    fs::write(root.join(OsStr::from_bytes(b"not \xff text")), b"bytes").expect("written");
    let long_bytes = [&b"\xfe"[..], &[b'x'; 150]].concat();
    fs::write(root.join(OsStr::from_bytes(&long_bytes)), b"long bytes").expect("written");
    fs::write(join("käse = 50%\n"), b"umlaut").expect("written");
    symlink("deep/er/text", join("link")).expect("linked");
    symlink("x".repeat(300), join("long link")).expect("linked");
    symlink("käse", join("text link")).expect("linked");
    fs::hard_link(join("deep/large"), join("a second name")).expect("linked");
    fs::hard_link(join("deep/large"), join("deep/third name")).expect("linked");
    fs::hard_link(join("link"), join("zz link again")).expect("linked");
    // Holes.
    let sparse = |name: &str, size: u64, parts: &[(u64, &[u8])]| {
        let file = File::create(join(name)).expect("made");
        file.set_len(size).expect("set");
        for (offset, bytes) in parts {
            file.write_all_at(bytes, *offset).expect("written");
        }
    };
    sparse(
        "holes between",
        8 << 20,
        &[
            (0, b"front"),
            (4 << 20, &[1; 9000]),
            ((8 << 20) - 3, b"end"),
        ],
    );
    sparse("only a hole", 3 << 20, &[]);
    sparse(
        "hole first",
        2 << 20,
        &[((2 << 20) - 100_000, &random_bytes(5, 100_000))],
    );
    sparse("hole last", 2 << 20, &[(0, &random_bytes(6, 4096))]);
    make_special(&join("pipe"), FileType::Fifo, 0);
    if is_root() {
        make_special(
            &join("null"),
            FileType::CharacterDevice,
            rustix::fs::makedev(1, 3),
        );
        make_special(
            &join("disk"),
            FileType::BlockDevice,
            rustix::fs::makedev(259, 70_000),
        );
        lchown(join("deep/block"), Some(1234), Some(4321)).expect("given");
        lchown(join("link"), Some(77), Some(78)).expect("given");
        // Beyond seven octal digits.
        lchown(join("empty file"), Some(3_000_000_000), Some(2_097_152)).expect("given");
    }
    set_mode(&join("deep/er/text"), 0o4755);
    set_mode(&join("empty"), 0o1770);
    for (name, value) in [
        ("user.text", &b"value"[..]),
        ("user.bytes", b"\x00\xff\n"),
        ("user.a=b%c", b"odd"),
        ("user.empty", b""),
    ] {
        set_attribute(&join("deep/er/text"), name, value);
    }
    set_attribute(&join("deep"), "user.on a directory", &[0xab; 20]);
    set_attribute(
        &join("deep/block"),
        "system.posix_acl_access",
        &acl_of(1234),
    );
    set_attribute(&join("empty"), "system.posix_acl_default", &acl_of(99));
    for (name, seconds, nanoseconds) in [
        ("deep/er/text", 1_234_567_890, 123_456_789),
        ("empty file", -5, 250_000_000),
        ("deep/block", 1_000_000_000, 0),
        ("link", 10, 1),
        ("deep/small 3", 9_000_000_000, 0),
        ("empty", 77, 7),
        ("deep", 1 << 33, 999_999_999),
    ] {
        set_modified(&join(name), seconds, nanoseconds);
    }
}
