/*
 * A grate that keeps a word for each descriptor of a client and lets the kernel look there. Its
 * calls for routes.c:
 *
 *	getpriority(value, fd)	sets the word of `fd`; a few values mean something else
 *	read, pread		say 1000, or what --base says, if they come here. pread always does
 */
#include <errno.h>
#include <lind/raw.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS 64u
#define SIZE  4096u

static int64_t base = 1000;
static int wrong;

static int64_t route(uint64_t cage, uint32_t *words, uint64_t unset, uint64_t set)
{
	struct lind_fd_routes routes = {
		.words = (uintptr_t)words, .count = WORDS, .mask = 1, .unset = unset, .set = set
	};

	lind_route_number(&routes, SYS_read);
	return lind_route_fds(cage, &routes);
}

/* Each is refused, and leaves the way free for what is right. */
static void what_is_refused(uint64_t cage, uint32_t *words)
{
	wrong += route(cage, (uint32_t *)((uintptr_t)words + 2), lind_self(), 0) != -EINVAL;
	wrong += route(cage, (uint32_t *)UINTPTR_MAX - 3, lind_self(), 0) != -EINVAL;
	wrong += route(cage, words, cage, 0) != -EPERM;
	wrong += route(cage, words, 0, cage) != -EPERM;
	wrong += route(cage, words, 1000000, 0) != -ESRCH;
	wrong += route(1000000, words, lind_self(), 0) != -ESRCH;
	wrong += route(lind_self(), words, lind_self(), 0) != -EPERM;
	if (lind_self() > 1) {
		wrong += route(1, words, lind_self(), 0) != -EPERM;
		wrong += route(cage, words, 1, 0) != -EPERM;
	}
}

static void *start(uint64_t cage)
{
	uint32_t *words = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		lind_die("no memory");
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = 1;
	what_is_refused(cage, words);
	wrong += route(cage, words, lind_self(), 0) != 0;
	wrong += route(cage, words, lind_self(), 0) != -EEXIST;
	return words;
}

static void *forked(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	(void)parent;
	(void)parent_cage;
	(void)spawned;
	return start(cage);
}

static int64_t on_getpriority(const struct lind_call *c)
{
	uint32_t *words = lind_client(c->target);

	switch ((int)c->args[0].value) {
	case 95:  /* a descriptor of ours, or one that we do not have */
		return lind_dup_to_client(c->args[1].value ? 1000 : STDOUT_FILENO, 0);
	case 96:
		return lind_dup_to_client(STDOUT_FILENO, 1);
	case 97:
		return wrong;
	case 98:
		return munmap(words, SIZE);
	case 99:
		_exit(0);
	default:
		if (c->args[1].value < WORDS)
			__atomic_store_n(&words[c->args[1].value], (uint32_t)c->args[0].value, __ATOMIC_RELEASE);
		return 0;
	}
}

static int64_t on_read(const struct lind_call *c)
{
	(void)c;
	return base;
}

static const char *set_base(const char *value)
{
	base = atoi(value);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { SYS_read, on_read }, { SYS_pread64, on_read },
		{ SYS_getpriority, on_getpriority } };
	static const struct lind_lifecycle lifecycle = { .start = start, .fork = forked };
	static const struct lind_option options[] = { { 'b', "base", "N", "result of a read that comes here",
	    set_base } };

	lind_options(options, 1, "A test.", &argc, &argv);
	lind_grate_lifecycle(&lifecycle);
	return lind_grate_run(on, 3, argc, argv);
}
