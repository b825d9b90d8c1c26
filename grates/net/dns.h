/* Parses DNS messages. It needs only the bytes of a message, and is tested natively. */
#ifndef NET_DNS_H
#define NET_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_NAME      256
#define DNS_ADDRESSES 64
struct dns_answer {
	char name[DNS_NAME];  /* that was asked for, in lower case without the last dot */
	unsigned count;
	struct {
		uint8_t ip[16];
		bool six;
		uint32_t ttl;
	} of[DNS_ADDRESSES];
};
/* Reads a reply: whose name was asked for, and the addresses that its answers lead to from
 * there. false if it is no such reply. */
bool dns_read(const uint8_t *message, size_t length, struct dns_answer *answer);
/* Reads a question, as a client sends it: the name that is asked for. false if it is no such
 * question. */
bool dns_question(const uint8_t *message, size_t length, char asked[DNS_NAME]);
bool dns_matches(const char *pattern, const char *name);

#endif
