/*
 * Paths below the prefix that lead outside: what others have mounted there. A walk leaves at them
 * whatever this filesystem has at that name, and comes back by `..`. Directories above them stay
 * where they are, as those above mounts do.
 */
#include <stdlib.h>
#include <string.h>
#include "imfs_core.h"

int imfs_pass_add(struct imfs *fs, const char *path)
{
	size_t prefix = strlen(fs->prefix), length = strlen(path);
	struct imfs_pass *grown;
	char *copy;

	if (length >= IMFS_PATH || strncmp(path, fs->prefix, prefix) || path[prefix] != '/' || !path[prefix + 1])
		return -EINVAL;
	if (!(copy = malloc(length + 1)) || !(grown = realloc(fs->passes, (fs->pass_count + 1) * sizeof *fs->passes))) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, path, length + 1);
	fs->passes = grown;
	fs->passes[fs->pass_count++] = (struct imfs_pass){ copy, (size_t)(strrchr(copy, '/') - copy) };
	return 0;
}

/* The path of a directory of ours, without a slash at its end. */
static int path_of(const struct imfs *fs, const struct imfs_node *dir, char path[IMFS_PATH])
{
	int r = imfs_node_path(fs, dir, path, IMFS_PATH);

	if (r == 1 && path[0] == '/')
		path[0] = 0;
	return r < 0 ? r : (int)strlen(path);
}

bool imfs_passes(const struct imfs *fs, const struct imfs_node *dir, const char *name, size_t length)
{
	char path[IMFS_PATH];
	int parent = -1;

	for (size_t i = 0; i < fs->pass_count; i++) {
		const struct imfs_pass *pass = &fs->passes[i];
		const char *last = pass->path + pass->parent + 1;

		if (strncmp(last, name, length) || last[length])
			continue;
		if (parent < 0 && (parent = path_of(fs, dir, path)) < 0)
			return false;
		if ((size_t)parent == pass->parent && !memcmp(path, pass->path, pass->parent))
			return true;
	}
	return false;
}

bool imfs_is_passed(const struct imfs *fs, const char *path)
{
	for (size_t i = 0; i < fs->pass_count; i++) {
		size_t length = strlen(fs->passes[i].path);

		if (!strncmp(path, fs->passes[i].path, length) && (!path[length] || path[length] == '/'))
			return true;
	}
	return false;
}

bool imfs_holds_pass(const struct imfs *fs, const struct imfs_node *node)
{
	char path[IMFS_PATH];
	int length;

	if (!fs->pass_count || !S_ISDIR(node->mode) || (length = path_of(fs, node, path)) < 0)
		return false;
	for (size_t i = 0; i < fs->pass_count; i++)
		if (!strncmp(fs->passes[i].path, path, (size_t)length) && fs->passes[i].path[length] == '/')
			return true;
	return false;
}

int imfs_come_back(struct imfs *fs, const char *path, struct imfs_node **node)
{
	const char *name = path + strlen(fs->prefix);

	*node = fs->root;
	for (;;) {
		struct imfs_entry *e;
		size_t length;
		int r;

		while (*name == '/')
			name++;
		if (!(length = strcspn(name, "/")))
			return 0;
		if ((r = imfs_dir_list(fs, *node, name, length)))
			return r;
		if (!(e = imfs_dir_find(*node, name, length)))
			return -ENOENT;
		*node = e->node;
		if (e->node->unknown && (r = imfs_below->know(fs, e->node)))
			return r;
		if (!S_ISDIR((*node)->mode))
			return -ENOTDIR;
		name += length;
	}
}
