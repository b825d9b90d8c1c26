//! The requests of fcntl(2) and ioctl(2) that reach the host. The runner's seccomp filter permits
//! these and no others, so every request that this crate makes has to be listed here.

use lind_abi::flags::{FcntlCmd as F, IoctlRequest as R};

/// `_IOWR('f', 16, struct pm_scan_arg)`
pub(crate) const PAGEMAP_SCAN: u32 = 0xc060_6610;

/// Requests of netdevice(7) that ask about one interface: SIOCGIFNAME, FLAGS, ADDR, DSTADDR,
/// BRDADDR, NETMASK, METRIC, MTU, HWADDR, INDEX, TXQLEN.
pub(crate) const OF_INTERFACES: [u32; 11] =
    [0x8910, 0x8913, 0x8915, 0x8917, 0x8919, 0x891b, 0x891d, 0x8921, 0x8927, 0x8933, 0x8942];

/// Requests of ioctl(2) beside [`OF_INTERFACES`]. None of them types for the user, takes a
/// terminal, or names a receiver of signals.
const OF_FILES: &[u32] = &[
    // The run-time library's own.
    R::FIOCLEX,
    R::FIONCLEX,
    R::FIONREAD,
    R::FIONBIO,
    R::FIGETBSZ,
    R::FIOQSIZE,
    R::FS_IOC_GETFLAGS,
    R::FS_IOC_GETVERSION,
    PAGEMAP_SCAN,
    R::SIOCATMARK,
    R::SIOCGIFCONF,
    R::TCGETS,
    R::TCGETS2,
    R::TCGETA,
    R::TCSETS,
    R::TCSETSW,
    R::TCSETSF,
    R::TCSETS2,
    R::TCSETSW2,
    R::TCSETSF2,
    R::TCSETA,
    R::TCSETAW,
    R::TCSETAF,
    R::TCSBRK,
    R::TCSBRKP,
    R::TCXONC,
    R::TCFLSH,
    R::TIOCSBRK,
    R::TIOCCBRK,
    R::TIOCEXCL,
    R::TIOCNXCL,
    R::TIOCGEXCL,
    R::TIOCGSOFTCAR,
    R::TIOCSSOFTCAR,
    R::TIOCGETD,
    R::TIOCGDEV,
    R::TIOCGLCKTRMIOS,
    R::TIOCGWINSZ,
    R::TIOCSWINSZ,
    R::TIOCOUTQ,
    R::TIOCGPTN,
    R::TIOCSPTLCK,
    R::TIOCGPTLCK,
    R::TIOCPKT,
    R::TIOCGPKT,
    R::TIOCGPTPEER,
];

/// Commands of fcntl(2). For two of them the filter checks the argument as well: see
/// [`SIGNAL_OF_LEASES`] and [`NO_FLAG`].
pub const COMMANDS: &[u32] = &[
    F::F_DUPFD,
    F::F_DUPFD_CLOEXEC,
    F::F_GETFD,
    F::F_SETFD,
    F::F_GETFL,
    F::F_OFD_GETLK,
    F::F_OFD_SETLK,
    F::F_OFD_SETLKW,
    F::F_GETLEASE,
    F::F_SETLEASE,
    F::F_GETPIPE_SZ,
    F::F_SETPIPE_SZ,
    F::F_GET_SEALS,
    F::F_ADD_SEALS,
    F::F_CREATED_QUERY,
];

/// F_SETFL, and the flag that it does not set: O_ASYNC, by which a file sends signals.
pub const NO_FLAG: (u32, u32) = (F::F_SETFL, 0o20_000);

/// F_SETSIG, and the one signal that it sets.
pub const SIGNAL_OF_LEASES: (u32, u32) = (F::F_SETSIG, libc::SIGCHLD.cast_unsigned());

/// All requests of ioctl(2), in no order.
pub fn ioctls() -> impl Iterator<Item = u32> {
    OF_FILES.iter().chain(&OF_INTERFACES).copied()
}
