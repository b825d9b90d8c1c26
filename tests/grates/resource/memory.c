/* Memory: mapped, shared by number and by name, inherited. */
#include "client.h"

static void map(void)
{
	long total = 0;

	while (mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		total += 65536;
	printf("mapped all but less than 64K more: %d, errno %d\n", total > 0, errno);
	printf("total %ld\n", total);
}

static void *map_some(void *unused)
{
	(void)unused;
	for (int i = 0; i < 200; i++) {
		char *p = mmap(NULL, 262144, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			continue;
		p[0] = 1;
		munmap(p, 131072);
		munmap(p + 131072, 131072);
	}
	return NULL;
}

static void race_memory(void)
{
	pthread_t t[4];
	long first = (long)(intptr_t)sbrk(0);

	for (int i = 0; i < 4; i++)
		if (!fork()) {
			for (int j = 0; j < 4; j++)
				pthread_create(&t[j], NULL, map_some, NULL);
			for (int j = 0; j < 4; j++)
				pthread_join(t[j], NULL);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	printf("brk kept: %d\n", (long)(intptr_t)sbrk(0) == first);
	map();
}

static void segment(void)
{
	int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600), other = shmget(IPC_PRIVATE, 8 << 20, IPC_CREAT | 0600);

	printf("segments %d %d errno %d\n", id >= 0, other >= 0, errno);
	shmctl(id, IPC_RMID, NULL);
	shmctl(other, IPC_RMID, NULL);
	printf("memfd %d errno %d\n", memfd_create("x", 0), errno);
	/* Memory with a name, by every way to it. */
	errno = 0;
	printf("shm %d %d", shm_open("/x", O_RDWR | O_CREAT, 0600), errno);
	if (symlink("/dev/shm", "shm") || chdir("/dev/shm"))
		exit(2);
	errno = 0;
	printf(" relative %d %d", open("x", O_RDWR | O_CREAT, 0600), errno);
	if (chdir("/grates-test"))
		exit(2);
	errno = 0;
	printf(" link %d %d", open("shm/x", O_WRONLY | O_CREAT, 0600), errno);
	unlink("shm");
	errno = 0;
	printf(" creat %d %d", creat("/proc/self/root/dev/shm/x", 0600), errno);
	printf(" openat2 %d %d",
	    (int)syscall(SYS_openat2, AT_FDCWD, "/dev/shm/x", &(uint64_t[3]){ O_RDWR | O_CREAT, 0600 }, 24), errno);
	errno = 0;
	printf(" there %d", access("/dev/shm/x", F_OK));
	/* One of somebody else's, opened for reading. */
	int fd = open("/dev/shm/y", O_RDONLY);
	char name[40];

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	errno = 0;
	printf(" again %d %d", fd < 0 ? -2 : open(name, O_RDWR), errno);
	errno = 0;
	printf(" truncate %d %d\n", truncate("/dev/shm/y", 1 << 20), errno);
	printf("file %d\n", open(NAME, O_RDWR | O_CREAT, 0600) >= 0);
}

/* Memory with a name and without: what it grows by counts, by every way to make it grow, and no
 * more when it is gone. */
static void named(void)
{
	struct iovec three[3] = { { data, 3 }, { data, 65536 }, { data, 5 } };
	sem_t *sem = sem_open("/s", O_CREAT | O_EXCL, 0600, 1);
	int fd = shm_open("/x", O_RDWR | O_CREAT | O_EXCL, 0600), other, m;
	volatile char *a, *b;

	printf("semaphore %d %d %d\n", sem != SEM_FAILED, sem != SEM_FAILED && !sem_wait(sem) && !sem_post(sem),
	    sem_unlink("/s"));
	printf("memory %d %d\n", ftruncate(fd, 4 << 20), (other = shm_open("/x", O_RDWR, 0)) >= 0);
	a = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	a[5] = 'x';
	printf("shared %d\n", b[5] == 'x');
	errno = 0;
	printf("too much %d %d", ftruncate(fd, 100 << 20), errno);
	printf(" %d", (int)pwrite(other, data, 100, 99 << 20));
	printf(" %d", (int)pwritev(fd, three, 3, 99 << 20));
	printf(" %d", fallocate(fd, 0, 98 << 20, 4096));
	printf(" %d", lseek(fd, 99 << 20, SEEK_SET) < 0 ? -2 : (int)write(fd, data, 1));
	m = memfd_create("m", 0);
	printf(" %d %d\n", m >= 0, ftruncate(m, 20 << 20));
	printf("enough %d %d\n", ftruncate(fd, 1 << 20), (int)pwritev(m, three, 3, 0) == 65544);
	shm_unlink("/x");
	for (int i = 0, status; i < 10; i++) {
		if (!fork()) {
			int own = i & 1 ? memfd_create("m", 0) : shm_open("/y", O_RDWR | O_CREAT, 0600),
			    r = ftruncate(own, 4 << 20);

			shm_unlink("/y");
			_exit(r != 0);
		}
		wait(&status);
		printf("%d", status);
	}
	printf("\n");
}

static void step(int to[2])
{
	if (write(to[1], data, 1) != 1)
		exit(2);
}

static void await(int from[2])
{
	if (read(from[0], data, 1) != 1)
		exit(3);
}

/* A file whose maker has ended counts as long as somebody has it, if only to read it. */
static void read_named(void)
{
	int made[2], read_by[2], stay[2], m = -1;
	pid_t reader, maker;

	if (pipe(made) || pipe(read_by) || pipe(stay))
		exit(4);
	if (!(reader = fork())) {
		int fd = open("/dev/null", O_RDONLY);

		await(made);
		fd = open("/dev/shm/z", O_RDONLY);
		step(read_by);
		await(stay);
		_exit(fd < 0);
	}
	if (!(maker = fork())) {
		int fd = shm_open("/z", O_RDWR | O_CREAT, 0600), wrong = ftruncate(fd, 30 << 20);

		step(made);
		await(read_by);
		_exit(shm_unlink("/z") || wrong);
	}
	waitpid(maker, &m, 0);
	printf("made %d", m);
	m = memfd_create("m", 0);
	printf(" held %d", ftruncate(m, 40 << 20));
	step(stay);
	waitpid(reader, &maker, 0);
	printf(" read %d free %d\n", maker, ftruncate(m, 40 << 20));
}

/* Each makes memory files and makes them grow until there is no more; all hold what they have until
 * the last is done. */
static void race_named(void)
{
	int results[2], stay[2];
	long sum = 0, one;

	if (pipe(results) || pipe(stay))
		exit(2);
	for (int i = 0; i < RACERS; i++)
		if (!fork()) {
			int fd = memfd_create("m", 0);

			close(stay[1]);
			for (one = 0; i & 1 ? !ftruncate(fd, one + 4096) : pwrite(fd, data, 4096, one) == 4096;
			    one += 4096)
				;
			if (write(results[1], &one, sizeof one) != sizeof one || read(stay[0], data, 1))
				_exit(1);
			_exit(0);
		}
	for (int i = 0; i < RACERS; i++, sum += one)
		if (read(results[0], &one, sizeof one) != sizeof one)
			exit(3);
	close(stay[1]);
	while (wait(NULL) > 0)
		;
	printf("sum %ld\n", sum);
}

/* A number that is now a memory file's and now /dev/null's: what is written to it may be too much
 * for the limit. */
static int turned, memory, null;
static volatile int turned_enough;

static void *turns(void *unused)
{
	while (!turned_enough) {
		dup2(memory, turned);
		dup2(null, turned);
	}
	return unused;
}

static void turning_named(void)
{
	struct stat st = { 0 };
	pthread_t t;

	memory = memfd_create("m", 0);
	null = open("/dev/null", O_WRONLY);
	turned = dup(null);
	pthread_create(&t, NULL, turns, NULL);
	/* Once round, and on until the two have met. */
	for (int i = 0; i < 4000 || (!st.st_size && i < 1000000); i++) {
		(void)!pwrite(turned, data, 65536, (off_t)(i % 4000) << 16);
		if (i % 1000 == 999)
			fstat(memory, &st);
	}
	turned_enough = 1;
	pthread_join(t, NULL);
	fstat(memory, &st);
	printf("grown %d, too far %d\n", st.st_size > 0, st.st_size > 52 << 20);
}

/* A copy of what is mapped counts; memory that is only lent until exec does not. */
static void fork_memory(void)
{
	char *p = mmap(NULL, 30 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	printf("mapped %d\n", p != MAP_FAILED);
	pid = fork();
	if (!pid)
		_exit(0);
	say("fork", pid < 0 ? -1 : 0);
	for (int i = 0; i < 5; i++) {
		char *argv[] = { (char *)self, "seven", NULL };
		int status = 0;

		errno = posix_spawn(&pid, self, NULL, NULL, argv, NULL);
		waitpid(pid, &status, 0);
		printf("status %d errno %d\n", WEXITSTATUS(status), errno);
	}
	munmap(p, 30 << 20);
	pid = fork();
	if (!pid)
		_exit(0);
	printf("fork %d\n", pid < 0 ? -1 : 0);
	wait(NULL);
}

/* Makes memory with a name, and runs what follows. */
void beside(char **argv)
{
	if (shm_open("/y", O_RDWR | O_CREAT, 0600) < 0)
		exit(2);
	execv(argv[0], argv);
	exit(3);
}

const struct test memory_tests[] = {
	{ "map", map },
	{ "race_memory", race_memory },
	{ "segment", segment },
	{ "named", named },
	{ "read_named", read_named },
	{ "race_named", race_named },
	{ "turning_named", turning_named },
	{ "fork_memory", fork_memory },
	{ NULL, NULL },
};
