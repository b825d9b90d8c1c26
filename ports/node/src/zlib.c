// Streams of zlib.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "node.h"

// node's numbers for what a stream does.
enum { DEFLATE = 1, INFLATE, GZIP, GUNZIP, DEFLATERAW, INFLATERAW, UNZIP };

static JSClassID stream_class;

struct stream {
	z_stream z;
	int mode, bits, level, memory, strategy, error;
	bool ready;
	uint8_t *dictionary;
	size_t dictionary_length;
};

static bool deflates(int mode)
{
	return mode == DEFLATE || mode == GZIP || mode == DEFLATERAW;
}

static void end(struct stream *stream)
{
	if (stream->ready && deflates(stream->mode))
		deflateEnd(&stream->z);
	else if (stream->ready)
		inflateEnd(&stream->z);
	stream->ready = false;
}

static void collect_stream(JSRuntime *rt, JSValueConst object)
{
	struct stream *stream = JS_GetOpaque(object, stream_class);
	if (!stream)
		return;
	end(stream);
	free(stream->dictionary);
	free(stream);
}

static int begin(struct stream *stream)
{
	int bits = stream->bits, error;
	if (stream->mode == GZIP || stream->mode == GUNZIP)
		bits += 16;
	if (stream->mode == UNZIP)
		bits += 32;
	if (stream->mode == DEFLATERAW || stream->mode == INFLATERAW)
		bits = -bits;
	if (deflates(stream->mode))
		error = deflateInit2(&stream->z, stream->level, Z_DEFLATED, bits, stream->memory, stream->strategy);
	else
		error = inflateInit2(&stream->z, bits);
	stream->ready = error == Z_OK;
	if (error == Z_OK && stream->dictionary && deflates(stream->mode))
		error = deflateSetDictionary(&stream->z, stream->dictionary, stream->dictionary_length);
	else if (error == Z_OK && stream->dictionary && stream->mode == INFLATERAW)
		error = inflateSetDictionary(&stream->z, stream->dictionary, stream->dictionary_length);
	return error;
}

// open(mode, window bits, level, memory, strategy, dictionary): a stream, or zlib's error.
static JSValue open_stream(ARGS)
{
	JSValue object = JS_NewObjectClass(ctx, stream_class);
	struct stream *stream = got(calloc(1, sizeof *stream));
	stream->mode = int_of(ctx, argv[0]);
	stream->bits = int_of(ctx, argv[1]);
	stream->level = int_of(ctx, argv[2]);
	stream->memory = int_of(ctx, argv[3]);
	stream->strategy = int_of(ctx, argv[4]);
	JS_SetOpaque(object, stream);
	if (JS_IsObject(argv[5])) {
		uint8_t *bytes = bytes_of(ctx, argv[5], &stream->dictionary_length);
		if (!bytes)
			return JS_EXCEPTION;
		stream->dictionary = got(malloc(stream->dictionary_length + 1));
		memcpy(stream->dictionary, bytes, stream->dictionary_length);
	}
	// A window of zlib's smallest is none for raw data.
	if (stream->bits == 8 && deflates(stream->mode) && stream->mode != DEFLATE)
		stream->bits = 9;
	int error = begin(stream);
	if (error == Z_OK)
		return object;
	JS_FreeValue(ctx, object);
	return JS_NewInt32(ctx, error);
}

static int decompress(struct stream *stream, int flush)
{
	z_stream *z = &stream->z;
	int error = inflate(z, flush);
	if (error == Z_NEED_DICT && stream->dictionary && stream->mode != INFLATERAW) {
		error = inflateSetDictionary(z, stream->dictionary, stream->dictionary_length);
		if (error == Z_OK)
			error = inflate(z, flush);
		else if (error == Z_DATA_ERROR)
			// The data wants another one.
			error = Z_NEED_DICT;
	}
	// Several files of gzip may follow one another.
	while (z->avail_in && error == Z_STREAM_END && (stream->mode == GUNZIP || stream->mode == UNZIP) &&
	    z->next_in[0] == 0x1f) {
		inflateReset(z);
		error = inflate(z, flush);
	}
	return error;
}

// write(stream, flush, in, offset, length, out, offset, length): [room left, bytes left, error,
// text of the error]
static JSValue write_stream(ARGS)
{
	struct stream *stream = JS_GetOpaque2(ctx, argv[0], stream_class);
	size_t in_length = 0, out_length;
	uint8_t *in = JS_IsObject(argv[2]) ? bytes_of(ctx, argv[2], &in_length) : NULL;
	uint8_t *out = bytes_of(ctx, argv[5], &out_length);
	double in_at = number_of(ctx, argv[3]), in_size = number_of(ctx, argv[4]);
	double out_at = number_of(ctx, argv[6]), out_size = number_of(ctx, argv[7]);
	int flush = int_of(ctx, argv[1]);
	if (!stream || !out)
		return JS_EXCEPTION;
	if (!stream->ready || (in && !(in_at >= 0 && in_size >= 0 && in_at + in_size <= in_length)) ||
	    !(out_at >= 0 && out_size >= 0 && out_at + out_size <= out_length))
		return JS_ThrowRangeError(ctx, "zlib: a range outside of its buffer");
	z_stream *z = &stream->z;
	z->next_in = in ? in + (size_t)in_at : NULL;
	z->avail_in = in ? in_size : 0;
	z->next_out = out + (size_t)out_at;
	z->avail_out = out_size;
	int error = deflates(stream->mode) ? deflate(z, flush) : decompress(stream, flush);
	const char *text = z->msg;
	// Out of room or data is not an error while the program can bring more.
	if (error == Z_BUF_ERROR && flush != Z_FINISH)
		error = Z_OK;
	if (error == Z_OK && flush == Z_FINISH && z->avail_out)
		error = Z_BUF_ERROR;
	if (error == Z_BUF_ERROR && !z->avail_out)
		error = Z_OK;
	if (error == Z_BUF_ERROR)
		text = "unexpected end of file";
	if (error == Z_NEED_DICT)
		text = stream->dictionary ? "Bad dictionary" : "Missing dictionary";
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt64(ctx, z->avail_out));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt64(ctx, z->avail_in));
	JS_SetPropertyUint32(ctx, list, 2, JS_NewInt32(ctx, error));
	JS_SetPropertyUint32(ctx, list, 3, JS_NewString(ctx, text ? text : "Zlib error"));
	return list;
}

// params(stream, level, strategy)
static JSValue params(ARGS)
{
	struct stream *stream = JS_GetOpaque2(ctx, argv[0], stream_class);
	if (!stream || !stream->ready)
		return JS_NewInt32(ctx, Z_STREAM_ERROR);
	if (!deflates(stream->mode))
		return JS_NewInt32(ctx, Z_OK);
	// The library has had everything written before: nothing comes here.
	uint8_t nothing[64];
	stream->z.next_in = stream->z.next_out = nothing;
	stream->z.avail_in = 0;
	stream->z.avail_out = sizeof nothing;
	int error = deflateParams(&stream->z, int_of(ctx, argv[1]), int_of(ctx, argv[2]));
	return JS_NewInt32(ctx, error == Z_BUF_ERROR ? Z_OK : error);
}

static JSValue reset(ARGS)
{
	struct stream *stream = JS_GetOpaque2(ctx, argv[0], stream_class);
	if (!stream || !stream->ready)
		return JS_NewInt32(ctx, Z_STREAM_ERROR);
	end(stream);
	memset(&stream->z, 0, sizeof stream->z);
	return JS_NewInt32(ctx, begin(stream));
}

static JSValue close_stream(ARGS)
{
	struct stream *stream = JS_GetOpaque2(ctx, argv[0], stream_class);
	if (stream)
		end(stream);
	return JS_UNDEFINED;
}

// checksum(bytes, before)
static JSValue checksum(ARGS)
{
	size_t length;
	uint8_t *data = bytes_of(ctx, argv[0], &length);
	if (!data)
		return JS_EXCEPTION;
	return JS_NewUint32(ctx, crc32((uint32_t)number_of(ctx, argv[1]), data, length));
}

static const JSCFunctionListEntry list[] = {
	JS_CFUNC_DEF("open", 6, open_stream),
	JS_CFUNC_DEF("write", 8, write_stream),
	FUNCTION(params, 3),
	FUNCTION(reset, 1),
	JS_CFUNC_DEF("close", 1, close_stream),
	FUNCTION(checksum, 2),
	JS_PROP_STRING_DEF("version", ZLIB_VERSION, JS_PROP_ENUMERABLE),
};

JSValue zlib_functions(JSContext *ctx)
{
	JSRuntime *rt = JS_GetRuntime(ctx);
	JSClassDef class = { "ZlibStream", .finalizer = collect_stream };
	JS_NewClassID(rt, &stream_class);
	JS_NewClass(rt, stream_class, &class);
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	return object;
}
