/* Damages the state of an overlay as the input says, opens it, looks at it and changes it. The
 * state comes from the test of states; `make -s -C grates/overlay native` made SQLite. */
#define main main_of_the_test
#include "../tests/grates/overlay-state/state.c"
#undef main

#define STEPS 40
#define MOST  16

void lind_fuzz_overlay(const uint8_t *bytes, size_t size);

struct input {
	const uint8_t *bytes;
	size_t size;
};

static uint8_t byte_of(struct input *input)
{
	return input->size ? input->size--, *input->bytes++ : 0;
}

static uint32_t number_of(struct input *input)
{
	uint32_t low = byte_of(input), middle = byte_of(input);

	return low | middle << 8 | (uint32_t)byte_of(input) << 16;
}

/* The bytes of a sound state. */
static uint8_t *sound;
static off_t sound_size;

static void make_sound(void)
{
	struct view view;
	struct stat st;

	db = memfd_create("state", 0);
	wal = memfd_create("log", 0);
	state_of_random = 3;
	empty(&view);
	open_state(NULL);
	for (int i = 0; i < STEPS; i++)
		change(&view);
	CHECK(!store_snapshot(store, "s"));
	for (int i = 0; i < STEPS; i++)
		change(&view);
	close_state();
	CHECK(!fstat(db, &st) && (sound = malloc((size_t)st.st_size)));
	sound_size = st.st_size;
	CHECK(pread(db, sound, (size_t)sound_size, 0) == sound_size);
}

/* The state as before the last input. */
static void restore(void)
{
	CHECK(
	    !ftruncate(db, sound_size) && pwrite(db, sound, (size_t)sound_size, 0) == sound_size && !ftruncate(wal, 0));
}

/* Columns of tables, which an attacker sets who knows SQLite. */
static const char *const columns[][2] = { { "about", "value" }, { "layers", "layer" }, { "layers", "parent" },
	{ "layers", "name" }, { "layers", "made" }, { "heads", "head" }, { "heads", "layer" }, { "nodes", "ino" },
	{ "nodes", "layer" }, { "nodes", "mode" }, { "nodes", "size" }, { "nodes", "origin" },
	{ "nodes", "origin_size" }, { "nodes", "target" }, { "nodes", "xattrs" }, { "nodes", "base" },
	{ "names", "name" }, { "names", "ino" }, { "names", "layer" }, { "blocks", "chunk" }, { "blocks", "layer" },
	{ "blocks", "held" }, { "blocks", "zeros" }, { "blocks", "bytes" }, { "blocks", "ino" } };

static void bind(sqlite3_stmt *set, struct input *input, uint8_t kind)
{
	static char text[64];
	int length = kind / 4;

	for (int i = 0; i < length; i++)
		text[i] = (char)byte_of(input);
	switch (kind % 4) {
	case 0:
		sqlite3_bind_int64(set, 1, (int64_t)(((uint64_t)number_of(input) << length % 64) - 2));
		break;
	case 1:
		sqlite3_bind_text(set, 1, text, length, SQLITE_STATIC);
		break;
	case 2:
		sqlite3_bind_blob(set, 1, text, length, SQLITE_STATIC);
		break;
	case 3:
		sqlite3_bind_null(set, 1);
	}
}

static void set_values(struct input *input, unsigned count)
{
	open_state(NULL);
	for (unsigned i = 0; i < count && input->size; i++) {
		const char *const *column = columns[byte_of(input) % (sizeof columns / sizeof *columns)];
		uint8_t which = byte_of(input), kind = byte_of(input);
		char sql[200];
		sqlite3_stmt *set;

		snprintf(sql, sizeof sql,
		    which % 2 ? "update or ignore %1$s set %2$s = ?1 where %2$s = (select max(%2$s) from %1$s)"
			      : "update or ignore %1$s set %2$s = ?1",
		    column[0], column[1]);
		CHECK(!sqlite3_prepare_v2(store->db, sql, -1, &set, NULL));
		bind(set, input, kind);
		sqlite3_step(set);
		sqlite3_finalize(set);
	}
	close_state();
}

static void set_bytes(struct input *input, unsigned count)
{
	for (unsigned i = 0; i < count && input->size; i++) {
		uint32_t at = number_of(input);
		uint8_t byte = byte_of(input);

		CHECK(pwrite(db, &byte, 1, at % sound_size) == 1);
	}
}

void lind_fuzz_overlay(const uint8_t *bytes, size_t size)
{
	struct input input = { bytes, size };
	struct view view;
	uint8_t how = byte_of(&input);

	if (!sound)
		make_sound();
	restore();
	state_of_random = 5;
	if (how % 2)
		set_values(&input, 1 + how / 2 % MOST);
	else
		set_bytes(&input, 1 + how / 2 % MOST);
	if (!store_open(&store, dup(db), dup(wal), -1, "/lower", how & 64 ? "main" : NULL) && !look(&view)) {
		struct store_node node = { .ino = ino_of(1), .mode = 0100644, .nlink = 1 };
		static uint8_t chunk[STORE_CHUNK];

		store_put(store, &node);
		store_write(store, ino_of(2), 1, 0x00ff, chunk);
		store_name(store, 10, "a", ino_of(1));
		store_cut(store, ino_of(3), 5000);
		store_snapshot(store, "after");
		store_commit(store, true);
	}
	store_close(store);
	store = NULL;
}
