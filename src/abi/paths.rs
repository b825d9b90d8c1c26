//! The effects of system calls on the files that their paths, descriptors and addresses name.
//!
//! The table of calls says which arguments are paths and which directories they start at; this
//! module says, once per path, what happens there. Policies about files use this table, so that
//! they cannot forget a call: every row with a path is listed here, and so is every row that
//! changes a file through a descriptor. The tests fail for a missing one.

use crate::{Kind, SYSCALLS, Syscall, syscall_named};

/// Effects of a call on the file that a path or descriptor names; several are combined by `|`.
pub mod effect {
    /// Reads it or about it, or works in it.
    pub const READ: u16 = 1;
    /// Changes contents or length.
    pub const WRITE: u16 = 2;
    /// Makes a name.
    pub const CREATE: u16 = 4;
    /// Removes a name, or moves it.
    pub const REMOVE: u16 = 8;
    /// Changes mode, owner, times or attributes.
    pub const META: u16 = 16;
    /// Executes it.
    pub const EXEC: u16 = 32;
    /// Gives an existing file another name.
    pub const LINK: u16 = 64;
    /// The effect depends on the flags of open(2): READ, WRITE, CREATE.
    pub const OPEN: u16 = 128;
    /// Changes what is mounted, or the root: for administrators.
    pub const MOUNT: u16 = 256;
    /// Carries data into it, which a descriptor must have been opened for.
    pub const DATA: u16 = 512;
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A final symbolic link is followed.
    Follow,
    /// A final symbolic link is not followed.
    Stay,
    /// It is followed unless AT_SYMLINK_NOFOLLOW is among the flags.
    UnlessAt,
    /// It is followed if AT_SYMLINK_FOLLOW is among the flags.
    IfAt,
    /// As open(2): not with O_NOFOLLOW, nor with O_CREAT and O_EXCL.
    Open,
    /// Unless IN_DONT_FOLLOW is in the mask of inotify_add_watch(2).
    Watch,
    /// The path is not looked up: it is the text of a symbolic link.
    Text,
}

/// The use that a call makes of one path.
#[derive(Clone, Copy, Debug)]
pub struct PathUse {
    /// A sum of [`effect`]s.
    pub effect: u16,
    /// The end of the path.
    pub end: End,
}

/// The effects of a call on files.
#[derive(Clone, Copy, Debug)]
pub struct FileUse {
    /// The call.
    pub name: &'static str,
    /// Its paths, in order.
    pub paths: &'static [PathUse],
    /// The effects through each of its descriptor arguments, in order, without the directories at
    /// which paths start.
    pub fds: &'static [u16],
    /// The place of the argument that is, or points to, a socket address that may be a path.
    pub address: Option<usize>,
}

/// The positions of the arguments of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// The directory; none if paths start at the working directory.
    pub dir: Option<usize>,
    /// The path.
    pub path: usize,
    /// The flags that `End` refers to.
    pub flags: Option<usize>,
}

impl FileUse {
    /// The row of the call.
    pub fn row(&self) -> &'static Syscall {
        syscall_named(self.name).expect("the tests look every name up")
    }

    /// The positions of the arguments for each path, in order: the directory's, if it has one, and
    /// the path's.
    pub fn places(&self) -> impl Iterator<Item = (Places, PathUse)> + '_ {
        let args = self.row().args;
        let paths = args.iter().enumerate().filter(|(_, (_, kind))| matches!(kind, Kind::Path)).map(|(at, _)| at);
        let flags = args.iter().position(|(name, kind)| match kind {
            Kind::Flags(_) => *name == "flags",
            _ => *name == "mask" && self.name == "inotify_add_watch",
        });
        // symlinkat(target, dir, path): the directory is the second path's.
        paths.zip(self.paths).map(move |(path, &used)| {
            let dir = path.checked_sub(1).filter(|&before| matches!(args[before].1, Kind::DirFd));
            (Places { dir, path, flags }, used)
        })
    }

    /// The descriptor arguments at which no path starts, with the effects through them.
    pub fn descriptors(&self) -> impl Iterator<Item = (usize, u16)> + '_ {
        let args = self.row().args;
        let fds = args.iter().enumerate().filter(|(_, (_, kind))| matches!(kind, Kind::Fd)).map(|(at, _)| at);
        fds.zip(self.fds.iter().copied())
    }
}

macro_rules! uses {
    ($($name:ident $([$($effect:ident)|+ , $end:ident])* $(fd $($fd:ident)|+)* $(address $address:literal)?;)*) => {
        /// Every call that takes a path, changes a file through a descriptor, or takes an address,
        /// by name.
        pub static FILE_USES: &[FileUse] = &[$(FileUse {
            name: stringify!($name),
            paths: &[$(PathUse { effect: $(effect::$effect)|+, end: End::$end }),*],
            fds: &[$($(effect::$fd)|+),*],
            address: first(&[$($address)?]),
        }),*];
    };
}

const fn first(list: &[usize]) -> Option<usize> {
    if list.is_empty() { None } else { Some(list[0]) }
}

uses! {
    open [OPEN, Open];
    openat [OPEN, Open];
    openat2 [OPEN, Open];
    creat [OPEN, Follow];
    stat [READ, Follow];
    lstat [READ, Stay];
    newfstatat [READ, UnlessAt];
    statx [READ, UnlessAt];
    access [READ, Follow];
    faccessat [READ, Follow];
    faccessat2 [READ, UnlessAt];
    statfs [READ, Follow];
    readlink [READ, Stay];
    readlinkat [READ, Stay];
    chdir [READ, Follow];
    getxattr [READ, Follow];
    lgetxattr [READ, Stay];
    listxattr [READ, Follow];
    llistxattr [READ, Stay];
    inotify_add_watch [READ, Watch] fd READ;
    name_to_handle_at [READ, IfAt];
    fanotify_mark [READ, Follow] fd READ;

    truncate [WRITE, Follow];
    mkdir [CREATE, Stay];
    mkdirat [CREATE, Stay];
    mknod [CREATE, Stay];
    mknodat [CREATE, Stay];
    symlink [READ, Text] [CREATE, Stay];
    symlinkat [READ, Text] [CREATE, Stay];
    link [LINK, Stay] [CREATE, Stay];
    linkat [LINK, IfAt] [CREATE, Stay];
    rename [REMOVE, Stay] [CREATE | REMOVE, Stay];
    renameat [REMOVE, Stay] [CREATE | REMOVE, Stay];
    renameat2 [REMOVE, Stay] [CREATE | REMOVE, Stay];
    unlink [REMOVE, Stay];
    unlinkat [REMOVE, Stay];
    rmdir [REMOVE, Stay];
    chmod [META, Follow];
    fchmodat [META, Follow];
    fchmodat2 [META, UnlessAt];
    chown [META, Follow];
    lchown [META, Stay];
    fchownat [META, UnlessAt];
    utime [META, Follow];
    utimes [META, Follow];
    futimesat [META, Follow];
    utimensat [META, UnlessAt];
    setxattr [META, Follow];
    lsetxattr [META, Stay];
    removexattr [META, Follow];
    lremovexattr [META, Stay];

    chroot [READ, Follow];

    execve [EXEC, Follow];
    execveat [EXEC, UnlessAt];
    spawn [EXEC, Follow];
    uselib [EXEC, Follow];

    pivot_root [MOUNT, Follow] [MOUNT, Follow];
    mount [MOUNT, Follow] [MOUNT, Follow];
    umount2 [MOUNT, Follow];
    open_tree [MOUNT, Follow];
    move_mount [MOUNT, Follow] [MOUNT, Follow];
    fspick [MOUNT, Follow];
    mount_setattr [MOUNT, Follow];
    swapon [MOUNT, Follow];
    swapoff [MOUNT, Follow];
    acct [MOUNT, Follow];
    quotactl [MOUNT, Follow];
    quotactl_fd fd MOUNT;
    open_by_handle_at fd OPEN;

    ftruncate fd WRITE;
    fallocate fd WRITE;
    fchmod fd META;
    fchown fd META;
    fsetxattr fd META;
    fremovexattr fd META;
    write fd DATA;
    pwrite64 fd DATA;
    writev fd DATA;
    pwritev fd DATA;
    pwritev2 fd DATA;
    sendfile fd DATA fd READ;
    splice fd READ fd DATA;
    tee fd READ fd DATA;
    vmsplice fd DATA;
    copy_file_range fd READ fd DATA;
    ioctl fd DATA;
    fcntl fd READ;
    mmap fd OPEN;

    bind fd CREATE address 1;
    connect fd READ address 1;
    sendto fd READ address 4;
    sendmsg fd READ address 1;
    sendmmsg fd READ address 1;
}

/// Descriptor arguments of calls that change no file: they read, wait, close or duplicate it, or
/// concern sockets, timers and processes.
pub static HARMLESS: &[&str] = &[
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "close",
    "fstat",
    "fstatfs",
    "lseek",
    "getdents64",
    "getdents",
    "dup",
    "dup2",
    "dup3",
    "give_fd",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync_file_range",
    "flock",
    "fchdir",
    "readahead",
    "fadvise64",
    "fgetxattr",
    "flistxattr",
    "inotify_rm_watch",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_ctl",
    "timerfd_settime",
    "timerfd_gettime",
    "accept",
    "accept4",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "shutdown",
    "listen",
    "getsockname",
    "getpeername",
    "setsockopt",
    "getsockopt",
    "mq_timedsend",
    "mq_timedreceive",
    "mq_notify",
    "mq_getsetattr",
    "signalfd",
    "signalfd4",
    "perf_event_open",
    "setns",
    "finit_module",
    "kexec_file_load",
    "pidfd_send_signal",
    "io_uring_enter",
    "io_uring_register",
    "fsconfig",
    "fsmount",
    "pidfd_getfd",
    "process_madvise",
    "landlock_add_rule",
    "landlock_restrict_self",
    "process_mrelease",
    "cachestat",
];

/// Whether the kernel has the call.
pub fn is_implemented(used: &FileUse) -> bool {
    SYSCALLS.iter().any(|row| row.name == used.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    use crate::MISSING;

    fn used(name: &str) -> Option<&'static FileUse> {
        FILE_USES.iter().find(|used| used.name == name)
    }

    fn count(row: &Syscall, what: impl Fn(&Kind) -> bool) -> usize {
        row.args.iter().filter(|(_, kind)| what(kind)).count()
    }

    #[test]
    fn every_path_is_classified() {
        for row in SYSCALLS.iter().chain(MISSING) {
            let paths = count(row, |kind| matches!(kind, Kind::Path));
            assert_eq!(
                used(row.name).map_or(0, |used| used.paths.len()),
                paths,
                "{}: its paths are not in FILE_USES",
                row.name
            );
        }
    }

    #[test]
    fn every_descriptor_is_classified() {
        for row in SYSCALLS.iter().chain(MISSING) {
            let fds = count(row, |kind| matches!(kind, Kind::Fd));
            let said = used(row.name).map_or(0, |used| used.fds.len());
            let harmless = HARMLESS.contains(&row.name);
            assert!(!(harmless && said > 0), "{}: in both lists", row.name);
            assert!(fds == said || harmless && said == 0, "{}: its descriptors are in neither list", row.name);
        }
    }

    #[test]
    fn every_address_is_classified() {
        for row in SYSCALLS.iter().chain(MISSING) {
            let given = row.args.iter().position(|(_, kind)| match kind {
                Kind::In(layout) => matches!(layout.name, "sockaddr" | "msghdr"),
                Kind::InOut(layout) => layout.name == "mmsghdr" && row.name.starts_with("send"),
                _ => false,
            });
            assert_eq!(used(row.name).and_then(|used| used.address), given, "{}: its address", row.name);
        }
    }

    #[test]
    fn every_name_is_a_call_and_stands_once() {
        for (at, used) in FILE_USES.iter().enumerate() {
            assert!(syscall_named(used.name).is_some(), "{}: no such call", used.name);
            assert!(FILE_USES[..at].iter().all(|before| before.name != used.name), "{}: twice", used.name);
        }
        assert!(HARMLESS.iter().all(|name| syscall_named(name).is_some()));
    }

    #[test]
    fn directories_and_flags_are_found() {
        let at =
            |name: &str| used(name).expect("listed").places().map(|(places, _)| places).collect::<std::vec::Vec<_>>();
        assert_eq!(at("openat"), [Places { dir: Some(0), path: 1, flags: Some(2) }]);
        assert_eq!(at("open"), [Places { dir: None, path: 0, flags: Some(1) }]);
        assert_eq!(at("linkat")[1], Places { dir: Some(2), path: 3, flags: Some(4) });
        assert_eq!(at("symlinkat")[0].dir, None);
        assert_eq!(at("symlinkat")[1], Places { dir: Some(1), path: 2, flags: None });
        assert_eq!(at("statx"), [Places { dir: Some(0), path: 1, flags: Some(2) }]);
        assert_eq!(at("faccessat2")[0].flags, Some(3));
        assert_eq!(at("inotify_add_watch"), [Places { dir: None, path: 1, flags: Some(2) }]);
        assert_eq!(at("execve")[0].flags, None);
    }

    #[test]
    fn whoever_needs_flags_has_them() {
        for used in FILE_USES {
            for (places, path) in used.places() {
                let needs = matches!(path.end, End::UnlessAt | End::IfAt | End::Open | End::Watch);
                // openat2's are in a struct.
                assert!(!needs || places.flags.is_some() || used.name == "openat2", "{}: no flags", used.name);
            }
        }
    }
}
