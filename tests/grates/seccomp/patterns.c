/* glob() against a naive one on random patterns and texts; address patterns by examples. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"

static bool naive(const char *p, const char *t)
{
	if (p[0] == '*' && p[1] == '*')
		return naive(p + 2, t) || (*t && naive(p, t + 1));
	if (*p == '*')
		return naive(p + 1, t) || (*t && *t != '/' && naive(p, t + 1));
	if (!*p || !*t)
		return *p == *t;
	return (*p == *t || (*p == '?' && *t != '/')) && naive(p + 1, t + 1);
}

static bool matches(const char *pattern, const char *text, unsigned port)
{
	struct address a;
	struct sockaddr_storage to;
	struct sockaddr_in *in = (void *)&to;
	struct sockaddr_in6 *in6 = (void *)&to;

	memset(&to, 0, sizeof to);
	if (parse_address(pattern, &a))
		abort();
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		return address_matches(&a, &to, sizeof *in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)port);
	return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1 && address_matches(&a, &to, sizeof *in6);
}

int main(void)
{
	static const struct {
		const char *pattern, *address;
		unsigned port;
		bool wanted;
	} rows[] = {
		{ "10.0.0.0/8", "10.1.2.3", 5, true },
		{ "10.0.0.0/8", "11.1.2.3", 5, false },
		{ "10.16.0.0/12:80", "10.31.0.1", 80, true },
		{ "10.16.0.0/12:80", "10.32.0.1", 80, false },
		{ "10.16.0.0/12:80", "10.31.0.1", 81, false },
		{ "*:53", "9.9.9.9", 53, true },
		{ "*:53", "2001::1", 53, true },
		{ "*", "1.2.3.4", 1, true },
		{ "[2001:db8::]/32:1-5", "2001:db8:1::1", 3, true },
		{ "[2001:db8::]/32:1-5", "2001:db9::", 3, false },
		{ "0.0.0.0/0", "1.2.3.4", 0, true },
		{ "0.0.0.0/0", "::1", 0, false },
		{ "1.2.3.4", "::ffff:1.2.3.4", 9, true },
		{ "[::]/0", "1.2.3.4", 9, false },
		{ "unix:/x", "1.2.3.4", 9, false },
	};
	static const char *const broken[] = { "", "1.2.3", "1.2.3.4/33", "[::1", "[::1]/129", "1.2.3.4:70000",
		"1.2.3.4:5-4", "unix:x", "x", "*/8", "1.2.3.4 ", "1.2.3.4:" };
	struct address a;

	srandom(7);
	for (int i = 0; i < 3000000; i++) {
		char pattern[12], text[14];
		size_t n = (size_t)random() % 11, m = (size_t)random() % 13;

		for (size_t k = 0; k < n; k++)
			pattern[k] = "ab/***?"[random() % 7];
		for (size_t k = 0; k < m; k++)
			text[k] = "ab/a/"[random() % 5];
		pattern[n] = text[m] = 0;
		if (glob(pattern, text) != naive(pattern, text)) {
			printf("%s %s: naively %d\n", pattern, text, naive(pattern, text));
			return 1;
		}
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (matches(rows[i].pattern, rows[i].address, rows[i].port) != rows[i].wanted)
			return printf("%s %s\n", rows[i].pattern, rows[i].address), 1;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
		if (!parse_address(broken[i], &a))
			return printf("%s is taken\n", broken[i]), 1;
	puts("good");
	return 0;
}
