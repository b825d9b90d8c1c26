//! Socket options. Their values are the host's, structs included, except for those that name
//! processes or addresses.

use lind_abi::flags::SockLevel;
use lind_abi::{Errno, Fd, In, InOut, Len, Out, Result};

use super::credentials::{self, SO_PEERGROUPS, SO_PEERPIDFD};
use super::{group, loopback};
use crate::call::Ctx;
use crate::host::net;
use crate::mem::GuestMemory;

/// setsockopt(2)
pub(crate) fn setsockopt(cx: &Ctx<'_>, fd: Fd, level: SockLevel, option: i32, value: In<u8>, len: Len) -> Result<()> {
    let socket = cx.file(fd)?;
    let len = u32::try_from(len.0 & u64::from(u32::MAX))
        .ok()
        .filter(|len| i32::try_from(*len).is_ok())
        .ok_or(Errno::EINVAL)?;
    refuse(level, option)?;
    let kept = loopback::keeper(&socket, level, option).transpose()?;
    if kept.is_none() && (level.0, option) == (SockLevel::SOL_SOCKET, libc::SO_PASSCRED) {
        credentials::asks(cx, &socket);
    }
    if group::has_address(level, option) {
        let value = address_value(cx, value, len)?;
        return net::set_option_value(kept.unwrap_or(socket.host()), level.0, option, &value);
    }
    let value = cx.input(value, Len(len.into()))?;
    net::set_option(kept.unwrap_or(socket.host()), level.0, option, value)
}

/// getsockopt(2)
pub(crate) fn getsockopt(
    cx: &Ctx<'_>,
    fd: Fd,
    level: SockLevel,
    option: i32,
    value: Out<u8>,
    len: InOut<u32>,
) -> Result<()> {
    let socket = cx.file(fd)?;
    let room: u32 = cx.load(cx.reading(len))?;
    if i32::try_from(room).is_err() {
        return Err(Errno::EINVAL);
    }
    refuse(level, option)?;
    match (level.0, option) {
        (SockLevel::SOL_SOCKET, libc::SO_PEERCRED) => {
            return credentials::peer_credentials(cx, &socket, value, room, len);
        }
        (SockLevel::SOL_SOCKET, SO_PEERGROUPS) => return credentials::peer_groups(cx, &socket, value, room, len),
        (SockLevel::SOL_SOCKET, SO_PEERPIDFD) => return credentials::peer_descriptor(cx, &socket, value, room, len),
        _ => {}
    }
    if group::has_address(level, option) {
        let mut wide = address_value(cx, In::new(value.addr, value.cage), room)?;
        let filled = net::get_option_value(socket.host(), level.0, option, &mut wide)?;
        let narrow = group::narrow(&wide[..wide.len().min(filled as usize)]);
        cx.copy_out(value, &narrow)?;
        return cx.store(cx.writing(len), &u32::try_from(narrow.len()).unwrap_or(room));
    }
    // An option takes as much of a larger buffer as it needs; the rest of it need not lie in the
    // guest's memory.
    let room = u64::from(room).min(GuestMemory::SPACE.saturating_sub(value.addr));
    let value = cx.output(value, Len(room))?;
    let kept = loopback::keeper(&socket, level, option).transpose()?;
    let filled = net::get_option(kept.unwrap_or(socket.host()), level.0, option, value)?;
    cx.store(cx.writing(len), &filled)
}

/// A value with an address in it, in the host's layout.
fn address_value(cx: &Ctx<'_>, value: In<u8>, len: u32) -> Result<Vec<u8>> {
    let len = usize::try_from(len).ok().filter(|&len| len <= group::LONGEST).ok_or(Errno::ENOBUFS)?;
    let mut bytes = vec![0; len];
    cx.copy_in(value, &mut bytes)?;
    group::widen(&bytes)
}

/// Refuses the options that would have the host follow an address in the value, run a program, or
/// make a descriptor.
fn refuse(level: SockLevel, option: i32) -> Result<()> {
    const SO_ATTACH_FILTER: i32 = 26;
    const SO_ATTACH_BPF: i32 = 50;
    const SO_ATTACH_REUSEPORT_CBPF: i32 = 51;
    const SO_ATTACH_REUSEPORT_EBPF: i32 = 52;
    const SO_PASSPIDFD: i32 = 76;
    const TCP_ULP: i32 = 31;
    const TCP_ZEROCOPY_RECEIVE: i32 = 35;
    const SO_ORIGINAL_DST: i32 = 80;
    const IP6T_TABLES: [i32; 4] = [64, 65, 68, 69];
    let refused = match level.0 {
        SockLevel::SOL_SOCKET => matches!(
            option,
            SO_ATTACH_FILTER | SO_ATTACH_BPF | SO_ATTACH_REUSEPORT_CBPF | SO_ATTACH_REUSEPORT_EBPF | SO_PASSPIDFD
        ),
        SockLevel::SOL_TCP => matches!(option, TCP_ULP | TCP_ZEROCOPY_RECEIVE),
        // From 64 on come the tables of netfilter and its like.
        SockLevel::SOL_IP => option >= 64 && option != SO_ORIGINAL_DST,
        SockLevel::SOL_IPV6 => IP6T_TABLES.contains(&option),
        // All other options have plain values, or belong to families and protocols that guests do
        // not get.
        _ => false,
    };
    if refused { Err(Errno::ENOPROTOOPT) } else { Ok(()) }
}
