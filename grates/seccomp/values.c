/* How calls, flags, values and errors are written in a policy. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

const struct lind_syscall *call_named(const char *name)
{
	/* Names of the C library that the kernel has another name for. */
	static const char *const others[][2] = {
		{ "fstatat", "newfstatat" },
		{ "fstatat64", "newfstatat" },
		{ "pread", "pread64" },
		{ "pwrite", "pwrite64" },
		{ "sigaction", "rt_sigaction" },
		{ "sigprocmask", "rt_sigprocmask" },
		{ "umount", "umount2" },
	};
	const struct lind_syscall *row;

	for (size_t i = 0; (row = lind_syscall_at(i)); i++)
		if (!strcmp(row->name, name))
			return row;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(others[i][0], name))
			return call_named(others[i][1]);
	return NULL;
}

/* Pointers are 32 bits in a guest, and the kernel reads an argument of fcntl, ioctl and similar
 * calls that may be a pointer as an int. */
bool narrow_kind(enum lind_kind kind)
{
	return kind != LIND_LEN && kind != LIND_OFF && kind != LIND_LONG && kind != LIND_ULONG;
}

bool signed_kind(enum lind_kind kind)
{
	return kind == LIND_FD || kind == LIND_DIRFD || kind == LIND_INT || kind == LIND_PID || kind == LIND_SIGNAL ||
	    kind == LIND_LONG || kind == LIND_OFF;
}

struct condition compare(const struct lind_param *param, unsigned arg)
{
	return (struct condition){
		.arg = (uint8_t)arg, .narrow = narrow_kind(param->kind), .has_sign = signed_kind(param->kind)
	};
}

/* Both ends are values as the argument is taken: extended to 64 bits by its sign, if it has one. */
void set_within(struct condition *c, uint64_t low, uint64_t high)
{
	c->op = WITHIN;
	c->bias = c->has_sign ? UINT64_C(1) << 63 : 0;
	c->a = low ^ c->bias;
	c->b = (high ^ c->bias) - c->a;
}

bool has_path(const struct lind_syscall *row)
{
	for (int i = 0; i < row->count; i++)
		if (row->args[i].kind == LIND_PATH)
			return true;
	return false;
}

bool has_address(const struct lind_syscall *row)
{
	for (int i = 0; i < row->count; i++)
		if (row->args[i].layout == LIND_LAYOUT_SOCKADDR && row->args[i].kind == LIND_IN)
			return true;
	return row->nr == SYS_sendmsg || row->nr == SYS_sendmmsg;
}

static const struct lind_names *names_of(const struct lind_param *param)
{
	return param->kind == LIND_SIGNAL ? &lind_names_Signals : param->names;
}

static bool one_named(const char *text, size_t length, const struct lind_param *param, uint64_t *value)
{
	static const struct {
		const char *name;
		uint32_t value;
	} others[] = {
		{ "AT_FDCWD", (uint32_t)AT_FDCWD },
		{ "O_RDONLY", 0 },
		{ "O_ACCMODE", 3 },
		{ "F_OK", 0 },
		{ "PROT_NONE", 0 },
		{ "SOCK_TYPE", 0xf },
		{ "CLONE_NEW", 0x7e020000 },
	};
	char digits[32];
	char *end;

	for (const struct lind_name *row = names_of(param) ? names_of(param)->rows : NULL; row && row->name; row++)
		if (strlen(row->name) == length && !memcmp(row->name, text, length)) {
			*value = row->value;
			return true;
		}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strlen(others[i].name) == length && !memcmp(others[i].name, text, length)) {
			*value = (uint64_t)(int32_t)others[i].value;
			return true;
		}
	if (!length || length >= sizeof digits || !isdigit((unsigned char)*text))
		return false;
	memcpy(digits, text, length);
	digits[length] = 0;
	errno = 0;
	*value = strtoull(digits, &end, 0);
	return !*end && !errno;
}

/* NAME, or NAME|NAME|... */
bool value_named(const char *text, const struct lind_param *param, uint64_t *value)
{
	uint64_t part;

	*value = 0;
	for (;;) {
		size_t length = strcspn(text, "|");

		if (!one_named(text, length, param, &part))
			return false;
		*value |= part;
		if (!text[length])
			return true;
		text += length + 1;
	}
}
