/* Finds the library of the program that a file is, or a name means. A file of a library is an
 * archive, whose member `lind.library` begins with the lines `digest` and `soname`. Nothing in it
 * is trusted: it is only compared. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dynlink.h"
#include "libc.h"
#include "libraries.h"

#define ABOUT "lind.library/"
#define DIGEST 64

struct about {
	char digest[DIGEST + 1];
	char soname[NAME_MAX + 1];
};

/* Libraries that a program of Linux loads; here they are part of the C library. */
static const char *const parts[] = { "libc", "libm", "libdl", "libpthread", "librt", "libutil", "libresolv",
	"libcrypt" };

static int is_part(const char *name)
{
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		size_t length = strlen(parts[i]);
		if (!strncmp(name, parts[i], length) && !strncmp(name + length, ".so", 3))
			return 1;
	}
	return 0;
}

/* A line `KEY VALUE` at *at, whose end *at then is. */
static int line(const char **at, const char *key, char *value, size_t most)
{
	size_t length = strlen(key);
	if (strncmp(*at, key, length) || (*at)[length] != ' ')
		return 0;
	const char *begin = *at + length + 1;
	const char *end = strchr(begin, '\n');
	if (!end || (size_t)(end - begin) > most)
		return 0;
	memcpy(value, begin, end - begin);
	value[end - begin] = 0;
	*at = end + 1;
	return 1;
}

/* Reads what a library says of itself. A tool may have put a list of symbols in front. */
static int read_about(int fd, struct about *about)
{
	char text[16 + DIGEST + NAME_MAX + 8], header[60];
	off_t at = 8;

	if (pread(fd, text, 8, 0) != 8 || memcmp(text, "!<arch>\n", 8))
		return 0;
	for (int i = 0; i < 3; i++) {
		if (pread(fd, header, sizeof header, at) != sizeof header)
			return 0;
		at += sizeof header;
		if (!memcmp(header, ABOUT, sizeof ABOUT - 1)) {
			ssize_t got = pread(fd, text, sizeof text - 1, at);
			const char *next = text;
			text[got < 0 ? 0 : got] = 0;
			return line(&next, "digest", about->digest, DIGEST) && line(&next, "soname", about->soname, NAME_MAX);
		}
		header[58] = 0;
		at += (off_t)strtoul(header + 48, 0, 10);
		at += at & 1;
	}
	return 0;
}

static int open_in(const char *directories, const char *name)
{
	char path[PATH_MAX];
	while (*directories) {
		size_t length = strcspn(directories, ":");
		if (length && snprintf(path, sizeof path, "%.*s/%s", (int)length, directories, name) < (int)sizeof path) {
			int fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
		directories += length + (directories[length] == ':');
	}
	return -1;
}

static int open_file(const char *file)
{
	if (strchr(file, '/'))
		return open(file, O_RDONLY | O_CLOEXEC);
	const char *first = libc.secure ? 0 : getenv("LD_LIBRARY_PATH");
	int fd = first ? open_in(first, file) : -1;
	return fd >= 0 ? fd : open_in("/lib:/usr/local/lib:/usr/lib", file);
}

static struct lind_library *by_digest(const char *digest)
{
	for (struct lind_library *const *p = __lind_libraries; *p; p++)
		if (*(*p)->digest && !strcmp((*p)->digest, digest))
			return *p;
	return 0;
}

static struct lind_library *by_name(const char *name)
{
	for (struct lind_library *const *p = __lind_libraries; *p; p++)
		if (*(*p)->digest && !strcmp((*p)->name, name))
			return *p;
	return 0;
}

struct lind_library *__lind_find_library(const char *file)
{
	struct about about;
	struct lind_library *found;
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;

	if (is_part(name))
		return &__lind_libc;
	if (!slash && (found = by_name(file)))
		return found;
	int fd = open_file(file);
	if (fd < 0) {
		__dl_seterr("%s: cannot open shared object file: %s", file, strerror(errno));
		return 0;
	}
	int known = read_about(fd, &about);
	close(fd);
	if (!known)
		__dl_seterr("%s: not a shared library for a cage: `lind-cc -shared` makes them", file);
	else if ((found = by_digest(about.digest)))
		return found;
	else if (by_name(about.soname))
		__dl_seterr("%s: the program has another version of %s: `lind-link %s %s` joins this one", file, about.soname,
			program_invocation_name, file);
	else
		__dl_seterr("%s: not part of this program: `lind-link %s %s` joins it", file, program_invocation_name, file);
	return 0;
}
