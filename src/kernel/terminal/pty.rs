//! Pseudoterminals: pairs of the host's, with numbers of our own.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use lind_abi::{Errno, Result};
use rustix::fs::OFlags;

use super::{Master, NOCTTY, State, Terminal, session_and_group};
use crate::Kernel;
use crate::call::Ctx;
use crate::fd::locks::FileId;
use crate::fd::{File, Kind};
use crate::host;

/// Pseudoterminals there may be: the host has a limit for all its users.
const MOST: usize = 256;

/// What the kernel knows of a master.
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
        // Nothing is sent from here: whoever closes files may hold locks.
        if let Some(kernel) = self.kernel.upgrade() {
            kernel.terminals.hang_up();
        }
    }
}

/// open(2) of /dev/ptmx.
///
/// # Errors
/// ENOSPC at the limit, ENOENT where the host has none, what it says.
pub(crate) fn open_master(cx: &Ctx<'_>, flags: u32) -> Result<Arc<File>> {
    let devices = cx.kernel.root.devices();
    let host = devices.open_multiplexer(&cx.kernel.root, flags)?;
    let index = host::terminal::number(&host)?;
    let slave = devices.slave_id(index).ok_or(Errno::ENOENT)?;
    let mut state = cx.kernel.terminals.lock();
    state.forget_closed();
    if state.masters.len() >= MOST {
        return Err(Errno::ENOSPC);
    }
    let number = (0..).find(|number| !state.masters.contains_key(number)).ok_or(Errno::ENOSPC)?;
    let pty = Pty { number, slave, kernel: Arc::downgrade(cx.kernel) };
    let file = Arc::new(File::new(host, Kind::Master(pty)));
    state.masters.insert(number, Master { file: Arc::downgrade(&file), slave });
    state.terminals.insert(slave, Terminal { session: 0, front: 0, file: Weak::new(), number: Some(number) });
    Ok(file)
}

/// open(2) of /dev/pts/N. A session leader without a terminal gets this one, unless O_NOCTTY says not.
///
/// # Errors
/// ENOENT without such a master; EIO while it is locked, what else the host says.
pub(crate) fn open_slave(cx: &Ctx<'_>, number: u32, flags: u32) -> Result<Arc<File>> {
    let master = cx.kernel.terminals.lock().masters.get(&number).and_then(|master| master.file.upgrade());
    let master = master.ok_or(Errno::ENOENT)?;
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

/// The host's index of a pseudoterminal.
///
/// # Errors
/// ENOENT when it is gone.
pub(crate) fn host_index(kernel: &Kernel, number: u32) -> Result<u32> {
    let master = kernel.terminals.lock().masters.get(&number).and_then(|master| master.file.upgrade());
    host::terminal::number(master.ok_or(Errno::ENOENT)?.host())
}

impl State {
    /// Forgets pseudoterminals whose masters have been closed. Returns the sessions that have lost their terminal, and the
    /// groups that were in front there.
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
