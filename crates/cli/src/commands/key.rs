//! `onefold key`: the passwords of a repository.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use comfy_table::{Cell, Row};
use engine::object::ObjectId;
use repository::keys::{Argon2Cost, Password, SlotLock};
use repository::{EpochInfo, KeyInfo, Keyring, RepositoryError};

use crate::events::{EpochEvent, Event, KeyEvent, Summary};
use crate::exit_code::ExitCode;
use crate::failure::HINT_NEW_PASSWORD_SOURCES;
use crate::names;
use crate::password::{self, NEW_PASSWORD_VARIABLE, PasswordSources};
use crate::session::{Session, key_label};
use crate::table;
use crate::times;

/// Headings of the table.
const COLUMNS: [&str; 6] = ["", "ID", "CREATED", "HOST", "USER", "NAME"];
/// Those of host, user and name, which may break into several lines.
const NAMES: [usize; 3] = [3, 4, 5];

/// Add, remove, list and change passwords; change the secrets
///
/// A repository opens with any of its passwords; each has a key of its own that wraps the same
/// secrets. Removing one keeps out who has nothing but this password; who opened the repository with
/// it before may have kept the secrets. See docs/guide/keys.md.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold key list
  onefold key add --name 'sheet of paper in the safe'
  onefold key add --new-password-file new-password.txt
  onefold key passwd
  onefold key remove 1a2b3c4d
  onefold key rotate")]
pub struct KeyArguments {
    #[command(subcommand)]
    what: What,
}

/// What is to be done with the keys.
#[derive(Debug, Subcommand)]
enum What {
    List(ListArguments),
    Add(AddArguments),
    Remove(RemoveArguments),
    Passwd(PasswdArguments),
    Rotate(RotateArguments),
}

/// List the keys
///
/// A `*` marks the one that the password opened. The exit code is 13 if there are keys that can't be
/// used.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold key list
  onefold key list --json | jq 'select(.event == \"key\") | .key'")]
struct ListArguments {}

/// Add a password
///
/// The repository's password is asked for first, then the new one, twice, unless they are given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold key add
  onefold key add --name laptop --new-password-file laptop.password
  onefold key add --new-password-command 'pass show backup'")]
struct AddArguments {
    /// A word for the list of keys: what it is for, where it is kept
    #[arg(long, value_name = "TEXT", default_value = "")]
    name: String,

    #[command(flatten)]
    new: NewPasswordArguments,
}

/// Remove a key: its password opens the repository no more
///
/// The last one is never removed, and the one that opened the repository now only with --force.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold key remove 1a2b3c4d")]
struct RemoveArguments {
    /// Its id, or the beginning of it
    #[arg(value_name = "KEY", value_parser = parse_key)]
    key: String,

    /// Remove it even if it is the one that opened the repository now
    #[arg(long)]
    force: bool,
}

/// Change the password that opens the repository now
///
/// Adds a key with the new password, opens it once, and then removes the old one. Whenever this is
/// cut off, one of the two passwords opens the repository.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold key passwd
  onefold key passwd --password-file old --new-password-file new")]
struct PasswdArguments {
    /// A word for the list of keys [default: that of the key before]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    #[command(flatten)]
    new: NewPasswordArguments,
}

/// Change the secret that new data is sealed under
///
/// Every key that is there gets the new secret; no other password than yours is needed. Who has kept the
/// secrets of before, with a key that was removed since, can read what was stored before, and nothing of
/// what is stored from now on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold key remove 1a2b3c4d && onefold key rotate
  onefold key list")]
struct RotateArguments {
    /// Go on without keys that can't be handed the new secret (those of older versions): they read what
    /// was stored before, and nothing newer
    #[arg(long)]
    leave_out: bool,
}

/// Where a new password comes from.
#[derive(Debug, Args)]
struct NewPasswordArguments {
    /// Read the new password from this file (a newline at its end does not count) [else from
    /// ONEFOLD_NEW_PASSWORD, or else it is asked for]
    #[arg(long, value_name = "FILE", conflicts_with = "new_password_command")]
    new_password_file: Option<PathBuf>,

    /// Run this command (by `sh -c`) and take its output as the new password
    #[arg(long, value_name = "COMMAND")]
    new_password_command: Option<String>,
}

impl NewPasswordArguments {
    fn password(&self) -> anyhow::Result<Password> {
        let sources = PasswordSources {
            file: self.new_password_file.as_deref(),
            command: self.new_password_command.as_deref(),
            variable: NEW_PASSWORD_VARIABLE,
        };
        match sources.read()? {
            Some(password) => Ok(password),
            None => password::ask_new(
                "New password: ",
                HINT_NEW_PASSWORD_SOURCES,
                "nothing was changed",
            ),
        }
    }
}

fn parse_key(text: &str) -> Result<String, String> {
    let are_digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if are_digits && (1..=32).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err("the hexadecimal digits of an id are wanted, as `onefold key list` shows them".into())
    }
}

pub fn run(session: &Session, arguments: &KeyArguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::List(ListArguments {}) => list(session),
        What::Add(arguments) => {
            let keyring = open(session)?;
            let password = new_password(&keyring, &arguments.new)?;
            let key = add(&keyring, &password, arguments.name.clone())?;
            let id = key.to_string();
            let summary = Summary::KeyAdd { key: id };
            session.output.event(&Event::Summary(Box::new(summary)))?;
            session
                .output
                .summary(&format!("Added the key {}.", key.short()))?;
            Ok(ExitCode::Done)
        }
        What::Remove(arguments) => remove(session, arguments),
        What::Passwd(arguments) => change_password(session, arguments),
        What::Rotate(arguments) => rotate(session, arguments),
    }
}

fn open(session: &Session) -> anyhow::Result<Keyring> {
    let keyring = session.open_keyring()?;
    for warning in keyring.warnings() {
        session.output.warning(warning);
    }
    Ok(keyring)
}

/// The new password; nobody is asked for one where none can be added.
fn new_password(keyring: &Keyring, new: &NewPasswordArguments) -> anyhow::Result<Password> {
    keyring.check_changeable()?;
    new.password()
}

fn add(keyring: &Keyring, password: &Password, name: String) -> Result<ObjectId, RepositoryError> {
    keyring.add(password, Argon2Cost::DEFAULT, &key_label(name))
}

fn remove(session: &Session, arguments: &RemoveArguments) -> anyhow::Result<ExitCode> {
    let keyring = open(session)?;
    let key = keyring.find(&arguments.key)?;
    keyring.remove(key, arguments.force)?;
    let id = key.to_string();
    let summary = Summary::KeyRemove { key: id };
    session.output.event(&Event::Summary(Box::new(summary)))?;
    session
        .output
        .summary(&format!("Removed the key {}.", key.short()))?;
    Ok(ExitCode::Done)
}

fn change_password(session: &Session, arguments: &PasswdArguments) -> anyhow::Result<ExitCode> {
    let keyring = open(session)?;
    let before = keyring.opened_by();
    let name_before = || -> anyhow::Result<String> {
        let (keys, _) = keyring.list()?;
        let current = keys.into_iter().find(|key| key.is_current);
        Ok(current.and_then(|key| key.label).unwrap_or_default().name)
    };
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => name_before()?,
    };
    let password = new_password(&keyring, &arguments.new)?;
    let key = add(&keyring, &password, name)?;
    keyring.remove(before, true).with_context(|| {
        let id = before.short();
        format!("the new password opens the repository; the old one (key {id}) still does, too")
    })?;
    let summary = Summary::KeyPasswd {
        key: key.to_string(),
        before: before.to_string(),
    };
    session.output.event(&Event::Summary(Box::new(summary)))?;
    session.output.summary(&format!(
        "Changed the password: the key {} took the place of {}.",
        key.short(),
        before.short()
    ))?;
    Ok(ExitCode::Done)
}

fn rotate(session: &Session, arguments: &RotateArguments) -> anyhow::Result<ExitCode> {
    let keyring = open(session)?;
    let rotation = keyring.rotate(arguments.leave_out)?;
    for slot in &rotation.left_out {
        session.output.warning(&format!(
            "the key {} was left out: it reads nothing that is stored from now on",
            slot.short()
        ));
    }
    let ids = |slots: &[ObjectId]| slots.iter().map(ObjectId::to_string).collect();
    let summary = Summary::KeyRotate {
        epoch: rotation.epoch,
        keys: ids(&rotation.slots),
        left_out: ids(&rotation.left_out),
    };
    session.output.event(&Event::Summary(Box::new(summary)))?;
    let shown: Vec<String> = rotation.slots.iter().map(ObjectId::short).collect();
    session.output.summary(&format!(
        "New data is sealed under a new secret, which these keys open: {}.",
        shown.join(", ")
    ))?;
    Ok(ExitCode::Done)
}

fn list(session: &Session) -> anyhow::Result<ExitCode> {
    // What is wrong with slots is told below, whether they were tried or not.
    let keyring = session.open_keyring()?;
    let (keys, problems) = keyring.list()?;
    let epochs = keyring.epochs()?;
    for problem in &problems {
        session.output.warning(problem);
    }
    for key in &keys {
        let event = Event::Key(Box::new(event_of(key)));
        session.output.event(&event)?;
    }
    for epoch in &epochs {
        let event = Event::Epoch(Box::new(event_of_epoch(epoch)));
        session.output.event(&event)?;
    }
    let summary = Summary::KeyList {
        keys: keys.len() as u64,
        unusable: problems.len() as u64,
    };
    session.output.event(&Event::Summary(Box::new(summary)))?;
    if !session.output.is_json() {
        let is_verbose = session.output.is_verbose();
        let rows = keys.iter().map(|key| row(key, is_verbose));
        let mut out = session.output.results();
        for line in table::lines(&COLUMNS, rows.collect(), &NAMES) {
            writeln!(out, "{line}")?;
        }
        if let Some(line) = told_of_epochs(&keys, &epochs) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
    }
    Ok(if problems.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::Damaged
    })
}

/// What a person should know of the epochs; nothing where there is only the first.
fn told_of_epochs(keys: &[KeyInfo], epochs: &[EpochInfo]) -> Option<String> {
    let newest = epochs.last().filter(|_| epochs.len() > 1)?;
    let since = newest.created.map(times::local).unwrap_or_default();
    let mut line = format!(
        "The secret of new data was changed last on {since} ({} epochs).",
        epochs.len()
    );
    let ids = |wanted: &dyn Fn(&KeyInfo) -> bool| -> Vec<String> {
        let keys = keys.iter().filter(|key| wanted(key));
        keys.map(|key| key.id.short()).collect()
    };
    let without = ids(&|key| key.opens_newest != Some(true));
    if !without.is_empty() {
        line += &format!(" Keys that do not open it: {}.", without.join(", "));
    }
    let gone = |slot: &&ObjectId| keys.iter().all(|key| key.id != **slot);
    let gone: Vec<String> = newest
        .slots
        .iter()
        .filter(gone)
        .map(ObjectId::short)
        .collect();
    if !gone.is_empty() {
        line += &format!(
            " Keys that are gone and opened it: {}; `onefold key rotate` shuts them out of what comes.",
            gone.join(", ")
        );
    }
    Some(line)
}

fn event_of_epoch(epoch: &EpochInfo) -> EpochEvent {
    EpochEvent {
        epoch: epoch.epoch,
        created: epoch.created.map(times::universal),
        keys: epoch.slots.iter().map(ObjectId::to_string).collect(),
        is_newest: epoch.is_newest,
        is_open: epoch.is_open,
    }
}

fn row(key: &KeyInfo, is_verbose: bool) -> Row {
    let label = key.label.as_ref();
    let text = |text: Option<&String>| {
        Cell::new(text.map_or(String::new(), |text| names::escaped(text.as_bytes())))
    };
    let id = if is_verbose {
        key.id.to_string()
    } else {
        key.id.short()
    };
    let created = label.map(|label| times::local(label.created));
    Row::from(vec![
        Cell::new(if key.is_current { "*" } else { "" }),
        Cell::new(id),
        Cell::new(created.unwrap_or_default()),
        text(label.map(|label| &label.host)),
        text(label.map(|label| &label.user)),
        text(label.map(|label| &label.name)),
    ])
}

fn event_of(key: &KeyInfo) -> KeyEvent {
    let label = key.label.as_ref();
    let cost = match key.lock {
        SlotLock::Plain => None,
        SlotLock::Password(cost) => Some(cost),
    };
    KeyEvent {
        key: key.id.to_string(),
        created: label.map(|label| times::universal(label.created)),
        host: label.map(|label| label.host.clone()),
        user: label.map(|label| label.user.clone()),
        name: label.map(|label| label.name.clone()),
        is_current: key.is_current,
        has_password: cost.is_some(),
        argon2_memory_bytes: cost.map(|cost| u64::from(cost.memory_kib) << 10),
        argon2_passes: cost.map(|cost| cost.passes),
        argon2_lanes: cost.map(|cost| cost.lanes),
        opens_newest: key.opens_newest,
    }
}
