//! The system calls, one function each, by area.
//!
//! A function's path is its row in the table: `sys::<area>::<name>`. Its shape is resolve, check,
//! act; the work belongs to an object (a file, a cage, a memory map). Functions take exactly the
//! row's arguments.

pub(crate) mod fs;
pub(crate) mod ipc;
pub(crate) mod memory;
pub(crate) mod net;
pub(crate) mod process;
pub(crate) mod signal;
pub(crate) mod sync;
pub(crate) mod threei;
pub(crate) mod time;
pub(crate) mod wait;
