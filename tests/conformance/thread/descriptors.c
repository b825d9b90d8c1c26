/* Children made while other threads open, duplicate, mark and close descriptors: whatever a child
 * has behaves as what it is. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define THREADS  3
#define NUMBERS  64
#define CHILDREN 150

static atomic_int stop;

static void *change(void *name)
{
	while (!atomic_load(&stop)) {
		int fd = open(name, O_RDONLY), copy = dup(fd), p[2];

		if (fd >= 0)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
		if (pipe(p) == 0) {
			close(p[0]);
			close(p[1]);
		}
		close(copy);
		close(fd);
	}
	return NULL;
}

/* How many numbers are not all of a file, of a pipe, or of nothing. */
static int wrong(void)
{
	int bad = 0;

	for (int fd = 3; fd < NUMBERS; fd++) {
		int flags = fcntl(fd, F_GETFD), status = fcntl(fd, F_GETFL), wrong_type;
		struct stat st;
		char byte;

		if (fstat(fd, &st) != 0) {
			bad += flags >= 0 || status >= 0;
			continue;
		}
		wrong_type = !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode);
		bad += flags < 0 || status < 0 || wrong_type || (S_ISREG(st.st_mode) && pread(fd, &byte, 1, 0) != 1);
	}
	/* A new descriptor gets a free number. */
	for (int i = 0, p[2]; i < 8; i++)
		bad += pipe(p) != 0 || write(p[1], "x", 1) != 1;
	return bad;
}

int main(void)
{
	pthread_t threads[THREADS];
	int status;

	close(check_file("f", "text"));
	for (int i = 0; i < THREADS; i++)
		NEED(pthread_create(&threads[i], NULL, change, "f") == 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		NEED(pid >= 0);
		if (pid == 0)
			_exit(wrong() ? 1 : 0);
		NEED(waitpid(pid, &status, 0) == pid);
		if (!CHECK_EQ(status, 0))
			break;
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(wrong(), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
