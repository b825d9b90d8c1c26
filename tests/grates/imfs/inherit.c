/* A child that is spawned has its parent's files and directory, without those that are closed on
 * exec; offsets are shared. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <lind/raw.h>
#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define CHECK(x) \
	((x) ? (void)0 \
	     : (failures++, \
		   (void)printf("%s:%d: %s (errno %d %s)\n", __FILE__, __LINE__, #x, errno, strerror(errno))))

static int child(char **argv)
{
	char buffer[8] = { 0 }, cwd[64];
	int kept = atoi(argv[2]), closed = atoi(argv[3]);

	CHECK(read(kept, buffer, 3) == 3 && !strcmp(buffer, "def"));
	CHECK(read(closed, buffer, 1) < 0 && errno == EBADF);
	CHECK(getcwd(cwd, sizeof cwd) && !strcmp(cwd, "/in/side") && !access("f", F_OK));
	CHECK(umask(0) == 05);
	return failures != 0;
}

static int64_t spawn(char **argv)
{
	char *env[] = { NULL };
	struct lind_arg none = { 0, lind_self() };

	return lind_call(SYS_spawn, lind_self(), lind_mine(argv[0]), lind_mine(argv), lind_mine(env), none, none, none);
}

int main(int argc, char **argv)
{
	char kept[8], closed[8], *next[] = { argv[0], "child", kept, closed, NULL }, buffer[8];
	int a, b, status;

	if (argc > 1)
		return child(argv);
	CHECK(!mkdir("/in", 0755) && !mkdir("/in/side", 0755) && !chdir("/in/side"));
	umask(05);
	a = open("f", O_RDWR | O_CREAT, 0666);
	CHECK(write(a, "abcdefghi", 9) == 9 && lseek(a, 3, SEEK_SET) == 3);
	b = open("f", O_RDONLY | O_CLOEXEC);
	snprintf(kept, sizeof kept, "%d", a);
	snprintf(closed, sizeof closed, "%d", b);
	for (int i = 0; i < 50; i++) {
		lseek(a, 3, SEEK_SET);
		CHECK(spawn(next) > 0 && wait(&status) > 0 && status == 0);
		CHECK(lseek(a, 0, SEEK_CUR) == 6);
	}
	CHECK(read(b, buffer, 1) == 1);
	close(a);
	close(b);
	return failures != 0;
}
