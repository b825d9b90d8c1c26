//! seccomp: allows the system calls of the kernel crate, of the engine and of Rust's run-time, and
//! no others.
//!
//! The filter is a binary search over ranges of numbers, whose leaves share one return for each
//! verdict. Each start of the runner pays for the host's translation of the filter, and for a run
//! of it for every call number. Prototypes of the same shapes took 155 us to install with a return
//! in each leaf (250 instructions), 129 us with shared ones (146), and a filter of one instruction
//! 51 us (medians of 300).

use anyhow::Result;
use lind_kernel::requests;
use seccompiler::sock_filter;

/// The calls that are allowed with any arguments. The host checks the arguments; Landlock limits
/// the files that they can name.
const ALLOWED: &[i64] = &[
    // Files, through descriptors or confined paths.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_lseek,
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fchdir,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_flock,
    libc::SYS_dup,
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_memfd_create,
    libc::SYS_umask,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_sync_file_range,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_setxattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_flistxattr,
    libc::SYS_removexattr,
    libc::SYS_fremovexattr,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // Time.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_times,
    // Timers that were created before.
    libc::SYS_timer_settime,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // Waiting.
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_restart_syscall,
    // Sockets; BY_ARGUMENT limits their families.
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    // This process itself.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    // The ids with which this thread uses files if it is root (`kernel/host/identity.rs`): they end
    // with the thread, and the permitted set never grows.
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_getrlimit,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_getcpu,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    // The only child is the compiler process, and the runner waits for it at the end.
    libc::SYS_wait4,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
];

/// fchmodat2(2), which the libc crate does not name on every target.
const SYS_FCHMODAT2: i64 = 452;

/// The calls that are allowed by one argument: number, argument, and test of the argument.
const BY_ARGUMENT: &[(i64, u8, Test)] = &[
    (libc::SYS_clone, 0, Test::Has(libc::CLONE_THREAD as u32)),
    // A thread with a working directory of its own, to reach a socket by a relative name.
    (libc::SYS_unshare, 0, Test::OneOf(&[libc::CLONE_FS as u32])),
    (libc::SYS_socket, 0, Test::OneOf(&[libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32])),
    (libc::SYS_socketpair, 0, Test::OneOf(&[libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32])),
    (libc::SYS_prctl, 0, Test::OneOf(&[libc::PR_SET_NAME as u32, libc::PR_GET_NAME as u32, libc::PR_SET_VMA as u32])),
    // The engine interrupts threads of its own process; no signal reaches another one.
    (libc::SYS_tgkill, 0, Test::Ourselves),
    (libc::SYS_rt_sigqueueinfo, 0, Test::Ourselves),
    // Reading limits, not setting them.
    (libc::SYS_prlimit64, 2, Test::Null),
    (libc::SYS_fcntl, 1, Test::Command),
    (libc::SYS_ioctl, 1, Test::Request),
];

/// A condition on an argument. The host looks at its low half alone, except for addresses.
#[derive(Clone, Copy)]
pub enum Test {
    /// The argument has one of these bits.
    Has(u32),
    /// The argument is one of these values.
    OneOf(&'static [u32]),
    /// The argument is this process's id.
    Ourselves,
    /// The argument is an address, and null.
    Null,
    /// The argument is an allowed command of fcntl(2); for some, the next argument is tested too.
    Command,
    /// The argument is an allowed request of ioctl(2).
    Request,
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const DENY: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// glibc creates threads with clone3, whose flags lie in memory that a filter cannot read, and
/// falls back to clone where clone3 is missing.
const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const GO: u16 = 0x05; // BPF_JMP | BPF_JA
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const IF_BITS: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K

/// A filter that is written from its end, because its jumps lead forward only. An instruction is
/// named by the number of instructions behind it, and each new one is put in front of the others.
#[derive(Default)]
struct Backwards(Vec<sock_filter>);

impl Backwards {
    fn push(&mut self, code: u16, k: u32, jt: u8, jf: u8) -> usize {
        self.0.push(sock_filter { code, jt, jf, k });
        self.0.len() - 1
    }

    fn statement(&mut self, code: u16, k: u32) -> usize {
        self.push(code, k, 0, 0)
    }

    /// Jumps to `yes` or to `no`.
    fn jump(&mut self, code: u16, k: u32, yes: usize, no: usize) -> Result<usize> {
        let from = self.0.len() - 1;
        Ok(self.push(code, k, u8::try_from(from - yes)?, u8::try_from(from - no)?))
    }

    /// Jumps to `to`, however far away it is.
    fn go(&mut self, to: usize) -> Result<usize> {
        let over = u32::try_from(self.0.len() - 1 - to)?;
        Ok(self.statement(GO, over))
    }

    fn argument(&mut self, number: u8) -> usize {
        self.statement(LOAD, 16 + 8 * u32::from(number))
    }
}

/// The filter of a process that runs guests.
///
/// # Errors
/// When a jump would be too long, which the tests below rule out.
pub fn filter() -> Result<Vec<sock_filter>> {
    filter_of(ALLOWED, BY_ARGUMENT)
}

/// The filter of a process that makes only these calls.
///
/// # Errors
/// As for `filter`.
pub fn filter_of(allowed: &[i64], arguments: &[(i64, u8, Test)]) -> Result<Vec<sock_filter>> {
    let mut code = Backwards::default();
    let blocks = arguments
        .iter()
        .map(|&(number, argument, test)| Ok((number, by_argument(&mut code, argument, test)?)))
        .collect::<Result<Vec<_>>>()?;
    // The search can jump only a short way, so each long jump begins near it.
    let mut verdicts =
        blocks.into_iter().map(|(number, block)| Ok((number, code.go(block)?))).collect::<Result<Vec<_>>>()?;
    let absent = code.statement(RETURN, ABSENT);
    let deny = code.statement(RETURN, DENY);
    let allow = code.statement(RETURN, ALLOW);
    verdicts.extend(allowed.iter().map(|&number| (number, allow)));
    verdicts.push((libc::SYS_clone3, absent));
    let numbers = verdicts.into_iter().map(|(number, verdict)| Ok((u32::try_from(number)?, verdict)));
    search(&mut code, &ranges(numbers.collect::<Result<_>>()?, deny))?;
    let number = code.statement(LOAD, 0); // seccomp_data.nr
    let kill = code.statement(RETURN, KILL);
    code.jump(IF_EQUAL, AUDIT_ARCH_X86_64, number, kill)?;
    code.statement(LOAD, 4); // seccomp_data.arch
    code.0.reverse();
    Ok(code.0)
}

/// Writes the block that allows a call if `test` holds for an argument, and denies it otherwise.
fn by_argument(code: &mut Backwards, argument: u8, test: Test) -> Result<usize> {
    let deny = code.statement(RETURN, DENY);
    let allow = code.statement(RETURN, ALLOW);
    match test {
        Test::Has(bits) => code.jump(IF_BITS, bits, allow, deny)?,
        Test::OneOf(values) => values.iter().try_fold(deny, |no, &value| code.jump(IF_EQUAL, value, allow, no))?,
        Test::Ourselves => code.jump(IF_EQUAL, std::process::id(), allow, deny)?,
        Test::Null => {
            code.jump(IF_EQUAL, 0, allow, deny)?;
            let low = code.argument(argument);
            code.jump(IF_EQUAL, 0, low, deny)?;
            return Ok(code.statement(LOAD, 4 + 16 + 8 * u32::from(argument)));
        }
        Test::Command => {
            let ((set_flags, flag), (set_signal, signal)) = (requests::NO_FLAG, requests::SIGNAL_OF_LEASES);
            code.jump(IF_BITS, flag, deny, allow)?;
            let flags = code.argument(argument + 1);
            code.jump(IF_EQUAL, signal, allow, deny)?;
            let signal = code.argument(argument + 1);
            let others = requests::COMMANDS.iter().map(|&command| (command, allow));
            let verdicts = others.chain([(set_flags, flags), (set_signal, signal)]).collect();
            search(code, &ranges(verdicts, deny))?
        }
        Test::Request => {
            let verdicts = requests::ioctls().map(|request| (request, allow)).collect();
            search(code, &ranges(verdicts, deny))?
        }
    };
    Ok(code.argument(argument))
}

/// The ranges of numbers with one verdict, ascending from 0: the first number of each, and its
/// verdict.
fn ranges(mut verdicts: Vec<(u32, usize)>, deny: usize) -> Vec<(u32, usize)> {
    verdicts.sort_unstable();
    verdicts.dedup();
    let mut ranges = vec![(0, deny)];
    for (number, verdict) in verdicts {
        // The number before this one, or the start, has begun this range.
        if ranges.last().is_some_and(|&(first, _)| first == number) {
            ranges.pop();
        }
        if ranges.last().is_none_or(|&(_, last)| last != verdict) {
            ranges.push((number, verdict));
        }
        ranges.push((number + 1, deny));
    }
    ranges
}

/// Writes the search for a number in `ranges`.
fn search(code: &mut Backwards, ranges: &[(u32, usize)]) -> Result<usize> {
    if let [(_, verdict)] = ranges {
        return Ok(*verdict);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (below, above) = (search(code, low)?, search(code, high)?);
    code.jump(IF_AT_LEAST, high[0].0, above, below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(argument: u64, high: bool) -> u32 {
        u32::try_from(if high { argument >> 32 } else { argument & 0xffff_ffff }).unwrap()
    }

    /// The filter's verdict on a call: a small machine for the instructions that we emit.
    fn verdict(number: u32, args: [u64; 6]) -> u32 {
        let program = filter().unwrap();
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let op = &program[at];
            at += 1;
            let taken = match op.code {
                LOAD => {
                    accumulator = match op.k {
                        0 => number,
                        4 => AUDIT_ARCH_X86_64,
                        k => half(args[(k as usize - 16) / 8], k % 8 != 0),
                    };
                    continue;
                }
                GO => {
                    at += op.k as usize;
                    continue;
                }
                RETURN => return op.k,
                IF_EQUAL => accumulator == op.k,
                IF_AT_LEAST => accumulator >= op.k,
                IF_BITS => accumulator & op.k != 0,
                code => panic!("unknown instruction {code:#x}"),
            };
            at += usize::from(if taken { op.jt } else { op.jf });
        }
    }

    #[test]
    fn exactly_the_listed_calls_pass() {
        let special: Vec<i64> = BY_ARGUMENT.iter().map(|row| row.0).chain([libc::SYS_clone3]).collect();
        for number in 0..1100_u32 {
            if special.contains(&i64::from(number)) {
                continue;
            }
            let expected = if ALLOWED.contains(&i64::from(number)) { ALLOW } else { DENY };
            assert_eq!(verdict(number, [0; 6]), expected, "number {number}");
        }
    }

    #[test]
    fn arguments_decide() {
        let n = |number: i64| u32::try_from(number).unwrap();
        assert_eq!(verdict(n(libc::SYS_clone), [libc::CLONE_THREAD as u64 | 0x100, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(verdict(n(libc::SYS_clone), [17, 0, 0, 0, 0, 0]), DENY);
        assert_eq!(verdict(n(libc::SYS_clone3), [0; 6]), ABSENT);
        assert_eq!(verdict(n(libc::SYS_tgkill), [std::process::id().into(), 5, 9, 0, 0, 0]), ALLOW);
        assert_eq!(verdict(n(libc::SYS_tgkill), [u64::from(std::process::id()) ^ 1, 5, 9, 0, 0, 0]), DENY);
        for family in 0..50 {
            let allowed = [1, 2, 10].contains(&family);
            assert_eq!(verdict(n(libc::SYS_socket), [family, 0, 0, 0, 0, 0]), if allowed { ALLOW } else { DENY });
        }
        assert_eq!(verdict(n(libc::SYS_unshare), [libc::CLONE_NEWUSER as u64, 0, 0, 0, 0, 0]), DENY);
        assert_eq!(verdict(n(libc::SYS_prctl), [libc::PR_SET_DUMPABLE as u64, 0, 0, 0, 0, 0]), DENY);
        assert_eq!(verdict(n(libc::SYS_prctl), [libc::PR_SET_NAME as u64, 0, 0, 0, 0, 0]), ALLOW);
    }

    #[test]
    fn limits_are_not_set() {
        let prlimit = |new: u64| verdict(u32::try_from(libc::SYS_prlimit64).unwrap(), [0, 7, new, 0, 0, 0]);
        assert_eq!(prlimit(0), ALLOW);
        for address in [1, 0x1_0000_0000, 0x7fff_0000_1000] {
            assert_eq!(prlimit(address), DENY, "{address:#x}");
        }
    }

    #[test]
    fn files_send_no_signals() {
        const F_SETSIG: i32 = 10;
        let fcntl = |command: i32, value: i32| {
            let number = u32::try_from(libc::SYS_fcntl).unwrap();
            let [command, value] = [command, value].map(|number| i64::from(number).cast_unsigned());
            verdict(number, [3, command, value, 0, 0, 0])
        };
        for command in [libc::F_GETFL, libc::F_DUPFD_CLOEXEC, libc::F_OFD_SETLKW, libc::F_SETLEASE, libc::F_ADD_SEALS] {
            assert_eq!(fcntl(command, 0), ALLOW, "{command}");
        }
        // F_SETOWN_EX is 15.
        for command in [libc::F_SETOWN, 15, libc::F_NOTIFY, libc::F_SETLKW, 4096, -1] {
            assert_eq!(fcntl(command, 0), DENY, "{command}");
        }
        assert_eq!(fcntl(libc::F_SETFL, libc::O_NONBLOCK | libc::O_APPEND), ALLOW);
        assert_eq!(fcntl(libc::F_SETFL, libc::O_NONBLOCK | libc::O_ASYNC), DENY);
        assert_eq!(fcntl(F_SETSIG, libc::SIGCHLD), ALLOW);
        assert_eq!(fcntl(F_SETSIG, libc::SIGKILL), DENY);
    }

    #[test]
    fn requests_are_known_by_number() {
        let ioctl = |request: u64| verdict(u32::try_from(libc::SYS_ioctl).unwrap(), [0, request, 0, 0, 0, 0]);
        for request in requests::ioctls() {
            // The host looks at the low half.
            assert_eq!([ioctl(request.into()), ioctl(u64::from(request) | 1 << 40)], [ALLOW; 2], "{request:#x}");
        }
        let others = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSCTTY, libc::TIOCSPGRP, libc::TIOCSETD, libc::TIOCCONS];
        for request in others.into_iter().chain([0x5452, 0x8901, 0x8902, 0, 0xffff_ffff]) {
            assert_eq!(ioctl(request), DENY, "{request:#x}");
        }
    }
}
