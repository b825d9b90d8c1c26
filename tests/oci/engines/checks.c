/* Stands in for the program that runtime-tools runs in containers: it reads /expected, with a check
 * on each line, and prints `ok` or `not ok`. expected.py writes them from config.json. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int number;

/* A number, also one with all 64 bits. */
static unsigned long long num(const char *text)
{
	return text ? strtoull(text, NULL, 0) : 0;
}

/* Whether a file has a byte to be read, or a directory an entry. */
static int readable(const char *path)
{
	struct stat st;
	char byte;
	int fd, found = 0;

	if (stat(path, &st))
		return 0;
	if (S_ISDIR(st.st_mode)) {
		DIR *dir = opendir(path);
		struct dirent *entry;

		while (dir && (entry = readdir(dir)))
			found |= strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
		if (dir)
			closedir(dir);
		return found;
	}
	fd = open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return 0;
	found = read(fd, &byte, 1) > 0;
	close(fd);
	return found;
}

static int writable(const char *path)
{
	struct stat st;
	char name[4096];
	int fd;

	if (stat(path, &st))
		return 0;
	if (!S_ISDIR(st.st_mode)) {
		fd = open(path, O_WRONLY | O_NONBLOCK);
		if (fd >= 0)
			close(fd);
		return fd >= 0;
	}
	snprintf(name, sizeof name, "%s/.probe", path);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return 0;
	close(fd);
	unlink(name);
	return 1;
}

/* The text behind a word at the start of a line of a file. */
static int line_of(const char *path, const char *word, char *found, size_t size)
{
	FILE *file = fopen(path, "r");
	char line[4096];
	int there = 0;

	while (file && !there && fgets(line, sizeof line, file)) {
		there = !strncmp(line, word, strlen(word));
		if (there) {
			snprintf(found, size, "%s", line + strlen(word) + strspn(line + strlen(word), " \t"));
			found[strcspn(found, "\n")] = 0;
		}
	}
	if (file)
		fclose(file);
	return there;
}

static int has_mount(const char *path)
{
	FILE *file = fopen("/proc/self/mountinfo", "r");
	char line[4096], place[2048];
	int there = 0;

	while (file && fgets(line, sizeof line, file))
		there |= sscanf(line, "%*s %*s %*s %*s %2047s", place) == 1 && !strcmp(place, path);
	if (file)
		fclose(file);
	return there;
}

static int has_group(gid_t wanted)
{
	gid_t groups[64];
	int count = getgroups(64, groups), there = 0;

	for (int i = 0; i < count; i++)
		there |= groups[i] == wanted;
	return there;
}

static int is_device(const char *path, const char *kind, const char *major_, const char *minor_, char *saw, size_t size)
{
	struct stat st;

	if (stat(path, &st)) {
		snprintf(saw, size, "%s", strerror(errno));
		return 0;
	}
	snprintf(saw, size, "mode %o, %d:%d", (unsigned)st.st_mode, (int)major(st.st_rdev), (int)minor(st.st_rdev));
	if (*kind == 'p')
		return S_ISFIFO(st.st_mode);
	return (*kind == 'b' ? S_ISBLK(st.st_mode) : S_ISCHR(st.st_mode)) && major(st.st_rdev) == num(major_) &&
	    minor(st.st_rdev) == num(minor_);
}

/* One check: its words, and what was found instead. */
static int check(char **word, int argc, char **argv, char *saw, size_t size)
{
	const char *what = word[0], *a = word[1] ? word[1] : "", *b = word[2] ? word[2] : "";
	struct rlimit limit;
	char text[4096] = "";

	if (!strcmp(what, "argument")) {
		snprintf(saw, size, "%s", (int)num(a) < argc ? argv[num(a)] : "(none)");
		return !strcmp(saw, b);
	}
	if (!strcmp(what, "variable")) {
		const char *value = getenv(a);

		snprintf(saw, size, "%s", value ? value : "(none)");
		return !strcmp(saw, b);
	}
	if (!strcmp(what, "directory"))
		return getcwd(saw, size) && !strcmp(saw, a);
	if (!strcmp(what, "host"))
		return !gethostname(saw, size) && !strcmp(saw, a);
	if (!strcmp(what, "user") || !strcmp(what, "group")) {
		snprintf(saw, size, "%u", what[0] == 'u' ? (unsigned)getuid() : (unsigned)getgid());
		return !strcmp(saw, a);
	}
	if (!strcmp(what, "groups"))
		return has_group((gid_t)num(a));
	if (!strcmp(what, "mask")) {
		mode_t mask = umask(0);

		snprintf(saw, size, "%o", (unsigned)mask);
		return mask == num(a);
	}
	if (!strcmp(what, "privileges")) {
		snprintf(saw, size, "%d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
		return !strcmp(saw, a);
	}
	if (!strcmp(what, "limit")) {
		if (getrlimit((int)num(a), &limit))
			return 0;
		snprintf(
		    saw, size, "%llu %llu", (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
		return limit.rlim_cur == num(b) && limit.rlim_max == num(word[3]);
	}
	if (!strcmp(what, "status")) {
		line_of("/proc/self/status", a, saw, size);
		return strtoull(saw, NULL, 16) == strtoull(b, NULL, 16);
	}
	if (!strcmp(what, "file")) {
		line_of(a, "", saw, size);
		return !strcmp(saw, b);
	}
	if (!strcmp(what, "masked"))
		return !readable(a);
	if (!strcmp(what, "fixed"))
		return !writable(a);
	if (!strcmp(what, "changeable"))
		return writable(a);
	if (!strcmp(what, "mount"))
		return has_mount(a);
	if (!strcmp(what, "link")) {
		ssize_t length = readlink(a, text, sizeof text - 1);

		snprintf(saw, size, "%s", length < 0 ? strerror(errno) : text);
		return length >= 0 && !strcmp(text, b);
	}
	if (!strcmp(what, "device"))
		return is_device(a, b, word[3], word[4], saw, size);
	snprintf(saw, size, "unknown check");
	return 0;
}

int main(int argc, char **argv)
{
	FILE *file = fopen("/expected", "r");
	char line[4096], saw[4096];

	if (!file) {
		printf("not ok 1 - /expected: %s\n", strerror(errno));
		return 1;
	}
	/* Words are separated by tabs. */
	while (fgets(line, sizeof line, file)) {
		char *word[8] = { 0 }, *rest = line;
		int count = 0;

		line[strcspn(line, "\n")] = 0;
		while (count < 7 && (word[count] = strsep(&rest, "\t")))
			count++;
		saw[0] = 0;
		printf("%s %d - ", check(word, argc, argv, saw, sizeof saw) ? "ok" : "not ok", ++number);
		for (int i = 0; i < count && word[i]; i++)
			printf("%s ", word[i]);
		printf("(found: %s)\n", saw);
	}
	printf("1..%d\n", number);
	return 0;
}
