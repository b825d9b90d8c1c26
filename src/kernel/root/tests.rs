//! Guests against walls: each test runs behind both. In one file, as all are about one thing: where
//! a path may lead.

use std::os::fd::AsFd;

use lind_abi::Errno;
use lind_abi::layout::Stat;
use lind_abi::nr;

use super::Walls;
use crate::testing::{CWD, World, both_walls, in_world};

mod devices;

const CREATE: i64 = 0o102;
const PATH: i64 = 0o10_000_000;
const DIRECTORY: i64 = 0o200_000;
const NOFOLLOW: i64 = 0o400_000;
const EMPTY_PATH: i64 = 0x1000;
const LINK_ITSELF: i64 = 0x100;
const FOLLOW: i64 = 0x400;

fn open(w: &World, path: &str, flags: i64) -> Result<i64, Errno> {
    w.call(nr::open, &[w.str(path), flags, 0o644])
}

fn make(w: &World, path: &str, text: &str) {
    let fd = open(w, path, CREATE | 0o1000).unwrap();
    assert_eq!(w.ok(nr::write, &[fd, w.data(text.as_bytes()), i64::try_from(text.len()).unwrap()]), text.len() as i64);
    w.ok(nr::close, &[fd]);
}

fn read(w: &World, path: &str) -> Result<String, Errno> {
    let fd = open(w, path, 0)?;
    let buffer = w.buffer(4096);
    let len = w.call(nr::read, &[fd, buffer, 4096]);
    w.ok(nr::close, &[fd]);
    Ok(String::from_utf8(w.bytes(buffer, len?)).unwrap())
}

fn mkdir(w: &World, path: &str) {
    w.ok(nr::mkdir, &[w.str(path), 0o755]);
}

fn symlink(w: &World, target: &str, path: &str) {
    w.ok(nr::symlink, &[w.str(target), w.str(path)]);
}

fn cwd(w: &World) -> Result<String, Errno> {
    let buffer = w.buffer(4096);
    let len = w.call(nr::getcwd, &[buffer, 4096])?;
    let bytes = w.bytes(buffer, len);
    Ok(String::from_utf8(bytes.strip_suffix(b"\0").unwrap().to_vec()).unwrap())
}

fn stat(w: &World, path: &str) -> Result<Stat, Errno> {
    let buffer = w.buffer(144);
    w.call(nr::stat, &[w.str(path), buffer])?;
    Ok(w.load(buffer))
}

#[test]
fn dots_stop_at_the_root() {
    both_walls(|w| {
        make(w, "/file", "inside");
        mkdir(w, "/a");
        mkdir(w, "/a/b");
        for path in
            ["/../file", "../file", "../../../../file", "/a/../../file", "a/b/../../../file", "./a/.././../file"]
        {
            assert_eq!(read(w, path).as_deref(), Ok("inside"), "{path}");
        }
        w.ok(nr::chdir, &[w.str("/a/b")]);
        for path in ["../../file", "../../../../../file", "../b/../../file"] {
            assert_eq!(read(w, path).as_deref(), Ok("inside"), "{path}");
        }
        for path in ["../../../outside/secret", "/../outside/secret", "../../outside/secret"] {
            assert_eq!(read(w, path), Err(Errno::ENOENT), "{path}");
            assert_eq!(stat(w, path).err(), Some(Errno::ENOENT), "{path}");
            assert_eq!(w.err(nr::unlink, &[w.str(path)]), Errno::ENOENT, "{path}");
            assert_eq!(w.err(nr::rename, &[w.str(path), w.str("/stolen")]), Errno::ENOENT, "{path}");
            assert_eq!(w.err(nr::link, &[w.str(path), w.str("/stolen")]), Errno::ENOENT, "{path}");
            assert_eq!(w.err(nr::chmod, &[w.str(path), 0o777]), Errno::ENOENT, "{path}");
            assert_eq!(w.err(nr::truncate, &[w.str(path), 0]), Errno::ENOENT, "{path}");
            assert_eq!(w.err(nr::access, &[w.str(path), 0]), Errno::ENOENT, "{path}");
        }
        assert_eq!(w.err(nr::rename, &[w.str("/file"), w.str("../../../outside/gone")]), Errno::ENOENT);
        w.ok(nr::chdir, &[w.str("../../..")]);
        assert_eq!(cwd(w).as_deref(), Ok("/"));
    });
}

#[test]
fn links_lead_inside() {
    both_walls(|w| {
        make(w, "/target", "inside");
        mkdir(w, "/d");
        symlink(w, "/target", "/d/absolute");
        symlink(w, "../target", "/d/relative");
        symlink(w, "../../../../target", "/d/climbing");
        symlink(w, "/d/absolute", "/d/chain");
        symlink(w, "/", "/d/root");
        symlink(w, "..", "/d/up");
        symlink(w, "/d/loop", "/d/loop");
        symlink(w, "/outside/secret", "/d/out");
        symlink(w, "../../outside/secret", "/d/out2");
        for path in [
            "/d/absolute",
            "/d/relative",
            "/d/climbing",
            "/d/chain",
            "/d/root/target",
            "/d/up/target",
            "/d/root/d/up/../d/chain",
        ] {
            assert_eq!(read(w, path).as_deref(), Ok("inside"), "{path}");
            assert_eq!(stat(w, path).unwrap().size, 6, "{path}");
        }
        w.ok(nr::chdir, &[w.str("d")]);
        for path in [
            "absolute",
            "relative",
            "climbing",
            "chain",
            "root/target",
            "up/target",
            "root/../../target",
            "root/d/../target",
        ] {
            assert_eq!(read(w, path).as_deref(), Ok("inside"), "{path}");
            assert_eq!(stat(w, path).unwrap().size, 6, "{path}");
        }
        let dir = open(w, "/d", DIRECTORY).unwrap();
        w.ok(nr::chdir, &[w.str("/")]);
        for path in ["absolute", "climbing", "up/target", "../target"] {
            let fd = w.ok(nr::openat, &[dir, w.str(path), 0, 0]);
            w.ok(nr::close, &[fd]);
        }
        for path in ["/d/out", "/d/out2", "d/out"] {
            assert_eq!(read(w, path), Err(Errno::ENOENT), "{path}");
        }
        assert_eq!(read(w, "/d/loop"), Err(Errno::ELOOP));
        assert_eq!(stat(w, "d/loop").err(), Some(Errno::ELOOP));
        assert_eq!(open(w, "/d/absolute", NOFOLLOW), Err(Errno::ELOOP));
        let link = w.filled(nr::readlink, |buffer, len| vec![w.str("/d/absolute"), buffer, len]);
        assert_eq!(link, b"/target");
        assert_eq!(w.err(nr::readlink, &[w.str("/target"), w.buffer(9), 9]), Errno::EINVAL);
    });
}

#[test]
fn creating_through_links_stays_inside() {
    both_walls(|w| {
        mkdir(w, "/d");
        symlink(w, "/made", "/d/dangling");
        symlink(w, "../../../outside/made", "/d/out");
        make(w, "/d/dangling", "text");
        assert_eq!(read(w, "/made").as_deref(), Ok("text"));
        assert_eq!(open(w, "/d/dangling", CREATE | 0o200), Err(Errno::EEXIST));
        w.ok(nr::chdir, &[w.str("/d")]);
        symlink(w, "/made too", "dangling too");
        make(w, "dangling too", "text");
        assert_eq!(read(w, "/made too").as_deref(), Ok("text"));
        assert_eq!(open(w, "out", CREATE), Err(Errno::ENOENT));
        let outside = w.outside();
        assert!(w.host(move || !outside.join("made").exists()));
        // Calls that never follow act on the link.
        w.ok(nr::rename, &[w.str("dangling too"), w.str("/moved")]);
        assert_eq!(w.filled(nr::readlink, |b, len| vec![w.str("/moved"), b, len]), b"/made too");
        w.ok(nr::unlink, &[w.str("/moved")]);
        assert_eq!(read(w, "/made too").as_deref(), Ok("text"));
        assert_eq!(w.err(nr::mkdir, &[w.str("dangling"), 0o755]), Errno::EEXIST);
        assert_eq!(w.err(nr::mkdir, &[w.str("out/"), 0o755]), Errno::EEXIST);
        assert_eq!(w.err(nr::rmdir, &[w.str("dangling")]), Errno::ENOTDIR);
    });
}

#[test]
fn the_last_component_may_be_odd() {
    both_walls(|w| {
        mkdir(w, "/d");
        mkdir(w, "/d/e");
        make(w, "/f", "");
        symlink(w, "/d", "/l");
        let err = |number, path: &str, rest: i64| w.err(number, &[w.str(path), rest]);
        for path in ["/", "//", ".", "..", "d/.", "d/..", "/d/e/.."] {
            assert_eq!(err(nr::mkdir, path, 0o755), Errno::EEXIST, "{path}");
            assert_eq!(w.err(nr::symlink, &[w.str("x"), w.str(path)]), Errno::EEXIST, "{path}");
            assert_eq!(w.err(nr::rename, &[w.str(path), w.str("/x")]), Errno::EBUSY, "{path}");
            assert_eq!(w.err(nr::rename, &[w.str("/f"), w.str(path)]), Errno::EBUSY, "{path}");
        }
        assert_eq!(err(nr::rmdir, "/", 0), Errno::EBUSY);
        assert_eq!(err(nr::rmdir, ".", 0), Errno::EINVAL);
        assert_eq!(err(nr::rmdir, "d/.", 0), Errno::EINVAL);
        assert_eq!(err(nr::rmdir, "d/..", 0), Errno::ENOTEMPTY);
        assert_eq!(err(nr::unlink, "/", 0), Errno::EISDIR);
        assert_eq!(err(nr::unlink, "d/..", 0), Errno::EISDIR);
        assert_eq!(err(nr::unlink, "f/", 0), Errno::ENOTDIR);
        assert_eq!(err(nr::unlink, "f/x", 0), Errno::ENOTDIR);
        assert_eq!(err(nr::rmdir, "l/", 0), Errno::ENOTDIR);
        assert_eq!(err(nr::unlink, "", 0), Errno::ENOENT);
        assert_eq!(err(nr::mkdir, "", 0), Errno::ENOENT);
        assert_eq!(open(w, "", 0), Err(Errno::ENOENT));
        assert_eq!(open(w, "f/", 0), Err(Errno::ENOTDIR));
        assert_eq!(open(w, "new/", CREATE), Err(Errno::EISDIR));
        assert_eq!(err(nr::stat, "f/", w.buffer(144)), Errno::ENOTDIR);
        assert_eq!(err(nr::stat, "f/..", w.buffer(144)), Errno::ENOTDIR);
        assert_eq!(err(nr::mkdir, &"x".repeat(256), 0o755), Errno::ENAMETOOLONG);
        assert_eq!(err(nr::mkdir, &"x/".repeat(2048), 0o755), Errno::ENAMETOOLONG);
        w.ok(nr::mkdir, &[w.str("d/new///"), 0o755]);
        w.ok(nr::rename, &[w.str("d/new/"), w.str("d//newer/")]);
        w.ok(nr::rmdir, &[w.str("/d/newer//")]);
        w.ok(nr::lstat, &[w.str("l/"), w.buffer(144)]);
        assert_eq!(w.err(nr::link, &[w.str("l/"), w.str("hard")]), Errno::EPERM);
        w.ok(nr::link, &[w.str("l"), w.str("hard")]);
        assert_eq!(w.filled(nr::readlink, |b, len| vec![w.str("hard"), b, len]), b"/d");
        w.ok(nr::link, &[w.str("f"), w.str("d/f")]);
        assert_eq!(stat(w, "d/f").unwrap().nlink, 2);
        symlink(w, "/f", "to f");
        w.ok(nr::linkat, &[CWD, w.str("to f"), CWD, w.str("f3"), FOLLOW]);
        assert_eq!(stat(w, "f3").unwrap().nlink, 3);
    });
}

#[test]
fn attributes_follow_links_inside_only() {
    both_walls(|w| {
        mkdir(w, "/d");
        make(w, "/f", "1234");
        symlink(w, "/f", "/d/l");
        symlink(w, "../../outside/secret", "/d/out");
        w.ok(nr::chmod, &[w.str("d/l"), 0o600]);
        assert_eq!(stat(w, "/f").unwrap().mode & 0o7777, 0o600);
        w.ok(nr::truncate, &[w.str("d/l"), 2]);
        let times = w.value(&[lind_abi::layout::Timespec { sec: 5, nsec: (0xdead << 32) | 6 }; 2]);
        w.ok(nr::utimensat, &[CWD, w.str("d/l"), times, 0]);
        let f = stat(w, "/f").unwrap();
        assert_eq!((f.size, f.mtime.sec, f.mtime.nsec), (2, 5, 6));
        w.ok(
            nr::utimensat,
            &[CWD, w.str("d/l"), w.value(&[lind_abi::layout::Timespec { sec: 9, nsec: 0 }; 2]), LINK_ITSELF],
        );
        assert_eq!(stat(w, "/f").unwrap().mtime.sec, 5);
        w.ok(nr::chown, &[w.str("d/l"), -1, -1]);
        w.ok(nr::lchown, &[w.str("d/out"), -1, -1]);
        assert_eq!(w.err(nr::chown, &[w.str("d/out"), -1, -1]), Errno::ENOENT);
        assert_eq!(w.err(nr::chmod, &[w.str("d/out"), 0o777]), Errno::ENOENT);
        assert_eq!(w.err(nr::utimensat, &[CWD, w.str("d/out"), 0, 0]), Errno::ENOENT);
        assert_eq!(w.err(nr::fchmodat2, &[CWD, w.str("d/l"), 0o777, LINK_ITSELF]), Errno::EOPNOTSUPP);
        assert_eq!(w.err(nr::statfs, &[w.str("d/out"), w.buffer(120)]), Errno::ENOENT);
        w.ok(nr::statfs, &[w.str("d/l"), w.buffer(120)]);
        let fd = open(w, "/f", 0o2).unwrap();
        w.ok(nr::fchmod, &[fd, 0o640]);
        w.ok(nr::utimensat, &[fd, 0, 0, 0]);
        let at = w.buffer(144);
        w.ok(nr::newfstatat, &[fd, w.str(""), at, EMPTY_PATH]);
        assert_eq!(w.load::<Stat>(at).mode & 0o7777, 0o640);
        assert_eq!(w.err(nr::newfstatat, &[fd, w.str(""), at, 0]), Errno::ENOENT);
        assert_eq!(w.err(nr::newfstatat, &[99, w.str("x"), at, 0]), Errno::EBADF);
        w.ok(nr::newfstatat, &[99, w.str("/f"), at, 0]);
    });
}

#[test]
fn only_directories_of_the_root_start_paths() {
    both_walls(|w| {
        make(w, "/f", "");
        let file = open(w, "/f", 0).unwrap();
        let memory = w.ok(nr::memfd_create, &[w.str("m"), 0]);
        let pair = w.buffer(8);
        w.ok(nr::pipe2, &[pair, 0]);
        let [pipe, _] = w.load::<[i32; 2]>(pair).map(i64::from);
        for fd in [0, 1, 2, file, memory, pipe] {
            for path in ["x", "../x", "."] {
                let errno = w.err(nr::openat, &[fd, w.str(path), 0, 0]);
                assert!([Errno::ENOTDIR, Errno::EBADF].contains(&errno), "{fd} {path} {errno:?}");
            }
            assert!([Errno::ENOTDIR, Errno::EBADF].contains(&w.err(nr::fchdir, &[fd])));
        }
        // A directory from elsewhere, as a control message might bring one.
        let outside = w.outside();
        let alien = w.host(move || std::fs::File::open(outside).unwrap());
        let alien = w.thread.cage.fds.add_host(alien.into(), false).unwrap();
        assert_eq!(w.err(nr::openat, &[alien.into(), w.str("secret"), 0, 0]), Errno::ENOTDIR);
        assert_eq!(w.err(nr::fchdir, &[alien.into()]), Errno::ENOTDIR);
        assert_eq!(w.err(nr::unlinkat, &[alien.into(), w.str("secret"), 0]), Errno::ENOTDIR);
    });
}

#[test]
fn a_working_directory_has_a_path_while_it_is_inside() {
    both_walls(|w| {
        for path in ["/a", "/a/b", "/a/b/c", "/z"] {
            mkdir(w, path);
        }
        assert_eq!(cwd(w).as_deref(), Ok("/"));
        w.ok(nr::chdir, &[w.str("a/b/c")]);
        assert_eq!(cwd(w).as_deref(), Ok("/a/b/c"));
        w.ok(nr::rename, &[w.str("/a/b"), w.str("/z/y")]);
        assert_eq!(cwd(w).as_deref(), Ok("/z/y/c"));
        make(w, "../made", "");
        assert_eq!(read(w, "/z/y/made").as_deref(), Ok(""));
        assert_eq!(w.err(nr::getcwd, &[w.buffer(6), 6]), Errno::ERANGE);
        assert_eq!(w.err(nr::getcwd, &[8, 4096]), Errno::EFAULT);
        let dir = open(w, "/a", PATH | DIRECTORY).unwrap();
        w.ok(nr::fchdir, &[dir]);
        assert_eq!(cwd(w).as_deref(), Ok("/a"));
        w.ok(nr::rmdir, &[w.str("/a")]);
        assert_eq!(cwd(w), Err(Errno::ENOENT));
        assert_eq!(open(w, "x", CREATE), Err(Errno::ENOENT));
        w.ok(nr::chdir, &[w.str("/z")]);
        assert_eq!(w.err(nr::chdir, &[w.str("/z/y/made")]), Errno::ENOTDIR);
        assert_eq!(w.err(nr::fchdir, &[open(w, "/z/y/made", 0).unwrap()]), Errno::ENOTDIR);
    });
}

#[test]
fn a_directory_moved_out_leads_nowhere() {
    in_world(Walls::Openat2, |w| {
        mkdir(w, "/d");
        mkdir(w, "/d/e");
        w.ok(nr::chdir, &[w.str("/d/e")]);
        let (from, to) = (w.path("d"), w.outside().join("d"));
        w.host(move || std::fs::rename(from, to).unwrap());
        assert_eq!(cwd(w), Err(Errno::ENOENT));
        for path in ["../../secret", "../..", "../e/../../secret"] {
            assert_eq!(open(w, path, 0), Err(Errno::ENOENT), "{path}");
            assert_eq!(w.err(nr::unlink, &[w.str("../../secret")]), Errno::ENOENT);
        }
        // The file beneath it can still be reached.
        make(w, "file", "");
        w.ok(nr::unlink, &[w.str("file")]);
    });
}

/// A thread of the guest swaps a directory with a link that leads out, again and again.
#[test]
fn racing_renames_never_lead_outside() {
    both_walls(|w| {
        mkdir(w, "/swap");
        mkdir(w, "/swap/dir");
        make(w, "/swap/dir/secret", "inside");
        symlink(w, "../../outside", "/swap/out");
        mkdir(w, "/deep");
        mkdir(w, "/deep/a");
        mkdir(w, "/deep/a/b");
        let outside = w.outside();
        let (dir, out, moving) = (w.path("swap/dir"), w.path("swap/out"), w.path("deep/a"));
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = std::sync::Arc::clone(&stop);
        let (started, running) = std::sync::mpsc::channel();
        // On a thread that is not confined, as fast as the host can.
        let swapping = w.host(move || {
            std::thread::spawn(move || {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                let here = rustix::fs::CWD;
                let away = moving.with_file_name("../moved");
                started.send(()).unwrap();
                while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                    rustix::fs::renameat_with(here, &dir, here, &out, exchange).unwrap();
                    let _ = std::fs::rename(&moving, &away);
                    let _ = std::fs::rename(&away, &moving);
                }
            })
        });
        running.recv().unwrap();
        let mut inside = 0;
        for round in 0..3000 {
            match read(w, "/swap/dir/secret") {
                Ok(text) => {
                    assert_eq!(text, "inside");
                    inside += 1;
                }
                Err(errno) => assert!([Errno::ENOENT, Errno::EAGAIN, Errno::ENOTDIR].contains(&errno), "{errno:?}"),
            }
            let made = w.call(nr::mkdir, &[w.str("swap/dir/made"), 0o755]);
            let _ = w.call(nr::rmdir, &[w.str("/swap/dir/made")]);
            let _ = w.call(nr::rename, &[w.str("/swap/dir/made"), w.str("/swap/out/made")]);
            let _ = w.call(nr::chmod, &[w.str("/swap/dir/secret"), 0o600]);
            if made.is_ok() && round % 10 == 0 {
                w.ok(nr::chdir, &[w.str("/deep")]);
            }
            if let Ok(fd) = open(w, "/deep/a/b", DIRECTORY) {
                if let Ok(up) = w.call(nr::openat, &[fd, w.str("../../../../../outside/secret"), 0, 0]) {
                    panic!("{up} leads outside");
                }
                w.ok(nr::close, &[fd]);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        swapping.join().unwrap();
        assert!(inside > 0, "the race never let a look-up through");
        let left = w.host(move || {
            use std::os::unix::fs::PermissionsExt;
            let names: Vec<_> = std::fs::read_dir(&outside).unwrap().map(|e| e.unwrap().file_name()).collect();
            (names, std::fs::metadata(outside.join("secret")).unwrap().permissions().mode() & 0o777)
        });
        assert_eq!(left, (vec!["secret".into()], 0o644), "something outside was changed");
    });
}

/// A root without mounts may still contain /proc: its own descriptors there lead anywhere.
#[test]
fn magic_links_lead_nowhere() {
    in_world(Walls::Openat2, |w| {
        let root = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        let mut host = super::Root::new(root, None, Walls::Openat2);
        host.set_walls(Walls::Chroot);
        assert_eq!(host.walls(), Walls::Openat2);
        let open = |path: &std::ffi::CStr| host.open(host.top(), path, 0, 0).err();
        assert_eq!(open(c"/proc/self/root/etc/passwd"), Some(Errno::ELOOP));
        assert_eq!(open(c"/proc/self/cwd"), Some(Errno::ELOOP));
        assert_eq!(open(c"proc/self/fd/0"), Some(Errno::ELOOP));
        let memory = host.open(host.top(), c"/proc/self/mem", 0, 0).unwrap();
        assert_eq!(host.check_opened(memory.as_fd()), Err(Errno::EACCES));
        let file = host.open(host.top(), c"/tmp", 0, 0).unwrap();
        assert_eq!(host.check_opened(file.as_fd()), Ok(()));
        assert_eq!(w.kernel.root.check_opened(file.as_fd()), Ok(()));
        assert!(!w.kernel.root.shows_processes);
    });
}

#[test]
fn open_files_get_names_if_they_are_from_inside() {
    both_walls(|w| {
        let temporary = match open(w, "/", 0o20_200_000 | 2) {
            Ok(fd) => fd,
            Err(errno) => return assert_eq!(errno, Errno::EOPNOTSUPP),
        };
        assert_eq!(w.ok(nr::write, &[temporary, w.data(b"text"), 4]), 4);
        let link = format!("/proc/self/fd/{temporary}");
        w.ok(nr::linkat, &[CWD, w.str(&link), CWD, w.str("/named"), FOLLOW]);
        w.ok(nr::linkat, &[temporary, w.str(""), CWD, w.str("/too"), EMPTY_PATH]);
        assert_eq!(read(w, "/named").as_deref(), Ok("text"));
        assert_eq!(stat(w, "/too").unwrap().nlink, 2);
        let secret = w.outside().join("secret");
        let alien = w.host(move || std::fs::File::open(secret).unwrap());
        let alien = i64::from(w.thread.cage.fds.add_host(alien.into(), false).unwrap());
        assert_eq!(w.err(nr::linkat, &[alien, w.str(""), CWD, w.str("/x"), EMPTY_PATH]), Errno::ENOENT);
        let link = format!("/proc/self/fd/{alien}");
        assert_eq!(w.err(nr::linkat, &[CWD, w.str(&link), CWD, w.str("/x"), FOLLOW]), Errno::ENOENT);
        assert_eq!(w.err(nr::linkat, &[CWD, w.str(&link), CWD, w.str("/x"), 0]), Errno::EXDEV);
    });
}

/// Deeper than a path can be long, and back.
#[test]
fn too_deep_for_a_path() {
    both_walls(|w| {
        let name = "n".repeat(250);
        for _ in 0..20 {
            mkdir(w, &name);
            w.ok(nr::chdir, &[w.str(&name)]);
        }
        assert_eq!(cwd(w), Err(Errno::ENAMETOOLONG));
        make(w, "file", "deep");
        assert_eq!(read(w, &format!("./../{name}//file")).as_deref(), Ok("deep"));
        // Past the root, which is its own parent.
        assert_eq!(read(w, &format!("{}file", "../".repeat(40))), Err(Errno::ENOENT));
        assert_eq!(read(w, &format!("{}outside/secret", "../".repeat(21))), Err(Errno::ENOENT));
        w.ok(nr::unlink, &[w.str("file")]);
        for _ in 0..20 {
            w.ok(nr::chdir, &[w.str("..")]);
            w.ok(nr::rmdir, &[w.str(&name)]);
        }
        assert_eq!(cwd(w).as_deref(), Ok("/"));
    });
}
