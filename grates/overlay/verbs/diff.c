/* diff: the list of changes, in one of four ways. */
#include "tree.h"
#include "git.h"
#include "print.h"
#include "patch.h"
#include "report.h"
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Both sides of a change to one file; a side that is not there has no bytes and mode 0. */
struct sides {
	const char *from, *path;
	mode_t old_mode, new_mode;
	uint8_t *old, *new;
	size_t old_size, new_size;
	bool binary;  /* or larger than is compared by lines */
};

static const char *slash_of(const struct verb_change *change)
{
	return change->type == S_IFDIR ? "/" : "";
}

/* Prints the number of objects that git made and removed in a repository. */
static void print_folded(const struct git_folded *folded)
{
	const size_t counts[] = { folded->made, folded->removed };

	for (size_t i = 0; folded->is_first && i < 2; i++) {
		if (counts[i] < 2)
			continue;
		printf("%c ", "AD"[i]);
		git_print_objects(folded->path, folded->length, " (", counts[i]);
		puts(")");
	}
}

void verb_print_names(const struct verb_list *list, bool whole)
{
	struct git_folded folded = { 0 };

	for (size_t i = 0; i < list->changes_count; i++) {
		const struct verb_change *change = &list->changes[i];
		bool folds = !whole && git_folds(&folded, list, i);

		print_folded(&folded);
		if (folds)
			continue;
		printf("%c ", change->kind);
		if (change->kind == 'R') {
			verb_print_name("", change->from);
			printf("%s -> ", slash_of(change));
		}
		verb_print_name("", change->path);
		/* Applied, it would run with its owner's rights, whoever starts it. */
		if (change->node && change->type == S_IFREG && change->node->row.mode & (S_ISUID | S_ISGID))
			printf(" (mode %o)", change->node->row.mode & 07777);
		printf("%s\n", slash_of(change));
	}
}

/* git knows of modes whether a file can be executed. */
static mode_t git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? 0120000 : mode & 0100 ? 0100755 : 0100644;
}

/* The tab is where a name with spaces ends. */
static void print_side(const char *sign, const char *prefix, const char *name)
{
	printf("%s", sign /* ours */);
	verb_print_name(name ? prefix : "", name ? name : "/dev/null");
	printf("%s\n", name && strchr(name, ' ') ? "\t" : "");
}

static void print_header(const struct sides *s, bool same)
{
	printf("diff --git ");
	verb_print_name("a/", s->from);
	putchar(' ');
	verb_print_name("b/", s->path);
	putchar('\n');
	if (!s->old_mode)
		printf("new file mode %06o\n", git_mode(s->new_mode));
	else if (!s->new_mode)
		printf("deleted file mode %06o\n", git_mode(s->old_mode));
	else if (git_mode(s->old_mode) != git_mode(s->new_mode))
		printf("old mode %06o\nnew mode %06o\n", git_mode(s->old_mode), git_mode(s->new_mode));
	if (strcmp(s->from, s->path)) {
		printf("similarity index %u%%\nrename from ",
		    s->binary ? 0 : patch_similarity(s->old, s->old_size, s->new, s->new_size));
		verb_print_name("", s->from);
		printf("\nrename to ");
		verb_print_name("", s->path);
		putchar('\n');
	}
	if (same || s->binary)
		return;
	print_side("--- ", "a/", s->old_mode ? s->from : NULL);
	print_side("+++ ", "b/", s->new_mode ? s->path : NULL);
}

static void print_patch(const struct sides *s)
{
	bool same = (!s->binary || (s->old && s->new)) && s->old_size == s->new_size &&
	    (!s->old_size || !memcmp(s->old, s->new, s->old_size));

	if (same && s->old_mode && s->new_mode && git_mode(s->old_mode) == git_mode(s->new_mode) &&
	    !strcmp(s->from, s->path))
		return;
	print_header(s, same);
	if (same)
		return;
	if (s->binary && (s->old || !s->old_mode) && (s->new || !s->new_mode)) {
		struct patch_side old = { s->old, s->old_size, s->old_mode },
				  new = { s->new, s->new_size, s->new_mode };

		patch_print_objects(&old, &new);
		if (old.is_there && new.is_there && git_mode(s->old_mode) == git_mode(s->new_mode))
			printf(" %06o", git_mode(s->new_mode));
		putchar('\n');
		patch_print_binary(&old, &new);
	} else if (s->binary) {
		printf("Binary files ");
		verb_print_name(s->old_mode ? "a/" : "", s->old_mode ? s->from : "/dev/null");
		printf(" and ");
		verb_print_name(s->new_mode ? "b/" : "", s->new_mode ? s->path : "/dev/null");
		printf(" differ\n");
	} else {
		patch_print(s->old, s->old_size, s->new, s->new_size, stdout);
	}
}

static void print_stat(const struct sides *s)
{
	printf(" ");
	if (strcmp(s->from, s->path)) {
		verb_print_name("", s->from);
		printf(" => ");
	}
	verb_print_name("", s->path);
	if (s->binary) {
		printf(" | binary\n");
	} else {
		struct patch_sum sum = patch_print(s->old, s->old_size, s->new, s->new_size, NULL);

		printf(" | +%zu -%zu\n", sum.added, sum.removed);
	}
}

static void print_sides(struct sides *s, bool stat)
{
	/* A file that becomes a link, or is one no longer, is another file to git. */
	if (!stat && s->old_mode && s->new_mode && (s->old_mode ^ s->new_mode) & S_IFMT) {
		struct sides gone = *s, made = *s;

		gone.path = s->from;
		gone.new_mode = made.old_mode = 0;
		gone.new = made.old = NULL;
		gone.new_size = made.old_size = 0;
		made.from = s->path;
		print_sides(&gone, false);
		print_sides(&made, false);
		return;
	}
	s->binary = (s->old_mode && !s->old) || (s->new_mode && !s->new) ||
	    (s->old && patch_is_binary(s->old, s->old_size)) || (s->new && patch_is_binary(s->new, s->new_size));
	if (stat)
		print_stat(s);
	else
		print_patch(s);
	free(s->old);
	free(s->new);
}

static bool has_lines(mode_t type)
{
	return type == S_IFREG || type == S_IFLNK;
}

/* Each file of a directory that was removed, or renamed to `to`. */
static void print_below(const struct verb_list *list, const char *path, const char *to, bool stat)
{
	char **names = verb_names(path);

	for (size_t i = 0; names && names[i]; i++) {
		char *from = verb_joined(path, names[i]), *there = verb_joined(to ? to : path, names[i]);
		struct stat st;

		if (map_get(&list->sources, from, strlen(from)) ||
		    (to && map_get(&list->paths, there, strlen(there))) || !below_look(from, &st)) {
			/* That change says what became of it. */
		} else if (S_ISDIR(st.st_mode)) {
			print_below(list, from, to ? there : NULL, stat);
		} else if (has_lines(st.st_mode & S_IFMT)) {
			struct sides s = {
				.from = from, .path = there, .old_mode = st.st_mode, .new_mode = to ? st.st_mode : 0
			};

			s.old = below_bytes(from, &s.old_size);
			if (to)
				s.new = below_bytes(from, &s.new_size);
			print_sides(&s, stat);
		}
		free(from);
		free(there);
		free(names[i]);
	}
	free(names);
}

/* The path of the file that a renamed file replaces, if that is not elsewhere now; to be freed. */
static char *replaced(const struct verb_list *list, const struct verb_change *change)
{
	const struct verb_entry entry = { .dir = change->dir, .name = (char *)change->name };
	char *there = change->kind == 'R' && change->over.ino ? verb_natural(list, &entry) : NULL;

	if (!there || !map_get(&list->moved, there, strlen(there)))
		return there;
	free(there);
	return NULL;
}

static void print_removed(const char *path, bool stat)
{
	struct sides s = { .path = path, .from = path };
	struct stat st;

	if (!below_look(path, &st) || !has_lines(st.st_mode & S_IFMT))
		return;
	s.old_mode = st.st_mode;
	s.old = below_bytes(path, &s.old_size);
	print_sides(&s, stat);
}

static void print_change(struct store *store, const struct verb_list *list, const struct verb_change *change, bool stat)
{
	char *there = replaced(list, change);
	const char *from = there ? there : change->from;
	struct sides s = { .path = change->path, .from = change->kind == 'R' ? from : change->path };
	struct stat st;

	/* To git it has changed the other one, and is gone itself. */
	if (there)
		print_removed(change->from, stat);
	if (change->type == S_IFDIR) {
		if (change->kind == 'D' || change->kind == 'R')
			print_below(list, change->from, change->kind == 'R' ? change->path : NULL, stat);
		return;
	}
	if (!has_lines(change->type))
		return;
	if (change->kind != 'A' && from && below_look(from, &st) && has_lines(st.st_mode & S_IFMT)) {
		s.old_mode = st.st_mode;
		s.old = below_bytes(from, &s.old_size);
		if (change->kind == 'M')
			s.from = from;
	}
	if (change->node) {
		s.new_mode = change->node->row.mode;
		s.new = verb_bytes(store, &change->node->row, &s.new_size);
	}
	print_sides(&s, stat);
	free(there);
}

static void print_all(struct store *store, const struct verb_list *list, bool stat)
{
	struct git_folded folded = { 0 };

	for (size_t i = 0; i < list->changes_count; i++) {
		bool folds = stat && git_folds(&folded, list, i);

		if (folds && folded.is_first) {
			putchar(' ');
			git_print_objects(folded.path, folded.length, " | ", folded.made + folded.removed);
			putchar('\n');
		}
		if (!folds)
			print_change(store, list, &list->changes[i], stat);
	}
}

int verb_diff(struct store *store, const struct verb_options *options)
{
	static struct verb_list list;
	int status = verb_list(store, options, &list);

	if (status)
		return status;
	if (options->json)
		report_diff(&list);
	else if (!options->stat && !options->patch)
		verb_print_names(&list, options->name_status);
	if (options->stat)
		print_all(store, &list, true);
	if (options->stat && options->patch && list.changes_count)
		putchar('\n');
	if (options->patch)
		print_all(store, &list, false);
	return fflush(stdout) ? 125 : 0;
}
