//! The table: every system call, once. It is one list and nothing else, and so longer than other
//! files.
//!
//! A row is number, area, name, typed arguments, result. The documentation lines above a row say
//! what we do not support. Rows under `missing` have no kernel function and fail as
//! [`absent`](crate::absent) says; a grate can serve them all the same. To add a call, move its row
//! up (or write it) and write `lind_kernel::sys::<area>::<name>`; then run `lind-abigen`.

/// Hands the rows to the macro `$then` as `implemented { rows } missing { rows }`.
#[macro_export]
macro_rules! for_each_syscall { ($then:ident) => { $then! {
implemented {
    0    fs       read(fd: Fd, buf: Out<u8>, len: Len) -> usize;
    1    fs       write(fd: Fd, buf: In<u8>, len: Len) -> usize;
    /// O_TMPFILE and O_PATH behave as the host's file system has them.
    2    fs       open(path: Path, flags: OpenFlags, mode: Mode) -> NewFd;
    3    fs       close(fd: Fd) -> ();
    4    fs       stat(path: Path, buf: Out<Stat>) -> ();
    5    fs       fstat(fd: Fd, buf: Out<Stat>) -> ();
    6    fs       lstat(path: Path, buf: Out<Stat>) -> ();
    7    wait     poll(fds: InOut<Pollfd>, nfds: Len, timeout: i32) -> usize;
    8    fs       lseek(fd: Fd, offset: Off, whence: Whence) -> Off;
    /// Guest memory is never executable: PROT_EXEC is accepted and has no effect. MAP_HUGETLB is
    /// ENOMEM, MAP_LOCKED EPERM, MAP_GROWSDOWN EINVAL.
    9    memory   mmap(addr: Addr, len: Len, prot: Prot, flags: MapFlags, fd: Fd, offset: Off) -> Addr;
    10   memory   mprotect(addr: Addr, len: Len, prot: Prot) -> ();
    11   memory   munmap(addr: Addr, len: Len) -> ();
    12   memory   brk(addr: Addr) -> Addr;
    13   signal   rt_sigaction(sig: Signal, act: In<Sigaction>, old: Out<Sigaction>, size: Len) -> ();
    14   signal   rt_sigprocmask(how: SigmaskHow, set: In<Sigset>, old: Out<Sigset>, size: Len) -> ();
    /// Terminal requests (TIOCSTI is EPERM; the only line discipline is N_TTY), FIONREAD, FIONBIO,
    /// FIOCLEX, FIONCLEX, FIOQSIZE, FIGETBSZ, FS_IOC_GETFLAGS, FS_IOC_GETVERSION, SIOCATMARK and
    /// interface queries; FICLONE and its like are EOPNOTSUPP where Linux would not refuse them;
    /// others are ENOTTY.
    16   fs       ioctl(fd: Fd, request: IoctlRequest, arg: InOut<u8>) -> i32;
    17   fs       pread64(fd: Fd, buf: Out<u8>, len: Len, offset: Off) -> usize;
    18   fs       pwrite64(fd: Fd, buf: In<u8>, len: Len, offset: Off) -> usize;
    19   fs       readv(fd: Fd, iov: In<Iovec>, count: Len) -> usize;
    20   fs       writev(fd: Fd, iov: In<Iovec>, count: Len) -> usize;
    21   fs       access(path: Path, mode: AccessMode) -> ();
    22   fs       pipe(fds: Out<[i32; 2]>) -> ();
    23   wait     select(n: i32, read: InOut<FdSet>, write: InOut<FdSet>, except: InOut<FdSet>, timeout: InOut<Timeval>) -> usize;
    24   process  sched_yield() -> ();
    /// Private mappings of files do not grow, shared ones grow only by moving.
    25   memory   mremap(addr: Addr, old_len: Len, new_len: Len, flags: RemapFlags, new_addr: Addr) -> Addr;
    26   memory   msync(addr: Addr, len: Len, flags: SyncFlags) -> ();
    27   memory   mincore(addr: Addr, len: Len, vec: Out<u8>) -> ();
    /// MADV_REMOVE, page merging and poisoning are EINVAL.
    28   memory   madvise(addr: Addr, len: Len, advice: Advice) -> ();
    29   ipc      shmget(key: i32, size: Len, flags: i32) -> i32;
    30   ipc      shmat(id: i32, addr: Addr, flags: i32) -> Addr;
    31   ipc      shmctl(id: i32, cmd: i32, buf: InOut<ShmidDs>) -> i32;
    32   fs       dup(fd: Fd) -> NewFd;
    33   fs       dup2(old: Fd, new: Fd) -> NewFd;
    34   signal   pause() -> ();
    35   time     nanosleep(req: In<Timespec>, rem: Out<Timespec>) -> ();
    36   time     getitimer(which: i32, value: Out<Itimerval>) -> ();
    37   time     alarm(seconds: u32) -> u32;
    /// ITIMER_VIRTUAL counts the system's time too.
    38   time     setitimer(which: i32, new: In<Itimerval>, old: Out<Itimerval>) -> ();
    39   process  getpid() -> Pid;
    40   fs       sendfile(out: Fd, input: Fd, offset: InOut<i64>, count: Len) -> usize;
    /// AF_UNIX, AF_INET and AF_INET6. Raw sockets are EPERM; of protocols there are TCP, UDP,
    /// UDP-Lite and ICMP echo.
    41   net      socket(domain: SocketDomain, kind: SocketType, protocol: i32) -> NewFd;
    42   net      connect(fd: Fd, addr: In<Sockaddr>, len: Len) -> ();
    43   net      accept(fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>) -> NewFd;
    44   net      sendto(fd: Fd, buf: In<u8>, len: Len, flags: MsgFlags, addr: In<Sockaddr>, addr_len: Len) -> usize;
    45   net      recvfrom(fd: Fd, buf: Out<u8>, len: Len, flags: MsgFlags, addr: Out<Sockaddr>, addr_len: InOut<u32>) -> usize;
    /// SCM_CREDENTIALS must name the calling cage itself, as for a process that may not speak for
    /// others.
    46   net      sendmsg(fd: Fd, msg: In<Msghdr>, flags: MsgFlags) -> usize;
    /// No path starts at a directory that was received, and no epoll instance that was received can
    /// be changed. Messages from outside the runner have process 0 in SCM_CREDENTIALS.
    47   net      recvmsg(fd: Fd, msg: InOut<Msghdr>, flags: MsgFlags) -> usize;
    48   net      shutdown(fd: Fd, how: ShutdownHow) -> ();
    /// A unix path leads where open leads. Names without a file are the runner's: its cages see
    /// each other's and not the host's.
    49   net      bind(fd: Fd, addr: In<Sockaddr>, len: Len) -> ();
    50   net      listen(fd: Fd, backlog: i32) -> ();
    51   net      getsockname(fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>) -> ();
    52   net      getpeername(fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>) -> ();
    53   net      socketpair(domain: SocketDomain, kind: SocketType, protocol: i32, fds: Out<[i32; 2]>) -> ();
    /// Options that attach programs, hold addresses or configure netfilter are ENOPROTOOPT.
    54   net      setsockopt(fd: Fd, level: SockLevel, option: i32, value: In<u8>, len: Len) -> ();
    /// As setsockopt.
    55   net      getsockopt(fd: Fd, level: SockLevel, option: i32, value: Out<u8>, len: InOut<u32>) -> ();
    /// Threads, children that borrow the memory of their parent until they run a program (CLONE_VM
    /// | CLONE_VFORK), and fork, which is the import `fork` and seen by grates as clone with
    /// SIGCHLD. The stack is the block that `__lind_thread_start` starts from. A child may be a
    /// sibling (CLONE_PARENT) and have CLONE_NEWUTS and CLONE_NEWIPC; other namespaces are EPERM.
    /// Other combinations are EINVAL; in a grate's handler ENOSYS.
    56   process  clone(flags: CloneFlags, stack: Addr, parent_tid: Out<i32>, child_tid: Out<i32>, tls: Addr) -> Pid;
    /// A program is a .wasm, a .cwasm or a script. A program that runs can be written to; in a
    /// grate's handler EBUSY.
    59   process  execve(path: Path, argv: StrArray, envp: StrArray) -> NoReturn;
    /// Ends the calling thread; the last one ends the cage.
    60   process  exit(status: i32) -> NoReturn;
    61   process  wait4(pid: Pid, status: Out<i32>, options: WaitFlags, usage: Out<Rusage>) -> Pid;
    /// Linux's rule of user ids applies; a cage with grates reaches only cages that have the same
    /// grates, and its descendants.
    62   signal   kill(pid: Pid, sig: Signal) -> ();
    63   process  uname(buf: Out<Utsname>) -> ();
    64   ipc      semget(key: i32, count: i32, flags: i32) -> i32;
    65   ipc      semop(id: i32, ops: In<Sembuf>, count: Len) -> ();
    66   ipc      semctl(id: i32, index: i32, cmd: i32, arg: InOut<SemidDs>) -> i32;
    67   ipc      shmdt(addr: Addr) -> ();
    68   ipc      msgget(key: i32, flags: i32) -> i32;
    69   ipc      msgsnd(id: i32, msg: In<i32>, size: Len, flags: i32) -> ();
    /// MSG_COPY is ENOSYS.
    70   ipc      msgrcv(id: i32, msg: Out<i32>, size: Len, kind: i32, flags: i32) -> usize;
    71   ipc      msgctl(id: i32, cmd: i32, buf: InOut<MsqidDs>) -> i32;
    72   fs       fcntl(fd: Fd, cmd: FcntlCmd, arg: InOut<Flock>) -> i32;
    73   fs       flock(fd: Fd, op: LockOp) -> ();
    74   fs       fsync(fd: Fd) -> ();
    75   fs       fdatasync(fd: Fd) -> ();
    76   fs       truncate(path: Path, len: Off) -> ();
    77   fs       ftruncate(fd: Fd, len: Off) -> ();
    /// The entries have 64-bit numbers, as on x86-64.
    78   fs       getdents(fd: Fd, buf: Out<u8>, len: Len) -> usize;
    /// ENOENT, not `(unreachable)`, for a directory that was moved out of the root.
    79   fs       getcwd(buf: Out<u8>, len: Len) -> usize;
    80   fs       chdir(path: Path) -> ();
    81   fs       fchdir(fd: Fd) -> ();
    82   fs       rename(old: Path, new: Path) -> ();
    83   fs       mkdir(path: Path, mode: Mode) -> ();
    84   fs       rmdir(path: Path) -> ();
    85   fs       creat(path: Path, mode: Mode) -> NewFd;
    86   fs       link(old: Path, new: Path) -> ();
    87   fs       unlink(path: Path) -> ();
    88   fs       symlink(target: Path, path: Path) -> ();
    89   fs       readlink(path: Path, buf: Out<u8>, len: Len) -> usize;
    90   fs       chmod(path: Path, mode: Mode) -> ();
    91   fs       fchmod(fd: Fd, mode: Mode) -> ();
    92   fs       chown(path: Path, uid: Uid, gid: Gid) -> ();
    93   fs       fchown(fd: Fd, uid: Uid, gid: Gid) -> ();
    94   fs       lchown(path: Path, uid: Uid, gid: Gid) -> ();
    95   fs       umask(mask: Mode) -> Mode;
    96   time     gettimeofday(tv: Out<Timeval>, tz: Out<Timezone>) -> ();
    97   process  getrlimit(resource: Resource, limit: Out<Rlimit>) -> ();
    /// ru_maxrss is the mapped memory; a grate's handler counts for the client whose call it
    /// serves.
    98   process  getrusage(who: RusageWho, usage: Out<Rusage>) -> ();
    99   process  sysinfo(info: Out<Sysinfo>) -> ();
    100  time     times(buf: Out<Tms>) -> i64;
    102  process  getuid() -> Uid;
    104  process  getgid() -> Gid;
    /// Ids are the cage's, not one thread's. Where the runner is not root, they change only to
    /// those the cage already has (EPERM otherwise).
    105  process  setuid(uid: Uid) -> ();
    106  process  setgid(gid: Gid) -> ();
    107  process  geteuid() -> Uid;
    108  process  getegid() -> Gid;
    109  process  setpgid(pid: Pid, pgid: Pid) -> ();
    110  process  getppid() -> Pid;
    111  process  getpgrp() -> Pid;
    112  process  setsid() -> Pid;
    113  process  setreuid(ruid: Uid, euid: Uid) -> ();
    114  process  setregid(rgid: Gid, egid: Gid) -> ();
    115  process  getgroups(size: i32, list: Out<u32>) -> usize;
    116  process  setgroups(size: Len, list: In<u32>) -> ();
    117  process  setresuid(ruid: Uid, euid: Uid, suid: Uid) -> ();
    118  process  getresuid(ruid: Out<u32>, euid: Out<u32>, suid: Out<u32>) -> ();
    119  process  setresgid(rgid: Gid, egid: Gid, sgid: Gid) -> ();
    120  process  getresgid(rgid: Out<u32>, egid: Out<u32>, sgid: Out<u32>) -> ();
    121  process  getpgid(pid: Pid) -> Pid;
    122  process  setfsuid(uid: Uid) -> Uid;
    123  process  setfsgid(gid: Gid) -> Gid;
    124  process  getsid(pid: Pid) -> Pid;
    /// Root has those that allow anything here; files give none.
    125  process  capget(header: InOut<[i32; 2]>, data: Out<u32>) -> ();
    126  process  capset(header: InOut<[i32; 2]>, data: In<u32>) -> ();
    127  signal   rt_sigpending(set: Out<Sigset>, size: Len) -> ();
    128  signal   rt_sigtimedwait(set: In<Sigset>, info: Out<Siginfo>, timeout: In<Timespec>, size: Len) -> Signal;
    /// The permissions are those of kill. The first seven words of the union are kept.
    129  signal   rt_sigqueueinfo(pid: Pid, sig: Signal, info: In<Siginfo>) -> ();
    130  signal   rt_sigsuspend(mask: In<Sigset>, size: Len) -> ();
    131  signal   sigaltstack(new: In<Stack>, old: Out<Stack>) -> ();
    132  fs       utime(path: Path, times: In<Utimbuf>) -> ();
    /// Device nodes are EPERM for everyone, but for the one with number 0, which is none.
    133  fs       mknod(path: Path, mode: Mode, dev: u64) -> ();
    /// Kept and inherited; of its flags, UNAME26 and STICKY_TIMEOUTS change something.
    135  process  personality(persona: u64) -> i32;
    137  fs       statfs(path: Path, buf: Out<Statfs>) -> ();
    138  fs       fstatfs(fd: Fd, buf: Out<Statfs>) -> ();
    140  process  getpriority(which: i32, who: i32) -> i32;
    /// The value is kept and inherited, but does not affect the host's scheduler.
    141  process  setpriority(which: i32, who: i32, priority: i32) -> ();
    142  process  sched_setparam(pid: Pid, param: Addr) -> ();
    143  process  sched_getparam(pid: Pid, param: Addr) -> ();
    /// The policy is kept and inherited, but does not affect the host's scheduler. SCHED_DEADLINE
    /// is EPERM for everyone.
    144  process  sched_setscheduler(pid: Pid, policy: i32, param: Addr) -> i32;
    145  process  sched_getscheduler(pid: Pid) -> i32;
    146  process  sched_get_priority_max(policy: i32) -> i32;
    147  process  sched_get_priority_min(policy: i32) -> i32;
    /// 100 ms for SCHED_RR, and 0 for others.
    148  process  sched_rr_get_interval(pid: Pid, interval: Out<Timespec>) -> ();
    /// The host's limit on locked memory is each cage's, and that of all cages together.
    149  memory   mlock(addr: Addr, len: Len) -> ();
    150  memory   munlock(addr: Addr, len: Len) -> ();
    /// As mlock.
    151  memory   mlockall(flags: i32) -> ();
    152  memory   munlockall() -> ();
    /// Names, dumpable, no_new_privs, timer slack, the signal for the end of the parent (as a
    /// whole, not of the thread that forked), PR_SET_CHILD_SUBREAPER, and SECCOMP_MODE_STRICT,
    /// which applies to the whole cage; others are EINVAL.
    157  process  prctl(op: PrctlOp, a: u64, b: u64, c: u64, d: u64) -> i32;
    /// A hard limit can only be lowered; with CAP_SYS_RESOURCE raised again, to the value with
    /// which the cage was started. NOFILE, AS, DATA, FSIZE, CPU bind; the others are kept and
    /// inherited.
    160  process  setrlimit(resource: Resource, limit: In<Rlimit>) -> ();
    /// The file system that holds the root.
    /// Grates that follow paths have to handle it, too: EPERM if one does not. A grate names a
    /// directory for its client by an empty path and a descriptor of its own.
    161  fs       chroot(path: Path, dir: DirFd) -> ();
    162  fs       sync() -> ();
    170  process  sethostname(name: In<u8>, len: Len) -> ();
    171  process  setdomainname(name: In<u8>, len: Len) -> ();
    186  process  gettid() -> Pid;
    187  fs       readahead(fd: Fd, offset: Off, len: Len) -> ();
    /// `user.*` and POSIX access lists, of files inside the root; others are EPERM or EOPNOTSUPP.
    188  fs       setxattr(path: Path, name: Str, value: In<u8>, len: Len, flags: i32) -> ();
    189  fs       lsetxattr(path: Path, name: Str, value: In<u8>, len: Len, flags: i32) -> ();
    190  fs       fsetxattr(fd: Fd, name: Str, value: In<u8>, len: Len, flags: i32) -> ();
    191  fs       getxattr(path: Path, name: Str, value: Out<u8>, len: Len) -> usize;
    192  fs       lgetxattr(path: Path, name: Str, value: Out<u8>, len: Len) -> usize;
    193  fs       fgetxattr(fd: Fd, name: Str, value: Out<u8>, len: Len) -> usize;
    194  fs       listxattr(path: Path, list: Out<u8>, len: Len) -> usize;
    195  fs       llistxattr(path: Path, list: Out<u8>, len: Len) -> usize;
    196  fs       flistxattr(fd: Fd, list: Out<u8>, len: Len) -> usize;
    197  fs       removexattr(path: Path, name: Str) -> ();
    198  fs       lremovexattr(path: Path, name: Str) -> ();
    199  fs       fremovexattr(fd: Fd, name: Str) -> ();
    200  signal   tkill(tid: Pid, sig: Signal) -> ();
    201  time     time(out: Out<i64>) -> i64;
    /// Waits and wakes within a cage; locks that inherit priorities inherit none,
    /// FUTEX_CMP_REQUEUE_PI is ENOSYS.
    202  sync     futex(addr: InOut<u32>, op: FutexOp, value: u32, timeout: In<Timespec>, addr2: InOut<u32>, value3: u32) -> i32;
    /// Processors that the runner was not given are left out.
    203  process  sched_setaffinity(pid: Pid, size: Len, mask: In<u8>) -> ();
    204  process  sched_getaffinity(pid: Pid, size: Len, mask: Out<u8>) -> usize;
    213  wait     epoll_create(size: i32) -> NewFd;
    217  fs       getdents64(fd: Fd, buf: Out<u8>, len: Len) -> usize;
    218  process  set_tid_address(addr: Addr) -> Pid;
    220  ipc      semtimedop(id: i32, ops: In<Sembuf>, count: Len, timeout: In<Timespec>) -> ();
    221  fs       fadvise64(fd: Fd, offset: Off, len: Off, advice: Fadvice) -> ();
    /// The only clock of processor time is the process's.
    222  time     timer_create(clock: Clock, event: In<Sigevent>, id: Out<i32>) -> ();
    223  time     timer_settime(id: i32, flags: TimerFlags, new: In<Itimerspec>, old: Out<Itimerspec>) -> ();
    224  time     timer_gettime(id: i32, value: Out<Itimerspec>) -> ();
    225  time     timer_getoverrun(id: i32) -> i32;
    226  time     timer_delete(id: i32) -> ();
    /// The processor-time clock of another process can be read only for descendants, and no call
    /// can wait for it.
    228  time     clock_gettime(clock: Clock, tp: Out<Timespec>) -> ();
    229  time     clock_getres(clock: Clock, res: Out<Timespec>) -> ();
    230  time     clock_nanosleep(clock: Clock, flags: TimerFlags, req: In<Timespec>, rem: Out<Timespec>) -> ();
    231  process  exit_group(status: i32) -> NoReturn;
    232  wait     epoll_wait(fd: Fd, events: Out<EpollEvent>, max: i32, timeout: i32) -> usize;
    /// At most nine numbers of one open file can be in an instance (ENOSPC). EPOLLWAKEUP is
    /// ignored.
    233  wait     epoll_ctl(fd: Fd, op: EpollOp, target: Fd, event: In<EpollEvent>) -> ();
    234  signal   tgkill(tgid: Pid, tid: Pid, sig: Signal) -> ();
    235  fs       utimes(path: Path, times: In<Timeval>) -> ();
    /// At most 256 queues, of 10 messages of 8192 bytes; reading the descriptor is EINVAL.
    240  ipc      mq_open(name: Str, flags: OpenFlags, mode: Mode, attr: In<MqAttr>) -> NewFd;
    241  ipc      mq_unlink(name: Str) -> ();
    242  ipc      mq_timedsend(fd: Fd, msg: In<u8>, len: Len, priority: u32, timeout: In<Timespec>) -> ();
    243  ipc      mq_timedreceive(fd: Fd, msg: Out<u8>, len: Len, priority: Out<u32>, timeout: In<Timespec>) -> usize;
    /// SIGEV_THREAD wants an end of a socketpair(2) where Linux wants a netlink socket.
    244  ipc      mq_notify(fd: Fd, event: In<Sigevent>) -> ();
    245  ipc      mq_getsetattr(fd: Fd, new: In<MqAttr>, old: Out<MqAttr>) -> ();
    /// __WCLONE finds no child: the end of each is reported by SIGCHLD.
    247  process  waitid(kind: i32, id: Pid, info: Out<Siginfo>, options: WaitFlags, usage: Out<Rusage>) -> ();
    253  fs       inotify_init() -> NewFd;
    /// Nothing in /proc or /dev can be watched, but files that are open.
    254  fs       inotify_add_watch(fd: Fd, path: Path, mask: u32) -> i32;
    255  fs       inotify_rm_watch(fd: Fd, watch: i32) -> ();
    257  fs       openat(dir: DirFd, path: Path, flags: OpenFlags, mode: Mode) -> NewFd;
    258  fs       mkdirat(dir: DirFd, path: Path, mode: Mode) -> ();
    /// Device nodes are EPERM for everyone, but for the one with number 0, which is none.
    259  fs       mknodat(dir: DirFd, path: Path, mode: Mode, dev: u64) -> ();
    260  fs       fchownat(dir: DirFd, path: Path, uid: Uid, gid: Gid, flags: AtFlags) -> ();
    261  fs       futimesat(dir: DirFd, path: Path, times: In<Timeval>) -> ();
    262  fs       newfstatat(dir: DirFd, path: Path, buf: Out<Stat>, flags: AtFlags) -> ();
    263  fs       unlinkat(dir: DirFd, path: Path, flags: AtFlags) -> ();
    264  fs       renameat(old_dir: DirFd, old: Path, new_dir: DirFd, new: Path) -> ();
    /// Open files get a name (AT_EMPTY_PATH, /proc/self/fd) if they were opened inside the root.
    265  fs       linkat(old_dir: DirFd, old: Path, new_dir: DirFd, new: Path, flags: AtFlags) -> ();
    266  fs       symlinkat(target: Path, dir: DirFd, path: Path) -> ();
    267  fs       readlinkat(dir: DirFd, path: Path, buf: Out<u8>, len: Len) -> usize;
    268  fs       fchmodat(dir: DirFd, path: Path, mode: Mode) -> ();
    269  fs       faccessat(dir: DirFd, path: Path, mode: AccessMode) -> ();
    270  wait     pselect6(n: i32, read: InOut<FdSet>, write: InOut<FdSet>, except: InOut<FdSet>, timeout: InOut<Timespec>, mask: In<SigsetArg>) -> usize;
    271  wait     ppoll(fds: InOut<Pollfd>, nfds: Len, timeout: InOut<Timespec>, mask: In<Sigset>, size: Len) -> usize;
    /// CLONE_NEWUTS and CLONE_NEWIPC, which concern all threads of the cage; other namespaces are
    /// EPERM. The threads of a cage share all that they can share, so what concerns them is EINVAL
    /// in a cage with several.
    272  process  unshare(flags: CloneFlags) -> ();
    /// Locks are left when a thread ends or runs another program.
    273  sync     set_robust_list(head: Addr, len: Len) -> ();
    274  sync     get_robust_list(pid: Pid, head: Out<u32>, len: Out<u32>) -> ();
    /// Not from or to terminals.
    275  fs       splice(input: Fd, in_offset: InOut<i64>, out: Fd, out_offset: InOut<i64>, len: Len, flags: SpliceFlags) -> usize;
    276  fs       tee(input: Fd, out: Fd, len: Len, flags: SpliceFlags) -> usize;
    277  fs       sync_file_range(fd: Fd, offset: Off, len: Off, flags: u32) -> ();
    /// The data are copied, as splice(2) lets it be.
    278  fs       vmsplice(fd: Fd, iov: In<Iovec>, count: Len, flags: SpliceFlags) -> usize;
    280  fs       utimensat(dir: DirFd, path: Path, times: In<Timespec>, flags: AtFlags) -> ();
    281  wait     epoll_pwait(fd: Fd, events: Out<EpollEvent>, max: i32, timeout: i32, mask: In<Sigset>, size: Len) -> usize;
    282  signal   signalfd(fd: Fd, mask: In<Sigset>, size: Len) -> NewFd;
    283  time     timerfd_create(clock: Clock, flags: TimerfdFlags) -> NewFd;
    284  wait     eventfd(initial: u32) -> NewFd;
    285  fs       fallocate(fd: Fd, mode: FallocateMode, offset: Off, len: Off) -> ();
    286  time     timerfd_settime(fd: Fd, flags: TimerfdSetFlags, new: In<Itimerspec>, old: Out<Itimerspec>) -> ();
    287  time     timerfd_gettime(fd: Fd, value: Out<Itimerspec>) -> ();
    288  net      accept4(fd: Fd, addr: Out<Sockaddr>, len: InOut<u32>, flags: AcceptFlags) -> NewFd;
    /// A descriptor received from another cage in a message reports nothing; readv fills
    /// its first part only.
    289  signal   signalfd4(fd: Fd, mask: In<Sigset>, size: Len, flags: SignalfdFlags) -> NewFd;
    290  wait     eventfd2(initial: u32, flags: EventfdFlags) -> NewFd;
    291  wait     epoll_create1(flags: EpollFlags) -> NewFd;
    292  fs       dup3(old: Fd, new: Fd, flags: FdFlags) -> NewFd;
    293  fs       pipe2(fds: Out<[i32; 2]>, flags: FdFlags) -> ();
    294  fs       inotify_init1(flags: InotifyFlags) -> NewFd;
    /// The offset is one 64-bit argument; the fifth is unused.
    295  fs       preadv(fd: Fd, iov: In<Iovec>, count: Len, offset: Off) -> usize;
    296  fs       pwritev(fd: Fd, iov: In<Iovec>, count: Len, offset: Off) -> usize;
    297  signal   rt_tgsigqueueinfo(tgid: Pid, tid: Pid, sig: Signal, info: In<Siginfo>) -> ();
    299  net      recvmmsg(fd: Fd, msgs: InOut<Mmsghdr>, count: u32, flags: MsgFlags, timeout: InOut<Timespec>) -> usize;
    /// As setrlimit; of the cage itself or a descendant.
    302  process  prlimit64(pid: Pid, resource: Resource, new: In<Rlimit>, old: Out<Rlimit>) -> ();
    306  fs       syncfs(fd: Fd) -> ();
    307  net      sendmmsg(fd: Fd, msgs: InOut<Mmsghdr>, count: u32, flags: MsgFlags) -> usize;
    309  process  getcpu(cpu: Out<u32>, node: Out<u32>) -> ();
    /// As sched_setscheduler.
    314  process  sched_setattr(pid: Pid, attr: Addr, flags: u32) -> ();
    315  process  sched_getattr(pid: Pid, attr: Addr, size: u32, flags: u32) -> ();
    /// RENAME_WHITEOUT is EINVAL.
    316  fs       renameat2(old_dir: DirFd, old: Path, new_dir: DirFd, new: Path, flags: RenameFlags) -> ();
    318  process  getrandom(buf: Out<u8>, len: Len, flags: RandomFlags) -> usize;
    /// MFD_HUGETLB is EINVAL.
    319  fs       memfd_create(name: Str, flags: MemfdFlags) -> NewFd;
    322  process  execveat(dir: DirFd, path: Path, argv: StrArray, envp: StrArray, flags: AtFlags) -> NoReturn;
    /// Plain barriers: no instruction fetches, no restartable sequences.
    324  sync     membarrier(cmd: i32, flags: u32, cpu: i32) -> i32;
    325  memory   mlock2(addr: Addr, len: Len, flags: i32) -> ();
    326  fs       copy_file_range(input: Fd, in_offset: InOut<i64>, out: Fd, out_offset: InOut<i64>, len: Len, flags: u32) -> usize;
    327  fs       preadv2(fd: Fd, iov: In<Iovec>, count: Len, offset: Off, high: u64, flags: RwfFlags) -> usize;
    328  fs       pwritev2(fd: Fd, iov: In<Iovec>, count: Len, offset: Off, high: u64, flags: RwfFlags) -> usize;
    332  fs       statx(dir: DirFd, path: Path, flags: AtFlags, mask: StatxMask, buf: Out<Statx>) -> ();
    424  signal   pidfd_send_signal(fd: Fd, sig: Signal, info: In<Siginfo>, flags: u32) -> ();
    /// Not for threads.
    434  process  pidfd_open(pid: Pid, flags: u32) -> NewFd;
    /// CLOSE_RANGE_UNSHARE is EINVAL.
    436  fs       close_range(first: u32, last: u32, flags: CloseRangeFlags) -> ();
    /// RESOLVE_CACHED is EAGAIN.
    437  fs       openat2(dir: DirFd, path: Path, how: In<OpenHow>, size: Len) -> NewFd;
    439  fs       faccessat2(dir: DirFd, path: Path, mode: AccessMode, flags: AccessFlags) -> ();
    441  wait     epoll_pwait2(fd: Fd, events: Out<EpollEvent>, max: i32, timeout: In<Timespec>, mask: In<Sigset>, size: Len) -> usize;
    /// Version 2. EOPNOTSUPP where a grate follows paths and does not handle chroot.
    444  process  landlock_create_ruleset(attr: In<u8>, size: Len, flags: u32) -> i32;
    445  process  landlock_add_rule(ruleset: Fd, kind: i32, attr: In<u8>, flags: u32) -> ();
    /// Confines all threads of the cage, also in descriptors that a grate hands over.
    446  process  landlock_restrict_self(ruleset: Fd, flags: u32) -> ();
    452  fs       fchmodat2(dir: DirFd, path: Path, mode: Mode, flags: AtFlags) -> ();
    /// Sends `target`'s calls of this number to function `entry` of `grate` (0xffffffff: all
    /// numbers without an entry of their own). EPERM unless the caller has authority over `target`;
    /// ESRCH for cages that are not there. Flag 1: one call of the grate at a time. Flag 2:
    /// deregister.
    1001 threei   register_handler(target: u64, nr: u64, grate: u64, entry: u64, flags: u32) -> ();
    /// Copies between the memories of the cages that the two addresses belong to. Kind 1 copies a
    /// string with its NUL and is ENAMETOOLONG when there is none within `len`. Returns the bytes
    /// copied; kind 2 copies bytes and returns the time, in nanoseconds of CLOCK_REALTIME_COARSE,
    /// which a grate that serves writes to a file needs as well. `dst_cage` and `src_cage`, if not
    /// 0, name another cage than the address belongs to: this is faster where a grate's own call
    /// suffices.
    1002 threei   copy_data_between_cages(dst: Out<u8>, src: In<u8>, len: Len, kind: CopyKind, dst_cage: u64, src_cage: u64) -> usize;
    /// Replaces the whole table of `target` by that of `source`.
    1003 threei   copy_handler_table_to_cage(source: u64, target: u64) -> ();
    /// Starts a program in a new cage that has a copy of the caller's table, then these entries.
    /// Entry 0xffffffff routes a number as the caller's own calls, where the default entry would
    /// take it. With LIND_SPAWN_WAITS the child may begin only when the calling thread waits for a
    /// child, or ends: then it can run on the host thread that has nothing else to do. EINVAL for
    /// other flags.
    1004 threei   spawn(path: Path, argv: StrArray, envp: StrArray, handlers: In<SpawnHandler>, count: Len, spawn_flags: SpawnFlags) -> Pid;
    /// Calls function `entry` of the caller when a descendant ends: its id and wait status are the
    /// first two arguments.
    1005 threei   exit_notice(entry: u64) -> ();
    /// Makes the call that `call` describes, or, if that is NULL, the one that the caller is
    /// serving, as it came. It is routed by the handler table of cage `by`: the calling cage, or a
    /// proper descendant, for calls on that and its descendants. If `by` is 0, the table of the
    /// cage in the described call's field `caller` is used, and the calling cage's for the served
    /// call. Result and errors are the call's; EPERM for other tables, ELOOP for a described
    /// call_by, EINVAL without `call` outside a handler. Without `call` it enters no handler of
    /// call_by: the call that it makes arrives under its own number.
    1007 threei   call_by(call: In<LindCall>, by: u64) -> i64;
    /// Routes calls that `target`, a proper descendant of the caller, makes on its descriptors, so
    /// that they need not enter the caller's handler. A word of the caller's memory for each
    /// descriptor number decides: into the handler, or where the caller's own calls go, or those of
    /// a descendant in between. Once for each target (EEXIST); ENOSPC if four other grates have
    /// done so.
    1008 threei   route_fds(target: u64, routes: In<LindFdRoutes>) -> ();
    /// Duplicates a descriptor of the caller into the table of the cage on which the served call
    /// acts, as dup or fcntl(F_DUPFD_CLOEXEC) on that cage would, but faster. EINVAL outside a
    /// handler.
    1009 threei   give_fd(fd: Fd, flags: FdFlags) -> NewFd;
    /// Says how many descriptors the caller has in flight: in messages that nobody has received.
    1010 threei   in_flight() -> u64;
    /// Returns a descriptor, closed by spawn and execve, of a file that an option of a grate names
    /// and that the runner opened outside the root. Each is given once. If it is a directory,
    /// openat opens and makes files in it, and unlinkat removes them, if their names are numbers;
    /// no other path starts there. EBADF for other numbers, EPERM for a cage that is not a grate of
    /// the runner's command line.
    1011 threei   host_file(number: u64) -> NewFd;
    /// Says that a call of `client`, a descendant of the caller or the caller itself, was refused
    /// with an error; 0 where it was ended. `text` holds the rule, the request, and the permission
    /// that would allow it, each ended by a NUL. The process that started the runner gets the
    /// message; EOPNOTSUPP if it has not asked for denials. With flag 1 the call may wait for
    /// somebody's answer, and returns 1 if that allows the refused call.
    1012 threei   denied(client: u64, number: u64, error: u64, text: In<u8>, len: Len, flags: u32) -> u64;
    /// Makes the caller the grate of this name, whose rules the user can change. EPERM for a cage
    /// that is not a grate of the runner's command line, and for names that nobody expects or that
    /// another grate has taken.
    1013 threei   follow_rules(name: In<u8>, len: Len) -> ();
    /// Says what has come of the last rules (nothing: they are applied; otherwise the mistake in
    /// them), and waits for the next: words with a NUL behind each. EPERM for a cage without such
    /// a name.
    1014 threei   next_rules(answer: In<u8>, len: Len, to: Out<u8>, room: Len) -> u64;
    /// Uses up the permission of this number, which is for one use. ENOENT if it has been used.
    1015 threei   use_once(number: u64) -> ();
    /// Says, in a recorded run, that a handler begins on the calling thread: by its signal, with
    /// si_code above 32 bits; how many handlers of the thread have returned; the mask in force; and
    /// the words of siginfo_t's union in pairs. The engine makes this call for a program, and the
    /// grate that records sees it; the kernel does nothing.
    1016 threei   signalled(signal: u64, returns: u64, mask: u64, first: u64, second: u64, third: u64) -> ();
    /// Serves the grate that records or replays, about the cage that it makes this call on.
    /// STEER_ASK: 1 if a signal interrupted the present call. In a replayed run only:
    /// STEER_INTERRUPT: the present call is to end so; STEER_PLAN: this signal is next, when as
    /// many handlers as `value` have returned, with `mask` in force; STEER_CHILD: the next child
    /// gets the id `value`; STEER_END: it ends by signal `value`. EPERM in other runs and for a
    /// cage that is not a grate of the runner's command line.
    1017 threei   steer(what: Steer, info: In<Siginfo>, value: u64, mask: u64) -> u64;
}
missing {
    15   signal   rt_sigreturn() -> i64;
    /// fork and vfork are the import `fork`, seen by grates as clone with SIGCHLD, and for vfork
    /// CLONE_VM and CLONE_VFORK.
    57   process  fork() -> Pid;
    58   process  vfork() -> Pid;
    101  process  ptrace(request: i64, pid: Pid, addr: Addr, data: Addr) -> i64;
    103  process  syslog(kind: i32, buf: Out<u8>, len: Len) -> i32;
    134  process  uselib(path: Path) -> ();
    136  fs       ustat(dev: u64, buf: Addr) -> ();
    139  fs       sysfs(option: i32, a: u64, b: u64) -> i32;
    153  process  vhangup() -> ();
    154  process  modify_ldt(func: i32, ptr: Addr, len: Len) -> i32;
    155  fs       pivot_root(new: Path, old: Path) -> ();
    156  process  _sysctl(args: Addr) -> i32;
    158  process  arch_prctl(op: i32, addr: Addr) -> i32;
    159  time     adjtimex(buf: Addr) -> i32;
    163  process  acct(path: Path) -> ();
    164  time     settimeofday(tv: In<Timeval>, tz: In<Timezone>) -> ();
    165  fs       mount(source: Path, target: Path, kind: Str, flags: u64, data: Addr) -> ();
    166  fs       umount2(path: Path, flags: i32) -> ();
    167  fs       swapon(path: Path, flags: i32) -> ();
    168  fs       swapoff(path: Path) -> ();
    169  process  reboot(magic: i32, magic2: i32, cmd: u32, arg: Addr) -> ();
    172  process  iopl(level: i32) -> ();
    173  process  ioperm(from: u64, count: u64, on: i32) -> ();
    174  process  create_module(name: Str, size: Len) -> Addr;
    175  process  init_module(image: Addr, len: Len, params: Str) -> ();
    176  process  delete_module(name: Str, flags: u32) -> ();
    177  process  get_kernel_syms(table: Addr) -> i32;
    178  process  query_module(name: Str, which: i32, buf: Addr, size: Len, ret: Addr) -> i32;
    179  fs       quotactl(cmd: u32, special: Path, id: u32, addr: Addr) -> i32;
    180  fs       nfsservctl(cmd: i32, arg: Addr, res: Addr) -> i32;
    181  net      getpmsg() -> i32;
    182  net      putpmsg() -> i32;
    183  fs       afs_syscall() -> i32;
    184  process  tuxcall() -> i32;
    185  process  security() -> i32;
    205  process  set_thread_area(info: Addr) -> ();
    206  aio      io_setup(count: u32, ctx: Addr) -> ();
    207  aio      io_destroy(ctx: Addr) -> ();
    208  aio      io_getevents(ctx: Addr, min: i64, max: i64, events: Addr, timeout: In<Timespec>) -> i32;
    209  aio      io_submit(ctx: Addr, count: i64, iocbs: Addr) -> i32;
    210  aio      io_cancel(ctx: Addr, iocb: Addr, result: Addr) -> ();
    211  process  get_thread_area(info: Addr) -> ();
    212  process  lookup_dcookie(cookie: u64, buf: Out<u8>, len: Len) -> usize;
    214  wait     epoll_ctl_old() -> i32;
    215  wait     epoll_wait_old() -> i32;
    216  memory   remap_file_pages(addr: Addr, len: Len, prot: Prot, offset: Len, flags: MapFlags) -> ();
    219  process  restart_syscall() -> i64;
    227  time     clock_settime(clock: Clock, tp: In<Timespec>) -> ();
    236  process  vserver() -> i32;
    237  memory   mbind(addr: Addr, len: Len, mode: i32, mask: Addr, max: u64, flags: u32) -> ();
    238  memory   set_mempolicy(mode: i32, mask: Addr, max: u64) -> ();
    239  memory   get_mempolicy(mode: Addr, mask: Addr, max: u64, addr: Addr, flags: u64) -> ();
    246  process  kexec_load(entry: Addr, count: u64, segments: Addr, flags: u64) -> ();
    248  ipc      add_key(kind: Str, desc: Str, payload: Addr, len: Len, ring: i32) -> i32;
    249  ipc      request_key(kind: Str, desc: Str, info: Str, ring: i32) -> i32;
    250  ipc      keyctl(op: i32, a: u64, b: u64, c: u64, d: u64) -> i64;
    251  process  ioprio_set(which: i32, who: i32, priority: i32) -> ();
    252  process  ioprio_get(which: i32, who: i32) -> i32;
    256  memory   migrate_pages(pid: Pid, max: u64, from: Addr, to: Addr) -> i32;
    279  memory   move_pages(pid: Pid, count: u64, pages: Addr, nodes: Addr, status: Addr, flags: i32) -> ();
    298  process  perf_event_open(attr: Addr, pid: Pid, cpu: i32, group: Fd, flags: u64) -> NewFd;
    300  fs       fanotify_init(flags: u32, event_flags: u32) -> NewFd;
    301  fs       fanotify_mark(fd: Fd, flags: u32, mask: u64, dir: DirFd, path: Path) -> ();
    303  fs       name_to_handle_at(dir: DirFd, path: Path, handle: Addr, mount: Addr, flags: AtFlags) -> ();
    304  fs       open_by_handle_at(mount: Fd, handle: Addr, flags: OpenFlags) -> NewFd;
    305  time     clock_adjtime(clock: Clock, buf: Addr) -> i32;
    308  process  setns(fd: Fd, kind: i32) -> ();
    310  process  process_vm_readv(pid: Pid, local: Addr, local_count: Len, remote: Addr, remote_count: Len, flags: u64) -> usize;
    311  process  process_vm_writev(pid: Pid, local: Addr, local_count: Len, remote: Addr, remote_count: Len, flags: u64) -> usize;
    312  process  kcmp(pid1: Pid, pid2: Pid, kind: i32, a: u64, b: u64) -> i32;
    313  process  finit_module(fd: Fd, params: Str, flags: i32) -> ();
    317  process  seccomp(op: u32, flags: u32, args: Addr) -> i32;
    320  process  kexec_file_load(kernel: Fd, initrd: Fd, len: Len, cmdline: Str, flags: u64) -> ();
    321  process  bpf(cmd: i32, attr: Addr, size: u32) -> i32;
    323  memory   userfaultfd(flags: u32) -> NewFd;
    329  memory   pkey_mprotect(addr: Addr, len: Len, prot: Prot, key: i32) -> ();
    330  memory   pkey_alloc(flags: u32, rights: u32) -> i32;
    331  memory   pkey_free(key: i32) -> ();
    333  aio      io_pgetevents(ctx: Addr, min: i64, max: i64, events: Addr, timeout: In<Timespec>, mask: In<SigsetArg>) -> i32;
    334  sync     rseq(area: Addr, len: u32, flags: i32, signature: u32) -> ();
    425  aio      io_uring_setup(entries: u32, params: Addr) -> NewFd;
    426  aio      io_uring_enter(fd: Fd, submit: u32, complete: u32, flags: u32, mask: In<Sigset>, size: Len) -> i32;
    427  aio      io_uring_register(fd: Fd, op: u32, arg: Addr, count: u32) -> i32;
    428  fs       open_tree(dir: DirFd, path: Path, flags: u32) -> NewFd;
    429  fs       move_mount(from: DirFd, from_path: Path, to: DirFd, to_path: Path, flags: u32) -> ();
    430  fs       fsopen(name: Str, flags: u32) -> NewFd;
    431  fs       fsconfig(fd: Fd, cmd: u32, key: Str, value: Addr, aux: i32) -> ();
    432  fs       fsmount(fd: Fd, flags: u32, attr: u32) -> NewFd;
    433  fs       fspick(dir: DirFd, path: Path, flags: u32) -> NewFd;
    /// Grates see every birth under one number, clone's.
    435  process  clone3(args: In<CloneArgs>, size: Len) -> Pid;
    438  process  pidfd_getfd(pidfd: Fd, fd: i32, flags: u32) -> NewFd;
    440  memory   process_madvise(pidfd: Fd, iov: In<Iovec>, count: Len, advice: Advice, flags: u32) -> usize;
    442  fs       mount_setattr(dir: DirFd, path: Path, flags: u32, attr: Addr, size: Len) -> ();
    443  fs       quotactl_fd(fd: Fd, cmd: u32, id: u32, addr: Addr) -> ();
    447  memory   memfd_secret(flags: u32) -> NewFd;
    448  process  process_mrelease(pidfd: Fd, flags: u32) -> ();
    449  sync     futex_waitv(waiters: Addr, count: u32, flags: u32, timeout: In<Timespec>, clock: Clock) -> i32;
    450  memory   set_mempolicy_home_node(addr: Addr, len: Len, node: u64, flags: u64) -> ();
    451  memory   cachestat(fd: Fd, range: Addr, stat: Addr, flags: u32) -> ();
}
} } }
