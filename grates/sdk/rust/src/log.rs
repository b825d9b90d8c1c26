//! Messages of a grate.
#![allow(unsafe_code)]

use std::ffi::CString;

use crate::{Cx, Errno};

/// A text for C: up to its first NUL.
pub(crate) fn c(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Prints `NAME_grate: message` to standard error, in one write. Characters that a
/// terminal would act on are escaped, since names of files and programs are the clients' words.
pub fn log(message: &str) {
    #[cfg(target_arch = "wasm32")]
    // SAFETY: the format takes one text.
    unsafe {
        crate::raw::lind_log(c"%s".as_ptr(), c(message).as_ptr())
    };
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{message}");
}

/// The same, and exits with 125, as all mistakes of a grate itself do.
pub fn die(message: &str) -> ! {
    #[cfg(target_arch = "wasm32")]
    // SAFETY: the format takes one text.
    unsafe {
        crate::raw::lind_die(c"%s".as_ptr(), c(message).as_ptr())
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        eprintln!("{message}");
        std::process::exit(125)
    }
}

/// Refuses a call: tells the user, and returns the errno for the client.
///
/// `rule` says why, `what` is what the call was about, and `subject` what would have to be allowed.
/// Under `lind-boot run` the user reads which program it was, and how to allow it; elsewhere a line
/// on standard error says it.
///
/// ```no_run
/// # use lind_grate::prelude::*;
/// fn on_rmdir(cx: &Cx, path: &Text) -> Result<()> {
///     Err(denied(cx, Errno::EACCES, "directories stay", &path.to_string_lossy(), "rmdir"))
/// }
/// # calls!(static CALLS = { answers rmdir: on_rmdir });
/// # fn main() {}
/// ```
pub fn denied(cx: &Cx<'_>, errno: Errno, rule: &str, what: &str, subject: &str) -> Errno {
    let client = u64::from(cx.target().0);
    #[cfg(target_arch = "wasm32")]
    // SAFETY: three texts that end with a NUL.
    let told = unsafe {
        crate::raw::lind_denied(client, cx.nr(), errno.raw(), c(rule).as_ptr(), c(what).as_ptr(), c(subject).as_ptr())
    } != 0;
    #[cfg(not(target_arch = "wasm32"))]
    let told = {
        let _ = (client, subject);
        false
    };
    if !told {
        log(&format!("{what}: {rule}: {errno}"));
    }
    errno
}
