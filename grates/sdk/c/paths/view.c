/* Serving clients that see another tree of files. */
#include <lind/entries.h>
#include <lind/transfer.h>
#include <lind/view.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "../core/program.h"
#include "walk.h"

#define LISTED 32768 /* bytes of a directory's list at a time, as the C library asks for */

static const struct lind_view *view;

void lind_view_use(const struct lind_view *the_view)
{
	char path[PATH_MAX];
	int here = own_look(AT_FDCWD, ".", O_DIRECTORY);

	view = the_view;
	if (here < 0 || lind_view_name(view, here, path))
		if (own(SYS_fchdir, (uint64_t)view->root, 0, 0, 0))
			lind_die("cannot enter the root");
	own_close(here);
}

/* A program by a name of the view, or a grate of the command line, which is in no view. */
static int64_t spawn(const struct lind_call *c)
{
	struct lind_call there = *c;
	struct lind_place place;
	char path[PATH_MAX], real[PATH_MAX];
	struct lind_arg here = { (uint64_t)(int64_t)AT_FDCWD, c->target };
	int64_t r = lind_read_string(c->args[0], path, sizeof path);

	if (r < 0)
		return r;
	if (program_is_marked(path))
		return lind_forward(c);
	r = lind_path_walk(view, c->target, here, path, LIND_WALK_FOLLOW, &place);
	if (!r && place.object < 0)
		r = -ENOENT;
	if (!r)
		r = lind_kernel_name(place.object, real);
	lind_place_done(&place);
	if (r == -ENOENT && !strchr(path, '/')) {
		strcpy(real, path);
		r = 0;
	}
	there.args[0] = lind_mine(real);
	return r ? r : lind_forward(&there);
}

int64_t lind_view_path(const struct lind_call *c)
{
	if (c->nr == SYS_execve || c->nr == SYS_execveat)
		return lind_path_exec(c, view, NULL, NULL);
	return c->nr == SYS_spawn ? spawn(c) : lind_path_call(c, view, NULL, NULL);
}

int64_t lind_view_bind_call(const struct lind_call *c)
{
	return lind_path_bind(c, view, NULL, NULL);
}

int64_t lind_view_reach(const struct lind_call *c)
{
	return lind_path_reach(c, view);
}

/* A message with a name that is a path is refused: no way to send one without a race exists yet. */
static int64_t send_one(const struct lind_call *c)
{
	struct lind_message m;
	int64_t r = lind_message_sent(&m, c->args[1]);

	if (r < 0)
		return r;
	if (m.own.msg_name && m.own.msg_namelen > offsetof(struct sockaddr_un, sun_path) &&
	    ((struct sockaddr *)m.own.msg_name)->sa_family == AF_UNIX &&
	    ((struct sockaddr_un *)m.own.msg_name)->sun_path[0])
		r = -EACCES;
	else
		r = lind_message_pass(&m, c, c->args[2].value);
	lind_message_free(&m);
	return r;
}

int64_t lind_view_send(const struct lind_call *c)
{
	return c->nr == SYS_sendmmsg ? lind_message_each(c, send_one) : send_one(c);
}

int64_t lind_view_getcwd(const struct lind_call *c)
{
	struct lind_arg here = { (uint64_t)(int64_t)AT_FDCWD, c->target };
	char path[PATH_MAX];
	struct stat st;
	size_t length;
	int64_t r;
	int fd = (int)lind_call(SYS_openat, lind_self_, here, lind_mine("."), number(O_PATH | O_DIRECTORY | O_CLOEXEC),
	    number(0), number(0), number(0));

	if (fd < 0)
		return fd;
	if (!(r = lind_view_name(view, fd, path)) && !(r = own(SYS_fstat, (uint64_t)fd, (uintptr_t)&st, 0, 0)) &&
	    !st.st_nlink)
		r = -ENOENT;
	own_close(fd);
	if (r)
		return r;
	length = strlen(path) + 1;
	if (length > c->args[1].value)
		return -ERANGE;
	r = lind_write(c->args[0], path, length);
	return r ? r : (int64_t)length;
}

/* struct linux_dirent64, as far as it is looked at. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t length;
	uint8_t type;
	char name[];
} __attribute__((packed));

/* Leaves the names out that are hidden in `path`. Returns the number of bytes left. */
static size_t without_hidden(char *list, size_t bytes, const char *path)
{
	size_t kept = 0;

	for (size_t at = 0, length; at < bytes; at += length) {
		struct entry *e = (struct entry *)(list + at);

		length = e->length;
		if (length < sizeof *e || length > bytes - at)
			break;
		if (lind_view_hides(view, path, e->name))
			continue;
		memmove(list + kept, list + at, length);
		kept += length;
	}
	return kept;
}

int64_t lind_view_list(const struct lind_call *c)
{
	struct lind_arg none = { 0, c->target };
	char path[PATH_MAX], *list;
	uint64_t size = c->args[2].value < LISTED ? c->args[2].value : LISTED;
	int64_t r;
	int fd = (int)lind_call(SYS_dup, lind_self_, c->args[0], none, none, none, none, none);

	if (fd < 0)
		return fd;
	if (lind_view_name(view, fd, path) || !lind_view_hides_in(view, path)) {
		own_close(fd);
		return lind_forward(c);
	}
	if (!(list = malloc(LISTED))) {
		own_close(fd);
		return -ENOMEM;
	}
	/* Nothing left of a list is not its end. */
	do {
		r = lind_call(
		    SYS_getdents64, c->target, number((uint64_t)fd), lind_mine(list), number(size), none, none, none);
		if (r <= 0)
			break;
		r = (int64_t)without_hidden(list, (size_t)r, path);
	} while (!r);
	own_close(fd);
	if (r > 0 && c->nr == SYS_getdents)
		lind_entries_to_old(list, (size_t)r);
	if (r > 0 && lind_write(c->args[1], list, (size_t)r))
		r = -EFAULT;
	free(list);
	return r;
}
