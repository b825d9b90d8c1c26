//! Opens files of the host for grates.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Result, bail};
use lind_engine::code::manifest::Use;

/// Opens a file outside the root.
///
/// # Errors
/// The host's error, or one that the path is a directory.
pub fn open_as(what: Use, path: &Path) -> Result<OwnedFd> {
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_NOCTTY);
    match what {
        Use::Writes => options.write(true).create(true).truncate(true),
        Use::Updates | Use::State => options.read(true).write(true).create(true).mode(0o600),
        Use::Creates => options.read(true).append(true).create_new(true).mode(0o600),
        _ => options.read(true),
    };
    let file = match options.open(path) {
        Err(error) if what == Use::Keeps && error.kind() == std::io::ErrorKind::NotFound => {
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
        }
        file => file,
    };
    let described = |error: std::io::Error| match error.raw_os_error() {
        Some(number) => anyhow::anyhow!("{}: {}", path.display(), lind_abi::Errno::from_raw(number)),
        None => anyhow::anyhow!("{}: {error}", path.display()),
    };
    let file = file.map_err(described)?;
    if file.metadata().map_err(described)?.is_dir() {
        bail!(
            "{0}: is a directory of the host, and grates take only files of the host; root:{0} is a directory of the root",
            path.display()
        );
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_not_handed_over() {
        let error = open_as(Use::Reads, Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("root:/"), "{error}");
    }
}
