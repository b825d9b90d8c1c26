/* The witness grate: options, and the calls that go into the log. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <monocypher-ed25519.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "strace.h"
#include "witness.h"

#define TEXT_MAX 1024   /* of a path, in the log */

LIND_HANDLE(alters, any, NULL);
/* Not among any, which leaves them out. */
LIND_HANDLE(observes, exit, NULL);
LIND_HANDLE(observes, exit_group, NULL);

struct options options = { .string_limit = 64 };

static const char *log_path, *key_path;
static bool chosen;

/* A call with copies of what it points to. */
struct copied {
	struct lind_call call;
	char path[2][PATH_MAX];
	struct sockaddr_storage address;
	unsigned paths;
	size_t texts_size;
	uint8_t texts[3 * (sizeof(struct piece) + TEXT_MAX + 8)];
};

static void add_text(struct copied *to, int argument, const void *bytes, size_t length)
{
	struct piece p = { (uint16_t)argument, (uint16_t)(length < TEXT_MAX ? length : TEXT_MAX), (uint32_t)length };
	size_t padded = (p.kept + 7u) / 8 * 8;

	memcpy(to->texts + to->texts_size, &p, sizeof p);
	memset(to->texts + to->texts_size + sizeof p + padded - 8, 0, padded ? 8 : 0);
	memcpy(to->texts + to->texts_size + sizeof p, bytes, p.kept);
	to->texts_size += sizeof p + padded;
}

/* Paths and addresses are copied once: what the log says is what the call was made with. */
static int64_t copy(struct copied *to, const struct lind_syscall *row)
{
	for (int i = 0; row && i < row->count; i++) {
		struct lind_arg *arg = &to->call.args[i];
		ssize_t r;

		if (row->args[i].kind == LIND_PATH && arg->value && to->paths < 2) {
			if ((r = lind_read_string(*arg, to->path[to->paths], PATH_MAX)) < 0)
				return r;
			add_text(to, i, to->path[to->paths], (size_t)r);
			*arg = lind_mine(to->path[to->paths++]);
		} else if (row->args[i].kind == LIND_IN && row->args[i].layout == LIND_LAYOUT_SOCKADDR && arg->value) {
			uint32_t length = (uint32_t)to->call.args[i + 1].value;

			if (length > sizeof to->address)
				return -EINVAL;
			if ((r = lind_read(*arg, &to->address, length)))
				return r;
			add_text(to, i, &to->address, length);
			*arg = lind_mine(&to->address);
		}
	}
	return 0;
}

/*
 * Whether a cage is a grate of the line, by what only such are told: they may have the number of a
 * file, and there is none of this number. A program never becomes one, so that is kept; of grates
 * the bracket becomes the program.
 */
static bool is_grate(uint64_t cage)
{
	static _Atomic uint64_t programs[256];
	_Atomic uint64_t *program = &programs[cage % 256];

	if (atomic_load_explicit(program, memory_order_relaxed) == cage)
		return false;
	if (lind_call_plain(SYS_host_file, cage, UINT64_MAX, 0, 0, 0) == -EBADF)
		return true;
	atomic_store_explicit(program, cage, memory_order_relaxed);
	return false;
}

static bool put(
    const struct lind_call *c, const struct lind_syscall *row, const void *texts, size_t texts_size, int64_t result)
{
	struct record record = {
		.nr = (uint16_t)c->nr, .arguments = row ? row->count : 6, .cage = (uint32_t)c->target, .result = result
	};
	struct timespec now;
	uint64_t arguments[6];

	clock_gettime(CLOCK_REALTIME, &now);
	record.of_grate = c->caller == c->target && is_grate(c->target);
	record.time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	record.size = (uint32_t)(sizeof record + record.arguments * 8u + texts_size);
	for (int i = 0; i < 6; i++)
		arguments[i] = c->args[i].value;
	return log_add(&record, arguments, texts, texts_size);
}

/* The table by number, for calls to find their row at once. */
static const struct lind_syscall *rows[LIND_NUMBERS];

static int64_t on_call(const struct lind_call *c)
{
	const struct lind_syscall *row = c->nr < LIND_NUMBERS ? rows[c->nr] : NULL;
	int64_t result;

	if (!log_takes())
		return -EIO;
	result = lind_forward(c);
	return put(c, row, NULL, 0, result) ? result : -EIO;
}

/* A call with a pointer to a path or an address. */
static int64_t on_text_call(const struct lind_call *c)
{
	const struct lind_syscall *row = rows[c->nr];
	struct copied to;
	int64_t result;

	if (!log_takes())
		return -EIO;
	to.call = *c;
	to.paths = 0;
	to.texts_size = 0;
	if (!(result = copy(&to, row)))
		result = lind_forward(&to.call);
	return put(c, row, to.texts, to.texts_size, result) ? result : -EIO;
}

/* A call that does not return. */
static int64_t on_last_call(const struct lind_call *c)
{
	put(c, rows[c->nr], NULL, 0, 0);
	return lind_forward(c);
}

static bool has_text(const struct lind_syscall *row)
{
	for (int i = 0; i < row->count; i++)
		if (row->args[i].kind == LIND_PATH ||
		    (row->args[i].kind == LIND_IN && row->args[i].layout == LIND_LAYOUT_SOCKADDR))
			return true;
	return false;
}

static bool by_default(const struct lind_syscall *row)
{
	static const uint32_t others[] = { SYS_clone, SYS_execve, SYS_execveat, SYS_spawn, SYS_exit, SYS_exit_group,
		SYS_kill, SYS_tkill, SYS_tgkill, SYS_connect, SYS_bind, SYS_accept, SYS_accept4, SYS_sendto, SYS_setuid,
		SYS_setgid, SYS_setresuid, SYS_setresgid, SYS_ftruncate, SYS_fchmod, SYS_fchown };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (others[i] == row->nr)
			return true;
	return has_text(row);
}

static lind_handle_fn *choose(uint32_t nr)
{
	const struct lind_syscall *row = lind_syscall(nr);

	/* Calls of grates to the runtime are not the program's. */
	if (!row || nr == SYS_rt_sigreturn || (nr >= 1000 && nr != SYS_spawn))
		return NULL;
	rows[nr] = row;
	if (!(chosen ? selected(row) : by_default(row)))
		return NULL;
	if (nr == SYS_exit || nr == SYS_exit_group)
		return on_last_call;
	return has_text(row) ? on_text_call : on_call;
}

static const char *says(uint32_t nr)
{
	return nr == SYS_exit || nr == SYS_exit_group ? "sees, and logs"
						      : "sees, and logs; refuses with EIO if it cannot";
}

static void ended(int status)
{
	(void)status;
	log_flush(true);
}

/* 64 hexadecimal digits in a file; made if it is not there. */
static void read_key(uint8_t seed[32])
{
	char text[66] = "";
	int fd = lind_open_file(key_path, NULL, O_RDONLY, 0);
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		fd = lind_open_file(key_path, NULL, O_RDWR | O_CREAT | O_EXCL, 0600);
	key_path = lind_file_name(key_path);
	/* Just made. */
	if (fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR) {
		for (int i = 0; i < 32; i++)
			sprintf(text + 2 * i, "%02x", seed[i]);
		text[64] = '\n';
		if (write(fd, text, 65) != 65)
			lind_die("%s: %s", key_path, strerror(errno));
		close(fd);
		return;
	}
	if (fd < 0 || (n = read(fd, text, 65)) < 0)
		lind_die("%s: %s", key_path, strerror(errno));
	close(fd);
	for (int i = 0; i < 32; i++) {
		char pair[3] = { text[2 * i], text[2 * i + 1], 0 };

		if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
			lind_die("%s: not 64 hexadecimal digits", key_path);
		seed[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
}

static void begin(void)
{
	uint8_t seed[32], copy[32], secret[64], public[32];
	char text[65];

	if (getrandom(seed, sizeof seed, 0) != sizeof seed)
		lind_die("cannot get random numbers: %s", strerror(errno));
	if (key_path)
		read_key(seed);
	log_open(log_path, seed);
	memcpy(copy, seed, sizeof copy);
	crypto_ed25519_key_pair(secret, public, copy);
	for (int i = 0; i < 32; i++)
		sprintf(text + 2 * i, "%02x", public[i]);
	explicit_bzero(seed, sizeof seed);
	explicit_bzero(secret, sizeof secret);
	lind_log("%s: signed with %s", lind_file_name(log_path), text);
	log_watch();
}

LIND_KEEPS(set_log, log_path)
LIND_KEEPS(set_key, key_path)

static const char *set_calls(const char *value)
{
	chosen = true;
	return select_calls(value);
}

static const char *set_verify(const char *value)
{
	(void)value;
	return "must be the first option";
}

/* witness_grate --verify LOG [--public HEX] [--head FILE | --no-head] [--show] */
static int verify_main(int argc, char **argv)
{
	const char *log = NULL, *head = NULL, *key = NULL;
	bool show = false, no_head = false;

	for (int i = 1; i < argc; i++) {
		const char **to = !strcmp(argv[i], "--verify") ? &log
		    : !strcmp(argv[i], "--public")             ? &key
		    : !strcmp(argv[i], "--head")               ? &head
							       : NULL;

		if (to && argv[i + 1])
			*to = argv[++i];
		else if (!strcmp(argv[i], "--show"))
			show = true;
		else if (!strcmp(argv[i], "--no-head"))
			no_head = true;
		else
			lind_die(
			    "--verify LOG takes --public HEX, --head FILE, --no-head and --show, not '%s'", argv[i]);
	}
	return verify(log, no_head ? NULL : head ? head : log, head, key, show);
}

LIND_OPTION("o", "log", "creates,.head");
LIND_OPTION("e", "-", "value");
LIND_OPTION("k", "key", "keeps");
LIND_OPTION("-", "verify", "reads,.head");
LIND_OPTION("-", "head", "reads");
LIND_OPTION("-", "public", "value");

int main(int argc, char **argv)
{
	static const struct lind_option list[] = {
		{ 'o', "log", "FILE", "write the log to FILE, which must not exist, and its head to FILE.head",
		    set_log },
		{ 'e', NULL, "EXPR",
		    "select calls by trace=CALLS: names, or classes such as %file; ! in front excludes them",
		    set_calls },
		{ 'k', "key", "FILE", "sign with this key, made if missing (default: a key that nobody keeps)",
		    set_key },
		{ 0, "verify", "LOG",
		    "check a log; must be the first option, with --public HEX, --head FILE, --no-head, --show",
		    set_verify },
	};
	static const struct lind_lifecycle lifecycle = { .end = ended };

	if (argc > 2 && !strcmp(argv[1], "--verify"))
		return verify_main(argc, argv);
	lind_options(list, sizeof list / sizeof *list, "Writes a log of system calls that cannot be changed unnoticed.",
	    &argc, &argv);
	if (!log_path)
		lind_die("give it a log: --log FILE");
	if (!lind_explains())
		begin();
	lind_explain_calls(says);
	lind_grate_lifecycle(&lifecycle);
	lind_grate_choose(choose);
	return lind_grate_main(argc, argv);
}
