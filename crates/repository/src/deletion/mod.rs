//! Deleting while others work (docs/design/0015-prune.md): who is at work, what is condemned, who was taken for dead.
//!
//! Enters: what runs do to the store. Leaves: objects `runs/ID`, `condemned/ID`, `expired/ID` (docs/format/v1.md, §12). Of
//! the store it is asked that what was written is seen by everybody who lists or reads after the writing returned.

pub mod condemned;
pub mod runs;
