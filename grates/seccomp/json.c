/*
 * Policies in the JSON that container runtimes take (Docker's seccomp profiles): defaultAction, defaultErrnoRet, syscalls with
 * names, action, errnoRet, args, includes and excludes. Their names are those of all of Linux's architectures, so one that is
 * no call here is left out.
 */
#include <cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "seccomp.h"
#include "strace.h"

#define MAX_SIZE (4u << 20)

static const char *file;
static char unknown[512];
static unsigned unknown_count;

/* What Docker gives a container. */
static const char *capabilities =
	"CAP_CHOWN,CAP_DAC_OVERRIDE,CAP_FSETID,CAP_FOWNER,CAP_MKNOD,CAP_NET_RAW,CAP_SETGID,CAP_SETUID,CAP_SETFCAP,CAP_SETPCAP,"
	"CAP_NET_BIND_SERVICE,CAP_SYS_CHROOT,CAP_KILL,CAP_AUDIT_WRITE";

const char *set_capabilities(const char *list)
{
	if (*list && strncmp(list, "CAP_", 4) && strcmp(list, "none"))
		return "a list of names such as CAP_SYS_CHROOT, with commas between, or none";
	capabilities = list;
	return NULL;
}

static bool has_capability(const char *name)
{
	for (const char *at = capabilities; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == strlen(name) && !strncmp(at, name, strlen(name)))
			return true;
	return false;
}

/* `place` is a syscalls index, or -1 for the file as a whole. */
__attribute__((noreturn, format(printf, 2, 3))) static void wrong(int place, const char *format, ...)
{
	char text[256], where[40] = "";
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	if (place >= 0)
		snprintf(where, sizeof where, " syscalls[%d]:", place);
	lind_die("%s:%s %s", file, where, text);
}

static const char *text_of(const cJSON *item, int place, const char *what)
{
	if (!cJSON_IsString(item))
		wrong(place, "%s must be a string", what);
	return item->valuestring;
}

static uint64_t number_of(const cJSON *item, int place, const char *what)
{
	/* Numbers are read as doubles, which are exact so far. */
	if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble > 9007199254740992.0 ||
	    item->valuedouble != (double)(uint64_t)item->valuedouble)
		wrong(place, "%s must be a whole number from 0 to 2^53", what);
	return (uint64_t)item->valuedouble;
}

static const cJSON *member(const cJSON *in, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(in, name);
}

static enum action action_of(const cJSON *item, int place)
{
	static const struct {
		const char *name;
		enum action action;
	} names[] = {
		{ "SCMP_ACT_ALLOW", ALLOW }, { "SCMP_ACT_LOG", LOG }, { "SCMP_ACT_ERRNO", DENY }, { "SCMP_ACT_KILL", KILL },
		{ "SCMP_ACT_KILL_PROCESS", KILL }, { "SCMP_ACT_KILL_THREAD", KILL }, { "SCMP_ACT_TRAP", KILL },
	};
	const char *text = text_of(item, place, "an action");

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(text, names[i].name))
			return names[i].action;
	wrong(place, "%s is not supported", text);
}

static struct rule *rule_of(enum action action, const cJSON *error, int otherwise, int place)
{
	struct rule *rule = calloc(1, sizeof *rule);
	char *where;

	if (!rule || asprintf(&where, place < 0 ? "%s: defaultAction" : "%s: syscalls[%d]", file, place) < 0)
		lind_die("out of memory");
	rule->action = action;
	rule->where = where;
	rule->error = otherwise;
	if (error && !cJSON_IsNull(error)) {
		uint64_t n = number_of(error, place, "an errno");

		if (n < 1 || n > 4095)
			wrong(place, "an errno is from 1 to 4095");
		rule->error = (int)n;
	}
	return rule;
}

/* Linux compares 64 bits without sign; here an int has 32, as the kernel takes it, so that no upper bits make a difference. */
static struct condition read_condition(const cJSON *arg, const struct lind_syscall *row, int place)
{
	static const struct lind_param any = { .name = "", .kind = LIND_ULONG };
	const char *op = text_of(member(arg, "op"), place, "op");
	uint64_t index = number_of(member(arg, "index"), place, "index"), value = number_of(member(arg, "value"), place, "value"), top;
	const cJSON *second = member(arg, "valueTwo");
	uint64_t two = second && !cJSON_IsNull(second) ? number_of(second, place, "valueTwo") : 0;
	struct condition c;

	if (index > 5)
		wrong(place, "index is from 0 to 5");
	c = compare(index < row->count ? &row->args[index] : &any, (unsigned)index);
	c.has_sign = false;
	top = c.narrow ? UINT32_MAX : UINT64_MAX;
	if (value > top || two > top)
		wrong(place, "%s: argument %u has 32 bits", row->name, (unsigned)index);
	if (!strcmp(op, "SCMP_CMP_EQ"))
		set_within(&c, value, value);
	else if (!strcmp(op, "SCMP_CMP_NE")) {
		set_within(&c, value, value);
		c.negated = true;
	} else if (!strcmp(op, "SCMP_CMP_LE"))
		set_within(&c, 0, value);
	else if (!strcmp(op, "SCMP_CMP_GE"))
		set_within(&c, value, top);
	else if (!strcmp(op, "SCMP_CMP_LT") || !strcmp(op, "SCMP_CMP_GT")) {
		/* The opposite of at least, and of at most. */
		bool less = op[9] == 'L';

		set_within(&c, less ? value : 0, less ? top : value);
		c.negated = true;
	} else if (!strcmp(op, "SCMP_CMP_MASKED_EQ")) {
		c.op = MASKED;
		c.a = value;
		c.b = two & value;
	} else
		wrong(place, "%s is not supported", op);
	return c;
}

/* Several tests of one argument are alternatives; otherwise all have to hold. */
static void add_call(const struct lind_syscall *row, const struct rule *rule, const cJSON *args, int place)
{
	struct condition conditions[6];
	unsigned uses[6] = { 0 }, n = 0, most = 0;
	const cJSON *arg;

	cJSON_ArrayForEach(arg, args) {
		struct condition c = read_condition(arg, row, place);

		uses[c.arg]++;
		most = uses[c.arg] > most ? uses[c.arg] : most;
	}
	cJSON_ArrayForEach(arg, args) {
		struct condition c = read_condition(arg, row, place);

		if (most > 1)
			add_step(row->nr, rule, &c, 1, NULL);
		else
			conditions[n++] = c;
	}
	if (most <= 1)
		add_step(row->nr, rule, conditions, n, NULL);
}

static void add_name(const char *name, const struct rule *rule, const cJSON *args, int place)
{
	const struct lind_syscall *row = call_named(name);

	if (row) {
		add_call(row, rule, args, place);
		return;
	}
	if (!unknown_count++ || strlen(unknown) + strlen(name) + 8 < sizeof unknown) {
		strncat(unknown, unknown_count > 1 ? ", " : "", sizeof unknown - strlen(unknown) - 1);
		strncat(unknown, name, sizeof unknown - strlen(unknown) - 1);
	}
}

static bool listed(const cJSON *in, const char *key, bool (*is)(const char *))
{
	const cJSON *list = member(in, key), *item;

	cJSON_ArrayForEach(item, list)
		if (cJSON_IsString(item) && is(item->valuestring))
			return true;
	return false;
}

static bool is_here(const char *arch)
{
	return !strcmp(arch, "amd64") || !strcmp(arch, "x86_64");
}

static bool is_lower(const char *version)
{
	struct utsname here;
	unsigned wanted[2] = { 0 }, is[2] = { 0 };

	if (uname(&here) || sscanf(version, "%u.%u", &wanted[0], &wanted[1]) < 1 || sscanf(here.release, "%u.%u", &is[0], &is[1]) < 1)
		return true;
	return is[0] < wanted[0] || (is[0] == wanted[0] && is[1] < wanted[1]);
}

/* Whether an entry counts, on this machine and for these capabilities. */
static bool counts(const cJSON *entry)
{
	const cJSON *with = member(entry, "includes"), *without = member(entry, "excludes"), *item, *kernel;

	cJSON_ArrayForEach(item, member(with, "caps"))
		if (cJSON_IsString(item) && !has_capability(item->valuestring))
			return false;
	if (cJSON_GetArraySize(member(with, "arches")) && !listed(with, "arches", is_here))
		return false;
	if (cJSON_IsString(kernel = member(with, "minKernel")) && is_lower(kernel->valuestring))
		return false;
	if (cJSON_IsString(kernel = member(without, "minKernel")) && !is_lower(kernel->valuestring))
		return false;
	return !listed(without, "caps", has_capability) && !listed(without, "arches", is_here);
}

static void read_entry(const cJSON *entry, int error, int place)
{
	const cJSON *names = member(entry, "names"), *name = member(entry, "name"), *args = member(entry, "args");
	struct rule *rule = rule_of(action_of(member(entry, "action"), place), member(entry, "errnoRet"), error, place);

	if (cJSON_IsString(member(entry, "comment")) && *member(entry, "comment")->valuestring)
		rule->comment = member(entry, "comment")->valuestring;
	if (!counts(entry))
		return;
	if (args && !cJSON_IsArray(args) && !cJSON_IsNull(args))
		wrong(place, "args must be an array");
	if (name)
		add_name(text_of(name, place, "name"), rule, args, place);
	else if (!cJSON_IsArray(names))
		wrong(place, "names must be an array");
	cJSON_ArrayForEach(name, names)
		add_name(text_of(name, place, "a name"), rule, args, place);
}

static cJSON *load(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = malloc(MAX_SIZE + 1);
	const char *end = NULL;
	unsigned line = 1;
	cJSON *root;
	size_t n;

	if (!f || !text)
		lind_die("%s: %s", path, strerror(errno));
	n = fread(text, 1, MAX_SIZE, f);
	if (ferror(f))
		lind_die("%s: %s", path, strerror(errno));
	text[n] = 0;
	fclose(f);
	if (n == MAX_SIZE)
		lind_die("%s: more than %u bytes", path, MAX_SIZE);
	if (!(root = cJSON_ParseWithOpts(text, &end, 1))) {
		for (const char *at = text; at < end; at++)
			line += *at == '\n';
		lind_die("%s:%u: not JSON from here on", path, line);
	}
	free(text);
	return root;
}

const struct rule *read_json(const char *path, bool verbose)
{
	const cJSON *root, *entry, *action, *syscalls;
	struct rule *otherwise;
	int place = 0;

	file = path;
	root = load(path);
	if (!(action = member(root, "defaultAction")))
		wrong(-1, "defaultAction is missing");
	otherwise = rule_of(action_of(action, -1), member(root, "defaultErrnoRet"), EPERM, -1);
	syscalls = member(root, "syscalls");
	if (syscalls && !cJSON_IsArray(syscalls) && !cJSON_IsNull(syscalls))
		wrong(-1, "syscalls must be an array");
	cJSON_ArrayForEach(entry, syscalls)
		read_entry(entry, EPERM, place++);
	unconditional_first();
	if (verbose && unknown_count)
		lind_log("%s: %u names are no calls here: %s", path, unknown_count, unknown);
	return otherwise;
}
