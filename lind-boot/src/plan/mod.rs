//! The permissions of a run as values: policies, volumes, and the grates of a line.

mod checked;
pub mod container;
pub mod document;
pub mod found;
pub mod grates;
pub mod line;
pub mod live;
pub mod overlaid;
pub mod own_grates;
pub mod policy;
mod protection;
pub mod relative;
mod repository;
pub mod said;
pub mod source;
pub mod stack;
pub mod state;
pub mod step;
pub mod typed;
pub mod volume;
pub mod words;

/// The home directory, in memory like /tmp.
pub const HOME: &str = "/home/user";

/// The directories in memory, which only the sandbox sees.
pub const SCRATCH: [&str; 2] = ["/tmp", HOME];
