/* Files that are copied from outside at the start, and to it at the end. */
#ifndef IMFS_HOST_H
#define IMFS_HOST_H

const char *preload(const char *host_and_path);
const char *dump_later(const char *path_and_host);
void preload_all(void);
void dump_all(void);

#endif
