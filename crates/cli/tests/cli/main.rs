//! The program from outside: real command lines on small real trees.
#![allow(missing_docs, clippy::unwrap_used)]

mod archives;
mod backup;
mod changes;
mod copies;
mod exit_codes;
mod forget;
mod help;
mod interruption;
mod json;
mod keys;
mod listing;
mod migrations;
mod passwords;
mod profiles;
mod prune;
mod remote;
mod repair;
mod restore;
mod sandbox;
mod stages;
mod streams;
mod volume_backups;
mod volumes;
