/* execve: what a new program starts with and what is gone; scripts; errors. The program runs
 * itself, stage after stage. */
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;
static char *self;

static _Noreturn void go(const char *stage)
{
	char *args[] = { self, (char *)stage, "", "a b", NULL }, *vars[] = { "STAGE=1", "EMPTY=", NULL };

	fflush(stdout);
	if (check_failures)
		exit(1);
	execve(self, args, vars);
	printf("execve %s: %s\n", stage, strerror(errno));
	exit(1);
}

static void handler(int number)
{
	(void)number;
}

static void *wait_forever(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static void *exec_from_thread(void *unused)
{
	(void)unused;
	go("thread");
}

static void errors(void)
{
	static char long_string[200000];
	char *args[] = { "x", NULL }, *long_args[] = { long_string, NULL }, *bad[] = { (char *)1, NULL };
	static char *many[70000];
	char dos[250];

	CHECK_ERRNO(execve("./nothing", args, environ), ENOENT);
	CHECK_ERRNO(execve("", args, environ), ENOENT);
	CHECK_ERRNO(execve((char *)1, args, environ), EFAULT);
	CHECK_ERRNO(execve("/", args, environ), EACCES);
	CHECK_ERRNO(execve("./nothing/x", args, environ), ENOENT);
	close(check_file("file", "text"));
	CHECK_ERRNO(execve("./file", args, environ), EACCES);
	CHECK_ERRNO(execve("./file/x", args, environ), ENOTDIR);
	CHECK_ERRNO(execve("file/", args, environ), ENOTDIR);
	CHECK_EQ(chmod("file", 0755), 0);
	CHECK_ERRNO(execve("./file", args, environ), ENOEXEC);
	CHECK_ERRNO(execve("./file", bad, environ), EFAULT);
	memset(long_string, 'x', sizeof long_string - 1);
	CHECK_ERRNO(execve("./file", long_args, environ), E2BIG);
	long_string[100] = 0;
	for (size_t i = 0; i + 1 < sizeof many / sizeof *many; i++)
		many[i] = long_string;
	CHECK_ERRNO(execve(self, many, environ), E2BIG);
	close(check_file("file", "#!"));
	CHECK_ERRNO(execve("./file", args, environ), ENOEXEC);
	close(check_file("file", "\177ELF\2\1\1\3"));
	CHECK_ERRNO(execve("./file", args, environ), ENOEXEC);
	close(check_file("file", "#! /nothing/here\n"));
	CHECK_ERRNO(execve("./file", args, environ), ENOENT);
	close(check_file("file", "#!./file\n"));
	CHECK_ERRNO(execve("./file", args, environ), ELOOP);
	/* A carriage return is part of the name. */
	if (snprintf(dos, sizeof dos, "#!%s\r\n", self) < (int)sizeof dos) {
		close(check_file("file", dos));
		CHECK_ERRNO(execve("./file", args, environ), ENOENT);
	}
	CHECK_EQ(symlink("file", "link"), 0);
	CHECK_ERRNO(
	    syscall(SYS_execveat, (long)AT_FDCWD, (long)"link", (long)args, (long)environ, (long)AT_SYMLINK_NOFOLLOW),
	    ELOOP);
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(unlink("file"), 0);
	CHECK_ERRNO(syscall(SYS_execveat, (long)AT_FDCWD, (long)"", (long)args, (long)environ, 0L), ENOENT);
	CHECK_ERRNO(syscall(SYS_execveat, 99L, (long)"x", (long)args, (long)environ, 0L), EBADF);
	CHECK_ERRNO(syscall(SYS_execveat, (long)AT_FDCWD, (long)"x", (long)args, (long)environ, 0x40000L), EINVAL);
}

/* Sets the state of the first program that the second must find. */
static void first(void)
{
	struct sigaction action = { .sa_handler = handler };
	sigset_t set;
	int kept = open("/dev/null", O_RDONLY), closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_t thread;

	CHECK_EQ(kept, 3);
	CHECK_EQ(closed, 4);
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	umask(027);
	NEED(pthread_create(&thread, NULL, wait_forever, NULL) == 0);
	setenv("CHECK_PID", "gone", 1);
	close(check_file("pid", ""));
	int fd = open("pid", O_WRONLY);
	dprintf(fd, "%d", (int)getpid());
	close(fd);
	go("second");
}

static void second(int argc, char **argv)
{
	struct sigaction action;
	sigset_t set;
	char text[32] = "";
	int fd = open("pid", O_RDONLY);

	CHECK_EQ(argc, 4);
	CHECK_STR(argv[2], "");
	CHECK_STR(argv[3], "a b");
	CHECK(argv[4] == NULL);
	CHECK_STR(getenv("STAGE"), "1");
	CHECK_STR(getenv("EMPTY"), "");
	CHECK(getenv("CHECK_PID") == NULL);
	CHECK_EQ(fd, 4);
	CHECK(read(fd, text, sizeof text - 1) > 0);
	CHECK_EQ(atoi(text), getpid());
	CHECK_EQ(unlink("pid"), 0);
	close(fd);
	CHECK_EQ(fcntl(3, F_GETFD), 0);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &action), 0);
	CHECK(action.sa_handler == SIG_DFL);
	CHECK_EQ(sigaction(SIGUSR2, NULL, &action), 0);
	CHECK(action.sa_handler == SIG_IGN);
	CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &set), 0);
	CHECK_EQ(sigismember(&set, SIGTERM), 1);
	CHECK_EQ(sigismember(&set, SIGINT), 0);
	CHECK_EQ(umask(022), 027);

	/* As a thread: the new program is the whole process, under its old number. */
	pthread_t thread;
	NEED(pthread_create(&thread, NULL, exec_from_thread, NULL) == 0);
	wait_forever(NULL);
}

static void by_script(void)
{
	char line[4200];

	CHECK_EQ(syscall(SYS_gettid), getpid());
	CHECK_EQ(fcntl(3, F_GETFD), 0);
	close(3);
	snprintf(line, sizeof line, "#! %s  script\t \necho not run\n", self);
	close(check_file("run", line));
	CHECK_EQ(chmod("run", 0700), 0);
	char *args[] = { "name", "one", "two", NULL };
	fflush(stdout);
	execve("./run", args, environ);
	printf("./run: %s\n", strerror(errno));
	exit(1);
}

static void script(int argc, char **argv)
{
	CHECK_EQ(argc, 5);
	CHECK_STR(argv[2], "./run");
	CHECK_STR(argv[3], "one");
	CHECK_STR(argv[4], "two");
	CHECK_EQ(unlink("run"), 0);
	errors();

	/* By a descriptor. */
	int fd = open(self, O_RDONLY);
	char *args[] = { self, "fd", NULL };

	NEED(fd >= 0);
	fflush(stdout);
	syscall(SYS_execveat, (long)fd, (long)"", (long)args, (long)environ, (long)AT_EMPTY_PATH);
	printf("execveat: %s\n", strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	char path[4096];

	self = argv[0];
	if (argc == 1) {
		/* A name that stays right wherever the program is run from. */
		NEED(realpath(argv[0], path));
		self = path;
		first();
	}
	if (!strcmp(argv[1], "second"))
		second(argc, argv);
	if (!strcmp(argv[1], "thread"))
		by_script();
	if (!strcmp(argv[1], "script"))
		script(argc, argv);
	CHECK_STR(argv[1], "fd");
	return check_done();
}
