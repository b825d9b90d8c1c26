/* Reads links. */
#include "links.h"

int64_t read_link(uint64_t cage, const char *path, char target[PATH_MAX], bool inside)
{
	struct lind_arg none = { 0, cage };
	struct lind_call ask = { .nr = SYS_readlink,
		.caller = cage,
		.target = cage,
		.args = { lind_mine(path), lind_mine(target), { PATH_MAX - 1, cage }, none, none, none } };
	int64_t r = inside ? enter(&ask) : lind_forward(&ask);

	target[r > 0 ? r : 0] = 0;
	return r;
}

int64_t fd_link(uint64_t cage, uint32_t fd, char target[PATH_MAX])
{
	char link[32] = "/proc/self/fd/";
	unsigned at = 14, digits = 1;

	for (unsigned n = fd; n >= 10; n /= 10)
		digits++;
	for (unsigned i = digits; i-- > 0; fd /= 10)
		link[at + i] = (char)('0' + fd % 10);
	return read_link(cage, link, target, false);
}
