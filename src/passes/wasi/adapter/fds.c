/* Implements WASI's calls on descriptors. WASI's descriptors are the kernel's. */
#include "wasi.h"

enum {
	S_IFMT = 0170000,
	S_IFSOCK = 0140000,
	S_IFLNK = 0120000,
	S_IFREG = 0100000,
	S_IFBLK = 060000,
	S_IFDIR = 040000,
	S_IFCHR = 020000
};
enum { SOL_SOCKET = 1, SO_TYPE = 3, SOCK_DGRAM = 2, UTIME_NOW = 0x3fffffff, UTIME_OMIT = 0x3ffffffe };

static enum filetype type_of_mode(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return REGULAR;
	case S_IFDIR:
		return DIRECTORY;
	case S_IFCHR:
		return CHARACTER;
	case S_IFBLK:
		return BLOCK;
	case S_IFLNK:
		return SYMLINK;
	case S_IFSOCK:
		return SOCKET_STREAM;
	default:
		return UNKNOWN;
	}
}

enum filetype type_of(fd_t fd, struct stat *stat, result_t *error)
{
	uint32_t kind = 0, size = sizeof kind;

	*error = error_of(CALL2(SYS_FSTAT, (int32_t)fd, address(stat)));
	if (*error)
		return UNKNOWN;
	enum filetype type = type_of_mode(stat->mode);
	if (type == SOCKET_STREAM &&
	    !CALL5(SYS_GETSOCKOPT, (int32_t)fd, SOL_SOCKET, SO_TYPE, address(&kind), address(&size)) &&
	    kind == SOCK_DGRAM)
		return SOCKET_DGRAM;
	return type;
}

static uint64_t nanoseconds(int64_t seconds, int64_t rest)
{
	return (uint64_t)seconds * 1000000000 + (uint64_t)rest;
}

void fill_filestat(const struct stat *from, enum filetype type, struct filestat *to)
{
	to->dev = from->dev;
	to->ino = from->ino;
	to->type = type;
	to->nlink = from->nlink;
	to->size = (uint64_t)from->size;
	to->accessed = nanoseconds(from->accessed.seconds, from->accessed.nanoseconds);
	to->modified = nanoseconds(from->modified.seconds, from->modified.nanoseconds);
	to->changed = nanoseconds(from->changed.seconds, from->changed.nanoseconds);
}

EXPORT(fd_advise) result_t fd_advise(fd_t fd, uint64_t offset, uint64_t length, uint32_t advice)
{
	/* normal, sequential, random, willneed, dontneed, noreuse */
	int linux_advice = advice == 0 ? 0 : advice == 1 ? 2 : advice == 2 ? 1 : (int)advice;
	struct stat stat;
	result_t error;

	if (advice > 5 || (int64_t)offset < 0 || (int64_t)length < 0)
		return WASI_INVAL;
	enum filetype type = type_of(fd, &stat, &error);
	if (error || type == DIRECTORY)
		return error ? error : WASI_BADF;
	return error_of(CALL4(SYS_FADVISE64, (int32_t)fd, offset, length, linux_advice));
}

EXPORT(fd_allocate) result_t fd_allocate(fd_t fd, uint64_t offset, uint64_t length)
{
	return error_of(CALL4(SYS_FALLOCATE, (int32_t)fd, 0, offset, length));
}

EXPORT(fd_close) result_t fd_close(fd_t fd)
{
	struct state *s = state();

	for (uint32_t i = 0; i < s->preopens; i++)
		if (s->preopen[i].fd == fd)
			s->preopen[i].length = 0;
	return error_of(CALL1(SYS_CLOSE, (int32_t)fd));
}

EXPORT(fd_datasync) result_t fd_datasync(fd_t fd)
{
	return error_of(CALL1(SYS_FDATASYNC, (int32_t)fd));
}

EXPORT(fd_sync) result_t fd_sync(fd_t fd)
{
	return error_of(CALL1(SYS_FSYNC, (int32_t)fd));
}

static uint64_t rights_of(enum filetype type, int64_t flags)
{
	uint64_t rights = R_ALL;

	if (type == DIRECTORY)
		return R_OF_DIRECTORIES;
	if (type == REGULAR)
		rights = R_OF_FILES;
	/* A C library recognises a terminal by this. */
	if (type == CHARACTER)
		rights &= ~(uint64_t)(R_SEEK | R_TELL);
	if ((flags & 3) == O_WRONLY)
		rights &= ~(uint64_t)R_READ;
	if ((flags & 3) == 0)
		rights &= ~(uint64_t)(R_WRITE | R_ALLOCATE | R_FILESTAT_SET_SIZE);
	return rights;
}

EXPORT(fd_fdstat_get) result_t fd_fdstat_get(fd_t fd, struct fdstat *to)
{
	struct stat stat;
	result_t error;
	enum filetype type = type_of(fd, &stat, &error);
	int64_t flags = CALL2(SYS_FCNTL, (int32_t)fd, F_GETFL);

	if (error || flags < 0)
		return error ? error : error_of(flags);
	to->type = (uint8_t)type;
	to->flags = (uint16_t)((flags & O_APPEND ? FD_APPEND : 0) | (flags & O_NONBLOCK ? FD_NONBLOCK : 0) |
	    ((flags & O_SYNC) == O_SYNC ? FD_SYNC | FD_RSYNC
		    : flags & O_DSYNC   ? FD_DSYNC
					: 0));
	to->rights = rights_of(type, flags);
	to->inheriting = type == DIRECTORY ? R_OF_DIRECTORIES | R_OF_FILES : 0;
	return 0;
}

EXPORT(fd_fdstat_set_flags) result_t fd_fdstat_set_flags(fd_t fd, uint32_t flags)
{
	int64_t now = CALL2(SYS_FCNTL, (int32_t)fd, F_GETFL);

	if (now < 0 || flags & ~(uint32_t)(FD_APPEND | FD_NONBLOCK))
		return now < 0 ? error_of(now) : WASI_INVAL;
	now &= ~(int64_t)(O_APPEND | O_NONBLOCK);
	return error_of(CALL3(SYS_FCNTL, (int32_t)fd, F_SETFL,
	    now | (flags & FD_APPEND ? O_APPEND : 0) | (flags & FD_NONBLOCK ? O_NONBLOCK : 0)));
}

/* The rights of a descriptor are those that it was opened with: none can be given up. */
EXPORT(fd_fdstat_set_rights) result_t fd_fdstat_set_rights(fd_t fd, uint64_t base, uint64_t inheriting)
{
	struct fdstat now;
	result_t error = fd_fdstat_get(fd, &now);

	if (error)
		return error;
	if (base & ~now.rights || inheriting & ~now.inheriting)
		return WASI_NOTCAPABLE;
	return WASI_NOTSUP;
}

EXPORT(fd_filestat_get) result_t fd_filestat_get(fd_t fd, struct filestat *to)
{
	struct stat stat;
	result_t error;
	enum filetype type = type_of(fd, &stat, &error);

	if (!error)
		fill_filestat(&stat, type, to);
	return error;
}

EXPORT(fd_filestat_set_size) result_t fd_filestat_set_size(fd_t fd, uint64_t size)
{
	return error_of(CALL2(SYS_FTRUNCATE, (int32_t)fd, size));
}

/* Two times in utimensat's form, or WASI_INVAL. `which` has a bit for each of: this access time,
 * now, this modification time, now. */
result_t times_of(uint64_t accessed, uint64_t modified, uint32_t which, struct timespec times[2])
{
	if ((which & 3) == 3 || (which & 12) == 12 || which > 15)
		return WASI_INVAL;
	times[0] = timespec_of(accessed);
	times[1] = timespec_of(modified);
	if (!(which & 1))
		times[0].nanoseconds = which & 2 ? UTIME_NOW : UTIME_OMIT;
	if (!(which & 4))
		times[1].nanoseconds = which & 8 ? UTIME_NOW : UTIME_OMIT;
	return 0;
}

EXPORT(fd_filestat_set_times)
result_t fd_filestat_set_times(fd_t fd, uint64_t accessed, uint64_t modified, uint32_t which)
{
	struct timespec times[2];
	result_t error = times_of(accessed, modified, which, times);

	return error ? error : error_of(CALL4(SYS_UTIMENSAT, (int32_t)fd, 0, address(times), 0));
}

/* Calls that move data take the program's vectors, which have the kernel's layout. */
static result_t moved(int64_t bytes, uint32_t *count)
{
	if (bytes >= 0)
		*count = (uint32_t)bytes;
	return error_of(bytes);
}

/* A position in a file is passed in two words; on a 64-bit machine the kernel takes the first for
 * all of it. */
EXPORT(fd_pread) result_t fd_pread(fd_t fd, const void *vectors, uint32_t count, uint64_t offset, uint32_t *bytes)
{
	return moved(CALL5(SYS_PREADV, (int32_t)fd, address(vectors), count, offset, 0), bytes);
}

EXPORT(fd_pwrite) result_t fd_pwrite(fd_t fd, const void *vectors, uint32_t count, uint64_t offset, uint32_t *bytes)
{
	return moved(CALL5(SYS_PWRITEV, (int32_t)fd, address(vectors), count, offset, 0), bytes);
}

/* Reading a directory is not EISDIR in WASI. */
EXPORT(fd_read) result_t fd_read(fd_t fd, const void *vectors, uint32_t count, uint32_t *bytes)
{
	result_t error = moved(CALL3(SYS_READV, (int32_t)fd, address(vectors), count), bytes);

	return error == 31 ? WASI_BADF : error;
}

EXPORT(fd_write) result_t fd_write(fd_t fd, const void *vectors, uint32_t count, uint32_t *bytes)
{
	return moved(CALL3(SYS_WRITEV, (int32_t)fd, address(vectors), count), bytes);
}

EXPORT(fd_seek) result_t fd_seek(fd_t fd, int64_t offset, uint32_t whence, uint64_t *now)
{
	struct stat stat;
	result_t error;

	if (whence > 2)
		return WASI_INVAL;
	if (type_of(fd, &stat, &error) == DIRECTORY)
		return WASI_BADF;
	int64_t at = error ? 0 : CALL3(SYS_LSEEK, (int32_t)fd, offset, whence);
	if (at >= 0 && !error)
		*now = (uint64_t)at;
	return error ? error : error_of(at);
}

EXPORT(fd_tell) result_t fd_tell(fd_t fd, uint64_t *now)
{
	return fd_seek(fd, 0, 1, now);
}

/* Its new number is taken from the descriptor that had it; both have to exist. */
EXPORT(fd_renumber) result_t fd_renumber(fd_t from, fd_t to)
{
	struct state *s = state();
	int64_t there = CALL2(SYS_FCNTL, (int32_t)to, F_GETFL);

	if (there < 0 || from == to)
		return there < 0 ? error_of(there) : error_of(CALL2(SYS_FCNTL, (int32_t)from, F_GETFL));
	int64_t done = CALL2(SYS_DUP2, (int32_t)from, (int32_t)to);
	if (done < 0)
		return error_of(done);
	for (uint32_t i = 0; i < s->preopens; i++) {
		if (s->preopen[i].fd == to)
			s->preopen[i].length = 0;
		if (s->preopen[i].fd == from)
			s->preopen[i].fd = to;
	}
	return error_of(CALL1(SYS_CLOSE, (int32_t)from));
}

struct prestat {
	uint32_t tag, length;
};

EXPORT(fd_prestat_get) result_t fd_prestat_get(fd_t fd, struct prestat *to)
{
	struct state *s = state();

	for (uint32_t i = 0; i < s->preopens; i++) {
		if (s->preopen[i].fd != fd || !s->preopen[i].length)
			continue;
		to->tag = 0;
		to->length = s->preopen[i].length;
		return 0;
	}
	return WASI_BADF;
}

EXPORT(fd_prestat_dir_name) result_t fd_prestat_dir_name(fd_t fd, char *to, uint32_t length)
{
	struct state *s = state();

	for (uint32_t i = 0; i < s->preopens; i++) {
		if (s->preopen[i].fd != fd || !s->preopen[i].length)
			continue;
		if (length < s->preopen[i].length)
			return WASI_NAMETOOLONG;
		__builtin_memcpy(to, (const char *)s->preopen[i].name, s->preopen[i].length);
		return 0;
	}
	return WASI_BADF;
}

struct linux_entry {
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

struct entry {
	uint64_t next, ino;
	uint32_t length;
	uint32_t type; /* one byte and padding */
};

static enum filetype type_of_entry(uint8_t type)
{
	/* DT_BLK is 6, and so on: S_IFMT's bits. */
	return type_of_mode((uint32_t)type << 12);
}

/* Copies as many of `length` bytes as fit. Returns whether all did. */
static int put(char **to, char *end, const void *from, uint32_t length)
{
	uint32_t room = (uint32_t)(end - *to), part = length < room ? length : room;

	__builtin_memcpy(*to, from, part);
	*to += part;
	return part == length;
}

/* telldir(3) of a program keeps 31 bits of a cookie; the kernel's position in a directory may take
 * 63. Such a position is replaced by its number in a table of all positions that were returned,
 * counted from FIRST_TOLD. A position that finds no slot is passed on unchanged. */
#define SLOTS      (1u << 17)
#define FIRST_TOLD (UINT64_C(1) << 30)
#define NO_PLACES  ((uint64_t *)1)

static uint64_t *places(void)
{
	struct state *s = state();

	if (!s->places) {
		int64_t at = CALL6(
		    SYS_MMAP, 0, SLOTS * sizeof(uint64_t), 3 /* READ | WRITE */, 0x22 /* PRIVATE | ANONYMOUS */, -1, 0);
		s->places = at < 0 ? NO_PLACES : (uint64_t *)(uint32_t)at;
	}
	return s->places == NO_PLACES ? NULL : s->places;
}

static uint64_t cookie_of(uint64_t place)
{
	uint64_t *table = place < FIRST_TOLD ? NULL : places();
	uint32_t slot = (uint32_t)((place * UINT64_C(0x9e3779b97f4a7c15)) >> 40);

	for (int tries = 0; table && tries < 64; tries++, slot++) {
		slot %= SLOTS;
		if (!table[slot])
			table[slot] = place;
		if (table[slot] == place)
			return FIRST_TOLD + slot;
	}
	return place;
}

static uint64_t place_of(uint64_t cookie)
{
	uint64_t *table = cookie - FIRST_TOLD < SLOTS ? places() : NULL;

	return table && table[cookie - FIRST_TOLD] ? table[cookie - FIRST_TOLD] : cookie;
}

static int put_entry(char **to, char *end, const struct linux_entry *from)
{
	struct entry entry = {
		.next = cookie_of((uint64_t)from->next), .ino = from->ino, .type = type_of_entry(from->type)
	};

	while (from->name[entry.length])
		entry.length++;
	return put(to, end, &entry, sizeof entry) && put(to, end, from->name, entry.length);
}

/* A cookie stands for the place where the kernel goes on in the directory. An entry that is cut off
 * is read again by the cookie before it. */
EXPORT(fd_readdir) result_t fd_readdir(fd_t fd, char *to, uint32_t length, uint64_t cookie, uint32_t *used)
{
	char *entries = state()->entries, *at = to, *end = to + length;
	int64_t got = CALL3(SYS_LSEEK, (int32_t)fd, place_of(cookie), 0);

	if (got < 0)
		return error_of(got);
	while (at < end) {
		got = CALL3(SYS_GETDENTS64, (int32_t)fd, address(entries), sizeof state()->entries);
		if (got < 0)
			return got == -E_NOTDIR ? WASI_BADF : error_of(got);
		if (!got)
			break;
		for (int64_t i = 0; i < got;) {
			const struct linux_entry *entry = (const struct linux_entry *)(entries + i);
			if (!put_entry(&at, end, entry))
				break;
			i += entry->size;
		}
	}
	*used = (uint32_t)(at - to);
	return 0;
}
