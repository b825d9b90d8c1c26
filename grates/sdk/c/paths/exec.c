/* Programs of a view: run by a descriptor, so that what was found is what runs, and scripts by interpreters of the view. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../core/program.h"
#include "walk.h"

#define INTERPRETERS 5
#define HEAD 256
#define AGAIN INT64_MAX
#define STRINGS (2u << 20)	/* bytes of arguments that are rewritten for an interpreter */

/* Arguments in this grate's memory. */
struct words {
	uint32_t *list;		/* what the kernel reads: addresses, then 0 */
	size_t count, room;
	char *text;
	size_t used;
};

static int words_new(struct words *w)
{
	*w = (struct words){ .room = STRINGS / 8, .list = malloc(4 * (STRINGS / 8)), .text = malloc(STRINGS) };
	return w->list && w->text ? 0 : -ENOMEM;
}

static void words_free(struct words *w)
{
	free(w->list);
	free(w->text);
	*w = (struct words){ 0 };
}

/* Takes over the `length` bytes, a NUL among them, that stand at the end of the text. */
static int take(struct words *w, size_t length)
{
	if (w->count + 1 >= w->room)
		return -E2BIG;
	w->list[w->count++] = (uint32_t)(uintptr_t)(w->text + w->used);
	w->list[w->count] = 0;
	w->used += length;
	return 0;
}

static int add(struct words *w, const char *text)
{
	size_t length = strlen(text) + 1;

	if (w->used + length > STRINGS)
		return -E2BIG;
	memcpy(w->text + w->used, text, length);
	return take(w, length);
}

/* argv without its first word. */
static int add_rest(struct words *w, struct lind_arg argv)
{
	int r = 0;

	for (uint64_t i = 1; argv.value && !r; i++) {
		uint32_t at;
		ssize_t length;

		if ((r = lind_read(lind_at(argv, 4 * (i - 1)), &at, sizeof at)) || !at)
			return r;
		if ((r = lind_read(lind_at(argv, 4 * i), &at, sizeof at)) || !at)
			return r;
		if (w->used >= STRINGS)
			return -E2BIG;
		length = lind_read_string((struct lind_arg){ at, argv.cage }, w->text + w->used, STRINGS - w->used);
		r = length < 0 ? (length == -ENAMETOOLONG ? -E2BIG : (int)length) : take(w, (size_t)length + 1);
	}
	return r;
}

/* The first line of a script: its interpreter, and the rest as one word or NULL. */
static int first_line(char *head, char **name, char **option)
{
	char *line = head + 2 + strspn(head + 2, " \t"), *end = line + strcspn(line, "\n"), *space;

	if (!*end && strlen(head) == HEAD && !strpbrk(line, " \t"))
		return -ENOEXEC;
	while (end > line && strchr(" \t", end[-1]))
		end--;
	*end = 0;
	*name = line;
	*option = NULL;
	if ((space = strpbrk(line, " \t"))) {
		*space++ = 0;
		*option = space + strspn(space, " \t");
	}
	return *line ? 0 : -ENOEXEC;
}

static int64_t may_execute(int object)
{
	struct lind_arg none = number(0);

	return lind_call(SYS_faccessat2, lind_self_, number((uint64_t)object), lind_mine(""), number(X_OK), number(AT_EMPTY_PATH), none, none);
}

/* Opens the program that was found. What spawn starts need not be executable, but for scripts. */
static int64_t open_program(const struct lind_call *c, const struct lind_place *place)
{
	char name[40];
	int64_t r;

	if (place->object < 0)
		return -ENOENT;
	if (S_ISLNK(place->st.st_mode))
		return -ELOOP;
	if (!S_ISREG(place->st.st_mode))
		return -EACCES;
	if (c->nr != SYS_spawn && (r = may_execute(place->object)))
		return r;
	snprintf(name, sizeof name, "/proc/self/fd/%d", place->object);
	return own(SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)name, O_RDONLY | O_CLOEXEC, 0);
}

/* How a script is known to its interpreter. */
struct known {
	char name[PATH_MAX];
	bool leads_nowhere;	/* it begins at a descriptor that exec closes */
};

/* One that is named from a descriptor is known by a name that begins there. */
static int64_t known_as(const struct lind_call *c, struct lind_arg dir, const char *path, struct known *known)
{
	int fd = (int)(uint32_t)dir.value;
	struct lind_arg none = number(0);

	known->leads_nowhere = false;
	if (fd == AT_FDCWD || *path == '/') {
		strcpy(known->name, path);
		return 0;
	}
	if (snprintf(known->name, sizeof known->name, "/dev/fd/%d%s%s", fd, *path ? "/" : "", path) >= (int)sizeof known->name)
		return -ENAMETOOLONG;
	int64_t flags = lind_call(SYS_fcntl, c->target, dir, (struct lind_arg){ F_GETFD, c->target }, none, none, none, none);
	known->leads_nowhere = flags > 0 && flags & FD_CLOEXEC;
	return 0;
}

/* Runs a program that is no script. The kernel follows the path of spawn by itself, which the grate alone makes. */
static int64_t begin(const struct lind_call *c, int fd, const char *found, struct lind_arg argv, struct lind_arg envp)
{
	struct lind_call own = *c;

	if (c->nr != SYS_spawn)
		return lind_call(SYS_execveat, c->target, number((uint64_t)fd), lind_mine(""), argv, envp, number(AT_EMPTY_PATH), number(0));
	own.args[0] = lind_mine(found);
	own.args[1] = argv;
	return lind_forward(&own);
}

/* One look: runs the program that was found, or, if it is a script, says by AGAIN that `path`, `argv` are now its interpreter's. */
static int64_t run(const struct lind_call *c, int fd, const char *found, char *path, struct known *known, struct words *w, struct lind_arg *argv, struct lind_arg envp)
{
	char head[HEAD + 1], *name, *option;
	int64_t length = own(SYS_pread64, (uint64_t)fd, (uintptr_t)head, HEAD, 0), r;
	struct words old = *w;

	if (length < 0)
		return length;
	head[length] = 0;
	if (strncmp(head, "#!", 2))
		return begin(c, fd, found, *argv, envp);
	if (c->nr == SYS_spawn && (r = may_execute(fd)))
		return r;
	if ((r = first_line(head, &name, &option)))
		return r;
	if (known->leads_nowhere)
		return -ENOENT;
	if (!(r = words_new(w)) && !(r = add(w, name)) && (!option || !(r = add(w, option))) && !(r = add(w, known->name)))
		r = add_rest(w, *argv);
	*argv = lind_mine(w->list);
	words_free(&old);
	strcpy(path, name);
	*known = (struct known){ 0 };
	strcpy(known->name, name);
	return r ? r : AGAIN;
}

int64_t lind_path_exec(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg)
{
	bool at = c->nr == SYS_execveat;
	uint32_t flags = at ? lind_arg32(c, 4) : 0;
	struct lind_arg dir = at ? c->args[0] : (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, c->target };
	struct lind_arg argv = c->args[at ? 2 : 1], envp = c->args[at ? 3 : 2];
	unsigned how = (flags & AT_SYMLINK_NOFOLLOW ? 0 : LIND_WALK_FOLLOW) | (flags & AT_EMPTY_PATH ? LIND_WALK_EMPTY : 0);
	struct words w = { 0 };
	struct known known;
	char path[PATH_MAX];
	int64_t r = lind_read_string(c->args[at], path, sizeof path);

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (r >= 0 && !at && program_is_marked(path))
		return lind_forward(c);
	if (r >= 0)
		r = known_as(c, dir, path, &known);
	for (int depth = 0; r >= 0; depth++) {
		struct lind_place place;
		int64_t fd;

		if ((r = depth > INTERPRETERS ? -ELOOP : lind_path_walk(view, c->target, dir, path, how, &place)))
			break;
		r = place.object >= 0 && decide ? decide(c, LIND_DOES_EXEC, &place, arg) : 0;
		r = fd = r ? r : open_program(c, &place);
		lind_place_done(&place);
		if (fd < 0)
			break;
		r = run(c, (int)fd, place.path, path, &known, &w, &argv, envp);
		own_close((int)fd);
		if (r != AGAIN)
			break;
		how = LIND_WALK_FOLLOW;
		dir.value = (uint64_t)(int64_t)AT_FDCWD;
	}
	words_free(&w);
	return r;
}
