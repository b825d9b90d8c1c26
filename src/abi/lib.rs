//! The interface that guests, grates and the kernel share: the system call table, the types of its
//! arguments, the layouts of the structs that cross, errno and signal numbers.
//!
//! Everything else that names a system call (dispatch, the C headers, libc's numbers, strace, the
//! documentation) derives from [`SYSCALLS`]. This crate runs no system call and touches no guest
//! memory, so it has no dependencies and no unsafe code.
#![no_std]
#![forbid(unsafe_code)]

mod errno;
pub mod flags;
pub mod layout;
pub mod paths;
mod rows;
mod syscalls;
mod types;

pub use errno::{ERRNOS, Errno, Result};
pub use rows::*;
pub use types::*;
