//! Names of files as a person may see them.
//!
//! A name is any bytes. Printed as they are, some would move the cursor, change colours or
//! reverse the direction of writing: a file could hide what it is called. Here every byte that
//! is not a printable character becomes an escape, and the backslash doubles, so that two
//! names that differ look different.

use std::path::Path;

use std::os::unix::ffi::OsStrExt;

use remote::Location;

/// `name` with everything escaped that is not a printable character.
pub fn escaped(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_escaped(&mut out, character);
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// A path of this machine, for a message.
pub fn escaped_path(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}

/// Where a repository lies, for a message.
pub fn escaped_location(location: &Location) -> String {
    match location {
        Location::Directory(path) => escaped_path(path),
        Location::Remote(address) => escaped_text(&address.to_string()),
    }
}

/// A text that may have come from elsewhere (an error with a file's name in it), for a message:
/// like [`escaped`], but lines stay lines and backslashes are not doubled.
pub fn escaped_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\\' => out.push(character),
            _ => push_escaped(&mut out, character),
        }
    }
    out
}

fn push_escaped(out: &mut String, character: char) {
    match character {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        _ if character.is_control() || is_invisible(character) => {
            let number = u32::from(character);
            if number < 0x80 {
                out.push_str(&format!("\\x{number:02x}"));
            } else {
                out.push_str(&format!("\\u{{{number:x}}}"));
            }
        }
        _ => out.push(character),
    }
}

/// Characters that change how those around them look: direction, joining, line breaks, tags.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The end of `text` that fits into `width` characters, with `…` for what is left out: of a
/// path, the end tells more than the beginning.
pub fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let kept: String = text.chars().skip(length - (width - 1)).collect();
    format!("…{kept}")
}

/// A path inside a snapshot as it was given: below `/`, without empty parts, `.` or a slash at
/// the end. The root is `/`.
pub fn snapshot_path(given: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(given.len() + 1);
    for part in given.split(|&byte| byte == b'/') {
        if !part.is_empty() && part != b"." {
            path.push(b'/');
            path.extend_from_slice(part);
        }
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_not_move_the_cursor() {
        let cases: [(&[u8], &str); 7] = [
            (b"plain name.txt", "plain name.txt"),
            ("Zo\u{eb} \u{1f4be}".as_bytes(), "Zo\u{eb} \u{1f4be}"),
            (b"a\nb\tc\x1b[31m", "a\\nb\\tc\\x1b[31m"),
            (b"\xff\xfe!", "\\xff\\xfe!"),
            (b"back\\slash", "back\\\\slash"),
            ("\u{202e}gpj.exe".as_bytes(), "\\u{202e}gpj.exe"),
            ("\u{9b}2J".as_bytes(), "\\u{9b}2J"),
        ];
        for (name, text) in cases {
            assert_eq!(escaped(name), text);
        }
        assert_eq!(escaped_text("one\ntwo \x07 C:\\x"), "one\ntwo \\x07 C:\\x");
    }

    #[test]
    fn different_names_look_different() {
        assert_ne!(escaped(b"\xff"), escaped(b"\\xff"));
    }

    #[test]
    fn paths_are_shortened_at_the_front() {
        assert_eq!(shortened("/a/b/c", 6), "/a/b/c");
        assert_eq!(shortened("/a/b/c", 5), "…/b/c");
        assert_eq!(shortened("/ä/ö/ü", 2), "…ü");
        assert_eq!(shortened("abc", 0), "");
    }

    #[test]
    fn snapshot_paths_are_put_in_order() {
        for given in [&b"/a//b/./c/"[..], b"a/b/c", b"./a/b/c"] {
            assert_eq!(snapshot_path(given), b"/a/b/c");
        }
        assert_eq!(snapshot_path(b""), b"/");
        assert_eq!(snapshot_path(b"//"), b"/");
        assert_eq!(snapshot_path(b"a/../b"), b"/a/../b");
    }
}
