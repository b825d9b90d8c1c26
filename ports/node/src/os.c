// The machine and this process.
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "node.h"

extern char **environ;

// An errno as a result, or 0.
static JSValue outcome(JSContext *ctx, int failed)
{
	return JS_NewInt32(ctx, failed ? -errno : 0);
}

static JSValue exit_now(ARGS)
{
	uv_tty_reset_mode();
	_exit(int_of(ctx, argv[0]));
}

static JSValue abort_now(ARGS)
{
	uv_tty_reset_mode();
	abort();
}

static JSValue get_env(ARGS)
{
	const char *name = JS_ToCString(ctx, argv[0]), *value = name ? getenv(name) : NULL;
	JSValue result = value ? new_utf8(ctx, (const uint8_t *)value, strlen(value)) : JS_UNDEFINED;
	JS_FreeCString(ctx, name);
	return result;
}

// set_env(name, value): undefined removes it.
static JSValue set_env(ARGS)
{
	const char *name = JS_ToCString(ctx, argv[0]);
	if (name && JS_IsUndefined(argv[1])) {
		unsetenv(name);
	} else if (name) {
		const char *value = JS_ToCString(ctx, argv[1]);
		if (value)
			setenv(name, value, 1);
		JS_FreeCString(ctx, value);
	}
	JS_FreeCString(ctx, name);
	return JS_UNDEFINED;
}

static JSValue env_names(ARGS)
{
	JSValue list = JS_NewArray(ctx);
	uint32_t n = 0;
	for (char **each = environ; each && *each; each++) {
		const char *end = strchr(*each, '=');
		if (end && end != *each)
			JS_SetPropertyUint32(ctx, list, n++, new_utf8(ctx, (const uint8_t *)*each, end - *each));
	}
	return list;
}

static JSValue cwd(ARGS)
{
	char path[4096];
	if (!getcwd(path, sizeof path))
		return outcome(ctx, 1);
	return new_utf8(ctx, (const uint8_t *)path, strlen(path));
}

static JSValue change_directory(ARGS)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	JSValue result = outcome(ctx, !path || chdir(path));
	JS_FreeCString(ctx, path);
	return result;
}

static JSValue exec_path(ARGS)
{
	char path[4096];
	size_t size = sizeof path;
	if (uv_exepath(path, &size))
		return JS_NewString(ctx, "/bin/node");
	return new_utf8(ctx, (const uint8_t *)path, size);
}

static JSValue hrtime(ARGS)
{
	return JS_NewFloat64(ctx, uv_hrtime());
}

// A moment of uv_hrtime as [seconds, nanoseconds], which a number has no room for.
static JSValue hrtime_pair(ARGS)
{
	uint64_t now = uv_hrtime();
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt64(ctx, now / 1000000000));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt64(ctx, now % 1000000000));
	return list;
}

// usage(): [user, system] in microseconds, and what else getrusage says.
static JSValue usage(ARGS)
{
	uv_rusage_t usage;
	uv_getrusage(&usage);
	double values[] = {
		usage.ru_utime.tv_sec * 1e6 + usage.ru_utime.tv_usec,
		usage.ru_stime.tv_sec * 1e6 + usage.ru_stime.tv_usec,
		usage.ru_maxrss,
		usage.ru_ixrss,
		usage.ru_idrss,
		usage.ru_isrss,
		usage.ru_minflt,
		usage.ru_majflt,
		usage.ru_nswap,
		usage.ru_inblock,
		usage.ru_oublock,
		usage.ru_msgsnd,
		usage.ru_msgrcv,
		usage.ru_nsignals,
		usage.ru_nvcsw,
		usage.ru_nivcsw,
	};
	JSValue list = JS_NewArray(ctx);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		JS_SetPropertyUint32(ctx, list, i, JS_NewFloat64(ctx, values[i]));
	return list;
}

// memory(): [resident, total, free, available, limit, uptime, load1, load5, load15, processors]
static JSValue memory(ARGS)
{
	size_t resident = 0;
	double up = 0, load[3] = { 0 };
	uv_resident_set_memory(&resident);
	uv_uptime(&up);
	uv_loadavg(load);
	double values[] = { resident, uv_get_total_memory(), uv_get_free_memory(), uv_get_available_memory(),
		uv_get_constrained_memory(), up, load[0], load[1], load[2], uv_available_parallelism() };
	JSValue list = JS_NewArray(ctx);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		JS_SetPropertyUint32(ctx, list, i, JS_NewFloat64(ctx, values[i]));
	return list;
}

// names(): [sysname, version, release, machine, hostname]
static JSValue names(ARGS)
{
	struct utsname name;
	char host[256] = "";
	uname(&name);
	gethostname(host, sizeof host - 1);
	const char *values[] = { name.sysname, name.version, name.release, name.machine, host };
	JSValue list = JS_NewArray(ctx);
	for (int i = 0; i < 5; i++)
		JS_SetPropertyUint32(ctx, list, i, JS_NewString(ctx, values[i]));
	return list;
}

// processors(): of each [model, speed, user, nice, sys, idle, irq].
static JSValue processors(ARGS)
{
	uv_cpu_info_t *cpus = NULL;
	int count = 0;
	JSValue list = JS_NewArray(ctx);
	if (uv_cpu_info(&cpus, &count))
		return list;
	for (int i = 0; i < count; i++) {
		JSValue one = JS_NewArray(ctx);
		double times[] = { cpus[i].speed, cpus[i].cpu_times.user, cpus[i].cpu_times.nice, cpus[i].cpu_times.sys,
			cpus[i].cpu_times.idle, cpus[i].cpu_times.irq };
		JS_SetPropertyUint32(ctx, one, 0, JS_NewString(ctx, cpus[i].model));
		for (int k = 0; k < 6; k++)
			JS_SetPropertyUint32(ctx, one, k + 1, JS_NewFloat64(ctx, times[k]));
		JS_SetPropertyUint32(ctx, list, i, one);
	}
	uv_free_cpu_info(cpus, count);
	return list;
}

// interfaces(): of each address [name, address, netmask, family, mac, internal, scope].
static JSValue interfaces(ARGS)
{
	uv_interface_address_t *found = NULL;
	int count = 0;
	JSValue list = JS_NewArray(ctx);
	if (uv_interface_addresses(&found, &count))
		return list;
	for (int i = 0; i < count; i++) {
		char address[INET6_ADDRSTRLEN] = "", mask[INET6_ADDRSTRLEN] = "", mac[18];
		bool six = found[i].address.address4.sin_family == AF_INET6;
		unsigned char *phys = (unsigned char *)found[i].phys_addr;
		if (six) {
			uv_ip6_name(&found[i].address.address6, address, sizeof address);
			uv_ip6_name(&found[i].netmask.netmask6, mask, sizeof mask);
		} else {
			uv_ip4_name(&found[i].address.address4, address, sizeof address);
			uv_ip4_name(&found[i].netmask.netmask4, mask, sizeof mask);
		}
		snprintf(mac, sizeof mac, "%02x:%02x:%02x:%02x:%02x:%02x", phys[0], phys[1], phys[2], phys[3], phys[4],
		    phys[5]);
		JSValue values[] = { JS_NewString(ctx, found[i].name), JS_NewString(ctx, address),
			JS_NewString(ctx, mask), JS_NewString(ctx, six ? "IPv6" : "IPv4"), JS_NewString(ctx, mac),
			JS_NewBool(ctx, found[i].is_internal),
			JS_NewInt32(ctx, six ? (int)found[i].address.address6.sin6_scope_id : -1) };
		for (int k = 0; k < 7; k++)
			JS_SetPropertyUint32(ctx, list, 7 * i + k, values[k]);
	}
	uv_free_interface_addresses(found, count);
	return list;
}

// user(id): {uid, gid, username, homedir, shell}, or an errno; -1 is who runs this.
static JSValue user(ARGS)
{
	int id = int_of(ctx, argv[0]);
	struct passwd *entry = getpwuid(id < 0 ? getuid() : (uid_t)id);
	if (!entry)
		return JS_NewInt32(ctx, UV_ENOENT);
	JSValue object = JS_NewObject(ctx);
	set(ctx, object, "uid", JS_NewInt32(ctx, entry->pw_uid));
	set(ctx, object, "gid", JS_NewInt32(ctx, entry->pw_gid));
	set(ctx, object, "username", JS_NewString(ctx, entry->pw_name));
	set(ctx, object, "homedir", JS_NewString(ctx, entry->pw_dir));
	set(ctx, object, "shell", JS_NewString(ctx, entry->pw_shell));
	return object;
}

// ids(): [uid, euid, gid, egid, pid, ppid]
static JSValue ids(ARGS)
{
	int values[] = { getuid(), geteuid(), getgid(), getegid(), getpid(), getppid() };
	JSValue list = JS_NewArray(ctx);
	for (int i = 0; i < 6; i++)
		JS_SetPropertyUint32(ctx, list, i, JS_NewInt32(ctx, values[i]));
	return list;
}

static JSValue groups(ARGS)
{
	gid_t values[256];
	int count = getgroups(256, values);
	JSValue list = JS_NewArray(ctx);
	for (int i = 0; i < count; i++)
		JS_SetPropertyUint32(ctx, list, i, JS_NewInt32(ctx, values[i]));
	return list;
}

// The number of a user or a group, of which the program has the number or the name. False if there
// is none of that name.
static bool id_of(JSContext *ctx, JSValueConst value, bool group, unsigned *id)
{
	if (!JS_IsString(value)) {
		*id = int_of(ctx, value);
		return true;
	}
	const char *name = JS_ToCString(ctx, value);
	struct passwd *user = name && !group ? getpwnam(name) : NULL;
	struct group *members = name && group ? getgrnam(name) : NULL;
	JS_FreeCString(ctx, name);
	*id = user ? user->pw_uid : members ? members->gr_gid : 0;
	return user || members;
}

// set_groups(list): an errno, or the place, from 1, of a name that no group has.
static JSValue set_groups(ARGS)
{
	int64_t count = 0;
	gid_t ids[256];
	JS_GetLength(ctx, argv[0], &count);
	if (count > 256)
		return JS_NewInt32(ctx, UV_EINVAL);
	for (int64_t i = 0; i < count; i++) {
		JSValue value = JS_GetPropertyUint32(ctx, argv[0], i);
		bool found = id_of(ctx, value, true, &ids[i]);
		JS_FreeValue(ctx, value);
		if (!found)
			return JS_NewInt32(ctx, i + 1);
	}
	return outcome(ctx, setgroups(count, ids));
}

// init_groups(user, group): an errno, 1 if there is no such user, 2 if there is no such group.
static JSValue init_groups(ARGS)
{
	unsigned uid, gid;
	struct passwd *entry = id_of(ctx, argv[0], false, &uid) ? getpwuid(uid) : NULL;
	if (!entry)
		return JS_NewInt32(ctx, 1);
	if (!id_of(ctx, argv[1], true, &gid))
		return JS_NewInt32(ctx, 2);
	return outcome(ctx, initgroups(entry->pw_name, gid));
}

// set_id(which, number or name): 0 uid, 1 euid, 2 gid, 3 egid. An errno, or 1 if there is no such
// name.
static JSValue set_id(ARGS)
{
	unsigned id;
	int which = int_of(ctx, argv[0]);
	if (!id_of(ctx, argv[1], which >= 2, &id))
		return JS_NewInt32(ctx, 1);
	switch (which) {
	case 0:
		return outcome(ctx, setuid(id));
	case 1:
		return outcome(ctx, seteuid(id));
	case 2:
		return outcome(ctx, setgid(id));
	default:
		return outcome(ctx, setegid(id));
	}
}

// priority(pid, [new])
static JSValue priority(ARGS)
{
	int value = 0, status;
	if (argc > 1) {
		status = uv_os_setpriority(int_of(ctx, argv[0]), int_of(ctx, argv[1]));
		return JS_NewInt32(ctx, status);
	}
	status = uv_os_getpriority(int_of(ctx, argv[0]), &value);
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt32(ctx, status));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt32(ctx, value));
	return list;
}

static JSValue umask_of(ARGS)
{
	extern unsigned umask(unsigned);
	unsigned old = umask(JS_IsUndefined(argv[0]) ? 0 : int_of(ctx, argv[0]));
	if (JS_IsUndefined(argv[0]))
		umask(old);
	return JS_NewInt32(ctx, old);
}

static JSValue random_bytes(ARGS)
{
	size_t length;
	uint8_t *data = bytes_of(ctx, argv[0], &length);
	if (!data)
		return JS_EXCEPTION;
	return JS_NewInt32(ctx, uv_random(NULL, NULL, data, length, 0, NULL));
}

static JSValue write_raw(ARGS)
{
	size_t length;
	const char *text = JS_ToCStringLen(ctx, &length, argv[1]);
	ssize_t count = text ? write(int_of(ctx, argv[0]), text, length) : -1;
	JS_FreeCString(ctx, text);
	return JS_NewInt64(ctx, count);
}

static JSValue sleep_for(ARGS)
{
	uv_sleep(int_of(ctx, argv[0]));
	return JS_UNDEFINED;
}

static JSValue title(ARGS)
{
	char text[512] = "node";
	if (JS_IsString(argv[0])) {
		const char *wanted = JS_ToCString(ctx, argv[0]);
		if (wanted)
			uv_set_process_title(wanted);
		JS_FreeCString(ctx, wanted);
		return JS_UNDEFINED;
	}
	uv_get_process_title(text, sizeof text);
	return JS_NewString(ctx, text);
}

static const JSCFunctionListEntry list[] = {
	JS_CFUNC_DEF("exit", 1, exit_now),
	JS_CFUNC_DEF("abort", 0, abort_now),
	JS_CFUNC_DEF("umask", 1, umask_of),
	JS_CFUNC_DEF("chdir", 1, change_directory),
	JS_CFUNC_DEF("sleep", 1, sleep_for),
	FUNCTION(get_env, 1),
	FUNCTION(set_env, 2),
	FUNCTION(env_names, 0),
	FUNCTION(cwd, 0),
	FUNCTION(exec_path, 0),
	FUNCTION(hrtime, 0),
	FUNCTION(hrtime_pair, 0),
	FUNCTION(usage, 0),
	FUNCTION(memory, 0),
	FUNCTION(names, 0),
	FUNCTION(processors, 0),
	FUNCTION(interfaces, 0),
	FUNCTION(user, 1),
	FUNCTION(ids, 0),
	FUNCTION(groups, 0),
	FUNCTION(set_groups, 1),
	FUNCTION(init_groups, 2),
	FUNCTION(set_id, 2),
	FUNCTION(priority, 2),
	FUNCTION(random_bytes, 1),
	FUNCTION(write_raw, 2),
	FUNCTION(title, 1),
};

JSValue os_functions(JSContext *ctx)
{
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	return object;
}
