//! Guests against /proc and /dev: behind both walls the host stays hidden, and no path leads out.

use lind_abi::layout::Stat;
use lind_abi::{Errno, nr};

use crate::root::Walls;
use crate::testing::{CWD, World, both_walls, in_world};

const CREATE: i64 = 0o102;
const TRUNCATE: i64 = 0o1000;
const DIRECTORY: i64 = 0o200_000;

fn open(w: &World, path: &str, flags: i64) -> Result<i64, Errno> {
    w.call(nr::open, &[w.str(path), flags, 0o644])
}

fn read(w: &World, path: &str) -> Result<String, Errno> {
    let fd = open(w, path, 0)?;
    let text = String::from_utf8(w.filled(nr::read, |b, len| vec![fd, b, len])).unwrap();
    w.ok(nr::close, &[fd]);
    Ok(text)
}

fn link(w: &World, path: &str) -> Result<String, Errno> {
    let buffer = w.buffer(4096);
    let len = w.call(nr::readlink, &[w.str(path), buffer, 4096])?;
    Ok(String::from_utf8(w.bytes(buffer, len)).unwrap())
}

fn names(w: &World, path: &str, room: i64) -> Result<Vec<String>, Errno> {
    let fd = open(w, path, DIRECTORY)?;
    let buffer = w.buffer(8192);
    let mut names = Vec::new();
    loop {
        let len = w.call(nr::getdents64, &[fd, buffer, room])?;
        let bytes = w.bytes(buffer, len);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = usize::from(u16::from_le_bytes([rest[16], rest[17]]));
            let end = rest[19..].iter().position(|&byte| byte == 0).unwrap();
            names.push(String::from_utf8(rest[19..19 + end].to_vec()).unwrap());
            rest = &rest[size..];
        }
        if len == 0 {
            w.ok(nr::close, &[fd]);
            return Ok(names);
        }
    }
}

fn stat(w: &World, path: &str) -> Result<Stat, Errno> {
    let buffer = w.buffer(144);
    w.call(nr::stat, &[w.str(path), buffer])?;
    Ok(w.load(buffer))
}

#[test]
fn a_cage_sees_itself_and_its_descendants() {
    both_walls(|w| {
        let (child, other) = (w.sibling(), w.sibling());
        let (id, child_id, other_id) = (w.thread.cage.id.0, child.thread.cage.id.0, other.thread.cage.id.0);
        let numbers = |w: &World| -> Vec<u32> {
            names(w, "/proc", 64).unwrap().iter().filter_map(|name| name.parse().ok()).collect()
        };
        assert_eq!(numbers(w), [id, child_id, other_id]);
        // The processes beside it belong to the same sandbox.
        assert_eq!(numbers(&child), [id, child_id, other_id]);
        assert_eq!(link(&child, "/proc/self").as_deref(), Ok(&*child_id.to_string()));
        assert!(read(w, &format!("/proc/{child_id}/status")).unwrap().contains(&format!("\nPPid:\t{id}\n")));
        for hidden in [0, std::process::id()] {
            for below in ["", "/", "/status", "/fd", "/fd/0", "/cwd", "/root/f", "/environ"] {
                let path = format!("/proc/{hidden}{below}");
                assert_eq!(open(&child, &path, 0), Err(Errno::ENOENT), "{path}");
            }
        }
        // A directory that was open before shows its heir the same.
        let fd = open(w, &format!("/proc/{other_id}"), DIRECTORY).unwrap();
        let heir = w.sibling();
        assert!(heir.call(nr::openat, &[fd, heir.str("status"), 0]).is_ok());
        // A process that has ended and was not waited for is a zombie.
        other.exit();
        assert!(read(w, &format!("/proc/{other_id}/stat")).unwrap().contains(") Z "));
        assert_eq!(read(w, &format!("/proc/{other_id}/cmdline")).as_deref(), Ok(""));
        assert_eq!(names(w, &format!("/proc/{other_id}/fd"), 512).unwrap(), [".", ".."]);
    });
}

#[test]
fn what_was_handed_in_is_not_opened_further() {
    both_walls(|w| {
        let outside = w.outside();
        let (file, folder) = w.host(move || {
            (std::fs::File::open(outside.join("secret")).unwrap(), std::fs::File::open(outside).unwrap())
        });
        let file = w.thread.cage.fds.add_host(file.into(), false).unwrap();
        let folder = w.thread.cage.fds.add_host(folder.into(), false).unwrap();
        let path = format!("/proc/self/fd/{file}");
        assert_eq!(link(w, &path).as_deref(), Ok("(unreachable)"));
        assert_eq!(open(w, &path, 1), Err(Errno::EACCES));
        assert_eq!(open(w, &path, 2), Err(Errno::EACCES));
        assert_eq!(open(w, &path, TRUNCATE), Err(Errno::EACCES));
        assert_eq!(read(w, &path).as_deref(), Ok("secret"));
        assert_eq!(w.err(nr::truncate, &[w.str(&path), 0]), Errno::EACCES);
        assert_eq!(w.err(nr::chmod, &[w.str(&path), 0o777]), Errno::EPERM);
        assert_eq!(w.err(nr::chown, &[w.str(&path), 1, 1]), Errno::EPERM);
        let path = format!("/proc/self/fd/{folder}");
        assert_eq!(open(w, &path, DIRECTORY), Err(Errno::ENOTDIR));
        assert_eq!(open(w, &path, 0), Err(Errno::ENXIO));
        assert_eq!(open(w, &format!("{path}/secret"), 0), Err(Errno::ENOTDIR));
        assert_eq!(open(w, &format!("{path}/../outside/secret"), 0), Err(Errno::ENOTDIR));
        assert_eq!(w.err(nr::chdir, &[w.str(&path)]), Errno::ENOTDIR);
        assert_eq!(link(w, &path).as_deref(), Ok("(unreachable)"));
    });
}

#[test]
fn ways_in_and_out() {
    both_walls(|w| {
        w.ok(nr::mkdir, &[w.str("/d"), 0o755]);
        w.ok(nr::close, &[open(w, "/d/f", CREATE).unwrap()]);
        let inode = stat(w, "/d/f").unwrap().ino;
        for path in
            ["/proc/../d/f", "/dev/../../../d/f", "/proc/self/root/d/f", "/d/../proc/self/root/../d/f", "proc/../d/f"]
        {
            assert_eq!(stat(w, path).map(|stat| stat.ino), Ok(inode), "{path}");
        }
        for path in [
            "/proc/self/root/../../outside/secret",
            "/proc/self/cwd/../../outside/secret",
            "/proc/../../outside/secret",
        ] {
            assert_eq!(open(w, path, 0), Err(Errno::ENOENT), "{path}");
        }
        w.ok(nr::symlink, &[w.str("/proc/self/cwd/loop"), w.str("/loop")]);
        assert_eq!(open(w, "/loop", 0), Err(Errno::ELOOP));
        w.ok(nr::symlink, &[w.str("proc"), w.str("/p")]);
        assert_eq!(stat(w, "/p/self/").map(|stat| stat.ino), stat(w, "/proc/self").map(|stat| stat.ino));
        w.ok(nr::symlink, &[w.str("../dev/fd"), w.str("/d/fds")]);
        let fd = open(w, "/d/f", 0).unwrap();
        assert_eq!(stat(w, &format!("/d/fds/{fd}")).map(|stat| stat.ino), Ok(inode));
        w.ok(nr::chdir, &[w.str("/d/fds")]);
        assert_eq!(stat(w, &fd.to_string()).map(|stat| stat.ino), Ok(inode));
        assert_eq!(stat(w, "../../../d/f").map(|stat| stat.ino), Ok(inode));
        w.ok(nr::chdir, &[w.str("/")]);
    });
}

/// A root that has a /proc and a /dev of its own, with things in it.
#[test]
fn what_the_root_has_there_is_hidden() {
    both_walls(|w| {
        let root = w.path("");
        w.host(move || {
            std::fs::create_dir_all(root.join("proc/self")).unwrap();
            std::fs::create_dir_all(root.join("dev")).unwrap();
            std::fs::write(root.join("proc/self/status"), "forged").unwrap();
            std::fs::write(root.join("dev/null"), "forged").unwrap();
        });
        assert!(read(w, "/proc/self/status").unwrap().starts_with("Name:"));
        assert!(read(w, "proc/self/status").unwrap().starts_with("Name:"));
        assert_eq!(read(w, "/dev/null").as_deref(), Ok(""));
        assert_eq!(w.err(nr::mkdir, &[w.str("/proc/self/x"), 0o755]), Errno::EACCES);
        assert_eq!(w.err(nr::mkdir, &[w.str("/proc"), 0o755]), Errno::EEXIST);
        assert_eq!(w.err(nr::rmdir, &[w.str("/dev")]), Errno::EPERM);
    });
}

#[test]
fn shared_memory_has_names() {
    both_walls(|w| {
        let fd = open(w, "/dev/shm/a", CREATE | 0o200).unwrap();
        assert_eq!(open(w, "/dev/shm/a", CREATE | 0o200), Err(Errno::EEXIST));
        assert_eq!(w.ok(nr::write, &[fd, w.data(b"shared"), 6]), 6);
        let child = w.sibling();
        assert_eq!(read(&child, "/dev/shm/a").as_deref(), Ok("shared"));
        assert_eq!(stat(&child, "/dev/shm/a").unwrap().mode, 0o100_644);
        child.ok(nr::link, &[child.str("/dev/shm/a"), child.str("/dev/shm/b")]);
        w.ok(nr::rename, &[w.str("/dev/shm/a"), w.str("/dev/shm/c")]);
        assert_eq!(names(w, "/dev/shm", 4096).unwrap(), [".", "..", "b", "c"]);
        assert_eq!(w.err(nr::link, &[w.str("/dev/shm/b"), w.str("/dev/shm/c")]), Errno::EEXIST);
        assert_eq!(w.err(nr::rename, &[w.str("/dev/shm/b"), w.str("/b")]), Errno::EXDEV);
        assert_eq!(w.err(nr::rename, &[w.str("/dev/shm/b"), w.str("/dev/b")]), Errno::EPERM);
        assert_eq!(w.err(nr::mkdir, &[w.str("/dev/shm/d"), 0o755]), Errno::EACCES);
        assert_eq!(w.err(nr::rmdir, &[w.str("/dev/shm/b")]), Errno::ENOTDIR);
        w.ok(nr::unlink, &[w.str("/dev/shm/b")]);
        w.ok(nr::unlink, &[w.str("/dev/shm/../shm/c")]);
        assert_eq!(w.err(nr::unlink, &[w.str("/dev/shm/c")]), Errno::ENOENT);
        assert_eq!(open(w, "/dev/shm/a", 0), Err(Errno::ENOENT));
        let long = format!("/dev/shm/{}", "n".repeat(256));
        assert_eq!(open(w, &long, CREATE), Err(Errno::ENAMETOOLONG));
        assert_eq!(open(w, "/dev/new", CREATE), Err(Errno::EACCES));
        assert_eq!(w.filled(nr::pread64, |b, _| vec![fd, b, 6, 0]), b"shared");
        // There is an end to it.
        for number in 0..1024 {
            w.ok(nr::close, &[open(w, &format!("/dev/shm/{number}"), CREATE).unwrap()]);
        }
        assert_eq!(open(w, "/dev/shm/more", CREATE), Err(Errno::ENOSPC));
    });
}

#[test]
fn absurd_arguments() {
    in_world(Walls::Openat2, |w| {
        let fd = open(w, "/proc", DIRECTORY).unwrap();
        assert_eq!(w.err(nr::getdents64, &[fd, w.buffer(16), 16]), Errno::EINVAL);
        assert_eq!(w.err(nr::getdents64, &[fd, 0, 4096]), Errno::EFAULT);
        assert_eq!(w.err(nr::getdents64, &[fd, -1, -1]), Errno::EFAULT);
        w.ok(nr::lseek, &[fd, i64::MAX, 0]);
        assert_eq!(w.ok(nr::getdents64, &[fd, w.buffer(1024), 1024]), 0);
        w.ok(nr::lseek, &[fd, 0, 0]);
        assert!(w.ok(nr::getdents64, &[fd, w.buffer(1024), 1024]) > 0);
        assert_ne!(w.err(nr::write, &[fd, w.data(b"x"), 1]), Errno::EIO);
        let text = open(w, "/proc/self/status", 0).unwrap();
        assert_eq!(w.ok(nr::pread64, &[text, w.buffer(16), 16, i64::MAX - 16]), 0);
        assert_eq!(w.err(nr::write, &[text, w.data(b"x"), 1]), Errno::EBADF);
        assert_eq!(w.err(nr::ftruncate, &[text, 0]), Errno::EINVAL);
        assert_eq!(w.err(nr::fchmod, &[text, 0o777]), Errno::EPERM);
        let again = open(w, &format!("/proc/self/fd/{text}"), 2);
        assert_eq!(again, Err(Errno::EACCES));
        assert_eq!(w.err(nr::mmap, &[0, 4096, 1, 2, text, 0]), Errno::ENODEV);
        assert_eq!(w.err(nr::fchownat, &[CWD, w.str("/proc/self"), 1, 1, 0]), Errno::EPERM);
        assert_eq!(w.err(nr::readlink, &[w.str("/proc/self"), w.buffer(8), 0]), Errno::EINVAL);
        assert_eq!(w.ok(nr::readlink, &[w.str("/dev/fd"), w.buffer(8), 3]), 3);
        for path in [
            "/proc/1 ",
            "/proc/0",
            "/proc/00001",
            "/proc/99999999999999999999",
            "/proc/self/fd/2147483648",
            "/proc/self/task/0",
        ] {
            assert_eq!(open(w, path, 0), Err(Errno::ENOENT), "{path}");
        }
    });
}

#[test]
fn limits_are_where_programs_look_for_them() {
    both_walls(|w| {
        let group = |name: &str| read(w, &format!("/sys/fs/cgroup/{name}")).unwrap();
        assert_eq!((group("memory.max"), group("pids.max"), group("cpu.max")), lines("max", "max", "max 100000"));
        let allowance = crate::Allowance { memory: Some(64 << 20), cpu: Some((150_000, 100_000)), pids: Some(20) };
        w.kernel.show_allowance(allowance);
        assert_eq!(
            (group("memory.max"), group("pids.max"), group("cpu.max")),
            lines("67108864", "20", "150000 100000")
        );
        let narrower = crate::Allowance { memory: Some(1 << 20), cpu: Some((60_000, 50_000)), pids: None };
        w.kernel.show_allowance(allowance.within(narrower));
        assert_eq!((group("memory.max"), group("pids.max"), group("cpu.max")), lines("1048576", "20", "60000 50000"));
        assert_eq!(narrower.within(allowance), allowance.within(narrower));
        assert_eq!(group("cgroup.procs"), format!("{}\n", w.thread.cage.id.0));
        let child = w.sibling();
        let child_id = child.thread.cage.id.0.to_string();
        assert!(group("cgroup.procs").lines().any(|line| line == child_id), "{}", group("cgroup.procs"));
        assert_eq!(group("pids.current"), "2\n");
        assert!(group("memory.current").trim().parse::<u64>().is_ok());
        assert!(group("cpu.stat").starts_with("usage_usec "));
        // It is a mount of its own, which nothing can be written to.
        assert_ne!(stat(w, "/sys/fs/cgroup").unwrap().dev, stat(w, "/sys/fs").unwrap().dev);
        assert!(read(w, "/proc/self/mountinfo").unwrap().contains(" / /sys/fs/cgroup ro,"));
        assert_eq!(open(w, "/sys/fs/cgroup/new", CREATE), Err(Errno::EACCES));
    });
}

fn lines(memory: &str, pids: &str, cpu: &str) -> (String, String, String) {
    (format!("{memory}\n"), format!("{pids}\n"), format!("{cpu}\n"))
}
