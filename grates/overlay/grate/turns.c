/*
 * lind-boot asks for the state while programs run, to look at it, or to change it or the lower
 * directory. Then everything is written, the state is closed and free for another process, and all
 * calls for files here wait. When lind-boot gives it back it is opened again; what is in memory is
 * read again if it may have changed.
 *
 * Requests are lines: `look`, `change`, `back`. Each is answered by a line: `ok`, or why not.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "turns.h"
#include "../state/layers.h"
#include "../state/vfs.h"
#include "flush.h"
#include "marks.h"
#include "renew.h"
#include "saved.h"
#include <lind/text.h>

#define STACK    (256 << 10)
#define WAIT     50000 /* microseconds between two attempts to open the state again */
#define PATIENCE 1200 /* of these: a minute */

static int requests = -1, answers = -1;
static struct state_files own;
static int (*open_again)(const struct state_files *files);
static void (*know_root)(void);

const char *set_requests(const char *path)
{
	return (requests = lind_open_file(path, NULL, O_RDONLY, 0)) < 0 ? strerror(errno) : NULL;
}

const char *set_answers(const char *path)
{
	return (answers = lind_open_file(path, NULL, O_WRONLY, 0)) < 0 ? strerror(errno) : NULL;
}

/*
 * Whether there is another request. It is read without a FILE: exit(3) would wait for the lock of
 * one that this thread reads.
 */
static int next_request(char *line, size_t size)
{
	for (size_t at = 0; at < size - 1;) {
		ssize_t n = read(requests, line + at, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		if (line[at++] == '\n') {
			line[at] = 0;
			return 1;
		}
	}
	return 0;
}

static void answer(const char *text)
{
	char line[IMFS_PATH + 256];
	int length = snprintf(line, sizeof line, "%s", text);

	if (length >= (int)sizeof line)
		length = sizeof line - 1;
	for (int i = 0; i < length; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[length++] = '\n';
	for (int at = 0; at < length;) {
		ssize_t n = write(answers, line + at, (size_t)(length - at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		at += (int)n;
	}
}

static int copies(const struct state_files *files, struct state_files *made)
{
	made->db = fcntl(files->db, F_DUPFD_CLOEXEC, 3);
	made->wal = fcntl(files->wal, F_DUPFD_CLOEXEC, 3);
	made->data = files->data < 0 ? -1 : fcntl(files->data, F_DUPFD_CLOEXEC, 3);
	return made->db < 0 || made->wal < 0 || (files->data >= 0 && made->data < 0) ? -errno : 0;
}

/* Why the state cannot be given away; NULL: it has been. */
static const char *give(bool changes, int64_t *logged)
{
	static char why[IMFS_PATH + 128];
	char *held;

	if (!store || flush_some() || store_broken())
		return "the changes cannot be written to the state";
	if (changes && !renew_possible(&held)) {
		snprintf(why, sizeof why, "%s was changed here, and a program has it open",
		    held ? lind_shown(held) : "a file");
		free(held);
		return why;
	}
	store_enter();
	*logged = store_log_end(store);
	if (store_close(store))
		lind_die("the state cannot be closed in order");
	store = NULL;
	store_leave();
	vfs_unlock(own.db);
	return NULL;
}

/* Waits, since the other process may not have ended yet. */
static void take_back(bool changed, int64_t logged)
{
	int r = -EBUSY;

	for (int tries = 0; r == -EBUSY && tries < PATIENCE; tries++) {
		struct state_files files;

		if (tries)
			usleep(WAIT);
		if ((r = copies(&own, &files)))
			break;
		r = open_again(&files);
	}
	/* Programs get errors from now on, and see nothing that is not so. */
	if (r)
		lind_die("the state cannot be opened again: %s", strerror(-r));
	/* Lines of layers that nobody needs go when a state is closed; only runs add some. */
	if (!changed && store_log_end(store) > logged)
		lind_die("another run has changed the state meanwhile");
	if (fs.next_ino < store_next_ino(store))
		fs.next_ino = store_next_ino(store);
	if (changed)
		renew(know_root);
}

static void serve(bool changes)
{
	char line[16];
	const char *why;
	int64_t logged;

	imfs_write_lock();
	why = give(changes, &logged);
	answer(why ? why : "ok");
	/* Without lind-boot there is nobody to wait for. */
	if (!why && next_request(line, sizeof line)) {
		take_back(changes, logged);
		answer("ok");
	}
	imfs_write_unlock();
}

static void *listen_to(void *unused)
{
	char line[16];

	while (next_request(line, sizeof line))
		if (!strcmp(line, "look\n") || !strcmp(line, "change\n"))
			serve(*line == 'c');
	return unused;
}

int turns_begin(const struct state_files *files, int (*again)(const struct state_files *files), void (*root)(void))
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (requests < 0 || answers < 0)
		return 0;
	if ((r = copies(files, &own)))
		return r;
	open_again = again;
	know_root = root;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	return -pthread_create(&thread, &attr, listen_to, NULL);
}
