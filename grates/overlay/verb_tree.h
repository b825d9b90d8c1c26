/* What a head of a state has changed, as a list: from the rows of the state, and a look at the lower directory. */
#ifndef OVERLAY_VERB_TREE_H
#define OVERLAY_VERB_TREE_H

#include <sys/stat.h>
#include "verb.h"

struct verb_node {
	struct store_node row;		/* what it points to is the list's own */
	bool walked;			/* export has been in this directory */
	bool moved;			/* it has been met under another name than its own below */
	const char *kept;		/* where it is under that: another path than below if a directory above was moved; NULL: it is not */
};

struct verb_change {
	char kind;			/* A made, M changed, D removed, R renamed (and perhaps changed) */
	char *path;			/* where it is; of D, where it was */
	char *from;			/* path in the lower directory of what it was; NULL: nothing */
	const struct verb_node *node;	/* NULL of D */
	uint64_t dir;			/* the entry: number of its directory, and the last part of the name */
	const char *name;
	mode_t type;			/* S_IFREG and so on, of what there is, or of D was */
	bool late;			/* what it takes the place of below came, or was changed, after it was made */
	bool touched;			/* of R and M: what is in it differs from what `from` has */
};

struct verb_list {
	struct verb_node *nodes;	/* by number */
	size_t nodes_count;
	struct verb_entry { uint64_t dir, ino; char *name, *path; } *entries;	/* by directory and name */
	size_t entries_count;
	struct verb_change *changes;	/* by path */
	size_t changes_count;
};

/* The lower directory; all paths are below it. */
int below_begin(const char *path);
int below_sync(void);					/* what was written is on the disk */
/* The directory that the last part of a path is in, opened without following links; -1 and errno. `name` becomes the last part. */
int below_parent(const char *path, const char **name);
bool below_look(const char *path, struct stat *st);	/* whether there is something */
int below_open(const char *path);			/* a regular file, to read */
/* What shows through a file of the state, opened: -1 if nothing does. An error if it is gone: without it the file is not what it was. */
int below_of_row(const struct store_node *row, int *fd);
int below_directory(const char *path);			/* to read */
ssize_t below_link(const char *path, char *to, size_t size);

#define XATTRS 65536		/* what Linux takes of names, and as a value */
/* The extended attributes of a row, one after the other: false behind the last. */
struct verb_xattr {
	const char *name, *value;
	uint32_t size;
};
bool verb_next_xattr(const struct store_node *row, struct verb_xattr *x);

/* Makes the list of the changes at and below the paths that were named, or of all. An exit status. */
int verb_list(struct store *store, const struct verb_options *options, struct verb_list *list);
const struct verb_node *verb_node(const struct verb_list *list, uint64_t ino);
/* The entry that says that a path below is no longer there; NULL: none does. */
const struct verb_entry *verb_left(const struct verb_list *list, const char *from);
/* Whether it was changed below since it was first changed here. */
bool verb_is_stale(const struct verb_change *change);

/* Into a new file, whole; and what else there is to a file. */
int verb_write_file(struct store *store, int fd, const struct store_node *row);
int verb_set_attributes(int at, const char *name, const struct store_node *row);
void verb_print_names(const struct verb_list *list);

/* Bytes of a file: those of chunk `chunk` to `bytes`, of which STORE_CHUNK; how many the file has there, or an error. `below`: below_open, or -1. */
ssize_t verb_chunk(struct store *store, const struct store_node *node, int below, uint64_t chunk, uint8_t *bytes);
/* All of them, or of a link where it leads; NULL if that is more than LARGE, or an error. */
#define LARGE (32 << 20)
uint8_t *verb_bytes(struct store *store, const struct store_node *node, size_t *size);
uint8_t *below_bytes(const char *path, size_t *size);

#endif
