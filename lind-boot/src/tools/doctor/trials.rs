//! The trials: made here by code in the place of the runner, and by a program in a cage, which gets
//! words for `grates/doctor`.

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::fs::{CWD, Mode, OFlags};

use crate::{installed, walls};

/// An action that must not be possible.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trial {
    /// Read a file outside the root, by its path.
    Read,
    /// Create a file outside the root.
    Write,
    /// Read a file through a directory that was open before the walls went up.
    ReadAt,
    /// Create a file through that directory.
    WriteAt,
    /// Write a file that the policy protects in a project.
    Protected,
    /// Connect to a port of 127.0.0.1.
    Port,
    /// Connect to a unix socket by its path.
    Socket,
    /// Connect to an abstract unix socket.
    Abstract,
    /// Send a signal to a process.
    Signal,
    /// Start a process.
    Start,
    /// Enter a mount namespace of its own.
    Mount,
    /// Execute another program.
    Exec,
}

impl Trial {
    /// The trials in the order of the table. The last one may be the last action of a process.
    pub const ALL: [Trial; 12] = [
        Trial::Read,
        Trial::Write,
        Trial::ReadAt,
        Trial::WriteAt,
        Trial::Protected,
        Trial::Port,
        Trial::Socket,
        Trial::Abstract,
        Trial::Signal,
        Trial::Start,
        Trial::Mount,
        Trial::Exec,
    ];

    /// The name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Trial::Read => "read",
            Trial::Write => "write",
            Trial::ReadAt => "read-at",
            Trial::WriteAt => "write-at",
            Trial::Protected => "protected",
            Trial::Port => "port",
            Trial::Socket => "socket",
            Trial::Abstract => "abstract",
            Trial::Signal => "signal",
            Trial::Start => "start",
            Trial::Mount => "mount",
            Trial::Exec => "exec",
        }
    }

    /// The name for people.
    pub fn says(self) -> &'static str {
        match self {
            Trial::Read => "read a file outside",
            Trial::Write => "write a file outside",
            Trial::ReadAt => "read by an open directory",
            Trial::WriteAt => "write by an open directory",
            Trial::Protected => "write .git/hooks",
            Trial::Port => "connect to a port",
            Trial::Socket => "connect to a unix socket",
            Trial::Abstract => "connect to abstract socket",
            Trial::Signal => "signal a process",
            Trial::Start => "start a process",
            Trial::Mount => "unshare its mounts",
            Trial::Exec => "execute another program",
        }
    }
}

/// Files and sockets outside the root that must not be reached. They are removed when this is
/// dropped.
pub struct Bait {
    target: Target,
    /// The listening sockets, kept open until the trials are over.
    _listeners: (UnixListener, Option<UnixListener>, Option<std::net::TcpListener>),
}

/// The same, as it is passed to the parts.
#[derive(Clone)]
pub struct Target {
    /// A directory of the host.
    pub folder: PathBuf,
    /// A port of 127.0.0.1; 0 if there is none.
    pub port: u16,
    /// A process of the host.
    pub process: u32,
    /// A program of the host: this one.
    pub program: PathBuf,
}

impl Bait {
    /// Creates them in a new directory.
    ///
    /// # Errors
    /// When the directory for temporary files cannot be written.
    pub fn new() -> Result<Bait> {
        use std::os::unix::fs::DirBuilderExt as _;
        let program = installed::program().context("cannot find the file of lind-boot itself (mount /proc)")?;
        let folder = std::env::temp_dir().join(format!("lind-doctor-{}", std::process::id()));
        let folder = std::path::absolute(folder)?;
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| {
            format!("{}: cannot create a directory for trial files (set TMPDIR to a writable one)", folder.display())
        })?;
        let mut target = Target { folder, port: 0, process: std::process::id(), program };
        std::fs::write(target.file(), "nobody reads this")?;
        std::fs::create_dir_all(target.project().join(".git/hooks"))?;
        let socket = UnixListener::bind(target.socket())?;
        let name = SocketAddr::from_abstract_name(target.name()?)?;
        let hidden = UnixListener::bind_addr(&name).ok();
        let server = std::net::TcpListener::bind(("127.0.0.1", 0)).ok();
        target.port = server.as_ref().and_then(|server| server.local_addr().ok()).map_or(0, |address| address.port());
        Ok(Bait { target, _listeners: (socket, hidden, server) })
    }

    /// The description for a part.
    pub fn target(&self) -> &Target {
        &self.target
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.target.folder);
    }
}

impl Target {
    fn file(&self) -> PathBuf {
        self.folder.join("file")
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// A directory that the command may change.
    pub fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// The name of the abstract socket.
    fn name(&self) -> Result<String> {
        let name = self.folder.file_name().and_then(|name| name.to_str());
        Ok(name.context("the name of the temporary directory is not UTF-8 (set TMPDIR)")?.to_owned())
    }

    /// The words for a program in a cage, with the trial that each stands for.
    ///
    /// # Errors
    /// When the directory has no name.
    pub fn words(&self) -> Result<Vec<(Trial, String)>> {
        let folder = self.folder.display();
        Ok(vec![
            (Trial::Read, format!("r:{}", self.file().display())),
            (Trial::Write, format!("w:{folder}/new")),
            (Trial::Protected, "w:/project/.git/hooks/pre-commit".to_owned()),
            (Trial::Port, format!("c:{}", self.port)),
            (Trial::Socket, format!("u:{}", self.socket().display())),
            (Trial::Abstract, format!("a:{}", self.name()?)),
            (Trial::Signal, format!("k:{}", self.process)),
            (Trial::Exec, format!("x:{}", self.program.display())),
        ])
    }

    /// Tries everything from this process. `tell` gets the host's error for each trial, or 0 if it
    /// succeeded. The last trial may not return.
    pub fn tried(&self, open: &OwnedFd, tell: &mut dyn FnMut(Trial, i32)) {
        let number = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let of_host = |done: rustix::io::Result<()>| done.map_or_else(rustix::io::Errno::raw_os_error, |()| 0);
        let of_std = |done: std::io::Result<()>| done.map_or_else(number, |()| 0);
        let opened = |dir: rustix::fd::BorrowedFd<'_>, path: PathBuf, flags: OFlags| {
            of_host(rustix::fs::openat(dir, path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o600)).map(drop))
        };
        let new = OFlags::WRONLY | OFlags::CREATE;
        tell(Trial::Read, opened(CWD, self.file(), OFlags::RDONLY));
        tell(Trial::Write, opened(CWD, self.folder.join("new"), new));
        tell(Trial::ReadAt, opened(open.as_fd(), "file".into(), OFlags::RDONLY));
        tell(Trial::WriteAt, opened(open.as_fd(), "new-too".into(), new));
        tell(Trial::Socket, of_std(UnixStream::connect(self.socket()).map(drop)));
        let hidden = || UnixStream::connect_addr(&SocketAddr::from_abstract_name(self.name().unwrap_or_default())?);
        tell(Trial::Abstract, of_std(hidden().map(drop)));
        let process = i32::try_from(self.process).ok().and_then(rustix::process::Pid::from_raw);
        let signal = |process| of_host(rustix::process::test_kill_process(process));
        tell(Trial::Signal, process.map_or(libc::ESRCH, signal));
        // The child needs no more files: nothing has to be opened for it.
        let started = Command::new(&self.program).arg("--version").spawn().and_then(|mut child| child.wait());
        tell(Trial::Start, started.map_or_else(|error| refused_start(&error), |_| 0));
        let mounts = walls::unshare_mounts(false);
        let unsaid = |error: anyhow::Error| {
            error.downcast_ref::<rustix::io::Errno>().map_or(libc::EIO, |errno| errno.raw_os_error())
        };
        tell(Trial::Mount, mounts.map_or_else(unsaid, |()| 0));
        let error = Command::new(&self.program).arg("--version").exec();
        tell(Trial::Exec, number(error));
    }
}

/// A process that was started but could not execute the program was started all the same.
fn refused_start(error: &std::io::Error) -> i32 {
    match error.kind() {
        ErrorKind::NotFound => 0,
        _ => error.raw_os_error().unwrap_or(libc::EIO),
    }
}
