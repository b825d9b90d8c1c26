/* The changes of a head of a state, as a list: from the rows of the state, and a look at the
 * lower directory. */
#ifndef OVERLAY_VERB_TREE_H
#define OVERLAY_VERB_TREE_H

#include <sys/stat.h>
#include "verb.h"
#include "map.h"

struct verb_change;
struct verb_entry;

struct verb_node {
	struct store_node row;  /* what it points to is the list's own */
	bool moved;   /* it has been met under another name than its own below */
	bool known, differs;  /* whether by more than times, from what is at its origin, is known; and so it is */
	bool forgotten;   /* it has left the state */
	bool meant;   /* one of its names was asked for */
	bool excluded;   /* one of its names was left out */
	bool stale;   /* a name of it was not applied, since what is there below was changed */
	bool others;   /* it has names that are other changes than those that were asked for */
	const struct verb_entry *entry; /* of a directory: what it is found by */
	/* The path under that name: other than `below` if a directory above was moved. NULL: no path. */
	const char *kept;
	/* Of a new directory: where there is one below that somebody else has made meanwhile. Names of
	 * both are kept. NULL: there is none. */
	const char *merges;
	const struct verb_change
	    *first; /* of apply: the change that makes or moves this file; others give it further names */
};

/* Identifies the file that was found in the lower directory: the same values mean the same file. */
struct verb_seen {
	uint64_t ino; /* 0: nothing */
	int64_t type, size, mtime,
	    ctime; /* of a directory, the type alone; ctime 0: a file of several names, which changes with each that goes */
};

struct verb_change {
	char kind; /* A made, M changed, D removed, R renamed (and perhaps changed) */
	char *path; /* where it is; of D, where it was */
	char *from; /* path in the lower directory of what it was; NULL: nothing */
	struct verb_node *node; /* NULL of D */
	uint64_t dir; /* the entry: number of its directory, and the last part of the name */
	const char *name;
	const char *seen; /* where the entry is: of D another path than below if a directory above was moved */
	mode_t type; /* S_IFREG and so on, of what there is, or of D was */
	bool late; /* what it takes the place of below came, or was changed, after it was made */
	const char *refused; /* of apply: why it is not applied, or not all of it; NULL: nothing speaks against it */
	bool touched; /* of R and M: what is in it differs from what `from` has */
	struct verb_seen was; /* of D and R: what is at `from` */
	struct verb_seen over; /* the file that it takes the place of */
};

struct verb_list {
	struct verb_node *nodes; /* by number */
	size_t nodes_count;
	struct verb_entry {
		uint64_t dir, ino;
		char *name, *path;
	} *entries; /* by directory and name */
	size_t entries_count;
	struct verb_change *changes; /* by path; at the same path, removals first */
	size_t changes_count;
	uint64_t *others; /* directories with entries that are other changes than those that were asked for */
	size_t others_count;
	struct verb_map left; /* entries that say that there is no longer something, by its path below */
	struct verb_map moved; /* nodes that were moved, by their origin */
	struct verb_map sources, paths; /* changes by `from` (of several, the first), and by `path` unless they are D */
};

/* The way to what is in a directory, by paths that may be longer than the system takes. The
 * parent that was found last is kept. */
struct walk {
	int root, at;
	char *path; /* of `at`; NULL: there is none */
	size_t length;
};
/* The directory that the last part of a path is in, opened without following links, until the
 * next call; -1 and errno. `name` becomes the last part. */
int walk_parent(struct walk *walk, const char *path, const char **name);
void walk_forget(struct walk *walk); /* directories have been moved or removed */

/* The lower directory; all paths are below it. */
int below_begin(const char *path);
int below_sync(void); /* what was written is on the disk */
int below_parent(const char *path, const char **name); /* walk_parent of it */
void below_forget(void);
bool below_look(const char *path, struct stat *st); /* whether there is something */
/* When the directory at this path was made; false: there is none, or nothing says when. */
bool below_birth(const char *path, struct timespec *birth);
int below_open(const char *path); /* a regular file, to read */
/* Opens the file below that shows through a file of the state; -1 in `fd` if none does. An error
 * if it is gone: without it the file is not what it was. */
int below_of_row(const struct store_node *row, int *fd);
int below_directory(const char *path); /* to read */
char **verb_names(
    const char *path); /* what is in it, in order, with NULL at the end; NULL: nothing. The caller frees them */
ssize_t below_link(const char *path, char *to, size_t size);

#define XATTRS 65536 /* what Linux takes of names, and as a value */
/* The extended attributes of a row, one after the other: false behind the last. */
struct verb_xattr {
	const char *name, *value;
	uint32_t size;
};
bool verb_next_xattr(const struct store_node *row, struct verb_xattr *x);
/* The same of those that do not come to the host. */
bool verb_next_kept_xattr(const struct store_node *row, struct verb_xattr *x);

bool verb_is_later(const struct timespec *one, const struct timespec *other);
/* merge.c: finds the directories that `merges` is about. */
void verb_find_merges(struct verb_list *list);
/* Marks those above what is meant: they are applied with it. */
void verb_mean_merges(const struct verb_list *list, const struct verb_change *change);
/* The path below of what the name hides, or of what it takes the place of; `unseen`: that came
 * meanwhile, and the program did not know of it. NULL: its directory is not below. */
char *verb_hidden(const struct verb_list *list, const struct verb_entry *entry, bool *unseen);

/* The rows, with paths. */
int verb_load(struct store *store, struct verb_list *list);
bool verb_is_path(const char *path); /* a state can come from elsewhere: what it calls a path has to be one */
void verb_index(struct verb_list *list); /* changes by `from` and `path` */
/* Makes the list of the changes at and below the paths that were named, or of all. An exit
 * status: 1 if nothing is at such a path. */
int verb_list(struct store *store, const struct verb_options *options, struct verb_list *list);
struct verb_node *verb_node(const struct verb_list *list, uint64_t ino);
size_t verb_first_in(
    const struct verb_list *list, uint64_t dir); /* the first entry of a directory; another's if it has none */
char *verb_joined(const char *dir, const char *name);
/* The path below of the file that the name would show without the row; NULL if its directory is
 * not from below. */
char *verb_natural(const struct verb_list *list, const struct verb_entry *entry);
struct verb_seen verb_seen(const struct stat *st);
bool verb_is_seen(const struct verb_seen *seen, const struct stat *st);
/* Whether it was changed below since it was first changed here. */
bool verb_is_stale(const struct verb_change *change);

/* Into a new file, whole; and what else there is to a file. */
int verb_write_file(struct store *store, int fd, const struct store_node *row);
int verb_set_xattrs(int fd, const struct store_node *row);
int verb_set_attributes(int at, const char *name, const struct store_node *row);
/* `whole`: each object of git too, not their number. */
void verb_print_names(const struct verb_list *list, bool whole);

/* Bytes of a file: those of chunk `chunk` to `bytes`, of which STORE_CHUNK; how many the file
 * has there, or an error. `below`: below_open, or -1. */
ssize_t verb_chunk(struct store *store, const struct store_node *node, int below, uint64_t chunk, uint8_t *bytes);
/* All of them, or of a link where it leads; NULL if that is more than LARGE, or an error. */
#define LARGE (32 << 20)
uint8_t *verb_bytes(struct store *store, const struct store_node *node, size_t *size);
uint8_t *below_bytes(const char *path, size_t *size);

#endif
