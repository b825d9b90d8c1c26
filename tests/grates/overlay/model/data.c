/* Operations on open files and what is in them. */
#include <sys/mman.h>
#include <sys/sendfile.h>
#include "operations.h"

static char buffer[200000], other[200000];

static void fill(uint32_t length)
{
	uint32_t pattern = any(1u << 30);

	if (!any(10)) {
		memset(buffer, 0, length);
		return;
	}
	for (uint32_t i = 0; i < length; i += 4)
		memcpy(buffer + i, &(uint32_t){ pattern + i * 2654435761u }, 4);
}

static uint32_t any_length(void)
{
	return any(any(3) ? 300 : largest / 2);
}

static int64_t any_offset(void)
{
	return any(any(3) ? 500 : largest);
}

/* A file whose contents operations may use: of fifos they would be what others left there. */
static int any_file(uint32_t *slot)
{
	struct stat st;

	*slot = any(SLOTS);
	return slots[*slot] >= 0 && !fstat(slots[*slot], &st) && !S_ISFIFO(st.st_mode) ? slots[*slot] : -1;
}

static void op_open(void)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR };
	static const int extra[] = { O_CREAT, O_CREAT, O_EXCL | O_CREAT, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW,
		O_PATH };
	char path[PATH_ROOM];
	int flags = modes[any(4)], start, to = (int)any(SLOTS), dir = any_start(&start);
	mode_t mode = any(2) ? 0644 : any(07777 + 1) & 06777;
	int64_t r;

	for (unsigned n = any(4); n; n--)
		flags |= extra[any(8)];
	/* Together they mean different things to different kernels. */
	if (flags & O_CREAT)
		flags &= ~O_DIRECTORY;
	if (!any(40))
		flags = O_TMPFILE | O_RDWR;
	flags |= O_NONBLOCK;
	any_path(path);
	r = sys(openat(dir, path, flags, mode));
	if (flags & O_CREAT && *path && path[strlen(path) - 1] == '/')
		r = any_path_error(r);
	did(r < 0 ? r : 0, "%d = openat(%d, \"%s\", %#o, %#o)", to, start, path, (unsigned)flags, mode);
	if (slots[to] >= 0)
		close(slots[to]);
	slots[to] = r < 0 ? -1 : (int)r;
	changed();
}

static void op_read(int fd, uint32_t slot)
{
	uint32_t length = any_length();
	int64_t off = any_offset(), r;
	bool at = any(2);

	memset(buffer, 1, length);
	r = sys(at ? pread(fd, buffer, length, off) : read(fd, buffer, length));
	did(r, "%s(%u, %u, %lld)", at ? "pread" : "read", slot, length, at ? (long long)off : 0);
	also("%016llx", (unsigned long long)hash_bytes(0, buffer, length));
}

static void op_write(int fd, uint32_t slot)
{
	uint32_t length = any_length();
	int64_t off = any_offset(), r;
	bool at = any(2);

	fill(length);
	r = sys(at ? pwrite(fd, buffer, length, off) : write(fd, buffer, length));
	did(r, "%s(%u, %u, %lld)", at ? "pwrite" : "write", slot, length, at ? (long long)off : 0);
	changed();
}

static void op_size(int fd, uint32_t slot)
{
	static const int modes[] = { 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE };
	char path[PATH_ROOM];
	int64_t off = any_offset(), length = any_offset();
	int mode = modes[any(4)];

	any_path(path);
	switch (any(3)) {
	case 0:
		did(sys(ftruncate(fd, off)), "ftruncate(%u, %lld)", slot, (long long)off);
		break;
	case 1:
		did(sys(truncate(path, off)), "truncate(\"%s\", %lld)", path, (long long)off);
		break;
	default:
		did(sys(fallocate(fd, mode, off, length)), "fallocate(%u, %d, %lld, %lld)", slot, mode, (long long)off,
		    (long long)length);
	}
	changed();
}

static void op_seek(int fd, uint32_t slot)
{
	int whence = (int)any(3);
	int64_t by = (int64_t)any(2000) - 500;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	did(sys(lseek(fd, by, whence)), "lseek(%u, %lld, %d)", slot, (long long)by, whence);
}

static void op_copy(int fd, uint32_t slot)
{
	uint32_t to, length = any_length();
	int out = any_file(&to);
	off_t from = any_offset(), where = any_offset();
	struct stat st;
	int64_t r;

	if (out < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || fstat(out, &st) || !S_ISREG(st.st_mode))
		return;
	if (any(2)) {
		r = sys(copy_file_range(fd, &from, out, &where, length, 0));
		did(r, "copy_file_range(%u, %u, %u)", slot, to, length);
	} else if (to != slot) {
		r = sys(sendfile(out, fd, &from, length));
		did(r, "sendfile(%u, %u, %u)", to, slot, length);
	}
	changed();
}

/* Through a mapping; what a program writes there is in the file for everybody at once. */
static void op_map(int fd, uint32_t slot)
{
	struct stat st;
	uint32_t length, at, off = any(3) * 4096;
	bool shared = any(3);
	char *map;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= off)
		return;
	length = (uint32_t)st.st_size - off;
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, off);
	did(map == MAP_FAILED ? -errno : 0, "mmap(%u, %u at %u, %s)", slot, length, off, shared ? "shared" : "private");
	if (map == MAP_FAILED)
		return;
	also("%016llx", (unsigned long long)hash_bytes(0, map, length));
	at = any(length);
	memset(map + at, 'A' + (int)any(26), length - at < 5000 ? length - at : any(5000));
	if (shared)
		did(sys(msync(map, length, MS_SYNC)), "msync");
	if (pread(fd, other, sizeof other, off) > 0)
		also("%016llx", (unsigned long long)hash_bytes(0, other, at < sizeof other ? at : sizeof other));
	munmap(map, length);
	changed();
}

static void op_sync(int fd, uint32_t slot)
{
	bool data = any(2);

	did(sys(data ? fdatasync(fd) : fsync(fd)), "%s(%u)", data ? "fdatasync" : "fsync", slot);
}

void operation_on_data(void)
{
	uint32_t slot, kind = any(18);
	int fd = any_file(&slot);

	if (kind < 5 || fd < 0)
		op_open();
	else if (kind < 7)
		op_read(fd, slot);
	else if (kind < 12)
		op_write(fd, slot);
	else if (kind < 14)
		op_size(fd, slot);
	else if (kind == 14)
		op_seek(fd, slot);
	else if (kind == 15)
		op_copy(fd, slot);
	else if (kind == 16)
		op_map(fd, slot);
	else
		op_sync(fd, slot);
}
