// node: runs node's own library on QuickJS and libuv. start.js, which is part of the program, makes
// what the library expects of its C++ half.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

// The library and our part of it, compiled: see pack.c.
static const unsigned char library[] = {
#embed "library.bin"
};

// Finds the code of a part of the library.
static const unsigned char *find(const char *name, size_t *length)
{
	const unsigned char *at = library, *end = library + sizeof library;
	while (at < end) {
		uint32_t size;
		const unsigned char *code = at + strlen((const char *)at) + 1;
		memcpy(&size, code, sizeof size);
		code += sizeof size;
		if (!strcmp((const char *)at, name)) {
			*length = size;
			return code;
		}
		at = code + size;
	}
	return NULL;
}

// load(name): the function that a file of the library is, or undefined.
static JSValue load(ARGS)
{
	size_t length;
	const char *name = JS_ToCString(ctx, argv[0]);
	const unsigned char *code = name ? find(name, &length) : NULL;
	JS_FreeCString(ctx, name);
	if (!code)
		return JS_UNDEFINED;
	JSValue function = JS_ReadObject(ctx, code, length, JS_READ_OBJ_BYTECODE);
	if (JS_IsException(function))
		return function;
	return JS_EvalFunction(ctx, function);
}

static JSValue names(ARGS)
{
	JSValue list = JS_NewArray(ctx);
	uint32_t n = 0;
	for (const unsigned char *at = library; at < library + sizeof library;) {
		uint32_t size;
		JS_SetPropertyUint32(ctx, list, n++, JS_NewString(ctx, (const char *)at));
		at += strlen((const char *)at) + 1;
		memcpy(&size, at, sizeof size);
		at += sizeof size + size;
	}
	return list;
}

static const JSCFunctionListEntry library_list[] = { FUNCTION(load, 1), FUNCTION(names, 0) };

static JSValue native_functions(JSContext *ctx, int argc, char **argv)
{
	JSValue native = JS_NewObject(ctx), args = JS_NewArray(ctx), part = JS_NewObject(ctx);
	for (int i = 0; i < argc; i++)
		JS_SetPropertyUint32(ctx, args, i, new_utf8(ctx, (uint8_t *)argv[i], strlen(argv[i])));
	set(ctx, native, "argv", args);
	EXPORT(ctx, part, library_list);
	set(ctx, native, "library", part);
	set(ctx, native, "loop", loop_functions(ctx));
	set(ctx, native, "engine", engine_functions(ctx));
	set(ctx, native, "modules", module_functions(ctx));
	set(ctx, native, "buffer", buffer_functions(ctx));
	set(ctx, native, "handles", handle_functions(ctx));
	set(ctx, native, "fs", fs_functions(ctx));
	set(ctx, native, "os", os_functions(ctx));
	set(ctx, native, "spawn", spawn_functions(ctx));
	set(ctx, native, "constants", constant_lists(ctx));
	set(ctx, native, "http", http_functions(ctx));
	set(ctx, native, "zlib", zlib_functions(ctx));
	set(ctx, native, "crypto", crypto_functions(ctx));
	return native;
}

static void fail(JSContext *ctx)
{
	JSValue error = JS_GetException(ctx), stack = JS_GetPropertyStr(ctx, error, "stack");
	const char *text = JS_ToCString(ctx, error), *where = JS_ToCString(ctx, stack);
	fprintf(stderr, "node: cannot start: %s\n%s\n", text ? text : "?", where ? where : "");
	exit(1);
}

int main(int argc, char **argv)
{
	static struct env env;
	argv = uv_setup_args(argc, argv);
	// Writing where nobody reads is an error of the write.
	signal(SIGPIPE, SIG_IGN);
	JSRuntime *rt = JS_NewRuntime();
	if (!rt || uv_loop_init(&env.loop)) {
		fprintf(stderr, "node: no memory for a start\n");
		return 1;
	}
	// The engine counts what is on the stack in memory. A cage's other stack, which holds what the
	// compiler keeps in registers, is used up by about twice as much.
	JS_SetMaxStackSize(rt, 640 << 10);
	JS_SetRuntimeOpaque(rt, &env);
	env.ctx = JS_NewContext(rt);
	JSContext *ctx = env.ctx;
	JSValue native = native_functions(ctx, argc, argv), name = JS_NewString(ctx, "ours/start");
	JSValue start = load(ctx, JS_UNDEFINED, 1, (JSValueConst *)&name);
	if (JS_IsException(start))
		fail(ctx);
	JSValue result = JS_Call(ctx, start, JS_UNDEFINED, 1, (JSValueConst *)&native);
	if (JS_IsException(result))
		fail(ctx);
	int status = int_of(ctx, result);
	uv_tty_reset_mode();
	fflush(NULL);
	// Handles that the program has left open end with the process.
	_Exit(status);
}
