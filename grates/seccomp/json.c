/*
 * Policies in the JSON that container runtimes take (Docker's seccomp profiles): defaultAction,
 * defaultErrnoRet, syscalls with names, action, errnoRet, args, includes and excludes. Their names
 * are those of all of Linux's architectures, so a name without a call here is left out.
 */
#include <errno.h>
#include <lind/cJSON.h>
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

/* The capabilities that Docker gives a container. */
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
	/* Numbers are read as doubles, which are exact so far: 2^53 may be what came of 2^53 + 1. */
	if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble >= 9007199254740992.0 ||
	    item->valuedouble != (double)(uint64_t)item->valuedouble)
		wrong(place, "%s must be a whole number from 0 to 2^53 - 1", what);
	return (uint64_t)item->valuedouble;
}

static const cJSON *member(const cJSON *in, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(in, name);
}

/*
 * An object has these keys, each at most once. An unknown key is refused: a condition that is left
 * out, because it is misspelt or of a later version, would let through more than the file says.
 */
static void check_keys(const cJSON *object, int place, const char *what, const char *const *keys)
{
	const cJSON *item;

	if (!object || cJSON_IsNull(object))
		return;
	if (!cJSON_IsObject(object))
		wrong(place, "%s must be an object", what);
	cJSON_ArrayForEach(item, object)
	{
		const char *const *key = keys;

		while (*key && strcmp(*key, item->string))
			key++;
		if (!*key)
			wrong(place, "unknown key '%s' in %s", item->string, what);
		if (member(object, item->string) != item)
			wrong(place, "'%s' occurs twice in %s", item->string, what);
	}
}

static const cJSON *array_of(const cJSON *in, const char *key, int place)
{
	const cJSON *list = member(in, key);

	if (!list || cJSON_IsNull(list))
		return NULL;
	if (!cJSON_IsArray(list))
		wrong(place, "%s must be an array", key);
	return list;
}

static enum action action_of(const cJSON *item, int place)
{
	static const struct {
		const char *name;
		enum action action;
	} names[] = {
		{ "SCMP_ACT_ALLOW", ALLOW },
		{ "SCMP_ACT_LOG", LOG },
		{ "SCMP_ACT_ERRNO", DENY },
		{ "SCMP_ACT_KILL", KILL },
		{ "SCMP_ACT_KILL_PROCESS", KILL },
		{ "SCMP_ACT_KILL_THREAD", KILL },
		{ "SCMP_ACT_TRAP", KILL },
	};
	const char *text = text_of(item, place, "an action");

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(text, names[i].name))
			return names[i].action;
	wrong(place, "%s is not supported", text);
}

/* The errno of an object: as a number, or, as Podman has it, by its name. */
static int errno_of(const cJSON *in, const char *number, const char *name, int otherwise, int place)
{
	const cJSON *by_number = member(in, number), *by_name = member(in, name);
	uint64_t n = (uint64_t)otherwise;

	if (by_name && !cJSON_IsNull(by_name) && !(n = (uint64_t)lind_errno_named(text_of(by_name, place, name))))
		wrong(place, "'%s' is not an error", by_name->valuestring);
	if (by_number && !cJSON_IsNull(by_number)) {
		uint64_t named = n;

		n = number_of(by_number, place, number);
		if (by_name && !cJSON_IsNull(by_name) && named != n)
			wrong(place, "%s and %s are different errors", number, name);
	}
	if (n < 1 || n > 4095)
		wrong(place, "an errno must be from 1 to 4095");
	return (int)n;
}

static struct rule *rule_of(enum action action, int error, int place)
{
	struct rule *rule = calloc(1, sizeof *rule);
	char *where;

	if (!rule || asprintf(&where, place < 0 ? "%s: defaultAction" : "%s: syscalls[%d]", file, place) < 0)
		lind_die("out of memory");
	rule->action = action;
	rule->where = where;
	rule->error = error;
	return rule;
}

/* Linux compares 64 bits without sign; here an int has 32, as the kernel takes it, so that no
 * upper bits make a difference. */
static struct condition read_condition(const cJSON *arg, const struct lind_syscall *row, int place)
{
	static const struct lind_param any = { .name = "", .kind = LIND_ULONG };
	static const char *const keys[] = { "index", "value", "valueTwo", "op", NULL };
	const char *op = text_of(member(arg, "op"), place, "op");
	uint64_t index = number_of(member(arg, "index"), place, "index"),
		 value = number_of(member(arg, "value"), place, "value"), top;
	const cJSON *second = member(arg, "valueTwo");
	uint64_t two = second && !cJSON_IsNull(second) ? number_of(second, place, "valueTwo") : 0;
	struct condition c;

	check_keys(arg, place, "args", keys);
	if (index > 5)
		wrong(place, "index must be from 0 to 5");
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
		if (two & ~value)
			wrong(place, "%s: valueTwo has bits outside of value, which is the mask: this never holds",
			    row->name);
		c.op = MASKED;
		c.a = value;
		c.b = two;
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

	cJSON_ArrayForEach(arg, args)
	{
		struct condition c = read_condition(arg, row, place);

		uses[c.arg]++;
		most = uses[c.arg] > most ? uses[c.arg] : most;
	}
	cJSON_ArrayForEach(arg, args)
	{
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

/* How many of a list of names are so. */
static int listed(const cJSON *in, const char *key, bool (*is)(const char *), int place)
{
	const cJSON *item;
	int count = 0;

	cJSON_ArrayForEach(item, array_of(in, key, place)) count += is(text_of(item, place, key));
	return count;
}

static bool is_here(const char *arch)
{
	return !strcmp(arch, "amd64") || !strcmp(arch, "x86_64");
}

/* Whether the kernel that programs see is of this version or a later one. */
static bool is_reached(const char *version, int place)
{
	struct utsname here;
	unsigned wanted[2], is[2] = { 0 };
	int used = 0;

	if (strspn(version, "0123456789.") != strlen(version) || strlen(version) > 9 ||
	    sscanf(version, "%u.%u%n", &wanted[0], &wanted[1], &used) != 2 || version[used])
		wrong(place, "minKernel: '%s' is not MAJOR.MINOR", version);
	if (uname(&here) || sscanf(here.release, "%u.%u", &is[0], &is[1]) != 2)
		lind_die("uname: %s", strerror(errno));
	return is[0] > wanted[0] || (is[0] == wanted[0] && is[1] >= wanted[1]);
}

/* Whether an entry counts, on this machine and for these capabilities. Both halves are looked at
 * whole, for their mistakes. */
static bool counts(const cJSON *entry, int place)
{
	static const char *const keys[] = { "caps", "arches", "minKernel", NULL };
	const cJSON *with = member(entry, "includes"), *without = member(entry, "excludes");
	const cJSON *least = member(with, "minKernel"), *most = member(without, "minKernel");
	bool in, out;

	check_keys(with, place, "includes", keys);
	check_keys(without, place, "excludes", keys);
	in = listed(with, "caps", has_capability, place) == cJSON_GetArraySize(member(with, "caps"));
	in &= listed(with, "arches", is_here, place) || !cJSON_GetArraySize(member(with, "arches"));
	in &= !least || cJSON_IsNull(least) || is_reached(text_of(least, place, "minKernel"), place);
	out = listed(without, "caps", has_capability, place);
	out |= listed(without, "arches", is_here, place);
	out |= most && !cJSON_IsNull(most) && is_reached(text_of(most, place, "minKernel"), place);
	return in && !out;
}

/* A rule that only repeats the default does not count for libseccomp, in any place: another
 * entry about the same call decides. */
static bool is_default(const struct rule *rule, const struct rule *otherwise)
{
	return rule->action == otherwise->action && (rule->action != DENY || rule->error == otherwise->error);
}

static void read_entry(const cJSON *entry, const struct rule *otherwise, int place)
{
	static const char *const keys[] = { "names", "name", "action", "errnoRet", "errno", "args", "comment",
		"includes", "excludes", NULL };
	const cJSON *name = member(entry, "name"), *names = array_of(entry, "names", place),
		    *args = array_of(entry, "args", place);
	struct rule *rule = rule_of(
	    action_of(member(entry, "action"), place), errno_of(entry, "errnoRet", "errno", EPERM, place), place);

	check_keys(entry, place, "a rule", keys);
	if (cJSON_IsString(member(entry, "comment")) && *member(entry, "comment")->valuestring)
		rule->comment = member(entry, "comment")->valuestring;
	if (!name == !names)
		wrong(place, "must have either name or names");
	if (!counts(entry, place) || is_default(rule, otherwise))
		return;
	if (name)
		add_name(text_of(name, place, "name"), rule, args, place);
	cJSON_ArrayForEach(name, names) add_name(text_of(name, place, "a name"), rule, args, place);
}

static cJSON *load(const char *path)
{
	FILE *f = lind_read_file(path);
	char *text = malloc(MAX_SIZE + 1);
	const char *end = NULL;
	unsigned line = 1;
	cJSON *root;
	size_t n;

	path = lind_file_name(path);
	if (!f || !text)
		lind_die("%s: %s", path, strerror(errno));
	n = fread(text, 1, MAX_SIZE, f);
	if (ferror(f))
		lind_die("%s: %s", path, strerror(errno));
	text[n] = 0;
	fclose(f);
	/* Behind either nothing would be read. */
	if (memchr(text, 0, n) || strstr(text, "\\u0000"))
		lind_die("%s: contains a NUL", path);
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
	/* Those about other kernels' numbers, about notification and about how Linux installs a filter
	 * say nothing here. */
	static const char *const keys[] = { "defaultAction", "defaultErrnoRet", "defaultErrno", "architectures",
		"archMap", "syscalls", "comment", "flags", "listenerPath", "listenerMetadata", NULL };
	const cJSON *root, *entry, *action;
	struct rule *otherwise;
	int place = 0;

	file = lind_file_name(path);
	root = load(path);
	check_keys(root, -1, "the profile", keys);
	if (!(action = member(root, "defaultAction")))
		wrong(-1, "defaultAction is missing");
	if (array_of(root, "architectures", -1) && array_of(root, "archMap", -1))
		wrong(-1, "must have only one of architectures and archMap");
	otherwise = rule_of(action_of(action, -1), errno_of(root, "defaultErrnoRet", "defaultErrno", EPERM, -1), -1);
	cJSON_ArrayForEach(entry, array_of(root, "syscalls", -1)) read_entry(entry, otherwise, place++);
	unconditional_first();
	if (verbose && unknown_count)
		lind_log("%s: %u names are not calls here: %s", file, unknown_count, unknown);
	return otherwise;
}
