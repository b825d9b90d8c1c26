/* A program that uses the interface without being a grate. */
#include <errno.h>
#include <lind_syscall.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WANT(got, wanted) \
	do { \
		long g_ = (long)(got), w_ = (long)(wanted); \
		if (g_ != w_) { \
			printf("%d: %s: %ld, not %ld\n", __LINE__, #got, g_, w_); \
			bad = 1; \
		} \
	} while (0)

int main(void)
{
	uint64_t me = (uint64_t)getpid();
	char to[8] = "keep";
	int bad = 0;

	/* A call for itself, with and without translation of errors. */
	WANT(make_threei_call(39, 0, me, me, 0, me, 0, me, 0, me, 0, me, 0, me, 0, me, 1), me);
	WANT(make_threei_call(3, 0, me, me, 99, me, 0, me, 0, me, 0, me, 0, me, 0, me, 0), -EBADF);
	errno = 0;
	WANT(make_threei_call(3, 0, me, me, 99, me, 0, me, 0, me, 0, me, 0, me, 0, me, 1), -1);
	WANT(errno, EBADF);
	WANT(make_threei_call(4000, 0, me, me, 0, me, 0, me, 0, me, 0, me, 0, me, 0, me, 0), -ENOSYS);
	WANT(make_threei_call(39, 0, me, 9999, 0, me, 0, me, 0, me, 0, me, 0, me, 0, me, 0), -ESRCH);
	WANT(make_threei_call(39, 0, 9999, me, 0, me, 0, me, 0, me, 0, me, 0, me, 0, me, 0), -ESRCH);
	/* The flag on its own memory. */
	WANT(make_threei_call(21, 0, me, me, (uint64_t)(uintptr_t)"/no/such", me | GRATE_MEMORY_FLAG, 0, me, 0, me, 0,
		 me, 0, me, 0, me, 0),
	    -ENOENT);
	/* Copies that cannot be. */
	WANT(copy_data_between_cages(me, me, (uint64_t)(uintptr_t)"x", me, (uint64_t)(uintptr_t)to, me, 2, 0),
	    (int)ELINDAPIABORTED);
	WANT(copy_data_between_cages(me, me, (uint64_t)(uintptr_t)"x", 9999, (uint64_t)(uintptr_t)to, me, 2, 0),
	    (int)ELINDAPIABORTED);
	WANT(strcmp(to, "keep"), 0);
	/* Nobody registers what is not his to answer. */
	WANT(register_handler(me, 107, me, 1) < 0, 1);
	WANT(register_handler(9999, 107, me, 1), (int)ELINDESRCH);
	WANT(copy_handler_table_to_cage(9999, me), (int)ELINDESRCH);
	/* Behind a grate, to become one of the kernel's own again is not allowed. */
	printf("table %d, euid %d\n", copy_handler_table_to_cage(me, me), (int)geteuid());
	return bad;
}
