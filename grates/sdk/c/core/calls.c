/* Making calls, and reaching the memory of other cages. */
#include <errno.h>
#include <limits.h>
#include <lind/raw.h>
#include <string.h>
#include <unistd.h>
#include "sdk.h"

#define COPY_STRING 1

/* Set before any client runs. */
uint64_t lind_self_;

__attribute__((constructor)) static void find_self(void)
{
	lind_self_ = (uint64_t)getpid();
}

uint64_t lind_self(void)
{
	return lind_self_;
}

struct lind_arg lind_mine(const void *address)
{
	return (struct lind_arg){ (uintptr_t)address, lind_self_ };
}

int64_t lind_call(uint32_t nr, uint64_t target, struct lind_arg a0, struct lind_arg a1, struct lind_arg a2,
    struct lind_arg a3, struct lind_arg a4, struct lind_arg a5)
{
	return lind_import_call((int32_t)nr, (int64_t)target, a0.value, a0.cage, a1.value, a1.cage, a2.value, a2.cage,
	    a3.value, a3.cage, a4.value, a4.cage, a5.value, a5.cage);
}

int64_t lind_call_plain(uint32_t nr, uint64_t target, uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3)
{
	return lind_import_call(
	    (int32_t)nr, (int64_t)target, v0, target, v1, target, v2, target, v3, target, 0, target, 0, target);
}

/* The call that this thread is serving. A thread serves one at a time: another handler entered
 * meanwhile has another thread. */
__thread const struct lind_call *lind_serving_;

int64_t lind_forward(const struct lind_call *c)
{
	const struct lind_arg *a = c->args;

	/* The kernel has it at hand: that is half the way of handing it over again. */
	if (c == lind_serving_)
		return lind_import_syscall(SYS_call_by, 0, 0, 0, 0, 0, 0);
	return lind_import_call((int32_t)c->nr, (int64_t)c->target, a[0].value, a[0].cage, a[1].value, a[1].cage,
	    a[2].value, a[2].cage, a[3].value, a[3].cage, a[4].value, a[4].cage, a[5].value, a[5].cage);
}

#define PAGE 4096u

size_t lind_write_part(struct lind_arg to, const void *from, size_t length)
{
	size_t done = 0, piece;

	for (; done < length; done += piece) {
		piece = PAGE - (size_t)((to.value + done) % PAGE);
		piece = piece < length - done ? piece : length - done;
		if (lind_write(lind_at(to, done), (const char *)from + done, piece))
			break;
	}
	return done;
}

int64_t lind_answer_from_slow_(struct lind_arg to, const void *from, size_t length, int32_t *release)
{
	int r = lind_write(to, from, length);
	size_t done = r ? lind_write_part(to, from, length) : length;

	__atomic_store_n(release, 0, __ATOMIC_RELEASE);
	return !r ? (int64_t)length : done ? (int64_t)done : r;
}

int lind_route_fds(uint64_t client, const struct lind_fd_routes *routes)
{
	return (int)lind_import_syscall(SYS_route_fds, client, (uintptr_t)routes, 0, 0, 0, 0);
}

ssize_t lind_read_string(struct lind_arg arg, char *to, size_t size)
{
	int64_t got = -EPERM;

	/* Cage 0 would mean our own memory to the call. */
	if (arg.cage)
		got = lind_import_syscall(
		    SYS_copy_data_between_cages, (uintptr_t)to, arg.value, size, COPY_STRING, lind_self_, arg.cage);
	return got < 0 ? (ssize_t)got : (ssize_t)got - 1;
}

const char *lind_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool lind_read_base_name(struct lind_arg path, char *name, size_t size)
{
	char text[PATH_MAX];

	if (lind_read_string(path, text, sizeof text) < 0)
		return false;
	snprintf(name, size, "%s", lind_base_name(text));
	for (char *p = name; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return true;
}

int lind_read_iovec(struct lind_arg arg, uint64_t count, struct iovec *to, size_t max)
{
	uint64_t total = 0;
	int r;

	if (count > max || count > IOV_MAX)
		return -EINVAL;
	if ((r = lind_read(arg, to, (size_t)count * sizeof *to)) < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		total += to[i].iov_len;
	return total > INT_MAX ? -EINVAL : 0;
}
