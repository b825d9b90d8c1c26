/*
 * --learn with --lists: which calls were made, which files were looked at, changed and made, and
 * which programs were run, as lists that people read and other grates take. Failures are not noted:
 * a call that was refused, or a file that is not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <lind/paths.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "learn.h"
#include "strace.h"

/* A call has at most two paths, and a program at most six, with interpreters. */
#define MOST_NOTES 8

/* Notes about one call, until its result is known. */
struct notes {
	unsigned count;
	struct note {
		unsigned effect;
		bool missing, directory, fresh;
		char *path;
	} of[MOST_NOTES];
	struct notes *outer; /* of the call that a signal handler has interrupted */
};

enum list { READ, WRITE, MADE, MOVED, PROGRAMS, LISTS };

static const char *const list_names[LISTS] = { "read", "write", "made", "moved", "programs" };

static _Thread_local struct notes *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *lists[LISTS];
static bool called[NUMBERS];

static bool asks_to_write(const struct lind_call *c)
{
	bool at = c->nr == SYS_faccessat || c->nr == SYS_faccessat2;

	return (at || c->nr == SYS_access) && c->args[at ? 2 : 1].value & W_OK;
}

/* Made so that it is new. */
static bool is_fresh(const struct lind_call *c, unsigned effect, bool missing)
{
	bool opens = c->nr == SYS_open || c->nr == SYS_openat || c->nr == SYS_creat;
	bool moves = c->nr == SYS_rename || c->nr == SYS_renameat || c->nr == SYS_renameat2;

	if (!(effect & LIND_DOES_CREATE) || !missing || moves || c->nr == SYS_creat)
		return false;
	return !opens || c->args[c->nr == SYS_openat ? 2 : 1].value & O_EXCL;
}

int note_path(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg)
{
	struct notes *notes = current;
	struct note *note;

	(void)arg;
	if (!notes || place->path[0] != '/' || notes->count == MOST_NOTES)
		return 0;
	note = &notes->of[notes->count];
	*note = (struct note){ .effect = asks_to_write(c) ? LIND_DOES_WRITE : effect,
		.missing = place->object < 0,
		.directory = place->object >= 0 && S_ISDIR(place->st.st_mode),
		.fresh = is_fresh(c, effect, place->object < 0) };
	if (!(note->path = strdup(place->path)))
		return -ENOMEM;
	notes->count++;
	return 0;
}

/* Names that were made so that they are new, and go again, are others in the next run. */
static void note_change(const struct note *note)
{
	tree_add(&lists[WRITE], note->path);
	if (note->effect & LIND_DOES_CREATE && note->missing)
		tree_add(&lists[MADE], note->path);
	if (note->fresh)
		name_made(note->path);
	else if (note->effect & LIND_DOES_CREATE && note->missing)
		name_came(note->path);
	/* A file that takes the place of another is still there. */
	if (note->effect & LIND_DOES_REMOVE && !(note->effect & LIND_DOES_CREATE)) {
		name_removed(note->path);
		if (note->directory)
			tree_add(&lists[MOVED], note->path);
	}
}

static void keep(const struct note *note, int64_t result)
{
	bool changes = note->effect & LIND_CHANGES;

	/* It would be refused again. */
	if (result == -EACCES || result == -EPERM || result == -EROFS)
		return;
	if (note->effect & LIND_DOES_EXEC)
		tree_add(&lists[PROGRAMS], note->path);
	else if (changes && (result >= 0 || result == LIND_PASS))
		note_change(note);
	else if (!note->missing)
		tree_add(&lists[READ], note->path);
}

static int64_t noting(const struct lind_call *c, lind_handle_fn *make)
{
	struct notes notes = { .outer = current };
	int64_t result;

	current = &notes;
	result = make(c);
	current = notes.outer;
	pthread_mutex_lock(&lock);
	called[c->nr] = true;
	for (unsigned i = 0; i < notes.count; i++)
		keep(&notes.of[i], result);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < notes.count; i++)
		free(notes.of[i].path);
	return result;
}

static int64_t by_path(const struct lind_call *c)
{
	return lind_path_call(c, NULL, note_path, NULL);
}

static int64_t by_descriptor(const struct lind_call *c)
{
	return lind_path_fd_call(c, NULL, note_path, NULL);
}

static int64_t by_address(const struct lind_call *c)
{
	return lind_path_bind(c, NULL, note_path, NULL);
}

static int64_t by_program(const struct lind_call *c)
{
	return lind_path_exec(c, NULL, note_path, NULL);
}

#define ON(name, make) \
	static int64_t name(const struct lind_call *c) \
	{ \
		return noting(c, make); \
	}
ON(on_noted_path, by_path)
ON(on_noted_descriptor, by_descriptor)
ON(on_noted_address, by_address)
ON(on_noted_program, by_program)
ON(on_noted_spawn, on_spawned_path)
ON(on_noted_call, lind_pass)

static bool changes_by_descriptor(uint32_t nr)
{
#define IS(name) nr == SYS_##name ||
	return LIND_EACH_CHANGING_FD_CALL(IS) false;
#undef IS
}

lind_handle_fn *noting_handler(const struct lind_syscall *row)
{
	switch (row->nr) {
	case SYS_execve:
	case SYS_execveat:
		return on_noted_program;
	case SYS_spawn:
		return on_noted_spawn;
	case SYS_bind:
		return on_noted_address;
	default:
		return has_path(row)                 ? on_noted_path
		    : changes_by_descriptor(row->nr) ? on_noted_descriptor
						     : on_noted_call;
	}
}

static void write_list(FILE *to, const char *name, char *const *texts, size_t count)
{
	fprintf(to, "%s = [", name);
	for (size_t i = 0; i < count; i++)
		fprintf(to, "%s\n\t\"%s\"", i ? "," : "", texts[i]);
	fputs(count ? ",\n]\n" : "]\n", to);
}

/* Whether a program renames by one call or another is its library's choice, and may be another in
 * the next run: lists name all calls that do the same. */
static void add_families(bool *of)
{
	bool made[NUMBERS];

	memcpy(made, of, sizeof made);
	for (uint32_t nr = 0; nr < NUMBERS; nr++)
		for (const uint32_t *other = learned_with(nr); made[nr] && *other; other++)
			of[*other] = true;
}

static void write_calls(FILE *to)
{
	/* Calls that depend on chance, as in learn.c; calls of a program on its own descriptors and
	 * about itself, such as a message about a refusal; copies between descriptors, which a program
	 * makes in another way when its output is a pipe; and questions about files, which the lists
	 * of files decide: what a run asks depends on the files that the last one has left. */
	static const uint32_t harmless[] = { SYS_futex, SYS_sched_yield, SYS_rt_sigsuspend, SYS_read, SYS_readv,
		SYS_pread64, SYS_preadv, SYS_preadv2, SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2,
		SYS_sendfile, SYS_splice, SYS_copy_file_range, SYS_fadvise64, SYS_close, SYS_lseek, SYS_fstat, SYS_brk,
		SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_rt_sigaction, SYS_rt_sigprocmask,
		SYS_clock_gettime, SYS_gettimeofday, SYS_nanosleep, SYS_clock_nanosleep, SYS_getpid, SYS_gettid,
		SYS_getppid, SYS_dup, SYS_dup2, SYS_dup3, SYS_fcntl, SYS_poll, SYS_ppoll, SYS_access, SYS_faccessat,
		SYS_faccessat2, SYS_stat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_readlink, SYS_readlinkat,
		SYS_getrandom, SYS_set_tid_address, SYS_wait4, SYS_exit, SYS_exit_group };
	const struct lind_syscall *row;
	char *names[NUMBERS];
	size_t n = 0;

	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		called[harmless[i]] = true;
	add_families(called);
	for (size_t i = 0; (row = lind_syscall_at(i)); i++)
		if (row->nr < NUMBERS && called[row->nr])
			names[n++] = (char *)row->name;
	write_list(to, "calls", names, n);
}

void write_lists(int fd, const char *path)
{
	FILE *to;

	if (ftruncate(fd, 0) || !(to = fdopen(fd, "w")))
		lind_die("%s: %s", path, strerror(errno));
	pthread_mutex_lock(&lock);
	write_calls(to);
	for (int i = 0; i < LISTS; i++) {
		struct patterns_found found = patterns_for(lists[i]);

		write_list(to, list_names[i], found.list, found.count);
	}
	pthread_mutex_unlock(&lock);
	if (fclose(to))
		lind_log("%s: cannot write the learned lists: %s", path, strerror(errno));
}
