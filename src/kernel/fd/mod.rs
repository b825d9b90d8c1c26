//! Descriptors: the table of a cage, and open files.

mod file;
mod table;

pub use file::{File, Kind};
pub use table::{FdTable, FileRef};
