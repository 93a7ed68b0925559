//! Where in a command line words are to be put in: behind the program, or behind a verb.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Arg, Command};

/// A command line, and a place in it.
pub(super) struct Placing<'a> {
    command: &'a Command,
    words: Vec<OsString>,
    /// Words are put in before this one.
    at: usize,
}

impl<'a> Placing<'a> {
    /// Behind the program, the first word.
    pub(super) fn new(root: &'a Command, words: Vec<OsString>) -> Self {
        Self {
            at: words.len().min(1),
            command: root,
            words,
        }
    }

    /// The command line as it is now.
    pub(super) fn words(self) -> Vec<OsString> {
        self.words
    }

    /// Puts words in, and stays behind them.
    pub(super) fn insert(&mut self, words: Vec<OsString>) {
        let count = words.len();
        self.words.splice(self.at..self.at, words);
        self.at += count;
    }

    /// Goes behind the next verb, which is to be `verb`. Is it there?
    pub(super) fn go_to(&mut self, verb: &str) -> bool {
        let mut at = self.at;
        while let Some(word) = self.words.get(at) {
            let bytes = word.as_bytes();
            if bytes == b"--" {
                return false;
            }
            if bytes.len() < 2 || bytes[0] != b'-' {
                let below = word
                    .to_str()
                    .and_then(|name| self.command.find_subcommand(name));
                let Some(below) = below.filter(|below| below.get_name() == verb) else {
                    return false;
                };
                self.command = below;
                self.at = at + 1;
                return true;
            }
            at += 1 + usize::from(self.takes_the_next_word(word));
        }
        false
    }

    /// Is the word behind this option its value?
    fn takes_the_next_word(&self, word: &OsStr) -> bool {
        let takes_value = |argument: &Arg| argument.get_action().takes_values();
        let Some(text) = word.to_str() else {
            return false;
        };
        if let Some(long) = text.strip_prefix("--") {
            let mut all = self.command.get_arguments();
            let argument = all.find(|argument| argument.get_long() == Some(long));
            return argument.is_some_and(takes_value);
        }
        let mut letters = text.chars().skip(1);
        while let Some(letter) = letters.next() {
            let mut all = self.command.get_arguments();
            let argument = all.find(|argument| argument.get_short() == Some(letter));
            if argument.is_some_and(takes_value) {
                // What follows in the same word is the value, if anything does.
                return letters.next().is_none();
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory;

    fn placed(words: &[&str], verbs: &[&str]) -> Option<String> {
        let mut command = Arguments::command();
        command.build();
        let words = words.iter().map(OsString::from).collect();
        let mut placing = Placing::new(&command, words);
        placing.insert(vec!["+".into()]);
        for verb in verbs {
            if !placing.go_to(verb) {
                return None;
            }
            placing.insert(vec!["+".into()]);
        }
        let words = placing.words();
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        Some(words.join(" "))
    }

    #[test]
    fn verbs_are_found_behind_options() {
        for (words, verbs, expected) in [
            (
                &["o", "backup", "x"][..],
                &["backup"][..],
                Some("o + backup + x"),
            ),
            (
                &["o", "-r", "backup", "backup"],
                &["backup"],
                Some("o + -r backup backup +"),
            ),
            (
                &["o", "-rbackup", "backup"],
                &["backup"],
                Some("o + -rbackup backup +"),
            ),
            (&["o", "-qvr", "x", "ls"], &["ls"], Some("o + -qvr x ls +")),
            (
                &["o", "--repo", "ls", "ls"],
                &["ls"],
                Some("o + --repo ls ls +"),
            ),
            (
                &["o", "--repo=ls", "--json", "ls"],
                &["ls"],
                Some("o + --repo=ls --json ls +"),
            ),
            (
                &["o", "volume", "-q", "stat", "v"],
                &["volume", "stat"],
                Some("o + volume + -q stat + v"),
            ),
            (&["o", "--", "backup"], &["backup"], None),
            (&["o", "ls"], &["backup"], None),
            (&["o", "-r", "backup"], &["backup"], None),
        ] {
            assert_eq!(placed(words, verbs).as_deref(), expected, "{words:?}");
        }
    }
}
