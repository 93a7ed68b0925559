//! Profiles: settings by name, from a TOML file (docs/guide/automation.md).
//!
//! Enters: the command line, and the file. Leaves: a command line that has, besides, what the profile says and nobody
//! said otherwise: an option beats its environment variable, and both beat the profile. A profile is a table whose keys
//! are long options, for all verbs; tables in it are for one verb. So every option can stand in a profile, is checked by
//! the same parser, and none is named here.
//!
//! ```toml
//! [home]
//! repo = "/mnt/disk/backup"
//! [home.backup]
//! paths = ["/home/me"]
//! exclude = ["*.tmp"]
//! ```

mod file;
mod placing;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory};
use toml::{Table, Value};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::hooks::Hooks;
use crate::password::{
    LIKE_PASSWORD_VARIABLE, NEW_PASSWORD_VARIABLE, PASSWORD_VARIABLE, TO_PASSWORD_VARIABLE,
};
use placing::Placing;

/// Keys of a verb's table that are no options: commands to run around it.
const BEFORE: &str = "run-before";
const AFTER: &str = "run-after";

/// A command line with what its profile adds.
#[derive(Debug)]
pub struct CommandLine {
    /// The words, that of the program first.
    pub words: Vec<OsString>,
    /// The profile, if there is one.
    pub profile: Option<Profile>,
}

/// The profile that a command line names.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The file that it stands in.
    pub file: PathBuf,
    /// What to run around the verb.
    pub hooks: Hooks,
    /// What it adds, as on a command line, for a person.
    pub added: Vec<String>,
}

/// Adds to a command line what the profile says that it names.
///
/// # Errors
/// When there is no such profile, or something in it is no option.
pub fn expand(words: Vec<OsString>) -> Result<CommandLine, Failure> {
    let mut command = Arguments::command();
    command.build();
    let lenient = command.clone().ignore_errors(true);
    // A command line that asks for help has no need of a profile.
    let Ok(given) = lenient.try_get_matches_from(&words) else {
        return Ok(CommandLine {
            words,
            profile: None,
        });
    };
    let text = |id| given.try_get_one::<String>(id).ok().flatten().cloned();
    let Some(name) = text("profile") else {
        return Ok(CommandLine {
            words,
            profile: None,
        });
    };
    let path = given.try_get_one::<PathBuf>("config").ok().flatten();
    let file = file::find(path.cloned())?;
    let table = file::profile(&file, &name)?;
    let profile = Profile {
        name,
        file,
        ..Profile::default()
    };
    let expanding = Expanding {
        root: &command,
        given: &given,
        profile,
    };
    expanding.expand(words, &table)
}

/// A command line on its way.
struct Expanding<'a> {
    root: &'a Command,
    given: &'a ArgMatches,
    profile: Profile,
}

impl Expanding<'_> {
    fn expand(mut self, words: Vec<OsString>, table: &Table) -> Result<CommandLine, Failure> {
        self.check_all(self.root, table, &self.profile.name.clone())?;
        let mut placing = Placing::new(self.root, words);
        let added = self.words_of(self.root, self.given, table);
        self.profile.added.extend(shown(&added));
        placing.insert(added);
        let (mut command, mut given, mut table) = (self.root, self.given, Some(table));
        while let Some((verb, below)) = given.subcommand() {
            let Some(of_verb) = command.find_subcommand(verb) else {
                break;
            };
            if !placing.go_to(verb) {
                break;
            }
            (command, given) = (of_verb, below);
            table = table
                .and_then(|table| table.get(verb))
                .and_then(Value::as_table);
            let Some(table) = table else { continue };
            let added = self.words_of(command, given, table);
            self.profile.added.extend(shown(&added));
            placing.insert(added);
            self.profile.hooks = Hooks {
                before: texts(table.get(BEFORE)),
                after: texts(table.get(AFTER)),
            };
        }
        Ok(CommandLine {
            words: placing.words(),
            profile: Some(self.profile),
        })
    }

    /// Is every key in `table`, and in the tables of verbs, something that `command` knows? What is mistyped would
    /// otherwise be passed over in silence.
    fn check_all(&self, command: &Command, table: &Table, place: &str) -> Result<(), Failure> {
        for (key, value) in table {
            let here = format!("{place}.{key}");
            if let (Some(below), Some(verb)) = (value.as_table(), command.find_subcommand(key)) {
                self.check_all(verb, below, &here)?;
                continue;
            }
            let is_verb = !std::ptr::eq(command, self.root);
            if is_verb && (key == BEFORE || key == AFTER) {
                let is_text = |value: &Value| value.is_str();
                let fits = value.is_str()
                    || value
                        .as_array()
                        .is_some_and(|list| list.iter().all(is_text));
                match fits {
                    true => continue,
                    false => return Err(self.refused(&here, "it is no command")),
                }
            }
            let argument = setting(command, key)
                .filter(|argument| !is_verb || !argument.is_global_set())
                .ok_or_else(|| self.refused(&here, "there is no such setting"))?;
            if words_for(argument, value).is_none() {
                return Err(self.refused(&here, "its value is none for this setting"));
            }
        }
        Ok(())
    }

    fn refused(&self, what: &str, why: &str) -> Failure {
        let file = crate::names::escaped_path(&self.profile.file);
        Failure::usage(format!("{file}: {what}: {why}"))
            .with_hint("keys are long options without their dashes; `onefold VERB --help` lists them, docs/guide/automation.md has examples")
    }

    /// What the profile says for a command, where nobody says otherwise.
    fn words_of(&self, command: &Command, given: &ArgMatches, table: &Table) -> Vec<OsString> {
        let mut words = Vec::new();
        for (key, value) in table {
            let Some(argument) = setting(command, key) else {
                continue;
            };
            if is_given(given, argument) || self.is_ruled_out(command, given, argument) {
                continue;
            }
            words.extend(words_for(argument, value).unwrap_or_default());
        }
        words
    }

    /// Does something that was given rule an argument out?
    fn is_ruled_out(&self, command: &Command, given: &ArgMatches, argument: &Arg) -> bool {
        if password_variable(argument).is_some_and(|name| std::env::var_os(name).is_some()) {
            return true;
        }
        let rules_out = |one: &Arg, other: &Arg| {
            let conflicts = command.get_arg_conflicts_with(one);
            conflicts.iter().any(|it| it.get_id() == other.get_id())
        };
        let others = command.get_arguments();
        let mut others = others.filter(|other| is_given(given, other));
        others.any(|other| rules_out(argument, other) || rules_out(other, argument))
    }
}

/// The argument that a key stands for: a long option, or a positional by its name.
fn setting<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    const OTHERS: [&str; 4] = ["help", "version", "profile", "config"];
    if OTHERS.contains(&key) {
        return None;
    }
    command
        .get_arguments()
        .find(|argument| match argument.is_positional() {
            true => argument.get_id() == key,
            false => argument.get_long() == Some(key),
        })
}

/// The variable that has the same password as this option, if it is one of a password.
fn password_variable(argument: &Arg) -> Option<&'static str> {
    let id = argument.get_id().as_str();
    let of = id
        .strip_suffix("password_file")
        .or_else(|| id.strip_suffix("password_command"))?;
    match of {
        "" => Some(PASSWORD_VARIABLE),
        "new_" => Some(NEW_PASSWORD_VARIABLE),
        "to_" => Some(TO_PASSWORD_VARIABLE),
        "like_" => Some(LIKE_PASSWORD_VARIABLE),
        _ => None,
    }
}

fn is_given(given: &ArgMatches, argument: &Arg) -> bool {
    let id = argument.get_id().as_str();
    // A name that this verb does not have would be a panic.
    given.try_contains_id(id).is_ok()
        && matches!(
            given.value_source(id),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        )
}

/// The words for a value; nothing if the argument takes no such value.
fn words_for(argument: &Arg, value: &Value) -> Option<Vec<OsString>> {
    let takes_value = argument.get_action().takes_values();
    let option = |value: Option<String>| -> Option<OsString> {
        let Some(long) = argument.get_long() else {
            // Where it stands it would be taken for an option.
            return value
                .filter(|value| value == "-" || !value.starts_with('-'))
                .map(OsString::from);
        };
        Some(OsString::from(match value {
            Some(value) => format!("--{long}={value}"),
            None => format!("--{long}"),
        }))
    };
    let one = |value: &Value| -> Option<Vec<OsString>> {
        match value {
            Value::Boolean(false) if !takes_value => Some(Vec::new()),
            Value::Boolean(true) if !takes_value => Some(vec![option(None)?]),
            Value::Integer(count @ 0..=9) if !takes_value => {
                Some(vec![option(None)?; usize::try_from(*count).ok()?])
            }
            _ if !takes_value => None,
            Value::String(text) => Some(vec![option(Some(text.clone()))?]),
            Value::Integer(_) | Value::Float(_) | Value::Datetime(_) | Value::Boolean(_) => {
                Some(vec![option(Some(value.to_string()))?])
            }
            Value::Array(_) | Value::Table(_) => None,
        }
    };
    match value {
        Value::Array(values) if takes_value => {
            let words: Option<Vec<_>> = values.iter().map(one).collect();
            Some(words?.concat())
        }
        value => one(value),
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(text).collect(),
        Some(value) => text(value).into_iter().collect(),
        None => Vec::new(),
    }
}

fn shown(words: &[OsString]) -> Vec<String> {
    let word = |word: &OsString| OsStr::to_string_lossy(word).into_owned();
    words.iter().map(word).collect()
}

#[cfg(test)]
mod tests;
