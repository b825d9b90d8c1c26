/*
 * SQLite's view of the system: a database and its log, both open already. A grate has no rights to
 * open files of the user, and needs none.
 *
 * Nothing is locked by SQLite: the state is locked as a whole while it is open (vfs_lock), and by a
 * lock that SQLite elsewhere understands. The index of the log lies in memory, since nobody shares
 * it (exclusive locking mode); temporary files do too.
 */
#include "vfs.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The bytes behind which SQLite locks a database, whoever opens it. */
#define LOCK_START 0x40000000
#define LOCK_BYTES 512

struct file {
	sqlite3_file base;
	int fd;
};

static int fd_of(sqlite3_file *file)
{
	return ((struct file *)file)->fd;
}

static int on_close(sqlite3_file *file)
{
	(void)file;
	return SQLITE_OK;
}

static int on_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
	uint8_t *bytes = to;
	size_t left = (size_t)size;

	while (left) {
		ssize_t n = pread(fd_of(file), bytes, left, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return SQLITE_IOERR_READ;
		if (!n) {
			memset(bytes, 0, left);
			return SQLITE_IOERR_SHORT_READ;
		}
		bytes += n;
		at += n;
		left -= (size_t)n;
	}
	return SQLITE_OK;
}

static int on_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
	const uint8_t *bytes = from;
	size_t left = (size_t)size;

	while (left) {
		ssize_t n = pwrite(fd_of(file), bytes, left, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SQLITE_FULL : SQLITE_IOERR_WRITE;
		bytes += n;
		at += n;
		left -= (size_t)n;
	}
	return SQLITE_OK;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return ftruncate(fd_of(file), size) ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

static int on_sync(sqlite3_file *file, int flags)
{
	(void)flags;
	return fdatasync(fd_of(file)) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int on_size(sqlite3_file *file, sqlite3_int64 *size)
{
	struct stat st;

	if (fstat(fd_of(file), &st))
		return SQLITE_IOERR_FSTAT;
	*size = st.st_size;
	return SQLITE_OK;
}

static int on_lock(sqlite3_file *file, int how)
{
	(void)file;
	(void)how;
	return SQLITE_OK;
}

static int on_reserved(sqlite3_file *file, int *reserved)
{
	(void)file;
	*reserved = 0;
	return SQLITE_OK;
}

static int on_control(sqlite3_file *file, int what, void *with)
{
	(void)file;
	(void)what;
	(void)with;
	return SQLITE_NOTFOUND;
}

static int on_sector(sqlite3_file *file)
{
	(void)file;
	return 4096;
}

/* A write does not change the bytes beside it when the power fails: SQLite takes that for
 * granted on Linux. */
static int on_device(sqlite3_file *file)
{
	(void)file;
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = on_close,
	.xRead = on_read,
	.xWrite = on_write,
	.xTruncate = on_truncate,
	.xSync = on_sync,
	.xFileSize = on_size,
	.xLock = on_lock,
	.xUnlock = on_lock,
	.xCheckReservedLock = on_reserved,
	.xFileControl = on_control,
	.xSectorSize = on_sector,
	.xDeviceCharacteristics = on_device,
};

static int on_open(sqlite3_vfs *base, const char *name, sqlite3_file *made, int flags, int *given)
{
	struct vfs *vfs = (struct vfs *)base;
	struct file *file = (struct file *)made;

	(void)name;
	file->base.pMethods = NULL;
	if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
		return SQLITE_CANTOPEN;
	file->fd = flags & SQLITE_OPEN_WAL ? vfs->wal : vfs->db;
	file->base.pMethods = &methods;
	if (given)
		*given = flags;
	return SQLITE_OK;
}

static bool is_log(const char *name)
{
	size_t length = strlen(name);

	return length >= 4 && !strcmp(name + length - 4, "-wal");
}

/* A log that is empty is none. */
static int on_delete(sqlite3_vfs *base, const char *name, int sync)
{
	struct vfs *vfs = (struct vfs *)base;

	(void)sync;
	return is_log(name) && ftruncate(vfs->wal, 0) ? SQLITE_IOERR_DELETE : SQLITE_OK;
}

static int on_access(sqlite3_vfs *base, const char *name, int flags, int *there)
{
	struct vfs *vfs = (struct vfs *)base;
	struct stat st;

	(void)flags;
	*there = 0;
	if (!is_log(name))
		return SQLITE_OK;
	if (fstat(vfs->wal, &st))
		return SQLITE_IOERR_ACCESS;
	*there = st.st_size > 0;
	return SQLITE_OK;
}

static int on_path(sqlite3_vfs *base, const char *name, int size, char *to)
{
	(void)base;
	if (strlen(name) >= (size_t)size)
		return SQLITE_CANTOPEN;
	strcpy(to, name);
	return SQLITE_OK;
}

static int on_random(sqlite3_vfs *base, int size, char *to)
{
	ssize_t n = getrandom(to, (size_t)size, 0);

	(void)base;
	return n < 0 ? 0 : (int)n;
}

static int on_sleep(sqlite3_vfs *base, int microseconds)
{
	(void)base;
	return microseconds;
}

/* Milliseconds since the day from which Julian dates are counted. */
static int on_time(sqlite3_vfs *base, sqlite3_int64 *now)
{
	struct timespec ts;

	(void)base;
	clock_gettime(CLOCK_REALTIME, &ts);
	*now = (sqlite3_int64)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + 210866760000000;
	return SQLITE_OK;
}

static int on_error(sqlite3_vfs *base, int size, char *to)
{
	(void)base;
	(void)size;
	(void)to;
	return errno;
}

int vfs_register(struct vfs *vfs, const char *name, int db, int wal)
{
	vfs->base = (sqlite3_vfs){
		.iVersion = 2,
		.szOsFile = sizeof(struct file),
		.mxPathname = 64,
		.zName = name,
		.xOpen = on_open,
		.xDelete = on_delete,
		.xAccess = on_access,
		.xFullPathname = on_path,
		.xRandomness = on_random,
		.xSleep = on_sleep,
		.xGetLastError = on_error,
		.xCurrentTimeInt64 = on_time,
	};
	vfs->db = db;
	vfs->wal = wal;
	return sqlite3_vfs_register(&vfs->base, 0);
}

int vfs_lock(int db)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_START, .l_len = LOCK_BYTES };

	/* The host keeps locks of the second kind even where it lets nobody open the file once more,
	 * which it asks for to keep those of the first. */
	if (!fcntl(db, F_OFD_SETLK, &lock) && !flock(db, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

void vfs_unlock(int db)
{
	struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = LOCK_START, .l_len = LOCK_BYTES };

	fcntl(db, F_OFD_SETLK, &lock);
	flock(db, LOCK_UN);
}

/* SQLite asks for them, since it is built without a view of the system of its own. */
int sqlite3_os_init(void)
{
	return SQLITE_OK;
}

int sqlite3_os_end(void)
{
	return SQLITE_OK;
}
