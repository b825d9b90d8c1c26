/* The process of a container: its working directory, its user, its limits, and its program, which
 * is looked for in PATH. */
#ifndef SESSION_IDENTITY_H
#define SESSION_IDENTITY_H

#include <stdint.h>

/* Changes to a directory, which is created if it is missing. errno is set where it fails. */
int enter_directory(const char *path);

/* Takes on what the words of an order say (lind-boot/src/plan/container.rs). errno is set where it
 * fails. */
int become(const uint32_t *words, uint32_t count);

/* Runs a program as execvpe(3) does, also under the names that compiled programs have. Returns with
 * errno set if there is none, or it cannot be run. */
void run_by_path(char **argv, char **envp);

#endif
