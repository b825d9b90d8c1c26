//! Landlock. The runner may use the files of the guest's root, the device nodes that every root
//! has, and files in directories that grates were handed, and may read the code cache. The compiler
//! process may use the files of its cache alone.

use std::ffi::CString;
use std::os::fd::{BorrowedFd, OwnedFd};

use anyhow::{Context, Result, bail};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use lind_kernel::root::Root;
use rustix::fs::{FileType, OFlags};

/// Restricts this thread, and the threads that it creates, to these files. Returns the version of
/// Landlock in force.
///
/// # Errors
/// When the host has no Landlock.
pub fn restrict(root: &Root, cache: Option<BorrowedFd<'_>>, handed: &[BorrowedFd<'_>]) -> Result<i32> {
    // Device nodes inside the root stay usable by ioctl as far as the kernel crate passes requests
    // on.
    let abi = ABI::V6;
    let everything = AccessFs::from_all(abi);
    let reading = AccessFs::from_read(abi);
    let of_root = if root.read_only() || !root.mounted().is_empty() { reading } else { everything };
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?
        .add_rule(PathBeneath::new(root.directory(), of_root))?;
    for (mount, read_only) in mounts(root) {
        let access = if read_only || root.read_only() { reading } else { everything };
        let folder = FileType::from_raw_mode(rustix::fs::fstat(&mount)?.st_mode).is_dir();
        let access = if folder { access } else { access & AccessFs::from_file(abi) };
        rules = rules.add_rule(PathBeneath::new(mount, access))?;
    }
    for node in root.devices().iter() {
        rules =
            rules.add_rule(PathBeneath::new(node, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev))?;
    }
    if let Some(cache) = cache {
        rules = rules.add_rule(PathBeneath::new(cache, AccessFs::ReadFile))?;
    }
    let of_handed =
        AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    for folder in handed {
        rules = rules.add_rule(PathBeneath::new(folder, of_handed))?;
    }
    version(rules.restrict_self().context("landlock")?)
}

/// The mounts in the root that need rules of their own, and whether each is read-only. Those that
/// the host has made need a rule if they can be changed; the sources of mounts that the kernel
/// crate keeps lie outside the root, so each needs one.
fn mounts(root: &Root) -> Vec<(OwnedFd, bool)> {
    let copied = |(_, source, read_only): (_, BorrowedFd<'_>, _)| Some((source.try_clone_to_owned().ok()?, read_only));
    if let Some(table) = root.table() {
        return table.iter().skip(1).filter_map(copied).collect();
    }
    let opened = |path: &Vec<u8>| {
        let name = CString::new(&path[..]).ok()?;
        Some((root.open(root.top(), &name, OFlags::PATH.bits(), 0).ok()?.file, false))
    };
    root.mounted().iter().filter(|(_, read_only)| !read_only).filter_map(|(path, _)| opened(path)).collect()
}

/// Restricts the compiler process to its cache.
///
/// # Errors
/// When the host has no Landlock.
pub fn restrict_to_cache(cache: Option<BorrowedFd<'_>>, delivered: Option<BorrowedFd<'_>>) -> Result<i32> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    if let Some(cache) = cache {
        let access = AccessFs::ReadFile
            | AccessFs::ReadDir
            | AccessFs::WriteFile
            | AccessFs::MakeReg
            | AccessFs::RemoveFile
            | AccessFs::Truncate;
        rules = rules.add_rule(PathBeneath::new(cache, access))?;
    }
    if let Some(delivered) = delivered {
        rules = rules.add_rule(PathBeneath::new(delivered, AccessFs::ReadFile | AccessFs::ReadDir))?;
    }
    version(rules.restrict_self().context("landlock")?)
}

fn version(status: RestrictionStatus) -> Result<i32> {
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            Ok(effective_abi as i32)
        }
        _ => bail!("this kernel does not support it"),
    }
}
