// Processes: started by posix_spawn, which needs no copy of this one; and run to their end, for
// spawnSync.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "node.h"

// A process that is waited for.
struct child {
	struct child *next;
	pid_t pid;
	JSValue done;
	bool held;
};

static struct {
	struct child *first;
	uv_signal_t signal;
	bool watched;
	int holders;
} children;

// Strings of an array, ended by NULL. To be freed, with what is in it.
static char **strings(JSContext *ctx, JSValueConst list)
{
	int64_t count = 0;
	JS_GetLength(ctx, list, &count);
	char **texts = got(calloc(count + 1, sizeof *texts));
	for (int64_t i = 0; i < count; i++) {
		JSValue value = JS_GetPropertyUint32(ctx, list, i);
		const char *text = JS_ToCString(ctx, value);
		texts[i] = got(strdup(text ? text : ""));
		JS_FreeCString(ctx, text);
		JS_FreeValue(ctx, value);
	}
	return texts;
}

static void free_strings(char **texts)
{
	for (char **each = texts; *each; each++)
		free(*each);
	free(texts);
}

// Where the child's PATH leads; posix_spawnp would take ours.
static int start_by_path(pid_t *pid, const char *file, posix_spawn_file_actions_t *actions,
    posix_spawnattr_t *attributes, char **args, char **environment)
{
	const char *path = "/usr/local/bin:/bin:/usr/bin";
	int problem = ENOENT;
	if (strchr(file, '/'))
		return posix_spawn(pid, file, actions, attributes, args, environment);
	for (char **each = environment; *each; each++)
		if (!strncmp(*each, "PATH=", 5))
			path = *each + 5;
	for (;;) {
		const char *end = strchrnul(path, ':');
		char name[4096];
		int length = end - path;
		int whole = snprintf(name, sizeof name, "%.*s%s%s", length, path, length ? "/" : "", file);
		int result = whole >= (int)sizeof name ? ENAMETOOLONG
						       : posix_spawn(pid, name, actions, attributes, args, environment);
		if (!result || (result != ENOENT && result != ENOTDIR && result != EACCES))
			return result;
		if (result == EACCES)
			problem = EACCES;
		if (!*end)
			return problem;
		path = end + 1;
	}
}

// Starts options.{file, args, env, cwd, detached} with descriptors `fds`, of which the child's are
// 0, 1, and so on; -1 is /dev/null. The process, or an errno.
static int start(JSContext *ctx, JSValueConst options, const int *fds, int count)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all;
	short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
	pid_t pid;
	JSValue file = JS_GetPropertyStr(ctx, options, "file");
	JSValue args = JS_GetPropertyStr(ctx, options, "args");
	JSValue env = JS_GetPropertyStr(ctx, options, "env");
	JSValue cwd = JS_GetPropertyStr(ctx, options, "cwd");
	JSValue detached = JS_GetPropertyStr(ctx, options, "detached");
	const char *name = JS_ToCString(ctx, file);
	const char *directory = JS_IsString(cwd) ? JS_ToCString(ctx, cwd) : NULL;
	char **words = strings(ctx, args), **environment = strings(ctx, env);

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	if (directory)
		posix_spawn_file_actions_addchdir_np(&actions, directory);
	// First out of the way of the numbers that are given out.
	int *above = got(calloc(count + 1, sizeof *above)), problem = 0;
	for (int i = 0; i < count; i++)
		if (fds[i] < 0)
			above[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		else
			above[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, count > 3 ? count : 3);
	for (int i = 0; i < count; i++) {
		if (above[i] < 0)
			problem = problem ? problem : EBADF;
		posix_spawn_file_actions_adddup2(&actions, above[i], i);
	}
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	posix_spawnattr_setsigdefault(&attributes, &all);
	sigemptyset(&all);
	posix_spawnattr_setsigmask(&attributes, &all);
	if (JS_ToBool(ctx, detached))
		flags |= POSIX_SPAWN_SETSID;
	posix_spawnattr_setflags(&attributes, flags);
	if (!problem)
		problem = start_by_path(&pid, name ? name : "", &actions, &attributes, words, environment);
	for (int i = 0; i < count; i++)
		if (above[i] >= 0)
			close(above[i]);
	free(above);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free_strings(words);
	free_strings(environment);
	JS_FreeCString(ctx, name);
	JS_FreeCString(ctx, directory);
	JS_FreeValue(ctx, file);
	JS_FreeValue(ctx, args);
	JS_FreeValue(ctx, env);
	JS_FreeValue(ctx, cwd);
	JS_FreeValue(ctx, detached);
	return problem ? -problem : pid;
}

static void hold(int by)
{
	children.holders += by;
	if (children.holders)
		uv_ref((uv_handle_t *)&children.signal);
	else
		uv_unref((uv_handle_t *)&children.signal);
}

static void on_child(uv_signal_t *signal, int number)
{
	struct env *env = signal->data;
	for (struct child **place = &children.first; *place;) {
		struct child *child = *place;
		int status;
		if (waitpid(child->pid, &status, WNOHANG) != child->pid) {
			place = &child->next;
			continue;
		}
		*place = child->next;
		if (child->held)
			hold(-1);
		JSValue list[] = {
			JS_NewInt32(env->ctx, WIFEXITED(status) ? WEXITSTATUS(status) : 0),
			JS_NewInt32(env->ctx, WIFSIGNALED(status) ? WTERMSIG(status) : 0),
		};
		JSValue done = child->done;
		free(child);
		call_from_loop(env, done, 2, list);
		JS_FreeValue(env->ctx, done);
		// The function may have started or forgotten children.
		place = &children.first;
	}
}

static int *numbers(JSContext *ctx, JSValueConst list, int *count)
{
	int64_t length = 0;
	JS_GetLength(ctx, list, &length);
	int *values = got(calloc(length + 1, sizeof *values));
	for (int64_t i = 0; i < length; i++) {
		JSValue value = JS_GetPropertyUint32(ctx, list, i);
		values[i] = int_of(ctx, value);
		JS_FreeValue(ctx, value);
	}
	*count = length;
	return values;
}

// spawn(options, [descriptors...], done): the process, or an errno. done(status, signal)
static JSValue spawn(ARGS)
{
	struct env *env = env_of(ctx);
	int count;
	if (!children.watched) {
		children.watched = true;
		uv_signal_init(&env->loop, &children.signal);
		children.signal.data = env;
		uv_signal_start(&children.signal, on_child, SIGCHLD);
		uv_unref((uv_handle_t *)&children.signal);
	}
	int *fds = numbers(ctx, argv[1], &count);
	int pid = start(ctx, argv[0], fds, count);
	free(fds);
	if (pid > 0) {
		struct child *child = got(calloc(1, sizeof *child));
		*child = (struct child){ children.first, pid, JS_DupValue(ctx, argv[2]), true };
		children.first = child;
		hold(1);
	}
	return JS_NewInt32(ctx, pid);
}

// hold_child(pid, whether)
static JSValue hold_child(ARGS)
{
	int pid = int_of(ctx, argv[0]);
	bool held = JS_ToBool(ctx, argv[1]);
	for (struct child *child = children.first; child; child = child->next)
		if (child->pid == pid && child->held != held) {
			child->held = held;
			hold(held ? 1 : -1);
		}
	return JS_UNDEFINED;
}

// pair(): two sockets that are connected, ours without blocking; or an errno.
static JSValue pair(ARGS)
{
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return JS_NewInt32(ctx, -errno);
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt32(ctx, fds[0]));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt32(ctx, fds[1]));
	return list;
}

static JSValue close_descriptor(ARGS)
{
	return JS_NewInt32(ctx, close(int_of(ctx, argv[0])) ? -errno : 0);
}

static JSValue kill_process(ARGS)
{
	return JS_NewInt32(ctx, kill(int_of(ctx, argv[0]), int_of(ctx, argv[1])) ? -errno : 0);
}

// One pipe of a process that is run to its end: what it is to read, or what it has written.
struct flow {
	int fd;
	const uint8_t *input;
	size_t left;
	uint8_t *output;
	size_t length;
};

static bool writable(const struct flow *flow)
{
	return flow->left > 0;
}

// Moves what can be moved. False when the end is reached, or something went wrong.
static bool move(struct flow *flow, short events, size_t most, int *problem)
{
	if (writable(flow) && events & (POLLOUT | POLLERR | POLLHUP)) {
		ssize_t count = send(flow->fd, flow->input, flow->left, MSG_NOSIGNAL);
		if (count < 0)
			return errno == EAGAIN || errno == EINTR;
		flow->input += count;
		flow->left -= count;
		if (!flow->left)
			shutdown(flow->fd, SHUT_WR);
	}
	if (events & (POLLIN | POLLHUP | POLLERR)) {
		uint8_t piece[65536];
		ssize_t count = read(flow->fd, piece, sizeof piece);
		if (count < 0)
			return errno == EAGAIN || errno == EINTR;
		if (!count)
			return false;
		// Output beyond the limit is kept, but it is the end.
		if (flow->length + count > most)
			*problem = UV_ENOBUFS;
		flow->output = got(realloc(flow->output, flow->length + count + 1));
		memcpy(flow->output + flow->length, piece, count);
		flow->length += count;
	}
	return true;
}

// Until the process has ended and nobody holds its pipes, or the time is up. The process is ended
// by `signal` then, and when it writes more than `most`. An ended process is not signalled: its
// number may be another's.
static int wait_for(pid_t pid, struct flow *flows, int count, double timeout, size_t most, int signal, int *problem)
{
	struct pollfd polled[64];
	uint64_t began = uv_hrtime();
	int status = 0, open = 0;
	bool ended = false, killed = false;
	for (int i = 0; i < count; i++)
		open += flows[i].fd >= 0;
	while (open || !ended) {
		for (int i = 0; i < count; i++)
			polled[i] = (struct pollfd){ flows[i].fd, POLLIN | (writable(&flows[i]) ? POLLOUT : 0), 0 };
		// The end of a process without pipes is looked for.
		int wait = open ? 100 : 5;
		double left = timeout - (uv_hrtime() - began) / 1e6;
		if (timeout > 0 && left < wait)
			wait = left > 0 ? left : 0;
		if (!open && (timeout <= 0 || killed)) {
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
			break;
		}
		poll(polled, count, wait);
		for (int i = 0; i < count; i++)
			if (flows[i].fd >= 0 && polled[i].revents &&
			    !move(&flows[i], polled[i].revents, most, problem)) {
				close(flows[i].fd);
				flows[i].fd = -1;
				open--;
			}
		if (!ended && waitpid(pid, &status, WNOHANG) == pid)
			ended = true;
		if (timeout > 0 && (uv_hrtime() - began) / 1e6 >= timeout && !*problem)
			*problem = UV_ETIMEDOUT;
		if (*problem && !killed) {
			killed = true;
			if (!ended)
				kill(pid, signal);
			for (int i = 0; i < count; i++)
				if (flows[i].fd >= 0) {
					close(flows[i].fd);
					flows[i].fd = -1;
				}
			open = 0;
		}
	}
	return status;
}

// An errno, or 0.
static int flow_of(JSContext *ctx, JSValueConst entry, struct flow *flow, int *child)
{
	// A number is a descriptor, a buffer or null a pipe.
	*flow = (struct flow){ .fd = -1 };
	if (JS_IsNumber(entry)) {
		*child = int_of(ctx, entry);
		return 0;
	}
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		*child = -1;
		return -errno;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	flow->fd = fds[0];
	*child = fds[1];
	if (JS_IsObject(entry))
		flow->input = bytes_of(ctx, entry, &flow->left);
	if (!flow->left)
		shutdown(fds[0], SHUT_WR);
	return 0;
}

// run(options, [entries...], timeout, most, signal): [pid, status, signal, errno, outputs]
static JSValue run(ARGS)
{
	int64_t count = 0;
	struct flow flows[64];
	int fds[64], problem = 0, status = 0;
	JS_GetLength(ctx, argv[1], &count);
	if (count > 64)
		return JS_ThrowRangeError(ctx, "spawnSync: at most 64 descriptors, not %d", (int)count);
	for (int64_t i = 0; i < count; i++) {
		JSValue entry = JS_GetPropertyUint32(ctx, argv[1], i);
		int failed = flow_of(ctx, entry, &flows[i], &fds[i]);
		problem = problem ? problem : failed;
		JS_FreeValue(ctx, entry);
	}
	int pid = problem ? problem : start(ctx, argv[0], fds, count);
	for (int64_t i = 0; i < count; i++)
		if (flows[i].fd >= 0)
			close(fds[i]);
	double most = number_of(ctx, argv[3]);
	if (pid > 0)
		status = wait_for(pid, flows, count, number_of(ctx, argv[2]),
		    most > 0 && most < 1e9 ? (size_t)most : 1000000000, int_of(ctx, argv[4]), &problem);
	else
		problem = pid;
	JSValue outputs = JS_NewArray(ctx), list = JS_NewArray(ctx);
	for (int64_t i = 0; i < count; i++) {
		if (flows[i].fd >= 0)
			close(flows[i].fd);
		JSValue entry = JS_GetPropertyUint32(ctx, argv[1], i);
		JS_SetPropertyUint32(ctx, outputs, i,
		    JS_IsNumber(entry) ? JS_NULL : JS_NewUint8ArrayCopy(ctx, flows[i].output, flows[i].length));
		JS_FreeValue(ctx, entry);
		free(flows[i].output);
	}
	int values[] = { pid, WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		problem };
	for (int i = 0; i < 4; i++)
		JS_SetPropertyUint32(ctx, list, i, JS_NewInt32(ctx, values[i]));
	JS_SetPropertyUint32(ctx, list, 4, outputs);
	return list;
}

static const JSCFunctionListEntry list[] = {
	FUNCTION(spawn, 3),
	FUNCTION(hold_child, 2),
	FUNCTION(pair, 0),
	JS_CFUNC_DEF("close", 1, close_descriptor),
	JS_CFUNC_DEF("kill", 2, kill_process),
	FUNCTION(run, 5),
};

JSValue spawn_functions(JSContext *ctx)
{
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	return object;
}
