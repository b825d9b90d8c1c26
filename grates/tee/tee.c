/*
 * Two stacks of grates see every call. The first carries it out; the second then sees it too, and
 * what it sends on comes back here and gets the first one's result. So nothing happens twice.
 */
#include <errno.h>
#include <lind/compose.h>
#include <lind/grate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The calls that a grate of either stack handles. */
LIND_COMPOSES(2);
LIND_HANDLE(alters, any, NULL);

#define BUCKETS 64u

/* A call that the second stack is seeing. */
struct seen {
	const struct lind_call *call;
	int64_t tid, result;
	struct seen *next;
};

static struct {
	pthread_mutex_t lock;
	struct seen *first;
} buckets[BUCKETS];
static bool agree;
static atomic_bool warned;

LIND_SETS(set_agree, agree = true)

/* The thread for which a call is made: the same here on both ways. */
static int64_t thread_of(const struct lind_call *c)
{
	return lind_call_plain(SYS_gettid, c->target, 0, 0, 0, 0);
}

static void begin(struct seen *s)
{
	unsigned at = (unsigned)(s->call->target % BUCKETS);

	pthread_mutex_lock(&buckets[at].lock);
	s->next = buckets[at].first;
	buckets[at].first = s;
	pthread_mutex_unlock(&buckets[at].lock);
}

static void finish(struct seen *s)
{
	unsigned at = (unsigned)(s->call->target % BUCKETS);
	struct seen **link;

	pthread_mutex_lock(&buckets[at].lock);
	for (link = &buckets[at].first; *link != s; link = &(*link)->next)
		;
	*link = s->next;
	pthread_mutex_unlock(&buckets[at].lock);
}

static bool same_values(const struct lind_call *a, const struct lind_call *b)
{
	for (int i = 0; i < 6; i++)
		if (a->args[i].value != b->args[i].value)
			return false;
	return true;
}

/* The result of the first stack for what the second sends on now. A call on another cage than
 * the thread's is known by its values. */
static bool find(const struct lind_call *c, int64_t *result)
{
	unsigned at = (unsigned)(c->target % BUCKETS);
	int64_t tid = thread_of(c);
	const struct seen *found = NULL;

	pthread_mutex_lock(&buckets[at].lock);
	for (const struct seen *s = buckets[at].first; s && !found; s = s->next)
		if (s->call->target == c->target && s->call->nr == c->nr && (s->tid == tid || same_values(s->call, c)))
			found = s;
	if (found)
		*result = found->result;
	pthread_mutex_unlock(&buckets[at].lock);
	return found;
}

/* Calls that the second stack makes on its own are carried out. */
static int64_t on_leaving(const struct lind_call *c)
{
	int64_t result;

	return find(c, &result) ? result : lind_forward(c);
}

static int64_t on_call(const struct lind_call *c)
{
	struct seen s = { .call = c, .tid = thread_of(c) };
	int64_t second;

	s.result = lind_enter(0, c);
	if (!lind_handled_inside(1, c->nr))
		return s.result;
	begin(&s);
	second = lind_enter(1, c);
	finish(&s);
	if (second == s.result)
		return s.result;
	if (agree || !atomic_exchange(&warned, true))
		lind_log("cage %llu: %s (%u): the first stack returns %lld, the second %lld%s",
		    (unsigned long long)c->target, lind_call_name(c->nr), c->nr, (long long)s.result, (long long)second,
		    agree ? ": EIO" : "; the first one counts, and further differences are not reported");
	return agree ? -EIO : s.result;
}

static lind_handle_fn *choose(uint32_t nr)
{
	return lind_handled_inside(0, nr) || lind_handled_inside(1, nr) ? on_call : NULL;
}

static const char *when(uint32_t nr, lind_handle_fn *handle)
{
	(void)nr;
	(void)handle;
	return agree ? "both must have the same result, else EIO" : "the first one's result counts";
}

static lind_handle_fn *leaving(unsigned stack, uint32_t nr)
{
	(void)nr;
	return stack == 1 ? on_leaving : NULL;
}

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 0, "agree", NULL, "require the same result of both stacks; else EIO", set_agree },
	};
	static const struct lind_composer composer = {
		.stacks = 2, .choose = choose, .when = when, .leaving = leaving
	};

	for (size_t i = 0; i < BUCKETS; i++)
		pthread_mutex_init(&buckets[i].lock, NULL);
	lind_options(options, 1,
	    "Shows every call to the grates between the first %{ and %} and to those between the second.", &argc,
	    &argv);
	return lind_compose_run(&composer, argc, argv);
}
