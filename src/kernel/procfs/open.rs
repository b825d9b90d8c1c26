//! open(2) of places in our trees, and of files that are open already.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::flags::{AccessMode, OpenFlags};
use lind_abi::{Errno, Mode, Result};
use rustix::fs::{FileType, OFlags};

use super::{Place, What};
use crate::call::Ctx;
use crate::fd::{File, FileRef, Kind};
use crate::root::Root;
use crate::root::devices::TTY;
use crate::terminal;
use crate::writing::open_unless_run;
use crate::{host, sealed};

/// O_ACCMODE
const ACCESS: u32 = 3;

/// The result of opening a place.
pub(crate) enum Opened {
    /// An open file of its own.
    New(File),
    /// A file that was open before, shared as dup(2) does.
    Same(Arc<File>),
}

impl Opened {
    /// The file.
    pub fn share(self) -> Arc<File> {
        match self {
            Opened::New(file) => Arc::new(file),
            Opened::Same(file) => file,
        }
    }
}

/// Whether a file is opened for writing.
fn writes(flags: OpenFlags) -> bool {
    flags.0 & ACCESS != 0
}

/// open(2) of a place. Links arrive here only where they are not followed.
///
/// # Errors
/// The errors of open(2).
pub(crate) fn open(cx: &Ctx<'_>, place: Place, flags: OpenFlags) -> Result<Opened> {
    if flags.has(OpenFlags::O_CREAT | OpenFlags::O_EXCL) {
        return Err(Errno::EEXIST);
    }
    let path_only = flags.has(OpenFlags::O_PATH);
    if place.is_link() && !path_only {
        return Err(Errno::ELOOP);
    }
    if place.is_directory() {
        if !path_only && (writes(flags) || flags.has(OpenFlags::O_CREAT)) {
            return Err(Errno::EISDIR);
        }
        if path_only {
            return by_path(cx, place);
        }
        // Whether the caller may look into the process.
        place.subject(cx)?;
        return placeholder(cx, place);
    }
    if flags.has(OpenFlags::O_DIRECTORY) {
        return Err(Errno::ENOTDIR);
    }
    match place.node().entry.what {
        What::Text(_) | What::Link(_) | What::Cwd | What::Root | What::Descriptor if path_only => by_path(cx, place),
        What::Device(index) => {
            let host = cx.blocking(|| cx.kernel.root.devices().open(&cx.kernel.root, index, flags.0))?;
            Ok(Opened::New(File::new(host, Kind::Host)))
        }
        _ if path_only => by_path(cx, place),
        What::Controlling => open_controlling(cx, flags).map(Opened::Same),
        What::Console => {
            let file = terminal::console(cx).ok_or(Errno::ENOENT)?;
            terminal::reopen(cx, &file, flags.0).map(Opened::Same)
        }
        What::Multiplexer => terminal::open_master(cx, flags.0).map(Opened::Same),
        What::Terminal => cx.blocking(|| terminal::open_slave(cx, place.node().number, flags.0)).map(Opened::Same),
        What::Memory => {
            let (_, file) = place.memory(cx).ok_or(Errno::ENOENT)?;
            reopen_host(cx, &file, flags).map(Opened::New)
        }
        What::Text(make) => {
            super::access(cx, &place, AccessMode(4), lind_abi::flags::AccessFlags::AT_EACCESS)?;
            if writes(flags) || flags.has(OpenFlags::O_TRUNC) {
                return Err(Errno::EACCES);
            }
            let text = make(&place.subject(cx)?)?;
            Ok(Opened::New(File::new(text_file(&cx.kernel.root, &text)?, Kind::Pseudo(place))))
        }
        What::Setting(make, _) => open_setting(cx, place, make, flags).map(Opened::New),
        _ => Err(Errno::ELOOP),
    }
}

/// open(2) of a setting. The host's file is there to be read, and refuses writes that bypass
/// [`super::change`].
fn open_setting(
    cx: &Ctx<'_>,
    place: Place,
    make: fn(&super::Subject<'_>) -> Result<Vec<u8>>,
    flags: OpenFlags,
) -> Result<File> {
    let (reads, writes) = (flags.0 & ACCESS != OpenFlags::O_WRONLY, writes(flags));
    super::access(cx, &place, AccessMode(if reads { 4 } else { 0 } | if writes { 2 } else { 0 }), 0)?;
    let text = if reads { make(&place.subject(cx)?)? } else { Vec::new() };
    let host = sealed_text(&text)?;
    let passed = flags.0 & (ACCESS | OFlags::APPEND.bits() | OFlags::NONBLOCK.bits());
    Ok(File::new(cx.kernel.root.open_again(host.as_fd(), passed)?, Kind::Pseudo(place)))
}

/// open(2) of /dev/tty. The terminal of the first cage's session need not be among its files: then
/// the host's /dev/tty is opened.
fn open_controlling(cx: &Ctx<'_>, flags: OpenFlags) -> Result<Arc<File>> {
    let first = cx.cage.ancestors().first().map_or(cx.cage.id.0, |id| id.0);
    match terminal::open_controlling(cx, flags.0) {
        Err(Errno::ENXIO) if cx.cage.session() == first => {
            let host = cx.kernel.root.devices().open(&cx.kernel.root, TTY, flags.0)?;
            Ok(Arc::new(File::handed_in(host)))
        }
        result => result,
    }
}

/// open(2) of a name that one of our directories does not have.
///
/// # Errors
/// ENOENT unless it is made, which is possible in /dev/shm only: EACCES elsewhere.
pub(crate) fn create(cx: &Ctx<'_>, place: &Place, name: &[u8], flags: OpenFlags, mode: Mode) -> Result<Opened> {
    if !flags.has(OpenFlags::O_CREAT) {
        return Err(Errno::ENOENT);
    }
    if !place.holds_memory() {
        return Err(Errno::EACCES);
    }
    let (file, new) = cx.kernel.shared.get_or_make(name, 0o600)?;
    if !new && flags.has(OpenFlags::O_EXCL) {
        return Err(Errno::EEXIST);
    }
    let opened = reopen_host(cx, &file, flags)?;
    if new {
        // Set after opening: the maker of a file may use it whatever its mode is.
        let mode = mode.0 & !cx.cage.umask.load(Ordering::Relaxed) & 0o777;
        rustix::fs::fchmod(file.host(), rustix::fs::Mode::from_raw_mode(mode)).map_err(host::errno)?;
    }
    Ok(Opened::New(opened))
}

/// open(2) of an open file: /proc/self/fd/N. A file inside the root is opened as its own mode
/// allows. Any other is known only by its descriptor, so the new one permits no more than that: an
/// open file of its own if the host permits it, else the same one, emptied and from its beginning
/// if that is asked for.
///
/// # Errors
/// EACCES; ENXIO for sockets and the like; the host's errors.
pub(crate) fn reopen(cx: &Ctx<'_>, file: &FileRef, flags: OpenFlags) -> Result<Opened> {
    if flags.has(OpenFlags::O_CREAT | OpenFlags::O_EXCL) {
        return Err(Errno::EEXIST);
    }
    match &file.kind {
        Kind::Named(_) => reopen_host(cx, file, flags).map(Opened::New),
        Kind::Pseudo(place) => open(cx, place.clone(), flags),
        Kind::Socket(_)
        | Kind::Epoll(_)
        | Kind::Inotify(_)
        | Kind::Signalfd(_)
        | Kind::Process(_)
        | Kind::Queue(_)
        | Kind::Ruleset(_) => Err(Errno::ENXIO),
        Kind::Numbered => Err(if flags.has(OpenFlags::O_DIRECTORY) { Errno::ENOTDIR } else { Errno::ENXIO }),
        Kind::Terminal | Kind::Master(_) if flags.has(OpenFlags::O_DIRECTORY) => Err(Errno::ENOTDIR),
        Kind::Terminal | Kind::Master(_) if flags.has(OpenFlags::O_PATH) => Ok(Opened::Same(file.share())),
        Kind::Terminal => cx.blocking(|| terminal::reopen(cx, &file.share(), flags.0)).map(Opened::Same),
        // Its name is that of /dev/ptmx, which makes new ones.
        Kind::Master(_) => terminal::open_master(cx, flags.0).map(Opened::Same),
        Kind::Pipe => reopen_host(cx, file, flags).map(Opened::New),
        Kind::Host => {
            let stat = rustix::fs::fstat(file.host()).map_err(host::errno)?;
            let had = rustix::fs::fcntl_getfl(file.host()).map_err(host::errno)?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if flags.has(OpenFlags::O_DIRECTORY) {
                return Err(Errno::ENOTDIR);
            }
            if let Some(index) = cx.kernel.root.devices().index_of(file.host()) {
                let host = cx.blocking(|| cx.kernel.root.devices().open(&cx.kernel.root, index, flags.0))?;
                return Ok(Opened::New(File::new(host, Kind::Host)));
            }
            if had.contains(OFlags::PATH) || !allows(had.bits(), flags) {
                return Err(Errno::EACCES);
            }
            match kind {
                FileType::RegularFile | FileType::Fifo => match reopen_host(cx, file, flags) {
                    Ok(opened) => Ok(Opened::New(opened)),
                    Err(Errno::EACCES | Errno::EPERM | Errno::ENOENT) => {
                        if kind == FileType::RegularFile && flags.has(OpenFlags::O_TRUNC) {
                            rustix::fs::ftruncate(file.host(), 0).map_err(host::errno)?;
                            rustix::fs::seek(file.host(), rustix::fs::SeekFrom::Start(0)).map_err(host::errno)?;
                        }
                        Ok(Opened::Same(file.share()))
                    }
                    Err(errno) => Err(errno),
                },
                FileType::CharacterDevice => Ok(Opened::Same(file.share())),
                _ => Err(Errno::ENXIO),
            }
        }
    }
}

/// Whether what was opened with `had` may be used as `flags` ask.
fn allows(had: u32, flags: OpenFlags) -> bool {
    let truncates = flags.has(OpenFlags::O_TRUNC);
    match (had & ACCESS, flags.0 & ACCESS) {
        (2, _) => true,
        (had, wanted) => had == wanted && (!truncates || had == 1),
    }
}

fn reopen_host(cx: &Ctx<'_>, file: &File, flags: OpenFlags) -> Result<File> {
    let kind = match file.kind {
        Kind::Named(mount) => Kind::Named(mount),
        Kind::Pipe => Kind::Pipe,
        _ => Kind::Host,
    };
    open_unless_run(cx, flags.0, |flags| cx.kernel.root.open_found(file.dir(), flags)).map(|host| File::new(host, kind))
}

/// A directory of ours. To the host it is the root, so that reading and writing fail as they do for
/// any directory; its position is ours. It gives no access to the root's contents: all other calls
/// check the kind of file, and it cannot be sent in a message.
fn placeholder(cx: &Ctx<'_>, place: Place) -> Result<Opened> {
    let root = &cx.kernel.root;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let host = root.open(root.top(), c".", flags.bits(), 0).map(|found| found.file).or_else(|_| {
        // A root that the runner may not list. Reading this finds nothing.
        let host = sealed::create(c"place").map_err(host::errno)?;
        sealed::seal(&host).map(|()| host).map_err(host::errno)
    })?;
    Ok(Opened::New(File::new(host, Kind::Pseudo(place))))
}

/// Opens a place with O_PATH: the host's descriptor is the root, which can be neither read nor
/// listed through this.
fn by_path(cx: &Ctx<'_>, place: Place) -> Result<Opened> {
    let host = rustix::io::fcntl_dupfd_cloexec(cx.kernel.root.directory(), 3).map_err(host::errno)?;
    Ok(Opened::New(File::new(host, Kind::Pseudo(place))))
}

/// A text as a file that can only be read.
fn text_file(root: &Root, text: &[u8]) -> Result<OwnedFd> {
    let file = sealed_text(text)?;
    // The host's own /proc may be missing; then the file is sealed and at its beginning, but seems
    // writable.
    root.open_again(file.as_fd(), 0).or_else(|_| {
        rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).map_err(host::errno)?;
        Ok(file.into())
    })
}

fn sealed_text(text: &[u8]) -> Result<std::fs::File> {
    let mut file = std::fs::File::from(sealed::create(c"text").map_err(host::errno)?);
    file.write_all(text).map_err(|_| Errno::ENOMEM)?;
    sealed::seal(&file).map_err(host::errno)?;
    Ok(file)
}
