/* Says which calls the grate behind it takes of its program: `takes NR`, and `leaves NR` for what
 * it leaves out of all. */
#include <lind/raw.h>
#include <stdint.h>

struct entry {
	uint32_t nr, function;
};

static void say(struct entry e)
{
	lind_log("%s %u", e.function == UINT32_MAX ? "leaves" : "takes", e.nr);
}

static int64_t on_register(const struct lind_call *c)
{
	say((struct entry){ (uint32_t)c->args[1].value, (uint32_t)c->args[3].value });
	return lind_forward(c);
}

static int64_t on_spawn(const struct lind_call *c)
{
	for (uint64_t i = 0; i < c->args[4].value; i++) {
		struct lind_arg at = { c->args[3].value + i * sizeof(struct entry), c->args[3].cage };
		struct entry e;

		if (lind_read(at, &e, sizeof e) < 0)
			lind_die("no entry %u", (unsigned)i);
		say(e);
	}
	return lind_forward(c);
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { SYS_register_handler, on_register }, { SYS_spawn, on_spawn } };

	return lind_grate_run(on, 2, argc, argv);
}
