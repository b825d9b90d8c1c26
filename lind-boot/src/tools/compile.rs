//! `lind-boot compile`: compiles a module for this machine.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::anyhow;
use lind_engine::{CodeStore, Engine};
use lind_kernel::text;

use crate::failure::{Failure, print};

/// Compiles a module for this machine.
///
/// # Errors
/// The compiler's error.
pub fn run(file: &Path, output: Option<&Path>) -> Result<(), Failure> {
    let store = CodeStore::open()?;
    if let Some(why) = store.unkept {
        return Err(anyhow!("cannot use the signing key ({why}), and code that is not signed would not run").into());
    }
    let engine = Engine::new(store, false)?;
    let path = engine.precompile(file, output)?;
    print(&format!("OK: {}\n", text::shown(path.as_os_str().as_bytes())))
}
