/* The state in the hands of lind-boot for a while. */
#ifndef OVERLAY_TURNS_H
#define OVERLAY_TURNS_H

#include "../state/state_files.h"

const char *set_requests(const char *path);
const char *set_answers(const char *path);
/* From now on, requests are served. `files` are those of the state, `open_again` opens it from
 * such, and `know_root` is for renew. 0 or an errno. */
int turns_begin(
    const struct state_files *files, int (*open_again)(const struct state_files *files), void (*know_root)(void));

#endif
