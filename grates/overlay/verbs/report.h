/* The changes that a verb has found or made, as JSON on standard output. */
#ifndef OVERLAY_VERB_REPORT_H
#define OVERLAY_VERB_REPORT_H

#include "apply.h"

void report_diff(const struct verb_list *list);
void report_discard(const struct verb_list *list);
void report_apply(const struct apply *applies, size_t count, bool dry_run);
void report_snapshot(const char *name);

#endif
