//! Checks that the starter's limits are enough for the cages of a line, before the first cage
//! fails.

use anyhow::{Result, ensure};
use lind_kernel::mem::GuestMemory;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The addresses of a cage, and of the runner alone, in bytes.
const CAGE: u64 = GuestMemory::SPACE + 2 * GuestMemory::GUARD;
const RUNNER: u64 = 128 << 20;

/// The open files of a line at least, measured with `busybox true`: 26 without a grate, and 6 more
/// for each.
const FILES: u64 = 26;
const FILES_OF_GRATE: u64 = 5;

/// Raises the limit of open files: guests have limits of their own, and all of them share ours.
pub fn raise_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Adds advice to an error about too many open files.
pub fn explain(error: anyhow::Error) -> anyhow::Error {
    let short = |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref() == Some(&rustix::io::Errno::MFILE);
    if !error.chain().any(short) {
        return error;
    }
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    error.context(format!("too many open files: the limit is {most}; raise it with `ulimit -n 1024` or more"))
}

/// Checks that this number of grates and a program can be started. A program may need more than
/// that for itself.
///
/// # Errors
/// An error that names the limit, and says how to raise it.
pub fn suffice(grates: usize) -> Result<()> {
    let (addresses, files) = (getrlimit(Resource::As).current, getrlimit(Resource::Nofile).maximum);
    enough(u64::try_from(grates)?, addresses, files)
}

fn enough(grates: u64, addresses: Option<u64>, files: Option<u64>) -> Result<()> {
    let what = match grates {
        0 => "a program needs".to_owned(),
        1 => "a program and a grate need".to_owned(),
        _ => format!("a program and {grates} grates need"),
    };
    let needed = CAGE.saturating_mul(grates.saturating_add(1)).saturating_add(RUNNER);
    let most = addresses.unwrap_or(u64::MAX);
    ensure!(
        needed <= most,
        "{what} {} MiB of addresses, most of them without memory, but the limit is {} MiB: run `ulimit -v unlimited` \
         (--memory limits the memory of programs)",
        needed >> 20,
        most >> 20
    );
    let needed = FILES_OF_GRATE.saturating_mul(grates).saturating_add(FILES);
    let most = files.unwrap_or(u64::MAX);
    ensure!(needed <= most, "{what} {needed} open files, but the limit is {most}: run `ulimit -n 256` or more");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_files_are_explained_and_nothing_else() {
        let of =
            |errno: rustix::io::Errno| format!("{:#}", explain(anyhow::Error::from(errno).context("image x: name")));
        assert!(of(rustix::io::Errno::MFILE).contains("`ulimit -n 1024` or more: image x: name: Too many"));
        assert!(of(rustix::io::Errno::NOENT).starts_with("image x: name: "));
    }

    #[test]
    fn the_limit_that_is_too_low_is_named() {
        let said = |grates, addresses, files| enough(grates, addresses, files).err().map(|error| error.to_string());
        assert_eq!(said(9, None, None), None);
        assert_eq!(said(0, Some(5 << 30), Some(FILES)), None);
        assert!(said(0, Some(4 << 30), None).is_some_and(|text| text.contains("ulimit -v unlimited")));
        assert!(said(1, Some(5 << 30), None).is_some_and(|text| text.starts_with("a program and a grate need 8")));
        assert!(said(2, None, Some(30)).is_some_and(|text| text.contains("36 open files, but the limit is 30")));
    }
}
