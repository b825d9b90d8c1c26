// UDP sockets.
#include <stdlib.h>

#include "handle.h"

static JSValue udp_new(ARGS)
{
	struct handle *handle;
	JSValue object = new_handle(ctx, &handle);
	if (!JS_IsException(object)) {
		uv_udp_init(&handle->env->loop, &handle->uv.udp);
		handle->uv.any.data = handle;
	}
	return object;
}

// udp_bind(handle, address, port, flags)
static JSValue udp_bind(ARGS)
{
	struct sockaddr_storage address;
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle || !parse_address(ctx, argv[1], argv[2], &address))
		return JS_EXCEPTION;
	return JS_NewInt32(ctx, uv_udp_bind(&handle->uv.udp, (struct sockaddr *)&address, int_of(ctx, argv[3])));
}

// udp_connect(handle, address, port); without an address it is ended.
static JSValue udp_connect(ARGS)
{
	struct sockaddr_storage address;
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle)
		return JS_EXCEPTION;
	if (JS_IsUndefined(argv[1]))
		return JS_NewInt32(ctx, uv_udp_connect(&handle->uv.udp, NULL));
	if (!parse_address(ctx, argv[1], argv[2], &address))
		return JS_EXCEPTION;
	return JS_NewInt32(ctx, uv_udp_connect(&handle->uv.udp, (struct sockaddr *)&address));
}

static void on_sent(uv_udp_send_t *uv, int status)
{
	request_done(uv->data, status);
}

// udp_send(handle, bytes, address, port, done): the address is undefined if it is connected.
static JSValue udp_send(ARGS)
{
	struct sockaddr_storage address;
	size_t length;
	struct handle *handle = handle_of(ctx, argv[0]);
	uint8_t *data = bytes_of(ctx, argv[1], &length);
	bool to = !JS_IsUndefined(argv[2]);
	if (!handle || !data || (to && !parse_address(ctx, argv[2], argv[3], &address)))
		return JS_EXCEPTION;
	uv_buf_t buffer = uv_buf_init((char *)data, length);
	struct request *request = new_request(ctx, argv[4], argv[1]);
	int status = uv_udp_send(
	    &request->uv.send, &handle->uv.udp, &buffer, 1, to ? (struct sockaddr *)&address : NULL, on_sent);
	if (status)
		free_request(request);
	return JS_NewInt32(ctx, status);
}

static void give_room(uv_handle_t *uv, size_t wanted, uv_buf_t *buffer)
{
	buffer->base = malloc(wanted);
	buffer->len = buffer->base ? wanted : 0;
}

static void on_packet(uv_udp_t *uv, ssize_t count, const uv_buf_t *buffer, const struct sockaddr *from, unsigned flags)
{
	struct handle *handle = uv->data;
	JSContext *ctx = handle->env->ctx;
	if (count == 0 && !from) {
		free(buffer->base);
		return;
	}
	JSValue list[3] = { JS_NewInt64(ctx, count), JS_UNDEFINED, JS_UNDEFINED };
	if (count >= 0)
		list[1] = own_bytes(ctx, got(realloc(buffer->base, count ? count : 1)), count);
	else
		free(buffer->base);
	if (from)
		list[2] = address_object(ctx, from);
	call_from_loop(handle->env, handle->on_event, 3, list);
}

// udp_receive(handle, function); undefined stops it.
static JSValue udp_receive(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle)
		return JS_EXCEPTION;
	if (JS_IsUndefined(argv[1]))
		return JS_NewInt32(ctx, uv_udp_recv_stop(&handle->uv.udp));
	JS_FreeValue(ctx, handle->on_event);
	handle->on_event = JS_DupValue(ctx, argv[1]);
	return JS_NewInt32(ctx, uv_udp_recv_start(&handle->uv.udp, give_room, on_packet));
}

// udp_option(handle, which, value): 0, or an errno.
static JSValue udp_option(ARGS)
{
	static int (*const options[])(uv_udp_t *, int) = { uv_udp_set_broadcast, uv_udp_set_ttl,
		uv_udp_set_multicast_ttl, uv_udp_set_multicast_loop };
	struct handle *handle = handle_of(ctx, argv[0]);
	unsigned which = int_of(ctx, argv[1]);
	if (!handle)
		return JS_EXCEPTION;
	if (which >= sizeof options / sizeof *options)
		return JS_NewInt32(ctx, UV_EINVAL);
	return JS_NewInt32(ctx, options[which](&handle->uv.udp, int_of(ctx, argv[2])));
}

// udp_group(handle, address, interface, joins): enters or leaves a group of receivers. Without an
// address, the interface is what packets for groups are sent by.
static JSValue udp_group(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	const char *address = JS_IsUndefined(argv[1]) ? NULL : JS_ToCString(ctx, argv[1]);
	const char *interface = JS_IsUndefined(argv[2]) ? NULL : JS_ToCString(ctx, argv[2]);
	int status = UV_EINVAL;
	if (handle && address)
		status = uv_udp_set_membership(
		    &handle->uv.udp, address, interface, JS_ToBool(ctx, argv[3]) ? UV_JOIN_GROUP : UV_LEAVE_GROUP);
	else if (handle && interface)
		status = uv_udp_set_multicast_interface(&handle->uv.udp, interface);
	JS_FreeCString(ctx, address);
	JS_FreeCString(ctx, interface);
	return handle ? JS_NewInt32(ctx, status) : JS_EXCEPTION;
}

// udp_buffer(handle, whether to receive, size): the size of the system's buffer, which is set
// unless it is 0; or an errno.
static JSValue udp_buffer(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	int size = int_of(ctx, argv[2]);
	if (!handle)
		return JS_EXCEPTION;
	int status = JS_ToBool(ctx, argv[1]) ? uv_recv_buffer_size(&handle->uv.any, &size)
					     : uv_send_buffer_size(&handle->uv.any, &size);
	return JS_NewInt32(ctx, status ? status : size);
}

// udp_queue(handle): [bytes, packets] that wait to be sent.
static JSValue udp_queue(ARGS)
{
	struct handle *handle = handle_of(ctx, argv[0]);
	if (!handle)
		return JS_EXCEPTION;
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt64(ctx, uv_udp_get_send_queue_size(&handle->uv.udp)));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt64(ctx, uv_udp_get_send_queue_count(&handle->uv.udp)));
	return list;
}

static const JSCFunctionListEntry list[] = {
	FUNCTION(udp_option, 3),
	FUNCTION(udp_group, 4),
	FUNCTION(udp_buffer, 3),
	FUNCTION(udp_queue, 1),
	FUNCTION(udp_new, 0),
	FUNCTION(udp_bind, 4),
	FUNCTION(udp_connect, 3),
	FUNCTION(udp_send, 5),
	FUNCTION(udp_receive, 2),
};

void udp_functions(JSContext *ctx, JSValue object)
{
	EXPORT(ctx, object, list);
}
