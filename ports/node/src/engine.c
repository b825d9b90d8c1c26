// The engine, and what only its own file can see: what kind of object a value is, what a promise or
// a proxy holds, and the modules of ECMAScript.
#include "quickjs.h"
#include "cutils.h"

// Called by the engine where our patch says so.
static void program_import(
    JSContext *ctx, const char *from, const char *name, JSValueConst *resolving, JSValueConst attributes);
static void stack_header(JSContext *ctx, DynBuf *out, JSValueConst error);

#include "quickjs.c"

#include "node.h"

static struct {
	JSValue import, rejection, hooks[4];
	bool hooked;
} callbacks;

#define CALLBACK(place, value) \
	do { \
		JS_FreeValue(ctx, place); \
		place = JS_DupValue(ctx, value); \
	} while (0)

// The first line of `stack`: the error as toString would write it, without calling anything of the
// program's.
static JSValue plain_property(JSContext *ctx, JSValueConst object, JSAtom name)
{
	JSObject *p = JS_VALUE_GET_TAG(object) == JS_TAG_OBJECT ? JS_VALUE_GET_OBJ(object) : NULL;
	while (p) {
		JSProperty *property;
		JSShapeProperty *shape = find_own_property(&property, p, name);
		if (shape)
			return (shape->flags & JS_PROP_TMASK) == JS_PROP_NORMAL && JS_IsString(property->u.value)
			    ? JS_DupValue(ctx, property->u.value)
			    : JS_UNDEFINED;
		p = p->class_id == JS_CLASS_PROXY ? NULL : p->shape->proto;
	}
	return JS_UNDEFINED;
}

static void stack_header(JSContext *ctx, DynBuf *out, JSValueConst error)
{
	JSValue name = plain_property(ctx, error, JS_ATOM_name);
	JSValue message = plain_property(ctx, error, JS_ATOM_message);
	const char *first = JS_IsString(name) ? JS_ToCString(ctx, name) : NULL;
	const char *second = JS_IsString(message) ? JS_ToCString(ctx, message) : NULL;
	dbuf_putstr(out, first ? first : JS_IsError(error) ? "Error" : "[object Object]");
	if (second && *second) {
		dbuf_putstr(out, ": ");
		dbuf_putstr(out, second);
	}
	dbuf_putc(out, '\n');
	JS_FreeCString(ctx, first);
	JS_FreeCString(ctx, second);
	JS_FreeValue(ctx, name);
	JS_FreeValue(ctx, message);
}

static JSValue class_id(ARGS)
{
	return JS_NewInt32(ctx, JS_VALUE_GET_TAG(argv[0]) == JS_TAG_OBJECT ? JS_VALUE_GET_OBJ(argv[0])->class_id : 0);
}

// [state, result] of a promise; the result of one that is pending is undefined.
static JSValue promise_details(ARGS)
{
	int state = JS_PromiseState(ctx, argv[0]);
	JSValue list = JS_NewArray(ctx);
	if (state < 0)
		return list;
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt32(ctx, state));
	if (state != JS_PROMISE_PENDING)
		JS_SetPropertyUint32(ctx, list, 1, JS_PromiseResult(ctx, argv[0]));
	return list;
}

// [target, handler] of a proxy, both null if it was revoked; undefined for what is none.
static JSValue proxy_details(ARGS)
{
	JSProxyData *proxy = JS_GetOpaque(argv[0], JS_CLASS_PROXY);
	if (!proxy)
		return JS_UNDEFINED;
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, proxy->is_revoked ? JS_NULL : js_dup(proxy->target));
	JS_SetPropertyUint32(ctx, list, 1, proxy->is_revoked ? JS_NULL : js_dup(proxy->handler));
	return list;
}

// Looks at a collection, or at the rest of an iterator over one, without moving it: [entries,
// keyed].
static JSValue preview(ARGS)
{
	JSValue list = JS_NewArray(ctx), pair = JS_NewArray(ctx);
	JSMapIteratorData *iterator = NULL;
	JSMapState *map = NULL;
	bool keys = true, values = true;
	int class = JS_VALUE_GET_TAG(argv[0]) == JS_TAG_OBJECT ? JS_VALUE_GET_OBJ(argv[0])->class_id : 0;
	uint32_t n = 0;

	if (class == JS_CLASS_MAP_ITERATOR || class == JS_CLASS_SET_ITERATOR) {
		iterator = JS_GetOpaque(argv[0], class);
		if (iterator && JS_IsObject(iterator->obj))
			map = JS_GetOpaque(iterator->obj, class - JS_CLASS_MAP_ITERATOR + JS_CLASS_MAP);
		keys = iterator && iterator->kind != JS_ITERATOR_KIND_VALUE;
		values = iterator && iterator->kind != JS_ITERATOR_KIND_KEY;
		if (class == JS_CLASS_SET_ITERATOR && keys != values)
			keys = true, values = false;
	} else if (class >= JS_CLASS_MAP && class <= JS_CLASS_WEAKSET) {
		map = JS_GetOpaque(argv[0], class);
		values = class == JS_CLASS_MAP || class == JS_CLASS_WEAKMAP;
	}
	if (map) {
		struct list_head *at = map->records.next;
		if (iterator && iterator->cur_record)
			at = iterator->cur_record->link.next;
		for (; at != &map->records; at = at->next) {
			JSMapRecord *record = list_entry(at, JSMapRecord, link);
			JSValue key, value;
			if (record->empty)
				continue;
			key = js_dup(record->key);
			value = class == JS_CLASS_SET_ITERATOR ? js_dup(record->key) : js_dup(record->value);
			if (keys)
				JS_SetPropertyUint32(ctx, list, n++, key);
			else
				JS_FreeValue(ctx, key);
			if (values)
				JS_SetPropertyUint32(ctx, list, n++, value);
			else
				JS_FreeValue(ctx, value);
		}
	}
	JS_SetPropertyUint32(ctx, pair, 0, list);
	JS_SetPropertyUint32(ctx, pair, 1, JS_NewBool(ctx, keys && values));
	return pair;
}

// A file's text between a head and a tail, so that lines keep their numbers.
static char *wrapped(JSContext *ctx, JSValueConst source, const char *head, const char *tail, size_t *length)
{
	size_t size, before = strlen(head), after = strlen(tail);
	const char *text = JS_ToCStringLen(ctx, &size, source);
	char *whole = text ? got(malloc(before + size + after + 1)) : NULL;
	if (whole) {
		memcpy(whole, head, before);
		memcpy(whole + before, text, size);
		// The line by which Linux finds the interpreter is a comment.
		if (size > 1 && text[0] == '#' && text[1] == '!')
			memcpy(whole + before, "//", 2);
		memcpy(whole + before + size, tail, after + 1);
		*length = before + size + after;
	}
	JS_FreeCString(ctx, text);
	return whole;
}

// compile(source, file, parameters): the text as the body of a function.
static JSValue compile(ARGS)
{
	DynBuf head;
	JSValue result = JS_EXCEPTION;
	js_dbuf_init(ctx, &head);
	dbuf_putstr(&head, "(function (");
	int64_t count = 0;
	JS_GetLength(ctx, argv[2], &count);
	for (int64_t i = 0; i < count; i++) {
		JSValue name = JS_GetPropertyUint32(ctx, argv[2], i);
		const char *text = JS_ToCString(ctx, name);
		dbuf_printf(&head, "%s%s", i ? "," : "", text ? text : "");
		JS_FreeCString(ctx, text);
		JS_FreeValue(ctx, name);
	}
	dbuf_putstr(&head, ") {");
	dbuf_putc(&head, 0);
	size_t length;
	const char *file = JS_ToCString(ctx, argv[1]);
	char *whole = wrapped(ctx, argv[0], (char *)head.buf, "\n})", &length);
	if (file && whole)
		result = JS_Eval(ctx, whole, length, file, JS_EVAL_TYPE_GLOBAL);
	free(whole);
	JS_FreeCString(ctx, file);
	dbuf_free(&head);
	return result;
}

static JSValue eval_as(JSContext *ctx, JSValueConst source, JSValueConst name, int flags)
{
	size_t length;
	JSValue result = JS_EXCEPTION;
	const char *file = JS_ToCString(ctx, name);
	char *whole = wrapped(ctx, source, "", "", &length);
	if (file && whole)
		result = JS_Eval(ctx, whole, length, file, flags);
	free(whole);
	JS_FreeCString(ctx, file);
	return result;
}

static JSValue eval_script(ARGS)
{
	return eval_as(ctx, argv[0], argv[1], JS_EVAL_TYPE_GLOBAL);
}

// Whether a text is a script's: throws a SyntaxError if not.
static JSValue check_script(ARGS)
{
	JSValue code = eval_as(ctx, argv[0], argv[1], JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
	if (JS_IsException(code))
		return code;
	JS_FreeValue(ctx, code);
	return JS_UNDEFINED;
}

// The code of a function of the library, compiled when the program was built.
static JSValue save_code(ARGS)
{
	JSValue code = eval_as(ctx, argv[0], argv[1], JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
	size_t length;
	if (JS_IsException(code))
		return code;
	uint8_t *data = JS_WriteObject(ctx, &length, code, JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_SOURCE);
	JS_FreeValue(ctx, code);
	if (!data)
		return JS_EXCEPTION;
	JSValue bytes = JS_NewUint8ArrayCopy(ctx, data, length);
	js_free(ctx, data);
	return bytes;
}

static JSClassID realm_class;

static void free_realm(JSRuntime *rt, JSValueConst value)
{
	JSContext *realm = JS_GetOpaque(value, realm_class);
	if (realm)
		JS_FreeContext(realm);
}

// A second global object, with the language's own objects.
static JSValue new_realm(ARGS)
{
	JSContext *realm = JS_NewContext(JS_GetRuntime(ctx));
	if (!realm)
		return JS_ThrowOutOfMemory(ctx);
	JSValue object = JS_NewObjectClass(ctx, realm_class);
	JS_SetOpaque(object, realm);
	return object;
}

static JSValue realm_global(ARGS)
{
	JSContext *realm = JS_GetOpaque2(ctx, argv[0], realm_class);
	return realm ? JS_GetGlobalObject(realm) : JS_EXCEPTION;
}

static JSValue realm_eval(ARGS)
{
	JSContext *realm = JS_GetOpaque2(ctx, argv[0], realm_class);
	if (!realm)
		return JS_EXCEPTION;
	return eval_as(realm, argv[1], argv[2], JS_EVAL_TYPE_GLOBAL);
}

static JSValue realm_compile(ARGS)
{
	JSContext *realm = JS_GetOpaque2(ctx, argv[0], realm_class);
	return realm ? compile(realm, self, argc - 1, argv + 1) : JS_EXCEPTION;
}

static void rejected(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool handled, void *data)
{
	JSValueConst list[] = { JS_NewBool(ctx, handled), promise, reason };
	if (!JS_IsFunction(ctx, callbacks.rejection))
		return;
	JSValue result = JS_Call(ctx, callbacks.rejection, JS_UNDEFINED, 3, list);
	if (JS_IsException(result))
		JS_FreeValue(ctx, JS_GetException(ctx));
	JS_FreeValue(ctx, result);
}

// on_rejection(f): f(handled, promise, reason).
static JSValue on_rejection(ARGS)
{
	CALLBACK(callbacks.rejection, argv[0]);
	JS_SetHostPromiseRejectionTracker(JS_GetRuntime(ctx), rejected, NULL);
	return JS_UNDEFINED;
}

static void promise_event(JSContext *ctx, JSPromiseHookType type, JSValueConst promise, JSValueConst parent, void *data)
{
	int which = type == JS_PROMISE_HOOK_INIT ? 0
	    : type == JS_PROMISE_HOOK_BEFORE     ? 1
	    : type == JS_PROMISE_HOOK_AFTER      ? 2
						 : 3;
	JSValueConst list[] = { promise, parent };
	if (!JS_IsFunction(ctx, callbacks.hooks[which]))
		return;
	JSValue saved = JS_HasException(ctx) ? JS_GetException(ctx) : JS_UNINITIALIZED;
	JSValue result = JS_Call(ctx, callbacks.hooks[which], JS_UNDEFINED, 2, list);
	if (JS_IsException(result))
		JS_FreeValue(ctx, JS_GetException(ctx));
	JS_FreeValue(ctx, result);
	if (!JS_IsUninitialized(saved))
		JS_Throw(ctx, saved);
}

// promise_hooks(init, before, after, settled): any may be undefined.
static JSValue promise_hooks(ARGS)
{
	bool wanted = false;
	for (int i = 0; i < 4; i++) {
		CALLBACK(callbacks.hooks[i], argv[i]);
		wanted = wanted || JS_IsFunction(ctx, argv[i]);
	}
	JS_SetPromiseHook(JS_GetRuntime(ctx), wanted ? promise_event : NULL, NULL);
	return JS_UNDEFINED;
}

static JSValue on_import(ARGS)
{
	CALLBACK(callbacks.import, argv[0]);
	return JS_UNDEFINED;
}

static void program_import(
    JSContext *ctx, const char *from, const char *name, JSValueConst *resolving, JSValueConst attributes)
{
	JSValue base = JS_NewString(ctx, from), wanted = JS_NewString(ctx, name);
	JSValueConst list[] = { base, wanted, attributes, resolving[0], resolving[1] };
	JSValue result = JS_Call(ctx, callbacks.import, JS_UNDEFINED, 5, list);
	if (JS_IsException(result)) {
		JSValue error = JS_GetException(ctx);
		JS_FreeValue(ctx, JS_Call(ctx, resolving[1], JS_UNDEFINED, 1, vc(&error)));
		JS_FreeValue(ctx, error);
	}
	JS_FreeValue(ctx, result);
	JS_FreeValue(ctx, base);
	JS_FreeValue(ctx, wanted);
}

static JSValue run_microtasks(ARGS)
{
	run_jobs(env_of(ctx));
	return JS_UNDEFINED;
}

static JSValue run_job(JSContext *ctx, int argc, JSValueConst *argv)
{
	return JS_Call(ctx, argv[0], JS_UNDEFINED, 0, NULL);
}

static JSValue enqueue_microtask(ARGS)
{
	JS_EnqueueJob(ctx, run_job, 1, argv);
	return JS_UNDEFINED;
}

static JSValue collect(ARGS)
{
	JS_RunGC(JS_GetRuntime(ctx));
	return JS_UNDEFINED;
}

// A symbol that no list of an object's properties has.
static JSValue private_symbol(ARGS)
{
	JSAtom name = JS_ValueToAtom(ctx, argv[0]);
	JSValue symbol = JS_NewSymbolFromAtom(ctx, name, JS_ATOM_TYPE_PRIVATE);
	JS_FreeAtom(ctx, name);
	return symbol;
}

static JSValue detach(ARGS)
{
	JS_DetachArrayBuffer(ctx, argv[0]);
	return JS_UNDEFINED;
}

static JSValue memory(ARGS)
{
	JSMemoryUsage usage;
	JS_ComputeMemoryUsage(JS_GetRuntime(ctx), &usage);
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt64(ctx, usage.malloc_size));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt64(ctx, usage.memory_used_size));
	JS_SetPropertyUint32(ctx, list, 2, JS_NewInt64(ctx, usage.binary_object_size));
	return list;
}

// The names of the files on the stack, from the caller's caller outward.
static JSValue callers(ARGS)
{
	JSValue list = JS_NewArray(ctx);
	uint32_t n = 0;
	for (int level = 1; level < 64; level++) {
		JSAtom name = JS_GetScriptOrModuleName(ctx, level);
		if (name == JS_ATOM_NULL)
			break;
		JS_SetPropertyUint32(ctx, list, n++, JS_AtomToString(ctx, name));
		JS_FreeAtom(ctx, name);
	}
	return list;
}

#define CLASS(name) { #name, JS_CLASS_##name }
static const struct {
	const char *name;
	int id;
} classes[] = {
	CLASS(ERROR),
	CLASS(NUMBER),
	CLASS(STRING),
	CLASS(BOOLEAN),
	CLASS(SYMBOL),
	CLASS(ARGUMENTS),
	CLASS(MAPPED_ARGUMENTS),
	CLASS(DATE),
	CLASS(MODULE_NS),
	CLASS(GENERATOR_FUNCTION),
	CLASS(REGEXP),
	CLASS(ARRAY_BUFFER),
	CLASS(SHARED_ARRAY_BUFFER),
	CLASS(UINT8C_ARRAY),
	CLASS(FLOAT64_ARRAY),
	CLASS(DATAVIEW),
	CLASS(UINT8_ARRAY),
	CLASS(BIG_INT),
	CLASS(MAP),
	CLASS(SET),
	CLASS(WEAKMAP),
	CLASS(WEAKSET),
	CLASS(MAP_ITERATOR),
	CLASS(SET_ITERATOR),
	CLASS(GENERATOR),
	CLASS(PROXY),
	CLASS(PROMISE),
	CLASS(ASYNC_FUNCTION),
	CLASS(ASYNC_GENERATOR_FUNCTION),
	CLASS(ASYNC_GENERATOR),
	CLASS(DOM_EXCEPTION),
};

static const JSCFunctionListEntry functions[] = {
	FUNCTION(class_id, 1),
	FUNCTION(promise_details, 1),
	FUNCTION(proxy_details, 1),
	FUNCTION(preview, 1),
	FUNCTION(compile, 3),
	FUNCTION(eval_script, 2),
	FUNCTION(check_script, 2),
	FUNCTION(save_code, 2),
	FUNCTION(new_realm, 0),
	FUNCTION(realm_global, 1),
	FUNCTION(realm_eval, 3),
	FUNCTION(realm_compile, 4),
	FUNCTION(on_rejection, 1),
	FUNCTION(promise_hooks, 4),
	FUNCTION(on_import, 1),
	FUNCTION(run_microtasks, 0),
	FUNCTION(enqueue_microtask, 1),
	FUNCTION(collect, 0),
	FUNCTION(detach, 1),
	FUNCTION(memory, 0),
	FUNCTION(callers, 0),
	FUNCTION(private_symbol, 1),
};

JSValue engine_functions(JSContext *ctx)
{
	JSRuntime *rt = JS_GetRuntime(ctx);
	JSClassDef realm = { "Realm", .finalizer = free_realm };
	JS_NewClassID(rt, &realm_class);
	JS_NewClass(rt, realm_class, &realm);
	callbacks.import = callbacks.rejection = JS_UNDEFINED;
	for (int i = 0; i < 4; i++)
		callbacks.hooks[i] = JS_UNDEFINED;
	JSValue object = JS_NewObject(ctx), list = JS_NewObject(ctx);
	EXPORT(ctx, object, functions);
	for (size_t i = 0; i < countof(classes); i++)
		set(ctx, list, classes[i].name, JS_NewInt32(ctx, classes[i].id));
	set(ctx, object, "classes", list);
	return object;
}

#include "modules.c"
#include "text.c"
