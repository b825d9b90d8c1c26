//! Descriptors: the table of a cage, open files, and record locks on them.

mod epoll;
mod file;
mod hazard;
mod in_flight;
pub mod locks;
pub mod loopback;
pub(crate) mod name;
pub(crate) mod ready_fd;
mod runner;
mod senders;
mod socket;
mod table;
mod watches;

pub use epoll::Interests;
pub use file::{File, Kind};
pub use hazard::{InUse, Reader, Readers};
pub use in_flight::{InFlight, Sends};
pub use runner::{close_inherited, ensure_preserved, hand_over, keep_also, keep_none, leave_to_cages};
pub use senders::{Ids, Senders, Token, Who};
pub use socket::{Last, Pair, Socket, SocketNames};
pub use table::{FdTable, FileRef, MAX_FILES};
pub use watches::{Watch, Watches};
