/*
 * Tries to get rid of the policy that it runs under, which denies geteuid with EMLINK (31): by the
 * interposition calls, by other ids and numbers, through a child with handlers of its own. Prints
 * what it got away with.
 */
#include <errno.h>
#include <lind/raw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANY LIND_NR_ANY

static int64_t me, parent;

static int64_t call(int32_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	return lind_import_syscall(nr, a0, a1, a2, a3, a4, 0);
}

static void check(const char *what, int64_t wanted, int64_t got)
{
	if (got != wanted)
		printf("%s: %lld\n", what, (long long)got);
	if (call(SYS_geteuid, 0, 0, 0, 0, 0) != -EMLINK)
		printf("%s: the policy is gone\n", what);
}

static int64_t mine(const struct lind_call *c)
{
	(void)c;
	return 0;
}

__attribute__((export_name("__lind_handle"))) int64_t handle(uint32_t entry, const struct lind_call *c)
{
	return ((lind_handle_fn *)(uintptr_t)entry)(c);
}

static int64_t by(uint64_t table, uint64_t target, uint32_t nr)
{
	struct lind_call c = { .nr = nr, .caller = table, .target = target };

	return call(SYS_call_by, (uintptr_t)&c, 0, 0, 0, 0);
}

static int64_t on(uint64_t target, uint32_t nr)
{
	return lind_import_call(
	    (int32_t)nr, (int64_t)target, 0, target, 0, target, 0, target, 0, target, 0, target, 0, target);
}

int main(int argc, char **argv)
{
	uint64_t entry = (uintptr_t)mine;
	struct lind_spawn_handler left_out[] = { { SYS_geteuid, LIND_AS_BEFORE }, { ANY, LIND_AS_BEFORE } };
	char *child[] = { argv[0], "x", NULL }, *none[] = { NULL };
	int status;

	me = getpid();
	parent = getppid();
	check("start", -EMLINK, call(SYS_geteuid, 0, 0, 0, 0, 0));
	check("register", -EPERM, call(SYS_register_handler, me, SYS_geteuid, me, entry, 0));
	check("register the grate's", -EPERM, call(SYS_register_handler, me, SYS_geteuid, parent, 1, 0));
	check("deregister", -EPERM, call(SYS_register_handler, me, SYS_geteuid, me, 0, 2));
	check("register all", -EPERM, call(SYS_register_handler, me, ANY, me, entry, 0));
	check("deregister all", -EPERM, call(SYS_register_handler, me, ANY, me, 0, 2));
	check("register on the grate", -EPERM, call(SYS_register_handler, parent, SYS_geteuid, me, entry, 0));
	check("table", -EPERM, call(SYS_copy_handler_table_to_cage, parent, me, 0, 0, 0));
	check("table to the grate", -EPERM, call(SYS_copy_handler_table_to_cage, me, parent, 0, 0, 0));
	check("by its own table", -EMLINK, by((uint64_t)me, (uint64_t)me, SYS_geteuid));
	check("by the grate's table", -EPERM, by((uint64_t)parent, (uint64_t)me, SYS_geteuid));
	check("by the grate's table on it", -EPERM, by((uint64_t)parent, (uint64_t)parent, SYS_geteuid));
	check("make_syscall", -EMLINK, on((uint64_t)me, SYS_geteuid));
	check("make_syscall on the grate", -EPERM, on((uint64_t)parent, SYS_geteuid));
	check("pass on", -EINVAL, call(SYS_call_by, 0, 0, 0, 0, 0));
	check("x32", -ENOSYS, call(SYS_geteuid | 0x40000000, 0, 0, 0, 0, 0));
	check("negative", -ENOSYS, call((int32_t)(SYS_geteuid | 0x80000000), 0, 0, 0, 0, 0));
	check("any", -ENOSYS, call(-1, 0, 0, 0, 0, 0));
	check("the grate's memory", -EPERM,
	    lind_import_syscall(SYS_copy_data_between_cages, (uintptr_t)&status, 65536, 4, 0, 0, (uint64_t)parent));
	if (argc == 1) {
		int64_t id =
		    call(SYS_spawn, (uintptr_t)argv[0], (uintptr_t)child, (uintptr_t)none, (uintptr_t)left_out, 2);

		if (id < 0 || waitpid((pid_t)id, &status, 0) != id || status)
			printf("child: %lld\n", (long long)id);
	}
	puts("end");
	return 0;
}
