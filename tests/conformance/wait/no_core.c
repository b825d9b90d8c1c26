/* Without room for a core file none is dumped, and wait does not say so. */
#include "../check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	static const int signals[] = { SIGQUIT, SIGILL, SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGSYS, SIGTRAP, SIGXCPU,
		SIGTERM };
	struct rlimit none = { 0, 0 };

	int pattern = open("/proc/sys/kernel/core_pattern", O_RDONLY);
	char first = 0;

	if (pattern >= 0 && read(pattern, &first, 1) == 1 && first == '|') {
		puts("a program takes the cores here, whatever the limit is");
		return 77;
	}
	close(pattern);
	NEED(setrlimit(RLIMIT_CORE, &none) == 0);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		siginfo_t info = { 0 };
		int status = 0;
		pid_t pid = fork();

		NEED(pid >= 0);
		if (pid == 0) {
			signal(signals[i], SIG_DFL);
			raise(signals[i]);
			_exit(0);
		}
		CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
		CHECK_EQ(info.si_status, signals[i]);
		CHECK_EQ(info.si_code, CLD_KILLED);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, signals[i]);
	}
	return check_done();
}
