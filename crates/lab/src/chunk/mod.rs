//! Chunkers against each other: speed, dedup, sizes of chunks, on any data.
//!
//! Enters: paths or random numbers ([`data`]) and contestants ([`contestant`], [`selection`]).
//! Leaves: a [`measuring::Measurement`], which `report` turns into tables, JSON, CSV and HTML.

pub mod contestant;
pub mod data;
pub mod keys;
pub mod loader;
pub mod measuring;
pub mod memory;
pub mod rivals;
pub mod selection;
pub mod sizes;
