// Streams of the event loop: TCP, pipes (sockets of the file system and descriptors) and terminals.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"

// stream_new(kind, argument): kind is "tcp", "pipe" (argument: whether descriptors are passed) or
// "tty" (argument: the descriptor). A number is what went wrong.
static JSValue stream_new(ARGS)
{
	struct handle *handle;
	const char *kind = JS_ToCString(ctx, argv[0]);
	JSValue object = new_handle(ctx, &handle);
	if (!kind || JS_IsException(object))
		return JS_EXCEPTION;
	uv_loop_t *loop = &handle->env->loop;
	int status = !strcmp(kind, "tcp") ? uv_tcp_init(loop, &handle->uv.tcp)
	    : !strcmp(kind, "pipe")       ? uv_pipe_init(loop, &handle->uv.pipe, JS_ToBool(ctx, argv[1]))
					  : uv_tty_init(loop, &handle->uv.tty, int_of(ctx, argv[1]), 0);
	JS_FreeCString(ctx, kind);
	handle->uv.any.data = handle;
	if (!status)
		return object;
	handle->closed = true;
	JS_FreeValue(ctx, handle->self);
	JS_FreeValue(ctx, object);
	return JS_NewInt32(ctx, status);
}

#define HANDLE(name) \
	struct handle *name = handle_of(ctx, argv[0]); \
	if (!name) \
		return JS_EXCEPTION; \
	if (name->closed || uv_is_closing(&name->uv.any)) \
	return JS_NewInt32(ctx, UV_EBADF)

// open(handle, descriptor)
static JSValue open_stream(ARGS)
{
	HANDLE(handle);
	int fd = int_of(ctx, argv[1]);
	int status =
	    handle->uv.any.type == UV_TCP ? uv_tcp_open(&handle->uv.tcp, fd) : uv_pipe_open(&handle->uv.pipe, fd);
	return JS_NewInt32(ctx, status);
}

// tcp_bind(handle, address, port, flags)
static JSValue tcp_bind(ARGS)
{
	struct sockaddr_storage address;
	HANDLE(handle);
	if (!parse_address(ctx, argv[1], argv[2], &address)) {
		JS_FreeValue(ctx, JS_GetException(ctx));
		return JS_NewInt32(ctx, UV_EINVAL);
	}
	return JS_NewInt32(ctx, uv_tcp_bind(&handle->uv.tcp, (struct sockaddr *)&address, int_of(ctx, argv[3])));
}

static JSValue pipe_bind(ARGS)
{
	HANDLE(handle);
	const char *name = JS_ToCString(ctx, argv[1]);
	int status = name ? uv_pipe_bind(&handle->uv.pipe, name) : UV_EINVAL;
	JS_FreeCString(ctx, name);
	return JS_NewInt32(ctx, status);
}

static void on_connection(uv_stream_t *uv, int status)
{
	struct handle *handle = uv->data;
	JSValue code = JS_NewInt32(handle->env->ctx, status);
	call_from_loop(handle->env, handle->on_event, 1, &code);
}

// listen(handle, backlog, function)
static JSValue listen_stream(ARGS)
{
	HANDLE(handle);
	JS_FreeValue(ctx, handle->on_event);
	handle->on_event = JS_DupValue(ctx, argv[2]);
	return JS_NewInt32(ctx, uv_listen(&handle->uv.stream, int_of(ctx, argv[1]), on_connection));
}

// accept(server, client)
static JSValue accept_stream(ARGS)
{
	HANDLE(server);
	struct handle *client = handle_of(ctx, argv[1]);
	if (!client)
		return JS_EXCEPTION;
	return JS_NewInt32(ctx, uv_accept(&server->uv.stream, &client->uv.stream));
}

static void on_connect(uv_connect_t *uv, int status)
{
	request_done(uv->data, status);
}

// tcp_connect(handle, address, port, done)
static JSValue tcp_connect(ARGS)
{
	struct sockaddr_storage address;
	HANDLE(handle);
	if (!parse_address(ctx, argv[1], argv[2], &address)) {
		JS_FreeValue(ctx, JS_GetException(ctx));
		return JS_NewInt32(ctx, UV_EINVAL);
	}
	struct request *request = new_request(ctx, argv[3], argv[0]);
	int status = uv_tcp_connect(&request->uv.connect, &handle->uv.tcp, (struct sockaddr *)&address, on_connect);
	if (status)
		free_request(request);
	return JS_NewInt32(ctx, status);
}

// pipe_connect(handle, name, done)
static JSValue pipe_connect(ARGS)
{
	HANDLE(handle);
	const char *name = JS_ToCString(ctx, argv[1]);
	if (!name)
		return JS_EXCEPTION;
	struct request *request = new_request(ctx, argv[2], argv[0]);
	uv_pipe_connect(&request->uv.connect, &handle->uv.pipe, name, on_connect);
	JS_FreeCString(ctx, name);
	return JS_NewInt32(ctx, 0);
}

static void give_room(uv_handle_t *uv, size_t wanted, uv_buf_t *buffer)
{
	buffer->base = malloc(wanted);
	buffer->len = buffer->base ? wanted : 0;
}

// on_event(count, bytes, accepted): a negative count is an errno; `accepted` is the kind of a
// handle that came with the data.
static void on_read(uv_stream_t *uv, ssize_t count, const uv_buf_t *buffer)
{
	struct handle *handle = uv->data;
	JSContext *ctx = handle->env->ctx;
	JSValue list[3] = { JS_NewInt64(ctx, count), JS_UNDEFINED, JS_UNDEFINED };
	if (count == 0) {
		free(buffer->base);
		return;
	}
	if (count > 0)
		list[1] = own_bytes(ctx, got(realloc(buffer->base, count)), count);
	else
		free(buffer->base);
	if (uv->type == UV_NAMED_PIPE && ((uv_pipe_t *)uv)->ipc && uv_pipe_pending_count((uv_pipe_t *)uv)) {
		uv_handle_type type = uv_pipe_pending_type((uv_pipe_t *)uv);
		list[2] = JS_NewString(ctx, type == UV_TCP ? "tcp" : type == UV_NAMED_PIPE ? "pipe" : "udp");
	}
	call_from_loop(handle->env, handle->on_event, 3, list);
}

// read_start(handle, function)
static JSValue read_start(ARGS)
{
	HANDLE(handle);
	JS_FreeValue(ctx, handle->on_event);
	handle->on_event = JS_DupValue(ctx, argv[1]);
	return JS_NewInt32(ctx, uv_read_start(&handle->uv.stream, give_room, on_read));
}

static JSValue read_stop(ARGS)
{
	HANDLE(handle);
	return JS_NewInt32(ctx, uv_read_stop(&handle->uv.stream));
}

static void on_written(uv_write_t *uv, int status)
{
	request_done(uv->data, status);
}

// write(handle, [bytes...], done, [handle to send]): an errno, or how many bytes are still to be
// written, after which `done` is called; 0 if there are none, and `done` is not called.
static JSValue write_stream(ARGS)
{
	HANDLE(handle);
	int64_t count = 0, total = 0;
	struct handle *sent = argc > 3 && JS_IsObject(argv[3]) ? handle_of(ctx, argv[3]) : NULL;
	JS_GetLength(ctx, argv[1], &count);
	uv_buf_t *buffers = got(calloc(count + 1, sizeof *buffers)), *rest = buffers;
	for (int64_t i = 0; i < count; i++) {
		JSValue piece = JS_GetPropertyUint32(ctx, argv[1], i);
		size_t length = 0;
		buffers[i].base = (char *)bytes_of(ctx, piece, &length);
		buffers[i].len = length;
		total += length;
		JS_FreeValue(ctx, piece);
		if (!buffers[i].base) {
			free(buffers);
			return JS_EXCEPTION;
		}
	}
	int64_t left = total;
	int status = 0;
	if (!sent) {
		status = uv_try_write(&handle->uv.stream, buffers, count);
		if (status == UV_EAGAIN || status == UV_ENOSYS)
			status = 0;
		size_t done = status > 0 ? status : 0;
		left -= done;
		for (; count && done >= rest->len; count--)
			done -= rest++->len;
		if (count)
			rest->base += done, rest->len -= done;
	}
	// Pieces may be the same memory: together they can be more than there is.
	if (status >= 0 && left >= INT32_MAX)
		status = UV_ENOMEM;
	if (status >= 0 && (left || sent)) {
		struct request *request = new_request(ctx, argv[2], JS_UNDEFINED);
		// A copy: the program may detach its bytes before they are written.
		uv_buf_t copy = uv_buf_init(request->memory = got(malloc(left + 1)), left);
		for (char *to = copy.base; count; to += rest++->len, count--)
			memcpy(to, rest->base, rest->len);
		status = uv_write2(
		    &request->uv.write, &handle->uv.stream, &copy, 1, sent ? &sent->uv.stream : NULL, on_written);
		if (status)
			free_request(request);
		else if (!left)
			left = 1;
	}
	free(buffers);
	return JS_NewInt64(ctx, status < 0 ? status : left);
}

static void on_shutdown(uv_shutdown_t *uv, int status)
{
	request_done(uv->data, status);
}

// shutdown(handle, done)
static JSValue shutdown_stream(ARGS)
{
	HANDLE(handle);
	struct request *request = new_request(ctx, argv[1], argv[0]);
	int status = uv_shutdown(&request->uv.shutdown, &handle->uv.stream, on_shutdown);
	if (status)
		free_request(request);
	return JS_NewInt32(ctx, status);
}

// name(handle, peer): {address, port, family}, a path, or an errno.
static JSValue stream_name(ARGS)
{
	struct sockaddr_storage address;
	int length = sizeof address, status;
	char path[4096];
	size_t size = sizeof path;
	bool peer = JS_ToBool(ctx, argv[1]);
	HANDLE(handle);
	switch (handle->uv.any.type) {
	case UV_TCP:
		status = peer ? uv_tcp_getpeername(&handle->uv.tcp, (void *)&address, &length)
			      : uv_tcp_getsockname(&handle->uv.tcp, (void *)&address, &length);
		return status ? JS_NewInt32(ctx, status) : address_object(ctx, (void *)&address);
	case UV_UDP:
		status = peer ? uv_udp_getpeername(&handle->uv.udp, (void *)&address, &length)
			      : uv_udp_getsockname(&handle->uv.udp, (void *)&address, &length);
		return status ? JS_NewInt32(ctx, status) : address_object(ctx, (void *)&address);
	case UV_NAMED_PIPE:
		status = peer ? uv_pipe_getpeername(&handle->uv.pipe, path, &size)
			      : uv_pipe_getsockname(&handle->uv.pipe, path, &size);
		return status ? JS_NewInt32(ctx, status) : new_utf8(ctx, (const uint8_t *)path, size);
	default:
		return JS_NewInt32(ctx, UV_EINVAL);
	}
}

// tcp_option(handle, which, value, delay): "nodelay", "keepalive", "reset".
static JSValue tcp_option(ARGS)
{
	HANDLE(handle);
	const char *which = JS_ToCString(ctx, argv[1]);
	int status = UV_EINVAL;
	if (which && !strcmp(which, "nodelay"))
		status = uv_tcp_nodelay(&handle->uv.tcp, JS_ToBool(ctx, argv[2]));
	else if (which && !strcmp(which, "keepalive"))
		status = uv_tcp_keepalive(&handle->uv.tcp, JS_ToBool(ctx, argv[2]), int_of(ctx, argv[3]));
	JS_FreeCString(ctx, which);
	return JS_NewInt32(ctx, status);
}

static JSValue descriptor(ARGS)
{
	uv_os_fd_t fd;
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle || handle->closed || uv_fileno(&handle->uv.any, &fd))
		return JS_NewInt32(ctx, -1);
	return JS_NewInt32(ctx, fd);
}

static JSValue set_blocking(ARGS)
{
	HANDLE(handle);
	return JS_NewInt32(ctx, uv_stream_set_blocking(&handle->uv.stream, JS_ToBool(ctx, argv[1])));
}

static JSValue pending(ARGS)
{
	HANDLE(handle);
	return JS_NewInt64(ctx, uv_stream_get_write_queue_size(&handle->uv.stream));
}

static JSValue tty_mode(ARGS)
{
	HANDLE(handle);
	return JS_NewInt32(
	    ctx, uv_tty_set_mode(&handle->uv.tty, JS_ToBool(ctx, argv[1]) ? UV_TTY_MODE_RAW : UV_TTY_MODE_NORMAL));
}

// tty_size(handle): [columns, rows], or an errno.
static JSValue tty_size(ARGS)
{
	int width, height;
	HANDLE(handle);
	int status = uv_tty_get_winsize(&handle->uv.tty, &width, &height);
	if (status)
		return JS_NewInt32(ctx, status);
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt32(ctx, width));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt32(ctx, height));
	return list;
}

// kind_of(descriptor): what node calls it.
static JSValue kind_of(ARGS)
{
	switch (uv_guess_handle(int_of(ctx, argv[0]))) {
	case UV_TCP:
		return JS_NewString(ctx, "TCP");
	case UV_TTY:
		return JS_NewString(ctx, "TTY");
	case UV_UDP:
		return JS_NewString(ctx, "UDP");
	case UV_FILE:
		return JS_NewString(ctx, "FILE");
	case UV_NAMED_PIPE:
		return JS_NewString(ctx, "PIPE");
	default:
		return JS_NewString(ctx, "UNKNOWN");
	}
}

static const JSCFunctionListEntry list[] = {
	FUNCTION(stream_new, 2),
	JS_CFUNC_DEF("open", 2, open_stream),
	FUNCTION(tcp_bind, 4),
	FUNCTION(pipe_bind, 2),
	JS_CFUNC_DEF("listen", 3, listen_stream),
	JS_CFUNC_DEF("accept", 2, accept_stream),
	FUNCTION(tcp_connect, 4),
	FUNCTION(pipe_connect, 3),
	FUNCTION(read_start, 2),
	FUNCTION(read_stop, 1),
	JS_CFUNC_DEF("write", 4, write_stream),
	JS_CFUNC_DEF("shutdown", 2, shutdown_stream),
	FUNCTION(stream_name, 2),
	FUNCTION(tcp_option, 4),
	FUNCTION(descriptor, 1),
	FUNCTION(set_blocking, 2),
	FUNCTION(pending, 1),
	FUNCTION(tty_mode, 2),
	FUNCTION(tty_size, 1),
	FUNCTION(kind_of, 1),
};

JSValue stream_functions(JSContext *ctx)
{
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	return object;
}
