/*
 * Checks a client's rights to a file that the grate has found for it. The grate opens files with
 * its own rights. So where the call itself is not made as the client, the kernel, or a grate below
 * that keeps the file, is asked about the client's rights first.
 */
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>
#include "walk.h"

#define EFFECTIVE_IDS 0x200 /* AT_EACCESS, which libc has as a number of its own */

int64_t lind_client_may(uint64_t target, int object, int mode)
{
	struct lind_arg none = { 0, target };

	return lind_call(SYS_faccessat2, target, number((uint64_t)object), lind_mine(""), number((uint64_t)mode),
	    number(EFFECTIVE_IDS | AT_EMPTY_PATH), none, none);
}

bool lind_client_can(uint64_t target, unsigned capability)
{
	struct {
		uint32_t version, pid;
	} header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct {
		uint32_t effective, permitted, inheritable;
	} sets[2] = { 0 };
	struct lind_arg none = { 0, target };

	return lind_call(SYS_capget, target, lind_mine(&header), lind_mine(sets), none, none, none, none) >= 0 &&
	    sets[capability / 32].effective & 1u << capability % 32;
}

/* An id that does not exist changes nothing, and the answer is the one that counts. */
uint32_t lind_client_file_id(uint64_t target, bool group)
{
	struct lind_arg none = { 0, target };

	return (uint32_t)lind_call(group ? SYS_setfsgid : SYS_setfsuid, target, (struct lind_arg){ UINT32_MAX, target },
	    none, none, none, none, none);
}

static bool owns(uint64_t target, const struct stat *st)
{
	return st->st_uid == lind_client_file_id(target, false) || lind_client_can(target, CAP_FOWNER);
}

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* xattr_permission of Linux, with the checks behind it for each kind of name. */
int64_t lind_client_may_attribute(uint64_t target, const struct lind_place *place, const char *name, bool write)
{
	mode_t mode = place->st.st_mode;

	if (begins(name, "trusted."))
		return lind_client_can(target, CAP_SYS_ADMIN) ? 0 : write ? -EPERM : -ENODATA;
	if (begins(name, "security."))
		return !write ||
			lind_client_can(target, strcmp(name, "security.capability") ? CAP_SYS_ADMIN : CAP_SETFCAP)
		    ? 0
		    : -EPERM;
	if (begins(name, "system."))
		return !write || owns(target, &place->st) ? 0 : -EPERM;
	if (begins(name, "user.")) {
		if (!S_ISREG(mode) && !S_ISDIR(mode))
			return write ? -EPERM : -ENODATA;
		if (S_ISDIR(mode) && mode & S_ISVTX && write && !owns(target, &place->st))
			return -EPERM;
	}
	return lind_client_may(target, place->object, write ? W_OK : R_OK);
}
