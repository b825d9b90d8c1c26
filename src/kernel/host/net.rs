//! Host calls on sockets. Addresses and message heads are the kernel's own copies; only data,
//! option values and iovec targets are guest memory.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use lind_abi::{Errno, Result};
use syscalls::{Sysno, raw_syscall};

use super::control::{self, Control};
use super::fs::Vector;
use super::{raw, result};
use crate::mem::HostRange;

/// The size of struct sockaddr_storage.
const STORAGE: usize = 128;

/// A socket address as the host spells it.
#[derive(Clone, Copy)]
pub struct Address {
    bytes: [u8; STORAGE],
    len: u32,
}

impl Address {
    /// No address.
    pub const NONE: Address = Address { bytes: [0; STORAGE], len: 0 };

    /// The address with these bytes. EINVAL beyond 128 of them.
    pub fn new(bytes: &[u8]) -> Result<Address> {
        let mut address = Address::NONE;
        address.bytes.get_mut(..bytes.len()).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
        address.len = u32::try_from(bytes.len()).map_err(|_| Errno::EINVAL)?;
        Ok(address)
    }

    /// Its bytes. The host may report more than there is room for; that part is lost.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..STORAGE.min(self.len as usize)]
    }

    /// Its length as the host reports it.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The address that the host reads: NULL if there is none.
    fn pointer(&self) -> usize {
        if self.len == 0 { 0 } else { self.bytes.as_ptr() as usize }
    }

    /// The address a host call fills in.
    fn filled(call: impl FnOnce(*mut u8, *mut u32) -> Result<usize>) -> Result<(usize, Address)> {
        let mut address = Address { len: 128, ..Address::NONE };
        let value = call(address.bytes.as_mut_ptr(), &raw mut address.len)?;
        Ok((value, address))
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Address").field(&self.bytes()).finish()
    }
}

/// bind(2)
pub fn bind(fd: BorrowedFd<'_>, address: &Address) -> Result<()> {
    // SAFETY: the host only reads `len` bytes of `address`.
    result(unsafe { raw_syscall!(Sysno::bind, raw(fd), address.bytes.as_ptr() as usize, address.len as usize) })
        .map(drop)
}

/// connect(2)
pub fn connect(fd: BorrowedFd<'_>, address: &Address) -> Result<()> {
    // SAFETY: as for `bind`.
    result(unsafe { raw_syscall!(Sysno::connect, raw(fd), address.bytes.as_ptr() as usize, address.len as usize) })
        .map(drop)
}

/// accept4(2); the new descriptor is close-on-exec on the host.
pub fn accept(fd: BorrowedFd<'_>, flags: u32) -> Result<(OwnedFd, Address)> {
    let flags = flags | libc::SOCK_CLOEXEC.cast_unsigned();
    let (new, address) = Address::filled(|bytes, len| {
        // SAFETY: the host writes at most `*len` bytes, which is what there is room for, and
        // `*len`.
        result(unsafe { raw_syscall!(Sysno::accept4, raw(fd), bytes as usize, len as usize, flags as usize) })
    })?;
    // SAFETY: the call succeeded, so this is a descriptor that nothing else owns.
    Ok((unsafe { OwnedFd::from_raw_fd(number(new)?) }, address))
}

/// getsockname(2)
pub fn name(fd: BorrowedFd<'_>) -> Result<Address> {
    Address::filled(|bytes, len| {
        // SAFETY: as for `accept`.
        result(unsafe { raw_syscall!(Sysno::getsockname, raw(fd), bytes as usize, len as usize) })
    })
    .map(|(_, address)| address)
}

/// getpeername(2)
pub fn peer(fd: BorrowedFd<'_>) -> Result<Address> {
    Address::filled(|bytes, len| {
        // SAFETY: as for `accept`.
        result(unsafe { raw_syscall!(Sysno::getpeername, raw(fd), bytes as usize, len as usize) })
    })
    .map(|(_, address)| address)
}

/// send(2) from guest memory: sendto(2) without a name. The guest gets SIGPIPE from the kernel, so
/// the host must not send it.
#[inline]
pub fn send(fd: BorrowedFd<'_>, buf: HostRange<'_>, flags: u32) -> Result<usize> {
    let (at, len, flags) = (buf.as_ptr() as usize, buf.len(), quiet(flags) as usize);
    // SAFETY: the host only reads inside `buf`, a range of a guest's reservation.
    result(unsafe { raw_syscall!(Sysno::sendto, raw(fd), at, len, flags, 0usize, 0usize) })
}

/// sendto(2) from guest memory, quiet as `send`.
pub fn sendto(fd: BorrowedFd<'_>, buf: HostRange<'_>, flags: u32, to: &Address) -> Result<usize> {
    let flags = quiet(flags) as usize;
    // SAFETY: the host only reads inside `buf`, a range of a guest's reservation, and `to`.
    result(unsafe {
        raw_syscall!(Sysno::sendto, raw(fd), buf.as_ptr() as usize, buf.len(), flags, to.pointer(), to.len as usize)
    })
}

/// recv(2) into guest memory: recvfrom(2) without a name.
#[inline]
pub fn recv(fd: BorrowedFd<'_>, buf: HostRange<'_>, flags: u32) -> Result<usize> {
    let (at, len, flags) = (buf.as_ptr() as usize, buf.len(), flags as usize);
    // SAFETY: the host writes inside `buf`, a range of a guest's reservation that Rust holds no
    // reference into.
    result(unsafe { raw_syscall!(Sysno::recvfrom, raw(fd), at, len, flags, 0usize, 0usize) })
}

/// recvfrom(2) into guest memory.
pub fn recvfrom(fd: BorrowedFd<'_>, buf: HostRange<'_>, flags: u32) -> Result<(usize, Address)> {
    Address::filled(|bytes, len| {
        // SAFETY: the host writes inside `buf`, a range of a guest's reservation that Rust holds no
        // reference into, at most `*len` bytes of address, and `*len`.
        result(unsafe {
            raw_syscall!(
                Sysno::recvfrom,
                raw(fd),
                buf.as_ptr() as usize,
                buf.len(),
                flags as usize,
                bytes as usize,
                len as usize
            )
        })
    })
}

/// sendmsg(2), quiet as `send`.
pub fn sendmsg(
    fd: BorrowedFd<'_>,
    to: &Address,
    data: &Vector<'_>,
    control: &[Control<BorrowedFd<'_>>],
    flags: u32,
) -> Result<usize> {
    let control = control::encode(control, |fd| fd.as_raw_fd());
    let message = libc::msghdr {
        msg_name: to.pointer() as *mut _,
        msg_namelen: to.len,
        msg_iov: data.pointer() as *mut _,
        msg_iovlen: data.len(),
        msg_control: if control.is_empty() { std::ptr::null_mut() } else { control.as_ptr().cast_mut().cast() },
        msg_controllen: control.len(),
        msg_flags: 0,
    };
    // SAFETY: the host only reads: `message`, what it points to (borrowed here for the call) and
    // guest ranges.
    result(unsafe { raw_syscall!(Sysno::sendmsg, raw(fd), &raw const message as usize, quiet(flags) as usize) })
}

/// The result of a recvmsg(2).
pub struct Received {
    /// Bytes of data (more than there was room for, with MSG_TRUNC).
    pub bytes: usize,
    /// The sender's address, if it was asked for; empty if the sender has no name.
    pub from: Option<Address>,
    /// The control messages.
    pub control: Vec<Control<OwnedFd>>,
    /// msg_flags.
    pub flags: i32,
}

/// recvmsg(2) with room for `room` bytes of control messages. `named`: whether to say who sent it.
pub fn recvmsg(fd: BorrowedFd<'_>, data: &Vector<'_>, named: bool, room: usize, flags: u32) -> Result<Received> {
    let mut from = named.then_some(Address::NONE);
    let mut control = vec![0_u8; room];
    let mut message = libc::msghdr {
        msg_name: from.as_mut().map_or(std::ptr::null_mut(), |from| from.bytes.as_mut_ptr().cast()),
        msg_namelen: if named { 128 } else { 0 },
        msg_iov: data.pointer() as *mut _,
        msg_iovlen: data.len(),
        msg_control: if room == 0 { std::ptr::null_mut() } else { control.as_mut_ptr().cast() },
        msg_controllen: room,
        msg_flags: 0,
    };
    let flags = flags | libc::MSG_CMSG_CLOEXEC.cast_unsigned();
    // SAFETY: the host writes `message`, at most `msg_namelen` bytes of name, `msg_controllen`
    // bytes of control, and guest ranges.
    let bytes = result(unsafe { raw_syscall!(Sysno::recvmsg, raw(fd), &raw mut message as usize, flags as usize) })?;
    if let Some(from) = &mut from {
        from.len = message.msg_namelen;
    }
    control.truncate(message.msg_controllen);
    let control = control::decode_received(&control);
    Ok(Received { bytes, from, control, flags: message.msg_flags })
}

/// setsockopt(2) with a value in guest memory.
pub fn set_option(fd: BorrowedFd<'_>, level: u32, option: i32, value: HostRange<'_>) -> Result<()> {
    let (level, option) = (level as usize, option.cast_unsigned() as usize);
    // SAFETY: the host only reads inside `value`, a range of a guest's reservation. Options whose
    // values hold addresses are refused before this.
    result(unsafe { raw_syscall!(Sysno::setsockopt, raw(fd), level, option, value.as_ptr() as usize, value.len()) })
        .map(drop)
}

/// setsockopt(2) with a value of the kernel's own.
pub fn set_option_value(fd: BorrowedFd<'_>, level: u32, option: i32, value: &[u8]) -> Result<()> {
    let (level, option) = (level as usize, option.cast_unsigned() as usize);
    // SAFETY: the host only reads `value`. Options whose values hold addresses are refused before
    // this.
    result(unsafe { raw_syscall!(Sysno::setsockopt, raw(fd), level, option, value.as_ptr() as usize, value.len()) })
        .map(drop)
}

/// getsockopt(2) with a buffer of the kernel's own, part of which the host may read before it
/// writes.
pub fn get_option_value(fd: BorrowedFd<'_>, level: u32, option: i32, value: &mut [u8]) -> Result<u32> {
    let mut len = u32::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    let (level, option, at) = (level as usize, option.cast_unsigned() as usize, value.as_mut_ptr() as usize);
    // SAFETY: the host reads and writes at most `len` bytes of `value`, and `len`.
    result(unsafe { raw_syscall!(Sysno::getsockopt, raw(fd), level, option, at, &raw mut len as usize) })?;
    Ok(len)
}

/// getsockopt(2) into guest memory. Returns the length the host reports.
pub fn get_option(fd: BorrowedFd<'_>, level: u32, option: i32, value: HostRange<'_>) -> Result<u32> {
    let mut len = u32::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    let (level, option, at) = (level as usize, option.cast_unsigned() as usize, value.as_ptr() as usize);
    // SAFETY: the host writes at most `len` bytes at `value`, a range of a guest's reservation, and
    // `len`. Options whose values hold addresses are refused before this.
    result(unsafe { raw_syscall!(Sysno::getsockopt, raw(fd), level, option, at, &raw mut len as usize) })?;
    Ok(len)
}

/// Replaces the socket behind `fd`, whose number stays, by another one.
pub fn replace(fd: BorrowedFd<'_>, new: OwnedFd) -> Result<()> {
    let cloexec = libc::O_CLOEXEC.cast_unsigned() as usize;
    // SAFETY: the number stays that of an open descriptor, and its owner still owns it.
    result(unsafe { raw_syscall!(Sysno::dup3, raw(new.as_fd()), raw(fd), cloexec) }).map(drop)
}

/// Copies an option from one socket to another, if both know it. None of these options holds an
/// address.
pub fn copy_option(from: BorrowedFd<'_>, to: BorrowedFd<'_>, level: i32, option: i32) {
    let (mut value, mut len) = ([0_u64; 2], size_of::<[u64; 2]>());
    let (level, option) = (level.cast_unsigned() as usize, option.cast_unsigned() as usize);
    // SAFETY: the host writes at most `len` bytes to `value`, and four bytes of `len`, whose high
    // half is 0.
    let got = result(unsafe {
        raw_syscall!(Sysno::getsockopt, raw(from), level, option, value.as_mut_ptr() as usize, &raw mut len as usize)
    });
    if got.is_ok() {
        // SAFETY: the host reads the `len` bytes of `value` that it has written.
        let _ =
            result(unsafe { raw_syscall!(Sysno::setsockopt, raw(to), level, option, value.as_ptr() as usize, len) });
    }
}

/// The state of a TCP socket, the first field of tcp_info.
pub fn tcp_state(fd: BorrowedFd<'_>) -> Result<u8> {
    let (mut info, mut len) = ([0_u8; 8], 8_usize);
    let (level, option) = (libc::IPPROTO_TCP.cast_unsigned() as usize, libc::TCP_INFO.cast_unsigned() as usize);
    // SAFETY: the host writes at most `len` bytes of `info`, and four of `len`, whose high half is
    // 0.
    result(unsafe {
        raw_syscall!(Sysno::getsockopt, raw(fd), level, option, info.as_mut_ptr() as usize, &raw mut len as usize)
    })?;
    Ok(info[0])
}

/// The bytes that the sent but not received messages of a socket take at the host:
/// getsockopt(SO_MEMINFO).
pub fn sent_memory(fd: BorrowedFd<'_>) -> Result<u32> {
    const SO_MEMINFO: usize = 55;
    const SENT: usize = 2;
    let mut words = [0_u32; 9];
    let mut len = u32::try_from(size_of_val(&words)).map_err(|_| Errno::EINVAL)?;
    let level = libc::SOL_SOCKET.cast_unsigned() as usize;
    // SAFETY: the host writes no more than `len` bytes to `words`, and `len`.
    result(unsafe {
        raw_syscall!(Sysno::getsockopt, raw(fd), level, SO_MEMINFO, words.as_mut_ptr() as usize, &raw mut len as usize)
    })?;
    Ok(words[SENT])
}

/// getsockopt(SO_PEERCRED)
pub fn peer_credentials(fd: BorrowedFd<'_>) -> Result<lind_abi::layout::Ucred> {
    let mut who = lind_abi::layout::Ucred::default();
    let mut len = size_of_val(&who);
    let (level, option) = (libc::SOL_SOCKET.cast_unsigned() as usize, libc::SO_PEERCRED.cast_unsigned() as usize);
    // SAFETY: the host writes at most `len` bytes, the size of `who`, any bytes of which are valid.
    // The high half of `len` is 0.
    result(unsafe {
        raw_syscall!(Sysno::getsockopt, raw(fd), level, option, &raw mut who as usize, &raw mut len as usize)
    })?;
    Ok(who)
}

fn quiet(flags: u32) -> u32 {
    flags | libc::MSG_NOSIGNAL.cast_unsigned()
}

fn number(value: usize) -> Result<i32> {
    i32::try_from(value).map_err(|_| Errno::EBADF)
}

/// The size of struct ifreq: a name and 24 bytes that depend on the request.
pub const IFREQ: usize = 40;

/// ioctl(2) with a struct ifreq, for netdevice(7) requests whose struct holds no address.
pub fn interface(fd: BorrowedFd<'_>, request: u32, ifreq: &mut [u8; IFREQ]) -> Result<()> {
    // SAFETY: the host reads and writes one struct ifreq, which `ifreq` has room for.
    result(unsafe { raw_syscall!(Sysno::ioctl, raw(fd), request as usize, ifreq.as_mut_ptr() as usize) }).map(drop)
}

/// ioctl(SIOCGIFCONF): every interface that has an address.
pub fn interfaces(fd: BorrowedFd<'_>) -> Result<Vec<[u8; IFREQ]>> {
    const SIOCGIFCONF: usize = 0x8912;
    /// More than fit a network namespace of any use.
    const MOST: usize = 4096;
    let mut list = vec![[0_u8; IFREQ]; MOST];
    let mut asked = libc::ifconf {
        ifc_len: i32::try_from(MOST * IFREQ).map_err(|_| Errno::EINVAL)?,
        ifc_ifcu: libc::__c_anonymous_ifc_ifcu { ifcu_buf: list.as_mut_ptr().cast() },
    };
    // SAFETY: the host writes at most `ifc_len` bytes, the size of `list`, at its start, and
    // `asked`.
    result(unsafe { raw_syscall!(Sysno::ioctl, raw(fd), SIOCGIFCONF, &raw mut asked as usize) })?;
    list.truncate(usize::try_from(asked.ifc_len).map_err(|_| Errno::EINVAL)? / IFREQ);
    Ok(list)
}
