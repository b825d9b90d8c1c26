//! A guard over files: a policy that lets clients read and change only some.

use std::path::{Component, Path, PathBuf};

use crate::raw::{Handler, RawGuard};

/// A policy about files that [`guard!`](crate::guard!) declares.
pub struct Guard {
    #[doc(hidden)]
    pub raw: RawGuard,
    #[doc(hidden)]
    pub handlers: &'static [Handler],
}

/// The handlers of the C SDK, by the kinds of calls.
#[doc(hidden)]
pub mod handlers {
    macro_rules! handlers {
    ($($(#[$attr:meta])* $name:ident $of:ident)*) => {$(
        $(#[$attr])*
        #[doc(hidden)]
        pub extern "C" fn $name(call: &lind_abi::layout::LindCall) -> i64 {
            crate::raw::$of(call)
        }
    )*};
}
    handlers! {
        path lind_guard_path
        exec lind_guard_exec
        fd lind_guard_fd
        bind lind_guard_bind
        receive lind_guard_receive
    }
}

/// Whether a path, which is resolved, is `top` or below it. `.`, `..` and double slashes in `top`
/// have no effect, nor has a slash at its end; symbolic links in it are not followed.
///
/// # Panics
/// If `top` does not begin with a slash: such a policy would let everything pass.
///
/// ```
/// use std::path::Path;
///
/// use lind_grate::below;
///
/// assert!(below(Path::new("/home/me/.ssh/id"), "/home/me/.ssh"));
/// assert!(!below(Path::new("/home/me/.sshx"), "/home/me/.ssh"));
/// ```
pub fn below(path: &Path, top: impl AsRef<Path>) -> bool {
    let top = top.as_ref();
    assert!(top.has_root(), "below: the path {top:?} must begin with /");
    if top.components().any(|part| part == Component::ParentDir) {
        return path.starts_with(without_parents(top));
    }
    path.starts_with(top)
}

/// The path with each `..` and the name before it removed.
fn without_parents(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    clean
}

/// Declares a policy about files. The grate says which paths may be read or changed; every call
/// that reads or changes a file is handled, by path, by descriptor or by address, and so are the
/// ways in which descriptors reach a client without a path. Paths are resolved by the kernel: they
/// begin with a slash and have no links in them, and the call is made on what was found.
///
/// ```no_run
/// use std::path::Path;
///
/// use lind_grate::prelude::*;
///
/// fn may_read(path: &Path) -> bool {
///     !below(path, "/home/me/.ssh")
/// }
///
/// guard!(static GUARD = { may_read: may_read });
///
/// fn main() {
///     GrateBuilder::new("Nobody reads my keys.").guard(&GUARD).run()
/// }
/// ```
///
/// A file that may not be read is EACCES; it also gets no other name. Attributes and the texts of
/// links can be seen. A policy about changes has `may_change`, which is told what would happen to
/// the path (a sum of [`effect`](crate::abi::paths::effect)), and the errno for clients:
///
/// ```no_run
/// use std::path::Path;
///
/// use lind_grate::prelude::*;
///
/// fn may_change(path: &Path, _effect: u16) -> bool {
///     below(path, "/tmp")
/// }
///
/// guard!(static GUARD = { may_change: may_change, refusal: Errno::EROFS });
/// # fn main() {}
/// ```
///
/// A policy with both has `may_read`, `may_change` and `refusal`, in this order.
#[macro_export]
macro_rules! guard {
    ($(#[$attr:meta])* $vis:vis static $guard:ident = { may_read: $read:path $(,)? }) => {
        $(#[$attr])*
        $vis static $guard: $crate::Guard = $crate::guard!(@guard
            Some($crate::guard!(@read $read)), None, $crate::Errno::EACCES);
        $crate::guard!(@manifest execve execveat spawn);
    };
    ($(#[$attr:meta])* $vis:vis static $guard:ident = {
        may_read: $read:path, may_change: $change:path, refusal: $refusal:expr $(,)?
    }) => {
        $(#[$attr])*
        $vis static $guard: $crate::Guard = $crate::guard!(@guard
            Some($crate::guard!(@read $read)), Some($crate::guard!(@change $change)), $refusal);
        $crate::guard!(@manifest execve execveat spawn);
    };
    ($(#[$attr:meta])* $vis:vis static $guard:ident = { may_change: $change:path, refusal: $refusal:expr $(,)? }) => {
        $(#[$attr])*
        $vis static $guard: $crate::Guard = $crate::guard!(@guard
            None, Some($crate::guard!(@change $change)), $refusal);
        $crate::guard!(@manifest);
    };
    (@guard $read:expr, $change:expr, $refusal:expr) => {
        $crate::Guard {
            raw: $crate::private::RawGuard {
                may_read: $read,
                may_change: $change,
                take: None,
                refusal: $refusal.raw(),
                may_move_all_in: None,
                why: None,
                keeps_given: false,
            },
            handlers: &HANDLERS_OF_GUARD,
        }
    };
    (@read $read:path) => {{
        extern "C" fn lind_reads_(path: $crate::private::CText) -> bool {
            $read(path.path())
        }
        lind_reads_
    }};
    (@change $change:path) => {{
        extern "C" fn lind_changes_(path: $crate::private::CText, effect: ::std::ffi::c_uint) -> bool {
            $change(path.path(), effect as u16)
        }
        lind_changes_
    }};
    (@manifest $($exec:ident)*) => {
        $crate::each_guarded_call_!(guard_calls_ $($exec)*);
    };
}

/// Hands the calls of a guard to `$then`: by path, by descriptor, the rest, and those that execute.
#[doc(hidden)]
#[macro_export]
macro_rules! each_guarded_call_ {
    ($then:ident $($exec:ident)*) => {
        $crate::$then! {
            path: open openat openat2 creat truncate mkdir mkdirat mknod mknodat symlink symlinkat link linkat rename
                renameat renameat2 unlink unlinkat rmdir chmod fchmodat fchmodat2 chown lchown fchownat utime utimes
                futimesat utimensat setxattr lsetxattr removexattr lremovexattr chroot pivot_root mount umount2
                open_tree move_mount fspick mount_setattr swapon swapoff acct quotactl access faccessat faccessat2;
            fd: ftruncate fallocate fchmod fchown fsetxattr fremovexattr;
            bind: bind;
            receive: recvmsg recvmmsg;
            exec: $($exec)*;
        }
    };
}

/// Makes the list of handlers and the manifest of a guard.
#[doc(hidden)]
#[macro_export]
macro_rules! guard_calls_ {
    ($($kind:ident: $($name:ident)*;)*) => {
        static HANDLERS_OF_GUARD: [$crate::private::Handler; [$($(stringify!($name),)*)*].len()] = [
            $($($crate::guard_calls_!(@one $kind $name),)*)*
        ];
        $($($crate::manifest_!("alters ", stringify!($name));)*)*
    };
    (@one $kind:ident $name:ident) => {
        $crate::private::Handler { nr: $crate::calls::$name::NR, handle: $crate::private::guarded::$kind }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use lind_abi::nr;
    use lind_abi::paths::{FILE_USES, effect};

    use crate::{Errno, below};

    fn in_tmp(path: &Path) -> bool {
        below(path, "/tmp")
    }

    fn changes_in_tmp(path: &Path, _: u16) -> bool {
        below(path, "/tmp")
    }

    guard!(static BOTH = { may_read: in_tmp, may_change: changes_in_tmp, refusal: Errno::EROFS });

    #[test]
    fn a_path_may_be_written_in_other_ways() {
        for top in ["/a/b", "/a/b/", "//a/./b", "/a/c/../b", "/../a/b", "/x/../../a/b/."] {
            assert!(below(Path::new("/a/b"), top), "{top}");
            assert!(below(Path::new("/a/b/c"), top), "{top}");
            assert!(!below(Path::new("/a/bc"), top), "{top}");
            assert!(!below(Path::new("/a"), top), "{top}");
        }
        assert!(below(Path::new("/a"), "/b/.."));
    }

    #[test]
    #[should_panic(expected = "must begin with /")]
    fn a_path_that_is_relative_ends_the_grate() {
        below(Path::new("/a"), "a");
    }

    #[test]
    fn every_call_that_changes_a_file_is_guarded() {
        let guarded: BTreeSet<u32> = BOTH.handlers.iter().map(|handler| handler.nr).collect();
        assert_eq!(guarded.len(), BOTH.handlers.len(), "a call is listed twice");
        let paths = FILE_USES.iter().filter(|call| {
            let by_path = call.paths.iter().any(|path| path.effect & !(effect::READ | effect::EXEC) != 0);
            let by_fd = call.paths.is_empty() && call.fds.iter().any(|does| does & (effect::WRITE | effect::META) != 0);
            by_path || by_fd
        });
        let wanted: BTreeSet<u32> = paths
            .map(|call| call.row().nr)
            // chroot(2) changes no file; without a handler for it the kernel would refuse it.
            .chain([nr::chroot, nr::access, nr::faccessat, nr::faccessat2, nr::bind, nr::recvmsg, nr::recvmmsg])
            .chain([nr::execve, nr::execveat, nr::spawn])
            .collect();
        assert_eq!(guarded, wanted);
    }
}
