// Part of engine.c: what Buffer does with bytes.

// The range [argv[0], argv[1]) of a buffer, as slices have it.
static JSValue buffer_slice(ARGS, int encoding)
{
	size_t length;
	// A number may be an object of the program's, whose valueOf detaches the bytes.
	double from = argc > 0 && !JS_IsUndefined(argv[0]) ? number_of(ctx, argv[0]) : 0;
	double to = argc > 1 && !JS_IsUndefined(argv[1]) ? number_of(ctx, argv[1]) : INFINITY;
	uint8_t *data = bytes_of(ctx, self, &length);
	if (!data)
		return JS_EXCEPTION;
	if (!(from >= 0))
		from = 0;
	if (!(to <= length))
		to = length;
	if (to <= from)
		return JS_AtomToString(ctx, JS_ATOM_empty_string);
	if (to - from > 0x1fffffe8 / (encoding == HEX ? 2 : 1))
		return JS_ThrowRangeError(ctx,
		    "Cannot create a string longer than 0x1fffffe8 "
		    "characters");
	return decode(ctx, data + (size_t)from, to - from, encoding);
}

// write(string, offset, length)
static JSValue buffer_write(ARGS, int encoding)
{
	size_t length, n;
	if (!JS_IsString(argv[0]))
		return JS_ThrowTypeError(ctx, "argument must be a string");
	JSValue flat = flat_string(ctx, argv[0]);
	if (JS_IsException(flat))
		return flat;
	double from = argc > 1 && !JS_IsUndefined(argv[1]) ? number_of(ctx, argv[1]) : 0;
	double most = argc > 2 && !JS_IsUndefined(argv[2]) ? number_of(ctx, argv[2]) : INFINITY;
	uint8_t *data = bytes_of(ctx, self, &length);
	if (!data || !(from >= 0 && from <= length)) {
		JS_FreeValue(ctx, flat);
		return data ? JS_ThrowRangeError(ctx, "\"offset\" is outside of buffer bounds") : JS_EXCEPTION;
	}
	if (!(most <= length - from))
		most = length - from;
	n = encode_into(JS_VALUE_GET_STRING(flat), encoding, data + (size_t)from, most, NULL);
	JS_FreeValue(ctx, flat);
	return JS_NewInt64(ctx, n);
}

static JSValue byte_length_utf8(ARGS)
{
	struct bytes bytes = encode(ctx, argv[0], UTF8);
	if (!bytes.data)
		return JS_EXCEPTION;
	free(bytes.data);
	return JS_NewInt64(ctx, bytes.length);
}

// from_string(string, encoding): its bytes.
static JSValue from_string(ARGS)
{
	struct bytes bytes = encode(ctx, argv[0], int_of(ctx, argv[1]));
	return bytes.data ? own_bytes(ctx, bytes.data, bytes.length) : JS_EXCEPTION;
}

// to_string(bytes, encoding)
JSValue buffer_to_string(ARGS)
{
	size_t length;
	uint8_t *data = bytes_of(ctx, argv[0], &length);
	return data ? decode(ctx, data, length, int_of(ctx, argv[1])) : JS_EXCEPTION;
}

// encode_some(string, bytes): [read, written]
static JSValue encode_some(ARGS)
{
	size_t length, read, written;
	JSValue flat = flat_string(ctx, argv[0]);
	if (JS_IsException(flat))
		return flat;
	uint8_t *data = bytes_of(ctx, argv[1], &length);
	if (!data) {
		JS_FreeValue(ctx, flat);
		return JS_EXCEPTION;
	}
	JSValue list = JS_NewArray(ctx);
	written = encode_into(JS_VALUE_GET_STRING(flat), UTF8, data, length, &read);
	JS_FreeValue(ctx, flat);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt64(ctx, read));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewInt64(ctx, written));
	return list;
}

// copy(source, target, targetStart, sourceStart, count)
static JSValue copy(ARGS)
{
	size_t from_length, to_length;
	uint8_t *from = bytes_of(ctx, argv[0], &from_length);
	uint8_t *to = bytes_of(ctx, argv[1], &to_length);
	if (!from || !to)
		return JS_EXCEPTION;
	double at = number_of(ctx, argv[2]), begin = number_of(ctx, argv[3]);
	double count = number_of(ctx, argv[4]);
	if (!(at >= 0 && begin >= 0 && at <= to_length && begin <= from_length))
		return JS_NewInt32(ctx, 0);
	if (!(count <= from_length - begin))
		count = from_length - begin;
	if (!(count <= to_length - at))
		count = to_length - at;
	if (count > 0)
		memmove(to + (size_t)at, from + (size_t)begin, count);
	return JS_NewInt64(ctx, count);
}

static int order(const uint8_t *a, size_t n, const uint8_t *b, size_t m)
{
	int result = memcmp(a, b, n < m ? n : m);
	return result ? (result > 0) - (result < 0) : (n > m) - (n < m);
}

static JSValue compare(ARGS)
{
	size_t n, m;
	uint8_t *a = bytes_of(ctx, argv[0], &n), *b = bytes_of(ctx, argv[1], &m);
	return a && b ? JS_NewInt32(ctx, order(a, n, b, m)) : JS_EXCEPTION;
}

// compare_offset(source, target, targetStart, sourceStart, targetLength, sourceLength)
static JSValue compare_offset(ARGS)
{
	size_t n, m;
	uint8_t *a = bytes_of(ctx, argv[0], &n), *b = bytes_of(ctx, argv[1], &m);
	double bs = number_of(ctx, argv[2]), as = number_of(ctx, argv[3]);
	double bn = number_of(ctx, argv[4]), an = number_of(ctx, argv[5]);
	if (!a || !b)
		return JS_EXCEPTION;
	if (!(as <= n) || !(bs <= m))
		return JS_ThrowRangeError(
		    ctx, "The value of \"%s\" is out of range.", as > n ? "sourceStart" : "targetStart");
	if (!(an <= n - as))
		an = n - as;
	if (!(bn <= m - bs))
		bn = m - bs;
	return JS_NewInt32(ctx, order(a + (size_t)as, an, b + (size_t)bs, bn));
}

// fill(buffer, value, start, end, encoding): -2 if the range is outside, -1 if there is nothing to
// fill it with.
static JSValue fill(ARGS)
{
	size_t length;
	struct bytes with = { 0 };
	uint8_t *data = bytes_of(ctx, argv[0], &length);
	double from = number_of(ctx, argv[2]), to = number_of(ctx, argv[3]);
	if (!data)
		return JS_EXCEPTION;
	if (!(from >= 0 && to <= length))
		return JS_NewInt32(ctx, -2);
	if (from >= to)
		return JS_UNDEFINED;
	if (JS_IsString(argv[1])) {
		with = encode(ctx, argv[1], int_of(ctx, argv[4]));
	} else if (JS_IsObject(argv[1])) {
		uint8_t *other = bytes_of(ctx, argv[1], &with.length);
		if (!other)
			return JS_EXCEPTION;
		with.data = got(malloc(with.length + 1));
		memcpy(with.data, other, with.length);
	} else {
		memset(data + (size_t)from, int_of(ctx, argv[1]) & 255, to - from);
		return JS_UNDEFINED;
	}
	for (size_t i = from, n = 0; with.length && i < to; i++)
		data[i] = with.data[n], n = n + 1 == with.length ? 0 : n + 1;
	free(with.data);
	return with.length ? JS_UNDEFINED : JS_NewInt32(ctx, -1);
}

static int64_t search(
    const uint8_t *in, size_t length, const uint8_t *what, size_t size, double from, bool forward, size_t step)
{
	if (from < 0)
		from += length;
	if (from < 0) {
		if (!forward)
			return -1;
		from = 0;
	}
	if (from > length) {
		if (forward && size)
			return -1;
		from = length;
	}
	if (!size)
		return from;
	if (size > length)
		return -1;
	int64_t last = length - size, i = from;
	if (!forward && i > last)
		i = last;
	for (; i >= 0 && i <= last; i += forward ? 1 : -1) {
		if (forward && step == 1) {
			const uint8_t *hit = memchr(in + i, what[0], last - i + 1);
			if (!hit)
				return -1;
			i = hit - in;
		}
		if (i % step == 0 && !memcmp(in + i, what, size))
			return i;
	}
	return -1;
}

// index_of(buffer, value, offset, encoding, forward)
static JSValue index_of(ARGS)
{
	size_t length;
	struct bytes what = { 0 };
	uint8_t *data = bytes_of(ctx, argv[0], &length), byte;
	int encoding = JS_IsNumber(argv[3]) ? int_of(ctx, argv[3]) : UTF8;
	int64_t at;
	double from = number_of(ctx, argv[2]);
	bool forward = JS_ToBool(ctx, argv[4]);
	if (!data)
		return JS_EXCEPTION;
	if (isnan(from))
		from = forward ? 0 : length;
	if (JS_IsString(argv[1])) {
		what = encode(ctx, argv[1], encoding);
		at = search(data, length, what.data, what.length, from, forward, encoding == UCS2 ? 2 : 1);
		free(what.data);
	} else if (JS_IsObject(argv[1])) {
		what.data = bytes_of(ctx, argv[1], &what.length);
		if (!what.data)
			return JS_EXCEPTION;
		at = search(data, length, what.data, what.length, from, forward, encoding == UCS2 ? 2 : 1);
	} else {
		byte = int_of(ctx, argv[1]);
		at = search(data, length, &byte, 1, from, forward, 1);
	}
	return JS_NewInt64(ctx, at);
}

static JSValue swap_bytes(ARGS, int size)
{
	size_t length;
	uint8_t *data = bytes_of(ctx, argv[0], &length);
	if (!data)
		return JS_EXCEPTION;
	for (size_t i = 0; i + size <= length; i += size)
		for (int a = 0, b = size - 1; a < b; a++, b--) {
			uint8_t byte = data[i + a];
			data[i + a] = data[i + b];
			data[i + b] = byte;
		}
	return js_dup(argv[0]);
}

static JSValue is_ascii(ARGS)
{
	size_t length;
	uint8_t *data = bytes_of(ctx, argv[0], &length);
	if (!data)
		return JS_EXCEPTION;
	for (size_t i = 0; i < length; i++)
		if (data[i] > 127)
			return JS_FALSE;
	return JS_TRUE;
}

static JSValue is_utf8(ARGS)
{
	size_t length;
	uint8_t *data = bytes_of(ctx, argv[0], &length);
	bool whole = true;
	if (!data)
		return JS_EXCEPTION;
	for (size_t i = 0; whole && i < length;) {
		uint32_t point;
		i += sequence(data + i, length - i, &point, &whole);
	}
	return JS_NewBool(ctx, whole);
}

#define SLICE(name, encoding) JS_CFUNC_MAGIC_DEF(name, 2, buffer_slice, encoding)
#define WRITE(name, encoding) JS_CFUNC_MAGIC_DEF(name, 3, buffer_write, encoding)
static const JSCFunctionListEntry buffer_list[] = {
	SLICE("asciiSlice", ASCII),
	SLICE("utf8Slice", UTF8),
	SLICE("base64Slice", BASE64),
	SLICE("ucs2Slice", UCS2),
	SLICE("latin1Slice", LATIN1),
	SLICE("hexSlice", HEX),
	SLICE("base64urlSlice", BASE64URL),
	WRITE("asciiWrite", ASCII),
	WRITE("utf8Write", UTF8),
	WRITE("base64Write", BASE64),
	WRITE("ucs2Write", UCS2),
	WRITE("latin1Write", LATIN1),
	WRITE("hexWrite", HEX),
	WRITE("base64urlWrite", BASE64URL),
	JS_CFUNC_DEF("byteLengthUtf8", 1, byte_length_utf8),
	JS_CFUNC_DEF("copy", 5, copy),
	JS_CFUNC_DEF("compare", 2, compare),
	JS_CFUNC_DEF("compareOffset", 6, compare_offset),
	JS_CFUNC_DEF("fill", 5, fill),
	JS_CFUNC_DEF("indexOf", 5, index_of),
	JS_CFUNC_MAGIC_DEF("swap16", 1, swap_bytes, 2),
	JS_CFUNC_MAGIC_DEF("swap32", 1, swap_bytes, 4),
	JS_CFUNC_MAGIC_DEF("swap64", 1, swap_bytes, 8),
	JS_CFUNC_DEF("isAscii", 1, is_ascii),
	JS_CFUNC_DEF("isUtf8", 1, is_utf8),
	JS_CFUNC_DEF("fromString", 2, from_string),
	JS_CFUNC_DEF("toString", 2, buffer_to_string),
	JS_CFUNC_DEF("encodeSome", 2, encode_some),
};

JSValue buffer_functions(JSContext *ctx)
{
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, buffer_list);
	return object;
}
