/* How changes of git's own files are shown and compared. */
#ifndef OVERLAY_VERB_GIT_H
#define OVERLAY_VERB_GIT_H

#include "tree.h"

/* The length of the path of the directory of objects, if `path` is an object in it; else 0. */
size_t git_objects(const char *path);

/* The objects of one repository in a list: how many were made, and removed. */
struct git_folded {
	const char *path;
	size_t length, made, removed;
	bool is_first;  /* the last change is the first of them */
};

/* Whether a change of a list is shown by the number of its kind only. To be called for each change,
 * in order. */
bool git_folds(struct git_folded *folded, const struct verb_list *list, size_t at);
/* Prints the first `length` bytes of `path`, then `between`, then the count. */
void git_print_objects(const char *path, size_t length, const char *between, size_t count);

/* Whether a change is one of git's index, and the index below has no staged changes. */
bool git_only_looked(const struct verb_change *change);

#endif
