/* The descriptors that a grate has itself. */
#include <lind/fds.h>
#include <poll.h>
#include <stdbool.h>

#define AT_ONCE 256

void lind_each_own_fd(int end, void (*look)(int fd))
{
	struct pollfd some[AT_ONCE];

	for (int first = 0; first < end; first += AT_ONCE) {
		int count = end - first < AT_ONCE ? end - first : AT_ONCE;
		bool asked;

		for (int i = 0; i < count; i++)
			some[i] = (struct pollfd){ .fd = first + i };
		/* Where so many cannot be asked at once, each may be open. */
		asked = poll(some, (nfds_t)count, 0) >= 0;
		for (int i = 0; i < count; i++)
			if (!asked || !(some[i].revents & POLLNVAL))
				look(first + i);
	}
}
