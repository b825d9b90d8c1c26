//! The command behind the grates: whether it can be run, and the interpreter of a script.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use anyhow::anyhow;
use lind_kernel::cage;
use lind_kernel::root::{Directory, Last};
use lind_kernel::runtime::LoadError;
use lind_kernel::{Errno, Kernel};

use super::Plan;
use super::resolved::Resolved;
use crate::cli::nearest_command;
use crate::failure::{FAILED, Failure};
use crate::plan::grates::Folders;

/// The statuses of shells: 127 for a program that was not found, 126 for one that cannot be
/// run.
pub fn not_started(error: LoadError, name: &CStr, root: &Path, grates: &Folders) -> Failure {
    match error.errno {
        Errno::ENOENT => Failure { reason: not_found(name, root, grates), status: 127 },
        Errno::ENOMEM | Errno::EAGAIN | Errno::EMFILE | Errno::ENFILE => {
            Failure { reason: anyhow!(error.reason), status: FAILED }
        }
        _ => Failure { reason: anyhow!(error.reason), status: 126 },
    }
}

/// Says where the program was looked for. Users often mean a path of the host.
fn not_found(name: &CStr, root: &Path, grates: &Folders) -> anyhow::Error {
    if cage::is_grate_name(name.to_bytes()) {
        let (name, folders) = (name.to_string_lossy(), grates.names());
        return anyhow!("{name}: no such grate in {folders}; for a grate inside the root, write a path with a slash");
    }
    let (is_path, name) = (name.to_bytes().contains(&b'/'), name.to_string_lossy());
    let folders = if is_path { "" } else { " or its /bin" };
    let meant = if is_path { format!("; to run a file of the host: lind-boot run {name}") } else { String::new() };
    let meant =
        nearest_command(&name).map_or(meant, |command| format!("; did you mean the command `lind-boot {command}`?"));
    anyhow!("{name}: not found in the root {}{folders}, with or without .cwasm or .wasm{meant}", root.display())
}

/// Checks the command behind the grates, which are the `first` words and those that the user has
/// typed. The interpreter of a script takes its place, so that all
/// grates see the interpreter as the program.
///
/// # Errors
/// When it does not exist, or cannot be run. If grates show other files than the kernel sees, the
/// error comes from starting it instead.
pub fn settle(
    kernel: &Kernel,
    start_in: &Directory,
    plan: &Plan,
    (resolved, mut argv, first): (&Resolved, Vec<CString>, usize),
) -> Result<Vec<CString>, Failure> {
    let Some(at) = plan.command.map(|at| first + at).filter(|at| *at < argv.len()) else { return Ok(argv) };
    let visible = plan.in_grates.is_empty();
    for _ in 0..=cage::INTERPRETERS {
        let name = &argv[at];
        let found = match cage::find_program(kernel, start_in.dir(), name, true, Last::Follow) {
            Ok(found) => found,
            Err(Errno::ENOENT) if visible => return Err(missing(name, plan, resolved)),
            Err(Errno::EACCES) if visible => {
                let name = name.to_string_lossy();
                let reason =
                    anyhow!("{name}: cannot be run: it is a directory, or a file that may not be read or executed");
                return Err(Failure { reason, status: 126 });
            }
            Err(_) => break,
        };
        let path = without_dots(
            &Path::new(OsStr::from_bytes(resolved.cwd.to_bytes())).join(OsStr::from_bytes(found.path.to_bytes())),
        );
        if plan.in_grates.iter().any(|folder| path.starts_with(folder)) {
            break;
        }
        match interpreter(&found) {
            Ok(Some(words)) => drop(argv.splice(at..=at, words)),
            Ok(None) => break,
            Err(why) if visible => {
                let reason = anyhow!("{}: {why}", name.to_string_lossy());
                return Err(Failure { reason, status: 126 });
            }
            Err(_) => break,
        }
    }
    Ok(argv)
}

/// Removes `.` and `..` from an absolute path, by its text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    clean
}

/// The operating system that compiled code names (ELF's EI_OSABI).
const WASMTIME: u8 = 200;

/// The words that replace a script: its interpreter, the option of its first line, and its own
/// path. None for a module.
fn interpreter(found: &cage::Found<'_>) -> Result<Option<Vec<CString>>, String> {
    let stat = rustix::fs::fstat(&found.file).map_err(|errno| errno.to_string())?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        return Err("not a regular file".to_owned());
    }
    let Some((name, option)) = cage::interpreter_of(&found.file).map_err(|errno| errno.to_string())? else {
        let mut head = [0; 8];
        let got = rustix::io::pread(&found.file, &mut head, 0).unwrap_or(0);
        // Compiled code is an ELF file with an operating system of its own.
        let (is_elf, is_ours) = (head[..got].starts_with(b"\x7fELF"), head[7] == WASMTIME);
        return match head[..got].starts_with(b"\0asm") || is_elf && is_ours {
            true => Ok(None),
            false if is_elf => Err("a program for the host, not for a cage".to_owned()),
            false => Err("neither a WebAssembly module nor a script".to_owned()),
        };
    };
    if stat.st_mode & 0o111 == 0 {
        return Err("a script that is not executable (chmod +x)".to_owned());
    }
    // It takes a place in the line, where a word that is not a path could be a grate or an option
    // of one.
    if !name.to_bytes().starts_with(b"/") {
        return Err(format!("the interpreter in its first line is not an absolute path: {}", name.to_string_lossy()));
    }
    Ok(Some([Some(name), option, Some(found.path.clone())].into_iter().flatten().collect()))
}

fn missing(name: &CStr, plan: &Plan, resolved: &Resolved) -> Failure {
    let (name, cwd, image) = (
        name.to_string_lossy(),
        resolved.cwd.to_string_lossy(),
        plan.image.as_ref().unwrap_or(&resolved.root).display(),
    );
    let folders = if name.contains('/') { String::new() } else { format!(": neither in {cwd} nor in /bin") };
    let reason = anyhow!("{name}: not found in the sandbox{folders}, with or without .cwasm or .wasm (image {image})");
    Failure { reason, status: 127 }
}
