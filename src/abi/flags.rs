//! Flags and enumerations of the interface, with the names that strace prints.
//!
//! Values are those of x86-64 Linux (`asm-generic` where the architecture adds nothing).

use crate::types::{Arg, ArgType, Kind};

/// A list of names for bits or values.
#[derive(Debug)]
pub struct Names {
    /// The type's name.
    pub name: &'static str,
    /// Value and name. For flags, a value of several bits comes before its single bits.
    pub rows: &'static [(u32, &'static str)],
}

macro_rules! names {
    ($($(#[$doc:meta])* $kind:ident $ty:ident { $($name:ident = $value:expr,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(transparent)]
        pub struct $ty(pub u32);

        #[allow(missing_docs)]
        impl $ty {
            $(pub const $name: u32 = $value;)*
            /// The names, for printing.
            pub const NAMES: &'static Names =
                &Names { name: stringify!($ty), rows: &[$(($value, stringify!($name)),)*] };
        }

        impl $ty {
            /// Whether every bit of `bits` is set.
            #[inline]
            pub const fn has(self, bits: u32) -> bool {
                self.0 & bits == bits
            }
            /// Whether a bit outside `bits` is set.
            #[inline]
            pub const fn beyond(self, bits: u32) -> bool {
                self.0 & !bits != 0
            }
        }

        impl ArgType for $ty {
            const KIND: Kind = Kind::$kind($ty::NAMES);
            #[inline]
            fn from_arg(arg: Arg) -> Self {
                $ty(<u32 as ArgType>::from_arg(arg))
            }
        }
    )*
        /// Every list, for the generators.
        pub const ALL: &[(bool, &Names)] = &[$((names!(@is_flags $kind), $ty::NAMES),)*];
    };
    (@is_flags Flags) => { true };
    (@is_flags Value) => { false };
}

names! {
    /// open(2). The two low bits are the access mode; O_RDONLY is 0.
    Flags OpenFlags {
        O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0o100, O_EXCL = 0o200, O_NOCTTY = 0o400, O_TRUNC = 0o1000,
        O_APPEND = 0o2000, O_NONBLOCK = 0o4000, O_SYNC = 0o4_010_000, O_DSYNC = 0o10000, O_ASYNC = 0o20000,
        O_DIRECT = 0o40000, O_LARGEFILE = 0o100_000, O_TMPFILE = 0o20_200_000, O_DIRECTORY = 0o200_000,
        O_NOFOLLOW = 0o400_000, O_NOATIME = 0o1_000_000, O_CLOEXEC = 0o2_000_000, O_PATH = 0o10_000_000,
    }
    /// The flags of the `*at` calls.
    Flags AtFlags {
        AT_SYMLINK_NOFOLLOW = 0x100, AT_REMOVEDIR = 0x200, AT_SYMLINK_FOLLOW = 0x400,
        AT_NO_AUTOMOUNT = 0x800, AT_EMPTY_PATH = 0x1000, AT_STATX_FORCE_SYNC = 0x2000,
        AT_STATX_DONT_SYNC = 0x4000, AT_RECURSIVE = 0x8000,
    }
    /// The flags of faccessat2(2): AT_EACCESS shares its value with AT_REMOVEDIR.
    Flags AccessFlags {
        AT_SYMLINK_NOFOLLOW = 0x100, AT_EACCESS = 0x200, AT_EMPTY_PATH = 0x1000,
    }
    /// The modes of access(2); F_OK is 0.
    Flags AccessMode { R_OK = 4, W_OK = 2, X_OK = 1, }
    /// renameat2(2).
    Flags RenameFlags { RENAME_NOREPLACE = 1, RENAME_EXCHANGE = 2, RENAME_WHITEOUT = 4, }
    /// fallocate(2).
    Flags FallocateMode {
        FALLOC_FL_KEEP_SIZE = 1, FALLOC_FL_PUNCH_HOLE = 2, FALLOC_FL_COLLAPSE_RANGE = 8,
        FALLOC_FL_ZERO_RANGE = 16, FALLOC_FL_INSERT_RANGE = 32, FALLOC_FL_UNSHARE_RANGE = 64,
    }
    /// The fields statx(2) is asked for.
    Flags StatxMask {
        STATX_ALL = 0xfff, STATX_BASIC_STATS = 0x7ff, STATX_TYPE = 1, STATX_MODE = 2, STATX_NLINK = 4, STATX_UID = 8,
        STATX_GID = 16, STATX_ATIME = 32, STATX_MTIME = 64, STATX_CTIME = 128, STATX_INO = 256,
        STATX_SIZE = 512, STATX_BLOCKS = 1024, STATX_BTIME = 2048, STATX_MNT_ID = 4096,
    }
    /// Flags of pipe2, dup3: the open(2) flags they take.
    Flags FdFlags {
        O_NONBLOCK = 0o4000, O_DIRECT = 0o40000, O_CLOEXEC = 0o2_000_000,
    }
    /// close_range(2).
    Flags CloseRangeFlags { CLOSE_RANGE_UNSHARE = 2, CLOSE_RANGE_CLOEXEC = 4, }
    /// preadv2(2), pwritev2(2).
    Flags RwfFlags { RWF_HIPRI = 1, RWF_DSYNC = 2, RWF_SYNC = 4, RWF_NOWAIT = 8, RWF_APPEND = 16, }
    /// Page protection; PROT_NONE is 0.
    Flags Prot { PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4, PROT_GROWSDOWN = 0x0100_0000, PROT_GROWSUP = 0x0200_0000, }
    /// mmap(2).
    Flags MapFlags {
        MAP_SHARED_VALIDATE = 3, MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20, MAP_32BIT = 0x40,
        MAP_GROWSDOWN = 0x100, MAP_DENYWRITE = 0x800, MAP_EXECUTABLE = 0x1000, MAP_LOCKED = 0x2000,
        MAP_NORESERVE = 0x4000, MAP_POPULATE = 0x8000, MAP_NONBLOCK = 0x10000, MAP_STACK = 0x20000,
        MAP_HUGETLB = 0x40000, MAP_SYNC = 0x80000, MAP_FIXED_NOREPLACE = 0x10_0000,
    }
    /// mremap(2).
    Flags RemapFlags { MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2, MREMAP_DONTUNMAP = 4, }
    /// msync(2).
    Flags SyncFlags { MS_ASYNC = 1, MS_INVALIDATE = 2, MS_SYNC = 4, }
    /// madvise(2).
    Value Advice {
        MADV_NORMAL = 0, MADV_RANDOM = 1, MADV_SEQUENTIAL = 2, MADV_WILLNEED = 3, MADV_DONTNEED = 4,
        MADV_FREE = 8, MADV_REMOVE = 9, MADV_DONTFORK = 10, MADV_DOFORK = 11, MADV_HUGEPAGE = 14,
        MADV_NOHUGEPAGE = 15, MADV_DONTDUMP = 16, MADV_DODUMP = 17, MADV_WIPEONFORK = 18,
        MADV_KEEPONFORK = 19, MADV_COLD = 20, MADV_PAGEOUT = 21, MADV_POPULATE_READ = 22, MADV_POPULATE_WRITE = 23, MADV_GUARD_INSTALL = 102, MADV_GUARD_REMOVE = 103,
    }
    /// posix_fadvise(2).
    Value Fadvice {
        POSIX_FADV_NORMAL = 0, POSIX_FADV_RANDOM = 1, POSIX_FADV_SEQUENTIAL = 2,
        POSIX_FADV_WILLNEED = 3, POSIX_FADV_DONTNEED = 4, POSIX_FADV_NOREUSE = 5,
    }
    /// lseek(2).
    Value Whence { SEEK_SET = 0, SEEK_CUR = 1, SEEK_END = 2, SEEK_DATA = 3, SEEK_HOLE = 4, }
    /// fcntl(2).
    Value FcntlCmd {
        F_DUPFD = 0, F_GETFD = 1, F_SETFD = 2, F_GETFL = 3, F_SETFL = 4, F_GETLK = 5, F_SETLK = 6, F_SETLKW = 7,
        F_SETOWN = 8, F_GETOWN = 9, F_SETSIG = 10, F_GETSIG = 11, F_SETOWN_EX = 15, F_GETOWN_EX = 16,
        F_OFD_GETLK = 36, F_OFD_SETLK = 37, F_OFD_SETLKW = 38,
        F_SETLEASE = 1024, F_GETLEASE = 1025, F_NOTIFY = 1026, F_DUPFD_CLOEXEC = 1030, F_SETPIPE_SZ = 1031,
        F_GETPIPE_SZ = 1032, F_ADD_SEALS = 1033, F_GET_SEALS = 1034, F_CREATED_QUERY = 1028,
    }
    /// flock(2).
    Flags LockOp { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8, }
    /// ioctl(2) requests that programs commonly make.
    Value IoctlRequest {
        TCGETS = 0x5401, TCSETS = 0x5402, TCSETSW = 0x5403, TCSETSF = 0x5404, TCSBRK = 0x5409, TCXONC = 0x540a,
        TCFLSH = 0x540b, TCSBRKP = 0x5425, TIOCSCTTY = 0x540e, TIOCGPGRP = 0x540f, TIOCSPGRP = 0x5410, TIOCOUTQ = 0x5411,
        TIOCGWINSZ = 0x5413, TIOCSWINSZ = 0x5414, TIOCSTI = 0x5412, TIOCPKT = 0x5420, TIOCGPKT = 0x8004_5438, FIONREAD = 0x541b, FIONBIO = 0x5421, TIOCNOTTY = 0x5422,
        TIOCGSID = 0x5429, TIOCGPTN = 0x8004_5430, TIOCSPTLCK = 0x4004_5431, TIOCGPTLCK = 0x8004_5439, TIOCGPTPEER = 0x5441, FIONCLEX = 0x5450, FIOCLEX = 0x5451, FIOASYNC = 0x5452,
        TCGETA = 0x5405, TCSETA = 0x5406, TCSETAW = 0x5407, TCSETAF = 0x5408, TIOCEXCL = 0x540c, TIOCNXCL = 0x540d, TIOCGEXCL = 0x8004_5440,
        TIOCGSOFTCAR = 0x5419, TIOCSSOFTCAR = 0x541a, TIOCSETD = 0x5423, TIOCGETD = 0x5424, TIOCSBRK = 0x5427, TIOCCBRK = 0x5428,
        TCGETS2 = 0x802c_542a, TCSETS2 = 0x402c_542b, TCSETSW2 = 0x402c_542c, TCSETSF2 = 0x402c_542d, TIOCGDEV = 0x8004_5432, TIOCSIG = 0x4004_5436,
        FICLONE = 0x4004_9409, FICLONERANGE = 0x4020_940d, FIDEDUPERANGE = 0xc018_9436,
        TIOCGLCKTRMIOS = 0x5456, FIOQSIZE = 0x5460, FIGETBSZ = 2, FS_IOC_GETFLAGS = 0x8008_6601, FS_IOC32_GETFLAGS = 0x8004_6601,
        FS_IOC_GETVERSION = 0x8008_7601, FS_IOC32_GETVERSION = 0x8004_7601, SIOCATMARK = 0x8905,
        SIOCGIFCONF = 0x8912, SIOCGIFFLAGS = 0x8913, SIOCGIFADDR = 0x8915, SIOCGIFINDEX = 0x8933,
    }
    /// The clocks of clock_gettime(2).
    Value Clock {
        CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, CLOCK_PROCESS_CPUTIME_ID = 2, CLOCK_THREAD_CPUTIME_ID = 3,
        CLOCK_MONOTONIC_RAW = 4, CLOCK_REALTIME_COARSE = 5, CLOCK_MONOTONIC_COARSE = 6, CLOCK_BOOTTIME = 7,
        CLOCK_REALTIME_ALARM = 8, CLOCK_BOOTTIME_ALARM = 9, CLOCK_TAI = 11,
    }
    /// clock_nanosleep(2), timer_settime(2).
    Flags TimerFlags { TIMER_ABSTIME = 1, }
    /// timerfd_create(2).
    Flags TimerfdFlags { TFD_NONBLOCK = 0o4000, TFD_CLOEXEC = 0o2_000_000, }
    /// timerfd_settime(2).
    Flags TimerfdSetFlags { TFD_TIMER_ABSTIME = 1, TFD_TIMER_CANCEL_ON_SET = 2, }
    /// eventfd2(2).
    Flags EventfdFlags { EFD_SEMAPHORE = 1, EFD_NONBLOCK = 0o4000, EFD_CLOEXEC = 0o2_000_000, }
    /// epoll_create1(2).
    Flags EpollFlags { EPOLL_CLOEXEC = 0o2_000_000, }
    /// epoll_ctl(2).
    Value EpollOp { EPOLL_CTL_ADD = 1, EPOLL_CTL_DEL = 2, EPOLL_CTL_MOD = 3, }
    /// signalfd4(2).
    Flags SignalfdFlags { SFD_NONBLOCK = 0o4000, SFD_CLOEXEC = 0o2_000_000, }
    /// inotify_init1(2).
    Flags InotifyFlags { IN_NONBLOCK = 0o4000, IN_CLOEXEC = 0o2_000_000, }
    /// memfd_create(2).
    Flags MemfdFlags { MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, MFD_HUGETLB = 4, MFD_NOEXEC_SEAL = 8, MFD_EXEC = 16, }
    /// socket(2): address families.
    Value SocketDomain { AF_UNSPEC = 0, AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17, }
    /// socket(2): the type with its flags.
    Flags SocketType {
        SOCK_SEQPACKET = 5, SOCK_RDM = 4, SOCK_RAW = 3, SOCK_DGRAM = 2, SOCK_STREAM = 1, SOCK_NONBLOCK = 0o4000, SOCK_CLOEXEC = 0o2_000_000,
    }
    /// accept4(2).
    Flags AcceptFlags { SOCK_NONBLOCK = 0o4000, SOCK_CLOEXEC = 0o2_000_000, }
    /// shutdown(2).
    Value ShutdownHow { SHUT_RD = 0, SHUT_WR = 1, SHUT_RDWR = 2, }
    /// send(2), recv(2).
    Flags MsgFlags {
        MSG_OOB = 1, MSG_PEEK = 2, MSG_DONTROUTE = 4, MSG_CTRUNC = 8, MSG_TRUNC = 0x20, MSG_DONTWAIT = 0x40,
        MSG_EOR = 0x80, MSG_WAITALL = 0x100, MSG_CONFIRM = 0x800, MSG_ERRQUEUE = 0x2000, MSG_NOSIGNAL = 0x4000,
        MSG_MORE = 0x8000, MSG_WAITFORONE = 0x10000, MSG_CMSG_CLOEXEC = 0x4000_0000,
    }
    /// Levels of getsockopt(2).
    Value SockLevel {
        SOL_IP = 0, SOL_SOCKET = 1, SOL_TCP = 6, SOL_UDP = 17, SOL_IPV6 = 41,
    }
    /// Options at SOL_SOCKET.
    Value SockOption {
        SO_DEBUG = 1, SO_REUSEADDR = 2, SO_TYPE = 3, SO_ERROR = 4, SO_DONTROUTE = 5, SO_BROADCAST = 6, SO_SNDBUF = 7, SO_RCVBUF = 8,
        SO_KEEPALIVE = 9, SO_OOBINLINE = 10, SO_PRIORITY = 12, SO_LINGER = 13, SO_REUSEPORT = 15, SO_PASSCRED = 16, SO_PEERCRED = 17,
        SO_RCVLOWAT = 18, SO_SNDLOWAT = 19, SO_RCVTIMEO = 20, SO_SNDTIMEO = 21, SO_ACCEPTCONN = 30, SO_PROTOCOL = 38, SO_DOMAIN = 39,
    }
    /// futex(2): the operation with its flags.
    Value FutexOp {
        FUTEX_WAIT = 0, FUTEX_WAKE = 1, FUTEX_REQUEUE = 3, FUTEX_CMP_REQUEUE = 4, FUTEX_WAKE_OP = 5,
        FUTEX_LOCK_PI = 6, FUTEX_UNLOCK_PI = 7, FUTEX_TRYLOCK_PI = 8, FUTEX_WAIT_BITSET = 9, FUTEX_WAKE_BITSET = 10,
        FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129, FUTEX_REQUEUE_PRIVATE = 131, FUTEX_CMP_REQUEUE_PRIVATE = 132,
        FUTEX_WAKE_OP_PRIVATE = 133, FUTEX_WAIT_BITSET_PRIVATE = 137, FUTEX_WAKE_BITSET_PRIVATE = 138,
        FUTEX_WAIT_BITSET_PRIVATE_CLOCK_REALTIME = 393,
    }
    /// prctl(2).
    Value PrctlOp {
        PR_SET_PDEATHSIG = 1, PR_GET_PDEATHSIG = 2, PR_GET_DUMPABLE = 3, PR_SET_DUMPABLE = 4, PR_SET_NAME = 15, PR_GET_NAME = 16, PR_GET_SECCOMP = 21,
        PR_GET_KEEPCAPS = 7, PR_SET_KEEPCAPS = 8, PR_CAPBSET_DROP = 24, PR_GET_SECUREBITS = 27, PR_SET_SECUREBITS = 28, PR_CAP_AMBIENT = 47,
        PR_SET_SECCOMP = 22, PR_CAPBSET_READ = 23, PR_SET_TIMERSLACK = 29, PR_GET_TIMERSLACK = 30, PR_SET_CHILD_SUBREAPER = 36, PR_GET_CHILD_SUBREAPER = 37,
        PR_SET_NO_NEW_PRIVS = 38, PR_GET_NO_NEW_PRIVS = 39, PR_SET_VMA = 0x5356_4d41,
    }
    /// The limits of getrlimit(2).
    Value Resource {
        RLIMIT_CPU = 0, RLIMIT_FSIZE = 1, RLIMIT_DATA = 2, RLIMIT_STACK = 3, RLIMIT_CORE = 4, RLIMIT_RSS = 5,
        RLIMIT_NPROC = 6, RLIMIT_NOFILE = 7, RLIMIT_MEMLOCK = 8, RLIMIT_AS = 9, RLIMIT_LOCKS = 10,
        RLIMIT_SIGPENDING = 11, RLIMIT_MSGQUEUE = 12, RLIMIT_NICE = 13, RLIMIT_RTPRIO = 14, RLIMIT_RTTIME = 15,
    }
    /// getrusage(2): RUSAGE_CHILDREN is -1.
    Value RusageWho { RUSAGE_SELF = 0, RUSAGE_THREAD = 1, RUSAGE_CHILDREN = 0xffff_ffff, }
    /// clone(2); the low byte is the exit signal.
    Flags CloneFlags {
        CLONE_VM = 0x100, CLONE_FS = 0x200, CLONE_FILES = 0x400, CLONE_SIGHAND = 0x800, CLONE_PIDFD = 0x1000,
        CLONE_PTRACE = 0x2000, CLONE_VFORK = 0x4000, CLONE_PARENT = 0x8000, CLONE_THREAD = 0x10000,
        CLONE_NEWNS = 0x20000, CLONE_SYSVSEM = 0x40000, CLONE_SETTLS = 0x80000, CLONE_PARENT_SETTID = 0x10_0000,
        CLONE_CHILD_CLEARTID = 0x20_0000, CLONE_DETACHED = 0x40_0000, CLONE_CHILD_SETTID = 0x100_0000,
        CLONE_NEWCGROUP = 0x200_0000, CLONE_NEWUTS = 0x400_0000, CLONE_NEWIPC = 0x800_0000,
        CLONE_NEWUSER = 0x1000_0000, CLONE_NEWPID = 0x2000_0000, CLONE_NEWNET = 0x4000_0000, SIGCHLD = 17,
    }
    /// spawn: the caller's next call waits for the child.
    Flags SpawnFlags { LIND_SPAWN_WAITS = 1, }
    /// wait4(2), waitid(2).
    Flags WaitFlags {
        WNOHANG = 1, WUNTRACED = 2, WEXITED = 4, WCONTINUED = 8, WNOWAIT = 0x100_0000, __WNOTHREAD = 0x2000_0000,
        __WALL = 0x4000_0000, __WCLONE = 0x8000_0000,
    }
    /// rt_sigprocmask(2).
    Value SigmaskHow { SIG_BLOCK = 0, SIG_UNBLOCK = 1, SIG_SETMASK = 2, }
    /// getrandom(2).
    Flags RandomFlags { GRND_NONBLOCK = 1, GRND_RANDOM = 2, GRND_INSECURE = 4, }
    /// splice(2), tee(2).
    Flags SpliceFlags { SPLICE_F_MOVE = 1, SPLICE_F_NONBLOCK = 2, SPLICE_F_MORE = 4, SPLICE_F_GIFT = 8, }
    /// copy_data_between_cages: what is copied.
    Value CopyKind { COPY_BYTES = 0, COPY_STRING = 1, COPY_TIMED = 2, }
    /// steer: what a replaying grate does to its client.
    Value Steer { STEER_ASK = 0, STEER_INTERRUPT = 1, STEER_PLAN = 2, STEER_CHILD = 3, STEER_END = 4, }
    /// Events of poll(2), in a struct pollfd.
    Flags PollEvents {
        POLLIN = 1, POLLPRI = 2, POLLOUT = 4, POLLERR = 8, POLLHUP = 16, POLLNVAL = 32, POLLRDNORM = 64,
        POLLRDBAND = 128, POLLWRNORM = 256, POLLWRBAND = 512, POLLMSG = 1024, POLLRDHUP = 8192,
    }
    /// Events of epoll(7), in a struct epoll_event.
    Flags EpollEvents {
        EPOLLIN = 1, EPOLLPRI = 2, EPOLLOUT = 4, EPOLLERR = 8, EPOLLHUP = 16, EPOLLRDNORM = 64,
        EPOLLRDBAND = 128, EPOLLWRNORM = 256, EPOLLWRBAND = 512, EPOLLMSG = 1024, EPOLLRDHUP = 8192,
        EPOLLEXCLUSIVE = 0x1000_0000, EPOLLWAKEUP = 0x2000_0000, EPOLLONESHOT = 0x4000_0000, EPOLLET = 0x8000_0000,
    }
    /// Signals.
    Value Signals {
        SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8,
        SIGKILL = 9, SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15,
        SIGSTKFLT = 16, SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22,
        SIGURG = 23, SIGXCPU = 24, SIGXFSZ = 25, SIGVTALRM = 26, SIGPROF = 27, SIGWINCH = 28, SIGIO = 29,
        SIGPWR = 30, SIGSYS = 31,
    }
    /// The file type in a mode.
    Value FileType {
        S_IFIFO = 0o010_000, S_IFCHR = 0o020_000, S_IFDIR = 0o040_000, S_IFBLK = 0o060_000,
        S_IFREG = 0o100_000, S_IFLNK = 0o120_000, S_IFSOCK = 0o140_000,
    }
}
