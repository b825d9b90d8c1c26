/* The one way out of a cage. Numbers and structs are x86-64 Linux's; an argument is 64 bits wide,
 * so that offsets travel whole and no call needs splitting. Results in -4095..-1 are errnos. */
#define __SYSCALL_LL_E(x) (x)
#define __SYSCALL_LL_O(x) (x)

/* A pointer zero-extends, a number extends by its own sign. */
#define __scc(X) sizeof(1?(X):0ULL) < 8 ? (unsigned long) (X) : (long long) (X)
typedef long long syscall_arg_t;

__attribute__((__import_module__("lind"), __import_name__("syscall")))
long long __lind_syscall(int, long long, long long, long long, long long, long long, long long);

static __inline long __syscall0(long long n)
{
	return __lind_syscall(n, 0, 0, 0, 0, 0, 0);
}

static __inline long __syscall1(long long n, long long a)
{
	return __lind_syscall(n, a, 0, 0, 0, 0, 0);
}

static __inline long __syscall2(long long n, long long a, long long b)
{
	return __lind_syscall(n, a, b, 0, 0, 0, 0);
}

static __inline long __syscall3(long long n, long long a, long long b, long long c)
{
	return __lind_syscall(n, a, b, c, 0, 0, 0);
}

static __inline long __syscall4(long long n, long long a, long long b, long long c, long long d)
{
	return __lind_syscall(n, a, b, c, d, 0, 0);
}

static __inline long __syscall5(long long n, long long a, long long b, long long c, long long d, long long e)
{
	return __lind_syscall(n, a, b, c, d, e, 0);
}

static __inline long __syscall6(long long n, long long a, long long b, long long c, long long d, long long e,
	long long f)
{
	return __lind_syscall(n, a, b, c, d, e, f);
}

/* fork comes through an import of its own (see src/process/wasm32/_Fork.c), as does vfork. */
#undef SYS_fork
#undef SYS_vfork

/* futimesat is older than utimensat and not implemented. */
#undef SYS_futimesat

/* Not in wasm: segment registers. */
#undef SYS_set_thread_area
#undef SYS_get_thread_area
#undef SYS_arch_prctl

/* time_t is 64-bit in every call. */
#define SYS_clock_gettime64 SYS_clock_gettime
#define SYS_clock_settime64 SYS_clock_settime
#define SYS_clock_adjtime64 SYS_clock_adjtime
#define SYS_clock_getres_time64 SYS_clock_getres
#define SYS_clock_nanosleep_time64 SYS_clock_nanosleep
#define SYS_timer_gettime64 SYS_timer_gettime
#define SYS_timer_settime64 SYS_timer_settime
#define SYS_timerfd_gettime64 SYS_timerfd_gettime
#define SYS_timerfd_settime64 SYS_timerfd_settime
#define SYS_utimensat_time64 SYS_utimensat
#define SYS_pselect6_time64 SYS_pselect6
#define SYS_ppoll_time64 SYS_ppoll
#define SYS_recvmmsg_time64 SYS_recvmmsg
#define SYS_mq_timedsend_time64 SYS_mq_timedsend
#define SYS_mq_timedreceive_time64 SYS_mq_timedreceive
/* semtimedop.c prefers the one with 32-bit times where there are both. */
#define SYS_semtimedop_time64 __NR_semtimedop
#undef SYS_semtimedop
#define SYS_rt_sigtimedwait_time64 SYS_rt_sigtimedwait
#define SYS_futex_time64 SYS_futex
#define SYS_sched_rr_get_interval_time64 SYS_sched_rr_get_interval
#define SYS_getrusage_time64 SYS_getrusage
#define SYS_wait4_time64 SYS_wait4

#define IPC_64 0
