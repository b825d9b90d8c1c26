/* Programs that are files of ours. The kernel loads programs from descriptors of its own: it
 * gets the contents in a memfd. A program that is not here is looked for outside, where programs
 * usually are. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "memfs.h"
#include "../../sdk/c/core/program.h"
#include "../../sdk/c/core/script.h"

#define CLOEXEC 1u   /* of memfd_create */
struct program {
	struct imfs_node *node;
	char path[IMFS_PATH];  /* as it was named */
	char head[SCRIPT_HEAD + 1];
};

static int64_t read_node(struct imfs_node *n, void *to, size_t length, int64_t off)
{
	struct imfs_file f = { .node = n, .refs = 1 };
	int64_t r;

	imfs_write_lock();
	r = imfs_pread(&fs, &f, to, length, off);
	imfs_write_unlock();
	return r;
}

void runs(struct imfs_node **program, struct imfs_node *n)
{
	if (!(*program = n))
		return;
	imfs_node_hold(n);
	n->runners++;
}

void runs_no_more(struct imfs_node **program)
{
	struct imfs_node *n = *program;

	if (!n)
		return;
	*program = NULL;
	n->runners--;
	imfs_node_drop(&fs, n);
}

static void drop(struct program *p)
{
	imfs_write_lock();
	runs_no_more(&p->node);
	imfs_write_unlock();
}

static __thread struct imfs_node *spawned; /* what the child runs that is being born, if that is ours */

struct imfs_node *spawned_program(void)
{
	struct imfs_node *n = spawned;

	spawned = NULL;
	return n;
}

/* It is what the client runs when the exec, which has succeeded, is carried out: `exec` of the
 * lifecycle. Or what its child begins with. */
static void hand_over(const struct lind_call *c, struct program *p)
{
	struct client *client = client_of(c->target);

	imfs_write_lock();
	if (c->nr == SYS_spawn) {
		runs_no_more(&spawned);
		spawned = p->node;
		p->node = NULL;
		imfs_write_unlock();
		return;
	}
	runs_no_more(&client->next_program);
	if (client->cage == c->target) {
		client->next_program = p->node;
		p->node = NULL;
	}
	imfs_write_unlock();
}

/* The write lock is held and given back. OUTSIDE if there is no such file here. A program for
 * spawn need not be executable, unless it is a script. */
static int take(const struct lind_call *c, struct look *l, struct program *p)
{
	struct imfs_node *n = l->at.node;
	int executable = n ? imfs_may(n, &l->client->p.cred, X_OK) : 0;
	int r = !n               ? (imfs_below ? -ENOENT : OUTSIDE)
	    : !S_ISREG(n->mode)  ? -EACCES
	    : c->nr != SYS_spawn ? executable
				 : imfs_may(n, &l->client->p.cred, R_OK);
	int64_t got;

	if (!r && n->writers)
		r = -ETXTBSY;
	if (!r)
		runs(&p->node, n);
	imfs_write_unlock();
	if (r)
		return r;
	if (*l->text)
		strcpy(p->path, l->text);
	got = read_node(n, p->head, SCRIPT_HEAD, 0);
	p->head[got > 0 ? got : 0] = 0;
	return lind_is_script_(p->head) ? executable : 0;
}

/* A descriptor of the kernel's, in the client, with the contents of the file. It has the file's
 * name, by which others tell the program. */
static int64_t copy_out(uint64_t cage, struct imfs_node *n, const char *path)
{
	struct lind_arg none = { 0, cage };
	char name[16];

	snprintf(name, sizeof name, "%s", lind_base_name(path));
	int64_t fd = lind_call(
	    SYS_memfd_create, cage, lind_mine(name), (struct lind_arg){ CLOEXEC, cage }, none, none, none, none);
	char *piece = malloc(IMFS_CHUNK);
	int64_t off = 0, got = 0;

	if (fd < 0 || !piece) {
		free(piece);
		return fd < 0 ? fd : -ENOMEM;
	}
	while ((got = read_node(n, piece, IMFS_CHUNK, off)) > 0) {
		int64_t put = lind_call(SYS_pwrite64, cage, (struct lind_arg){ (uint64_t)fd, cage }, lind_mine(piece),
		    (struct lind_arg){ (uint64_t)got, cage }, (struct lind_arg){ (uint64_t)off, cage }, none, none);

		if (put != got) {
			got = put < 0 ? put : -ENOSPC;
			break;
		}
		off += got;
	}
	free(piece);
	if (got < 0)
		lind_call_plain(SYS_close, cage, (uint64_t)fd, 0, 0, 0);
	return got < 0 ? got : fd;
}

/* Where the file is one of the kernel's as it is, that. */
static int64_t descriptor_of(uint64_t cage, struct imfs_node *n, const char *path)
{
	int below = -1;
	int64_t fd;

	imfs_write_lock();
	if (n->lazy)
		below = imfs_below->whole(n);
	imfs_write_unlock();
	if (below < 0)
		return copy_out(cage, n, path);
	fd = lind_dup_to_client(below, true);
	close(below);
	return fd;
}

/* The kernel itself follows the path of spawn: it gets a path that leads to the descriptor. */
static int64_t spawn(const struct lind_call *c, int64_t fd, struct lind_arg argv, struct lind_arg envp)
{
	struct lind_call own = *c;
	char name[32];
	int64_t r;

	snprintf(name, sizeof name, "/dev/fd/%d", (int)fd);
	own.args[0] = lind_mine(name);
	own.args[1] = argv;
	own.args[2] = envp;
	r = lind_forward(&own);
	lind_call_plain(SYS_close, c->target, (uint64_t)fd, 0, 0, 0);
	return r;
}

static int64_t run(const struct lind_call *c, struct program *p, struct lind_arg argv, struct lind_arg envp)
{
	int64_t fd = descriptor_of(c->target, p->node, p->path), r;

	if (fd < 0)
		return fd;
	if (c->nr == SYS_spawn)
		return spawn(c, fd, argv, envp);
	r = lind_call(SYS_execveat, c->target, (struct lind_arg){ (uint64_t)fd, c->target }, lind_mine(""), argv, envp,
	    (struct lind_arg){ AT_EMPTY_PATH, c->target }, (struct lind_arg){ 0, c->target });
	if (r < 0)
		lind_call_plain(SYS_close, c->target, (uint64_t)fd, 0, 0, 0);
	return r;
}

/*
 * The program is here, or `looked` says why not. Follows scripts to their interpreters. If the tree
 * is all in memory, a program that is nowhere in it is looked for outside, where programs usually
 * are. If the tree has a directory below it, a removed program is still in that directory, and must
 * not be found.
 */
static int64_t exec(const struct lind_call *c, struct look *l, int looked, struct lind_arg argv, struct lind_arg envp)
{
	struct program p = { 0 };
	struct lind_script_words w = { 0 };
	int64_t r = looked;
	char name[IMFS_PATH] = "", *word;

	/* A script that is named by a descriptor has no other name. */
	if (c->nr == SYS_execveat)
		snprintf(p.path, sizeof p.path, "/dev/fd/%d", (int)lind_arg32(c, 0));
	for (int depth = 0; !r && !(r = take(c, l, &p)); depth++) {
		if (!lind_is_script_(p.head)) {
			if ((r = run(c, &p, argv, envp)) >= 0)
				hand_over(c, &p);
			goto out;
		}
		drop(&p);
		if (!(r = lind_script_(p.head, p.path, &w, &argv, &word)))
			r = depth + 1 < SCRIPT_INTERPRETERS ? look_text(c, strcpy(name, word), IMFS_FOLLOW, l) : -ELOOP;
	}
	if (r == OUTSIDE || (!imfs_below && (r == -ENOENT || r == -ENOTDIR))) {
		/* Links of ours have been followed on the way there. */
		if (r == OUTSIDE && l->at.entered)
			snprintf(name, sizeof name, "%s", l->at.path);
		struct lind_call outside = { .nr = c->nr == SYS_spawn ? SYS_spawn : SYS_execve,
			.caller = c->caller,
			.target = c->target,
			.args = { lind_mine(name), argv, envp, c->args[3], c->args[4], c->args[5] } };
		int64_t there = lind_forward(*name ? &outside : c);

		r = there == -ENOENT && r < 0 ? r : there;
	}
out:
	drop(&p);
	lind_script_done_(&w);
	return r;
}

/* The path is ours: it need not be copied, by a call that a grate before us may have taken over. */
int64_t start_first(const struct lind_call *c)
{
	const char *path = (const char *)(uintptr_t)c->args[0].value;
	struct look l;

	if (program_is_marked(path))
		return lind_forward(c);
	return exec(c, &l, strlen(path) < sizeof l.text ? look_text(c, path, IMFS_FOLLOW, &l) : -ENAMETOOLONG,
	    c->args[1], c->args[2]);
}

/* Also spawn: what grates start, the program of a line among it. */
int64_t on_execve(const struct lind_call *c)
{
	struct look l;
	char path[PATH_MAX];

	/* A grate of the command line is not a file. */
	if (lind_read_string(c->args[0], path, sizeof path) > 0 && program_is_marked(path))
		return lind_forward(c);
	return exec(c, &l, look(c, -1, 0, IMFS_FOLLOW, false, &l), c->args[1], c->args[2]);
}

int64_t on_execveat(const struct lind_call *c)
{
	uint32_t flags = lind_arg32(c, 4);
	struct look l;

	if (flags & ~AT_EMPTY_PATH)
		return lind_forward(c);
	return exec(c, &l, look(c, 0, 1, IMFS_FOLLOW, flags & AT_EMPTY_PATH, &l), c->args[2], c->args[3]);
}
