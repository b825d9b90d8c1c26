/*
 * Files that are memory: those of memfd_create and of /dev/shm. They are in nobody's map, and stay
 * as long as somebody has them: so they count by their size, beside their mappings. The growth that
 * a call may cause is reserved before the call, which is made on a copy of its descriptor that
 * another thread cannot give to another file. The size of the file shows the result.
 *
 * The clients that made or opened such a file, and their children since then, may have it. When all
 * of those have ended, and it has no name, it is gone. A file of a client that sent messages, or
 * that grates may have handed on, counts until the end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <lind/paths.h>
#include <lind/transfer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "files.h"
#include "limits.h"
#include "memfile.h"

#define PAGE  4096ull
#define PIECE (1ull << 20) /* what goes at once from a file to one of these: they say how much they did */

struct memory_file {
	struct memory_file *next;
	uint64_t ino;
	uint64_t size;  /* in pages, as far as it is known */
	uint64_t reserved; /* by calls under way */
	uint64_t charged; /* of the limit: not what it had when it was met */
	unsigned holders;
	bool lasting;  /* it may be open where this grate does not see it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory_file *files; /* under the lock, as what clients hold */
static bool any, handed_on;
static unsigned creating; /* calls under way that may make one */
static dev_t device;

static void find_device(void)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		lind_die("cannot make a memory file to compare others with: %s", strerror(errno));
	device = st.st_dev;
	close(fd);
}

static bool is_memory(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_dev == device;
}

static int64_t on_fd(uint32_t nr, struct lind_arg fd, uint64_t a, uint64_t b)
{
	struct lind_arg none = { 0, fd.cage };

	return lind_call(
	    nr, fd.cage, fd, (struct lind_arg){ a, fd.cage }, (struct lind_arg){ b, fd.cage }, none, none, none);
}

static bool look(struct lind_arg fd, struct stat *st)
{
	struct lind_arg none = { 0, fd.cage };

	return lind_call(SYS_fstat, fd.cage, fd, lind_mine(st), none, none, none, none) >= 0 && is_memory(st);
}

/* Pages that fallocate puts behind the end count too. */
static uint64_t pages_of(const struct stat *st)
{
	uint64_t blocks = (uint64_t)st->st_blocks * 512, size = ((uint64_t)st->st_size + PAGE - 1) & ~(PAGE - 1);

	return size > blocks ? size : blocks;
}

static struct memory_file *find(const struct stat *st, bool *is_new)
{
	struct memory_file *f = files;

	while (f && f->ino != st->st_ino)
		f = f->next;
	if ((*is_new = !f)) {
		if (!(f = calloc(1, sizeof *f)))
			lind_die("out of memory");
		*f = (struct memory_file){ .next = files, .ino = st->st_ino, .size = pages_of(st) };
		files = f;
		__atomic_store_n(&any, true, __ATOMIC_SEQ_CST);
	}
	return f;
}

static void hold(struct client *c, struct memory_file *f)
{
	struct memory_file **more;

	for (size_t i = 0; i < c->held_count; i++)
		if (c->held[i] == f)
			return;
	if (!(more = realloc(c->held, (c->held_count + 1) * sizeof *more)))
		lind_die("out of memory");
	c->held = more;
	c->held[c->held_count++] = f;
	f->holders++;
}

static bool has_a_name(DIR *names, uint64_t ino)
{
	struct dirent *e;
	struct stat st;

	rewinddir(names);
	while ((e = readdir(names)))
		if (fstatat(dirfd(names), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_memory(&st) &&
		    st.st_ino == ino)
			return true;
	return false;
}

/* Removes files that nobody has any more from the count. The lock is held. */
static void sweep(void)
{
	struct memory_file **at = &files, *f;
	DIR *names = NULL;

	while ((f = *at)) {
		if (f->holders || f->reserved || f->lasting || handed_on ||
		    !(names = names ? names : opendir("/dev/shm")) || has_a_name(names, f->ino)) {
			at = &f->next;
			continue;
		}
		drop(TREE, NULL, MEMORY, f->charged);
		*at = f->next;
		free(f);
	}
	if (names)
		closedir(names);
}

void memory_files_copied(struct client *child, struct client *parent)
{
	pthread_mutex_lock(&lock);
	parent->forks++;
	for (size_t i = 0; i < parent->held_count; i++)
		hold(child, parent->held[i]);
	pthread_mutex_unlock(&lock);
}

void memory_files_leave(struct client *c)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < c->held_count; i++)
		c->held[i]->holders--;
	free(c->held);
	c->held = NULL;
	c->held_count = 0;
	sweep();
	pthread_mutex_unlock(&lock);
}

void memory_files_handed_on(void)
{
	pthread_mutex_lock(&lock);
	handed_on = true;
	pthread_mutex_unlock(&lock);
}

/* Whether it only opens for reading what is there already. The flags of openat2 are in memory
 * that another thread may change. */
static bool only_reads(const struct lind_call *call)
{
	uint32_t flags;

	if (call->nr != SYS_open && call->nr != SYS_openat)
		return false;
	flags = lind_arg32(call, call->nr == SYS_open ? 1 : 2);
	return !(flags & (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)));
}

/* A call whose result is a descriptor: if that is of a memory file, the client has it from now
 * on. To ask which file each is takes a tenth of the time of a program that reads many: so where
 * none was made yet, what is opened for reading is not looked at. */
static int64_t opens(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	uint64_t forks = c ? __atomic_load_n(&c->forks, __ATOMIC_SEQ_CST) : 0;
	bool reads = only_reads(call), is_new;
	struct memory_file *f;
	struct stat st;
	int64_t r;

	if (!reads)
		__atomic_fetch_add(&creating, 1, __ATOMIC_SEQ_CST);
	r = lind_forward(call);
	/* The call that made the file was under way then. It still is, or it has been looked at. */
	if (reads && !__atomic_load_n(&creating, __ATOMIC_SEQ_CST) && !__atomic_load_n(&any, __ATOMIC_SEQ_CST))
		return r;
	if (c && r >= 0 && look((struct lind_arg){ (uint64_t)r, call->target }, &st)) {
		pthread_mutex_lock(&lock);
		hold(c, f = find(&st, &is_new));
		/* A child of another thread may have got it before we knew. */
		f->lasting |= forks != c->forks;
		pthread_mutex_unlock(&lock);
	}
	if (!reads)
		__atomic_fetch_sub(&creating, 1, __ATOMIC_SEQ_CST);
	return r;
}

static int64_t on_open(const struct lind_call *call)
{
	return limited(FILES) ? open_file(call, opens) : opens(call);
}

/* Room for it to become `end` bytes long, that is `*more` more; false if the limit has not so
 * much. */
static bool reserve_growth(struct client *c, struct memory_file *f, uint64_t end, uint64_t *more)
{
	uint64_t pages = (end + PAGE - 1) & ~(PAGE - 1), got;

	*more = pages > f->size ? pages - f->size : 0;
	got = *more ? grab(TREE, c, MEMORY, *more) : 0;
	if (got < *more) {
		drop(TREE, c, MEMORY, got);
		return false;
	}
	f->reserved += *more;
	return true;
}

/* After a call that had `more` reserved: what is there counts. A position that was moved
 * meanwhile may have led further: that is taken back. */
static void settle(struct memory_file *f, struct lind_arg own, uint64_t more)
{
	uint64_t allowed = f->size + f->reserved, pages;
	struct stat st;

	if (!look(own, &st))
		pages = f->size;
	else if ((pages = pages_of(&st)) > allowed) {
		on_fd(SYS_ftruncate, own, allowed, 0);
		pages = allowed;
	}
	f->reserved -= more;
	/* Modulo 2^64: less is a sum with what is over. */
	drop(TREE, NULL, MEMORY, more - (pages - f->size));
	f->charged += pages - f->size;
	/* Bytes that others had put there are not ours to give back. */
	if ((int64_t)f->charged < 0) {
		drop(TREE, NULL, MEMORY, f->charged);
		f->charged = 0;
	}
	f->size = pages;
}

/* How long a call may make the file, whose descriptor is `own` and which is `st`. */
static uint64_t end_of(const struct lind_call *call, struct lind_arg own, const struct stat *st, uint64_t length)
{
	bool appends = on_fd(SYS_fcntl, own, F_GETFL, 0) & O_APPEND;
	uint64_t at = appends ? (uint64_t)st->st_size : (uint64_t)on_fd(SYS_lseek, own, 0, SEEK_CUR), end;

	switch (call->nr) {
	case SYS_ftruncate:
		return call->args[1].value;
	case SYS_fallocate:
		at = call->args[2].value;
		break;
	case SYS_pwrite64:
	case SYS_pwritev:
		at = appends ? at : call->args[3].value;
		break;
	case SYS_pwritev2:
		at = appends || call->args[5].value & RWF_APPEND ? (uint64_t)st->st_size
		    : call->args[3].value == UINT64_MAX          ? at
								 : call->args[3].value;
		break;
	case SYS_sendfile:
	case SYS_splice:
	case SYS_copy_file_range:
		at = at > (uint64_t)st->st_size ? at : (uint64_t)st->st_size;
		break;
	}
	/* The call itself reports any mistake. */
	return __builtin_add_overflow(at, length, &end) || end > INT64_MAX ? 0 : end;
}

/* The file at a number, which another thread could change: then a copy of ours. */
static int64_t take(const struct client *c, struct lind_arg fd, struct lind_arg *taken)
{
	struct lind_arg none = { 0, lind_self() };
	int64_t r;

	*taken = fd;
	if (fd.cage == c->cage && __atomic_load_n(&c->used[THREADS], __ATOMIC_SEQ_CST) == 1)
		return 0;
	r = lind_call(
	    SYS_fcntl, lind_self(), fd, (struct lind_arg){ F_DUPFD_CLOEXEC, lind_self() }, none, none, none, none);
	*taken = (struct lind_arg){ (uint64_t)r, lind_self() };
	return r;
}

static void let_go(struct lind_arg taken)
{
	if (taken.cage == lind_self())
		close((int)taken.value);
}

/* A call that may make the file at argument `at` longer, by `length` bytes. */
static int64_t grows(const struct lind_call *call, int at, uint64_t length)
{
	struct client *c = lind_client(call->target);
	struct lind_call changed = *call;
	struct lind_arg own;
	struct memory_file *f;
	struct stat st;
	uint64_t more;
	bool is_new, enough;
	int64_t r;

	if (!c || !__atomic_load_n(&any, __ATOMIC_SEQ_CST))
		return lind_below(memory_files, call);
	if ((r = take(c, call->args[at], &changed.args[at])) < 0)
		return r;
	own = changed.args[at];
	if (!look(own, &st)) {
		r = lind_below(memory_files, &changed);
		let_go(own);
		return r;
	}
	pthread_mutex_lock(&lock);
	f = find(&st, &is_new);
	/* How it came to its user was not seen. */
	f->lasting |= is_new;
	hold(c, f);
	enough = reserve_growth(c, f, end_of(call, own, &st, length), &more);
	if (!enough) {
		sweep();
		enough = reserve_growth(c, f, end_of(call, own, &st, length), &more);
	}
	pthread_mutex_unlock(&lock);
	if (enough) {
		r = lind_below(memory_files, &changed);
		pthread_mutex_lock(&lock);
		settle(f, own, more);
		pthread_mutex_unlock(&lock);
	} else
		r = hit(c, TREE, MEMORY, more, lind_call_name(call->nr));
	let_go(own);
	return r;
}

static int64_t on_write(const struct lind_call *call)
{
	return grows(call, 0,
	    call->nr == SYS_fallocate       ? call->args[3].value
		: call->nr == SYS_ftruncate ? 0
					    : call->args[2].value);
}

/* Through a copy: the pieces could change between the look at them and the call. */
static int64_t on_writev(const struct lind_call *call)
{
	struct lind_call own = *call;
	struct lind_vector v;
	struct iovec one;
	int64_t r;

	if (!__atomic_load_n(&any, __ATOMIC_SEQ_CST) || call->args[2].value > 1024)
		return lind_below(memory_files, call);
	if ((r = lind_vector_read(&v, call->args[1], call->args[2].value)) < 0)
		return r;
	one = (struct iovec){ malloc(v.total + 1), v.total };
	own.args[1] = lind_mine(&one);
	own.args[2].value = 1;
	r = !one.iov_base                                                 ? -ENOMEM
	    : (r = lind_vector_gather(&v, one.iov_base, one.iov_len)) < 0 ? r
									  : grows(&own, 0, v.total);
	free(one.iov_base);
	lind_vector_free(&v);
	return r;
}

/* From one file to another, some at a time. */
static int64_t on_transfer(const struct lind_call *call)
{
	int at = call->nr == SYS_sendfile ? 0 : 2, length = call->nr == SYS_sendfile ? 3 : 4;
	struct lind_call some = *call;

	if (__atomic_load_n(&any, __ATOMIC_SEQ_CST) && some.args[length].value > PIECE)
		some.args[length].value = PIECE;
	return grows(&some, at, some.args[length].value);
}

/* A message may carry a descriptor of any file that the sender has. */
static int64_t on_send(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	pthread_mutex_lock(&lock);
	for (size_t i = 0; c && i < c->held_count; i++)
		c->held[i]->lasting = true;
	pthread_mutex_unlock(&lock);
	return lind_below(memory_files, call);
}

static int64_t on_unlink(const struct lind_call *call)
{
	int64_t r = lind_below(memory_files, call);

	if (!r && __atomic_load_n(&any, __ATOMIC_SEQ_CST)) {
		pthread_mutex_lock(&lock);
		sweep();
		pthread_mutex_unlock(&lock);
	}
	return r;
}

/* A call by a path has no descriptor to hold on to: it may only make a file shorter. */
static int decide(const struct lind_call *call, unsigned effect, const struct lind_place *place, void *c)
{
	(void)effect;
	if (place->object < 0 || !is_memory(&place->st) || call->args[1].value <= (uint64_t)place->st.st_size)
		return 0;
	return (int)hit(c, TREE, MEMORY, call->args[1].value - (uint64_t)place->st.st_size, "truncate");
}

static int64_t on_truncate(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	return c ? lind_path_call(call, NULL, decide, c) : lind_forward(call);
}

LIND_HANDLE_OF(memory_files, alters, truncate, on_truncate);
LIND_HANDLE_OF(memory_files, observes, open, on_open);
LIND_HANDLE_OF(memory_files, observes, openat, on_open);
LIND_HANDLE_OF(memory_files, observes, openat2, on_open);
LIND_HANDLE_OF(memory_files, observes, creat, on_open);
LIND_HANDLE_OF(memory_files, observes, memfd_create, on_open);
LIND_HANDLE_OF(memory_files, alters, write, on_write);
LIND_HANDLE_OF(memory_files, alters, pwrite64, on_write);
LIND_HANDLE_OF(memory_files, alters, ftruncate, on_write);
LIND_HANDLE_OF(memory_files, alters, fallocate, on_write);
LIND_HANDLE_OF(memory_files, alters, writev, on_writev);
LIND_HANDLE_OF(memory_files, alters, pwritev, on_writev);
LIND_HANDLE_OF(memory_files, alters, pwritev2, on_writev);
LIND_HANDLE_OF(memory_files, alters, sendfile, on_transfer);
LIND_HANDLE_OF(memory_files, alters, splice, on_transfer);
LIND_HANDLE_OF(memory_files, alters, copy_file_range, on_transfer);
LIND_HANDLE_OF(memory_files, observes, sendmsg, on_send);
LIND_HANDLE_OF(memory_files, observes, sendmmsg, on_send);
LIND_HANDLE_OF(memory_files, observes, unlink, on_unlink);
LIND_HANDLE_OF(memory_files, observes, unlinkat, on_unlink);

void memory_files_begin(void)
{
	find_device();
	lind_grate_part(memory_files);
}
