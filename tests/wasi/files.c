/* A program that knows nothing of WASI but its C library. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

extern char **environ;

int main(int argc, char **argv)
{
	char line[100], *names[100];
	int count = 0;
	struct stat st;

	for (int i = 1; i < argc; i++)
		printf("argument %s\n", argv[i]);
	for (char **variable = environ; *variable; variable++)
		printf("%s\n", *variable);
	while (fgets(line, sizeof line, stdin))
		printf("input %s", line);
	for (int i = 0; i < 50; i++) {
		snprintf(line, sizeof line, "many-%02d", i);
		FILE *file = fopen(line, "w");
		fprintf(file, "%d\n", i);
		fclose(file);
	}
	DIR *dir = opendir(".");
	long places[100];
	char *found[100];
	int entries = 0, right = 0;
	for (struct dirent *entry; places[entries] = telldir(dir), (entry = readdir(dir));)
		found[entries++] = strdup(entry->d_name);
	for (int i = entries; i-- > 0;) {
		seekdir(dir, places[i]);
		struct dirent *entry = readdir(dir);
		right += entry && !strcmp(entry->d_name, found[i]);
	}
	printf("seekdir %d\n", right == entries && entries >= 50);
	rewinddir(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		if (!strncmp(entry->d_name, "many-", 5))
			names[count++] = strdup(entry->d_name);
	closedir(dir);
	qsort(names, count, sizeof *names, by_name);
	long sum = 0;
	for (int i = 0; i < count; i++) {
		FILE *file = fopen(names[i], "r+");
		int number = -1;
		fscanf(file, "%d", &number);
		sum += number;
		fclose(file);
		unlink(names[i]);
	}
	printf("%d files, sum %ld, first %s, last %s\n", count, sum, names[0], names[count - 1]);
	printf("none: %d %d\n", open("none/x", O_RDONLY), errno == ENOENT);
	printf("out: %d %d\n", open("../../../etc/passwd", O_RDONLY), errno != 0);
	printf("stat: %d %d\n", stat("file", &st), S_ISREG(st.st_mode));
	char *memory = malloc(200 << 20);
	memset(memory, 5, 200 << 20);
	printf("memory %d\n", memory[123 << 20]);
	printf("too much: %d\n", malloc(3u << 30) != NULL);
	struct timespec wait = { 0, 2000000 };
	printf("sleep %d, time %d\n", nanosleep(&wait, 0), time(0) > 1600000000);
	printf("terminal %d\n", isatty(1));
	fflush(stdout);
	if (argc > 2)
		abort();
	return 42;
}
