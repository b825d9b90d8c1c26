/* Operations on names: made, removed, moved, listed. */
#include <dirent.h>
#include <sys/syscall.h>
#include "operations.h"

/* Never sticky: what links in such a directory may do is a setting of the host. */
static mode_t any_mode(void)
{
	return any(2) ? 0755 : any(07777 + 1) & 06777;
}

static void op_make(void)
{
	char path[PATH_ROOM], target[PATH_ROOM];
	int start, dir = any_start(&start);
	mode_t mode = any_mode();

	any_path(path);
	any_path(target);
	/* Behind a link that leads up, a path could leave the tree, which is another file system's
	 * business here. */
	if (!*target || strstr(target, ".."))
		return;
	switch (any(5)) {
	case 0:
		did(sys(symlinkat(target, dir, path)), "symlinkat(\"%s\", %d, \"%s\")", target, start, path);
		break;
	case 1:
		did(sys(mknodat(dir, path, S_IFIFO | mode, 0)), "mknodat(%d, \"%s\", S_IFIFO | %#o)", start, path,
		    mode);
		break;
	default:
		did(sys(mkdirat(dir, path, mode)), "mkdirat(%d, \"%s\", %#o)", start, path, mode);
	}
	changed();
}

static void op_remove(void)
{
	char path[PATH_ROOM];
	int start, dir = any_start(&start), flags = any(3) ? 0 : AT_REMOVEDIR;

	any_path(path);
	did(sys(unlinkat(dir, path, flags)), "unlinkat(%d, \"%s\", %d)", start, path, flags);
	changed();
}

static void op_rename(void)
{
	char path[PATH_ROOM], other[PATH_ROOM];
	int start, start2, dir = any_start(&start), dir2 = any_start(&start2);
	unsigned flags = any(3) ? 0 : any(3);

	any_path(path);
	any_path(other);
	did(any_path_error(sys(syscall(SYS_renameat2, dir, path, dir2, other, flags))),
	    "renameat2(%d, \"%s\", %d, \"%s\", %u)", start, path, start2, other, flags);
	changed();
}

/* As root: the host may have fs.protected_hardlinks. */
static void op_link(void)
{
	char path[PATH_ROOM], other[PATH_ROOM];
	int start, start2, dir = any_start(&start), dir2 = any_start(&start2), flags = any(2) ? AT_SYMLINK_FOLLOW : 0;

	any_path(path);
	any_path(other);
	if (geteuid())
		return;
	if (dir != AT_FDCWD && !any(3)) {
		*path = 0;
		flags = AT_EMPTY_PATH;
	}
	did(any_path_error(sys(linkat(dir, path, dir2, other, flags))), "linkat(%d, \"%s\", %d, \"%s\", %d)", start,
	    path, start2, other, flags);
	changed();
}

static void op_list(void)
{
	char path[PATH_ROOM], *names[MANY];
	int start, dir = any_start(&start), n, fd;
	uint64_t hash = 0;

	any_path(path);
	fd = openat(dir, path, O_RDONLY | O_DIRECTORY);
	n = fd < 0 ? -errno : names_of(fd, names);
	did(n, "names of (%d, \"%s\")", start, path);
	for (int i = 0; i < n; i++) {
		hash = hash_bytes(hash, names[i], strlen(names[i]) + 1);
		free(names[i]);
	}
	if (n > 0)
		also("%016llx", (unsigned long long)hash);
}

/* While a directory is read, a name is made or removed in it: of the others each is there once. */
static void op_list_while_it_changes(void)
{
	bool seen[170] = { false };
	char name[20];
	unsigned which = any(170), some = any(100), read = 0, at, twice = 0;
	bool make = any(2);
	DIR *d = opendir("m");
	struct dirent *e;
	uint64_t hash = 0;
	int64_t r;

	snprintf(name, sizeof name, "m/f%03u", which);
	while (d && (e = readdir(d))) {
		if (read++ == some) {
			r = sys(make ? open(name, O_CREAT | O_WRONLY, 0644) : unlink(name));
			if (make && r >= 0)
				close((int)r);
			did(r < 0 ? r : 0, "%s %s while the directory is read", make ? "create" : "unlink", name);
			changed();
		}
		if (sscanf(e->d_name, "f%03u", &at) != 1 || at >= 170 || at == which)
			continue;
		twice += seen[at];
		seen[at] = true;
	}
	if (!d)
		return;
	closedir(d);
	for (at = 0; at < 170; at++)
		hash = hash_bytes(hash, &seen[at], 1);
	did(twice, "names twice");
	also("%016llx", (unsigned long long)hash);
}

static void op_readlink(void)
{
	char path[PATH_ROOM], text[PATH_ROOM];
	int start, dir = any_start(&start);
	int64_t r;

	any_path(path);
	r = sys(readlinkat(dir, path, text, any(5) ? sizeof text : 1 + any(5)));
	did(r, "readlinkat(%d, \"%s\")", start, path);
	if (r > 0)
		also("%.*s", (int)r, text);
}

void operation_on_names(void)
{
	switch (any(14)) {
	case 0:
	case 1:
	case 2:
		op_make();
		break;
	case 3:
	case 4:
	case 5:
		op_remove();
		break;
	case 6:
	case 7:
	case 8:
		op_rename();
		break;
	case 9:
	case 10:
		op_link();
		break;
	case 11:
		op_readlink();
		break;
	case 12:
		op_list();
		break;
	default:
		op_list_while_it_changes();
	}
}
