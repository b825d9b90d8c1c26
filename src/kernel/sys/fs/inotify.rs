//! inotify(7): the host watches open files, which are passed by descriptor, not by name.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use lind_abi::flags::InotifyFlags;
use lind_abi::{Errno, Fd, NewFd, Path, Result};
use rustix::fs::{FileType, OFlags};

use crate::call::{Ctx, PathBytes};
use crate::fd::{File, Kind, Watch, Watches};
use crate::host::inotify as host;
use crate::procfs::Reached;
use crate::root::Last;
use crate::root::table::Dir;

const IN_ONLYDIR: u32 = 0x0100_0000;
const IN_DONT_FOLLOW: u32 = 0x0200_0000;
const IN_MASK_ADD: u32 = 0x2000_0000;

/// inotify_init(2)
pub(crate) fn inotify_init(cx: &Ctx<'_>) -> Result<NewFd> {
    inotify_init1(cx, InotifyFlags(0))
}

/// inotify_init1(2)
pub(crate) fn inotify_init1(cx: &Ctx<'_>, flags: InotifyFlags) -> Result<NewFd> {
    if flags.beyond(InotifyFlags::IN_NONBLOCK | InotifyFlags::IN_CLOEXEC) {
        return Err(Errno::EINVAL);
    }
    let host = host::init(flags.0 | InotifyFlags::IN_CLOEXEC)?;
    let file = File::new(host, Kind::Inotify(Watches::default()));
    cx.cage.fds.add(file, flags.has(InotifyFlags::IN_CLOEXEC)).map(NewFd)
}

/// inotify_add_watch(2). Files in /proc or /dev cannot be watched (EACCES), except for open files,
/// by their links there.
pub(crate) fn inotify_add_watch(cx: &Ctx<'_>, fd: Fd, path: Path, mask: u32) -> Result<i32> {
    let watcher = cx.file(fd)?;
    let mut buf = PathBytes::default();
    let path = cx.path(path, &mut buf)?;
    let root = &cx.kernel.root;
    let last = if mask & IN_DONT_FOLLOW != 0 { Last::NoFollow } else { Last::Follow };
    let nofollow = if last == Last::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let only = if mask & IN_ONLYDIR != 0 { OFlags::DIRECTORY } else { OFlags::empty() };
    let mask = mask & !(IN_ONLYDIR | IN_DONT_FOLLOW);
    let watch = |file: BorrowedFd<'_>| {
        let number = root.again(file, |links, name| host::add(watcher.host(), links, name, mask))?;
        if let (Kind::Inotify(watches), Ok(st)) = (&watcher.kind, rustix::fs::fstat(file)) {
            watches.put(number, Watch { inode: st.st_ino, device: st.st_dev, mask }, mask & IN_MASK_ADD != 0);
        }
        Ok(number)
    };
    let on_host =
        |dir: Dir<'_>, path: &CStr| watch(root.open(dir, path, (OFlags::PATH | nofollow | only).bits(), 0)?.as_fd());
    cx.act(cx.here(), path, last, on_host, |reached| match reached {
        Reached::File(file) if matches!(file.kind, Kind::Named(_)) || is_regular(&file) => watch(file.host()),
        Reached::Missing(..) => Err(Errno::ENOENT),
        _ => Err(Errno::EACCES),
    })
}

/// Whether it is a file of memory, or was handed in: the names in a directory that was handed in
/// are not shown to the guest.
fn is_regular(file: &File) -> bool {
    matches!(file.kind, Kind::Host)
        && rustix::fs::fstat(file.host()).is_ok_and(|st| FileType::from_raw_mode(st.st_mode) == FileType::RegularFile)
}

/// inotify_rm_watch(2)
pub(crate) fn inotify_rm_watch(cx: &Ctx<'_>, fd: Fd, watch: i32) -> Result<()> {
    let watcher = cx.file(fd)?;
    host::remove(watcher.host(), watch)?;
    if let Kind::Inotify(watches) = &watcher.kind {
        watches.remove(watch);
    }
    Ok(())
}
