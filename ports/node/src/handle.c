// Handles of the event loop: what all of them have, and signals, watches and names of hosts.
#include "handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

JSClassID handle_class;

static void collect_handle(JSRuntime *rt, JSValueConst object)
{
	struct handle *handle = JS_GetOpaque(object, handle_class);
	if (!handle)
		return;
	// An open handle keeps its object, so this one is closed or was never started.
	handle->collected = true;
	if (handle->closed)
		free(handle);
}

static void mark_handle(JSRuntime *rt, JSValueConst object, JS_MarkFunc *mark)
{
	struct handle *handle = JS_GetOpaque(object, handle_class);
	if (!handle)
		return;
	JS_MarkValue(rt, handle->on_event, mark);
	JS_MarkValue(rt, handle->on_close, mark);
}

struct handle *handle_of(JSContext *ctx, JSValueConst object)
{
	return JS_GetOpaque2(ctx, object, handle_class);
}

JSValue new_handle(JSContext *ctx, struct handle **place)
{
	JSValue object = JS_NewObjectClass(ctx, handle_class);
	struct handle *handle = calloc(1, sizeof *handle);
	if (!handle || JS_IsException(object)) {
		free(handle);
		return JS_ThrowOutOfMemory(ctx);
	}
	handle->env = env_of(ctx);
	handle->self = JS_DupValue(ctx, object);
	handle->on_event = handle->on_close = JS_UNDEFINED;
	JS_SetOpaque(object, handle);
	*place = handle;
	return object;
}

struct request *new_request(JSContext *ctx, JSValueConst done, JSValueConst kept)
{
	struct request *request = got(calloc(1, sizeof *request));
	request->env = env_of(ctx);
	request->done = JS_DupValue(ctx, done);
	request->kept = JS_DupValue(ctx, kept);
	request->uv.any.data = request;
	return request;
}

void free_request(struct request *request)
{
	JS_FreeValue(request->env->ctx, request->done);
	JS_FreeValue(request->env->ctx, request->kept);
	free(request->memory);
	free(request);
}

void request_done(struct request *request, int status)
{
	JSValue code = JS_NewInt32(request->env->ctx, status);
	call_from_loop(request->env, request->done, 1, &code);
	free_request(request);
}

static void on_closed(uv_handle_t *uv)
{
	struct handle *handle = uv->data;
	struct env *env = handle->env;
	JSValue closing = handle->on_close, self = handle->self, event = handle->on_event;
	handle->closed = true;
	handle->on_close = handle->on_event = handle->self = JS_UNDEFINED;
	call_from_loop(env, closing, 0, NULL);
	JS_FreeValue(env->ctx, closing);
	JS_FreeValue(env->ctx, event);
	JS_FreeValue(env->ctx, self);
}

// close(handle, done)
static JSValue close_handle(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle || handle->closed || uv_is_closing(&handle->uv.any))
		return handle ? JS_FALSE : JS_EXCEPTION;
	handle->on_close = JS_DupValue(ctx, argv[1]);
	uv_close(&handle->uv.any, on_closed);
	return JS_TRUE;
}

static JSValue hold(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle || handle->closed)
		return JS_UNDEFINED;
	if (JS_ToBool(ctx, argv[1]))
		uv_ref(&handle->uv.any);
	else
		uv_unref(&handle->uv.any);
	return JS_UNDEFINED;
}

static JSValue has_ref(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	return JS_NewBool(
	    ctx, handle && !handle->closed && !uv_is_closing(&handle->uv.any) && uv_has_ref(&handle->uv.any));
}

static JSValue is_active(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	return JS_NewBool(ctx, handle && !handle->closed && uv_is_active(&handle->uv.any));
}

static void set_event(JSContext *ctx, struct handle *handle, JSValueConst function)
{
	JS_FreeValue(ctx, handle->on_event);
	handle->on_event = JS_DupValue(ctx, function);
}

static JSValue signal_new(ARGS)
{
	struct handle *handle;
	JSValue object = new_handle(ctx, &handle);
	if (!JS_IsException(object)) {
		uv_signal_init(&handle->env->loop, &handle->uv.signal);
		handle->uv.any.data = handle;
	}
	return object;
}

static void on_signal(uv_signal_t *uv, int number)
{
	struct handle *handle = uv->data;
	JSValue value = JS_NewInt32(handle->env->ctx, number);
	call_from_loop(handle->env, handle->on_event, 1, &value);
}

// signal_start(handle, number, function)
static JSValue signal_start(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle || handle->closed)
		return JS_NewInt32(ctx, UV_EINVAL);
	set_event(ctx, handle, argv[2]);
	return JS_NewInt32(ctx, uv_signal_start(&handle->uv.signal, on_signal, int_of(ctx, argv[1])));
}

static JSValue signal_stop(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle || handle->closed)
		return JS_NewInt32(ctx, UV_EINVAL);
	return JS_NewInt32(ctx, uv_signal_stop(&handle->uv.signal));
}

static JSValue watch_new(ARGS)
{
	struct handle *handle;
	JSValue object = new_handle(ctx, &handle);
	if (!JS_IsException(object)) {
		uv_fs_event_init(&handle->env->loop, &handle->uv.watch);
		handle->uv.any.data = handle;
	}
	return object;
}

static void on_change(uv_fs_event_t *uv, const char *name, int events, int status)
{
	struct handle *handle = uv->data;
	JSContext *ctx = handle->env->ctx;
	JSValue list[] = { JS_NewInt32(ctx, status), JS_NewInt32(ctx, events),
		name ? new_utf8(ctx, (const uint8_t *)name, strlen(name)) : JS_NULL };
	call_from_loop(handle->env, handle->on_event, 3, list);
}

// watch_start(handle, path, flags, function)
static JSValue watch_start(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	const char *path = JS_ToCString(ctx, argv[1]);
	if (!handle || !path)
		return JS_EXCEPTION;
	set_event(ctx, handle, argv[3]);
	int status = uv_fs_event_start(&handle->uv.watch, on_change, path, int_of(ctx, argv[2]));
	JS_FreeCString(ctx, path);
	return JS_NewInt32(ctx, status);
}

static void on_lookup(uv_getaddrinfo_t *uv, int status, struct addrinfo *found)
{
	struct request *request = uv->data;
	JSContext *ctx = request->env->ctx;
	JSValue list = JS_NewArray(ctx);
	uint32_t n = 0;
	for (struct addrinfo *each = found; each; each = each->ai_next)
		if (each->ai_family == AF_INET || each->ai_family == AF_INET6)
			JS_SetPropertyUint32(ctx, list, n++, address_object(ctx, each->ai_addr));
	uv_freeaddrinfo(found);
	JSValue args[] = { JS_NewInt32(ctx, status), list };
	call_from_loop(request->env, request->done, 2, args);
	free_request(request);
}

// lookup(host, family, flags, done): done(errno, [{address, family}])
static JSValue lookup(ARGS)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	int family = int_of(ctx, argv[1]);
	hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
	hints.ai_flags = int_of(ctx, argv[2]);
	const char *host = JS_ToCString(ctx, argv[0]);
	struct request *request = new_request(ctx, argv[3], JS_UNDEFINED);
	int status = uv_getaddrinfo(&request->env->loop, &request->uv.lookup, on_lookup, host, NULL, &hints);
	JS_FreeCString(ctx, host);
	if (status)
		free_request(request);
	return JS_NewInt32(ctx, status);
}

static void on_name(uv_getnameinfo_t *uv, int status, const char *host, const char *service)
{
	struct request *request = uv->data;
	JSContext *ctx = request->env->ctx;
	JSValue args[] = { JS_NewInt32(ctx, status), host ? JS_NewString(ctx, host) : JS_NULL,
		service ? JS_NewString(ctx, service) : JS_NULL };
	call_from_loop(request->env, request->done, 3, args);
	free_request(request);
}

// name_of(address, port, done)
static JSValue name_of(ARGS)
{
	struct sockaddr_storage address;
	if (!parse_address(ctx, argv[0], argv[1], &address))
		return JS_EXCEPTION;
	struct request *request = new_request(ctx, argv[2], JS_UNDEFINED);
	int status =
	    uv_getnameinfo(&request->env->loop, &request->uv.name, on_name, (struct sockaddr *)&address, NI_NAMEREQD);
	if (status)
		free_request(request);
	return JS_NewInt32(ctx, status);
}

bool parse_address(JSContext *ctx, JSValueConst text, JSValueConst port, struct sockaddr_storage *address)
{
	const char *name = JS_ToCString(ctx, text);
	int number = int_of(ctx, port);
	if (!name)
		return false;
	memset(address, 0, sizeof *address);
	bool good = !uv_ip4_addr(name, number, (struct sockaddr_in *)address) ||
	    !uv_ip6_addr(name, number, (struct sockaddr_in6 *)address);
	if (!good)
		JS_ThrowTypeError(ctx, "'%s' is not an IP address", name);
	JS_FreeCString(ctx, name);
	return good;
}

JSValue address_object(JSContext *ctx, const struct sockaddr *address)
{
	char text[INET6_ADDRSTRLEN + 32] = "";
	JSValue object = JS_NewObject(ctx);
	bool six = address->sa_family == AF_INET6;
	if (six)
		uv_ip6_name((const struct sockaddr_in6 *)address, text, sizeof text);
	else
		uv_ip4_name((const struct sockaddr_in *)address, text, sizeof text);
	in_port_t port =
	    six ? ((const struct sockaddr_in6 *)address)->sin6_port : ((const struct sockaddr_in *)address)->sin_port;
	set(ctx, object, "address", JS_NewString(ctx, text));
	set(ctx, object, "family", JS_NewString(ctx, six ? "IPv6" : "IPv4"));
	set(ctx, object, "port", JS_NewInt32(ctx, ntohs(port)));
	return object;
}

// canonical(address): as text, or undefined if it is none.
static JSValue canonical(ARGS)
{
	const char *text = JS_ToCString(ctx, argv[0]);
	char out[INET6_ADDRSTRLEN], in[16];
	int family = text && !uv_inet_pton(AF_INET, text, in) ? AF_INET
	    : text && !uv_inet_pton(AF_INET6, text, in)       ? AF_INET6
							      : 0;
	JS_FreeCString(ctx, text);
	if (!family || uv_inet_ntop(family, in, out, sizeof out))
		return JS_UNDEFINED;
	return JS_NewString(ctx, out);
}

static const JSCFunctionListEntry list[] = {
	JS_CFUNC_DEF("close", 2, close_handle),
	FUNCTION(hold, 2),
	FUNCTION(has_ref, 1),
	FUNCTION(is_active, 1),
	FUNCTION(signal_new, 0),
	FUNCTION(signal_start, 3),
	FUNCTION(signal_stop, 1),
	FUNCTION(watch_new, 0),
	FUNCTION(watch_start, 4),
	FUNCTION(lookup, 4),
	FUNCTION(name_of, 3),
	FUNCTION(canonical, 1),
};

JSValue handle_functions(JSContext *ctx)
{
	JSRuntime *rt = JS_GetRuntime(ctx);
	JSClassDef class = { "Handle", .finalizer = collect_handle, .gc_mark = mark_handle };
	JS_NewClassID(rt, &handle_class);
	JS_NewClass(rt, handle_class, &class);
	JSValue object = stream_functions(ctx);
	EXPORT(ctx, object, list);
	udp_functions(ctx, object);
	return object;
}
