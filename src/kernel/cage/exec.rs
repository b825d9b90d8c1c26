//! execve(2), as far as the kernel goes.
//!
//! [`prepare_exec`] finds and loads the program while failures can still be returned to the caller.
//! [`commit_exec`] is the point of no return: it runs when control is back at the thread's own
//! call, and ends whatever belonged to the old program.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lind_abi::layout::Timespec;
use lind_abi::{Errno, Result};
use rustix::fs::FileType;

use super::birth::searches;
use super::life::Life;
use super::load::{Found, From, find_program, load_file};
use super::thread::Attention;
use super::{Cage, Status, Text, Thread, fork};
use crate::Kernel;
use crate::host;
use crate::lock::Locked;
use crate::root::Last;
use crate::root::table::Dir;
use crate::runtime::Start;

/// The part of a file that is read to find out how to run it, as on Linux.
const HEAD: usize = 256;
/// Linux: how many interpreters may interpret one another.
pub const INTERPRETERS: usize = 5;

/// A program by the name that the caller gave.
pub struct Named<'a> {
    /// The place where it is.
    pub at: Where<'a>,
    /// The name by which it is known, also to the interpreter of a script.
    pub name: &'a CStr,
    /// Whether the name cannot be resolved any more when the program runs: it begins at a
    /// descriptor that execve(2) closes.
    pub leads_nowhere: bool,
}

/// The ways to name a program.
pub enum Where<'a> {
    /// At a path, from a directory.
    Path(Dir<'a>, &'a CStr, Last),
    /// This open file.
    File(OwnedFd),
}

/// A program's file, and the claim that nobody writes to it meanwhile.
pub type Runnable<'k> = (Found<'k>, Text);

/// Follows the name of an interpreter as the caller's paths are followed, and passes the place on.
pub type Reach<'a, 'k> = &'a dyn Fn(&CStr, &dyn Fn(Where<'_>) -> Result<Runnable<'k>>) -> Result<Runnable<'k>>;

/// Finds the program of an execve(2) of `cage` and loads it. A script's interpreter is found in its
/// first line.
///
/// # Errors
/// ENOENT, also for a script whose name leads nowhere; EACCES, ENOEXEC, ELOOP for interpreters of
/// interpreters, and the errors of finding and loading.
pub fn prepare_exec<'k>(
    kernel: &'k Kernel,
    cage: &Cage,
    named: Named<'_>,
    (mut argv, envp): (Vec<CString>, Vec<CString>),
    reach: Reach<'_, 'k>,
) -> Result<Start> {
    // Linux does this since 5.18, with a warning: programs rely on argv[0].
    if argv.is_empty() {
        argv.push(c"".to_owned());
    }
    let search = searches(kernel, cage);
    let open = |start: Dir<'_>, name: &CStr, last: Last| {
        cage.as_itself()?;
        let found = find_program(kernel, start, name, search, last)?;
        if search {
            kernel.run(found.file.as_fd()).map(|text| (found, text))
        } else {
            check_executable(kernel, cage, found)
        }
    };
    let find = |at: Where<'_>, name: &CStr| match at {
        Where::Path(start, path, last) => open(start, path, last),
        Where::File(file) => check_executable(kernel, cage, Found { file, path: name.to_owned(), from: From::Root }),
    };
    // The text of a script is held until its interpreter is.
    let (Found { mut file, path: found, mut from }, mut text) = find(named.at, named.name)?;
    let path = if search { found } else { named.name.to_owned() };
    let mut name = path.clone();
    for _ in 0..=INTERPRETERS {
        let Some((interpreter, option)) = interpreter_of(&file)? else {
            let beside = |source: &CStr| reach(source, &|at| readable(kernel, at)).map(|(found, _)| found.file);
            let loaded = load_file(kernel, &beside, (&file, text), (&name, from), Some(&|| cage.is_dead()));
            let (executable, text, ids) = loaded.map_err(|error| error.errno)?;
            if search {
                let is_grate = kernel.engine().is_grate(&executable);
                kernel.line().begins(is_grate);
                // Grates that a program starts do not belong to the line.
                cage.launching.store(is_grate, Ordering::Release);
            }
            let random = kernel.seeded(cage.id, &argv);
            return Ok(Start { executable, argv, envp, path, text: Some(text), ids, random });
        };
        if named.leads_nowhere {
            return Err(Errno::ENOENT);
        }
        let script = std::mem::replace(&mut name, interpreter.clone());
        let line = [Some(interpreter), option, Some(script)].into_iter().flatten();
        argv.splice(..1, line);
        let found = reach(&name, &|at| find(at, &name))?;
        (file, text, from) = (found.0.file, found.1, found.0.from);
    }
    Err(Errno::ELOOP)
}

/// Opens the file that takes the place of a program.
fn readable<'k>(kernel: &'k Kernel, at: Where<'_>) -> Result<Runnable<'k>> {
    let Where::Path(start, path, last) = at else { return Err(Errno::ENOENT) };
    let found = find_program(kernel, start, path, false, last)?;
    let text = kernel.run(found.file.as_fd())?;
    Ok((found, text))
}

/// Checks that a file may be executed: EACCES if it is not a regular file or the cage may not
/// execute it; ETXTBSY if it is open for writing. Opening it has shown whether the cage may read
/// it.
fn check_executable<'k>(kernel: &Kernel, cage: &Cage, found: Found<'k>) -> Result<(Found<'k>, Text)> {
    let stat = rustix::fs::fstat(&found.file).map_err(crate::host::errno)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || stat.st_mode & 0o111 == 0 {
        return Err(Errno::EACCES);
    }
    cage.may_execute(found.file.as_fd())?;
    cage.may_run(kernel, &found)?;
    kernel.run(found.file.as_fd()).map(|text| (found, text))
}

/// The interpreter in the `#!` line of a file, and its argument; None if the file is not a script.
///
/// # Errors
/// ENOEXEC for a line that names none, and the errors of reading.
pub fn interpreter_of(file: &OwnedFd) -> Result<Option<(CString, Option<CString>)>> {
    let mut head = [0; HEAD];
    let got = rustix::io::pread(file, &mut head, 0).map_err(crate::host::errno)?;
    let Some(line) = head[..got].strip_prefix(b"#!") else { return Ok(None) };
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    // Nothing else is blank: a line that ends as in DOS names an interpreter that is not there.
    let trim = |text: &'_ [u8]| -> std::ops::Range<usize> {
        let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
        start..text.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1)
    };
    let end = line.iter().position(|byte| matches!(byte, b'\n' | 0));
    let whole = end.is_some() || got < HEAD;
    let line = &line[..end.unwrap_or(line.len())];
    let line = &line[trim(line)];
    let (name, rest) = match line.iter().position(blank) {
        Some(at) => (&line[..at], &line[at..][trim(&line[at..])]),
        // A name that was cut off must not be taken for another one.
        None if !whole => return Err(Errno::ENOEXEC),
        None => (line, &line[..0]),
    };
    if name.is_empty() {
        return Err(Errno::ENOEXEC);
    }
    let string = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::ENOEXEC);
    let option = if rest.is_empty() { None } else { Some(string(rest)?) };
    Ok(Some((string(name)?, option)))
}

/// Makes the cage ready for the program that its thread was told to run: other threads end, memory,
/// descriptors and signals are as execve(2) leaves them. Returns the thread that goes on, which has
/// the cage's own number, and the program.
///
/// # Errors
/// The status with which the cage ends instead: killed meanwhile, or out of memory.
pub fn commit_exec(kernel: &Arc<Kernel>, thread: &Arc<Thread>) -> core::result::Result<(Arc<Thread>, Start), Status> {
    let cage = &thread.cage;
    let killed = Status::signaled(9);
    let mut start = *thread.take_exec().ok_or(killed)?;
    end_others(kernel, thread)?;
    // While the memory is there in which the next one finds its lock.
    thread.leave_locks_behind();
    fork::own_memory(kernel, cage).map_err(|_| killed)?;
    cage.fds.close_on_exec(&thread.reader);
    // First: one that runs out has a handler until then.
    cage.delete_timers();
    cage.signals().reset_handlers();
    thread.forget_alt_stack();
    // This was checked when the program was found, so it fails only if the host's answer has
    // changed.
    cage.executes(start.ids).map_err(|_| killed)?;
    let old = cage.settings().runs(start.path.clone(), start.text.take());
    // Now the old program's file may be written to.
    drop(old);
    cage.fresh_fork.store(false, Ordering::Release);
    if !kernel.engine().is_grate(&start.executable) {
        kernel.line().has_program();
    }
    cage.exit_notice.store(0, Ordering::Release);
    let thread = thread.lead().map_err(|_| killed)?;
    *thread.name.locked() = command_name(&start.path);
    cage.family().replacing = false;
    Ok((thread, start))
}

/// Ends all threads but this one, and waits for that. Idle workers stay with their host threads,
/// which find at the next call that they have to leave: handlers that point to this cage are dead
/// from here on.
fn end_others(kernel: &Kernel, thread: &Arc<Thread>) -> core::result::Result<(), Status> {
    let cage = &thread.cage;
    let others = {
        let mut family = cage.family();
        if let Some(status) = family.ended {
            return Err(status);
        }
        if std::mem::replace(&mut family.replacing, true) {
            // Another thread was faster: this one is among those that end.
            return Err(Status::signaled(9));
        }
        family.programs = family.programs.wrapping_add(1);
        if family.serves {
            cage.life.reach(Life::Retired);
        }
        let threads: Vec<_> = family.threads.iter().filter_map(std::sync::Weak::upgrade).collect();
        threads.into_iter().filter(|other| !Arc::ptr_eq(other, thread)).collect::<Vec<_>>()
    };
    for other in &others {
        other.notice(Attention::LEAVE);
    }
    let workers: Vec<_> = others.iter().filter(|other| other.worker).cloned().collect();
    if !workers.is_empty() {
        host::barrier();
    }
    for other in others.iter().filter(|other| runs(other)) {
        kernel.engine().interrupt(other);
    }
    drop(others);
    cage.changed.notify_all();
    loop {
        let seen = cage.changed.seen();
        {
            let family = cage.family();
            if let Some(status) = family.ended {
                return Err(status);
            }
            let mut own = family.threads.iter().filter_map(std::sync::Weak::upgrade).filter(|other| runs(other));
            if own.all(|other| Arc::ptr_eq(&other, thread)) {
                return Ok(());
            }
        }
        // The check is repeated however the wait ends. A worker that becomes idle sends no
        // notification.
        let soon = if workers.is_empty() { None } else { in_a_moment() };
        let _ = cage.changed.wait(seen, soon.as_ref());
    }
}

fn in_a_moment() -> Option<Timespec> {
    const MONOTONIC: i32 = 1;
    let now = host::clock::gettime(MONOTONIC).ok()?;
    let nanos = now.nsec + 1_000_000;
    Some(Timespec { sec: now.sec + nanos / 1_000_000_000, nsec: nanos % 1_000_000_000 })
}

/// Whether a thread may be in code of its cage's program.
fn runs(thread: &Thread) -> bool {
    !thread.worker || thread.serving.load(Ordering::Acquire)
}

/// The name of a program in lists of processes: the last part of its path, cut off at 15 bytes.
fn command_name(path: &CStr) -> [u8; 16] {
    let path = path.to_bytes();
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let mut name = [0; 16];
    let len = base.len().min(15);
    name[..len].copy_from_slice(&base[..len]);
    name
}
