//! Descriptors: the table of a cage, open files, and record locks on them.

mod epoll;
mod file;
mod in_use;
pub mod locks;
mod socket;
mod table;

pub use epoll::Interests;
pub use file::{File, Kind};
pub use in_use::{InUse, Reader, Readers};
pub use socket::{Socket, SocketNames};
pub use table::{FdTable, FileRef, MAX_FILES};
