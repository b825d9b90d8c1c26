/* The handlers that cost.py has in Rust. */
#include <arpa/inet.h>
#include <lind/grate.h>
#include <lind/guard.h>
#include <stdbool.h>

LIND_HANDLE(answers, getpid);
LIND_HANDLE(observes, geteuid);
LIND_HANDLE(observes, getegid);
LIND_HANDLE(alters, stat);
LIND_HANDLE(alters, connect);

static int64_t on_getpid(const struct lind_call *cx)
{
	(void)cx;
	return 10;
}

static int64_t on_geteuid(const struct lind_call *cx)
{
	return lind_pass(cx);
}

static int64_t on_getegid(const struct lind_call *cx)
{
	return lind_forward(cx);
}

static int64_t on_stat(const struct lind_call *cx, const char *path, struct lind_arg buf)
{
	return lind_path_below(path, "/secret") ? -EACCES : lind_forward_stat(cx, path, buf);
}

/* Hosts on the loopback may be reached. */
static int64_t on_connect(const struct lind_call *cx, int fd, const struct sockaddr *to, socklen_t length)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)to;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)to;
	bool loopback = to &&
	    ((length >= sizeof *in && to->sa_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 == 127) ||
		(length >= sizeof *in6 && to->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr)));

	return loopback ? lind_forward_connect(cx, fd, to, length) : -EACCES;
}

int main(int argc, char **argv)
{
	lind_options(NULL, 0, "Does what the one in Rust does.", &argc, &argv);
	return lind_grate_main(argc, argv);
}
