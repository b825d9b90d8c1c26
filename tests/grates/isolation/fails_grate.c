/*
 * Answers geteuid with 4242, and fails in getpgid(1) in the way that --how says. getpgid of others
 * is passed on. A client whose grate has failed must not reach the kernel's own geteuid.
 */
#include <errno.h>
#include <lind/raw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *how = "";

static int64_t on_geteuid(const struct lind_call *call)
{
	(void)call;
	return 4242;
}

static int deeper(volatile int *above)
{
	volatile int here[64] = { *above };

	return here[0] ? deeper(here) + here[0] : 0;
}

static char *volatile kept;

/* All of it, touched a little. */
static void memory(void)
{
	for (size_t size = 1u << 30; size >= 4096;) {
		char *p = malloc(size);

		if (p)
			*(volatile char *)p = 1, kept = p;
		else
			size /= 2;
	}
	/* As a grate must that cannot do what it promised. */
	lind_die("out of memory");
}

static int64_t on_getpgid(const struct lind_call *call)
{
	volatile int zero = 0;

	if (call->args[0].value != 1)
		return lind_forward(call);
	if (!strcmp(how, "trap"))
		__builtin_trap();
	if (!strcmp(how, "address"))
		*(volatile int *)(uintptr_t)zero = 1;
	if (!strcmp(how, "divide"))
		return 100 / zero;
	if (!strcmp(how, "exit"))
		exit(0);
	if (!strcmp(how, "_exit"))
		_exit(0);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "recurse"))
		return deeper(&(volatile int){ 1 });
	if (!strcmp(how, "memory"))
		memory();
	/* A test that sends a signal to the handler learns here that the handler runs. */
	if (!strcmp(how, "say-and-hang") && write(1, "in\n", 3) != 3)
		return -EIO;
	if (!strcmp(how, "hang") || !strcmp(how, "say-and-hang"))
		for (volatile unsigned long i = 0;; i++)
			;
	if (!strcmp(how, "wait"))
		for (;;)
			pause();
	return 0;
}

static const char *set_how(const char *value)
{
	how = value;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 0, "how", "WAY", "how to fail", set_how } };
	static const struct lind_handler on[] = { { SYS_geteuid, on_geteuid }, { SYS_getpgid, on_getpgid } };

	lind_options(options, 1, "Fails.", &argc, &argv);
	return lind_grate_run(on, 2, argc, argv);
}
