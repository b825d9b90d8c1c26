/* The results of verbs, for programs. docs/overlay.md has the keys. */
#include "report.h"
#include "print.h"

static const char *type_of(const struct verb_change *change)
{
	return change->type == S_IFDIR ? "directory"
	    : change->type == S_IFREG  ? "file"
	    : change->type == S_IFLNK  ? "link"
				       : "other";
}

/* `below`: the directory is as it was, so that it can be said whether somebody has changed it. */
static void print_change(const struct verb_change *change, bool is_first, bool below)
{
	printf("%s\n {\"kind\": \"%c\", \"type\": \"%s\", ", is_first ? "" : ",", change->kind,
	    type_of(change) /* ours */);
	verb_print_member("path", change->path);
	if (change->kind == 'R') {
		printf(", ");
		verb_print_member("from", change->from);
	}
	if (change->node)
		printf(", \"size\": %lld, \"mode\": \"%o\"", (long long)change->node->row.size,
		    change->node->row.mode & 07777);
	if (below)
		printf(", \"changed_below\": %s", verb_is_stale(change) ? "true" : "false");
	if (change->refused) {
		printf(", ");
		verb_print_member("why", change->refused);
	}
	putchar('}');
}

static void print_changes(const struct verb_list *list, bool below)
{
	putchar('[');
	for (size_t i = 0; i < list->changes_count; i++)
		print_change(&list->changes[i], !i, below);
	printf("%s]", list->changes_count ? "\n" : "");
}

void report_diff(const struct verb_list *list)
{
	print_changes(list, true);
	putchar('\n');
}

void report_discard(const struct verb_list *list)
{
	printf("{\"discarded\": ");
	print_changes(list, false);
	puts("}");
}

static void print_some(const struct apply *applies, size_t count, bool refused)
{
	bool is_first = true;

	putchar('[');
	for (size_t at = 0; at < count; at++)
		for (size_t i = 0; (refused || applies[at].placed) && i < applies[at].list->changes_count; i++)
			if (!applies[at].list->changes[i].refused == !refused) {
				print_change(&applies[at].list->changes[i], is_first, false);
				is_first = false;
			}
	printf("%s]", is_first ? "" : "\n");
}

void report_apply(const struct apply *applies, size_t count, bool dry_run)
{
	bool finished = true;

	for (size_t at = 0; at < count; at++)
		finished &= applies[at].finished;
	printf("{\"applied\": ");
	print_some(applies, count, false);
	printf(", \"refused\": ");
	print_some(applies, count, true);
	printf(", \"finished\": %s, \"dry_run\": %s}\n", finished ? "true" : "false", dry_run ? "true" : "false");
}

void report_snapshot(const char *name)
{
	printf("{");
	verb_print_member("snapshot", name);
	puts("}");
}
