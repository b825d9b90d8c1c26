/* edit WORD...: changes files as each word says, or waits; ends with 1 at the first that fails. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -1;
	return close(fd);
}

/* A file that gets its mode before its name. */
static int nameless(const char *path)
{
	char name[40];
	int fd = open(".", O_WRONLY | O_TMPFILE, 0600);

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	return fchmod(fd, 04755) || linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Does one edit: a word of one letter, a colon, a path and perhaps `=` and something else. */
static int edit(const char *word)
{
	char path[4096], *other;

	snprintf(path, sizeof path, "%s", word + 2);
	if ((other = strchr(path, '=')))
		*other++ = 0;
	switch (word[0]) {
	case 'a':
		return put(path, other, O_APPEND);
	case 'w':
		return put(path, other, O_TRUNC);
	case 'm':
		return mkdir(path, 0755);
	case 'd':
		return remove(path);
	case 'v':
		return rename(path, other);
	/* As newer tools do. */
	case 'V':
		return renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE);
	case 'D':
		return unlinkat(AT_FDCWD, path, 0);
	case 'h':
		return link(path, other);
	case 'l':
		return symlink(other, path);
	case 'x':
		return chmod(path, (mode_t)strtoul(other, NULL, 8));
	case 't':
		return truncate(path, strtoll(other, NULL, 10));
	case 's':
		return close(open(path, O_WRONLY | O_CREAT, 04755));
	case 'n':
		return mknod(path, S_IFREG | 04755, 0);
	case 'f':
		return put(path, "", 0) || fchmod(open(path, O_RDONLY), 04755);
	case 'o':
		return nameless(path);
	/* Until standard input ends. */
	case 'q':
		return write(1, "waits\n", 6) == 6 ? (int)read(0, path, 1) : -1;
	default:
		return -1;
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (edit(argv[i])) {
			perror(argv[i]);
			return 1;
		}
	}
	return 0;
}
