/* A hash table of paths with open addressing. It begins with a random number, so that no state
 * can be made whose paths all meet in one place. */
#include "map.h"
#include <lind/options.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t seed;

static struct verb_slot *place_of(const struct verb_map *map, const char *path, size_t length)
{
	uint64_t hash = seed;

	for (size_t i = 0; i < length; i++) {
		hash = (hash ^ (unsigned char)path[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	for (size_t at = (size_t)hash & (map->size - 1);; at = (at + 1) & (map->size - 1)) {
		struct verb_slot *slot = &map->slots[at];

		if (!slot->path || (slot->length == length && !memcmp(slot->path, path, length)))
			return slot;
	}
}

static void grow(struct verb_map *map)
{
	struct verb_map more = { .size = map->size ? 2 * map->size : 64, .count = map->count };

	if (!seed && getrandom(&seed, sizeof seed, 0) != sizeof seed)
		lind_die("cannot get random numbers");
	if (!(more.slots = calloc(more.size, sizeof *more.slots)))
		lind_die("no memory");
	for (size_t i = 0; i < map->size; i++)
		if (map->slots[i].path)
			*place_of(&more, map->slots[i].path, map->slots[i].length) = map->slots[i];
	free(map->slots);
	*map = more;
}

void map_put(struct verb_map *map, const char *path, void *value)
{
	size_t length = strlen(path);
	struct verb_slot *slot;

	if (2 * (map->count + 1) > map->size)
		grow(map);
	slot = place_of(map, path, length);
	if (slot->path)
		return;
	*slot = (struct verb_slot){ path, length, value };
	map->count++;
}

void *map_get(const struct verb_map *map, const char *path, size_t length)
{
	return map->size ? place_of(map, path, length)->value : NULL;
}
