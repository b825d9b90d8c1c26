/* Prints what is different each time: times, random numbers, process ids, files as they are, bytes
 * of a mapped file, what children say. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, unsigned long long value)
{
	printf("%s %llu\n", what, value);
}

static void files(void)
{
	DIR *directory = opendir(".");
	struct dirent *entry;
	struct stat stat;
	char vector[3][7];
	struct iovec pieces[3] = { { vector[0], 7 }, { vector[1], 7 }, { vector[2], 7 } };
	int fd;

	while ((entry = readdir(directory)))
		say(entry->d_name, entry->d_ino);
	closedir(directory);
	fd = open("given", O_RDWR);
	fstat(fd, &stat);
	say("changed", (unsigned long long)stat.st_mtim.tv_sec * 1000000000 + (unsigned long long)stat.st_mtim.tv_nsec);
	say("vector", (unsigned long long)readv(fd, pieces, 3));
	printf("%.7s %.7s %.4s\n", vector[0], vector[1], vector[2]);
	printf("mapped %.10s\n", (char *)mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 0));
	say("written", (unsigned long long)pwrite(fd, "more", 4, 100));
	close(fd);
}

static void children(void)
{
	int pipes[2], sockets[2], status;
	char text[64];

	pipe(pipes);
	socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
	for (int i = 0; i < 3; i++)
		if (!fork()) {
			struct timespec now;

			clock_gettime(CLOCK_MONOTONIC, &now);
			snprintf(text, sizeof text, "child %d at %lld in %d;", i, (long long)now.tv_nsec, getpid());
			write(i ? pipes[1] : sockets[1], text, strlen(text));
			_exit(i);
		}
	for (int i = 0; i < 3; i++) {
		pid_t pid = wait(&status);

		printf("%d %d\n", (int)pid, WEXITSTATUS(status));
	}
	struct pollfd polled[2] = { { pipes[0], POLLIN, 0 }, { sockets[0], POLLIN, 0 } };

	say("ready", (unsigned long long)poll(polled, 2, 1000));
	printf("%.*s\n", (int)read(pipes[0], text, sizeof text), text);
	printf("%.*s\n", (int)recv(sockets[0], text, sizeof text, 0), text);
}

int main(int argc, char **argv)
{
	struct timespec now;
	unsigned long long random;

	setvbuf(stdout, NULL, argc > 1 ? _IONBF : _IOFBF, 4096);
	clock_gettime(CLOCK_REALTIME, &now);
	say("time", (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec);
	getrandom(&random, sizeof random, 0);
	say("random", random);
	say("pid", (unsigned long long)getpid());
	say("stack", (unsigned long)&now);
	say("heap", (unsigned long)malloc(100));
	files();
	fflush(stdout);
	children();
	fprintf(stderr, "%s ends with 7\n", argv[0]);
	return 7;
}
