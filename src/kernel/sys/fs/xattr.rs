//! Extended attributes: xattr(7), as far as they belong to users.
//!
//! The host keeps them, for files inside the root. `user.*` and POSIX access lists can be read and
//! changed; attributes of the host's security modules and administrators do not exist for guests.

use std::ffi::CStr;

use lind_abi::{Errno, Fd, In, Len, Out, Path, Result, Str};
use rustix::fs::OFlags;

use crate::call::{Ctx, PathBytes};
use crate::fd::Kind;
use crate::host::xattr as host;
use crate::mem::HostRange;
use crate::procfs::Reached;
use crate::root::Last;
use crate::root::table::Dir;

/// XATTR_SIZE_MAX and XATTR_LIST_MAX
const LONGEST: u64 = 65536;
/// XATTR_NAME_MAX
const LONGEST_NAME: usize = 255;
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

/// setxattr(2)
pub(crate) fn setxattr(cx: &Ctx<'_>, path: Path, name: Str, value: In<u8>, len: Len, flags: i32) -> Result<()> {
    set(cx, &Of::Path(path, Last::Follow), name, value, len, flags)
}

/// lsetxattr(2)
pub(crate) fn lsetxattr(cx: &Ctx<'_>, path: Path, name: Str, value: In<u8>, len: Len, flags: i32) -> Result<()> {
    set(cx, &Of::Path(path, Last::NoFollow), name, value, len, flags)
}

/// fsetxattr(2)
pub(crate) fn fsetxattr(cx: &Ctx<'_>, fd: Fd, name: Str, value: In<u8>, len: Len, flags: i32) -> Result<()> {
    set(cx, &Of::Open(fd), name, value, len, flags)
}

/// getxattr(2)
pub(crate) fn getxattr(cx: &Ctx<'_>, path: Path, name: Str, value: Out<u8>, len: Len) -> Result<usize> {
    get(cx, &Of::Path(path, Last::Follow), name, value, len)
}

/// lgetxattr(2)
pub(crate) fn lgetxattr(cx: &Ctx<'_>, path: Path, name: Str, value: Out<u8>, len: Len) -> Result<usize> {
    get(cx, &Of::Path(path, Last::NoFollow), name, value, len)
}

/// fgetxattr(2)
pub(crate) fn fgetxattr(cx: &Ctx<'_>, fd: Fd, name: Str, value: Out<u8>, len: Len) -> Result<usize> {
    get(cx, &Of::Open(fd), name, value, len)
}

/// listxattr(2)
pub(crate) fn listxattr(cx: &Ctx<'_>, path: Path, list: Out<u8>, len: Len) -> Result<usize> {
    names(cx, &Of::Path(path, Last::Follow), list, len)
}

/// llistxattr(2)
pub(crate) fn llistxattr(cx: &Ctx<'_>, path: Path, list: Out<u8>, len: Len) -> Result<usize> {
    names(cx, &Of::Path(path, Last::NoFollow), list, len)
}

/// flistxattr(2)
pub(crate) fn flistxattr(cx: &Ctx<'_>, fd: Fd, list: Out<u8>, len: Len) -> Result<usize> {
    names(cx, &Of::Open(fd), list, len)
}

/// removexattr(2)
pub(crate) fn removexattr(cx: &Ctx<'_>, path: Path, name: Str) -> Result<()> {
    remove(cx, &Of::Path(path, Last::Follow), name)
}

/// lremovexattr(2)
pub(crate) fn lremovexattr(cx: &Ctx<'_>, path: Path, name: Str) -> Result<()> {
    remove(cx, &Of::Path(path, Last::NoFollow), name)
}

/// fremovexattr(2)
pub(crate) fn fremovexattr(cx: &Ctx<'_>, fd: Fd, name: Str) -> Result<()> {
    remove(cx, &Of::Open(fd), name)
}

/// The file whose attributes are meant.
enum Of {
    Path(Path, Last),
    Open(Fd),
}

fn set(cx: &Ctx<'_>, of: &Of, name: Str, value: In<u8>, len: Len, flags: i32) -> Result<()> {
    if flags & !(XATTR_CREATE | XATTR_REPLACE) != 0 {
        return Err(Errno::EINVAL);
    }
    let mut buf = PathBytes::default();
    let name = spelled(cx, name, &mut buf)?;
    if len.0 > LONGEST {
        return Err(Errno::E2BIG);
    }
    let value = cx.input(value, len)?;
    check_name(name, Errno::EPERM)?;
    on(cx, of, true, |file| host::set(file, name, value, flags))
}

fn get(cx: &Ctx<'_>, of: &Of, name: Str, value: Out<u8>, len: Len) -> Result<usize> {
    let mut buf = PathBytes::default();
    let name = spelled(cx, name, &mut buf)?;
    let value = cx.output(value, Len(len.0.min(LONGEST)))?;
    on(cx, of, false, |file| {
        check_name(name, Errno::ENODATA)?;
        host::get(file, name, value)
    })
}

fn names(cx: &Ctx<'_>, of: &Of, list: Out<u8>, len: Len) -> Result<usize> {
    let list: HostRange<'_> = cx.output(list, Len(len.0.min(LONGEST)))?;
    on(cx, of, false, |file| host::list(file, list))
}

fn remove(cx: &Ctx<'_>, of: &Of, name: Str) -> Result<()> {
    let mut buf = PathBytes::default();
    let name = spelled(cx, name, &mut buf)?;
    check_name(name, Errno::EPERM)?;
    on(cx, of, true, |file| host::remove(file, name))
}

fn spelled<'b>(cx: &Ctx<'_>, name: Str, buf: &'b mut PathBytes) -> Result<&'b CStr> {
    let name =
        cx.string(name, buf).map_err(|errno| if errno == Errno::ENAMETOOLONG { Errno::ERANGE } else { errno })?;
    if name.is_empty() || name.count_bytes() > LONGEST_NAME { Err(Errno::ERANGE) } else { Ok(name) }
}

/// Checks that a name is for guests. Other names of the host's fail with `otherwise`, as names kept
/// from users do.
fn check_name(name: &CStr, otherwise: Errno) -> Result<()> {
    let name = name.to_bytes();
    if matches!(name, b"system.posix_acl_access" | b"system.posix_acl_default") {
        return Ok(());
    }
    match name.strip_prefix(b"user.") {
        Some(b"") => Err(Errno::EINVAL),
        Some(_) => Ok(()),
        None if name.starts_with(b"security.") || name.starts_with(b"trusted.") => Err(otherwise),
        None => Err(Errno::EOPNOTSUPP),
    }
}

fn on<T>(cx: &Ctx<'_>, of: &Of, changes: bool, mut act: impl FnMut(host::File<'_>) -> Result<T>) -> Result<T> {
    match of {
        Of::Open(fd) => {
            let file = cx.file(*fd)?;
            match file.kind {
                Kind::Pseudo(_) => Err(Errno::EOPNOTSUPP),
                Kind::Named(mount) => {
                    if changes {
                        cx.kernel.root.check_attributes(mount)?;
                    }
                    act(host::File::Open(file.host()))
                }
                // A file that was handed in stays as it is.
                _ if changes => Err(Errno::EPERM),
                _ => act(host::File::Open(file.host())),
            }
        }
        Of::Path(path, last) => {
            let mut buf = PathBytes::default();
            let path = cx.path(*path, &mut buf)?;
            let root = &cx.kernel.root;
            let nofollow = if *last == Last::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
            let act = std::cell::RefCell::new(&mut act);
            let again = |file: Dir<'_>| {
                if changes {
                    root.check_attributes(file.mount)?;
                }
                root.again(file.fd, |links, name| (act.borrow_mut())(host::File::Named(links, name)))
            };
            let on_host = |dir: Dir<'_>, path: &CStr| {
                let file = root.open(dir, path, (OFlags::PATH | nofollow).bits(), 0)?;
                again(file.dir())
            };
            cx.act(cx.here(), path, *last, on_host, |reached| match reached {
                Reached::File(file) if matches!(file.kind, Kind::Named(_)) => again(file.dir()),
                Reached::Missing(..) => Err(Errno::ENOENT),
                _ => Err(Errno::EOPNOTSUPP),
            })
        }
    }
}
