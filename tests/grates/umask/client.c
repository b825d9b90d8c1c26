/* Checks that a client's files have no permissions for group and others. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "../check.h"

static int mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? -1 : (int)(st.st_mode & 07777);
}

static int made(int fd)
{
	return fd < 0 ? -1 : close(fd);
}

static void all(const char *in)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, s = socket(AF_UNIX, SOCK_STREAM, 0), dir;

	IS(mkdir(in, 0777), 0);
	IS(mode_of(in), 0700);
	IS((dir = open(in, O_RDONLY | O_DIRECTORY)) >= 0, 1);
	char f[64], t[64];
	snprintf(f, sizeof f, "%s/f", in);
	snprintf(t, sizeof t, "%s/s", in);
	IS(made(open(f, O_CREAT | O_WRONLY, 0666)), 0);
	IS(mode_of(f), 0600);
	IS(unlink(f), 0);
	IS(made(creat(f, 0777)), 0);
	IS(mode_of(f), 0700);
	IS(unlink(f), 0);
	IS(made(openat(dir, "f", O_CREAT | O_WRONLY, 0644)), 0);
	IS(mode_of(f), 0600);
	IS(chmod(f, 0666), 0);
	IS(mode_of(f), 0600);
	IS(fchmodat(dir, "f", 0777, 0), 0);
	IS(mode_of(f), 0700);
	IS(syscall(SYS_fchmodat2, dir, "f", 0640, 0), 0);
	IS(mode_of(f), 0600);
	fd = open(f, O_RDWR);
	IS(fchmod(fd, 0777), 0);
	IS(mode_of(f), 0700);
	FAILS(setxattr(f, "system.posix_acl_access", "x", 1, 0), EPERM);
	FAILS(fsetxattr(fd, "system.posix_acl_access", "x", 1, 0), EPERM);
	IS(close(fd) || unlink(f), 0);
	IS(mkdirat(dir, "f", 0777), 0);
	IS(mode_of(f), 0700);
	IS(rmdir(f), 0);
	IS(mknod(f, S_IFIFO | 0666, 0), 0);
	IS(mode_of(f), 0600);
	IS(unlink(f), 0);
	IS(mknodat(dir, "f", S_IFREG | 0666, 0), 0);
	IS(mode_of(f), 0600);
	IS(unlink(f), 0);
	strcpy(a.sun_path, t);
	IS(bind(s, (struct sockaddr *)&a, sizeof a), 0);
	IS(mode_of(t) & 077, 0);
	IS(unlink(t), 0);
	fd = open(in, O_TMPFILE | O_RDWR, 0666);
	if (fd >= 0) {
		struct stat st;

		IS(fstat(fd, &st), 0);
		IS(st.st_mode & 077, 0);
		close(fd);
	}
	close(s);
	close(dir);
	IS(rmdir(in), 0);
}

static void *thread(void *arg)
{
	char name[32];

	snprintf(name, sizeof name, "d%ld", (long)arg);
	for (int i = 0; i < 5; i++) {
		umask(i % 2 ? 0 : 022);
		all(name);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	int status;

	if (argc > 1) {
		for (long i = 0; i < 16; i++)
			IS(pthread_create(&threads[i], NULL, thread, (void *)i), 0);
		for (int i = 0; i < 16; i++)
			IS(pthread_join(threads[i], NULL), 0);
		return wrong;
	}
	all("d");
	umask(0);
	IS(umask(0), 077);
	all("d");
	if (!fork()) {
		all("d");
		_exit(wrong);
	}
	IS(wait(&status) > 0 && !status, 1);
	return wrong;
}
