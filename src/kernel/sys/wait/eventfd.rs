//! eventfd(2): counters that are descriptors.

use lind_abi::flags::EventfdFlags;
use lind_abi::{NewFd, Result};
use rustix::event::EventfdFlags as HostFlags;

use crate::call::Ctx;
use crate::host::errno;

/// eventfd(2) without flags.
pub(crate) fn eventfd(cx: &Ctx<'_>, initial: u32) -> Result<NewFd> {
    eventfd2(cx, initial, EventfdFlags(0))
}

/// eventfd(2)
pub(crate) fn eventfd2(cx: &Ctx<'_>, initial: u32, flags: EventfdFlags) -> Result<NewFd> {
    let host = HostFlags::from_bits_retain(flags.0) | HostFlags::CLOEXEC;
    let file = rustix::event::eventfd(initial, host).map_err(errno)?;
    cx.cage.fds.add_host(file, flags.has(EventfdFlags::EFD_CLOEXEC)).map(NewFd)
}
