//! The walls around this process, put up before any guest code runs.
//!
//! The engine and the kernel crate keep guests apart. These walls are behind them: should a guest
//! break out of its memory, the process that it then controls has no files but those of the guest's
//! root and, for reading, the code cache, no privileges worth having, and few system calls. Modules
//! are compiled in a process of its own, behind its own walls.

mod compiler;
mod files;
mod seccomp;

use std::os::fd::BorrowedFd;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lind_engine::{CompilerWalls, Wall};
use lind_kernel::root::{Root, Walls};
use rustix::thread::CapabilitySet;

pub use seccomp::filter;

/// The walls of the compiler process. If they are `required`, it compiles nothing without them.
pub fn of_compiler(required: bool) -> CompilerWalls {
    CompilerWalls { around: compiler::around, child: compiler::child, required }
}

/// The name of the way guest paths are confined where the root cannot be changed.
const OPENAT2: &str = "openat2";

/// The name of the same way over mounts that the kernel crate keeps.
pub const OVER_TABLE: &str = "openat2 (mounts kept by lind-boot)";

/// Which walls are up, for `--verbose` and `--require-confinement`.
#[derive(Debug)]
pub struct Report {
    /// How guest paths are confined.
    pub root: String,
    /// Whether the host directories that stay open are detached, so that no path leads out of them.
    pub detached: Result<(), String>,
    /// Whether Landlock is in force.
    pub landlock: Result<(), String>,
    /// Whether the seccomp filter is in force.
    pub seccomp: Result<(), String>,
    /// Whether capabilities are dropped.
    pub capabilities: Result<(), String>,
    /// The walls of the compiler process, or why there is no such process.
    pub compiler: Result<Vec<Wall>, String>,
}

impl Report {
    /// The report as one line.
    pub fn line(&self) -> String {
        let state = |wall: &Result<(), String>| match wall {
            Ok(()) => "on".to_owned(),
            Err(why) => format!("OFF ({why})"),
        };
        let compiler = match &self.compiler {
            Ok(walls) => {
                let walls: Vec<_> = walls.iter().map(|wall| format!("{} {}", wall.name, state(&wall.up))).collect();
                walls.join(", ")
            }
            Err(why) => format!("none ({why})"),
        };
        format!(
            "walls: root by {}, directories outside detached {}, landlock {}, seccomp {}, capabilities dropped {}; of the compiler: {compiler}",
            self.root,
            state(&self.detached),
            state(&self.landlock),
            state(&self.seccomp),
            state(&self.capabilities)
        )
    }

    /// Fails unless every wall is up.
    ///
    /// # Errors
    /// An error that names those that are not.
    pub fn require_all(&self) -> Result<()> {
        let walls = [
            ("detached directories", &self.detached),
            ("landlock", &self.landlock),
            ("seccomp", &self.seccomp),
            ("capabilities", &self.capabilities),
        ];
        let missing = |name: &str, wall: &Result<(), String>| wall.as_ref().err().map(|why| format!("{name} ({why})"));
        // Without a compiler process, none of its walls can be missing.
        let compiler = self.compiler.iter().flatten();
        let compiler = compiler.filter_map(|wall| missing(&format!("the compiler's {}", wall.name), &wall.up));
        let missing: Vec<_> = walls.iter().filter_map(|(name, wall)| missing(name, wall)).chain(compiler).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            bail!("these walls cannot be put up on this host (`lind-boot doctor` says more): {}", missing.join(", "))
        }
    }
}

/// Enters a new user namespace if this process may not change its root without one, and returns
/// whether it did. The namespace has mounts of its own, so this comes before anything that is to be
/// detached is opened.
pub fn own_namespace_if_need_be() -> bool {
    let may = |sets: rustix::thread::CapabilitySets| sets.effective.contains(CapabilitySet::SYS_CHROOT);
    !rustix::thread::capabilities(None).is_ok_and(may) && unshare_mounts(true).is_ok()
}

/// Makes `root` this process's root directory if that is permitted. Otherwise the kernel crate
/// alone confines every look-up.
pub fn change_root(root: &Path, in_namespace: bool) -> (Walls, &'static str) {
    match (enter(root), in_namespace) {
        (Ok(()), false) => (Walls::Chroot, "chroot"),
        (Ok(()), true) => (Walls::Chroot, "chroot in a user namespace"),
        (Err(_), _) => {
            // The user's working directory is outside the root, so it is left too.
            let _ = rustix::process::chdir(root);
            (Walls::Openat2, OPENAT2)
        }
    }
}

/// Makes `root`, a mount, the root of this process and of its mount namespace. The other mounts lie
/// below it, where no path leads: pseudoterminals are opened through the host's /dev, which has to
/// stay mounted.
///
/// # Errors
/// The host's error: there is no other way into a container.
pub fn switch_root(root: &Path) -> Result<(Walls, &'static str)> {
    let switch = || -> rustix::io::Result<()> {
        rustix::process::chdir(root)?;
        rustix::mount::mount_move(".", "/")?;
        rustix::process::chroot(".")?;
        rustix::process::chdir("/")
    };
    switch().with_context(|| format!("cannot change the root to {}", root.display()))?;
    Ok((Walls::Chroot, "chroot to the root of the mounts"))
}

fn enter(root: &Path) -> rustix::io::Result<()> {
    rustix::process::chroot(root)?;
    rustix::process::chdir("/")
}

/// Enters a new mount namespace, inside a new user namespace if `as_user`.
///
/// # Errors
/// The host's error.
pub fn unshare_mounts(as_user: bool) -> Result<()> {
    if as_user {
        own_namespace()?;
    }
    #[allow(deprecated, reason = "unsafe is meant for CLONE_FILES; a mount namespace shares no descriptors")]
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNS)?;
    Ok(())
}

/// Enters a new user namespace in which only our own ids exist, so that files keep their owners.
fn own_namespace() -> Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    #[allow(
        deprecated,
        reason = "unsafe is meant for CLONE_FILES; a user namespace shares nothing with other threads"
    )]
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWUSER)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1", uid = uid.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1", gid = gid.as_raw()))?;
    Ok(())
}

/// Puts up the other walls. From then on nothing can be opened by path but in `root`, its device
/// nodes, `cache`, and the directories `handed` to grates.
pub fn confine(
    how: &'static str,
    root: &Root,
    (cache, handed): (Option<BorrowedFd<'_>>, &[BorrowedFd<'_>]),
    detached: Result<(), String>,
) -> Report {
    let text = |error: anyhow::Error| format!("{error:#}");
    let landlock = files::restrict(root, cache, handed).map(drop).map_err(text);
    let capabilities = drop_capabilities().map_err(text);
    let seccomp = install_filter().map_err(text);
    let compiler = Err("not asked".to_owned());
    Report { root: ways(how, root.walls()), detached, landlock, seccomp, capabilities, compiler }
}

/// Puts up Landlock alone, and returns its version.
///
/// # Errors
/// When the host does not support it.
pub fn landlock_alone(root: &Root) -> Result<i32> {
    files::restrict(root, None, &[])
}

/// Installs the seccomp filter.
///
/// # Errors
/// When the host does not support it.
pub fn install_filter() -> Result<()> {
    seccompiler::apply_filter(&filter()?).context("cannot install the seccomp filter")
}

/// Describes what confines look-ups: how the root was changed, and whether the kernel crate
/// confines each of them as well.
fn ways(changed: &'static str, look_ups: Walls) -> String {
    match look_ups {
        Walls::Openat2 if changed != OPENAT2 && changed != OVER_TABLE => {
            format!("{changed} and {OPENAT2} (a /proc is mounted inside)")
        }
        _ => changed.to_owned(),
    }
}

/// Drops capabilities. Root keeps those that owning files takes, so that its guests can use files
/// as root inside the guest's root directory, and none that reach beyond files. Any other user
/// keeps none of those that a user namespace gave.
fn drop_capabilities() -> Result<()> {
    let keep = kept_capabilities();
    let mut sets = rustix::thread::capabilities(None)?;
    sets.effective &= keep;
    sets.permitted &= keep;
    sets.inheritable = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, sets)?;
    Ok(())
}

/// The capabilities that are kept at most.
pub fn kept_capabilities() -> CapabilitySet {
    let of_root = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        // For setfsuid(2), setfsgid(2) and setgroups(2), the only such calls that the filter
        // allows.
        | CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::NET_BIND_SERVICE;
    if rustix::process::geteuid().is_root() { of_root } else { CapabilitySet::empty() }
}

/// Opens a directory as a starting point of look-ups.
///
/// # Errors
/// The host's error.
pub fn open_directory(path: &Path) -> Result<std::os::fd::OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).with_context(|| path.display().to_string())?;
    Ok(fd)
}
