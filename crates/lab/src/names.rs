//! Names of files as a person may see them: nothing in them moves the cursor or changes colours.

use std::path::Path;

/// The path with every control character escaped.
pub fn escaped(path: &Path) -> String {
    let text = path.display().to_string();
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;
    use std::path::Path;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escaped(Path::new("Zoë/a b\\c")), "Zoë/a b\\c");
        assert_eq!(escaped(Path::new("a\n\x1b[31m")), "a\\n\\u{1b}[31m");
    }
}
