//! stat(2) and its kind, of places in our trees.

use std::os::fd::AsFd;

use lind_abi::flags::{AccessFlags, AccessMode};
use lind_abi::layout::{Stat, Statfs, Statx, StatxTimestamp, Timespec};
use lind_abi::{Errno, Out, Result};

use super::{Place, What, cgroup};
use crate::cage::{REAL, capability};
use crate::call::Ctx;
use crate::host;
use crate::root::devices::TTY;
use crate::terminal;

/// The device numbers of our trees: block-less file systems have major 0, and the host gives out
/// minors from below.
pub(super) const PROC_DEVICE: u64 = 0xfff0_00fe;
pub(super) const DEV_DEVICE: u64 = 0xfff0_00ff;
pub(super) const SYS_DEVICE: u64 = 0xfff0_00fd;
pub(super) const SHM_DEVICE: u64 = 0xfff0_00fc;
pub(super) const PTS_DEVICE: u64 = 0xfff0_00fb;
pub(super) const CGROUP_DEVICE: u64 = 0xfff0_00fa;

const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;

impl Place {
    /// The number of the file: made from its path, which no other place has.
    pub(super) fn inode(&self) -> u64 {
        hash(&self.path())
    }

    /// The inode number of the entry `name` in it.
    pub(super) fn inode_of(&self, name: &[u8]) -> u64 {
        hash(&[&self.path()[..], b"/", name].concat())
    }

    /// Calls `act` with the host's file behind it, if there is one.
    fn host_file<T>(
        &self,
        cx: &Ctx<'_>,
        act: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.node().entry.what {
            What::Device(index) => cx.kernel.root.devices().node(index).ok_or(Errno::ENOENT).and_then(act).map(Some),
            What::Controlling => cx.kernel.root.devices().node(TTY).ok_or(Errno::ENOENT).and_then(act).map(Some),
            What::Console => act(terminal::console(cx).ok_or(Errno::ENOENT)?.host()).map(Some),
            What::Multiplexer => cx.kernel.root.devices().multiplexer().ok_or(Errno::ENOENT).and_then(act).map(Some),
            What::Terminal => act(terminal::slave_file(cx.kernel, self.node().number)?.as_fd()).map(Some),
            What::Memory => {
                let (_, file) = self.memory(cx).ok_or(Errno::ENOENT)?;
                act(file.host()).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn attributes(&self, cx: &Ctx<'_>) -> Result<Stat> {
        let subject = self.subject(cx)?;
        let node = self.node();
        let kind = if node.is_directory() {
            S_IFDIR
        } else if node.is_link() {
            S_IFLNK
        } else {
            S_IFREG
        };
        let (uid, gid) = match &subject.cage {
            Some(cage) => {
                let credentials = &cage.settings().credentials;
                (credentials.uid[1], credentials.gid[1])
            }
            None => (0, 0),
        };
        let mode = match node.entry.what {
            What::Descriptor => super::process::descriptor_mode(&*self.descriptor(cx)?),
            _ => node.entry.mode,
        };
        let born = subject.cage.as_ref().and_then(|cage| cx.kernel.cages.born(cage.id));
        let time = real_time(born.unwrap_or(cx.kernel.born));
        Ok(Stat {
            dev: self.device(),
            ino: self.inode(),
            nlink: if node.is_directory() { 2 } else { 1 },
            mode: kind | mode,
            uid,
            gid,
            blksize: 1024,
            atime: time,
            mtime: time,
            ctime: time,
            ..Stat::default()
        })
    }

    fn device(&self) -> u64 {
        match (self.0[0].entry.name, self.0.get(1).map(|node| &node.entry.what)) {
            ("sys", _) if self.0.get(2).is_some_and(|node| node.entry.name == cgroup::TOP.name) => CGROUP_DEVICE,
            ("proc", _) => PROC_DEVICE,
            ("sys", _) => SYS_DEVICE,
            (_, Some(What::Shared)) => SHM_DEVICE,
            (_, Some(What::Terminals)) => PTS_DEVICE,
            _ => DEV_DEVICE,
        }
    }
}

/// stat(2) of the place itself: a link is not followed.
///
/// # Errors
/// ENOENT, EFAULT.
pub(crate) fn stat(cx: &Ctx<'_>, place: &Place, buf: Out<Stat>) -> Result<()> {
    match place.host_file(cx, |file| host::fs::fstat(file, cx.output_of(buf)?))? {
        Some(()) => Ok(()),
        None => cx.store(buf, &place.attributes(cx)?),
    }
}

/// statx(2), as `stat`.
///
/// # Errors
/// As for `stat`.
pub(crate) fn statx(cx: &Ctx<'_>, place: &Place, mask: u32, buf: Out<Statx>) -> Result<()> {
    const AT_EMPTY_PATH: u32 = 0x1000;
    const BASIC: u32 = 0x7ff;
    let of_host =
        |file: std::os::fd::BorrowedFd<'_>| host::fs::statx(file, c"", AT_EMPTY_PATH, mask, cx.output_of(buf)?);
    if place.host_file(cx, of_host)?.is_some() {
        return Ok(());
    }
    let stat = place.attributes(cx)?;
    let time = |time: Timespec| StatxTimestamp { sec: time.sec, nsec: u32::try_from(time.nsec).unwrap_or(0), pad: 0 };
    let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
    let statx = Statx {
        mask: BASIC,
        blksize: 1024,
        nlink: low(stat.nlink),
        uid: stat.uid,
        gid: stat.gid,
        mode: u16::try_from(stat.mode).unwrap_or(0),
        ino: stat.ino,
        atime: time(stat.atime),
        ctime: time(stat.ctime),
        mtime: time(stat.mtime),
        dev_major: low(rustix::fs::major(stat.dev).into()),
        dev_minor: low(rustix::fs::minor(stat.dev).into()),
        ..Statx::default()
    };
    cx.store(buf, &statx)
}

/// access(2), by the real or effective ids.
///
/// # Errors
/// EACCES, ENOENT.
pub(crate) fn access(cx: &Ctx<'_>, place: &Place, mode: AccessMode, flags: u32) -> Result<()> {
    const AT_EMPTY_PATH: u32 = 0x1000;
    if place.host_file(cx, |file| host::fs::access(file, c"", mode.0, flags | AT_EMPTY_PATH))?.is_some() {
        return Ok(());
    }
    let attributes = place.attributes(cx)?;
    let own = cx.cage.settings().credentials.clone();
    let by_effective = flags & AccessFlags::AT_EACCESS != 0;
    let user = if by_effective { own.fsuid } else { own.uid[REAL] };
    let overrides = own.can(capability::DAC_OVERRIDE) && (by_effective || user == 0);
    let granted = if overrides {
        // Root may do everything, except execute a file without any execute bit, or search a file
        // that is not a directory.
        0o6 | u32::from(attributes.mode & 0o111 != 0)
    } else if attributes.uid == user {
        attributes.mode >> 6
    } else if own.in_group(attributes.gid) {
        attributes.mode >> 3
    } else {
        attributes.mode
    };
    if mode.0 & !granted & 7 == 0 { Ok(()) } else { Err(Errno::EACCES) }
}

/// statfs(2)
///
/// # Errors
/// EFAULT.
pub(crate) fn statfs(cx: &Ctx<'_>, place: &Place, buf: Out<Statfs>) -> Result<()> {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    const DEVPTS_SUPER_MAGIC: i64 = 0x1cd1;
    const SYSFS_MAGIC: i64 = 0x6265_6572;
    const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    if let Some((_, file)) = place.memory(cx) {
        return host::fs::statfs(file.host().as_fd(), cx.output_of(buf)?);
    }
    let kind = match place.device() {
        PROC_DEVICE => PROC_SUPER_MAGIC,
        SYS_DEVICE => SYSFS_MAGIC,
        CGROUP_DEVICE => CGROUP2_SUPER_MAGIC,
        PTS_DEVICE => DEVPTS_SUPER_MAGIC,
        _ => TMPFS_MAGIC,
    };
    cx.store(buf, &Statfs { kind, bsize: 4096, namelen: 255, frsize: 4096, ..Statfs::default() })
}

/// A time since the machine started, as a time of day.
fn real_time(born: Timespec) -> Timespec {
    let now = host::clock::gettime(libc::CLOCK_REALTIME).unwrap_or_default();
    let up = host::clock::gettime(libc::CLOCK_BOOTTIME).unwrap_or_default();
    let nsec = now.nsec - up.nsec + born.nsec;
    Timespec { sec: now.sec - up.sec + born.sec + nsec.div_euclid(1_000_000_000), nsec: nsec.rem_euclid(1_000_000_000) }
}

/// FNV-1a; never 0.
fn hash(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash.max(2)
}
