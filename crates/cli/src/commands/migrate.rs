//! `onefold migrate`: brings a repository to what later versions can do with it.

use std::io::Write;

use clap::Args;
use comfy_table::{Cell, Row};
use repository::Keyring;
use repository::files::host_name;
use repository::migrate::{INCOMPATIBLE_FEATURES, MIGRATIONS, Migration};

use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::session::Session;
use crate::table;

/// Format version that this program writes.
const FORMAT_VERSION: u32 = 1;

/// Headings of the table.
const COLUMNS: [&str; 3] = ["MIGRATION", "STATE", "WHAT IT BRINGS"];

/// Bring a repository to what later versions can do with it
///
/// Without a name, shows the format version and the features of the repository, and which migrations there are. With one,
/// does it: the file `config` is replaced in one step, nothing else is touched, and a crash leaves the repository as it was
/// or as it is to be. Versions of onefold that do not know the new feature can't open the repository any more, so make sure
/// that none is at work. A migration is refused while others are registered as at work.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold migrate                          what there is to be done
  onefold migrate several-sections -n
  onefold migrate several-sections")]
pub struct MigrateArguments {
    /// The migration to do
    #[arg(value_name = "MIGRATION", value_parser = parse_migration)]
    migration: Option<Migration>,

    /// Change nothing, and say what would be done
    #[arg(short = 'n', long, requires = "migration")]
    dry_run: bool,
}

fn parse_migration(name: &str) -> Result<Migration, String> {
    let names = || MIGRATIONS.map(|migration| migration.name).join(", ");
    Migration::named(name).ok_or_else(|| format!("there is no such migration, only {}", names()))
}

pub fn run(session: &Session, arguments: &MigrateArguments) -> anyhow::Result<ExitCode> {
    let mut keyring = session.open_keyring()?;
    let Some(migration) = &arguments.migration else {
        show(session, &keyring)?;
        return finish(session, &keyring, None, false);
    };
    let is_done = migration.is_done(keyring.config());
    if is_done {
        let text = format!("{} is done already", migration.name);
        session.output.summary(&text)?;
    } else if arguments.dry_run {
        let text = format!("Would do {}: {}", migration.name, migration.about);
        session.output.summary(&text)?;
    } else {
        keyring.migrate(migration, &host_name())?;
        session
            .output
            .summary(&format!("Done: {}", migration.name))?;
    }
    let is_applied = !is_done && !arguments.dry_run;
    finish(session, &keyring, Some(migration), is_applied)
}

/// Names of the features that the repository has.
fn features(keyring: &Keyring) -> Vec<String> {
    let flags = keyring.config().features.incompatible;
    let known = INCOMPATIBLE_FEATURES.iter();
    let set = known.filter(|(flag, _)| flags & flag != 0);
    set.map(|(_, name)| (*name).to_owned()).collect()
}

fn show(session: &Session, keyring: &Keyring) -> anyhow::Result<()> {
    for migration in &MIGRATIONS {
        session.output.event(&Event::Migration {
            name: migration.name,
            about: migration.about,
            is_done: migration.is_done(keyring.config()),
        })?;
    }
    if session.output.is_json() {
        return Ok(());
    }
    let mut out = session.output.results();
    let id = keyring.config().id;
    writeln!(out, "Repository {id}, format version {FORMAT_VERSION}")?;
    let features = features(keyring);
    let features = match features.is_empty() {
        true => "none".to_owned(),
        false => features.join(", "),
    };
    writeln!(out, "Features: {features}\n")?;
    let rows = MIGRATIONS.iter().map(|migration| {
        let state = match migration.is_done(keyring.config()) {
            true => "done",
            false => "can be done",
        };
        Row::from(vec![
            Cell::new(migration.name),
            Cell::new(state),
            Cell::new(migration.about),
        ])
    });
    for line in table::lines(&COLUMNS, rows.collect(), &[2]) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

fn finish(
    session: &Session,
    keyring: &Keyring,
    migration: Option<&Migration>,
    is_applied: bool,
) -> anyhow::Result<ExitCode> {
    session
        .output
        .event(&Event::Summary(Box::new(Summary::Migrate {
            repository: keyring.config().id.to_string(),
            format_version: FORMAT_VERSION,
            features: features(keyring),
            migration: migration.map(|migration| migration.name),
            is_applied,
        })))?;
    Ok(ExitCode::Done)
}
