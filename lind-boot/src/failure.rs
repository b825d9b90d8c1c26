//! The output of commands, and the reason and the exit status of one that fails.

use anyhow::anyhow;
use lind_kernel::{stdio, text};

/// The exit status of our own failures, as in docker and env.
pub const FAILED: u8 = 125;

/// The reason why nothing ran, and the exit status for it.
pub struct Failure {
    /// The message.
    pub reason: anyhow::Error,
    /// The exit status.
    pub status: u8,
}

impl From<anyhow::Error> for Failure {
    fn from(reason: anyhow::Error) -> Failure {
        Failure { reason, status: FAILED }
    }
}

impl Failure {
    /// The failure of another process of ours, which has printed its message.
    pub fn said() -> Failure {
        Failure { reason: anyhow!(""), status: FAILED }
    }
}

/// Prints the output of a command. Names in it that are not ours have passed [`text::shown`].
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    stdio::print(text).map_err(|errno| anyhow!("cannot write to standard output: {errno}").into())
}

/// Prints the output of a command as JSON.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&text::json(&format!("{value:#}\n")))
}
