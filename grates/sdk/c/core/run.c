/* Starting the next program and the way into a handler. */
#include <errno.h>
#include <lind/raw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "program.h"
#include "sdk.h"

extern char **environ;

/* The engine calls this to run a handler: `entry` is its place in the function table, and so its
 * function pointer. */
__attribute__((export_name("__lind_handle"))) int64_t lind_handle(uint32_t entry, const struct lind_call *call);

int64_t lind_handle(uint32_t entry, const struct lind_call *call)
{
	lind_serving_ = call;
	return ((lind_handle_fn *)(uintptr_t)entry)(call);
}

static void nothing(int signal)
{
	(void)signal;
}

/* Whether a signal has a handler that does something. A thread that has lent its host thread to
 * the client runs none until the client has ended, so then it keeps it. */
static int has_handlers(void)
{
	struct sigaction action;

	for (int signal = 1; signal < NSIG; signal++)
		if (!sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    action.sa_handler != nothing)
			return 1;
	return 0;
}

/* Leaves signals that a person or a shell sends to the whole group to the client: a grate that
 * ended would end a client that means to go on. They are caught and not ignored, so that the
 * client does not inherit it. */
static void leave_to_client(void)
{
	static const int sent[] = { SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM };
	struct sigaction before, caught = { .sa_handler = nothing, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
		if (!sigaction(sent[i], NULL, &before) && !(before.sa_flags & SA_SIGINFO) &&
		    before.sa_handler == SIG_DFL)
			sigaction(sent[i], &caught, NULL);
}

static lind_handle_fn *starts_by;

void lind_starts_by(lind_handle_fn *handle)
{
	starts_by = handle;
}

static int64_t spawn(
    const char *path, char **argv, const struct lind_spawn_handler *table, size_t count, uint32_t flags)
{
	uint64_t self = lind_self();
	struct lind_call call = { .nr = SYS_spawn,
		.caller = self,
		.target = self,
		.args = { lind_mine(path), lind_mine(argv), lind_mine(environ), lind_mine(table), { count, self },
		    { flags, self } } };
	int64_t child;

	/* The handler's questions about us must not wait for this birth. */
	if (starts_by)
		lind_client(self);
	lind_birth_begins();
	child = starts_by ? starts_by(&call) : lind_forward(&call);
	lind_birth_ends(NULL, child, 1);
	return child;
}

static int wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			lind_die("cannot wait for process %d: %s", (int)child, strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int lind_start_and_wait(
    const char *path, char **argv, const struct lind_spawn_handler *table, size_t count, uint32_t flags)
{
	char name[PATH_MAX];
	int64_t child;

	leave_to_client();
	lind_left_file();
	if (has_handlers())
		flags = 0;
	child = -ENOTDIR;
	for (unsigned n = 0; program_missing(path, child) && n < PROGRAM_NAMES; n++)
		if (program_name(path, n, name))
			child = spawn(name, argv, table, count, flags);
	if (child < 0) {
		lind_log("%s: %s", argv[0], strerror((int)-child));
		return child == -ENOENT ? -127 : -126;
	}
	return wait_for((pid_t)child);
}

int lind_grate_run(const struct lind_handler *handlers, size_t count, int argc, char **argv)
{
	struct lind_spawn_handler *table;
	size_t own = count;
	int status;

	if (argc)
		lind_set_name(argv[0]);
	lind_common_options_(&argc, &argv);
	if (argc < 2)
		lind_die("no program to run; usage: %s [OPTIONS] %s", lind_name(), lind_operands_);
	if (lind_check_guard_)
		lind_check_guard_(handlers, count);
	if (!(table = malloc((count + LIND_WATCHED) * sizeof *table)))
		lind_die("out of memory");
	for (size_t i = 0; i < count; i++)
		table[i] = (struct lind_spawn_handler){ handlers[i].nr,
			handlers[i].handle ? (uint32_t)(uintptr_t)handlers[i].handle : LIND_AS_BEFORE };
	lind_watch_clients(table, &count);
	if (lind_explains())
		lind_explain_table_(table, own, count);
	status = lind_start_and_wait(argv[1], argv + 1, table, count, LIND_SPAWN_WAITS);
	free(table);
	if (status < 0)
		return -status;
	lind_ended(status);
	return status;
}
