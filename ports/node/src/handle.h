// One handle of the event loop as an object of JavaScript.
#pragma once

#include "node.h"

struct handle {
	union {
		uv_handle_t any;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
		uv_tty_t tty;
		uv_udp_t udp;
		uv_signal_t signal;
		uv_fs_event_t watch;
		uv_fs_poll_t poll;
	} uv;
	struct env *env;
	// The object while the handle is open, so that it outlives the program's interest in it.
	JSValue self, on_event, on_close;
	bool closed, collected;
};

extern JSClassID handle_class;

// The open handle that an object stands for; NULL, with an exception, if it is none.
struct handle *handle_of(JSContext *ctx, JSValueConst object);

// A new handle of a kind, or an exception.
JSValue new_handle(JSContext *ctx, struct handle **handle);

// Streams, and what is particular to UDP: lists of functions.
JSValue stream_functions(JSContext *ctx);
void udp_functions(JSContext *ctx, JSValue object);

// A request of the loop, such as a write, and the function to call when it is done.
struct request {
	union {
		uv_req_t any;
		uv_write_t write;
		uv_shutdown_t shutdown;
		uv_connect_t connect;
		uv_udp_send_t send;
		uv_getaddrinfo_t lookup;
		uv_getnameinfo_t name;
	} uv;
	struct env *env;
	JSValue done, kept;
	// Bytes that wait to be written.
	char *memory;
};

struct request *new_request(JSContext *ctx, JSValueConst done, JSValueConst kept);
void free_request(struct request *request);
// Calls `done` with an errno, and frees the request.
void request_done(struct request *request, int status);

// {address, port, family} of a socket's address.
JSValue address_object(JSContext *ctx, const struct sockaddr *address);
// An address of text and port; false, with an exception, if it is none.
bool parse_address(JSContext *ctx, JSValueConst text, JSValueConst port, struct sockaddr_storage *address);
