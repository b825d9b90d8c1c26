/* client PREFIX: a program whose files below PREFIX are inside a clamp; everything it does must be
 * as without. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) \
	do { \
		if (!(x)) { \
			printf("line %d: %s (errno %d)\n", __LINE__, #x, errno); \
			exit(1); \
		} \
	} while (0)

static char in_path[256], out_path[] = "/grates-test/outside.tmp", buf[256];

static const char *in(const char *name)
{
	static char path[4][512];
	static int at;
	char *p = path[at++ & 3];

	sprintf(p, "%s/%s", in_path, name);
	return p;
}

static int holds(int fd, const char *text)
{
	ssize_t n = pread(fd, buf, sizeof buf, 0);

	return n == (ssize_t)strlen(text) && !memcmp(buf, text, (size_t)n);
}

static void descriptors(void)
{
	int fd = open(in("a"), O_RDWR | O_CREAT | O_TRUNC, 0600),
	    out = open(out_path, O_RDWR | O_CREAT | O_TRUNC, 0600), d, p[2];
	struct pollfd set[2];
	fd_set read_set;

	CHECK(fd >= 0 && out >= 0);
	CHECK(write(fd, "inside", 6) == 6 && write(out, "outside", 7) == 7);
	CHECK(holds(fd, "inside") && holds(out, "outside"));
	CHECK((d = dup(fd)) >= 0 && holds(d, "inside"));
	CHECK(dup2(fd, out) == out && holds(out, "inside"));
	CHECK(close(out) == 0 && (out = open(out_path, O_RDWR)) >= 0 && holds(out, "outside"));
	CHECK(dup2(out, d) == d && holds(d, "outside"));
	CHECK(close(d) == 0 && (d = fcntl(fd, F_DUPFD, 50)) >= 50 && holds(d, "inside") && close(d) == 0);
	CHECK(close(fd) == 0 && pread(fd, buf, 1, 0) < 0 && errno == EBADF);
	/* The number again, for something that is outside. */
	CHECK(pipe(p) == 0 && (p[0] == fd || p[1] == fd) && write(p[1], "x", 1) == 1 && read(p[0], buf, 1) == 1);
	CHECK((d = open(in("a"), O_RDONLY)) >= 0);
	set[0] = (struct pollfd){ d, POLLIN, 0 };
	set[1] = (struct pollfd){ p[0], POLLIN, 0 };
	CHECK(poll(set, 2, 0) == 1 && set[0].revents == POLLIN);
	FD_ZERO(&read_set);
	FD_SET(d, &read_set);
	FD_SET(p[0], &read_set);
	CHECK(select(60, &read_set, NULL, NULL, &(struct timeval){ 0, 0 }) == 1 && FD_ISSET(d, &read_set) &&
	    !FD_ISSET(p[0], &read_set));
	close(p[0]), close(p[1]), close(d), close(out);
	CHECK(unlink(in("a")) == 0 && unlink(out_path) == 0);
}

static void paths(void)
{
	struct stat st;
	int dir, fd, root;

	CHECK(mkdir(in("d"), 0700) == 0 && (fd = open(in("d/f"), O_CREAT | O_WRONLY, 0600)) >= 0 &&
	    write(fd, "f", 1) == 1 && close(fd) == 0);
	CHECK((dir = open(in("d"), O_RDONLY | O_DIRECTORY)) >= 0 && fstatat(dir, "f", &st, 0) == 0 && st.st_size == 1);
	CHECK((root = open("/", O_RDONLY | O_DIRECTORY)) >= 0 && fstatat(root, in("d/f") + 1, &st, 0) == 0 &&
	    st.st_size == 1);
	CHECK(chdir(in("d")) == 0 && stat("f", &st) == 0 && getcwd(buf, sizeof buf) && !strcmp(buf, in("d")));
	CHECK(stat("../../../../../grates-test", &st) == 0 && S_ISDIR(st.st_mode));
	CHECK(stat("../d/./f", &st) == 0 && chdir("..") == 0 && stat("d/f", &st) == 0);
	CHECK(chdir("/grates-test") == 0 && getcwd(buf, sizeof buf) && !strcmp(buf, "/grates-test"));
	CHECK(stat("f", &st) < 0 && errno == ENOENT);
	/* A link outside that leads in. */
	unlink("/grates-test/link");
	CHECK(symlink(in("d"), "/grates-test/link") == 0 && stat("/grates-test/link/f", &st) == 0 && st.st_size == 1);
	CHECK((fd = open("link/f", O_RDONLY)) >= 0 && holds(fd, "f") && close(fd) == 0);
	CHECK(lstat("/grates-test/link", &st) == 0 && S_ISLNK(st.st_mode) && unlink("/grates-test/link") == 0);
	/* Across the boundary: two filesystems. */
	CHECK(rename(in("d/f"), "/grates-test/f") < 0 && errno == EXDEV);
	CHECK(link(in("d/f"), "/grates-test/f") < 0 && errno == EXDEV);
	CHECK(rename(in("d/f"), in("d/g")) == 0 && unlink(in("d/g")) == 0 && rmdir(in("d")) == 0);
	close(dir), close(root);
}

/* Whether the link of an open file has this text, without following it. */
static int is_called(int fd, const char *path)
{
	char link[40], target[512];
	struct stat st;
	ssize_t n;

	sprintf(link, "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof target - 1);
	target[n > 0 ? n : 0] = 0;
	if (strcmp(target, path))
		printf("%s: %s\n", link, target);
	return !strcmp(target, path) && lstat(link, &st) == 0 && S_ISLNK(st.st_mode);
}

static void names(void)
{
	int fd = open(in("a"), O_RDONLY | O_CREAT, 0600), out = open(out_path, O_RDONLY | O_CREAT, 0600);

	CHECK(fd >= 0 && out >= 0);
	CHECK(is_called(fd, in("a")) && is_called(out, out_path));
	close(fd), close(out);
	CHECK(unlink(in("a")) == 0 && unlink(out_path) == 0);
}

static void processes(const char *self)
{
	int fd = open(in("shared"), O_RDWR | O_CREAT | O_TRUNC, 0600),
	    keep = open(in("kept"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), status;
	char text[16];

	CHECK(fd >= 0 && keep >= 0 && write(fd, "parent", 6) == 6);
	for (int i = 0; i < 12; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child) {
			CHECK(holds(fd, "parent") && dup2(fd, 60) == 60 && holds(60, "parent"));
			sprintf(text, "%d", fd);
			if (i & 1) {
				execl(self, self, in_path, "child", text, NULL);
				_exit(2);
			}
			_exit(0);
		}
		if (i % 4 == 3)
			for (int n = 0; n < 4; n++)
				CHECK(wait(&status) > 0 && status == 0);
	}
	CHECK(close(fd) == 0 && close(keep) == 0 && unlink(in("shared")) == 0 && unlink(in("kept")) == 0);
}

int main(int argc, char **argv)
{
	strcpy(in_path, argc > 1 ? argv[1] : "/tmp/in");
	if (argc > 3) {
		CHECK(holds(atoi(argv[3]), "parent"));
		return 0;
	}
	mkdir(in_path, 0700);
	descriptors();
	names();
	paths();
	processes(argv[0]);
	return 0;
}
