// HTTP's messages, taken apart by llhttp.
#include <stdlib.h>
#include <string.h>

#include "llhttp.h"
#include "node.h"

static JSClassID parser_class;

// Text that comes in pieces.
struct text {
	char *data;
	size_t length;
};

struct parser {
	llhttp_t http;
	llhttp_settings_t settings;
	JSContext *ctx;
	// handler(event, ...): see the enumeration. Its answer to HEAD says what comes next.
	JSValue handler;
	struct text url, status, *pairs;
	// Of `pairs`, names and values in turn; `open` says that the last one may go on.
	int count, room;
	bool in_value, failed;
	size_t header_bytes, most;
};

enum { BEGIN, HEADERS, HEAD, BODY, COMPLETE };

static void append(struct text *text, const char *at, size_t length)
{
	text->data = got(realloc(text->data, text->length + length + 1));
	memcpy(text->data + text->length, at, length);
	text->length += length;
}

static void clear(struct parser *parser)
{
	for (int i = 0; i < parser->count; i++)
		free(parser->pairs[i].data);
	parser->count = 0;
	parser->in_value = false;
	free(parser->url.data);
	free(parser->status.data);
	parser->url = parser->status = (struct text){ 0 };
}

static JSValue latin1(JSContext *ctx, const struct text *text)
{
	JSValue bytes = JS_NewArrayBufferCopy(ctx, (uint8_t *)(text->data ? text->data : ""), text->length);
	JSValueConst list[] = { bytes, JS_NewInt32(ctx, 4) };
	extern JSValue buffer_to_string(JSContext *, JSValueConst, int, JSValueConst *);
	JSValue string = buffer_to_string(ctx, JS_UNDEFINED, 2, list);
	JS_FreeValue(ctx, bytes);
	return string;
}

// The handler's answer as a number; -1 if it threw.
static int ask(struct parser *parser, int event, int argc, JSValue *argv)
{
	JSContext *ctx = parser->ctx;
	JSValue list[12] = { JS_NewInt32(ctx, event) };
	int answer = -1;
	for (int i = 0; i < argc; i++)
		list[i + 1] = argv[i];
	JSValue result = JS_Call(ctx, parser->handler, JS_UNDEFINED, argc + 1, (JSValueConst *)list);
	for (int i = 0; i < argc; i++)
		JS_FreeValue(ctx, argv[i]);
	if (JS_IsException(result))
		parser->failed = true;
	else
		answer = int_of(ctx, result);
	JS_FreeValue(ctx, result);
	return answer;
}

static int too_much(struct parser *parser, size_t length)
{
	parser->header_bytes += length;
	if (parser->header_bytes < parser->most)
		return 0;
	llhttp_set_error_reason(&parser->http, "HPE_HEADER_OVERFLOW:Header overflow");
	return HPE_USER;
}

static int on_begin(llhttp_t *http)
{
	struct parser *parser = http->data;
	clear(parser);
	parser->header_bytes = 0;
	return ask(parser, BEGIN, 0, NULL) < 0 ? HPE_USER : 0;
}

static int on_url(llhttp_t *http, const char *at, size_t length)
{
	struct parser *parser = http->data;
	append(&parser->url, at, length);
	return too_much(parser, length);
}

static int on_status(llhttp_t *http, const char *at, size_t length)
{
	struct parser *parser = http->data;
	append(&parser->status, at, length);
	return too_much(parser, length);
}

static struct text *last(struct parser *parser, bool value)
{
	if (parser->count && parser->in_value == value)
		return &parser->pairs[parser->count - 1];
	if (parser->count + 2 > parser->room) {
		parser->room = 2 * parser->room + 32;
		parser->pairs = got(realloc(parser->pairs, parser->room * sizeof *parser->pairs));
	}
	// A name without a value has an empty one.
	if (!value && parser->count % 2)
		parser->pairs[parser->count++] = (struct text){ 0 };
	parser->in_value = value;
	parser->pairs[parser->count] = (struct text){ 0 };
	return &parser->pairs[parser->count++];
}

static int on_field(llhttp_t *http, const char *at, size_t length)
{
	struct parser *parser = http->data;
	append(last(parser, false), at, length);
	return too_much(parser, length);
}

static int on_value(llhttp_t *http, const char *at, size_t length)
{
	struct parser *parser = http->data;
	append(last(parser, true), at, length);
	return too_much(parser, length);
}

static JSValue header_list(struct parser *parser)
{
	JSContext *ctx = parser->ctx;
	JSValue list = JS_NewArray(ctx);
	for (int i = 0; i < parser->count; i++) {
		struct text text = parser->pairs[i];
		while (
		    i % 2 && text.length && (text.data[text.length - 1] == ' ' || text.data[text.length - 1] == '\t'))
			text.length--;
		JS_SetPropertyUint32(ctx, list, i, latin1(ctx, &text));
		free(parser->pairs[i].data);
	}
	if (parser->count % 2)
		JS_SetPropertyUint32(ctx, list, parser->count, latin1(ctx, &(struct text){ 0 }));
	parser->count = 0;
	parser->in_value = false;
	return list;
}

static int on_head(llhttp_t *http)
{
	struct parser *parser = http->data;
	JSContext *ctx = parser->ctx;
	JSValue list[] = {
		JS_NewInt32(ctx, http->http_major),
		JS_NewInt32(ctx, http->http_minor),
		header_list(parser),
		JS_NewInt32(ctx, http->method),
		latin1(ctx, &parser->url),
		JS_NewInt32(ctx, http->status_code),
		latin1(ctx, &parser->status),
		JS_NewBool(ctx, http->upgrade),
		JS_NewBool(ctx, llhttp_should_keep_alive(http)),
	};
	parser->header_bytes = 0;
	int answer = ask(parser, HEAD, 9, list);
	return answer < 0 ? HPE_USER : answer;
}

static int on_body(llhttp_t *http, const char *at, size_t length)
{
	struct parser *parser = http->data;
	JSValue bytes = JS_NewArrayBufferCopy(parser->ctx, (const uint8_t *)at, length);
	return ask(parser, BODY, 1, &bytes) < 0 ? HPE_USER : 0;
}

static int on_complete(llhttp_t *http)
{
	struct parser *parser = http->data;
	// Headers that come behind the body.
	if (parser->count) {
		JSValue list = header_list(parser);
		if (ask(parser, HEADERS, 1, &list) < 0)
			return HPE_USER;
	}
	return ask(parser, COMPLETE, 0, NULL) < 0 ? HPE_USER : 0;
}

static void collect_parser(JSRuntime *rt, JSValueConst object)
{
	struct parser *parser = JS_GetOpaque(object, parser_class);
	if (!parser)
		return;
	clear(parser);
	free(parser->pairs);
	JS_FreeValueRT(rt, parser->handler);
	free(parser);
}

static void mark_parser(JSRuntime *rt, JSValueConst object, JS_MarkFunc *mark)
{
	struct parser *parser = JS_GetOpaque(object, parser_class);
	if (parser)
		JS_MarkValue(rt, parser->handler, mark);
}

// open(handler): a parser, to be started.
static JSValue open_parser(ARGS)
{
	JSValue object = JS_NewObjectClass(ctx, parser_class);
	struct parser *parser = got(calloc(1, sizeof *parser));
	parser->ctx = ctx;
	parser->handler = JS_DupValue(ctx, argv[0]);
	llhttp_settings_init(&parser->settings);
	parser->settings.on_message_begin = on_begin;
	parser->settings.on_url = on_url;
	parser->settings.on_status = on_status;
	parser->settings.on_header_field = on_field;
	parser->settings.on_header_value = on_value;
	parser->settings.on_headers_complete = on_head;
	parser->settings.on_body = on_body;
	parser->settings.on_message_complete = on_complete;
	JS_SetOpaque(object, parser);
	return object;
}

// start(parser, kind, most bytes of headers, leniency)
static JSValue start(ARGS)
{
	struct parser *parser = JS_GetOpaque2(ctx, argv[0], parser_class);
	if (!parser)
		return JS_EXCEPTION;
	int lenient = int_of(ctx, argv[3]);
	clear(parser);
	parser->header_bytes = 0;
	parser->most = number_of(ctx, argv[2]);
	llhttp_init(&parser->http, int_of(ctx, argv[1]) == 1 ? HTTP_REQUEST : HTTP_RESPONSE, &parser->settings);
	parser->http.data = parser;
	if (lenient & 1)
		llhttp_set_lenient_headers(&parser->http, 1);
	if (lenient & 2)
		llhttp_set_lenient_chunked_length(&parser->http, 1);
	if (lenient & 4)
		llhttp_set_lenient_keep_alive(&parser->http, 1);
	if (lenient & 8)
		llhttp_set_lenient_transfer_encoding(&parser->http, 1);
	return JS_UNDEFINED;
}

static JSValue outcome(struct parser *parser, llhttp_errno_t error, const uint8_t *data, size_t length)
{
	JSContext *ctx = parser->ctx;
	size_t used = length;
	if (parser->failed) {
		parser->failed = false;
		return JS_EXCEPTION;
	}
	if (error != HPE_OK && data) {
		const char *at = llhttp_get_error_pos(&parser->http);
		used = at ? at - (const char *)data : 0;
		// The rest is not HTTP's.
		if (error == HPE_PAUSED_UPGRADE) {
			llhttp_resume_after_upgrade(&parser->http);
			error = HPE_OK;
		}
	}
	if (error == HPE_PAUSED)
		error = HPE_OK;
	if (error == HPE_OK)
		return JS_NewInt64(ctx, used);
	const char *reason = llhttp_get_error_reason(&parser->http);
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt64(ctx, used));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewString(ctx, llhttp_errno_name(error)));
	JS_SetPropertyUint32(ctx, list, 2, JS_NewString(ctx, reason ? reason : ""));
	return list;
}

// execute(parser, bytes): how many were used, or [used, code, reason].
static JSValue execute(ARGS)
{
	size_t length;
	struct parser *parser = JS_GetOpaque2(ctx, argv[0], parser_class);
	uint8_t *given = bytes_of(ctx, argv[1], &length);
	if (!parser || !given)
		return JS_EXCEPTION;
	// The handler may change the program's memory.
	uint8_t *data = got(malloc(length + 1));
	memcpy(data, given, length);
	JSValue kept = JS_DupValue(ctx, argv[0]);
	llhttp_errno_t error = llhttp_execute(&parser->http, (const char *)data, length);
	JSValue result = outcome(parser, error, data, length);
	free(data);
	JS_FreeValue(ctx, kept);
	return result;
}

static JSValue finish(ARGS)
{
	struct parser *parser = JS_GetOpaque2(ctx, argv[0], parser_class);
	if (!parser || !parser->http.data)
		return parser ? JS_UNDEFINED : JS_EXCEPTION;
	llhttp_errno_t error = llhttp_finish(&parser->http);
	return outcome(parser, error, NULL, 0);
}

// pause(parser, whether)
static JSValue pause_parser(ARGS)
{
	struct parser *parser = JS_GetOpaque2(ctx, argv[0], parser_class);
	if (!parser)
		return JS_EXCEPTION;
	if (JS_ToBool(ctx, argv[1]))
		llhttp_pause(&parser->http);
	else
		llhttp_resume(&parser->http);
	return JS_UNDEFINED;
}

// methods(all): their names, in llhttp's order; all of them are RTSP's too.
static JSValue methods(ARGS)
{
	JSValue list = JS_NewArray(ctx);
	uint32_t n = 0;
#define ONE(number, name, text) JS_SetPropertyUint32(ctx, list, n++, JS_NewString(ctx, #text));
	if (JS_ToBool(ctx, argv[0])) {
		HTTP_ALL_METHOD_MAP(ONE)
	} else {
		HTTP_METHOD_MAP(ONE)
	}
#undef ONE
	return list;
}

static const JSCFunctionListEntry list[] = {
	JS_CFUNC_DEF("open", 1, open_parser),
	FUNCTION(start, 4),
	FUNCTION(execute, 2),
	JS_CFUNC_DEF("pause", 2, pause_parser),
	FUNCTION(finish, 1),
	FUNCTION(methods, 1),
	JS_PROP_STRING_DEF("version", "9.2.1", JS_PROP_ENUMERABLE),
};

JSValue http_functions(JSContext *ctx)
{
	JSRuntime *rt = JS_GetRuntime(ctx);
	JSClassDef class = { "Parser", .finalizer = collect_parser, .gc_mark = mark_parser };
	JS_NewClassID(rt, &parser_class);
	JS_NewClass(rt, parser_class, &class);
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	return object;
}
