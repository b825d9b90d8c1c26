/* Processes of several users, with threads and children of their own, use files at once: each gets
 * what is its own, and never another's. */
#include "check.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define USERS  4
#define ROUNDS 300

static int self;

static const char *name_of(int user, char *name)
{
	snprintf(name, 16, "of%d", user);
	return name;
}

/* Whether every file is open only to its owner. User 0 is root, to whom all are open. */
static int right(void)
{
	char name[16];
	struct stat st;

	for (int user = 0; user < USERS; user++) {
		int fd = open(name_of(user, name), O_RDWR), mine = user == self || self == 0;

		if (fd >= 0)
			close(fd);
		if ((fd >= 0) != mine || (fd < 0 && errno != EACCES))
			return 0;
	}
	snprintf(name, sizeof name, "m%d.%lx", self, (unsigned long)pthread_self() & 0xffffff);
	int fd = open(name, O_WRONLY | O_CREAT, 0600),
	    good = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == (uid_t)(self ? 1000 + self : 0);

	close(fd);
	return unlink(name) == 0 && good;
}

static void *keeps_on(void *unused)
{
	(void)unused;
	for (int round = 0; round < ROUNDS; round++)
		if (!right())
			return "wrong";
	return NULL;
}

static int user(void)
{
	pthread_t threads[2];
	void *wrong[2] = { "unset", "unset" };
	int status;

	if (self && (setgroups(0, NULL) || setgid((gid_t)(1000 + self)) || setuid((uid_t)(1000 + self))))
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, keeps_on, NULL))
			return 1;
	/* Children come to live on threads that others had. */
	for (int round = 0; round < 10; round++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(!right());
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], &wrong[i]);
	return wrong[0] || wrong[1];
}

int main(void)
{
	pid_t pids[USERS];
	char name[16];

	if (geteuid() || setgroups(0, NULL)) {
		printf("takes root\n");
		return 77;
	}
	NEED(chmod(".", 0777) == 0);
	for (int i = 0; i < USERS; i++) {
		int fd = open(name_of(i, name), O_WRONLY | O_CREAT | O_EXCL, 0600);

		NEED(fd >= 0 && fchown(fd, (uid_t)(i ? 1000 + i : 0), 0) == 0);
		close(fd);
	}
	for (self = 0; self < USERS; self++)
		if ((pids[self] = fork()) == 0)
			_exit(user());
	for (int i = 0; i < USERS; i++) {
		int status = -1;

		CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_EQ(status, 0);
	}
	for (int i = 0; i < USERS; i++)
		CHECK_EQ(unlink(name_of(i, name)), 0);
	return check_done();
}
