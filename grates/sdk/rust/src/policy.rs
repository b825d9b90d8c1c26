//! Policies as data: a TOML file that an option names, read into a type of the grate.
//!
//! ```no_run
//! use std::sync::OnceLock;
//!
//! use lind_grate::policy;
//! use lind_grate::prelude::*;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Policy {
//!     allow: Vec<std::net::SocketAddr>,
//!     #[serde(default)]
//!     quiet: bool,
//! }
//!
//! static POLICY: OnceLock<Policy> = OnceLock::new();
//!
//! fn set_policy(file: &str) -> std::result::Result<(), String> {
//!     POLICY.set(policy::load(file)?).map_err(|_| "given twice".to_owned())
//! }
//!
//! options!(static OPTIONS = { 'p' "policy" "FILE" reads: set_policy, "what is allowed"; });
//! # fn main() {}
//! ```
#![cfg_attr(target_arch = "wasm32", allow(unsafe_code))]

use serde::de::DeserializeOwned;

/// Reads the file that an option of the kind `reads` names: the user's, which lind-boot has opened,
/// or `root:PATH` inside the root. An error says the line and column, and what is wrong there.
pub fn load<T: DeserializeOwned>(value: &str) -> Result<T, String> {
    parse(&text(value)?)
}

/// The same for a text.
///
/// ```
/// #[derive(serde::Deserialize, Debug)]
/// #[serde(deny_unknown_fields)]
/// struct Limits {
///     writes: u64,
/// }
///
/// let limits: Limits = lind_grate::policy::parse("writes = 3").unwrap();
/// assert_eq!(limits.writes, 3);
/// let wrong = lind_grate::policy::parse::<Limits>("writes = 3\nreads = 4").unwrap_err();
/// assert_eq!(wrong, "line 2, column 1: unknown field `reads`, expected `writes`");
/// ```
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|wrong| {
        let message = wrong.message().trim_end().replace('\n', "; ");
        let Some(span) = wrong.span() else { return message };
        let before = &text[..span.start.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {line}, column {column}: {message}")
    })
}

/// The contents of the file that an option names.
#[cfg(target_arch = "wasm32")]
pub fn text(value: &str) -> Result<String, String> {
    use std::io::Read;
    use std::os::fd::FromRawFd;

    let name = crate::log::c(value);
    // SAFETY: `name` ends with a NUL; 0 is O_RDONLY.
    let fd = unsafe { crate::raw::lind_open_file(name.as_ptr(), std::ptr::null(), 0, 0) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: the descriptor is new, and nothing else closes it.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|wrong| wrong.to_string())?;
    Ok(text)
}

/// The contents of the file that an option names.
#[cfg(not(target_arch = "wasm32"))]
pub fn text(value: &str) -> Result<String, String> {
    std::fs::read_to_string(value).map_err(|wrong| wrong.to_string())
}
