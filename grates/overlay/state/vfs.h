/* The files that SQLite reads and writes: two open descriptors, and nothing else of the system. */
#ifndef OVERLAY_VFS_H
#define OVERLAY_VFS_H

#include <sqlite3.h>
#include <stdbool.h>

struct vfs {
	sqlite3_vfs base;
	int db, wal;
};

/* Registers it under `name`; the descriptors stay the caller's. */
int vfs_register(struct vfs *vfs, const char *name, int db, int wal);

/* Takes the lock that every other user of the database heeds, sqlite3 too, until `db` is closed.
 * -EBUSY: another process has locked it. */
int vfs_lock(int db);
void vfs_unlock(int db); /* where another descriptor of the same file stays open */

#endif
