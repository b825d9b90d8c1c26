//! The mounts in a root that is launched.

use std::path::PathBuf;

use lind_kernel::root::table::Table;

/// The mounts in a root.
#[derive(Default)]
pub enum Mounts {
    /// No known mounts.
    #[default]
    None,
    /// Mounts of the host: the path of each, and whether it is read-only.
    Host(Vec<(Vec<u8>, bool)>),
    /// The same, in a root that becomes the one of this process's whole mount namespace: an engine
    /// that enters the namespace sees the container alone.
    Whole(Vec<(Vec<u8>, bool)>),
    /// Mounts that the kernel crate shall keep.
    Kernel(Box<Kept>),
}

/// Mounts for the kernel crate.
pub struct Kept {
    /// The mounts.
    pub table: Table,
    /// The files of the host that are mounted.
    pub sources: Vec<PathBuf>,
}
