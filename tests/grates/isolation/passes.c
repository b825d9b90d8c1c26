/*
 * Asks, by the calls for interposition, for what belongs to the grate that it is behind: its
 * memory, its table, its handlers, calls in its name. Prints what each attempt answers; a grate
 * that passes such calls on lends nothing by that.
 */
#include <lind/raw.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char *what, int64_t r)
{
	printf("%s %lld ", what, (long long)r);
}

int main(int argc, char **argv)
{
	uint64_t me = (uint64_t)getpid(), up = (uint64_t)getppid();
	struct lind_call own = { .nr = SYS_getpid, .caller = up, .target = up };
	static char bytes[64];

	(void)argv;
	for (int i = 0; i < 6; i++)
		own.args[i].cage = up;
	say("read", lind_import_syscall(SYS_copy_data_between_cages, (uintptr_t)bytes, 0x10000, 64, 0, me, up));
	say("write", lind_import_syscall(SYS_copy_data_between_cages, 0x10000, (uintptr_t)bytes, 1, 0, up, me));
	say("undo", lind_import_syscall(SYS_register_handler, me, SYS_copy_data_between_cages, 0, 0, 2, 0));
	say("replace", lind_import_syscall(SYS_register_handler, me, SYS_getpid, up, 1, 0, 0));
	say("table", lind_import_syscall(SYS_copy_handler_table_to_cage, up, me, 0, 0, 0, 0));
	say("turn", lind_import_syscall(SYS_copy_handler_table_to_cage, me, up, 0, 0, 0, 0));
	say("call", lind_import_syscall(SYS_call_by, (uintptr_t)&own, 0, 0, 0, 0, 0));
	own.target = me;
	say("by", lind_import_syscall(SYS_call_by, (uintptr_t)&own, 0, 0, 0, 0, 0));
	printf("own %d\n", memcmp(bytes, (char[64]){ 0 }, sizeof bytes));
	return argc > 1;
}
