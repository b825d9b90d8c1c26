/* Lind's interface to interposition on top of our system calls. The three calls that are Lind's own
 * have other arguments there: see `translated`. The engine passes such calls to handlers in Lind's
 * form. */
#include <errno.h>
#include <limits.h>
#include <lind_syscall.h>
#include "syscall.h"

enum { REGISTER = 1001, COPY_DATA = 1002, COPY_TABLE = 1003, CALL_BY = 1007 };

/* Lind's marks of a slot without an argument, and of a registration that is to be undone. */
#define NOT_USED 0xdeadbeefdeadbeefu
#define UNDO 500
#define FLAG_UNDO 2

/* The kernel's struct for CALL_BY. */
struct call {
	uint32_t nr, pad;
	uint64_t self, target;
	struct { uint64_t value, cage; } args[6];
};

static int result_of(long long r)
{
	return r == -ESRCH ? (int)ELINDESRCH : (int)r;
}

/* Lind passes (target, nr) (-, grate) (function, -). */
static int registered(const struct call *c)
{
	uint64_t grate = c->args[1].cage;

	if (grate == UNDO)
		return result_of(__lind_syscall(REGISTER, c->args[0].value, c->args[0].cage, 0, 0, FLAG_UNDO, 0));
	return result_of(__lind_syscall(REGISTER, c->args[0].value, c->args[0].cage, grate, c->args[2].value, 0, 0));
}

/* (source, its cage) (destination, its cage) (length, -) (type, -). */
static int copied(const struct call *c)
{
	uint64_t from = c->args[0].cage, to = c->args[1].cage, len = c->args[2].value;

	if (from == to || !from || !to || len > UINT32_MAX)
		return (int)ELINDAPIABORTED;
	long long r = __lind_syscall(COPY_DATA, c->args[1].value, c->args[0].value, len, c->args[3].value, to, from);
	if (r < 0)
		return (int)ELINDAPIABORTED;
	return r < INT_MAX ? (int)r : INT_MAX;
}

/* Makes the call if it is one of Lind's own. These use the caller's table whatever `self` is: a
 * child that registers its parent's functions has a copy of the parent's table. */
static int translated(const struct call *c, int *result)
{
	switch (c->nr) {
	case REGISTER:
		*result = registered(c);
		return 1;
	case COPY_DATA:
		*result = copied(c);
		return 1;
	case COPY_TABLE:
		*result = result_of(__lind_syscall(COPY_TABLE, c->args[0].value, c->args[0].cage, 0, 0, 0, 0));
		return 1;
	}
	return 0;
}

int make_threei_call(unsigned nr, uint64_t name, uint64_t self, uint64_t target,
	uint64_t a1, uint64_t c1, uint64_t a2, uint64_t c2, uint64_t a3, uint64_t c3,
	uint64_t a4, uint64_t c4, uint64_t a5, uint64_t c5, uint64_t a6, uint64_t c6, int translate)
{
	/* An address is an offset in its cage's memory, also in ours: the flag adds nothing to the cage
	 * id. */
	const uint64_t id = ~GRATE_MEMORY_FLAG;
	struct call call = { nr, 0, self, target,
		{ { a1, c1 & id }, { a2, c2 & id }, { a3, c3 & id }, { a4, c4 & id }, { a5, c5 & id }, { a6, c6 & id } } };
	int result;

	(void)name;
	if (!translated(&call, &result))
		result = (int)__lind_syscall(CALL_BY, (uintptr_t)&call, 0, 0, 0, 0, 0);
	return translate && result < 0 && result > -4096 ? __syscall_ret((unsigned long)result) : result;
}

/* Lind's own calls, made by the caller for itself. */
static int own(unsigned nr, uint64_t a1, uint64_t c1, uint64_t a2, uint64_t c2, uint64_t a3, uint64_t a4)
{
	const uint64_t no = NOT_USED;

	return make_threei_call(nr, 0, no, no, a1, c1, a2, c2, a3, no, a4, no, no, no, no, no, 0);
}

int register_handler(uint64_t target, uint64_t nr, uint64_t grate, uint64_t handler)
{
	return own(REGISTER, target, nr, NOT_USED, grate, handler, NOT_USED);
}

int copy_data_between_cages(uint64_t self, uint64_t target, uint64_t from, uint64_t from_cage,
	uint64_t to, uint64_t to_cage, uint64_t len, uint64_t type)
{
	(void)self, (void)target;
	return own(COPY_DATA, from, from_cage, to, to_cage, len, type);
}

int copy_handler_table_to_cage(uint64_t source, uint64_t target)
{
	return own(COPY_TABLE, source, target, NOT_USED, NOT_USED, NOT_USED, NOT_USED);
}
