/*
 * The reader of DNS replies, natively: `dns SEED ROUNDS`. Random replies against a naive model that
 * knows how they were made, the same with random damage, and random bytes. It must never read
 * behind the message, where a page begins that cannot be read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "dns.h"

static const char *const names[] = { "asked.example", "one.example", "two.example", "evil.test", "Asked.Example" };
#define NAMES 4

struct rr {
	unsigned owner, type, target; /* type: 0 CNAME, 1 A, 2 AAAA, 3 TXT, 4 A of another class */
	uint8_t data;
};

static uint8_t *message, *edge; /* one past it is nothing */
static size_t length;
static size_t places[NAMES];

static void byte(unsigned b)
{
	message[length++] = (uint8_t)b;
}

static void word(unsigned w)
{
	byte(w >> 8);
	byte(w & 0xff);
}

/* In whole, or a pointer to where it was before. */
static void put_name(unsigned which)
{
	const char *text = names[which];

	if (places[which] && rand() % 2) {
		word(0xc000 | (unsigned)places[which]);
		return;
	}
	places[which] = length;
	if (!which && rand() % 2)
		text = names[NAMES];
	while (*text) {
		size_t n = strcspn(text, ".");

		byte((unsigned)n);
		memcpy(message + length, text, n);
		length += n;
		text += n + (text[n] == '.');
	}
	byte(0);
}

static void put(const struct rr *rr, unsigned count)
{
	memset(places, 0, sizeof places);
	length = 0;
	word((unsigned)rand());
	word(0x8180);
	word(1);
	word(count);
	word(0);
	word(0);
	put_name(0);
	word(1);
	word(1);
	for (unsigned i = 0; i < count; i++) {
		static const unsigned types[] = { 5, 1, 28, 16, 1 };
		size_t at;

		put_name(rr[i].owner);
		word(types[rr[i].type]);
		word(rr[i].type == 4 ? 3 : 1);
		word(0);
		word(300);
		at = length;
		word(0);
		if (rr[i].type == 0)
			put_name(rr[i].target);
		else
			for (unsigned n = rr[i].type == 2 ? 16 : 4; n; n--)
				byte(rr[i].data);
		message[at] = (uint8_t)((length - at - 2) >> 8);
		message[at + 1] = (uint8_t)(length - at - 2);
	}
}

/* The addresses that the first CNAMEs lead to, each owner once more for each time it is come by. */
static unsigned model(const struct rr *rr, unsigned count, uint8_t *data)
{
	unsigned owner = 0, n = 0;

	for (int hop = 0; hop < 16; hop++) {
		int next = -1;

		for (unsigned i = 0; i < count; i++)
			if (rr[i].owner == owner && (rr[i].type == 1 || rr[i].type == 2) && n < DNS_ADDRESSES)
				data[n++] = rr[i].data;
			else if (rr[i].owner == owner && rr[i].type == 0 && next < 0)
				next = (int)rr[i].target;
		if (next < 0)
			break;
		owner = (unsigned)next;
	}
	return n;
}

static void differ(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static void round_(void)
{
	struct dns_answer answer;
	struct rr rr[12];
	unsigned count = (unsigned)rand() % 12, n;
	uint8_t data[DNS_ADDRESSES], *exact;

	for (unsigned i = 0; i < count; i++)
		rr[i] = (struct rr){ (unsigned)rand() % NAMES, (unsigned)rand() % 5, (unsigned)rand() % NAMES,
			(uint8_t)rand() };
	put(rr, count);
	n = model(rr, count, data);
	if (dns_read(message, length, &answer) != (n > 0))
		differ("whether there is an answer");
	if (n && (strcmp(answer.name, "asked.example") || answer.count != n))
		differ("name or count");
	for (unsigned i = 0; i < n; i++)
		if (answer.of[i].ip[0] != data[i])
			differ("addresses");
	/* Damaged, in memory that is just as long. */
	for (int i = rand() % 8; i >= 0; i--)
		message[(size_t)rand() % length] = (uint8_t)(rand() % 3 ? rand() : 0xc0);
	length = rand() % 2 ? (size_t)rand() % (length + 1) : length;
	exact = edge - length;
	memcpy(exact, message, length);
	if (dns_read(exact, length, &answer) &&
	    (!answer.count || answer.count > DNS_ADDRESSES || !memchr(answer.name, 0, sizeof answer.name)))
		differ("damaged");
	for (size_t i = 0; i < length; i++)
		exact[i] = (uint8_t)rand();
	if (length > 12 && rand() % 2)
		memcpy(exact, "\0\0\x81\x80\0\1\0\x10\0\0\0\0", 12);
	dns_read(exact, length, &answer);
}

int main(int argc, char **argv)
{
	message = malloc(65536);
	edge = mmap(NULL, 65536 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (edge == MAP_FAILED || mprotect(edge += 65536, 4096, PROT_NONE))
		differ("no memory");
	srand(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
	if (!dns_matches("a.b", "a.b") || dns_matches("a.b", "x.a.b") || !dns_matches("*.a.b", "x.a.b") ||
	    !dns_matches("*.a.b", "y.x.a.b") || dns_matches("*.a.b", "a.b") || dns_matches("*.a.b", "xa.b") ||
	    dns_matches("*.a.b", ".a.b.c"))
		differ("patterns");
	for (int i = argc > 2 ? atoi(argv[2]) : 1000; i > 0; i--)
		round_();
	free(message);
	return 0;
}
