/* swap IN OUT LINK: one thread keeps turning LINK from OUT to IN, another opens LINK/file to write.
 * Says whether IN was ever written to. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int done;
static char **name;

static void *turn(void *unused)
{
	char next[256];

	(void)unused;
	sprintf(next, "%s.next", name[3]);
	for (int i = 0; !atomic_load(&done); i++) {
		unlink(next);
		symlink(name[1 + (i & 1)], next);
		rename(next, name[3]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char path[256], in[256];
	pthread_t thread;
	struct stat st;

	(void)argc;
	name = argv;
	sprintf(path, "%s/file", argv[3]);
	sprintf(in, "%s/file", argv[1]);
	pthread_create(&thread, NULL, turn, NULL);
	for (int i = 0; i < 3000; i++) {
		int fd = open(path, O_WRONLY);

		if (fd >= 0) {
			(void)!write(fd, "x", 1);
			close(fd);
		}
	}
	atomic_store(&done, 1);
	pthread_join(thread, NULL);
	if (stat(in, &st))
		return 1;
	printf("%s\n", st.st_size ? "written" : "untouched");
	return 0;
}
