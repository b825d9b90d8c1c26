/* The program of the containers: its first argument says what it does. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile sig_atomic_t got;

static void note(int number)
{
	got = number;
}

/* Prints the signals that come, and ends with SIGTERM. */
static int wait_for_signals(void)
{
	struct sigaction action = { .sa_handler = note };
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int number = 1; number < 32; number++)
		sigaction(number, &action, NULL);
	puts("waits");
	fflush(stdout);
	for (;;) {
		sigsuspend(&none);
		printf("signal %d\n", got);
		fflush(stdout);
		if (got == SIGTERM)
			return 3;
	}
}

static int describe(void)
{
	gid_t groups[16];
	int count = getgroups(16, groups);
	struct rlimit files;
	struct winsize size = { 0 };
	unsigned header[2] = { 0x20080522, 0 }, sets[6] = { 0 };
	char cwd[256], name[256];
	mode_t mask = umask(0);

	getrlimit(RLIMIT_NOFILE, &files);
	syscall(SYS_capget, header, sets);
	gethostname(name, sizeof name);
	ioctl(0, TIOCGWINSZ, &size);
	printf("{\"uid\": %d, \"gid\": %d, \"groups\": [", (int)getuid(), (int)getgid());
	for (int i = 0; i < count; i++)
		printf("%s%d", i ? ", " : "", (int)groups[i]);
	printf("], \"umask\": %d, \"cwd\": \"%s\", \"files\": [%d, %d], \"host\": \"%s\", \"tty\": %d, \"rows\": %d, ",
	    (int)mask, getcwd(cwd, sizeof cwd), (int)files.rlim_cur, (int)files.rlim_max, name, isatty(0), size.ws_row);
	printf("\"capabilities\": %u, \"no_new_privileges\": %d, \"env\": [", sets[0],
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	for (char **entry = environ; *entry; entry++)
		printf("%s\"%s\"", entry == environ ? "" : ", ", *entry);
	puts("]}");
	return 0;
}

/* Whether each path can be read (r), written (w) or neither (-). A directory is written by a new
 * name in it. */
static int look(char **paths)
{
	for (; *paths; paths++) {
		char name[512];
		struct stat st;
		int there = !stat(*paths, &st), fd;

		snprintf(name, sizeof name, there && S_ISDIR(st.st_mode) ? "%s/made" : "%s", *paths);
		fd = open(name, O_WRONLY | (there && S_ISDIR(st.st_mode) ? O_CREAT : 0), 0666);
		printf("%s%s ", there ? "r" : "-", fd >= 0 ? "w" : "-");
		if (fd >= 0)
			close(fd);
	}
	putchar('\n');
	return 0;
}

static int copy(const char *path)
{
	int fd = open(path, O_RDONLY);
	char piece[4096];
	ssize_t n;

	if (fd < 0)
		return errno;
	while ((n = read(fd, piece, sizeof piece)) > 0)
		if (write(1, piece, (size_t)n) != n)
			return 1;
	return 0;
}

static int list(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return errno;
	while ((entry = readdir(dir)))
		puts(entry->d_name);
	closedir(dir);
	return 0;
}

/* Prints how many bytes there is room for. */
static int fill(const char *path)
{
	static char piece[4096];
	int fd = open(path, O_WRONLY | O_CREAT, 0666);
	long total = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	while (total < 1 << 20 && (n = write(fd, piece, sizeof piece)) > 0)
		total += n;
	printf("%ld\n", total);
	return 0;
}

static void *nothing(void *unused)
{
	return unused;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "exit"))
		return atoi(argv[2]);
	if (!strcmp(what, "die")) {
		raise(atoi(argv[2]));
		return 99;
	}
	if (!strcmp(what, "echo")) {
		puts(argv[2]);
		return 0;
	}
	if (!strcmp(what, "describe"))
		return describe();
	if (!strcmp(what, "look"))
		return look(argv + 2);
	if (!strcmp(what, "cat"))
		return copy(argv[2]);
	if (!strcmp(what, "wait"))
		return wait_for_signals();
	if (!strcmp(what, "input"))
		return copy("/dev/stdin");
	if (!strcmp(what, "mkdir"))
		return mkdir(argv[2], 0755) ? errno : 0;
	if (!strcmp(what, "move"))
		return rename(argv[2], argv[3]) ? errno : 0;
	if (!strcmp(what, "list"))
		return list(argv[2]);
	if (!strcmp(what, "fill"))
		return fill(argv[2]);
	if (!strcmp(what, "child")) {
		pid_t child = fork();
		int status;

		if (child < 0)
			return errno;
		if (!child)
			_exit(0);
		return waitpid(child, &status, 0) == child ? status : errno;
	}
	if (!strcmp(what, "thread")) {
		pthread_t thread;

		return pthread_create(&thread, NULL, nothing, NULL);
	}
	if (!strcmp(what, "run")) {
		execv(argv[2], argv + 2);
		return errno;
	}
	if (!strcmp(what, "fork")) {
		/* A child that would go on for ever. */
		if (!fork())
			for (;;)
				pause();
		puts("forked");
		fflush(stdout);
	}
	if (!strcmp(what, "memory")) {
		size_t size = (size_t)atoi(argv[2]) << 20;
		char *bytes = malloc(size);

		memset(bytes, 1, size);
		printf("filled %d\n", bytes[size / 2]);
		fflush(stdout);
	}
	for (;;)
		pause();
}
