/* Streams: modes, buffering, seeking, ungetc, errors, memory streams. */
#include "check.h"
#include <sys/socket.h>

static void modes(void)
{
	char text[32];
	FILE *f;

	NEED((f = fopen("f", "w+")));
	CHECK_EQ(fprintf(f, "line %d\nsecond\n", 1), 14);
	CHECK_EQ(fseek(f, 0, SEEK_SET), 0);
	CHECK(fgets(text, sizeof text, f) != NULL);
	CHECK_STR(text, "line 1\n");
	CHECK_EQ(ftell(f), 7);
	CHECK_EQ(fgetc(f), 's');
	CHECK_EQ(ungetc('S', f), 'S');
	CHECK(fgets(text, 4, f) != NULL);
	CHECK_STR(text, "Sec");
	CHECK_EQ(fread(text, 1, sizeof text, f), 4);
	CHECK(feof(f) && !ferror(f));
	clearerr(f);
	CHECK(!feof(f));
	CHECK_EQ(fclose(f), 0);
	NEED((f = fopen("f", "a+")));
	CHECK(fputs("third", f) >= 0);
	rewind(f);
	CHECK_EQ(fscanf(f, "%*s %*d %31s %31s", text, text), 2);
	CHECK_STR(text, "third");
	CHECK_EQ(fclose(f), 0);
	NEED((f = fopen("f", "r")));
	CHECK_EQ(fputc('x', f), EOF);
	CHECK(ferror(f));
	CHECK_EQ(fclose(f), 0);
	CHECK_ERRNO(fopen("f", "wx"), EEXIST);
	CHECK_ERRNO(fopen("missing", "r"), ENOENT);
	CHECK_ERRNO(fopen("f", "z"), EINVAL);
}

static void buffering(void)
{
	char buffer[1024], byte;
	FILE *f;
	int fd = -1;

	NEED((f = fopen("f", "w")) && (fd = open("f", O_RDONLY)) >= 0);
	CHECK_EQ(setvbuf(f, buffer, _IOFBF, sizeof buffer), 0);
	fputs("held back", f);
	CHECK_EQ(read(fd, &byte, 1), 0);
	CHECK_EQ(fflush(f), 0);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(fclose(f), 0);
	NEED((f = fopen("f", "w")));
	CHECK_EQ(setvbuf(f, NULL, _IONBF, 0), 0);
	fputc('u', f);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 1);
	NEED((f = freopen("f", "w", f)));
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	CHECK_EQ(fclose(f), 0);
	NEED((f = fopen("f", "w")));
	CHECK_EQ(setvbuf(f, NULL, _IOLBF, 1024), 0);
	fputs("no", f);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
	fputs("w\nand later", f);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 4);
	CHECK_EQ(fclose(f), 0);
	close(fd);
}

/* A stream that is not a terminal writes in few calls: a socket of datagrams keeps each apart. */
static void few_writes(void)
{
	static char datagram[65536];
	int ends[2];
	FILE *f;

	NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) && (f = fdopen(ends[0], "w")));
	for (int i = 0; i < 10000; i++)
		fputc('x', f);
	CHECK(read(ends[1], datagram, sizeof datagram) >= 4096);
	CHECK_EQ(fclose(f), 0);
	close(ends[1]);
}

static void large_and_lines(void)
{
	char *line = NULL;
	size_t room = 0;
	FILE *f;
	long sum = 0;

	NEED((f = fopen("f", "w+")));
	for (int i = 0; i < 20000; i++)
		fprintf(f, "%d\n", i);
	rewind(f);
	while (getline(&line, &room, f) > 0)
		sum += atol(line);
	CHECK_EQ(sum, 199990000);
	free(line);
	CHECK_EQ(fseeko(f, 0x140000000, SEEK_SET), 0);
	CHECK_EQ(fputc('e', f), 'e');
	CHECK_EQ(ftello(f), 0x140000001);
	CHECK_EQ(fclose(f), 0);
}

static void in_memory(void)
{
	char text[] = "12 ab 0x1f", word[8], *made = NULL;
	size_t size = 0;
	int a, b;
	FILE *f = fmemopen(text, strlen(text), "r");

	NEED(f);
	CHECK_EQ(fscanf(f, "%d %7s %i", &a, word, &b), 3);
	CHECK_EQ(a + b, 43);
	CHECK_STR(word, "ab");
	fclose(f);
	NEED((f = open_memstream(&made, &size)));
	for (int i = 0; i < 1000; i++)
		fputs("0123456789", f);
	CHECK_EQ(fclose(f), 0);
	CHECK_EQ(size, 10000);
	CHECK_EQ(made[9999], '9');
	free(made);
}

int main(void)
{
	modes();
	buffering();
	few_writes();
	large_and_lines();
	in_memory();
	CHECK_EQ(remove("f"), 0);
	return check_done();
}
