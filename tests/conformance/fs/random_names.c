/* Two directories of files with links under 5,000 random operations, compared with a table of the
 * names. */
#include "check.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#define NAMES     12
#define FILES     6000
#define NOREPLACE 1
#define EXCHANGE  2

/* Which file each name leads to; 0 is none. Names 0 to 5 are in the first directory. */
static int where[NAMES], links[FILES], files;
static unsigned long long seed = 4711;

static int below(int bound)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (int)((seed >> 33) % (unsigned)bound);
}

static const char *path(int name)
{
	static char paths[2][16];
	static int turn;

	turn = !turn;
	snprintf(paths[turn], sizeof paths[turn], "%c/n%d", name < NAMES / 2 ? 'a' : 'b', name % (NAMES / 2));
	return paths[turn];
}

/* 0 for success, otherwise the errno. */
static int result(long returned)
{
	return returned == -1 ? errno : 0;
}

static int make(int name)
{
	int want = where[name] ? EEXIST : 0, fd = open(path(name), O_CREAT | O_EXCL | O_WRONLY, 0600);
	int got = result(fd);

	if (!want) {
		where[name] = ++files;
		links[files] = 1;
		if (fd < 0 || write(fd, &files, sizeof files) != sizeof files)
			return 0;
	}
	if (fd >= 0)
		close(fd);
	return got == want;
}

static int drop(int name)
{
	int want = where[name] ? 0 : ENOENT;

	if (!want)
		links[where[name]]--;
	where[name] = 0;
	return result(unlink(path(name))) == want;
}

static int tie(int from, int to)
{
	int want = !where[from] ? ENOENT : where[to] ? EEXIST : 0;

	if (!want) {
		where[to] = where[from];
		links[where[to]]++;
	}
	return result(link(path(from), path(to))) == want;
}

static int move(int from, int to)
{
	int want = where[from] ? 0 : ENOENT;

	/* Two names of one file: both stay. */
	if (!want && where[from] != where[to]) {
		links[where[to]]--;
		where[to] = where[from];
		where[from] = 0;
	}
	return result(rename(path(from), path(to))) == want;
}

static int move2(int from, int to, long flags)
{
	int want = !where[from] ? ENOENT : flags == NOREPLACE ? (where[to] ? EEXIST : 0) : where[to] ? 0 : ENOENT;
	int got = result(syscall(SYS_renameat2, (long)AT_FDCWD, path(from), (long)AT_FDCWD, path(to), flags));
	int moved = where[from];

	if (got == EINVAL)
		return 1;
	if (!want) {
		where[from] = where[to];
		where[to] = moved;
	}
	return got == want;
}

/* Every name leads to the file it should, and the directories list no others. */
static int agrees(void)
{
	for (int i = 0; i < NAMES; i++) {
		struct stat st;
		int content = 0, fd;

		if (stat(path(i), &st)) {
			if (where[i] || errno != ENOENT)
				return 0;
			continue;
		}
		fd = open(path(i), O_RDONLY);
		if (fd < 0 || read(fd, &content, sizeof content) != sizeof content || close(fd))
			return 0;
		if (content != where[i] || (int)st.st_nlink != links[content])
			return 0;
	}
	for (int d = 0; d < 2; d++) {
		DIR *dir = opendir(d ? "b" : "a");
		int listed = 0, there = 0;

		if (!dir)
			return 0;
		while (readdir(dir))
			listed++;
		closedir(dir);
		for (int i = 0; i < NAMES / 2; i++)
			there += where[d * NAMES / 2 + i] != 0;
		if (listed != there + 2)
			return 0;
	}
	return 1;
}

static int step(void)
{
	int from = below(NAMES), to = below(NAMES);

	switch (below(7)) {
	case 0:
	case 1:
		return make(from);
	case 2:
		return drop(from);
	case 3:
		return tie(from, to);
	case 4:
		return move2(from, to, NOREPLACE);
	case 5:
		return move2(from, to, EXCHANGE);
	default:
		return move(from, to);
	}
}

int main(void)
{
	NEED(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0);
	for (int i = 0; i < 5000; i++)
		if (!step() || (i % 10 == 0 && !agrees())) {
			printf("operation %d (errno %d)\n", i, errno);
			NEED(!"the names are what the model says");
		}
	CHECK(agrees());
	for (int i = 0; i < NAMES; i++)
		if (where[i])
			CHECK_EQ(unlink(path(i)), 0);
	CHECK_EQ(rmdir("a"), 0);
	CHECK_EQ(rmdir("b"), 0);
	return check_done();
}
