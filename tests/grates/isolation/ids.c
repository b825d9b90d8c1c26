/* Tests the identity that calls are made with, where client and grate are different users on one
 * thread. Prints what went wrong, and `done`. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET   "/tmp/ids.secret"
#define RAISED   "/tmp/ids.raised"
#define WRONG(x) ((x) ? (void)printf("%s\n", #x) : (void)0)

static int opens(void)
{
	int fd = open(SECRET, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void as_user(int raised)
{
	struct stat st;

	for (int round = 0; round < 100; round++) {
		WRONG(getpgid(1) != 0);
		WRONG(opens());
		WRONG(getsid(1) != 0);
		WRONG(opens());
		/* A call that the grate passes on for the client has the client's identity. */
		WRONG(getpriority(PRIO_PROCESS, 1) != -1 || errno != EACCES);
		WRONG(opens());
		WRONG(getpgid(1) != 0);
	}
	/* Straight after the grate has been root on this thread. */
	WRONG(write(raised, "x", 1) != 1);
	WRONG(fstat(raised, &st) || (st.st_mode & S_ISUID));
}

int main(void)
{
	struct stat st;
	int status, raised;

	umask(022);
	unlink(SECRET);
	unlink(RAISED);
	WRONG((raised = open(SECRET, O_CREAT | O_EXCL | O_WRONLY, 0600)) < 0 || close(raised));
	WRONG((raised = open(RAISED, O_CREAT | O_EXCL | O_RDWR, 0777)) < 0 || fchmod(raised, 04777));
	/* Root, after the grate has been somebody else on this thread. */
	WRONG(getsid(1) != 0 || write(raised, "x", 1) != 1 || fstat(raised, &st) || !(st.st_mode & S_ISUID));
	WRONG(!opens());
	fflush(stdout);
	if (fork() == 0) {
		WRONG(setgroups(0, NULL) || setgid(1000) || setuid(1000));
		as_user(raised);
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	WRONG(status);
	WRONG(!opens());
	WRONG(unlink(SECRET) || unlink(RAISED));
	puts("done");
	return 0;
}
