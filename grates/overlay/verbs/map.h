/* Finds things by their path. */
#ifndef OVERLAY_VERB_MAP_H
#define OVERLAY_VERB_MAP_H

#include <stddef.h>

struct verb_map {
	struct verb_slot {
		const char *path;
		size_t length;
		void *value;
	} *slots;
	size_t size, count;
};

/* Keeps the path where it is. An existing value stays. */
void map_put(struct verb_map *map, const char *path, void *value);
void *map_get(const struct verb_map *map, const char *path, size_t length);

#endif
