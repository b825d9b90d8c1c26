/* C kernel: what text-handling programs ask of the C library: lengths, searches, copies,
 * comparisons, formatting. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 20000
#define LOOPS 300
#define LINE  128

static char text[WORDS * 16], copy[WORDS * 16];

/* Words of 2 to 12 letters; a line of about eight words. */
static void make_text(void)
{
	char *to = text;

	for (int i = 0; i < WORDS; i++) {
		int letters = 2 + (int)(bench_random() % 11);

		for (int n = 0; n < letters; n++)
			*to++ = (char)('a' + bench_random() % 26);
		*to++ = i % 8 == 7 ? '\n' : ' ';
	}
	*to = 0;
}

static unsigned long long of_line(const char *line, unsigned number)
{
	char numbered[LINE + 16];
	unsigned long long sum = strlen(line);
	const char *found = strstr(line, "th");

	if (found)
		sum += (unsigned long long)(found - line);
	found = strrchr(line, ' ');
	if (found && strcmp(found, " m") > 0)
		sum += 1;
	snprintf(numbered, sizeof numbered, "%u:%.*s", number, LINE, line);
	return sum + strtoul(numbered, NULL, 10) + (unsigned char)numbered[strlen(numbered) / 2];
}

static unsigned long long pass(void)
{
	unsigned long long sum = 0;
	unsigned number = 0;
	char *line, *end;
	size_t size = strlen(text);

	memcpy(copy, text, size + 1);
	for (line = copy; (end = memchr(line, '\n', (size_t)(copy + size - line))); line = end + 1) {
		*end = 0;
		sum = sum * 31 + of_line(line, number++);
	}
	return sum;
}

int main(void)
{
	unsigned long long sum = 0;
	long long start;

	make_text();
	start = gettimens();
	for (int loop = 0; loop < LOOPS; loop++) {
		sum += pass();
		text[loop] = 'x';
	}
	emit_since("CPU strings", WORDS, LOOPS, start);
	bench_expect("strings", sum, 0x3da76628859a648f);
	return 0;
}
