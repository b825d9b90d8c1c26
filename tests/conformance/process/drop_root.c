/* Root becomes somebody else, for a while and for good: ids, groups, capabilities, and what they
 * allow. */
#include "check.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER             1000
#define OTHER            1001
#define CAP_DAC_OVERRIDE 1
#define CAP_KILL         5
#define CAP_SETUID       7

struct caps {
	uint32_t version;
	int pid;
};
struct sets {
	uint32_t effective, permitted, inheritable;
};

static struct sets capabilities(void)
{
	struct caps header = { 0x20080522, 0 };
	struct sets sets[2] = { { 0 } };

	CHECK_EQ(syscall(SYS_capget, &header, sets), 0);
	return sets[0];
}

static int set_capabilities(struct sets low)
{
	struct caps header = { 0x20080522, 0 };
	struct sets sets[2] = { { 0 } };

	sets[0] = low;
	return (int)syscall(SYS_capset, &header, sets);
}

static int opens(const char *name, int flags)
{
	int fd = open(name, flags, 0666), e = errno;

	if (fd >= 0)
		close(fd);
	errno = e;
	return fd < 0 ? -1 : 0;
}

/* Runs a check as a child and collects what it said. */
static void apart(void (*check)(void))
{
	int status = -1;
	pid_t pid = (fflush(stdout), fork());

	NEED(pid >= 0);
	if (pid == 0) {
		check_failures = 0;
		check();
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void for_a_while(void)
{
	CHECK_EQ(seteuid(USER), 0);
	CHECK(capabilities().effective == 0 && capabilities().permitted != 0);
	CHECK_ERRNO(opens("secret", O_RDONLY), EACCES);
	CHECK_EQ(access("secret", R_OK), 0);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(opens("secret", O_RDONLY), 0);
	/* access(2) asks for the real user. */
	CHECK_EQ(setresuid(USER, 0, 0), 0);
	CHECK_EQ(opens("secret", O_RDONLY), 0);
	CHECK_ERRNO(access("secret", R_OK), EACCES);
	CHECK_EQ(setresuid(0, 0, 0), 0);
	CHECK_EQ(access("secret", R_OK), 0);
}

static void file_ids(void)
{
	struct stat st;

	CHECK_EQ(setfsuid(USER), 0);
	CHECK_EQ(setfsuid(-1), USER);
	CHECK_EQ(geteuid(), 0);
	CHECK_ERRNO(opens("secret", O_RDONLY), EACCES);
	CHECK_EQ(setfsgid(OTHER), 0);
	CHECK_EQ(opens("made", O_WRONLY | O_CREAT | O_EXCL), 0);
	CHECK_EQ(stat("made", &st), 0);
	CHECK_EQ(st.st_uid, USER);
	CHECK_EQ(st.st_gid, OTHER);
	CHECK_EQ(unlink("made"), 0);
	CHECK(!(capabilities().effective & 1 << CAP_DAC_OVERRIDE));
	CHECK(capabilities().effective & 1 << CAP_KILL);
	CHECK_EQ(setfsuid(0), USER);
	CHECK(capabilities().effective & 1 << CAP_DAC_OVERRIDE);
	CHECK_EQ(opens("secret", O_RDONLY), 0);
}

static void for_good(void)
{
	gid_t groups[] = { 7, 5 }, got[2] = { 0 };
	uid_t r, e, s;
	pid_t child;

	CHECK_EQ(setgroups(2, groups), 0);
	CHECK_EQ(getgroups(2, got), 2);
	CHECK_EQ(got[0], 5);
	CHECK_EQ(got[1], 7);
	CHECK_EQ(setgid(USER), 0);
	CHECK_EQ(opens("group5", O_RDONLY), 0);
	CHECK_EQ(setuid(USER), 0);
	CHECK_EQ(getresuid(&r, &e, &s), 0);
	CHECK(r == USER && e == USER && s == USER);
	CHECK_EQ(capabilities().permitted, 0);
	CHECK_ERRNO(setuid(0), EPERM);
	CHECK_ERRNO(seteuid(OTHER), EPERM);
	CHECK_ERRNO(setgid(0), EPERM);
	CHECK_ERRNO(setgroups(0, NULL), EPERM);
	CHECK_ERRNO(setresuid(-1, -1, 0), EPERM);
	CHECK_EQ(opens("group5", O_RDONLY), 0);
	CHECK_ERRNO(opens("group5", O_WRONLY), EACCES);
	CHECK_ERRNO(opens("secret", O_RDONLY), EACCES);
	CHECK_ERRNO(chown("theirs", USER, -1), EPERM);
	CHECK_ERRNO(chmod("theirs", 0777), EPERM);
	CHECK_ERRNO(mknod("dev", S_IFCHR | 0666, 0x103), EPERM);
	/* Nor does a child get it back. */
	child = (fflush(stdout), fork());
	if (child == 0)
		_exit(setuid(0) == 0 || opens("secret", O_RDONLY) == 0 || getuid() != USER);
	CHECK_EQ(waitpid(child, (int *)&r, 0), child);
	CHECK_EQ(r, 0);
}

static void kept(void)
{
	CHECK_EQ(prctl(PR_GET_KEEPCAPS), 0);
	CHECK_EQ(prctl(PR_SET_KEEPCAPS, 1L), 0);
	CHECK_ERRNO(prctl(PR_SET_KEEPCAPS, 2L), EINVAL);
	CHECK_EQ(setresuid(USER, USER, USER), 0);
	CHECK_EQ(capabilities().effective, 0);
	CHECK(capabilities().permitted & 1 << CAP_DAC_OVERRIDE);
	CHECK_ERRNO(opens("secret", O_RDONLY), EACCES);
	CHECK_EQ(
	    set_capabilities((struct sets){ 1 << CAP_DAC_OVERRIDE, 1 << CAP_DAC_OVERRIDE | 1 << CAP_SETUID, 0 }), 0);
	CHECK_EQ(opens("secret", O_RDONLY), 0);
	CHECK_ERRNO(setuid(OTHER), EPERM);
	CHECK_EQ(set_capabilities((struct sets){ 1 << CAP_SETUID, 1 << CAP_SETUID, 0 }), 0);
	CHECK_ERRNO(opens("secret", O_RDONLY), EACCES);
	CHECK_ERRNO(set_capabilities((struct sets){ 1 << CAP_DAC_OVERRIDE, 1 << CAP_DAC_OVERRIDE, 0 }), EPERM);
	CHECK_EQ(setuid(OTHER), 0);
}

/* Root without CAP_DAC_OVERRIDE is one user among others. */
static void root_without(void)
{
	struct sets sets = capabilities();

	sets.effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << 2);
	CHECK_EQ(set_capabilities(sets), 0);
	CHECK_ERRNO(opens("theirs", O_RDONLY), EACCES);
	CHECK_EQ(opens("secret", O_RDONLY), 0);
}

static pthread_barrier_t turn;

static void *looks(void *unused)
{
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	CHECK_EQ(getuid(), USER);
	CHECK_ERRNO(opens("secret", O_RDONLY), EACCES);
	return unused;
}

static void threads(void)
{
	pthread_t thread;

	NEED(pthread_barrier_init(&turn, NULL, 2) == 0 && pthread_create(&thread, NULL, looks, NULL) == 0);
	pthread_barrier_wait(&turn);
	CHECK_EQ(setuid(USER), 0);
	pthread_barrier_wait(&turn);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void signals(void)
{
	int ready[2], status;
	char byte;
	pid_t theirs, own;

	NEED(pipe(ready) == 0);
	theirs = (fflush(stdout), fork());
	if (theirs == 0) {
		if (setuid(OTHER) || write(ready[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	own = fork();
	if (own == 0) {
		/* Of a brother. */
		int denied = setuid(USER) == 0 && kill(theirs, 0) == -1 && errno == EPERM &&
		    kill(theirs, SIGKILL) == -1 && errno == EPERM;

		_exit(!denied);
	}
	CHECK_EQ(waitpid(own, &status, 0), own);
	CHECK_EQ(status, 0);
	CHECK_EQ(kill(theirs, SIGKILL), 0);
	CHECK_EQ(waitpid(theirs, &status, 0), theirs);
	CHECK_EQ(status, SIGKILL);
}

static void queues(void)
{
	int id = msgget(IPC_PRIVATE, 0600);
	struct msqid_ds ds;

	NEED(id >= 0);
	CHECK_EQ(seteuid(USER), 0);
	CHECK_ERRNO(msgctl(id, IPC_STAT, &ds), EACCES);
	CHECK_ERRNO(msgctl(id, IPC_RMID, NULL), EPERM);
	CHECK_EQ(seteuid(0), 0);
	CHECK_EQ(msgctl(id, IPC_STAT, &ds), 0);
	ds.msg_perm.uid = USER;
	CHECK_EQ(msgctl(id, IPC_SET, &ds), 0);
	CHECK_EQ(seteuid(USER), 0);
	CHECK_EQ(msgctl(id, IPC_RMID, NULL), 0);
	CHECK_EQ(seteuid(0), 0);
}

/* A write by who may not keep it takes the set-user-ID bit. */
static void bits(void)
{
	struct stat st;
	int fd = open("raised", O_RDWR | O_CREAT | O_EXCL, 0777);

	NEED(fd >= 0 && fchmod(fd, 04777) == 0);
	CHECK_EQ(write(fd, "a", 1), 1);
	CHECK(fstat(fd, &st) == 0 && (st.st_mode & S_ISUID));
	CHECK_EQ(seteuid(USER), 0);
	CHECK_EQ(write(fd, "b", 1), 1);
	CHECK(fstat(fd, &st) == 0 && !(st.st_mode & S_ISUID));
	CHECK_EQ(seteuid(0), 0);
	close(fd);
	CHECK_EQ(unlink("raised"), 0);
}

/* A child is somebody else's as soon as its parent has become another user; and can be continued
 * all the same. */
static void own_children(void)
{
	int ends[2], status = -1;
	pid_t child;
	char byte;

	NEED(pipe(ends) == 0 && (child = fork()) >= 0);
	if (child == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	CHECK_EQ(kill(child, 0), 0);
	NEED(setresuid(USER, USER, 0) == 0);
	CHECK_ERRNO(kill(child, 0), EPERM);
	CHECK_ERRNO(kill(child, SIGKILL), EPERM);
	CHECK_EQ(kill(child, SIGCONT), 0);
	NEED(setresuid(0, 0, 0) == 0);
	CHECK_EQ(kill(child, 0), 0);
	close(ends[1]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(void)
{
	struct sets sets;

	if (geteuid() || !(sets = capabilities()).effective || setgroups(0, NULL)) {
		printf("takes root\n");
		return 77;
	}
	umask(022);
	NEED(chmod(".", 0777) == 0);
	NEED(opens("secret", O_WRONLY | O_CREAT | O_EXCL) == 0 && chmod("secret", 0600) == 0);
	NEED(opens("theirs", O_WRONLY | O_CREAT | O_EXCL) == 0 && chmod("theirs", 0600) == 0 &&
	    chown("theirs", OTHER, OTHER) == 0);
	NEED(opens("group5", O_WRONLY | O_CREAT | O_EXCL) == 0 && chmod("group5", 0640) == 0 &&
	    chown("group5", 0, 5) == 0);
	apart(for_a_while);
	apart(file_ids);
	apart(for_good);
	apart(kept);
	apart(root_without);
	apart(threads);
	apart(signals);
	apart(own_children);
	apart(queues);
	apart(bits);
	CHECK_EQ(unlink("secret") | unlink("theirs") | unlink("group5"), 0);
	return check_done();
}
