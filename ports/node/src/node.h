// Shared by the files of this program: the state of one JavaScript environment, calls from the
// event loop into JavaScript, and the functions that each file offers to it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "quickjs.h"

// Not const where an array of arguments is passed on.
#define ARGS                      JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv
#define FUNCTION(name, length)    JS_CFUNC_DEF(#name, length, name)
#define EXPORT(ctx, object, list) JS_SetPropertyFunctionList(ctx, object, list, sizeof(list) / sizeof *(list))

// Checks memory that was asked for: writing to address 0 of a cage need not be a fault. Without
// memory the program ends, as V8 ends it.
static inline void *got(void *memory)
{
	if (!memory) {
		fputs("node: out of memory\n", stderr);
		abort();
	}
	return memory;
}

struct env {
	JSContext *ctx;
	uv_loop_t loop;
	uv_timer_t timer;
	uv_check_t check;
	uv_idle_t idle;
	uint64_t began;
	// JavaScript's, set by `setup` in loop.c.
	JSValue immediates, timers, ticks, uncaught;
	JSValue immediate_info, tick_info;
	// How many calls from the loop are on the stack.
	int depth;
};

static inline struct env *env_of(JSContext *ctx)
{
	return JS_GetRuntimeOpaque(JS_GetRuntime(ctx));
}

// Calls a function from the event loop, then what it has left to do: microtasks and ticks. An
// exception goes to the program's handler, or ends the program. Arguments are released.
void call_from_loop(struct env *env, JSValueConst function, int argc, JSValue *argv);

// Runs the promises' jobs, and reports an exception of one.
void run_jobs(struct env *env);

// The bytes of a buffer of any kind, which is valid until JavaScript runs. NULL, with an exception,
// if it is none.
uint8_t *bytes_of(JSContext *ctx, JSValueConst value, size_t *length);

// A new ArrayBuffer that owns `data`, which malloc returned.
JSValue own_bytes(JSContext *ctx, void *data, size_t length);

// A string of bytes that are UTF-8; what is not becomes U+FFFD.
JSValue new_utf8(JSContext *ctx, const uint8_t *data, size_t length);

static inline int32_t int_of(JSContext *ctx, JSValueConst value)
{
	int32_t number = 0;
	JS_ToInt32(ctx, &number, value);
	return number;
}

static inline double number_of(JSContext *ctx, JSValueConst value)
{
	double number = 0;
	JS_ToFloat64(ctx, &number, value);
	return number;
}

// One of an object's properties, as numbers and functions.
static inline void set(JSContext *ctx, JSValueConst object, const char *name, JSValue value)
{
	JS_SetPropertyStr(ctx, object, name, value);
}

JSValue engine_functions(JSContext *ctx);
JSValue module_functions(JSContext *ctx);
JSValue loop_functions(JSContext *ctx);
JSValue buffer_functions(JSContext *ctx);
JSValue handle_functions(JSContext *ctx);
JSValue fs_functions(JSContext *ctx);
JSValue os_functions(JSContext *ctx);
JSValue spawn_functions(JSContext *ctx);
JSValue constant_lists(JSContext *ctx);
JSValue http_functions(JSContext *ctx);
JSValue zlib_functions(JSContext *ctx);
JSValue crypto_functions(JSContext *ctx);
