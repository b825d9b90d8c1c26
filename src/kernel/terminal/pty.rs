//! Pseudoterminals: pairs of the host's, with numbers of our own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use lind_abi::{CageId, Errno, Result};
use rustix::fs::OFlags;

use super::{Master, NOCTTY, State, Terminal, Wanted, session_and_group};
use crate::Kernel;
use crate::call::Ctx;
use crate::fd::locks::FileId;
use crate::fd::{File, Kind};
use crate::host;

/// Pseudoterminals there may be: the host has a limit for all its users.
const MOST: usize = 256;

/// The kernel's state of a master.
#[derive(Debug)]
pub struct Pty {
    /// Its number in /dev/pts.
    pub number: u32,
    /// The other side.
    pub slave: FileId,
    kernel: Weak<Kernel>,
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Nothing is sent from here, since the caller may hold locks.
        if let Some(kernel) = self.kernel.upgrade() {
            kernel.terminals.hang_up();
        }
    }
}

/// open(2) of /dev/ptmx.
///
/// # Errors
/// ENOSPC at the limit, ENOENT if the host has none, other errors of the host.
pub(crate) fn open_master(cx: &Ctx<'_>, flags: u32) -> Result<Arc<File>> {
    make(cx.kernel, flags, None)
}

/// A new pseudoterminal. `served`: it is the runner's own, to which no limit of the guests applies.
///
/// # Errors
/// As `open_master`.
pub(super) fn make(kernel: &Arc<Kernel>, flags: u32, served: Option<Arc<Wanted>>) -> Result<Arc<File>> {
    let devices = kernel.root.devices();
    let host = devices.open_multiplexer(&kernel.root, flags)?;
    let slave = FileId::of(named(host.as_fd())?.as_fd())?;
    let mut state = kernel.terminals.lock();
    state.forget_closed();
    if served.is_none() && state.guests_pairs() >= MOST {
        return Err(Errno::ENOSPC);
    }
    let number = (0..).find(|number| !state.masters.contains_key(number)).ok_or(Errno::ENOSPC)?;
    let pty = Pty { number, slave, kernel: Arc::downgrade(kernel) };
    let file = Arc::new(File::new(host, Kind::Master(pty)));
    state.masters.insert(number, Master { file: Arc::downgrade(&file), slave });
    let terminal = Terminal { session: 0, front: 0, file: Weak::new(), number: Some(number), served, has_jobs: false };
    state.terminals.insert(slave, terminal);
    Ok(file)
}

/// Whether the caller may open it. A served terminal may be opened by its session and by
/// descendants of the session's leader: programs that earlier commands have left behind must not
/// read what is typed for this one.
fn may_open(cx: &Ctx<'_>, terminal: &Terminal) -> bool {
    let leader = terminal.session;
    terminal.served.is_none() || leader != 0 && (cx.cage.session() == leader || cx.cage.descends_from(CageId(leader)))
}

/// open(2) of /dev/pts/N. A session leader without a terminal gets this one, unless O_NOCTTY is
/// given.
///
/// # Errors
/// ENOENT without such a master; EACCES for one that is served to others; EIO while it is locked,
/// other errors of the host.
pub(crate) fn open_slave(cx: &Ctx<'_>, number: u32, flags: u32) -> Result<Arc<File>> {
    let master = cx.kernel.terminals.lock().masters.get(&number).and_then(|master| master.file.upgrade());
    let master = master.ok_or(Errno::ENOENT)?;
    if !may_open(cx, cx.kernel.terminals.lock().terminal(cx, &master)?) {
        return Err(Errno::EACCES);
    }
    let passed = OFlags::from_bits_retain(flags) & (OFlags::RWMODE | OFlags::NONBLOCK);
    let host: OwnedFd = host::terminal::peer(master.host(), (passed | OFlags::NOCTTY | OFlags::CLOEXEC).bits())?;
    let file = Arc::new(File::new(host, Kind::Terminal));
    let (session, group) = session_and_group(cx);
    let mut state = cx.kernel.terminals.lock();
    let free = flags & NOCTTY == 0 && session == cx.cage.id.0 && state.controlling(cx).is_none();
    let terminal = state.terminal(cx, &file)?;
    if free && terminal.session == 0 {
        (terminal.session, terminal.front) = (session, group);
    }
    Ok(file)
}

/// The other side of a host's master, opened by O_PATH, which neither opens the terminal nor needs
/// the folder that it is in.
fn named(master: BorrowedFd<'_>) -> Result<OwnedFd> {
    host::terminal::peer(master, (OFlags::PATH | OFlags::CLOEXEC).bits())
}

/// The host's file of /dev/pts/N, opened by O_PATH.
///
/// # Errors
/// ENOENT when it is gone.
pub(crate) fn slave_file(kernel: &Kernel, number: u32) -> Result<OwnedFd> {
    let master = kernel.terminals.lock().masters.get(&number).and_then(|master| master.file.upgrade());
    named(master.ok_or(Errno::ENOENT)?.host())
}

impl State {
    /// How many there are that guests have made.
    fn guests_pairs(&self) -> usize {
        let of_guest =
            |master: &&Master| self.terminals.get(&master.slave).is_some_and(|terminal| terminal.served.is_none());
        self.masters.values().filter(of_guest).count()
    }

    /// Drops pseudoterminals whose masters have been closed. Returns the sessions that have lost
    /// their terminal, and their foreground groups.
    pub(super) fn forget_closed(&mut self) -> Vec<(u32, u32)> {
        let mut lost = Vec::new();
        let terminals = &mut self.terminals;
        self.masters.retain(|_, master| {
            let open = master.file.strong_count() > 0;
            if !open && let Some(terminal) = terminals.remove(&master.slave) {
                lost.push((terminal.session, terminal.front));
            }
            open
        });
        lost.retain(|&(session, _)| session != 0);
        lost
    }
}
