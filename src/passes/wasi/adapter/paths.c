/*
 * Implements WASI's calls on names below a directory.
 *
 * No name leads out of the directory that it is looked up in, be it by `..`, by an absolute path or
 * by a symbolic link: the kernel sees to that (openat2, RESOLVE_BENEATH), or walk.c. Calls that
 * know no such thing act on the last part of a path, in a directory that was opened this way.
 */
#include "wasi.h"

struct how {
	uint64_t flags, mode, resolve;
};

/* The last part of a path, and the directory that it is in. */
struct place {
	int64_t directory;
	char *name;
};

result_t times_of(uint64_t accessed, uint64_t modified, uint32_t which, struct timespec times[2]);

/* Copies the program's text as a path for the kernel, into buffer `number`. */
static result_t path_of(const char *text, uint32_t length, int number, char **path)
{
	char *copy = state()->path[number];

	if (!length)
		return WASI_NOENT;
	if (length >= PATH_MAX)
		return WASI_NAMETOOLONG;
	for (uint32_t i = 0; i < length; i++) {
		if (!text[i])
			return WASI_ILSEQ;
		copy[i] = text[i];
	}
	copy[length] = 0;
	*path = copy;
	/* No descriptor of a program is the root of all files. */
	return copy[0] == '/' ? WASI_PERM : 0;
}

static int64_t open_below(fd_t fd, const char *path, uint64_t flags, uint64_t mode)
{
	struct how how = { flags | O_CLOEXEC, mode, RESOLVE_BENEATH };
	struct stat stat;
	result_t error;
	/* A negative number would be the working directory, which WASI does not have. */
	int64_t opened =
	    (int32_t)fd < 0 ? -E_BADF : CALL4(SYS_OPENAT2, (int32_t)fd, address(path), address(&how), sizeof how);

	if (opened == -E_NOSYS)
		opened = walk_below((int32_t)fd, path, flags, mode);
	/* A path can only be looked up in a directory: another file is a wrong descriptor. */
	return opened == -E_NOTDIR && type_of(fd, &stat, &error) != DIRECTORY ? -E_BADF : opened;
}

/* A path that leads out of its directory is not permitted. */
static result_t error_below(int64_t returned)
{
	return returned == -E_XDEV ? WASI_PERM : error_of(returned);
}

static uint32_t length_of(const char *text)
{
	uint32_t length = 0;

	while (text[length])
		length++;
	return length;
}

/* Opens the directory of a path's last part. A path that ends in `..`, `.` or nothing is its own
 * directory. */
static result_t place_of(fd_t fd, char *path, struct place *place)
{
	uint32_t end = length_of(path), cut;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (cut = end; cut > 0 && path[cut - 1] != '/'; cut--)
		;
	int dots = (end - cut == 1 && path[cut] == '.') || (end - cut == 2 && path[cut] == '.' && path[cut + 1] == '.');
	if (dots) {
		/* Behind the text there is space for a name. */
		uint32_t all = length_of(path);
		if (all + 3 > PATH_MAX)
			return WASI_NAMETOOLONG;
		place->directory = open_below(fd, path, O_PATH | O_DIRECTORY, 0);
		place->name = path;
		path[0] = '.';
		path[1] = 0;
	} else if (!cut) {
		struct stat stat;
		result_t error;
		if (type_of(fd, &stat, &error) != DIRECTORY)
			return error ? error : WASI_BADF;
		place->directory = (int32_t)fd;
		place->name = path;
		return 0;
	} else {
		path[cut - 1] = 0;
		place->directory = open_below(fd, path, O_PATH | O_DIRECTORY, 0);
		place->name = path + cut;
	}
	return error_below(place->directory < 0 ? place->directory : 0);
}

static result_t leave(fd_t fd, const struct place *place, result_t result)
{
	if (place->directory != (int32_t)fd)
		CALL1(SYS_CLOSE, place->directory);
	return result;
}

static result_t find(fd_t fd, const char *text, uint32_t length, int number, struct place *place)
{
	char *path;
	result_t error = path_of(text, length, number, &path);

	return error ? error : place_of(fd, path, place);
}

EXPORT(path_create_directory) result_t path_create_directory(fd_t fd, const char *text, uint32_t length)
{
	struct place place;
	result_t error = find(fd, text, length, 0, &place);

	return error ? error
		     : leave(fd, &place, error_of(CALL3(SYS_MKDIRAT, place.directory, address(place.name), 0777)));
}

static result_t stat_below(fd_t fd, uint32_t flags, const char *text, uint32_t length, int64_t *opened)
{
	char *path;
	result_t error = path_of(text, length, 0, &path);

	if (error)
		return error;
	*opened = open_below(fd, path, O_PATH | (flags & FOLLOW ? 0 : O_NOFOLLOW), 0);
	return error_below(*opened < 0 ? *opened : 0);
}

EXPORT(path_filestat_get)
result_t path_filestat_get(fd_t fd, uint32_t flags, const char *text, uint32_t length, struct filestat *to)
{
	struct stat stat;
	int64_t opened;
	result_t error = stat_below(fd, flags, text, length, &opened);

	if (error)
		return error;
	enum filetype type = type_of((fd_t)opened, &stat, &error);
	if (!error)
		fill_filestat(&stat, type, to);
	CALL1(SYS_CLOSE, opened);
	return error;
}

EXPORT(path_filestat_set_times)
result_t path_filestat_set_times(
    fd_t fd, uint32_t flags, const char *text, uint32_t length, uint64_t accessed, uint64_t modified, uint32_t which)
{
	struct timespec times[2];
	const char empty = 0;
	int64_t opened;
	result_t error = times_of(accessed, modified, which, times);

	error = error ? error : stat_below(fd, flags, text, length, &opened);
	if (error)
		return error;
	error = error_of(CALL4(SYS_UTIMENSAT, opened, address(&empty), address(times), AT_EMPTY_PATH));
	CALL1(SYS_CLOSE, opened);
	return error;
}

EXPORT(path_link)
result_t path_link(
    fd_t fd, uint32_t flags, const char *text, uint32_t length, fd_t to_fd, const char *to, uint32_t to_length)
{
	struct place from, place;
	result_t error = flags & FOLLOW ? WASI_INVAL : find(fd, text, length, 0, &from);

	if (error)
		return error;
	error = find(to_fd, to, to_length, 1, &place);
	if (!error) {
		error = error_of(
		    CALL5(SYS_LINKAT, from.directory, address(from.name), place.directory, address(place.name), 0));
		leave(to_fd, &place, 0);
	}
	return leave(fd, &from, error);
}

enum { CREATE = 1, IS_DIRECTORY = 2, EXCLUSIVE = 4, TRUNCATE = 8 };

static uint64_t open_flags(uint32_t flags, uint32_t how, uint64_t rights, uint32_t fdflags)
{
	int writes = (rights & (R_WRITE | R_ALLOCATE | R_FILESTAT_SET_SIZE)) != 0,
	    reads = (rights & (R_READ | R_READDIR)) != 0;
	uint64_t out = writes ? reads ? O_RDWR : O_WRONLY : 0;

	out |= how & CREATE ? O_CREAT : 0;
	out |= how & IS_DIRECTORY ? O_DIRECTORY : 0;
	out |= how & EXCLUSIVE ? O_EXCL : 0;
	out |= how & TRUNCATE ? O_TRUNC : 0;
	out |= flags & FOLLOW ? 0 : O_NOFOLLOW;
	out |= fdflags & FD_APPEND ? O_APPEND : 0;
	out |= fdflags & FD_NONBLOCK ? O_NONBLOCK : 0;
	out |= fdflags & FD_DSYNC ? O_DSYNC : 0;
	return out | (fdflags & (FD_SYNC | FD_RSYNC) ? O_SYNC : 0);
}

/* Whether a path leads to a link, which is not followed. */
static int is_link(fd_t fd, const char *path)
{
	struct stat stat = { 0 };
	int64_t opened = open_below(fd, path, O_PATH | O_NOFOLLOW, 0);

	if (opened < 0)
		return 0;
	int64_t got = CALL2(SYS_FSTAT, opened, address(&stat));
	CALL1(SYS_CLOSE, opened);
	return !got && (stat.mode & 0170000) == 0120000;
}

EXPORT(path_open)
result_t path_open(fd_t fd, uint32_t flags, const char *text, uint32_t length, uint32_t how, uint64_t rights,
    uint64_t inheriting, uint32_t fdflags, fd_t *to)
{
	char *path;
	result_t error = path_of(text, length, 0, &path);
	uint64_t open = open_flags(flags, how, rights, fdflags);

	(void)inheriting;
	if (error)
		return error;
	/* A directory is made by a call of its own, and never truncated by this one. */
	if ((how & IS_DIRECTORY) && (how & ~(uint32_t)IS_DIRECTORY))
		return WASI_INVAL;
	/* Only the names of a directory can be read; the error for a file that is not a directory comes
	 * first. */
	int writes = (how & IS_DIRECTORY) && (open & 3);
	if (how & IS_DIRECTORY)
		open &= ~(uint64_t)3;
	int64_t opened = open_below(fd, path, open, how & CREATE ? 0666 : 0);
	/* Only this function reports that a file to look in is not a directory. */
	struct stat stat;
	if (opened == -E_BADF && type_of(fd, &stat, &error) == REGULAR)
		return WASI_NOTDIR;
	if (opened == -E_NOTDIR && (how & IS_DIRECTORY) && !(flags & FOLLOW) && is_link(fd, path))
		return WASI_LOOP;
	if (opened >= 0 && writes) {
		CALL1(SYS_CLOSE, opened);
		return WASI_ISDIR;
	}
	if (opened >= 0)
		*to = (fd_t)opened;
	return error_below(opened < 0 ? opened : 0);
}

EXPORT(path_readlink)
result_t path_readlink(fd_t fd, const char *text, uint32_t length, char *to, uint32_t room, uint32_t *used)
{
	struct place place;
	result_t error = find(fd, text, length, 0, &place);

	if (error)
		return error;
	int64_t got = room ? CALL4(SYS_READLINKAT, place.directory, address(place.name), address(to), room) : 0;
	if (got >= 0)
		*used = (uint32_t)got;
	return leave(fd, &place, error_of(got));
}

static result_t unlink_below(fd_t fd, const char *text, uint32_t length, int flags)
{
	struct place place;
	result_t error = find(fd, text, length, 0, &place);

	return error ? error
		     : leave(fd, &place, error_of(CALL3(SYS_UNLINKAT, place.directory, address(place.name), flags)));
}

EXPORT(path_remove_directory) result_t path_remove_directory(fd_t fd, const char *text, uint32_t length)
{
	return unlink_below(fd, text, length, AT_REMOVEDIR);
}

EXPORT(path_unlink_file) result_t path_unlink_file(fd_t fd, const char *text, uint32_t length)
{
	return unlink_below(fd, text, length, 0);
}

EXPORT(path_rename)
result_t path_rename(fd_t fd, const char *text, uint32_t length, fd_t to_fd, const char *to, uint32_t to_length)
{
	struct place from, place;
	result_t error = find(fd, text, length, 0, &from);

	if (error)
		return error;
	error = find(to_fd, to, to_length, 1, &place);
	if (!error) {
		error = error_of(
		    CALL4(SYS_RENAMEAT, from.directory, address(from.name), place.directory, address(place.name)));
		leave(to_fd, &place, 0);
	}
	return leave(fd, &from, error);
}

/* The text of a link is not looked up here, but an absolute one would lead out. */
EXPORT(path_symlink)
result_t path_symlink(const char *text, uint32_t length, fd_t fd, const char *to, uint32_t to_length)
{
	struct place place;
	char *says;
	result_t error = path_of(text, length, 0, &says);

	error = error ? error : find(fd, to, to_length, 1, &place);
	return error
	    ? error
	    : leave(fd, &place, error_of(CALL3(SYS_SYMLINKAT, address(says), place.directory, address(place.name))));
}
