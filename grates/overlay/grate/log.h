/* Commands have numbers, 0 is nobody's. The lock is held. */
#ifndef OVERLAY_LOG_H
#define OVERLAY_LOG_H

#include "under.h"

uint32_t log_who(void); /* whose call is being served */
void log_exec(uint64_t cage); /* it runs another program */
int log_made_or_changed(struct imfs_node *n, bool is_new);
int log_unnamed(const struct imfs_node *dir, const char *name, struct imfs_node *n,
    uint32_t who); /* `n`: what had that name, if it is still there */

#endif
