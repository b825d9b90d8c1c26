//! Requests for files. A program of the session does what they ask (`grates/session/files.c`),
//! behind the grates of its commands: so it sees what a command sees, and is denied what a command
//! is denied. Here requests are parsed, and its answers become messages.

pub mod frames;
pub mod job;
pub mod request;

pub use frames::Channel;
pub use job::Job;
pub use request::Ask;
