/*
 * Random calls: `random SEED CHILDREN`. Children make them, 200 each, of numbers of the table and
 * beyond, with arguments that are sometimes right; whatever becomes of them, we end with 0.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state;
static char memory[1 << 16];

static uint32_t any(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % n;
}

static long argument(void)
{
	static const char *const paths[] = { "a", "b", ".", "..", "", "/", "a/b", "/proc/self/status",
		"/proc/self/fd/3", "/dev/null", "../a", "/tmp/x", "l", "kept", "kept/a" };
	static const long numbers[] = { 0, 1, 2, -1, -100, 4096, 65536, 1 << 20, 0x7fffffff, -2147483647 - 1 };
	char *at = memory + any(sizeof memory - 4096);

	switch (any(6)) {
	case 0:
		return any(16);
	case 1:
		return numbers[any(sizeof numbers / sizeof *numbers)];
	case 2:
		return (long)1 << any(32);
	case 3:
		return (long)(intptr_t)strcpy(at, paths[any(sizeof paths / sizeof *paths)]);
	case 4:
		/* A struct of small numbers, or of addresses. */
		for (int i = 0; i < 64; i++)
			((uint32_t *)((uintptr_t)at & ~3ul))[i] =
			    any(2) ? any(100) : (uint32_t)(uintptr_t)memory + any(sizeof memory);
		return (long)(intptr_t)((uintptr_t)at & ~3ul);
	default:
		return (long)any(UINT32_MAX);
	}
}

/* Those that end the child before its time, or wait for what never comes, or reach the parent. */
static int left_out(long nr)
{
	switch (nr) {
	case SYS_exit:
	case SYS_exit_group:
	case SYS_rt_sigreturn:
	case SYS_pause:
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
	case SYS_pidfd_send_signal:
	case SYS_rt_sigprocmask:
	case SYS_rt_sigaction:
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
	case SYS_alarm:
	case SYS_setitimer:
		return 1;
	default:
		return 0;
	}
}

static void calls(void)
{
	/* Where one waits this ends all. */
	alarm(1);
	for (int i = 0; i < 200; i++) {
		long nr = any(50) ? any(470) : any(2) ? 1000 + any(10) : any(UINT32_MAX);

		if (!left_out(nr))
			syscall(nr, argument(), argument(), argument(), argument(), argument(), argument());
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	state = (argc > 1 ? strtoull(argv[1], NULL, 0) : 1) * 0x9e3779b97f4a7c15ull + 1;
	for (long children = argc > 2 ? atol(argv[2]) : 10; children; children--) {
		any(2);
		if (!fork())
			calls();
		while (wait(NULL) < 0)
			;
	}
	return 0;
}
