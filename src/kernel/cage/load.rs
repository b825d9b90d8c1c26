//! Programs of cages: a file is found by its name, and the engine loads it.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lind_abi::flags::OpenFlags;
use lind_abi::{Errno, Result};

use super::line::{self, Installed};
use super::{Cage, FileIds, Text};
use crate::Kernel;
use crate::host;
use crate::landlock;
use crate::root::Last;
use crate::root::table::{Dir, MountId};
use crate::runtime::{Executable, Gone, LoadError};

/// A program file that was found.
pub struct Found<'k> {
    /// The file.
    pub file: OwnedFd,
    /// Its guest path.
    pub path: CString,
    /// The place where it was found.
    pub from: From<'k>,
}

/// The places where programs are found.
#[derive(Clone, Copy)]
pub enum From<'k> {
    /// A path in the root.
    Root,
    /// The root, by a name that was searched for. It may not be a grate, because any program may
    /// have put it there.
    Search,
    /// The command line.
    Line(&'k Installed),
}

/// A program that was found and loaded.
pub(super) struct Loaded {
    pub executable: Executable,
    pub path: CString,
    pub text: Text,
}

/// Finds a program, unless it is an open file, and loads it for a child of the cage `whose`, which
/// may end meanwhile.
pub(super) fn load_named(
    kernel: &Kernel,
    cwd: Dir<'_>,
    (name, file, search): (&CStr, Option<OwnedFd>, bool),
    whose: Option<&Cage>,
) -> std::result::Result<Loaded, LoadError> {
    let found = match file {
        Some(file) => Found { file, path: name.to_owned(), from: From::Root },
        None => find_program(kernel, cwd, name, search, Last::Follow).map_err(|errno| not_found(errno, name))?,
    };
    if let Some(cage) = whose {
        cage.may_run(kernel, &found).map_err(|errno| not_found(errno, &found.path))?;
    }
    let text = kernel.run(found.file.as_fd()).map_err(|errno| not_found(errno, &found.path))?;
    // Set-user-ID bits apply to execve(2) only: a spawned program has its parent's ids.
    let beside = |source: &CStr| find_program(kernel, cwd, source, false, Last::Follow).map(|found| found.file);
    let is_dead = || whose.is_some_and(Cage::is_dead);
    let gone: Option<Gone<'_>> = whose.is_some().then_some(&is_dead);
    let (executable, text, _) = load_file(kernel, &beside, (&found.file, text), (&found.path, found.from), gone)?;
    if search {
        kernel.line().begins(kernel.engine().is_grate(&executable));
    }
    Ok(Loaded { executable, path: found.path, text })
}

impl Cage {
    /// Whether its domain lets it run a program.
    ///
    /// # Errors
    /// EACCES.
    pub(super) fn may_run(&self, kernel: &Kernel, program: &Found<'_>) -> Result<()> {
        if matches!(program.from, From::Line(_)) {
            return Ok(());
        }
        let file = Dir::new(program.file.as_fd(), MountId::ROOT);
        landlock::permit_opened(kernel, self, file, landlock::access::EXECUTE)
    }
}

fn not_found(errno: Errno, name: &CStr) -> LoadError {
    LoadError { errno, reason: format!("{}: {errno}", name.to_string_lossy()), untrusted: false }
}

/// Opens the file of this name that takes the place of one that may not run.
pub(super) type Beside<'a> = &'a dyn Fn(&CStr) -> Result<OwnedFd>;

/// Loads a program file. Returns the executable, the file that runs, and the ids that it gives. If
/// a .cwasm may not be trusted, the .wasm beside it takes its place. The engine opens further files
/// with the runner's identity, which the calling thread keeps afterwards.
///
/// # Errors
/// The reason why the program cannot be loaded.
pub(super) fn load_file(
    kernel: &Kernel,
    beside: Beside<'_>,
    (file, text): (&OwnedFd, Text),
    (path, from): (&CString, From<'_>),
    gone: Option<Gone<'_>>,
) -> std::result::Result<(Executable, Text, FileIds), LoadError> {
    let ids = |file: &OwnedFd| file_ids(kernel, file.as_fd());
    host::identity::take_on_runner().map_err(|errno| not_found(errno, path))?;
    let loaded = match (kernel.engine().load(file.as_fd(), path, gone), from) {
        (Err(error), From::Line(grate)) if error.untrusted => {
            let Some(source) = &grate.source else { return Err(error) };
            kernel.engine().load(source.as_fd(), path, gone).map(|executable| (executable, text, FileIds::default()))
        }
        (loaded, From::Line(_)) => loaded.map(|executable| (executable, text, FileIds::default())),
        (Err(error), _) if error.untrusted => {
            let source = path.to_bytes().strip_suffix(b".cwasm").map(|stem| [stem, b".wasm"].concat());
            let source = source.and_then(|path| CString::new(path).ok());
            let Some(source) = source else { return Err(error) };
            let Ok(file) = beside(&source) else { return Err(error) };
            let text = kernel.run(file.as_fd()).map_err(|errno| not_found(errno, &source))?;
            kernel.engine().load(file.as_fd(), &source, gone).map(|executable| (executable, text, ids(&file)))
        }
        (loaded, _) => loaded.map(|executable| (executable, text, ids(file))),
    };
    match loaded {
        Ok((executable, ..)) if matches!(from, From::Search) && kernel.engine().is_grate(&executable) => {
            let path = path.to_string_lossy();
            let reason = format!(
                "{path}: a grate in the root, which programs may have put there: name it with a slash, or use --grates"
            );
            Err(LoadError { errno: Errno::EACCES, reason, untrusted: false })
        }
        loaded => loaded,
    }
}

/// The ids that a program's file gives who runs it; none on a filesystem that gives none.
fn file_ids(kernel: &Kernel, file: BorrowedFd<'_>) -> FileIds {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let Ok(stat) = rustix::fs::fstat(file) else { return FileIds::default() };
    let has = |bits: u32| stat.st_mode & bits == bits;
    if !(has(SET_USER) || has(SET_GROUP)) {
        return FileIds::default();
    }
    // On a mount of the kernel's none counts.
    let gives = kernel.root.table().is_none()
        && rustix::fs::fstatvfs(file).is_ok_and(|fs| !fs.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID));
    FileIds {
        uid: (gives && has(SET_USER)).then_some(stat.st_uid),
        gid: (gives && has(SET_GROUP)).then_some(stat.st_gid),
    }
}

impl Kernel {
    /// Marks a file that is about to be executed. The calling thread has the runner's identity
    /// afterwards: the host lets only a file's owner ask for its writers.
    ///
    /// # Errors
    /// ETXTBSY while it is open for writing.
    pub(super) fn run(&self, file: BorrowedFd<'_>) -> Result<Text> {
        host::identity::take_on_runner()?;
        self.busy.run(file, &self.locks)
    }
}

/// Opens the program `name`. With `search` (the command line of the runner) a name that grates have
/// is one of the line's; another is tried as given, then with `.cwasm` and `.wasm`, then the same
/// in `/bin` if it has no slash, and with the other of `-` and `_` before `grate` if it has one.
///
/// # Errors
/// ENOENT; EACCES for a directory or another file that is not regular; ELOOP for a symbolic link
/// that is not to be followed; ENOTDIR if a cage that is not of the line names a grate of the line.
pub fn find_program<'k>(kernel: &'k Kernel, cwd: Dir<'_>, name: &CStr, search: bool, last: Last) -> Result<Found<'k>> {
    let marked = line::marked(name);
    if marked.is_some() && !search {
        return Err(Errno::ENOTDIR);
    }
    let name = name.to_bytes();
    if let Some(name) = marked.or_else(|| Some(name).filter(|name| search && line::is_grate_name(name))) {
        let grate = kernel.line().grate(name).ok_or(Errno::ENOENT)?;
        let file = grate.file().try_clone_to_owned().map_err(|_| Errno::EMFILE)?;
        return Ok(Found { file, path: grate.path.clone(), from: From::Line(grate) });
    }
    let (folders, suffixes): (&[&[u8]], &[&[u8]]) = match (search, name.contains(&b'/')) {
        (false, _) => (&[b""], &[b""]),
        (true, true) => (&[b""], &[b"", b".cwasm", b".wasm"]),
        // A file in the working directory never replaces a program.
        (true, false) => (&[b"/bin/", b""], &[b"", b".cwasm", b".wasm"]),
    };
    // Grates that start programs look for them, too.
    let looked_for =
        name.strip_prefix(b"/bin/").is_some_and(|name| !name.contains(&b'/') && !line::is_grate_name(name));
    let from = if search && (looked_for || !name.contains(&b'/')) { From::Search } else { From::Root };
    let mut failure = Errno::ENOENT;
    let respelled = line::other_spelling(name).filter(|_| search);
    for name in [Some(name), respelled.as_deref()].into_iter().flatten() {
        for (folder, suffix) in folders.iter().flat_map(|folder| suffixes.iter().map(move |suffix| (folder, suffix))) {
            let path = CString::new([folder, name, suffix].concat()).map_err(|_| Errno::EINVAL)?;
            match open_program(kernel, cwd, &path, last) {
                Ok(file) => return Ok(Found { file, path, from }),
                Err(Errno::ENOENT | Errno::ENOTDIR) if search => {}
                Err(errno) if failure == Errno::ENOENT => failure = errno,
                Err(_) => {}
            }
        }
    }
    Err(failure)
}

fn open_program(kernel: &Kernel, cwd: Dir<'_>, path: &CStr, last: Last) -> Result<OwnedFd> {
    // O_NONBLOCK: a fifo of that name must not hold us up.
    let flags = OpenFlags::O_CLOEXEC | OpenFlags::O_NONBLOCK;
    let nofollow = if last == Last::NoFollow { OpenFlags::O_NOFOLLOW } else { 0 };
    let file = match kernel.root.open(cwd, path, flags | nofollow, 0) {
        // A socket, which cannot be opened and so is not a program either.
        Err(Errno::ENXIO) => return Err(Errno::EACCES),
        opened => opened?.file,
    };
    let stat = rustix::fs::fstat(&file).map_err(crate::host::errno)?;
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::RegularFile => Ok(file),
        _ => Err(Errno::EACCES),
    }
}
