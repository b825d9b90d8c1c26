/*
 * How long a snapshot of a state takes, and going back to it, without the start of anything: layers
 * STATE ROUNDS. Prints a line "WORD NANOSECONDS" for each. Both end when they are on the disk, as
 * fsync(2) promises.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "layers.h"

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int db = argc == 3 ? open(argv[1], O_RDWR) : -1, wal;
	struct store *store;
	char name[4096];

	if (db < 0 || snprintf(name, sizeof name, "%s-wal", argv[1]) >= (int)sizeof name ||
	    (wal = open(name, O_RDWR | O_CREAT, 0600)) < 0)
		return 2;
	if (store_open(&store, db, wal, -1, NULL, NULL)) {
		fprintf(stderr, "%s: %s\n", argv[1], store_problem(store));
		return 1;
	}
	for (int i = 0; i < atoi(argv[2]); i++) {
		long long start = now(), between, end;

		snprintf(name, sizeof name, "layers-%lld", start);
		if (store_snapshot(store, name))
			return 1;
		between = now();
		if (store_rollback(store, name))
			return 1;
		end = now();
		printf("snapshot %lld\nrollback %lld\n", between - start, end - between);
	}
	return store_close(store) ? 1 : 0;
}
