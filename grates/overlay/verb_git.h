/* What is said of git's own files, which are many, and written without anybody having changed something. */
#ifndef OVERLAY_VERB_GIT_H
#define OVERLAY_VERB_GIT_H

#include "verb_tree.h"

/* The length of the path of the directory of objects that this is an object in; 0: it is not. */
size_t git_objects(const char *path);

/* The objects of one repository in a list: how many were made, and removed. */
struct git_folded {
	const char *path;
	size_t length, made, removed;
	bool is_first;		/* the last change that was asked about begins them */
};

/* Whether a change of a list is told by the number of its kind alone. Asked about each in order. */
bool git_folds(struct git_folded *folded, const struct verb_list *list, size_t at);
/* `path`, as far as its directory of objects; what stands between that and the count. */
void git_print_objects(const char *path, size_t length, const char *between, size_t count);

/* Whether it changes git's index, where below nothing is staged that is not committed. */
bool git_only_looked(const struct verb_change *change);

#endif
