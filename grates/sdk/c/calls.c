/* Making calls, and reaching the memory of other cages. */
#include <errno.h>
#include <limits.h>
#include <lind/grate.h>
#include <unistd.h>

__attribute__((import_module("lind"), import_name("call")))
int64_t lind_import_call(int32_t nr, int64_t target,
	uint64_t v0, uint64_t c0, uint64_t v1, uint64_t c1, uint64_t v2, uint64_t c2,
	uint64_t v3, uint64_t c3, uint64_t v4, uint64_t c4, uint64_t v5, uint64_t c5);

enum { COPY_BYTES = 0, COPY_STRING = 1 };

/* Set before any client runs. */
static uint64_t self;

__attribute__((constructor)) static void find_self(void)
{
	self = (uint64_t)getpid();
}

uint64_t lind_self(void)
{
	return self;
}

struct lind_arg lind_mine(const void *address)
{
	return (struct lind_arg){ (uintptr_t)address, self };
}

int64_t lind_call(uint32_t nr, uint64_t target, struct lind_arg a0, struct lind_arg a1, struct lind_arg a2,
	struct lind_arg a3, struct lind_arg a4, struct lind_arg a5)
{
	return lind_import_call((int32_t)nr, (int64_t)target, a0.value, a0.cage, a1.value, a1.cage, a2.value, a2.cage,
		a3.value, a3.cage, a4.value, a4.cage, a5.value, a5.cage);
}

int64_t lind_call_plain(uint32_t nr, uint64_t target, uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3)
{
	return lind_import_call((int32_t)nr, (int64_t)target, v0, target, v1, target, v2, target, v3, target,
		0, target, 0, target);
}

int64_t lind_forward(const struct lind_call *c)
{
	const struct lind_arg *a = c->args;

	return lind_import_call((int32_t)c->nr, (int64_t)c->target, a[0].value, a[0].cage, a[1].value, a[1].cage,
		a[2].value, a[2].cage, a[3].value, a[3].cage, a[4].value, a[4].cage, a[5].value, a[5].cage);
}

/* The target is the other cage, which for the client being served spares the kernel a look for it. */
static int64_t copy(uint64_t to, uint64_t to_cage, uint64_t from, uint64_t from_cage, size_t length, int kind)
{
	return lind_import_call(SYS_copy_data_between_cages, (int64_t)(to_cage == self ? from_cage : to_cage), to, to_cage, from, from_cage,
		length, self, (uint64_t)kind, self, 0, self, 0, self);
}

int lind_read(struct lind_arg arg, void *to, size_t length)
{
	int64_t got;

	if (!length)
		return 0;
	got = copy((uintptr_t)to, self, arg.value, arg.cage, length, COPY_BYTES);
	return got < 0 ? (int)got : 0;
}

int lind_write(struct lind_arg arg, const void *from, size_t length)
{
	int64_t got;

	if (!length)
		return 0;
	got = copy(arg.value, arg.cage, (uintptr_t)from, self, length, COPY_BYTES);
	return got < 0 ? (int)got : 0;
}

ssize_t lind_read_string(struct lind_arg arg, char *to, size_t size)
{
	int64_t got = copy((uintptr_t)to, self, arg.value, arg.cage, size, COPY_STRING);

	return got < 0 ? (ssize_t)got : (ssize_t)got - 1;
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
