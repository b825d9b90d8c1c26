//! Terminals: which session each belongs to, which process group is in front, and pseudoterminals.
//!
//! The host's line discipline does the editing and echoing. Its notion of sessions and groups is of
//! no use here: to the host all cages are one process. So those are kept here, keyed by the
//! terminal's device file, and the host's own idea of them is never touched. A terminal that the
//! runner serves to a command of a session is the session's that the command leads, and opens for
//! nobody else. Terminals that were handed in (standard input and output) belong to the first
//! cage's session.
//!
//! A session's terminal goes when its leader ends; that is noticed at the next look.

mod control;
mod line;
mod pty;
mod served;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use lind_abi::{CageId, Errno, Result};

use crate::Kernel;
use crate::cage::Cage;
use crate::call::Ctx;
use crate::fd::locks::FileId;
use crate::fd::{File, Kind};
use crate::host;
use crate::lock::Locked;
use crate::root::devices::TTY;

pub use crate::host::terminal::settings;
pub(crate) use control::{
    Change, check_front, gone, group, leader_ended, leave, session, set_group, signal_front, take, window_changed,
};
pub use line::Key;
pub(crate) use line::typed;
pub use pty::Pty;
pub(crate) use pty::{open_master, open_slave, slave_file};
pub use served::Served;
use served::Wanted;
pub(crate) use served::polled;

/// The terminals that cages have.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    state: Mutex<State>,
    /// Whether a pseudoterminal has lost its master since `gone` looked.
    hung: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    terminals: HashMap<FileId, Terminal>,
    /// The masters of pseudoterminals, by number.
    masters: BTreeMap<u32, Master>,
    /// The groups that were in front on terminals that have gone, by their sessions.
    lost: HashMap<u32, u32>,
    /// Whether the first cage's standard files have been looked through.
    looked: bool,
}

#[derive(Debug)]
struct Master {
    file: Weak<File>,
    slave: FileId,
}

/// A terminal, as job control sees it.
#[derive(Debug)]
struct Terminal {
    /// The session it controls, 0 for none.
    session: u32,
    /// The foreground process group.
    front: u32,
    /// An open file of it, for further ones.
    file: Weak<File>,
    /// Its number in /dev/pts; None for one that was handed in.
    number: Option<u32>,
    /// For one whose master is the runner's own: see [`Served`].
    served: Option<Arc<Wanted>>,
    /// Whether a program has chosen the group in front.
    has_jobs: bool,
}

impl Terminals {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Handles the closing of a master.
    pub(crate) fn hang_up(&self) {
        self.hung.store(true, Ordering::Release);
    }

    /// The numbers of pseudoterminals.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let state = self.lock();
        state.masters.iter().filter(|(_, master)| master.file.strong_count() > 0).map(|(&number, _)| number).collect()
    }

    /// The foreground process group of a session's terminal with a user outside, which gets the
    /// signals typed there.
    pub(crate) fn console_group(&self, kernel: &Kernel, session: u32) -> Option<u32> {
        let state = self.lock();
        let is_outside = |terminal: &&Terminal| terminal.number.is_none() || terminal.served.is_some();
        let console = state.terminals.values().filter(is_outside).find(|terminal| terminal.session == session)?;
        (console.front != 0 && leads(kernel, console.session)).then_some(console.front)
    }

    /// The foreground process group of a terminal that was handed in, and that a session has.
    pub(crate) fn handed_in_group(&self, kernel: &Kernel) -> Option<u32> {
        let state = self.lock();
        let mut handed_in = state.terminals.values().filter(|terminal| terminal.number.is_none());
        let taken = handed_in.find(|terminal| terminal.front != 0 && leads(kernel, terminal.session))?;
        Some(taken.front)
    }
}

/// Whether a session still has its leader.
fn leads(kernel: &Kernel, session: u32) -> bool {
    kernel.cages.get(CageId(session)).is_some_and(|leader| !leader.is_dead())
}

fn first_cage(cx: &Ctx<'_>) -> Option<Arc<Cage>> {
    cx.kernel.cages.get(cx.cage.ancestors().first().copied().unwrap_or(cx.cage.id))
}

/// The session and process group of the caller.
fn session_and_group(cx: &Ctx<'_>) -> (u32, u32) {
    let settings = cx.cage.settings();
    (settings.session, settings.group)
}

/// The device that an open file is a terminal by: its own, or its slave's.
fn device(file: &File) -> Result<FileId> {
    match &file.kind {
        Kind::Master(pty) => Ok(pty.slave),
        Kind::Terminal => file.id(),
        _ => Err(Errno::ENOTTY),
    }
}

impl State {
    /// The terminal of an open file. An unknown terminal was handed in from outside.
    fn terminal(&mut self, cx: &Ctx<'_>, file: &Arc<File>) -> Result<&mut Terminal> {
        let id = device(file)?;
        if !self.terminals.contains_key(&id) {
            self.hand_in(cx, id, file);
        }
        let terminal = self.terminals.get_mut(&id).ok_or(Errno::ENOTTY)?;
        if terminal.session != 0 && !leads(cx.kernel, terminal.session) {
            (terminal.session, terminal.front) = (0, 0);
        }
        if terminal.file.strong_count() == 0 && matches!(file.kind, Kind::Terminal) {
            terminal.file = Arc::downgrade(file);
        }
        Ok(terminal)
    }

    /// The terminal on the other side of a master, if it controls a session.
    fn behind(&self, kernel: &Kernel, master: &File) -> Option<&Terminal> {
        let terminal = device(master).ok().and_then(|id| self.terminals.get(&id));
        terminal.filter(|terminal| leads(kernel, terminal.session))
    }

    /// The group in front on the other side of a master; 0 for none.
    fn front_behind(&self, kernel: &Kernel, master: &File) -> u32 {
        self.behind(kernel, master).map_or(0, |terminal| terminal.front)
    }

    /// A terminal from outside: the first of them is that of the first cage's session. If another
    /// session is the first to use one, it was handed in later, and belongs to nobody until it is
    /// taken.
    fn hand_in(&mut self, cx: &Ctx<'_>, id: FileId, file: &Arc<File>) {
        let first = first_cage(cx).filter(|first| first.session() == cx.cage.session());
        self.insert(cx, id, file, first.as_deref());
    }

    fn insert(&mut self, cx: &Ctx<'_>, id: FileId, file: &Arc<File>, leader: Option<&Cage>) {
        let free = |leader: &&Cage| !self.terminals.values().any(|terminal| terminal.session == leader.id.0);
        let leader = leader.filter(free).filter(|leader| leads(cx.kernel, leader.id.0));
        let (session, front) = leader.map_or((0, 0), |leader| (leader.id.0, leader.group()));
        self.terminals.insert(
            id,
            Terminal { session, front, file: Arc::downgrade(file), number: None, served: None, has_jobs: false },
        );
    }

    /// Looks through the standard files of the first cage for its terminal, once.
    fn look(&mut self, cx: &Ctx<'_>) {
        if std::mem::replace(&mut self.looked, true) {
            return;
        }
        let Some(first) = first_cage(cx) else { return };
        for number in 0..3 {
            if let Ok(file) = first.fds.get(number)
                && matches!(file.kind, Kind::Terminal)
                && let Ok(id) = device(&file)
                && !self.terminals.contains_key(&id)
            {
                self.insert(cx, id, &file.share(), Some(&first));
            }
        }
    }

    /// The terminal of the caller's session.
    fn controlling(&mut self, cx: &Ctx<'_>) -> Option<(FileId, &mut Terminal)> {
        self.look(cx);
        let (session, _) = session_and_group(cx);
        self.terminals
            .iter_mut()
            .find(|(_, terminal)| terminal.session == session && leads(cx.kernel, session))
            .map(|(id, terminal)| (*id, terminal))
    }
}

/// open(2) of /dev/tty: the terminal of the caller's session.
///
/// # Errors
/// ENXIO without one.
pub(crate) fn open_controlling(cx: &Ctx<'_>, flags: u32) -> Result<Arc<File>> {
    let (number, file) = {
        let mut state = cx.kernel.terminals.lock();
        let (_, terminal) = state.controlling(cx).ok_or(Errno::ENXIO)?;
        (terminal.number, terminal.file.upgrade())
    };
    open_once_more(cx, number, file, flags)
}

/// open(2) of a terminal that is open.
///
/// # Errors
/// The errors of `open_slave`.
pub(crate) fn reopen(cx: &Ctx<'_>, file: &Arc<File>, flags: u32) -> Result<Arc<File>> {
    let number = cx.kernel.terminals.lock().terminal(cx, file)?.number;
    open_once_more(cx, number, Some(Arc::clone(file)), flags)
}

/// A further open file of a terminal. A terminal that was handed in has no name that is open to us,
/// except for the runner's own terminal, which is the host's /dev/tty. Any other is shared as
/// dup(2) does.
fn open_once_more(cx: &Ctx<'_>, number: Option<u32>, file: Option<Arc<File>>, flags: u32) -> Result<Arc<File>> {
    if let Some(number) = number {
        return open_slave(cx, number, flags | NOCTTY);
    }
    let file = file.ok_or(Errno::ENXIO)?;
    let device = rustix::fs::fstat(file.host()).map_err(host::errno)?.st_rdev;
    match cx.kernel.root.devices().open(&cx.kernel.root, TTY, flags) {
        Ok(own) if host::terminal::device(own.as_fd()) == Ok(device) => File::alike(own, &file).map(Arc::new),
        _ => Ok(file),
    }
}

/// O_NOCTTY
pub(crate) const NOCTTY: u32 = 0o400;

/// The open file of the terminal that was handed in: /dev/console.
pub(crate) fn console(cx: &Ctx<'_>) -> Option<Arc<File>> {
    let mut state = cx.kernel.terminals.lock();
    state.look(cx);
    state.terminals.values().filter(|terminal| terminal.number.is_none()).find_map(|terminal| terminal.file.upgrade())
}

/// The process group in front on a terminal, 0 if there is none.
pub(crate) fn front(cx: &Ctx<'_>, file: &Arc<File>) -> u32 {
    let mut state = cx.kernel.terminals.lock();
    state.look(cx);
    state.terminal(cx, file).map_or(0, |terminal| terminal.front)
}

/// The path of a terminal in /dev.
pub(crate) fn path(cx: &Ctx<'_>, file: &File) -> Option<Vec<u8>> {
    if let Kind::Master(_) = &file.kind {
        return Some(b"/dev/ptmx".to_vec());
    }
    let id = device(file).ok()?;
    let state = cx.kernel.terminals.lock();
    match state.terminals.get(&id).map(|terminal| terminal.number) {
        Some(Some(number)) => Some(format!("/dev/pts/{number}").into_bytes()),
        _ => Some(b"/dev/console".to_vec()),
    }
}

/// The device number and the group in front of a session's terminal, for /proc/PID/stat.
pub(crate) fn of_session(kernel: &Kernel, session: u32) -> Option<(u64, u32)> {
    let state = kernel.terminals.lock();
    let terminal = state.terminals.values().find(|terminal| terminal.session == session && leads(kernel, session))?;
    let file = terminal.file.upgrade()?;
    let device = rustix::fs::fstat(file.host().as_fd()).map_or(0, |stat| stat.st_rdev);
    Some((device, terminal.front))
}
