//! The files that belong to lind-boot, in the installation or the checkout that holds this program.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The names of the directory of grates, in an installation and in the checkout.
const GRATES: [&str; 2] = ["lib/lind/grates", "build/grates"];

/// The directories that those are in, as far as lind-boot alone has them.
const TRUSTED: [&str; 2] = ["lib/lind", "build/grates"];

/// The file of this program.
pub fn program() -> Option<PathBuf> {
    // Read once: in a chroot, /proc shows another path as soon as this process has a mount
    // namespace of its own.
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    // Without /proc the path is found as the shell found it.
    PROGRAM.get_or_init(|| std::env::current_exe().ok().or_else(|| started_as(&std::env::args_os().next()?))).clone()
}

/// The file of the program that a shell starts by this name.
fn started_as(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Path::new(name).canonicalize().ok();
    }
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.and_then(|file| file.canonicalize().ok())
}

/// The directory of grates.
pub fn grates() -> Option<PathBuf> {
    beside(GRATES)
}

/// The places that a start takes what it trusts from: this program, its grates, and the nearer
/// directories in which it would look for them first.
pub fn trusted() -> Vec<PathBuf> {
    let Some(program) = program() else { return Vec::new() };
    let mut places = vec![program.clone()];
    for folder in program.ancestors().skip(1) {
        places.extend(TRUSTED.map(|name| folder.join(name)));
        if GRATES.iter().any(|name| folder.join(name).is_dir()) {
            return places;
        }
    }
    places
}

/// The directory with the tools: the default root of programs.
pub fn image() -> Option<PathBuf> {
    beside(["lib/lind/image", "lindfs"])
}

/// The C library that programs are compiled with.
pub fn sysroot() -> Option<PathBuf> {
    beside(["lib/lind/sysroot", "build/sysroot"])
}

/// The first such directory beside this program or above it: of an installation, or of the
/// checkout.
fn beside(names: [&str; 2]) -> Option<PathBuf> {
    let program = program()?;
    let mut above = program.ancestors().skip(1);
    above.find_map(|folder| names.map(|name| folder.join(name)).into_iter().find(|folder| folder.is_dir()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_shell_finds_it() {
        let sh = started_as(OsStr::new("sh")).unwrap();
        assert!(sh.is_absolute() && sh.is_file());
        assert_eq!(started_as(OsStr::new("/bin/sh")), Some(Path::new("/bin/sh").canonicalize().unwrap()));
        assert_eq!(started_as(OsStr::new("no-such-program-anywhere")), None);
    }
}
