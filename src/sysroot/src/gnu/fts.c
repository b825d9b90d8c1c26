#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>

struct _fts {
	FTSENT *current, *children;
	FTSENT roots; /* the parent of those that were asked for */
	dev_t device;
	int options, names_only;
	int (*compare)(const FTSENT **, const FTSENT **);
};

static int dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static FTSENT *make(FTSENT *parent, const char *name)
{
	size_t above = parent->fts_level < 0 ? 0 : parent->fts_pathlen, length = strlen(name);
	if (above && parent->fts_path[above-1] == '/') above--;
	size_t before = parent->fts_level < 0 ? 0 : above + 1;
	FTSENT *e = calloc(1, sizeof *e + sizeof *e->fts_statp + before + length + 1);
	if (!e) return 0;
	e->fts_statp = (struct stat *)(e + 1);
	e->fts_path = e->fts_accpath = (char *)(e->fts_statp + 1);
	if (before) {
		memcpy(e->fts_path, parent->fts_path, above);
		e->fts_path[above] = '/';
	}
	memcpy(e->fts_path + before, name, length + 1);
	e->fts_name = e->fts_path + before;
	e->fts_namelen = length;
	e->fts_pathlen = before + length;
	e->fts_parent = parent;
	e->fts_level = parent->fts_level + 1;
	e->fts_instr = FTS_NOINSTR;
	return e;
}

static void discard(FTSENT *e)
{
	while (e) {
		FTSENT *next = e->fts_link;
		free(e);
		e = next;
	}
}

static int look(FTS *f, FTSENT *e, int follow)
{
	struct stat *s = e->fts_statp;
	e->fts_errno = 0;
	if (f->options & FTS_LOGICAL || follow) {
		if (stat(e->fts_accpath, s)) {
			int error = errno;
			if (!lstat(e->fts_accpath, s)) return FTS_SLNONE;
			e->fts_errno = error;
		}
	} else if (lstat(e->fts_accpath, s)) {
		e->fts_errno = errno;
	}
	if (e->fts_errno) {
		memset(s, 0, sizeof *s);
		return FTS_NS;
	}
	e->fts_dev = s->st_dev;
	e->fts_ino = s->st_ino;
	e->fts_nlink = s->st_nlink;
	if (S_ISLNK(s->st_mode)) return FTS_SL;
	if (S_ISREG(s->st_mode)) return FTS_F;
	if (!S_ISDIR(s->st_mode)) return FTS_DEFAULT;
	if (e->fts_level > 0 && dots(e->fts_name)) return FTS_DOT;
	for (FTSENT *above = e->fts_parent; above->fts_level >= 0; above = above->fts_parent)
		if (above->fts_ino == e->fts_ino && above->fts_dev == e->fts_dev) {
			e->fts_cycle = above;
			return FTS_DC;
		}
	return FTS_D;
}

static FTSENT *sorted(FTS *f, FTSENT *list)
{
	size_t n = 0, i = 0;
	for (FTSENT *e = list; e; e = e->fts_link) n++;
	if (!f->compare || n < 2) return list;
	FTSENT **all = malloc(n * sizeof *all);
	if (!all) return list;
	for (FTSENT *e = list; e; e = e->fts_link) all[i++] = e;
	qsort(all, n, sizeof *all, (int (*)(const void *, const void *))f->compare);
	for (i = 0; i < n; i++) all[i]->fts_link = i + 1 < n ? all[i+1] : 0;
	list = all[0];
	free(all);
	return list;
}

/* Lists a directory; 0 also if it is empty or cannot be read, which its fts_info then tells. */
static FTSENT *list(FTS *f, FTSENT *parent, int names_only)
{
	FTSENT *first = 0, **last = &first;
	DIR *d = opendir(parent->fts_accpath);
	struct dirent *entry;
	if (!d) {
		parent->fts_info = FTS_DNR;
		parent->fts_errno = errno;
		return 0;
	}
	while (errno = 0, (entry = readdir(d))) {
		if (dots(entry->d_name) && !(f->options & FTS_SEEDOT)) continue;
		FTSENT *e = make(parent, entry->d_name);
		if (!e) break;
		int directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN
			|| (entry->d_type == DT_LNK && f->options & FTS_LOGICAL);
		e->fts_info = names_only || (f->options & FTS_NOSTAT && !directory) ? FTS_NSOK : look(f, e, 0);
		*last = e;
		last = &e->fts_link;
	}
	if (errno) {
		parent->fts_errno = errno;
		if (!entry && !first) parent->fts_info = FTS_DNR;
	}
	closedir(d);
	return sorted(f, first);
}

FTS *fts_open(char *const *paths, int options, int (*compare)(const FTSENT **, const FTSENT **))
{
	if (options & ~FTS_OPTIONMASK || !*paths) {
		errno = EINVAL;
		return 0;
	}
	FTS *f = calloc(1, sizeof *f);
	FTSENT *first = 0, **last = &first;
	if (!f) return 0;
	f->options = options;
	f->compare = compare;
	f->roots.fts_level = FTS_ROOTPARENTLEVEL;
	for (; *paths; paths++) {
		FTSENT *e = **paths ? make(&f->roots, *paths) : 0;
		if (!e) {
			if (!**paths) errno = ENOENT;
			discard(first);
			free(f);
			return 0;
		}
		e->fts_info = look(f, e, options & FTS_COMFOLLOW);
		*last = e;
		last = &e->fts_link;
	}
	f->current = make(&f->roots, "");
	if (!f->current) {
		discard(first);
		free(f);
		return 0;
	}
	f->current->fts_link = sorted(f, first);
	f->current->fts_info = FTS_INIT;
	return f;
}

/* The name is the last part of the path, but while the siblings are sorted it is the whole path. */
static void enter_root(FTS *f, FTSENT *e)
{
	char *slash = strrchr(e->fts_name, '/');
	if (slash && (slash != e->fts_name || slash[1])) {
		e->fts_name = slash + 1;
		e->fts_namelen = strlen(e->fts_name);
	}
	f->device = e->fts_dev;
}

FTSENT *fts_read(FTS *f)
{
	FTSENT *e = f->current, *next;
	if (!e) return 0;
	int told = e->fts_instr;
	e->fts_instr = FTS_NOINSTR;
	if (told == FTS_AGAIN || (told == FTS_FOLLOW && (e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE))) {
		e->fts_info = look(f, e, told == FTS_FOLLOW);
		return e;
	}
	if (e->fts_info == FTS_D) {
		int stay = told == FTS_SKIP || (f->options & FTS_XDEV && e->fts_dev != f->device);
		if (stay || f->names_only) {
			discard(f->children);
			f->children = 0;
			f->names_only = 0;
		}
		if (stay) {
			e->fts_info = FTS_DP;
			return e;
		}
		if (!f->children && !(f->children = list(f, e, 0))) {
			if (e->fts_info == FTS_D) e->fts_info = e->fts_errno ? FTS_ERR : FTS_DP;
			return e;
		}
		next = f->children;
		f->children = 0;
	} else {
		next = e->fts_link;
	}
	for (;; next = e->fts_link) {
		FTSENT *parent = e->fts_parent;
		if (e->fts_info != FTS_D) {
			free(e);
			if (!next) {
				if (parent == &f->roots) {
					errno = 0;
					return f->current = 0;
				}
				parent->fts_info = parent->fts_errno ? FTS_ERR : FTS_DP;
				return f->current = parent;
			}
		}
		e = f->current = next;
		if (e->fts_level == FTS_ROOTLEVEL) enter_root(f, e);
		if (e->fts_instr == FTS_SKIP) {
			e->fts_info = FTS_NSOK;
			continue;
		}
		if (e->fts_instr == FTS_FOLLOW) {
			e->fts_info = look(f, e, 1);
			e->fts_instr = FTS_NOINSTR;
		}
		return e;
	}
}

FTSENT *fts_children(FTS *f, int names_only)
{
	FTSENT *e = f->current;
	errno = names_only & ~FTS_NAMEONLY ? EINVAL : 0;
	if (errno || !e) return 0;
	if (e->fts_info == FTS_INIT) return e->fts_link;
	if (e->fts_info != FTS_D) return 0;
	discard(f->children);
	f->names_only = names_only != 0;
	f->children = list(f, e, names_only);
	if (!f->children) {
		errno = e->fts_errno;
		/* fts_read tries again. */
		e->fts_info = FTS_D;
		e->fts_errno = 0;
	}
	return f->children;
}

int fts_set(FTS *f, FTSENT *e, int instruction)
{
	(void)f;
	if (instruction < 0 || instruction > FTS_SKIP) {
		errno = EINVAL;
		return -1;
	}
	e->fts_instr = instruction;
	return 0;
}

int fts_close(FTS *f)
{
	discard(f->children);
	for (FTSENT *e = f->current; e && e != &f->roots;) {
		FTSENT *parent = e->fts_parent;
		discard(e);
		e = parent;
	}
	free(f);
	return 0;
}
