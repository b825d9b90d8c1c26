/* Runs in a child on its parent's memory, so nothing here may leave anything behind in it; the
 * ids are changed by the calls themselves, because the C library's functions signal threads. */
#include "identity.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HAS_CAPABILITIES = 1, NO_NEW_PRIVILEGES = 2 };
enum { LAST_CAPABILITY = 40, CAPABILITY_VERSION = 0x20080522 };

struct identity {
	uint32_t flags, uid, gid, umask, capabilities[2], ambient[2], groups, limits;
};

/* A hard limit above the cage's own stays at that: limits are part of the walls. */
static int set_limit(const uint32_t *words)
{
	struct rlimit own,
	    limit = {
		    .rlim_cur = words[1] | (rlim_t)words[2] << 32,
		    .rlim_max = words[3] | (rlim_t)words[4] << 32,
	    };

	if (getrlimit((int)words[0], &own))
		return -1;
	if (limit.rlim_max > own.rlim_max)
		limit.rlim_max = own.rlim_max;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return (int)syscall(SYS_prlimit64, 0, words[0], &limit, NULL);
}

/* No program that is run later can have more than these. */
static void bound_capabilities(const uint32_t wanted[2])
{
	for (unsigned long one = 0; one <= LAST_CAPABILITY; one++)
		if (!(wanted[one / 32] >> one % 32 & 1))
			prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
}

/* A capability that the cage does not have is left out. */
static int set_capabilities(const uint32_t wanted[2], const uint32_t ambient[2])
{
	uint32_t header[2] = { CAPABILITY_VERSION, 0 }, own[6], sets[6] = { 0 };

	if (syscall(SYS_capget, header, own))
		return -1;
	for (int half = 0; half < 2; half++) {
		sets[3 * half] = sets[3 * half + 1] = own[3 * half + 1] & wanted[half];
		sets[3 * half + 2] = sets[3 * half] & ambient[half];
	}
	if (syscall(SYS_capset, header, sets))
		return -1;
	for (unsigned long one = 0; one <= LAST_CAPABILITY; one++)
		if (sets[3 * (one / 32) + 2] >> one % 32 & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one, 0, 0))
			return -1;
	return 0;
}

int become(const uint32_t *words, uint32_t count)
{
	const struct identity *identity = (const void *)words;
	const uint32_t *groups = (const uint32_t *)(identity + 1), *limits;
	uint32_t fixed = sizeof *identity / sizeof *words;
	bool bounded, keeps;

	if (count < fixed || identity->groups > count - fixed ||
	    identity->limits != (count - fixed - identity->groups) / 5) {
		errno = EINVAL;
		return -1;
	}
	bounded = identity->flags & HAS_CAPABILITIES;
	limits = groups + identity->groups;
	for (uint32_t n = 0; n < identity->limits; n++)
		if (set_limit(limits + 5 * (size_t)n))
			return -1;
	umask(identity->umask);
	if (bounded)
		bound_capabilities(identity->capabilities);
	keeps = bounded && identity->uid && (identity->ambient[0] || identity->ambient[1]);
	/* The change of the user would take all. The next program has this bit no more. */
	if (keeps && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
		return -1;
	/* An ordinary user has no right to, and only its own groups anyway. */
	if (syscall(SYS_setgroups, identity->groups, groups) && (errno != EPERM || identity->groups))
		return -1;
	if (syscall(SYS_setresgid, identity->gid, identity->gid, identity->gid) ||
	    syscall(SYS_setresuid, identity->uid, identity->uid, identity->uid))
		return -1;
	if ((keeps && set_capabilities(identity->ambient, identity->ambient)) ||
	    (bounded && !identity->uid && set_capabilities(identity->capabilities, identity->ambient)))
		return -1;
	if (identity->flags & NO_NEW_PRIVILEGES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return 0;
}

int enter_directory(const char *path)
{
	char part[PATH_MAX];

	if (!chdir(path))
		return 0;
	if (errno != ENOENT || strlen(path) >= sizeof part)
		return -1;
	strcpy(part, path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(part, 0755);
		*slash = '/';
	}
	mkdir(part, 0755);
	return chdir(path);
}

/* Whether another name may be tried. */
static bool is_missing(void)
{
	return errno == ENOENT || errno == ENOTDIR;
}

static void run_names(const char *folder, size_t length, char **argv, char **envp)
{
	static const char suffixes[3][7] = { "", ".cwasm", ".wasm" };
	char name[PATH_MAX];

	for (int n = 0; n < 3; n++) {
		int size = snprintf(
		    name, sizeof name, "%.*s%s%s%s", (int)length, folder, length ? "/" : "", argv[0], suffixes[n]);

		if (size < 0 || (size_t)size >= sizeof name) {
			errno = ENAMETOOLONG;
			return;
		}
		execve(name, argv, envp);
		if (!is_missing())
			return;
	}
}

void run_by_path(char **argv, char **envp)
{
	const char *path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	bool denied = false;

	if (strchr(argv[0], '/')) {
		run_names("", 0, argv, envp);
		return;
	}
	for (char **entry = envp; *entry; entry++)
		if (!strncmp(*entry, "PATH=", 5))
			path = *entry + 5;
	for (;;) {
		size_t length = strcspn(path, ":");

		run_names(length ? path : ".", length ? length : 1, argv, envp);
		denied |= errno == EACCES;
		if (!is_missing() && errno != EACCES)
			return;
		if (!path[length])
			break;
		path += length + 1;
	}
	errno = denied ? EACCES : ENOENT;
}
