/*
 * A state outside the root has been opened by lind-boot (lind-boot/src/launch/state_files.rs). One
 * inside is opened here, by the same rules: a slash at its end, or a directory that is there, means
 * a directory.
 */
#include "state_files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/options.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
	size_t length = strlen(path);
	struct stat st;

	return (length && path[length - 1] == '/') || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

static int check_empty(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = dir ? 0 : -errno;

	while (dir && !r && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			r = -ENOTEMPTY;
	if (dir)
		closedir(dir);
	return r;
}

/* Somebody else may have made the directory: links in it are not followed. */
static int open_in(int folder, const char *name, int flags)
{
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

static int open_data(int folder)
{
	if (mkdirat(folder, "data", 0700) && errno != EEXIST)
		return -1;
	return openat(folder, "data", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int open_folder(const char *path, bool make, struct state_files *files)
{
	int folder, r = 0;

	if (make && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	if ((folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -errno;
	if ((files->db = open_in(folder, "state.db", 0)) == -ENOENT && make && !(r = check_empty(path)))
		files->db = open_in(folder, "state.db", O_CREAT | O_EXCL);
	if (!r && files->db < 0)
		r = files->db;
	if (!r && (files->wal = open_in(folder, "state.db-wal", O_CREAT)) < 0)
		r = files->wal;
	if (!r && (files->data = open_data(folder)) < 0)
		r = -errno;
	close(folder);
	return r;
}

int state_files_open(const char *upper, bool make, struct state_files *files)
{
	const char *inside = lind_path_inside(upper);

	*files = (struct state_files){ -1, -1, -1 };
	if (inside && is_folder(inside))
		return open_folder(inside, make, files);
	if ((files->db = lind_open_file(upper, NULL, O_RDWR | (make ? O_CREAT : 0), 0600)) < 0)
		return -errno;
	if ((files->wal = lind_open_file(upper, "-wal", O_RDWR | O_CREAT, 0600)) < 0)
		return -errno;
	/* Of a state that is one file there is none. */
	files->data = inside ? -1 : lind_open_file(upper, "/data", O_RDONLY | O_DIRECTORY, 0);
	return 0;
}
