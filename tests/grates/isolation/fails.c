/*
 * fails HOW GRATE: starts itself behind a grate that fails in this way, and behind one that does
 * not, and says what came of both.
 *
 * The client of the first, and a child of that client, must get EIO for what the grate handled, now
 * and after exec, and the kernel's answer for nothing of it. All else goes on: what was not
 * handled, their end, the client of the other grate, and this program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EUID 4242
/* Where a client says what it found, and where it reads when all is over. */
#define SAYS 10
#define OVER 11

static int closed(void)
{
	return syscall(SYS_geteuid) == -1 && errno == EIO && syscall(SYS_getpgid, 0) == -1 && errno == EIO &&
	    getpid() > 0;
}

static void say(char c)
{
	if (write(SAYS, &c, 1) != 1)
		_exit(9);
}

static int client(const char *self)
{
	int go[2], here[2];
	char c;

	if (pipe(go) || pipe(here))
		return 2;
	say(syscall(SYS_geteuid) == EUID ? 'b' : '?');
	if (!fork()) {
		close(go[1]);
		close(here[0]);
		say(syscall(SYS_geteuid) == EUID ? 'b' : '?');
		close(here[1]);
		say(read(go[0], &c, 1) == 0 && closed() ? 'c' : '?');
		execl(self, self, "after", (char *)NULL);
		_exit(2);
	}
	close(go[0]);
	close(here[1]);
	if (read(here[0], &c, 1))
		return 2;
	/* In the handler when the grate ends. */
	say(syscall(SYS_getpgid, 1) == -1 && errno == EIO ? 'i' : '?');
	say(closed() ? 'c' : '?');
	close(go[1]);
	execl(self, self, "after", (char *)NULL);
	return 2;
}

/* Its grate is sound: until all is over. */
static int bystander(void)
{
	struct {
		int fd;
		short events, revents;
	} over = { OVER, 1, 0 };
	long calls = 0;

	while (syscall(SYS_poll, &over, 1, 0) == 0 || calls < 1000)
		if (syscall(SYS_geteuid) != EUID || syscall(SYS_getpgid, 0) <= 0)
			return 3;
		else
			calls++;
	return 0;
}

static pid_t start(const char *grate, const char *how, const char *self, const char *what)
{
	char *argv[] = { (char *)grate, "--how", (char *)how, (char *)self, (char *)what, NULL };
	pid_t pid = -1;

	errno = posix_spawn(&pid, grate, NULL, NULL, argv, NULL);
	return pid;
}

int main(int argc, char **argv)
{
	int says[2], over[2], status, n = 0, got;
	char found[16] = "";
	pid_t sound, failing;

	if (argc == 2 && !strcmp(argv[1], "client"))
		return client(argv[0]);
	if (argc == 2 && !strcmp(argv[1], "bystander"))
		return bystander();
	if (argc == 2) {
		say(closed() ? 'e' : '?');
		return 0;
	}
	if (pipe(over) || dup2(over[0], OVER) < 0)
		return 2;
	fcntl(over[1], F_SETFD, FD_CLOEXEC);
	close(over[0]);
	sound = start(argv[2], "never", argv[0], "bystander");
	/* After that one, which would hold it open. */
	if (pipe(says) || dup2(says[1], SAYS) < 0)
		return 2;
	fcntl(says[0], F_SETFD, FD_CLOEXEC);
	close(says[1]);
	failing = start(argv[2], argv[1], argv[0], "client");
	close(SAYS);
	/* Clients say 7 letters and end. */
	while (n < 15 && (got = (int)read(says[0], found + n, 1)) > 0) {
		n += got;
		/* The test kills a grate that does not fail on its own. */
		if (n == 2 && (!strcmp(argv[1], "hang") || !strcmp(argv[1], "wait"))) {
			usleep(20000);
			kill(failing, SIGKILL);
		}
	}
	if (waitpid(failing, &status, 0) != failing)
		return 4;
	printf("%s: %s %d\n", found, WIFSIGNALED(status) ? "signal" : "exit",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	close(over[1]);
	if (waitpid(sound, &status, 0) != sound)
		return 5;
	printf("bystander %x\n", status);
	return 0;
}
