/*
 * The first program of a session: starts what lind-boot orders on its standard input, and tells
 * there what becomes of it.
 *
 * Several threads take orders in turn, since one that starts a program waits until that is loaded,
 * and loading may mean compiling. There is always one that waits for an order, up to a number. The
 * main thread waits for children. Files come as numbers: lind-boot has put them into our table
 * already. An order for a process of a container has words with its user and its limits.
 */
#include <errno.h>
#include "../sdk/c/core/program.h"
#include "files.h"
#include "identity.h"
#include <fcntl.h>
#include <lind/raw.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTERS = 4, AT_FIRST = 2, STACK = 64 << 10, CONTROL = 100 };

/* As in lind-boot/src/session/orders.rs. The words of an identity, the directory, the arguments and
 * the environment follow, these each ended by a NUL. */
struct order {
	uint32_t bytes, id, argc, envc, words;
	int32_t files[3];
};

enum news_kind { READY, STARTED, NO_DIRECTORY, NO_PROGRAM, ENDED, STOPPED, CONTINUED, LOADED };

struct news {
	uint32_t kind, id;
	int32_t pid, value;
};

struct command {
	struct order order;
	char *directory, **argv, **envp;
	const uint32_t *identity; /* NULL outside of containers */
};

static int control;
static sem_t started;
/* The lock of the thread that reads; the number of starters, and how many of them are at work. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static int starters, busy;
static void add_starter(void);

/* lind-boot finds programs by name for grates on its line, and this makes us one. No call is
 * ever handled here. */
__attribute__((export_name("__lind_handle"))) int64_t lind_handle(uint32_t entry, const struct lind_call *call);

int64_t lind_handle(uint32_t entry, const struct lind_call *call)
{
	(void)entry, (void)call;
	return -ENOSYS;
}

static void report(enum news_kind kind, uint32_t id, pid_t pid, int value)
{
	struct news news = { kind, id, pid, value };

	while (write(control, &news, sizeof news) < 0 && errno == EINTR)
		;
}

/* Without lind-boot there is nothing to do, and the session ends with us. */
static void take(void *to, size_t size)
{
	for (char *at = to; size;) {
		ssize_t got = read(control, at, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			exit(0);
		at += got;
		size -= (size_t)got;
	}
}

static char **words(char **into, uint32_t count, char **text)
{
	for (uint32_t i = 0; i < count; i++) {
		into[i] = *text;
		*text += strlen(*text) + 1;
	}
	into[count] = NULL;
	return into;
}

static struct command *next_command(void)
{
	struct order order;
	struct command *command;
	char *text;

	pthread_mutex_lock(&reading);
	take(&order, sizeof order);
	command = malloc(sizeof *command + (order.argc + order.envc + 2) * sizeof(char *) + order.bytes);
	if (!command)
		abort();
	command->order = order;
	command->argv = (char **)(command + 1);
	command->envp = command->argv + order.argc + 1;
	text = (char *)(command->envp + order.envc + 1);
	take(text, order.bytes);
	command->identity = order.words ? (const uint32_t *)text : NULL;
	text = command->directory = text + order.words * sizeof(uint32_t);
	if (__atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED) == starters && starters < STARTERS)
		add_starter();
	pthread_mutex_unlock(&reading);
	text += strlen(text) + 1;
	words(command->argv, order.argc, &text);
	words(command->envp, order.envc, &text);
	return command;
}

/* By the names that a program on lind-boot's command line may have. Returns with errno if there
 * is none, or it cannot be run. */
static void run_program(struct command *command)
{
	char name[PATH_MAX];
	int64_t r = -ENOTDIR;

	for (unsigned n = 0; program_missing(command->argv[0], r) && n < PROGRAM_NAMES; n++)
		if (program_name(command->argv[0], n, name)) {
			execve(name, command->argv, command->envp);
			r = -errno;
		}
	errno = (int)-r;
}

/* The child, on our memory until it runs its program. A terminal that is somebody else's already
 * is just a file. */
static int begin(void *argument)
{
	struct command *command = argument;
	uint32_t id = command->order.id;
	enum news_kind failed = NO_DIRECTORY;

	report(STARTED, id, getpid(), 0);
	setsid();
	for (int i = 0; i < 3; i++)
		if (command->order.files[i] < 0)
			close(i);
		else
			dup2(command->order.files[i], i);
	for (int i = 0; i < 3; i++)
		if (isatty(i) && !ioctl(i, TIOCSCTTY, 0))
			break;
	if (command->identity) {
		if (!enter_directory(command->directory) && !become(command->identity, command->order.words)) {
			failed = NO_PROGRAM;
			run_by_path(command->argv, command->envp);
		}
	} else if (!chdir(command->directory)) {
		failed = NO_PROGRAM;
		run_program(command);
	}
	report(failed, id, getpid(), errno);
	_exit(127);
}

static void *start_commands(void *unused)
{
	char *stack = malloc(STACK);

	(void)unused;
	if (!stack)
		abort();
	for (;;) {
		struct command *command = next_command();

		if (clone(begin, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, command) < 0)
			report(NO_PROGRAM, command->order.id, 0, errno);
		else
			sem_post(&started);
		/* The child has run its program by now, or has told why not. */
		if (command->identity)
			report(LOADED, command->order.id, 0, 0);
		for (int i = 0; i < 3; i++)
			if (command->order.files[i] >= 0)
				close(command->order.files[i]);
		free(command);
		__atomic_sub_fetch(&busy, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void add_starter(void)
{
	pthread_t thread;

	/* Without room for it, others do its work. */
	if (!pthread_create(&thread, NULL, start_commands, NULL))
		starters++;
}

static void wait_for_commands(void)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WUNTRACED | WCONTINUED);

		if (pid < 0 && errno == ECHILD)
			sem_wait(&started);
		if (pid <= 0)
			continue;
		if (WIFSTOPPED(status))
			report(STOPPED, 0, pid, WSTOPSIG(status));
		else if (WIFCONTINUED(status))
			report(CONTINUED, 0, pid, 0);
		else
			report(ENDED, 0, pid, status);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "files"))
		return serve_files();
	control = fcntl(0, F_DUPFD_CLOEXEC, CONTROL);
	if (control < 0 || dup2(1, 0) < 0 || sem_init(&started, 0, 0))
		lind_die("lind-boot starts this program itself: lind-boot session start NAME");
	while (starters < AT_FIRST) {
		int before = starters;

		add_starter();
		if (starters == before)
			lind_die("cannot start a thread");
	}
	report(READY, 0, getpid(), 0);
	wait_for_commands();
}
