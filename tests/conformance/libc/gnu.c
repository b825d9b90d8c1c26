/* Tests what programs for Linux take for granted beyond POSIX. */
#include "check.h"
#include <error.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <malloc.h>
#include <obstack.h>
#include <sys/cdefs.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free  free

static void obstacks(void)
{
	struct obstack h;
	char *first, *second;

	CHECK(obstack_init(&h));
	obstack_grow0(&h, "abc", 3);
	first = obstack_finish(&h);
	CHECK_STR(first, "abc");
	CHECK_EQ((uintptr_t)obstack_base(&h) % sizeof(void *), 0);
	for (int i = 0; i < 10000; i++)
		obstack_1grow(&h, 'x');
	CHECK_EQ(obstack_object_size(&h), 10000);
	obstack_1grow(&h, 0);
	second = obstack_finish(&h);
	CHECK_EQ(strlen(second), 10000);
	CHECK_STR(first, "abc");
	CHECK_STR((char *)obstack_copy0(&h, "defg", 2), "de");
	CHECK_EQ(obstack_printf(&h, "%d-%s", 12, "z"), 4);
	obstack_1grow(&h, 0);
	CHECK_STR((char *)obstack_finish(&h), "12-z");
	for (int i = 0; i < 1000; i++)
		obstack_int_grow(&h, i);
	int *numbers = obstack_finish(&h);
	CHECK_EQ(numbers[999], 999);
	obstack_free(&h, second);
	CHECK_STR(first, "abc");
	CHECK_STR((char *)obstack_copy(&h, "again", 6), "again");
	obstack_free(&h, first);
	CHECK(obstack_empty_p(&h));
	obstack_free(&h, NULL);
}

static void braces(void)
{
	glob_t g;
	const char *names[] = { "a1", "a2", "b1", "c1" };

	for (int i = 0; i < 4; i++)
		close(creat(names[i], 0600));
	CHECK_EQ(glob("{b,a}*", GLOB_BRACE, 0, &g), 0);
	CHECK_EQ(g.gl_pathc, 3);
	CHECK_STR(g.gl_pathv[0], "b1");
	CHECK_STR(g.gl_pathv[1], "a1");
	CHECK_STR(g.gl_pathv[2], "a2");
	globfree(&g);
	CHECK_EQ(glob("{a,{b,c}}1", GLOB_BRACE, 0, &g), 0);
	CHECK_EQ(g.gl_pathc, 3);
	CHECK_STR(g.gl_pathv[2], "c1");
	globfree(&g);
	CHECK_EQ(glob("{x,y}*", GLOB_BRACE, 0, &g), GLOB_NOMATCH);
	CHECK_EQ(glob("{b,a}1", 0, 0, &g), GLOB_NOMATCH);
	CHECK_EQ(glob("{x,y}*", GLOB_BRACE | GLOB_NOCHECK, 0, &g), 0);
	CHECK_STR(g.gl_pathv[0], "{x,y}*");
	globfree(&g);
	for (int i = 0; i < 4; i++)
		unlink(names[i]);
}

static void allocator(void)
{
	void *held = malloc(1000), *blocks[200];

	CHECK(mallinfo2().uordblks >= 1000);
	for (int i = 0; i < 200; i++)
		CHECK((blocks[i] = malloc(50000)) != 0);
	size_t most = mallinfo2().arena;
	for (int i = 0; i < 200; i++)
		free(blocks[i]);
	malloc_trim(0);
	CHECK(mallinfo2().arena < most);
	free(held);

	/* Others move the break: malloc goes on beside them. */
	char *mine = sbrk(8192);
	CHECK(mine != (char *)-1);
	memset(mine, 7, 8192);
	for (int i = 0; i < 200; i++) {
		CHECK((blocks[i] = malloc(50000)) != 0);
		memset(blocks[i], 1, 50000);
	}
	for (int i = 0; i < 200; i++)
		free(blocks[i]);
	malloc_trim(0);
	for (int i = 0; i < 8192; i++)
		if (mine[i] != 7) {
			CHECK_EQ(mine[i], 7);
			break;
		}
}

static void errors(void)
{
	int fds[2];
	char text[4000] = "";

	CHECK_EQ(pipe(fds), 0);
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		dup2(fds[1], 2);
		error(0, ENOENT, "one %d", 1);
		error_at_line(0, 0, "f", 12, "two");
		if (error_message_count != 2)
			_exit(1);
		error(5, 0, "three");
		_exit(2);
	}
	close(fds[1]);
	for (ssize_t at = 0, n; (n = read(fds[0], text + at, sizeof text - 1 - at)) > 0; at += n)
		;
	close(fds[0]);
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 5);
	CHECK(strstr(text, ": one 1: No such file or directory\n"));
	CHECK(strstr(text, ":f:12: two\n"));
	CHECK(strstr(text, ": three\n"));
}

int main(void)
{
	void *frames[4];
	char *path;

	obstacks();
	braces();
	allocator();
	errors();
	CHECK(backtrace(frames, 4) >= 0);
	CHECK_STR((char *)rawmemchr("abcd", 'c'), "cd");
	CHECK_STR((char *)rawmemchr("abcd", 0), "");
	CHECK_EQ(mkdir("d", 0700), 0);
	path = canonicalize_file_name("./d/../d");
	CHECK(path && path[0] == '/' && !strcmp(strrchr(path, '/'), "/d"));
	free(path);
	CHECK_ERRNO(renameat2(AT_FDCWD, "d", AT_FDCWD, "d", RENAME_NOREPLACE), EEXIST);
	struct statx x;
	CHECK_EQ(statx(AT_FDCWD, "d", 0, STATX_TYPE, &x), 0);
	CHECK(S_ISDIR(x.stx_mode));
	CHECK_EQ(rmdir("d"), 0);
	off64_t far = lseek64(0, 0, SEEK_CUR);
	CHECK(far >= -1 && sizeof far == 8);
	return check_done();
}
