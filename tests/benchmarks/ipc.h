/* Round trips between a process and its child, over any pair of descriptors that carry bytes. */
#ifndef IPC_H
#define IPC_H

#include "bench.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define IPC_LARGEST 10240

static char ipc_buffer[IPC_LARGEST];

/* Moves exactly `size` bytes; 0 at the end of the stream or on an error. */
static int ipc_whole(int fd, size_t size, int writing)
{
	for (size_t done = 0; done < size;) {
		ssize_t n =
		    writing ? write(fd, ipc_buffer + done, size - done) : read(fd, ipc_buffer + done, size - done);
		if (n <= 0)
			return 0;
		done += (size_t)n;
	}
	return 1;
}

/* The child: sends every message of the parent back, until the parent closes. */
static _Noreturn void ipc_echo(int in, int out, const size_t *sizes, const long *loops, int count)
{
	for (int i = 0; i < count; i++)
		for (long n = 0; n < loops[i]; n++)
			if (!ipc_whole(in, sizes[i], 0) || !ipc_whole(out, sizes[i], 1))
				_exit(1);
	_exit(0);
}

/* Runs the whole benchmark. The child reads child_in and writes child_out, the parent the other
 * two. */
static int ipc_round_trips(const char *test, int child_in, int child_out, int in, int out)
{
	static const size_t sizes[] = { 1, 1024, 4096, IPC_LARGEST };
	static const long loops[] = { 20000, 20000, 20000, 10000 };
	const int count = sizeof sizes / sizeof sizes[0];
	int status;
	pid_t child = fork();

	if (child < 0 && errno == ENOSYS)
		bench_skip("fork: Function not implemented");
	if (child < 0)
		bench_die("fork");
	if (child == 0)
		ipc_echo(child_in, child_out, sizes, loops, count);
	for (int i = 0; i < count; i++) {
		long long start = gettimens();

		for (long n = 0; n < loops[i]; n++)
			if (!ipc_whole(out, sizes[i], 1) || !ipc_whole(in, sizes[i], 0))
				bench_die("round trip");
		emit_since(test, (long)sizes[i], loops[i], start);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		bench_die("the echoing child");
	return 0;
}

#endif
