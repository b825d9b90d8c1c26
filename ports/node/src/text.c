// Part of engine.c: strings as bytes, and bytes as strings, in each of the encodings of Buffer.

enum encoding { ASCII, UTF8, BASE64, UCS2, LATIN1, HEX, BUFFER, BASE64URL };

struct bytes {
	uint8_t *data;
	size_t length;
};

uint8_t *bytes_of(JSContext *ctx, JSValueConst value, size_t *length)
{
	size_t offset, whole;
	if (JS_IsArrayBuffer(value))
		return JS_GetArrayBuffer(ctx, length, value);
	JSValue buffer;
	if (JS_VALUE_GET_TAG(value) == JS_TAG_OBJECT && JS_VALUE_GET_OBJ(value)->class_id == JS_CLASS_DATAVIEW) {
		JSTypedArray *view = JS_VALUE_GET_OBJ(value)->u.typed_array;
		JSArrayBuffer *memory = view->buffer->u.array_buffer;
		uint32_t at = view->offset;
		if (memory->detached || at > memory->byte_length) {
			*length = 0;
			return (uint8_t *)"";
		}
		*length = memory->byte_length - at;
		if (!view->track_rab && view->length < *length)
			*length = view->length;
		return memory->data + at;
	}
	buffer = JS_GetTypedArrayBuffer(ctx, value, &offset, NULL, NULL);
	if (JS_IsException(buffer))
		return NULL;
	uint8_t *data = JS_GetArrayBuffer(ctx, &whole, buffer);
	JS_FreeValue(ctx, buffer);
	if (!data) {
		// Of length 0.
		JS_FreeValue(ctx, JS_GetException(ctx));
		*length = 0;
		return (uint8_t *)"";
	}
	// The engine keeps this number right where memory changes its length.
	JSObject *view = JS_VALUE_GET_OBJ(value);
	*length = (size_t)view->u.array.count << typed_array_size_log2(view->class_id);
	return data + offset;
}

static void *resize_bytes(JSRuntime *rt, void *opaque, void *data, size_t size)
{
	if (size)
		return realloc(data, size);
	free(data);
	return NULL;
}

JSValue own_bytes(JSContext *ctx, void *data, size_t length)
{
	if (!data)
		return JS_ThrowOutOfMemory(ctx);
	// Without a maximum, it is of fixed length, as the program expects.
	JSValue bytes = JS_NewArrayBuffer(ctx, data, length, 0, resize_bytes, NULL, false);
	if (JS_IsException(bytes))
		free(data);
	return bytes;
}

// How many bytes of a sequence of UTF-8 at `at` are well formed; `whole` says whether it is
// complete, and then `point` is the character.
static size_t sequence(const uint8_t *at, size_t left, uint32_t *point, bool *whole)
{
	uint8_t first = at[0], low = 0x80, high = 0xbf;
	size_t need, i;
	*whole = false;
	if (first < 0x80) {
		*point = first, *whole = true;
		return 1;
	}
	if (first >= 0xc2 && first <= 0xdf)
		need = 1, *point = first & 0x1f;
	else if (first >= 0xe0 && first <= 0xef)
		need = 2, *point = first & 0xf;
	else if (first >= 0xf0 && first <= 0xf4)
		need = 3, *point = first & 7;
	else
		return 1;
	if (first == 0xe0)
		low = 0xa0;
	if (first == 0xed)
		high = 0x9f;
	if (first == 0xf0)
		low = 0x90;
	if (first == 0xf4)
		high = 0x8f;
	for (i = 1; i <= need; i++) {
		if (i >= left || at[i] < low || at[i] > high)
			return i;
		*point = *point << 6 | (at[i] & 0x3f);
		low = 0x80, high = 0xbf;
	}
	*whole = true;
	return i;
}

JSValue new_utf8(JSContext *ctx, const uint8_t *data, size_t length)
{
	size_t i = 0, n = 0;
	while (i < length && data[i] < 0x80)
		i++;
	if (i == length)
		return js_new_string8_len(ctx, (const char *)data, length);
	uint16_t *wide = malloc(length * sizeof *wide);
	if (!wide)
		return JS_ThrowOutOfMemory(ctx);
	for (i = 0; i < length;) {
		uint32_t point;
		bool whole;
		i += sequence(data + i, length - i, &point, &whole);
		if (!whole)
			point = 0xfffd;
		if (point > 0xffff) {
			wide[n++] = 0xd7c0 + (point >> 10);
			wide[n++] = 0xdc00 + (point & 0x3ff);
		} else {
			wide[n++] = point;
		}
	}
	JSValue string = js_new_string16_len(ctx, wide, n);
	free(wide);
	return string;
}

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char digits64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static JSValue base64(JSContext *ctx, const uint8_t *data, size_t length, bool url)
{
	const char *digits = url ? digits64url : digits64;
	char *text = got(malloc(length / 3 * 4 + 5)), *to = text;
	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t word = data[i] << 16 | (left > 1 ? data[i + 1] << 8 : 0) | (left > 2 ? data[i + 2] : 0);
		*to++ = digits[word >> 18];
		*to++ = digits[word >> 12 & 63];
		if (left > 1)
			*to++ = digits[word >> 6 & 63];
		else if (!url)
			*to++ = '=';
		if (left > 2)
			*to++ = digits[word & 63];
		else if (!url)
			*to++ = '=';
	}
	JSValue string = js_new_string8_len(ctx, text, to - text);
	free(text);
	return string;
}

static JSValue decode(JSContext *ctx, const uint8_t *data, size_t length, enum encoding encoding)
{
	JSValue string;
	char *text;
	switch (encoding) {
	case UTF8:
	case BUFFER:
		return new_utf8(ctx, data, length);
	case LATIN1:
		return js_new_string8_len(ctx, (const char *)data, length);
	case UCS2: {
		uint16_t *wide = got(malloc(length + 1));
		memcpy(wide, data, length & ~(size_t)1);
		string = js_new_string16_len(ctx, wide, length / 2);
		free(wide);
		return string;
	}
	case BASE64:
		return base64(ctx, data, length, false);
	case BASE64URL:
		return base64(ctx, data, length, true);
	case ASCII:
		text = got(malloc(length + 1));
		for (size_t i = 0; i < length; i++)
			text[i] = data[i] & 0x7f;
		string = js_new_string8_len(ctx, text, length);
		free(text);
		return string;
	case HEX:
		text = got(malloc(2 * length + 1));
		for (size_t i = 0; i < length; i++) {
			text[2 * i] = "0123456789abcdef"[data[i] >> 4];
			text[2 * i + 1] = "0123456789abcdef"[data[i] & 15];
		}
		string = js_new_string8_len(ctx, text, 2 * length);
		free(text);
		return string;
	}
	return JS_UNDEFINED;
}

static uint16_t unit(JSString *string, size_t i)
{
	return string->is_wide_char ? str16(string)[i] : str8(string)[i];
}

// The character at *i, which moves on. A lone surrogate is U+FFFD.
static uint32_t next_point(JSString *string, size_t *i)
{
	uint32_t first = unit(string, (*i)++);
	if (first < 0xd800 || first > 0xdfff)
		return first;
	if (first < 0xdc00 && *i < string->len) {
		uint32_t second = unit(string, *i);
		if (second >= 0xdc00 && second <= 0xdfff) {
			(*i)++;
			return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
		}
	}
	return 0xfffd;
}

static size_t put_utf8(uint8_t *to, uint32_t point)
{
	if (point < 0x80) {
		to[0] = point;
		return 1;
	}
	if (point < 0x800) {
		to[0] = 0xc0 | point >> 6;
		to[1] = 0x80 | (point & 0x3f);
		return 2;
	}
	if (point < 0x10000) {
		to[0] = 0xe0 | point >> 12;
		to[1] = 0x80 | (point >> 6 & 0x3f);
		to[2] = 0x80 | (point & 0x3f);
		return 3;
	}
	to[0] = 0xf0 | point >> 18;
	to[1] = 0x80 | (point >> 12 & 0x3f);
	to[2] = 0x80 | (point >> 6 & 0x3f);
	to[3] = 0x80 | (point & 0x3f);
	return 4;
}

static int digit64(uint32_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static int digit16(uint32_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (int)c - 'a' + 10 : -1;
}

// As many bytes of a string as fit into `room`, in whole characters; `read` says how many units of
// the string they stand for.
static size_t encode_into(JSString *string, enum encoding encoding, uint8_t *to, size_t room, size_t *read)
{
	size_t n = 0, i = 0;
	uint32_t word = 0;
	int bits = 0;
	switch (encoding) {
	case UTF8:
	case BUFFER:
		while (i < string->len) {
			uint8_t one[4];
			size_t at = i, size = put_utf8(one, next_point(string, &i));
			if (n + size > room) {
				i = at;
				break;
			}
			memcpy(to + n, one, size);
			n += size;
		}
		break;
	case ASCII:
	case LATIN1:
		for (; i < string->len && n < room; i++)
			to[n++] = unit(string, i);
		break;
	case UCS2:
		for (; i < string->len && n + 2 <= room; i++, n += 2) {
			to[n] = unit(string, i);
			to[n + 1] = unit(string, i) >> 8;
		}
		break;
	case HEX:
		for (; i + 2 <= string->len && n < room; i += 2) {
			int high = digit16(unit(string, i)), low = digit16(unit(string, i + 1));
			if (high < 0 || low < 0)
				break;
			to[n++] = high << 4 | low;
		}
		break;
	case BASE64:
	case BASE64URL:
		for (; i < string->len && n < room; i++) {
			uint32_t c = unit(string, i);
			int digit = digit64(c);
			if (c == '=')
				break;
			if (digit < 0)
				continue;
			word = word << 6 | digit;
			bits += 6;
			if (bits >= 8) {
				bits -= 8;
				to[n++] = word >> bits;
			}
		}
		break;
	}
	if (read)
		*read = i;
	return n;
}

static size_t most_bytes(JSString *string, enum encoding encoding)
{
	switch (encoding) {
	case UTF8:
	case BUFFER:
		return (size_t)string->len * (string->is_wide_char ? 3 : 2);
	case UCS2:
		return (size_t)string->len * 2;
	case HEX:
		return string->len / 2;
	case BASE64:
	case BASE64URL:
		return (size_t)string->len / 4 * 3 + 3;
	default:
		return string->len;
	}
}

// A value as a flat string, to be freed; an exception is left if it is none.
static JSValue flat_string(JSContext *ctx, JSValueConst value)
{
	JSValue string = JS_ToString(ctx, value);
	if (JS_VALUE_GET_TAG(string) == JS_TAG_STRING_ROPE) {
		JSValue flat = js_linearize_string_rope(ctx, string);
		JS_FreeValue(ctx, string);
		return flat;
	}
	return string;
}

static struct bytes encode(JSContext *ctx, JSValueConst value, enum encoding encoding)
{
	struct bytes bytes = { 0 };
	JSValue flat = flat_string(ctx, value);
	if (JS_IsException(flat))
		return bytes;
	JSString *string = JS_VALUE_GET_STRING(flat);
	bytes.data = got(malloc(most_bytes(string, encoding) + 1));
	bytes.length = encode_into(string, encoding, bytes.data, most_bytes(string, encoding), NULL);
	JS_FreeValue(ctx, flat);
	return bytes;
}

#include "buffer.c"
