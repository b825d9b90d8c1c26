/* Tries calls from behind a clamp: the composer's own number, tables that it has no right to,
 * registering. */
#include <errno.h>
#include <lind/compose.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(x) \
	do { \
		if (!(x)) { \
			printf("line %d: %s\n", __LINE__, #x); \
			return 1; \
		} \
	} while (0)

int main(void)
{
	uint64_t self = (uint64_t)getpid();
	struct lind_call by = { .nr = SYS_getpid };

	for (uint64_t op = 0; op < 8; op++)
		CHECK(lind_import_syscall(LIND_BRACKET, op, self, 0, 0, 0, 0) == -ENOSYS);
	/* The cages before us: the clamp, the grate inside, the bracket. */
	for (uint64_t cage = 1; cage < self; cage++) {
		by.caller = cage;
		by.target = self;
		CHECK(lind_import_syscall(SYS_call_by, (uintptr_t)&by, 0, 0, 0, 0, 0) < 0);
		CHECK(lind_import_syscall(SYS_call_by, 0, cage, 0, 0, 0, 0) == -EINVAL);
		CHECK(lind_import_syscall(SYS_copy_handler_table_to_cage, cage, self, 0, 0, 0, 0) < 0);
		CHECK(lind_import_syscall(SYS_register_handler, self, SYS_open, cage, 1, 0, 0) < 0);
		CHECK(lind_call_plain(SYS_getpid, cage, 0, 0, 0, 0) < 0);
	}
	return 0;
}
