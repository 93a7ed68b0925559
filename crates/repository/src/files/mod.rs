//! Files of the operating system: walking them, capturing and re-applying their metadata.
//!
//! On the way in, a [`Walk`] over given paths yields directories, files and other entries in a
//! fixed order, each with its metadata as a [`crate::tree::Entry`]; [`Extents`] tells data from
//! holes. On the way out, `create_*` make entries below a target directory, and an [`Applier`]
//! gives them their metadata.
//!
//! Everything happens relative to open directories ([`DirectoryHandle`]), so that neither a
//! symlink that appears meanwhile nor the length of a path leads elsewhere. Nothing that goes
//! wrong is passed over: it becomes a [`Problem`] that names path, action and error.

mod apply;
mod attributes;
mod capture;
mod create;
mod directory;
mod exclude;
mod extents;
mod ignore_files;
mod listing;
mod owners;
mod patterns;
mod place;
mod problem;
mod sources;
mod status;
mod walk;

pub use apply::{Applier, OwnerRule, preallocate, set_length};
pub use capture::{Captured, Capturer};
pub use create::{
    Existing, create_directory, create_file, create_hard_link, create_special, create_symlink,
    open_target,
};
pub use directory::{DirectoryHandle, OpenDirectory};
pub use exclude::{Filter, FilterOptions};
pub use extents::{Extent, Extents};
pub use owners::{OwnerNames, current_user, host_name};
pub use patterns::{PatternList, Patterns, Verdict};
pub use problem::{Action, FilesError, Problem};
pub use sources::{Sources, absolute_path};
pub use status::{Identity, Status};
pub use walk::{FoundDirectory, FoundFile, FoundOther, OpenFile, Walk, WalkEvent, WalkOptions};

#[cfg(test)]
mod tests;
