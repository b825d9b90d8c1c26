//! Texts about a process: the files of /proc/PID.

use std::fmt::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use lind_abi::flags::Resource;
use lind_abi::layout::Timeval;
use lind_abi::{CageId, Errno, Result};

use super::Subject;
use super::mappings::{Pages, pages};
use crate::cage::processors::numbers;
use crate::cage::{Cage, Thread, usage};
use crate::call::Ctx;
use crate::fd::{File, FileRef, Kind};
use crate::host;
use crate::lock::Locked;
use crate::mem::{Memory, PAGE, space};
use crate::terminal;

/// The longest text, whatever the guest has put where its arguments were, and however many mappings
/// it has.
pub(super) const LONGEST: u64 = 4 << 20;

/// The programs' clock: sysconf(_SC_CLK_TCK) is 100.
pub(super) fn ticks(time: Timeval) -> i64 {
    time.sec * 100 + time.usec / 10_000
}

/// Its name: the one set by prctl(PR_SET_NAME), else the end of its program's path.
fn name(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cage = subject.cage()?;
    let thread = subject.thread.clone().or_else(|| cage.thread(cage.id.0));
    let set = thread.map(|thread| *thread.name.locked());
    let set = set.unwrap_or_default();
    let end = set.iter().position(|&byte| byte == 0).unwrap_or(set.len());
    if end > 0 {
        return Ok(set[..end].to_vec());
    }
    let program = cage.settings().program.clone();
    let base = program.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    Ok(base[..base.len().min(15)].to_vec())
}

/// The bytes that were read and written on devices. The bytes of read(2) and write(2) are not
/// counted.
pub(super) fn io(subject: &Subject<'_>) -> Result<Vec<u8>> {
    const BLOCK: i64 = 512;
    let used = match &subject.thread {
        Some(thread) => usage::running(thread),
        None => subject.living()?.usage(),
    };
    let [read, written] = [used.counts[7], used.counts[8]].map(|blocks| blocks * BLOCK);
    let text = format!(
        "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n"
    );
    Ok(text.into_bytes())
}

pub(super) fn comm(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok([&name(subject)?[..], b"\n"].concat())
}

/// The executable, which for a script is its interpreter's. If it has no name in the root, the name
/// by which it was started.
pub(super) fn exe(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cage = subject.living()?;
    let (program, text) = {
        let settings = cage.settings();
        (settings.program.clone().into_bytes(), settings.text.clone())
    };
    let file = text.map(|text| text.file()).transpose()?;
    match file.map(|file| subject.cx.kernel.root.certain_name_of(file.as_fd())) {
        Some(Ok(name)) => Ok(name),
        _ if program.starts_with(b"/") => Ok(program),
        _ => Ok([b"/", &program[..]].concat()),
    }
}

/// The bytes where the arguments were put, as on Linux: a program that writes there changes its
/// title.
pub(super) fn cmdline(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let range = subject.cage()?.memory.map().arguments.clone();
    from_memory(subject.cage()?, range)
}

/// The auxiliary vector that the program got at its start, as it lies in memory: pairs of words of
/// four bytes.
pub(super) fn auxv(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let range = subject.cage()?.memory.map().auxiliary.clone();
    from_memory(subject.cage()?, range)
}

/// Which frames of memory are behind which page is for nobody: it is refused as another user's is.
pub(super) fn pagemap(_: &Subject<'_>) -> Result<Vec<u8>> {
    Err(Errno::EACCES)
}

pub(super) fn environ(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let range = subject.cage()?.memory.map().environment.clone();
    from_memory(subject.cage()?, range)
}

fn from_memory(cage: &Cage, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
    if cage.is_dead() {
        return Ok(Vec::new());
    }
    let len = (range.end - range.start).min(LONGEST);
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| Errno::EIO)?];
    match cage.memory.guest.read(range.start, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Ok(Vec::new()),
    }
}

/// A letter, as ps(1) shows it, and the word for it.
fn state(cage: &Cage, thread: Option<&Thread>) -> (char, &'static str) {
    if cage.is_dead() {
        ('Z', "zombie")
    } else if cage.is_stopped() {
        ('T', "stopped")
    } else if thread.is_some_and(|thread| usage::is_running(thread) || !seems_to_wait(thread)) {
        ('R', "running")
    } else {
        ('S', "sleeping")
    }
}

/// Whether a thread is in a call that may wait, or has lent its host thread to a child. Any other
/// that does not run could, also one that has not begun.
fn seems_to_wait(thread: &Thread) -> bool {
    thread.waits.load(Ordering::Relaxed)
}

/// The signals that wait for a thread, and for any thread of its process.
fn waiting(cage: &Cage, thread: Option<&Thread>) -> (u64, u64) {
    (thread.map_or(0, Thread::own_pending), cage.pending.load(Ordering::Relaxed))
}

pub(super) fn stat(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let (cx, cage) = (subject.cx, subject.cage()?);
    let used = match &subject.thread {
        Some(thread) => usage::running(thread),
        None => cage.usage(),
    };
    let children = cage.children_usage();
    let actions = cage.signals().ignored_and_handled();
    let (group, session, limit, nice) = {
        let mut settings = cage.settings();
        let limit = settings.limits.of(Resource(Resource::RLIMIT_RSS)).map_or(u64::MAX, |limit| limit.0);
        (settings.group, settings.session, limit, settings.limits.nice)
    };
    let thread = subject.thread.clone().or_else(|| cage.thread(cage.id.0));
    let mask = thread.as_ref().map_or(0, |thread| thread.mask.load(Ordering::Relaxed));
    let scheduled = thread.as_ref().map_or(0, |thread| thread.host.policy.load(Ordering::Relaxed));
    let (policy, in_real_time) = (Thread::policy_of(scheduled), i128::from(Thread::priority_of(scheduled)));
    let (own, _) = waiting(cage, thread.as_deref());
    let pages = pages(&cage.memory);
    let born = cx.kernel.cages.born(cage.id).unwrap_or_default();
    let (brk, arguments, environment) = {
        let map = cage.memory.map();
        (map.brk.clone(), map.arguments.clone(), map.environment.clone())
    };
    let (device, foreground) = match terminal::of_session(cx.kernel, session) {
        Some((device, front)) => (terminal_number(device), i128::from(front)),
        None => (0, -1),
    };
    let id = subject.thread.as_ref().map_or(cage.id.0, |thread| thread.tid);
    let mut text = format!("{id} (").into_bytes();
    text.extend(name(subject)?);
    let fields: [i128; 49] = [
        cage.shown_parent().map_or(0, |id| id.0.into()),
        group.into(),
        session.into(),
        device,
        foreground,
        0,                         // flags
        used.counts[4].into(),     // minflt
        children.counts[4].into(), // cminflt
        used.counts[5].into(),     // majflt
        children.counts[5].into(), // cmajflt
        ticks(used.utime).into(),
        ticks(used.stime).into(),
        ticks(children.utime).into(),
        ticks(children.stime).into(),
        if in_real_time > 0 { -1 - in_real_time } else { (20 + nice).into() }, // priority
        nice.into(),
        cage.threads().len().max(1) as i128,
        0, // itrealvalue
        (born.sec * 100 + born.nsec / 10_000_000).into(),
        (pages.size * PAGE).into(),
        pages.resident.into(),
        limit.into(),
        0,                 // startcode: code has no guest address
        0,                 // endcode
        space::END.into(), // startstack
        0,                 // kstkesp
        0,                 // kstkeip
        (own & 0x7fff_ffff).into(),
        (mask & 0x7fff_ffff).into(),
        (actions.0 & 0x7fff_ffff).into(),
        (actions.1 & 0x7fff_ffff).into(),
        0, // wchan
        0,
        0,
        17,           // exit_signal
        0,            // processor
        in_real_time, // rt_priority
        policy.into(),
        0, // delayacct_blkio_ticks
        0, // guest_time
        0,
        space::FIRST.into(),
        brk.start.into(),
        brk.start.into(),
        arguments.start.into(),
        arguments.end.into(),
        environment.start.into(),
        environment.end.into(),
        0, // exit_code
    ];
    text.extend(format!(") {}", state(cage, thread.as_deref()).0).into_bytes());
    for field in fields {
        text.extend(format!(" {field}").into_bytes());
    }
    text.push(b'\n');
    Ok(text)
}

/// A device number as encoded in `stat`: 20 bits of minor around 12 bits of major.
fn terminal_number(device: u64) -> i128 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    (major << 8 | minor & 0xff | (minor & 0xfff00) << 12).into()
}

pub(super) fn status(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cage = subject.cage()?;
    let actions = cage.signals().ignored_and_handled();
    let (credentials, no_new_privs) = {
        let settings = cage.settings();
        (settings.credentials.clone(), settings.no_new_privs)
    };
    let thread = subject.thread.clone().or_else(|| cage.thread(cage.id.0));
    let mask = thread.as_ref().map_or(0, |thread| thread.mask.load(Ordering::Relaxed));
    let (letter, word) = state(cage, thread.as_deref());
    let (own, common) = waiting(cage, thread.as_deref());
    let id = subject.thread.as_ref().map_or(cage.id.0, |thread| thread.tid);
    let mut text = b"Name:\t".to_vec();
    text.extend(name(subject)?);
    let mut out = String::new();
    let _ = writeln!(out, "\nUmask:\t{:04o}\nState:\t{letter} ({word})", cage.umask.load(Ordering::Relaxed));
    let _ = writeln!(out, "Tgid:\t{}\nNgid:\t0\nPid:\t{id}", cage.id.0);
    let _ = writeln!(out, "PPid:\t{}\nTracerPid:\t0", cage.shown_parent().unwrap_or(CageId(0)).0);
    let ids = [("Uid", credentials.uid, credentials.fsuid), ("Gid", credentials.gid, credentials.fsgid)];
    for (name, [real, effective, saved], of_files) in ids {
        let _ = writeln!(out, "{name}:\t{real}\t{effective}\t{saved}\t{of_files}");
    }
    let groups: Vec<_> = credentials.groups.iter().map(u32::to_string).collect();
    let last = cage.fds.open_in(0, u32::MAX).last().map_or(0, |fd| fd + 1);
    let _ = writeln!(out, "FDSize:\t{}\nGroups:\t{} ", last.max(64), groups.join(" "));
    let _ =
        writeln!(out, "NStgid:\t{0}\nNSpid:\t{id}\nNSpgid:\t{1}\nNSsid:\t{2}", cage.id.0, cage.group(), cage.session());
    if !cage.is_dead() {
        out.push_str(&memory_status(&cage.memory));
    }
    let _ = writeln!(out, "Threads:\t{}", cage.threads().len().max(1));
    let (queued, most) = cage.queued_signals();
    let _ = writeln!(out, "SigQ:\t{queued}/{most}\nSigPnd:\t{own:016x}\nShdPnd:\t{common:016x}");
    let _ = writeln!(out, "SigBlk:\t{mask:016x}\nSigIgn:\t{:016x}\nSigCgt:\t{:016x}", actions.0, actions.1);
    let sets = credentials.capabilities;
    for (name, set) in [
        ("CapInh", sets.inheritable),
        ("CapPrm", sets.permitted),
        ("CapEff", sets.effective),
        ("CapBnd", sets.bounding),
        ("CapAmb", sets.ambient),
    ] {
        let _ = writeln!(out, "{name}:\t{set:016x}");
    }
    let _ = writeln!(out, "NoNewPrivs:\t{}\nSeccomp:\t0\nSeccomp_filters:\t0", u8::from(no_new_privs));
    let cpus = thread.as_ref().map_or_else(Vec::new, |thread| numbers(&thread.processors(subject.cx.kernel)));
    let cpus = if cpus.is_empty() { subject.cx.kernel.processors.list() } else { cpus };
    let text_of = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let _ = write!(out, "Cpus_allowed:\t{}", text_of(super::sys::mask(&cpus, super::sys::most(subject))));
    let list = text_of(super::sys::list(&cpus));
    let _ = writeln!(out, "Cpus_allowed_list:\t{list}Mems_allowed:\t00000001\nMems_allowed_list:\t0");
    let used = cage.usage();
    let _ = writeln!(
        out,
        "voluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}",
        used.counts[12], used.counts[13]
    );
    text.extend(out.into_bytes());
    Ok(text)
}

/// The lines about memory in `status`.
fn memory_status(memory: &Memory) -> String {
    let Pages { size, resident, shared, data, stack } = pages(memory);
    let [size, resident, anonymous, shared, data, stack] =
        [size, resident, resident - shared, shared, data, stack].map(|pages| (pages * PAGE) >> 10);
    let locked = memory.map().locked() >> 10;
    format!(
        "VmPeak:\t{size:>8} kB\nVmSize:\t{size:>8} kB\nVmLck:\t{locked:>8} kB\nVmPin:\t       0 kB\n\
         VmHWM:\t{resident:>8} kB\nVmRSS:\t{resident:>8} kB\n\
         RssAnon:\t{anonymous:>8} kB\nRssFile:\t       0 kB\nRssShmem:\t{shared:>8} kB\n\
         VmData:\t{data:>8} kB\nVmStk:\t{stack:>8} kB\nVmExe:\t       0 kB\n\
         VmLib:\t       0 kB\nVmPTE:\t       0 kB\nVmSwap:\t       0 kB\n"
    )
}

/// No user has logged in.
pub(super) fn nobody(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(u32::MAX.to_string().into_bytes())
}

/// The place in Linux where a process waits: a name that has no meaning here, and that Linux also
/// shows to readers without permission.
pub(super) fn waits_at(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(b"0".to_vec())
}

/// /proc/PID/personality
pub(super) fn persona(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{:08x}\n", subject.cage()?.settings().persona).into_bytes())
}

pub(super) fn timer_slack(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{}\n", subject.cage()?.settings().timer_slack).into_bytes())
}

/// Time on a processor. How long it waited for one is not known, nor how often it had it.
pub(super) fn schedstat(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let nanos = match &subject.thread {
        Some(thread) => {
            let used = usage::running(thread);
            (used.utime.sec + used.stime.sec) * 1_000_000_000 + (used.utime.usec + used.stime.usec) * 1000
        }
        None => {
            let time = subject.cage()?.cpu_time();
            time.sec * 1_000_000_000 + time.nsec
        }
    };
    Ok(format!("{nanos} 0 0\n").into_bytes())
}

/// The children of a process. The thread that made them is not kept: all are listed with the first
/// one.
pub(super) fn children(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cage = subject.cage()?;
    if subject.thread.as_ref().is_some_and(|thread| thread.tid != cage.id.0) {
        return Ok(Vec::new());
    }
    let mut ids = cage.child_ids();
    ids.sort_unstable();
    Ok(ids.into_iter().map(|id| format!("{} ", id.0)).collect::<String>().into_bytes())
}

pub(super) fn limits(subject: &Subject<'_>) -> Result<Vec<u8>> {
    const ROWS: [(&str, u32, &str); 16] = [
        ("Max cpu time", Resource::RLIMIT_CPU, "seconds"),
        ("Max file size", Resource::RLIMIT_FSIZE, "bytes"),
        ("Max data size", Resource::RLIMIT_DATA, "bytes"),
        ("Max stack size", Resource::RLIMIT_STACK, "bytes"),
        ("Max core file size", Resource::RLIMIT_CORE, "bytes"),
        ("Max resident set", Resource::RLIMIT_RSS, "bytes"),
        ("Max processes", Resource::RLIMIT_NPROC, "processes"),
        ("Max open files", Resource::RLIMIT_NOFILE, "files"),
        ("Max locked memory", Resource::RLIMIT_MEMLOCK, "bytes"),
        ("Max address space", Resource::RLIMIT_AS, "bytes"),
        ("Max file locks", Resource::RLIMIT_LOCKS, "locks"),
        ("Max pending signals", Resource::RLIMIT_SIGPENDING, "signals"),
        ("Max msgqueue size", Resource::RLIMIT_MSGQUEUE, "bytes"),
        ("Max nice priority", Resource::RLIMIT_NICE, ""),
        ("Max realtime priority", Resource::RLIMIT_RTPRIO, ""),
        ("Max realtime timeout", Resource::RLIMIT_RTTIME, "us"),
    ];
    let mut limits = subject.cage()?.settings().limits;
    let spell = |value: u64| if value == u64::MAX { "unlimited".to_owned() } else { value.to_string() };
    let mut text = format!("{:<25} {:<20} {:<20} {:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (name, resource, unit) in ROWS {
        let (soft, hard) = limits.of(Resource(resource)).copied().unwrap_or((u64::MAX, u64::MAX));
        let _ = writeln!(text, "{name:<25} {:<20} {:<20} {unit:<10}", spell(soft), spell(hard));
    }
    Ok(text.into_bytes())
}

/// The permission bits of /proc/PID/fd/N.
pub(super) fn descriptor_mode(file: &File) -> u32 {
    match rustix::fs::fcntl_getfl(file.host()).map_or(0, |flags| flags.bits() & 3) {
        0 => 0o500,
        1 => 0o300,
        _ => 0o700,
    }
}

/// The text of /proc/PID/fd/N. The host's name of a file outside the root is not for guests.
pub(super) fn descriptor_link(cx: &Ctx<'_>, file: &FileRef) -> Result<Vec<u8>> {
    let root = &cx.kernel.root;
    match &file.kind {
        Kind::Pseudo(place) => return Ok(place.path()),
        Kind::Named(_) => return root.name_of(file.dir()),
        Kind::Terminal if root.devices().which(file.host()) == Some("tty") => return Ok(b"/dev/tty".to_vec()),
        Kind::Terminal | Kind::Master(_) => return terminal::path(cx, file).ok_or(Errno::ENOENT),
        // The host's file for these is of another kind.
        Kind::Signalfd(_) => return Ok(b"anon_inode:[signalfd]".to_vec()),
        Kind::Process(_) => return Ok(b"anon_inode:[pidfd]".to_vec()),
        Kind::Ruleset(_) => return Ok(b"anon_inode:[landlock-ruleset]".to_vec()),
        _ => {}
    }
    if let Some(device) = root.devices().which(file.host()) {
        return Ok([b"/dev/", device.as_bytes()].concat());
    }
    let link = |file: BorrowedFd<'_>| {
        root.again(file, |links, name| rustix::fs::readlinkat(links, name, Vec::new()).map_err(host::errno))
    };
    let text = link(file.host())?.into_bytes();
    // `pipe:[N]` and the like name nothing, and what memfd_create(2) made lies in no directory.
    let nowhere = text.first() != Some(&b'/') && !text.starts_with(b"(");
    let memory = text.starts_with(b"/memfd:") && rustix::fs::fcntl_get_seals(file.host()).is_ok();
    if nowhere || memory {
        return Ok(text);
    }
    // A file that was handed in or received is named if it is inside the root: there the guest
    // could find it as well.
    Ok(root.certain_name_of(file.host()).unwrap_or_else(|_| b"(unreachable)".to_vec()))
}
