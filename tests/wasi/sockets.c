/* Sockets are what a program is given: here as descriptor 0. */
#include <stdio.h>
#include <wasi/api.h>

int main(void)
{
	char buffer[64];
	__wasi_iovec_t in = { (uint8_t *)buffer, 5 };
	__wasi_ciovec_t out = { (const uint8_t *)"answer", 6 };
	__wasi_size_t n = 0;
	__wasi_roflags_t flags = 0;
	__wasi_fdstat_t st;
	__wasi_subscription_t s = { .userdata = 5, .u = { .tag = __WASI_EVENTTYPE_FD_READ } };
	__wasi_event_t e;

	printf("fdstat %d", __wasi_fd_fdstat_get(0, &st));
	printf(" type %d\n", st.fs_filetype);
	printf("poll %d", __wasi_poll_oneoff(&s, &e, 1, &n));
	printf(" events %d error %d bytes %d\n", (int)n, e.error, (int)e.fd_readwrite.nbytes);
	printf("peek %d", __wasi_sock_recv(0, &in, 1, __WASI_RIFLAGS_RECV_PEEK, &n, &flags));
	printf(" %d: %.*s\n", (int)n, (int)n, buffer);
	printf("recv %d", __wasi_sock_recv(0, &in, 1, 0, &n, &flags));
	printf(" %d: %.*s\n", (int)n, (int)n, buffer);
	printf("send %d", __wasi_sock_send(0, &out, 1, 0, &n));
	printf(" %d\n", (int)n);
	printf("shutdown %d %d\n", __wasi_sock_shutdown(0, 2), __wasi_sock_shutdown(0, 4));
	printf("of no socket %d\n", __wasi_sock_send(1, &out, 1, 0, &n));
	return 0;
}
