/* Files under /mem/ live in this grate's memory. Descriptors are numbers of its own, from 1000. */
#include "style.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#define FILES 16
#define SIZE  65536
#define FIRST 1000

static struct file {
	char name[64];
	size_t size;
	char data[SIZE];
} files[FILES];
static struct {
	struct file *file;
	off_t at;
	uint64_t cage;
} open_files[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct file *find(const char *name, int create)
{
	struct file *unused = NULL;

	for (struct file *f = files; f < files + FILES; f++) {
		if (!strcmp(f->name, name))
			return f;
		if (!*f->name && !unused)
			unused = f;
	}
	if (create && unused)
		strncpy(unused->name, name, sizeof unused->name - 1);
	return create ? unused : NULL;
}

static int opened(uint64_t fd, uint64_t cage)
{
	size_t i = (size_t)(int)fd - FIRST;

	return i < 64 && open_files[i].file && open_files[i].cage == cage ? (int)i : -1;
}

HANDLER(on_open)
{
	char path[256];
	struct file *f;
	int slot = 0;

	if (copy_data_between_cages(grate, c1, a1, c1, (uint64_t)(uintptr_t)path, grate, sizeof path, 1) ==
	    (int)ELINDAPIABORTED)
		return -EFAULT;
	if (strncmp(path, "/mem/", 5))
		return FORWARD(2);
	pthread_mutex_lock(&lock);
	f = find(path + 5, a2 & O_CREAT);
	while (slot < 64 && open_files[slot].file)
		slot++;
	if (f && slot < 64) {
		open_files[slot].file = f;
		open_files[slot].at = 0;
		open_files[slot].cage = c1;
		if (a2 & O_TRUNC)
			f->size = 0;
	}
	pthread_mutex_unlock(&lock);
	return !f ? -ENOENT : slot == 64 ? -EMFILE : FIRST + slot;
}

HANDLER(on_close)
{
	int i;

	(void)grate;
	pthread_mutex_lock(&lock);
	if ((i = opened(a1, c1)) >= 0)
		open_files[i].file = NULL;
	pthread_mutex_unlock(&lock);
	return i < 0 ? FORWARD(3) : 0;
}

/* Copies between the file at its position and the client, and moves the position. */
static int transfer(uint64_t grate, int i, uint64_t address, uint64_t cage, size_t n, int writing)
{
	struct file *f = open_files[i].file;
	off_t at = open_files[i].at;
	uint64_t data = (uint64_t)(uintptr_t)(f->data + at);
	int r = 0;

	if (at > SIZE || n > (size_t)(SIZE - at))
		n = at > SIZE ? 0 : (size_t)(SIZE - at);
	if (!writing && n > f->size - (size_t)at)
		n = at < (off_t)f->size ? f->size - (size_t)at : 0;
	if (n)
		r = writing ? copy_data_between_cages(grate, cage, address, cage, data, grate, n, 0)
			    : copy_data_between_cages(grate, cage, data, grate, address, cage, n, 0);
	if (r == (int)ELINDAPIABORTED)
		return -EFAULT;
	open_files[i].at = at + (off_t)n;
	if (writing && (size_t)open_files[i].at > f->size)
		f->size = (size_t)open_files[i].at;
	return (int)n;
}

HANDLER(on_read)
{
	int i, r = 0;

	pthread_mutex_lock(&lock);
	if ((i = opened(a1, c1)) >= 0)
		r = transfer(grate, i, a2, c2, (size_t)a3, 0);
	pthread_mutex_unlock(&lock);
	return i < 0 ? FORWARD(0) : r;
}

HANDLER(on_write)
{
	int i, r = 0;

	pthread_mutex_lock(&lock);
	if ((i = opened(a1, c1)) >= 0)
		r = transfer(grate, i, a2, c2, (size_t)a3, 1);
	pthread_mutex_unlock(&lock);
	return i < 0 ? FORWARD(1) : r;
}

/* off_t has 64 bits here and an int's 32 there: the dispatcher calls this through a pointer of the
 * other type. */
static off_t on_lseek(uint64_t grate, ARGS)
{
	off_t from = 0;
	int i;

	(void)grate;
	pthread_mutex_lock(&lock);
	if ((i = opened(a1, c1)) >= 0) {
		from = a3 == SEEK_SET ? 0 : a3 == SEEK_CUR ? open_files[i].at : (off_t)open_files[i].file->size;
		from += (off_t)a2;
		if (from >= 0)
			open_files[i].at = from;
	}
	pthread_mutex_unlock(&lock);
	return i < 0 ? FORWARD(8) : from < 0 ? -EINVAL : from;
}

static void before(uint64_t child, uint64_t grate)
{
	take(child, 0, grate, on_read);
	take(child, 1, grate, on_write);
	take(child, 2, grate, on_open);
	take(child, 3, grate, on_close);
	take(child, 8, grate, on_lseek);
}

int main(int argc, char **argv)
{
	(void)argc;
	return run_registering_parent(argv + 1, before);
}
