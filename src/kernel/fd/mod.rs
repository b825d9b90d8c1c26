//! Descriptors: the table of a cage, open files, and record locks on them.

pub(crate) mod beacon;
mod epoll;
mod file;
mod in_use;
pub mod locks;
mod runner;
mod socket;
mod table;

pub use epoll::Interests;
pub use file::{File, Kind};
pub use in_use::{InUse, Reader, Readers};
pub use runner::{keep_none, leave_to_cages};
pub use socket::{Socket, SocketNames};
pub use table::{FdTable, FileRef, MAX_FILES};
