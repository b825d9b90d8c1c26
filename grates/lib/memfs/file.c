/* Open files. */
#include <stdlib.h>
#include <unistd.h>
#include "watch.h"

#define LARGEFILE 0100000u /* O_LARGEFILE, which fcntl(F_GETFL) shows */
#ifndef SEEK_DATA
#define SEEK_DATA 3
#define SEEK_HOLE 4
#endif
#ifndef FALLOC_FL_KEEP_SIZE
#define FALLOC_FL_KEEP_SIZE  1
#define FALLOC_FL_PUNCH_HOLE 2
#endif
#ifndef FALLOC_FL_ZERO_RANGE
#define FALLOC_FL_ZERO_RANGE 16
#endif

#define FALLOC_KNOWN 0x7f /* what some filesystem of Linux supports */

#define SPARES 64 /* closed files that are kept to be opened again: most are closed soon */

struct imfs_file *imfs_file_new(struct imfs *fs, struct imfs_node *n, uint32_t flags)
{
	struct imfs_file *f = fs->spare;

	if (f) {
		fs->spare = f->next_spare;
		fs->spares--;
	} else if (!(f = malloc(sizeof *f)))
		return NULL;
	*f = (struct imfs_file){
		.node = n,
		.flags = (flags & ~(uint32_t)(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC)) | LARGEFILE,
		.refs = 1,
	};
	imfs_node_hold(n);
	n->writers += !imfs_may_write(f);
	if (imfs_is_fifo(f) && imfs_fifo_open(fs, f)) {
		n->writers -= !imfs_may_write(f);
		n->refs--;
		free(f);
		return NULL;
	}
	return f;
}

void imfs_file_drop(struct imfs *fs, struct imfs_file *f)
{
	if (--f->refs)
		return;
	if (!(f->flags & O_PATH))
		imfs_tell(f->node, imfs_may_write(f) ? IN_CLOSE_NOWRITE : IN_CLOSE_WRITE);
	if (f->node->locks)
		imfs_locks_drop(f->node, f);
	f->node->writers -= !imfs_may_write(f);
	if (imfs_is_fifo(f))
		imfs_fifo_close(fs, f);
	imfs_node_drop(fs, f->node);
	if (fs->spares == SPARES) {
		free(f);
		return;
	}
	f->next_spare = fs->spare;
	fs->spare = f;
	fs->spares++;
}

static int wants(uint32_t flags)
{
	static const int masks[] = { R_OK, W_OK, R_OK | W_OK, R_OK | W_OK };

	return masks[flags & O_ACCMODE] | (flags & O_TRUNC ? W_OK : 0);
}

static int may_open(const struct imfs_process *p, const struct imfs_at *at, uint32_t flags)
{
	const struct imfs_node *n = at->node;
	bool dir = S_ISDIR(n->mode);
	int r;

	if ((flags & O_CREAT) && at->slash && at->last == IMFS_NORMAL)
		return -EISDIR;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return -EEXIST;
	if ((flags & O_CREAT) && dir)
		return -EISDIR;
	if ((at->slash || (flags & O_DIRECTORY)) && !dir)
		return -ENOTDIR;
	if (flags & O_PATH)
		return 0;
	if (S_ISLNK(n->mode))
		return -ELOOP;
	/* Others' sockets and devices in a directory like /tmp are not what O_CREAT meant, not even for
	 * root. */
	if ((flags & O_CREAT) && !S_ISREG(n->mode) && !S_ISFIFO(n->mode) &&
	    (at->dir->mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) && n->uid != at->dir->uid &&
	    n->uid != p->cred.uid)
		return -EACCES;
	if (dir && (wants(flags) & W_OK))
		return -EISDIR;
	if ((r = imfs_may(n, &p->cred, wants(flags))))
		return r;
	if ((flags & O_NOATIME) && !imfs_owns(n, &p->cred))
		return -EPERM;
	if (n->runners && (wants(flags) & W_OK))
		return -ETXTBSY;
	if (S_ISFIFO(n->mode))
		return imfs_fifo_may_open(n, flags);
	return !dir && !S_ISREG(n->mode) ? -ENXIO : 0;
}

/* O_TMPFILE: a file without a name, in the directory that `at` leads to. */
static int unnamed(
    struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t mode, struct imfs_node **made)
{
	int r = imfs_exists(at);

	if (r)
		return r;
	if (!S_ISDIR(at->node->mode))
		return -ENOTDIR;
	if ((r = imfs_may(at->node, &p->cred, W_OK | X_OK)))
		return r;
	*made = imfs_node_new(fs, S_IFREG | imfs_new_mode(p, at->node, mode), &p->cred, at->node);
	return *made ? 0 : -ENOSPC;
}

int imfs_open_flags(uint32_t flags)
{
	if (flags & O_PATH)
		return 0;
	if ((flags & (O_TMPFILE & ~O_DIRECTORY)) &&
	    (!(flags & O_DIRECTORY) || (flags & O_CREAT) || !(wants(flags & ~(uint32_t)O_TRUNC) & W_OK)))
		return -EINVAL;
	return (flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY) ? -EINVAL : 0;
}

enum imfs_follow imfs_open_follow(uint32_t flags)
{
	bool make = !(flags & O_PATH) && (flags & O_CREAT);

	if (make && (flags & (O_EXCL | O_NOFOLLOW)))
		return IMFS_NAME_ITSELF;
	if (flags & O_NOFOLLOW)
		return IMFS_NOFOLLOW;
	return make ? IMFS_FOLLOW_OR_MAKE : IMFS_FOLLOW;
}

int imfs_open(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t flags, uint32_t mode,
    struct imfs_file **made)
{
	struct imfs_node *n = at->node;
	bool fresh = false;
	int r;

	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	if (flags & (O_TMPFILE & ~O_DIRECTORY)) {
		if ((r = unnamed(fs, p, at, mode, &n)))
			return r;
		n->linkable = !(flags & O_EXCL);
		fresh = true;
	} else if (!n) {
		if (!(flags & O_CREAT))
			return -ENOENT;
		if (at->slash)
			return -EISDIR;
		if ((r = imfs_create(fs, p, at, S_IFREG | imfs_new_mode(p, at->dir, mode), &n)))
			return r;
		fresh = true;
	} else if ((r = may_open(p, at, flags)))
		return r;
	if (n->lazy && !(flags & (O_PATH | O_TRUNC)) && (r = imfs_below->readable(n)))
		return r;
	if (!(*made = imfs_file_new(fs, n, flags))) {
		imfs_node_settle(fs, n);
		return -ENOMEM;
	}
	(*made)->created = fresh && (flags & O_CREAT);
	if ((flags & O_TRUNC) && !fresh)
		imfs_truncate(fs, n, p, 0);
	if (!(flags & O_PATH))
		imfs_tell(n, IN_OPEN);
	return 0;
}

int imfs_may_read(const struct imfs_file *f)
{
	if ((f->flags & O_PATH) || (f->flags & O_ACCMODE) == O_WRONLY || (f->flags & O_ACCMODE) == O_ACCMODE)
		return -EBADF;
	return S_ISDIR(f->node->mode) ? -EISDIR : 0;
}

int imfs_may_write(const struct imfs_file *f)
{
	if ((f->flags & O_PATH) || (f->flags & O_ACCMODE) == O_RDONLY || (f->flags & O_ACCMODE) == O_ACCMODE)
		return -EBADF;
	return 0;
}

void imfs_move_atime(struct imfs_file *f)
{
	struct imfs_node *n = f->node;

	if (f->flags & O_NOATIME)
		return;
	n->atime = imfs_now();
	/* Strictly after, or the next read would ask the clock again. */
	if (imfs_older(&n->atime, &n->mtime) || imfs_older(&n->atime, &n->ctime))
		n->atime.tv_nsec += n->atime.tv_nsec < 999999999;
}

void imfs_wrote(struct imfs_node *n, const struct imfs_cred *cred, int64_t end, struct timespec now)
{
	if (end > n->size)
		n->size = end;
	n->mtime = n->ctime = now;
	if (n->mode & (S_ISUID | S_ISGID))
		imfs_kill_suid(n, cred);
	imfs_changed(n);
	imfs_tell(n, IN_MODIFY);
}

int64_t imfs_pread(struct imfs *fs, struct imfs_file *f, void *to, size_t length, int64_t off)
{
	struct imfs_node *n = f->node;
	size_t done = 0, run;
	int r = imfs_is_fifo(f) ? -ESPIPE : imfs_may_read(f);

	if (r)
		return r;
	if (off < 0)
		return -EINVAL;
	if (off >= n->size)
		return 0;
	if ((uint64_t)length > (uint64_t)(n->size - off))
		length = (size_t)(n->size - off);
	for (; done < length; done += run) {
		const uint8_t *from;

		if (n->lazy && (r = imfs_data_load(fs, n, off + (int64_t)done)))
			return done ? (int64_t)done : r;
		if ((from = imfs_data_run(n, off + (int64_t)done, length - done, &run)))
			memcpy((char *)to + done, from, run);
		else
			memset((char *)to + done, 0, run);
	}
	imfs_was_read(f);
	imfs_tell(n, IN_ACCESS);
	return (int64_t)length;
}

int64_t imfs_pwrite(
    struct imfs *fs, const struct imfs_process *p, struct imfs_file *f, const void *from, size_t length, int64_t off)
{
	int64_t largest = imfs_largest(p);
	size_t done = 0, run;
	int r = imfs_is_fifo(f) ? -ESPIPE : imfs_may_write(f);

	if (r)
		return r;
	if (off < 0)
		return -EINVAL;
	if (!length)
		return 0;
	if (f->flags & O_APPEND)
		off = f->node->size;
	if (off >= largest)
		return -EFBIG;
	if ((uint64_t)length > (uint64_t)(largest - off))
		length = (size_t)(largest - off);
	for (; done < length; done += run) {
		uint8_t *to = imfs_data_reserve(fs, f->node, off + (int64_t)done, length - done, &run);

		if (!to)
			break;
		memcpy(to, (const char *)from + done, run);
	}
	if (!done)
		return -ENOSPC;
	imfs_wrote(f->node, &p->cred, off + (int64_t)done, imfs_now());
	return (int64_t)done;
}

static int64_t seek_dir(struct imfs_file *f, int64_t off, int whence)
{
	if (whence == SEEK_CUR)
		off += f->pos;
	else if (whence != SEEK_SET)
		return -EINVAL;
	return off < 0 ? -EINVAL : (f->pos = off);
}

int64_t imfs_lseek(struct imfs_file *f, int64_t off, int whence)
{
	int64_t base = 0;

	if (f->flags & O_PATH)
		return -EBADF;
	if (S_ISDIR(f->node->mode))
		return seek_dir(f, off, whence);
	if (S_ISFIFO(f->node->mode))
		return -ESPIPE;
	switch (whence) {
	case SEEK_SET:
		break;
	case SEEK_CUR:
		base = f->pos;
		break;
	case SEEK_END:
		base = f->node->size;
		break;
	case SEEK_DATA:
	case SEEK_HOLE:
		if ((off = imfs_data_seek(f->node, off, whence == SEEK_HOLE)) < 0)
			return off;
		break;
	default:
		return -EINVAL;
	}
	if (off > 0 && base > INT64_MAX - off)
		return -EOVERFLOW;
	if (base + off < 0 || base + off > IMFS_MAX_SIZE)
		return -EINVAL;
	return f->pos = base + off;
}

/* Makes zeros of what there is of a range. Bytes beyond the end are zero already. */
static int make_zero(struct imfs *fs, struct imfs_node *n, int64_t off, int64_t length)
{
	if (off >= n->size)
		return 0;
	length = length > n->size - off ? n->size - off : length;
	if (n->lazy)
		return imfs_data_zero(fs, n, off, length);
	imfs_data_punch(fs, n, off, length);
	return 0;
}

/* Reserves room for a range. Data that goes to a store takes no room before it is written. */
static int take_room(struct imfs *fs, struct imfs_node *n, int64_t off, int64_t length)
{
	size_t run;

	if ((uint64_t)length > fs->limit - fs->used)
		return -ENOSPC;
	for (int64_t done = 0; done < length && (!n->under || n->data.backing); done += (int64_t)run)
		if (!imfs_data_reserve(
			fs, n, off + done, length - done < IMFS_CHUNK ? (size_t)(length - done) : IMFS_CHUNK, &run))
			return -ENOSPC;
	return 0;
}

/* Checks a mode. Only a file with a filesystem below can zero a range: one in memory cannot. */
static int may_allocate(const struct imfs_node *n, int mode)
{
	int known = FALLOC_FL_KEEP_SIZE | (n->under ? FALLOC_FL_ZERO_RANGE : 0);

	return mode & ~(mode & FALLOC_FL_PUNCH_HOLE ? FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE : known) ? -EOPNOTSUPP
													  : 0;
}

int imfs_fallocate(
    struct imfs *fs, struct imfs_file *f, const struct imfs_process *p, int mode, int64_t off, int64_t length)
{
	struct imfs_node *n = f->node;
	int r = imfs_may_write(f);

	if (off < 0 || length <= 0)
		return -EINVAL;
	if (mode & ~FALLOC_KNOWN)
		return -EOPNOTSUPP;
	if ((mode & FALLOC_FL_PUNCH_HOLE) && !(mode & FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	if (r)
		return r;
	if (!S_ISREG(n->mode))
		return S_ISFIFO(n->mode) ? -ESPIPE : -ENODEV;
	if (length > IMFS_MAX_SIZE - off)
		return -EFBIG;
	if ((r = may_allocate(n, mode)))
		return r;
	if (!(mode & FALLOC_FL_KEEP_SIZE) && off + length > n->size && off + length > imfs_largest(p))
		return -EFBIG;
	if ((r = mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) ? make_zero(fs, n, off, length)
								      : take_room(fs, n, off, length)))
		return r;
	if (!(mode & FALLOC_FL_KEEP_SIZE) && off + length > n->size)
		n->size = off + length;
	imfs_kill_suid(n, &p->cred);
	n->mtime = n->ctime = imfs_now();
	imfs_changed(n);
	imfs_tell(n, IN_MODIFY);
	return 0;
}
