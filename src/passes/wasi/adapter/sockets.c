/* Implements calls on sockets that the program was given: WASI makes none. */
#include "wasi.h"

enum {
	SOCK_NONBLOCK = 04000,
	SOCK_CLOEXEC = 02000000,
	MSG_PEEK = 2,
	MSG_WAITALL = 0x100,
	MSG_TRUNC = 0x20,
	MSG_NOSIGNAL = 0x4000
};

/* The kernel's layout: pointers and lengths of 64 bits, unlike libc's own structure for cages. */
struct message {
	uint32_t name, name_length, vectors, count, control, control_length, flags;
};

EXPORT(sock_accept) result_t sock_accept(fd_t fd, uint32_t flags, fd_t *to)
{
	int64_t got = CALL4(SYS_ACCEPT4, (int32_t)fd, 0, 0, SOCK_CLOEXEC | (flags & FD_NONBLOCK ? SOCK_NONBLOCK : 0));

	if (got >= 0)
		*to = (fd_t)got;
	return error_of(got);
}

EXPORT(sock_recv)
result_t sock_recv(fd_t fd, uint32_t vectors, uint32_t count, uint32_t flags, uint32_t *bytes, uint16_t *said)
{
	struct message message = { .vectors = vectors, .count = count };
	int64_t got = CALL3(
	    SYS_RECVMSG, (int32_t)fd, address(&message), (flags & 1 ? MSG_PEEK : 0) | (flags & 2 ? MSG_WAITALL : 0));

	if (got >= 0) {
		*bytes = (uint32_t)got;
		*said = message.flags & MSG_TRUNC ? 1 : 0;
	}
	return error_of(got);
}

EXPORT(sock_send) result_t sock_send(fd_t fd, uint32_t vectors, uint32_t count, uint32_t flags, uint32_t *bytes)
{
	struct message message = { .vectors = vectors, .count = count };
	int64_t sent = flags ? -E_INVAL : CALL3(SYS_SENDMSG, (int32_t)fd, address(&message), MSG_NOSIGNAL);

	if (sent >= 0)
		*bytes = (uint32_t)sent;
	return error_of(sent);
}

EXPORT(sock_shutdown) result_t sock_shutdown(fd_t fd, uint32_t how)
{
	return how < 1 || how > 3 ? WASI_INVAL : error_of(CALL2(SYS_SHUTDOWN, (int32_t)fd, how - 1));
}
