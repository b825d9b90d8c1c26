/* inet_pton and its like, getaddrinfo with numbers only, byte order. */
#include "check.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

int main(void)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *found;
	unsigned char bytes[16];
	char text[INET6_ADDRSTRLEN], host[64], service[16];
	struct in_addr v4;

	CHECK_EQ(inet_pton(AF_INET, "192.0.2.33", bytes), 1);
	CHECK_EQ(memcmp(bytes, "\xc0\x00\x02\x21", 4), 0);
	CHECK_EQ(inet_pton(AF_INET, "192.0.2", bytes), 0);
	CHECK_EQ(inet_pton(AF_INET6, "2001:db8::1:0:0:5", bytes), 1);
	CHECK_EQ(bytes[15], 5);
	CHECK_STR(inet_ntop(AF_INET6, bytes, text, sizeof text), "2001:db8::1:0:0:5");
	CHECK_EQ(inet_pton(AF_INET6, "::ffff:1.2.3.4", bytes), 1);
	CHECK_EQ(bytes[12], 1);
	CHECK_ERRNO(inet_pton(99, "x", bytes), EAFNOSUPPORT);
	CHECK_EQ(inet_aton("127.1", &v4), 1);
	CHECK_EQ(v4.s_addr, htonl(0x7f000001));
	CHECK_STR(inet_ntoa(v4), "127.0.0.1");
	CHECK_EQ(htons(0x1234), 0x3412);
	CHECK_EQ(ntohl(0x01020304), 0x04030201);

	NEED(getaddrinfo("127.0.0.1", "8080", &hints, &found) == 0);
	CHECK_EQ(found->ai_family, AF_INET);
	CHECK_EQ(((struct sockaddr_in *)(void *)found->ai_addr)->sin_port, htons(8080));
	CHECK_EQ(getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host, service, sizeof service,
		     NI_NUMERICHOST | NI_NUMERICSERV),
	    0);
	CHECK_STR(host, "127.0.0.1");
	CHECK_STR(service, "8080");
	freeaddrinfo(found);
	CHECK_EQ(getaddrinfo("not a number", "80", &hints, &found), EAI_NONAME);
	CHECK_EQ(getaddrinfo("::1", "80", &hints, &found), 0);
	CHECK_EQ(found->ai_family, AF_INET6);
	freeaddrinfo(found);
	return check_done();
}
