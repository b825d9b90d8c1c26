/*
 * Declares one call, and tries what it can to handle others, and to be handled for others: on its
 * child, by its child, after exec, by a list of spawn, by copies of tables, by numbers that look
 * alike, on cages that are not its own. Says how often it came to something else than it should.
 */
#include "../lind-style/style.h"
#include <pthread.h>

__asm__(".section .custom_section.lind.grate,\"\",@\n.asciz \"observes geteuid\"\n.text\n");

__attribute__((import_module("lind"), import_name("syscall"))) int64_t direct(
    int nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);

static int wrong;
static char *self_path;

#define IS(call, want) is(__LINE__, #call, (call), (want))
static void is(int line, const char *what, int64_t got, int64_t want)
{
	if (got != want && ++wrong)
		fprintf(stderr, "%d: %s: %lld, not %lld\n", line, what, (long long)got, (long long)want);
}

HANDLER(on_geteuid)
{
	(void)grate;
	return 10;
}

static uint64_t fn(void)
{
	return (uintptr_t)on_geteuid;
}

static int64_t take_on(uint64_t target, uint64_t nr, uint64_t grate, uint64_t flags)
{
	return direct(1001, target, nr, grate, fn(), flags, 0);
}

static void beyond(uint64_t target, uint64_t grate)
{
	IS(take_on(target, 102, grate, 0), -EPERM);
	IS(take_on(target, 0xffffffff, grate, 0), -EPERM);
	IS(take_on(target, 107 | 1ull << 32, grate, 0), -EPERM);
	IS(take_on(target, 107 | 1ull << 63, grate, 0), -EPERM);
	IS(take_on(target, ~0ull, grate, 0), -EPERM);
	IS(take_on(target, 1001, grate, 0), -EPERM);
	IS(take_on(target, 102, grate, 1), -EPERM);
	IS(take_on(target, 107, grate, 4), -EINVAL);
}

static void *thread(void *x)
{
	beyond((uint64_t)getpid(), (uint64_t)(uintptr_t)x);
	return NULL;
}

static int after_exec(uint64_t parent)
{
	uint64_t me = (uint64_t)getpid();

	IS(geteuid(), 10);
	IS(take_on(me, 107, parent, 0), -EPERM);
	IS(take_on(me, 107, me, 0), -EPERM);
	IS(take_on(me, 102, parent, 0), -EPERM);
	IS(take_on(parent, 107, me, 0), -EPERM);
	IS(take_on(parent, 107, parent, 0), -EPERM);
	IS(direct(1003, parent, me, 0, 0, 0, 0), -EPERM);
	IS(direct(1003, me, parent, 0, 0, 0, 0), -EPERM);
	IS(direct(1003, me, me, 0, 0, 0, 0), -EPERM);
	IS(take_on(me, 107, parent, 2), -EPERM);
	IS(geteuid(), 10);
	return wrong;
}

static void child(uint64_t parent, uint64_t sibling)
{
	uint64_t me = (uint64_t)getpid();
	pthread_t t;
	int status;

	beyond(me, parent);
	IS(take_on(sibling, 107, parent, 0), -EPERM);
	IS(take_on(sibling, 107, me, 0), -EPERM);
	IS(take_on(parent, 107, me, 0), -EPERM);
	IS(take_on(1, 107, me, 0), -EPERM);
	IS(take_on(0, 107, me, 0), -ESRCH);
	IS(take_on(~0ull, 107, me, 0), -ESRCH);
	IS(direct(1003, parent, sibling, 0, 0, 0, 0), -EPERM);
	IS(direct(1003, sibling, me, 0, 0, 0, 0), -EPERM);
	IS(take_on(me, 107, parent, 0), 0);
	IS(geteuid(), 10);
	pthread_create(&t, NULL, thread, (void *)(uintptr_t)parent);
	pthread_join(t, NULL);
	/* A grandchild's parent is not this grate. */
	pid_t pid = fork();
	if (!pid) {
		uint64_t own = (uint64_t)getpid();

		wrong = 0;
		IS(geteuid(), 10);
		IS(take_on(own, 107, parent, 0), -EPERM);
		IS(take_on(own, 102, parent, 0), -EPERM);
		IS(take_on(own, 102, me, 0), -EPERM);
		IS(take_on(own, 102, own, 0), -EPERM);
		_exit(wrong);
	}
	waitpid(pid, &status, 0);
	IS(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	char id[20];
	int status;

	if (argc > 2 && !strcmp(argv[1], "after"))
		return after_exec(strtoull(argv[2], NULL, 10));
	self_path = argv[0];
	uint64_t me = (uint64_t)getpid();
	pid_t sibling = fork();
	if (!sibling) {
		pause();
		_exit(0);
	}
	beyond((uint64_t)sibling, me);
	IS(take_on(me, 107, me, 0), -EPERM);
	IS(direct(1003, 1, me, 0, 0, 0, 0), me == 1 ? 0 : -EPERM);
	/* spawn's list. */
	{
		uint32_t list[] = { 107, (uint32_t)fn(), 102, (uint32_t)fn() }, any[] = { 0xffffffff, (uint32_t)fn() };
		uint32_t words[] = { (uint32_t)(uintptr_t)self_path, (uint32_t)(uintptr_t)"after", 0 };
		IS(direct(1004, (uintptr_t)self_path, (uintptr_t)words, 0, (uintptr_t)list, 2, 0), -EPERM);
		IS(direct(1004, (uintptr_t)self_path, (uintptr_t)words, 0, (uintptr_t)any, 1, 0), -EPERM);
		IS(direct(1004, (uintptr_t)self_path, (uintptr_t)words, 0, (uintptr_t)list, 1u << 31, 0) < 0, 1);
		IS(direct(1004, (uintptr_t)self_path, (uintptr_t)words, 0, 16, 1, 0), -EFAULT);
	}
	pid_t pid = fork();
	if (!pid) {
		child(me, (uint64_t)sibling);
		if (wrong)
			_exit(wrong);
		snprintf(id, sizeof id, "%llu", (unsigned long long)me);
		execl(self_path, self_path, "after", id, (char *)NULL);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	IS(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
	/* A registration of one's own that is allowed, on a child that runs. */
	IS(take_on((uint64_t)sibling, 107, me, 0), 0);
	IS(take_on((uint64_t)sibling, 107, me, 2), 0);
	kill(sibling, 9);
	printf("wrong %d\n", wrong);
	return wrong != 0;
}
