/* A client cannot reach another's descriptors, directory or memory by naming its cage in an
 * argument. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <lind/raw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

#define IS(x, want) is(#x, (x), (want))

static void is(const char *what, int64_t got, int64_t want)
{
	if (got == want)
		return;
	printf("%s: %lld, not %lld\n", what, (long long)got, (long long)want);
	failures++;
}

static struct lind_arg mine(uint64_t value)
{
	return (struct lind_arg){ value, lind_self() };
}

/* `victim` has file 3 open, in a directory of its own, and `secret` in its memory. */
static int attack(uint64_t victim, uint64_t fd, uint64_t secret)
{
	static char buffer[16] = "unchanged";
	struct lind_arg none = mine(0), theirs = { fd, victim }, nowhere = { fd, 0xdeadbeefdeadbeef };
	struct lind_arg here = lind_mine(buffer), memory = { secret, victim }, eight = mine(8);
	int own = open("own", O_RDWR | O_CREAT, 0600);

	IS(lind_call(SYS_pread64, lind_self(), theirs, here, eight, none, none, none), -EPERM);
	IS(lind_call(SYS_pread64, lind_self(), nowhere, here, eight, none, none, none), -EPERM);
	IS(lind_call(SYS_pread64, victim, theirs, here, eight, none, none, none), -EPERM);
	IS(lind_call(SYS_read, lind_self(), theirs, here, eight, none, none, none), -EPERM);
	IS(lind_call(SYS_close, lind_self(), theirs, none, none, none, none, none), -EPERM);
	IS(lind_call(SYS_fcntl, lind_self(), theirs, mine(F_DUPFD), none, none, none, none), -EPERM);
	IS(lind_call(SYS_write, lind_self(), mine((uint64_t)own), memory, eight, none, none, none), -EFAULT);
	IS(lind_call(SYS_pread64, lind_self(), mine((uint64_t)own), memory, eight, none, none, none), 0);
	IS(lind_call(SYS_openat, lind_self(), (struct lind_arg){ (uint64_t)AT_FDCWD, victim }, lind_mine("f"), none,
	       none, none, none) < 0,
	    1);
	IS(lind_call(SYS_openat, lind_self(), theirs, lind_mine("/made"), mine(O_CREAT | O_RDWR), mine(0600), none,
	       none) < 0 ||
		!unlink("/made"),
	    1);
	IS(lind_call(SYS_chdir, victim, lind_mine("/"), none, none, none, none, none), -EPERM);
	IS(strcmp(buffer, "unchanged"), 0);
	close(own);
	unlink("own");
	return failures != 0;
}

int main(int argc, char **argv)
{
	static char secret[8] = "secret";
	char words[3][24], *next[] = { argv[0], words[0], words[1], words[2], NULL }, *env[] = { NULL }, buffer[8];
	struct lind_arg none = mine(0);
	int fd, status;

	if (argc > 1)
		return attack(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	IS(mkdir("victim", 0700) | chdir("victim"), 0);
	fd = open("f", O_RDWR | O_CREAT, 0600);
	IS(write(fd, "private", 7), 7);
	IS(lseek(fd, 0, SEEK_SET), 0);
	snprintf(words[0], sizeof words[0], "%llu", (unsigned long long)lind_self());
	snprintf(words[1], sizeof words[1], "%d", fd);
	snprintf(words[2], sizeof words[2], "%lu", (unsigned long)(uintptr_t)secret);
	IS(lind_call(SYS_spawn, lind_self(), lind_mine(argv[0]), lind_mine(next), lind_mine(env), none, none, none) > 0,
	    1);
	IS(wait(&status) > 0 && status == 0, 1);
	IS(read(fd, buffer, 8), 7);
	IS(strcmp(secret, "secret"), 0);
	return failures != 0;
}
