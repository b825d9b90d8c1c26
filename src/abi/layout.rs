//! The structs that cross between guest and kernel.
//!
//! Most are laid out exactly as the x86-64 kernel lays them out, so that host calls fill guest
//! memory directly. Those marked *guest* contain pointers or longs and so have a layout of their
//! own (32-bit words); the kernel translates them. Sizes and offsets are asserted here and, by
//! generated C, against the sysroot's headers.

use crate::types::HasLayout;

/// A struct's name and size, for the generators.
#[derive(Debug)]
pub struct Layout {
    /// The C name without `struct`.
    pub name: &'static str,
    /// Size in bytes.
    pub size: usize,
}

/// A field's place, for the generated assertions.
#[derive(Debug)]
pub struct Field {
    /// The C field.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// A struct with its fields.
#[derive(Debug)]
pub struct Struct {
    /// Name and size.
    pub layout: &'static Layout,
    /// The C type to assert against (`struct stat`); empty if libc has no public name for it.
    pub c_type: &'static str,
    /// The header.
    pub header: &'static str,
    /// The fields.
    pub fields: &'static [Field],
}

macro_rules! structs {
    ($(
        $(#[$doc:meta])*
        $name:ident $cname:literal, $ctype:literal in $header:literal = $size:literal $(packed $packed:literal)? {
            $($field:ident: $ty:ty $(as $cfield:literal)?,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[repr(C $(, packed($packed))?)]
            #[derive(Clone, Copy)]
            #[allow(missing_docs)]
            pub struct $name { $(pub $field: $ty,)* }

            const _: () = assert!(size_of::<$name>() == $size);

            impl HasLayout for $name {
                const LAYOUT: &'static Layout = &Layout { name: $cname, size: $size };
            }

            impl Default for $name {
                fn default() -> Self {
                    Self { $($field: Zero::ZERO,)* }
                }
            }

            impl Zero for $name {
                const ZERO: Self = Self { $($field: <$ty as Zero>::ZERO,)* };
            }
        )*

        /// Every struct, for the generators.
        pub const STRUCTS: &[Struct] = &[$(
            Struct {
                layout: <$name as HasLayout>::LAYOUT,
                c_type: $ctype,
                header: $header,
                fields: &[$(Field {
                    name: structs!(@name $field $($cfield)?),
                    offset: core::mem::offset_of!($name, $field),
                    size: size_of::<$ty>(),
                },)*],
            },
        )*];
    };
    (@name $field:ident $cfield:literal) => { $cfield };
    (@name $field:ident) => { stringify!($field) };
}

/// All bits zero. Every struct here is valid that way.
pub trait Zero {
    /// The value.
    const ZERO: Self;
}
macro_rules! zero {
    ($($ty:ty)*) => {$(impl Zero for $ty { const ZERO: Self = 0; })*};
}
zero!(u8 i8 u16 i16 u32 i32 u64 i64);
impl<T: Zero, const N: usize> Zero for [T; N] {
    const ZERO: Self = [T::ZERO; N];
}

structs! {
    /// time(2)'s result and the parts of a time.
    Timespec "timespec", "struct timespec" in "time.h" = 16 { sec: i64 as "tv_sec", nsec: i64 as "", }
    Timeval "timeval", "struct timeval" in "sys/time.h" = 16 { sec: i64 as "tv_sec", usec: i64 as "tv_usec", }
    Timezone "timezone", "struct timezone" in "sys/time.h" = 8 { minuteswest: i32 as "tz_minuteswest", dsttime: i32 as "tz_dsttime", }
    Itimerspec "itimerspec", "struct itimerspec" in "time.h" = 32 { interval: Timespec as "it_interval", value: Timespec as "it_value", }
    Itimerval "itimerval", "struct itimerval" in "sys/time.h" = 32 { interval: Timeval as "it_interval", value: Timeval as "it_value", }
    Utimbuf "utimbuf", "struct utimbuf" in "utime.h" = 16 { actime: i64, modtime: i64, }
    /// times(2). libc's struct has 32-bit clock_t: libc converts.
    Tms "kernel_tms", "" in "" = 32 { utime: i64, stime: i64, cutime: i64, cstime: i64, }
    Stat "stat", "struct stat" in "sys/stat.h" = 144 {
        dev: u64 as "st_dev", ino: u64 as "st_ino", nlink: u64 as "", mode: u32 as "st_mode", uid: u32 as "st_uid", gid: u32 as "st_gid",
        pad: u32 as "", rdev: u64 as "st_rdev", size: i64 as "st_size", blksize: i64 as "", blocks: i64 as "st_blocks",
        atime: Timespec as "st_atim", mtime: Timespec as "st_mtim", ctime: Timespec as "st_ctim", unused: [i64; 3] as "",
    }
    StatxTimestamp "statx_timestamp", "" in "" = 16 { sec: i64, nsec: u32, pad: i32, }
    Statx "statx", "" in "" = 256 {
        mask: u32, blksize: u32, attributes: u64, nlink: u32, uid: u32, gid: u32, mode: u16, pad: u16, ino: u64, size: u64,
        blocks: u64, attributes_mask: u64, atime: StatxTimestamp, btime: StatxTimestamp, ctime: StatxTimestamp,
        mtime: StatxTimestamp, rdev_major: u32, rdev_minor: u32, dev_major: u32, dev_minor: u32, mnt_id: u64,
        dio_mem_align: u32, dio_offset_align: u32, spare: [u64; 12],
    }
    Statfs "statfs", "struct statfs" in "sys/vfs.h" = 120 {
        kind: i64 as "", bsize: i64 as "", blocks: u64 as "f_blocks", bfree: u64 as "f_bfree", bavail: u64 as "f_bavail",
        files: u64 as "f_files", ffree: u64 as "f_ffree", fsid: [i32; 2] as "f_fsid", namelen: i64 as "",
        frsize: i64 as "", flags: i64 as "", spare: [i64; 4] as "",
    }
    /// The head of a directory entry; the name follows at offset 19.
    Dirent64 "dirent64", "" in "" = 24 { ino: u64, off: i64, reclen: u16, kind: u8, name: [u8; 5], }
    /// openat2(2), its first version.
    OpenHow "open_how", "struct open_how" in "linux/openat2.h" = 24 { flags: u64, mode: u64, resolve: u64, }
    /// clone3(2), its third version.
    CloneArgs "clone_args", "struct clone_args" in "linux/sched.h" = 88 {
        flags: u64, pidfd: u64, child_tid: u64, parent_tid: u64, exit_signal: u64, stack: u64, stack_size: u64, tls: u64,
        set_tid: u64, set_tid_size: u64, cgroup: u64,
    }
    /// fcntl(2) record locks.
    Flock "flock", "struct flock" in "fcntl.h" = 32 {
        kind: i16 as "l_type", whence: i16 as "l_whence", pad: u32 as "", start: i64 as "l_start", len: i64 as "l_len", pid: i32 as "l_pid", pad2: u32 as "",
    }
    FOwnerEx "f_owner_ex", "struct f_owner_ex" in "fcntl.h" = 8 { kind: i32 as "type", pid: i32, }
    /// *guest*: readv(2).
    Iovec "iovec", "struct iovec" in "sys/uio.h" = 8 { base: u32 as "iov_base", len: u32 as "iov_len", }
    /// *guest*: sendmsg(2). Control messages inside have x86-64's layout (64-bit length, 8-byte
    /// alignment).
    Msghdr "msghdr", "struct msghdr" in "sys/socket.h" = 28 {
        name: u32 as "msg_name", namelen: u32 as "msg_namelen", iov: u32 as "msg_iov", iovlen: u32 as "msg_iovlen",
        control: u32 as "msg_control", controllen: u32 as "msg_controllen", flags: i32 as "msg_flags",
    }
    /// *guest*: sendmmsg(2).
    Mmsghdr "mmsghdr", "struct mmsghdr" in "sys/socket.h" = 32 { hdr: Msghdr as "msg_hdr", len: u32 as "msg_len", }
    /// A control message's head.
    Cmsghdr "cmsghdr", "struct cmsghdr" in "sys/socket.h" = 16 { len: u64 as "", level: i32 as "cmsg_level", kind: i32 as "cmsg_type", }
    Ucred "ucred", "struct ucred" in "sys/socket.h" = 12 { pid: i32, uid: u32, gid: u32, }
    Linger "linger", "struct linger" in "sys/socket.h" = 8 { onoff: i32 as "l_onoff", linger: i32 as "l_linger", }
    /// Any socket address: family and bytes.
    Sockaddr "sockaddr", "struct sockaddr_storage" in "sys/socket.h" = 128 { family: u16 as "ss_family", data: [u8; 126] as "", }
    Pollfd "pollfd", "struct pollfd" in "poll.h" = 8 { fd: i32, events: i16, revents: i16, }
    EpollEvent "epoll_event", "struct epoll_event" in "sys/epoll.h" = 12 packed 1 { events: u32, data: u64, }
    /// select(2): 1024 bits.
    FdSet "fd_set", "fd_set" in "sys/select.h" = 128 { bits: [u32; 32] as "fds_bits", }
    /// The sixth argument of pselect6(2), in 64-bit words as libc passes it.
    SigsetArg "sigset_arg", "" in "" = 16 { set: u64, size: u64, }
    Rlimit "rlimit", "struct rlimit" in "sys/resource.h" = 16 { cur: u64 as "rlim_cur", max: u64 as "rlim_max", }
    /// getrusage(2) as the kernel writes it; libc converts to its own longs.
    Rusage "kernel_rusage", "" in "" = 144 { utime: Timeval, stime: Timeval, counts: [i64; 14], }
    /// sysinfo(2) as the kernel writes it; libc converts.
    Sysinfo "kernel_sysinfo", "" in "" = 112 {
        uptime: i64, loads: [u64; 3], totalram: u64, freeram: u64, sharedram: u64, bufferram: u64, totalswap: u64,
        freeswap: u64, procs: u16, pad: u16, pad2: u32, totalhigh: u64, freehigh: u64, mem_unit: u32, pad3: u32,
    }
    Utsname "utsname", "struct utsname" in "sys/utsname.h" = 390 {
        sysname: [u8; 65], nodename: [u8; 65], release: [u8; 65], version: [u8; 65], machine: [u8; 65], domainname: [u8; 65],
    }
    /// A signal set: bit n-1 is signal n.
    Sigset "kernel_sigset", "" in "" = 8 { bits: u64, }
    /// *guest*: rt_sigaction(2) as libc passes it.
    Sigaction "ksigaction", "" in "" = 20 { handler: u32, flags: u32, restorer: u32, mask: [u32; 2], }
    /// siginfo_t, in the guest's layout: the union starts at offset 12.
    Siginfo "siginfo", "siginfo_t" in "signal.h" = 128 { signo: i32 as "si_signo", errno: i32 as "si_errno", code: i32 as "si_code", fields: [u32; 29] as "", }
    /// *guest*: timer_create(2) as libc passes it.
    Sigevent "ksigevent", "" in "" = 16 { value: u32, signo: i32, notify: i32, tid: i32, }
    /// *guest*: sigaltstack(2).
    Stack "stack_t", "stack_t" in "signal.h" = 12 { sp: u32 as "ss_sp", flags: i32 as "ss_flags", size: u32 as "ss_size", }
    Termios "kernel_termios", "" in "" = 36 { iflag: u32, oflag: u32, cflag: u32, lflag: u32, line: u8, cc: [u8; 19], }
    Winsize "winsize", "struct winsize" in "sys/ioctl.h" = 8 { row: u16 as "ws_row", col: u16 as "ws_col", xpixel: u16 as "ws_xpixel", ypixel: u16 as "ws_ypixel", }
    /// *guest*: the owner and permissions of an object of ipc(2).
    IpcPerm "ipc_perm", "struct ipc_perm" in "sys/ipc.h" = 48 {
        key: i32 as "", uid: u32, gid: u32, cuid: u32, cgid: u32, mode: u32, seq: i32 as "", pad: [u32; 5] as "",
    }
    /// *guest*: shmctl(2).
    ShmidDs "shmid_ds", "struct shmid_ds" in "sys/shm.h" = 112 {
        perm: IpcPerm as "shm_perm", segsz: u32 as "shm_segsz", pad: u32 as "", atime: i64 as "shm_atime", dtime: i64 as "shm_dtime",
        ctime: i64 as "shm_ctime", cpid: i32 as "shm_cpid", lpid: i32 as "shm_lpid", nattch: u32 as "shm_nattch", pad2: [u32; 5] as "",
    }
    /// *guest*: semctl(2).
    SemidDs "semid_ds", "struct semid_ds" in "sys/sem.h" = 104 {
        perm: IpcPerm as "sem_perm", otime: i64 as "sem_otime", pad: i64 as "", ctime: i64 as "sem_ctime", pad2: i64 as "",
        nsems: u16 as "sem_nsems", pad3: [u16; 11] as "",
    }
    /// semop(2).
    Sembuf "sembuf", "struct sembuf" in "sys/sem.h" = 6 { num: u16 as "sem_num", op: i16 as "sem_op", flg: i16 as "sem_flg", }
    /// *guest*: msgctl(2).
    MsqidDs "msqid_ds", "struct msqid_ds" in "sys/msg.h" = 120 {
        perm: IpcPerm as "msg_perm", stime: i64 as "msg_stime", rtime: i64 as "msg_rtime", ctime: i64 as "msg_ctime",
        cbytes: u32 as "", pad: u32 as "", qnum: u32 as "msg_qnum", pad2: u32 as "", qbytes: u32 as "msg_qbytes", pad3: u32 as "",
        lspid: i32 as "msg_lspid", lrpid: i32 as "msg_lrpid", pad4: [u32; 4] as "",
    }
    /// mq_open(2) as libc passes it.
    MqAttr "kernel_mq_attr", "" in "" = 64 { flags: i64, maxmsg: i64, msgsize: i64, curmsgs: i64, reserved: [i64; 4], }
    /// *guest*: robust futex lists.
    RobustList "robust_list_head", "" in "" = 12 { list: u32, offset: i32, pending: u32, }
    /// One handler given to `spawn`.
    SpawnHandler "lind_spawn_handler", "struct lind_spawn_handler" in "lind/raw.h" = 8 { nr: u32, entry: u32, }
    /// One argument of a call as a grate sees it.
    LindArg "lind_arg", "struct lind_arg" in "lind/raw.h" = 16 { value: u64, cage: u64, }
    /// A call as a grate's handler sees it.
    LindCall "lind_call", "struct lind_call" in "lind/raw.h" = 120 { nr: u32, pad: u32 as "", caller: u64, target: u64, args: [LindArg; 6], }
    /// The routes of calls on descriptors, for `route_fds`.
    LindFdRoutes "lind_fd_routes", "struct lind_fd_routes" in "lind/clients.h" = 96 { words: u64, count: u32, mask: u32, unset: u64, set: u64, numbers: [u64; 8], }
    /// A handler writes this behind the call it was given, and returns `ANSWER`, to have data
    /// copied for it.
    LindAnswer "lind_answer", "struct lind_answer" in "lind/raw.h" = 56 { result: i64, to: u64, cage: u64, from: u64, length: u64, release: u64, part: u64, }
}
