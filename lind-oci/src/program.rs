//! The program of a process, as far as it can be seen before the container runs: a file of the root
//! or of a mount. A program for the host is refused here, with a sentence that says what is needed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};

/// The operating system that compiled code names (ELF's EI_OSABI).
const WASMTIME: u8 = 200;

/// The names that a program may have.
const SUFFIXES: [&str; 3] = ["", ".cwasm", ".wasm"];

/// The directories of programs where PATH is not set.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How many interpreters of interpreters are looked at.
const DEEPEST: usize = 4;

/// The files of a container: its root, and mounts of the host's files in it, outer ones first.
pub struct View<'a> {
    /// The root.
    pub root: &'a Path,
    /// The guest's path of each mount, and the file or directory of the host.
    pub mounts: Vec<(PathBuf, PathBuf)>,
}

/// The kinds of programs.
#[derive(PartialEq, Eq, Debug)]
enum Kind {
    /// A module, or code compiled from one.
    Cage,
    /// A program for the host.
    Host,
    /// A script, with its interpreter.
    Script(String),
    /// Something else.
    Other,
}

impl View<'_> {
    /// Opens a file of the container. Links are followed inside its root or its mount.
    fn open(&self, guest: &Path) -> Option<OwnedFd> {
        let mount = self.mounts.iter().rev().find_map(|(at, host)| Some((guest.strip_prefix(at).ok()?, host)));
        let (below, host) = mount.map_or((guest, self.root), |(below, host)| (below, host.as_path()));
        if below.as_os_str().is_empty() {
            return File::open(host).ok().map(OwnedFd::from);
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let top = rustix::fs::openat(CWD, host, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        openat2(&top, below, flags, Mode::empty(), ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS).ok()
    }

    /// Opens the program of a name, and returns its path.
    fn find(&self, name: &str, env: &[String], cwd: &str) -> Option<(PathBuf, File)> {
        let path = env.iter().rev().find_map(|text| text.strip_prefix("PATH=")).unwrap_or(PATH);
        let folders: Vec<&str> = if name.contains('/') { vec![""] } else { path.split(':').collect() };
        folders.into_iter().flat_map(|folder| SUFFIXES.map(|suffix| (folder, suffix))).find_map(|(folder, suffix)| {
            let path = Path::new(cwd).join(folder).join(format!("{name}{suffix}"));
            let file = File::from(self.open(&path)?);
            let stat = rustix::fs::fstat(&file).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((path, file))
        })
    }

    /// Checks the program of a process. Returns the file of the host for a module, which can be
    /// compiled ahead. A program that is not found here may be in a place that only the container
    /// sees, if there are directories mounted in it.
    ///
    /// # Errors
    /// A program for the host, or a script for one; a program that does not exist.
    pub fn check(&self, args: &[String], env: &[String], cwd: &str) -> Result<Option<File>> {
        let Some(first) = args.first() else { bail!("process.args: has no program") };
        let mut name = first.clone();
        for _ in 0..DEEPEST {
            let Some((path, mut file)) = self.find(&name, env, cwd) else {
                // A link may lead into a directory that is mounted.
                ensure!(self.mounts.iter().any(|(_, host)| host.is_dir()), "{}", missing(first, &name));
                return Ok(None);
            };
            match kind(&mut file) {
                Kind::Cage => return Ok(Some(file)),
                Kind::Host => bail!(
                    "exec: \"{first}\": exec format error: {} is built for linux/amd64; needs a program compiled for Lind (see docs/oci.md)",
                    path.display()
                ),
                Kind::Script(interpreter) => name = interpreter,
                Kind::Other => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// The error for a program that was not found, in the words that engines look for.
fn missing(first: &str, name: &str) -> String {
    match (first == name, name.contains('/')) {
        (true, false) => format!("exec: \"{name}\": executable file not found in $PATH"),
        (true, true) => format!("exec: \"{name}\": stat {name}: no such file or directory"),
        (false, _) => format!("exec: \"{first}\": stat {name}, its interpreter: no such file or directory"),
    }
}

fn kind(file: &mut File) -> Kind {
    let mut head = Vec::new();
    if file.take(256).read_to_end(&mut head).is_err() {
        return Kind::Other;
    }
    if head.starts_with(b"\0asm") {
        return Kind::Cage;
    }
    if head.starts_with(b"\x7fELF") {
        return if head.get(7) == Some(&WASMTIME) { Kind::Cage } else { Kind::Host };
    }
    let Some(line) = head.strip_prefix(b"#!").and_then(|rest| rest.split(|&byte| byte == b'\n').next()) else {
        return Kind::Other;
    };
    let mut words = line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty());
    let text = |word: &[u8]| OsStr::from_bytes(word).to_str().map(str::to_owned);
    words.next().and_then(text).map_or(Kind::Other, Kind::Script)
}

/// The home directory of a user, from the root's /etc/passwd.
pub fn home(view: &View<'_>, uid: u32) -> Option<String> {
    let mut text = String::new();
    let file = File::from(view.open(Path::new("/etc/passwd"))?);
    file.take(1 << 20).read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_theirs = fields.get(2)?.parse() == Ok(uid);
        fields.get(5).filter(|home| is_theirs && !home.is_empty()).map(|home| (*home).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(view: &View<'_>, name: &str) -> Result<Option<File>> {
        view.check(&[name.to_owned()], &["PATH=/bin:/usr/bin".to_owned()], "/")
    }

    #[test]
    fn programs_of_the_host_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("other"));
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink("/usr/bin", root.join("bin")).unwrap();
        fs::write(root.join("usr/bin/native"), b"\x7fELF\x02\x01\x01\x00").unwrap();
        fs::write(root.join("usr/bin/ours.cwasm"), b"\x7fELF\x02\x01\x01\xc8").unwrap();
        fs::write(root.join("usr/bin/module.wasm"), b"\0asm").unwrap();
        fs::write(root.join("usr/bin/script"), b"#!/bin/native -e\n").unwrap();
        fs::write(other.join("native"), b"\0asm").unwrap();
        let view = View { root: &root, mounts: Vec::new() };
        for name in ["native", "/bin/native", "script", "./usr/bin/native"] {
            let error = check(&view, name).unwrap_err().to_string();
            assert!(error.contains("needs a program compiled for Lind (see docs/oci.md)"), "{name}: {error}");
        }
        for name in ["ours", "module", "/usr/bin/ours.cwasm"] {
            assert!(check(&view, name).unwrap().is_some(), "{name}");
        }
        let said = |name: &str| check(&view, name).unwrap_err().to_string();
        assert!(said("nosuch").ends_with("executable file not found in $PATH"));
        assert!(said("/no/such").ends_with("stat /no/such: no such file or directory"));
        let view = View { root: &root, mounts: vec![("/usr/bin".into(), other)] };
        assert!(check(&view, "/usr/bin/native").unwrap().is_some());
        assert!(check(&view, "nosuch").unwrap().is_none());
    }

    #[test]
    fn homes_are_those_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nu:x:7:7::/home/u:\n").unwrap();
        let view = View { root: folder.path(), mounts: Vec::new() };
        assert_eq!((home(&view, 7).as_deref(), home(&view, 8)), (Some("/home/u"), None));
    }
}
