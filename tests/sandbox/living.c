/*
 * living: carries out a line of standard input after the other, and prints what came of it, so that
 * rules can change between two calls of one program.
 *
 *   connect PORT        race COUNT PORT       write PATH        read PATH
 *   interrupted PORT    open COUNT            fork COUNT        grab MEBIBYTES    look
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/raw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64

static const char *said(int r)
{
	return r < 0 ? strerror(errno) : "ok";
}

static int connect_to(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), r;

	to.sin_addr.s_addr = inet_addr("127.0.0.1");
	r = connect(fd, (struct sockaddr *)&to, sizeof to);
	close(fd);
	return r;
}

static void nothing(int signal)
{
	(void)signal;
}

/* Connects, and is interrupted by a signal if that waits. */
static void interrupted(int port)
{
	struct sigaction action = { .sa_handler = nothing };

	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	printf("%s\n", said(connect_to(port)));
	alarm(0);
}

static pthread_barrier_t together;

static void *racer(void *port)
{
	pthread_barrier_wait(&together);
	return connect_to(*(int *)port) ? NULL : port;
}

/* How many of so many threads reach a port at the same time. */
static void race(int count, int port)
{
	pthread_t threads[MOST];
	int reached = 0;

	pthread_barrier_init(&together, NULL, (unsigned)count);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, racer, &port);
	for (int i = 0; i < count; i++) {
		void *result;

		pthread_join(threads[i], &result);
		reached += result != NULL;
	}
	printf("%d reached\n", reached);
}

static void open_many(int count)
{
	int fds[1024], n = 0;

	while (n < count && n < 1024 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	printf("%d open\n", n);
	while (n)
		close(fds[--n]);
}

static void fork_many(int count)
{
	int n = 0;

	for (; n < count; n++) {
		pid_t child = fork();

		if (!child)
			pause();
		if (child < 0)
			break;
	}
	printf("%d forked\n", n);
	fflush(stdout);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	signal(SIGTERM, SIG_DFL);
	while (wait(NULL) > 0)
		;
}

static void grab(int mebibytes)
{
	void *at = mmap(NULL, (size_t)mebibytes << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	printf("%s\n", said(at == MAP_FAILED ? -1 : 0));
	if (at != MAP_FAILED)
		munmap(at, (size_t)mebibytes << 20);
}

/* Ways to the rules that a program may think of. Prints what worked. */
static void look(void)
{
	static const char *const names[] = { "net", "write_filter", "resource", "seccomp", "" };
	static char rules[] = "--default=allow\0", room[4096];
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	char path[300], link[300];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (lind_import_syscall(SYS_follow_rules, (uintptr_t)names[i], strlen(names[i]), 0, 0, 0, 0) >= 0)
			printf("follow %s ", names[i]);
	if (lind_import_syscall(SYS_next_rules, (uintptr_t)rules, sizeof rules, (uintptr_t)room, sizeof room, 0, 0) >=
	    0)
		printf("next ");
	for (uint64_t number = 0; number < 64; number++)
		if (lind_import_syscall(SYS_use_once, number, 0, 0, 0, 0, 0) >= 0)
			printf("once %d ", (int)number);
	for (uint64_t cage = 1; cage < 64; cage++)
		for (uint64_t number = SYS_follow_rules; number <= SYS_use_once; number++)
			if (cage != (uint64_t)getpid() &&
			    lind_call_plain(
				(uint32_t)number, cage, (uintptr_t)names[0], 3, (uintptr_t)room, sizeof room) >= 0)
				printf("for %d ", (int)cage);
	for (int number = 0; number < 64; number++)
		if (lind_import_syscall(SYS_host_file, (uint64_t)number, 0, 0, 0, 0, 0) >= 0)
			printf("file %d ", number);
	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && (!processes || fd != dirfd(processes)))
			printf("descriptor %d ", fd);
	while (processes && (entry = readdir(processes))) {
		static const char *const files[] = { "mem", "maps", "fd", "environ" };

		if (!atoi(entry->d_name) || atoi(entry->d_name) == getpid())
			continue;
		for (size_t i = 0; i < 2; i++) {
			int fd;

			snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, files[i]);
			if ((fd = open(path, i ? O_RDONLY : O_RDWR)) >= 0 && !i)
				printf("%s ", path);
			close(fd);
		}
		for (int fd = 0; fd < 64; fd++) {
			ssize_t length;

			snprintf(path, sizeof path, "/proc/%s/fd/%d", entry->d_name, fd);
			int found;

			if ((length = readlink(path, link, sizeof link - 1)) <= 0 ||
			    (found = open(path, O_RDWR | O_NONBLOCK)) < 0)
				continue;
			link[length] = 0;
			if (fd > 2)
				printf("%s=%s ", path, link);
			close(found);
		}
	}
	if (processes)
		closedir(processes);
	/* A question of its own, as if it were a grate. */
	if (lind_import_syscall(SYS_denied, (uint64_t)getpid(), SYS_connect, EACCES,
		(uintptr_t)"rule\0connect tcp 192.0.2.1:443\0192.0.2.1:22",
		sizeof "rule\0connect tcp 192.0.2.1:443\0192.0.2.1:22", 1) > 0)
		printf("asked ");
	printf("looked\n");
}

int main(void)
{
	char line[4200], word[16], rest[4096];
	int number, more;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof line, stdin)) {
		*rest = 0;
		if (sscanf(line, "%15s %4095[^\n]", word, rest) < 1)
			continue;
		number = atoi(rest);
		if (!strcmp(word, "connect"))
			printf("%s\n", said(connect_to(number)));
		else if (!strcmp(word, "race") && sscanf(rest, "%d %d", &number, &more) == 2 && number <= MOST)
			race(number, more);
		else if (!strcmp(word, "write") || !strcmp(word, "read")) {
			int fd = open(rest, *word == 'w' ? O_WRONLY | O_CREAT : O_RDONLY, 0644);

			printf("%s\n", said(fd));
			close(fd);
		} else if (!strcmp(word, "interrupted"))
			interrupted(number);
		else if (!strcmp(word, "open"))
			open_many(number);
		else if (!strcmp(word, "fork"))
			fork_many(number);
		else if (!strcmp(word, "grab"))
			grab(number);
		else
			look();
	}
	return 0;
}
