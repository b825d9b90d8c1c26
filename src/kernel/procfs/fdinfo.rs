//! The text of /proc/PID/fdinfo/N about an open file.

use std::fmt::Write;

use lind_abi::flags::EpollEvents;
use lind_abi::{Errno, Result};
use rustix::fs::OFlags;

use super::Subject;
use crate::fd::{FileRef, Interests, Kind, Watches};
use crate::host;

pub(super) fn descriptor_info(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let number = i32::try_from(subject.number).map_err(|_| Errno::ENOENT)?;
    let table = &subject.cage()?.fds;
    let file = table.get(number).map_err(|_| Errno::ENOENT)?;
    let cloexec = table.cloexec(number).map_err(|_| Errno::ENOENT)?;
    let flags = rustix::fs::fcntl_getfl(file.host()).map_err(host::errno)?.bits();
    let flags = flags | if cloexec { OFlags::CLOEXEC.bits() } else { 0 };
    let position = rustix::fs::tell(file.host()).unwrap_or(0);
    let inode = rustix::fs::fstat(file.host()).map_or(0, |stat| stat.st_ino);
    let mut text = format!("pos:\t{position}\nflags:\t0{flags:o}\nmnt_id:\t1\nino:\t{inode}\n");
    match &file.kind {
        Kind::Epoll(interests) => of_epoll(&mut text, interests),
        Kind::Signalfd(listener) => {
            let _ = writeln!(text, "sigmask:\t{:016x}", listener.mask());
        }
        Kind::Process(id) => {
            // An ended process of which only the end was waited for.
            let id = subject.cx.kernel.cages.get(*id).map_or(-1, |cage| i64::from(cage.id.0));
            let _ = writeln!(text, "Pid:\t{id}\nNSpid:\t{id}");
        }
        Kind::Inotify(watches) => of_inotify(&mut text, watches),
        Kind::Host => of_timer(&mut text, &file),
        _ => {}
    }
    Ok(text.into_bytes())
}

/// The events that an epoll instance waits for without being asked.
const ALWAYS: u32 = EpollEvents::EPOLLERR | EpollEvents::EPOLLHUP;

/// The lines for the registrations of an epoll instance.
fn of_epoll(text: &mut String, interests: &Interests) {
    for (number, wanted, target) in interests.list() {
        let stat = rustix::fs::fstat(target.host()).ok();
        let (inode, device) = stat.map_or((0, 0), |stat| (stat.st_ino, stat.st_dev));
        let position = rustix::fs::tell(target.host()).unwrap_or(0);
        let (events, data, device) = (wanted.events | ALWAYS, wanted.data, shown(device));
        let _ = writeln!(
            text,
            "tfd: {number:8} events: {events:8x} data: {data:16x}  pos:{position} ino:{inode:x} sdev:{device:x}"
        );
    }
}

/// The watches of an inotify instance. The host's file handles are left out: guests must not have
/// them.
fn of_inotify(text: &mut String, watches: &Watches) {
    for (number, watch) in watches.list() {
        let (inode, device, mask) = (watch.inode, shown(watch.device), watch.mask);
        let _ = writeln!(text, "inotify wd:{number:x} ino:{inode:x} sdev:{device:x} mask:{mask:x} ignored_mask:0 ");
    }
}

/// A device number as the kernel prints it; that of stat(2) has another order of bits.
fn shown(device: u64) -> u64 {
    (u64::from(rustix::fs::major(device)) << 20) | u64::from(rustix::fs::minor(device))
}

/// When a timer comes next; nothing of any other file.
fn of_timer(text: &mut String, file: &FileRef) {
    let Ok(timer) = rustix::time::timerfd_gettime(file.host()) else { return };
    for (name, time) in [("it_value", timer.it_value), ("it_interval", timer.it_interval)] {
        let _ = writeln!(text, "{name}: ({}, {})", time.tv_sec, time.tv_nsec);
    }
}
