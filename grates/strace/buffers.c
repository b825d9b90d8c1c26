/* Bytes behind pointers: strings, buffers, lists of both. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "strace.h"

#define STRING_MAX 4096

bool fetch(struct text *t, struct lind_arg address, void *to, size_t size)
{
	if (address.value && !lind_read(address, to, size))
		return true;
	text_add(t, address.value ? "%#llx" : "NULL", (unsigned long long)address.value);
	return false;
}

void print_buffer(struct text *t, struct lind_arg address, uint64_t length)
{
	size_t shown = length < options.string_limit ? (size_t)length : options.string_limit;
	char small[256], *bytes = shown > sizeof small ? malloc(shown) : small;

	if (!bytes || !address.value || lind_read(address, bytes, shown))
		text_add(t, address.value ? "%#llx" : "NULL", (unsigned long long)address.value);
	else
		text_quoted(t, bytes, shown, shown, shown < length);
	if (bytes != small)
		free(bytes);
}

void print_string(struct text *t, struct lind_arg address, size_t limit)
{
	char bytes[STRING_MAX];
	ssize_t length = address.value ? lind_read_string(address, bytes, sizeof bytes) : -1;

	if (length < 0)
		text_add(t, address.value ? "%#llx" : "NULL", (unsigned long long)address.value);
	else
		text_quoted(t, bytes, (size_t)length, limit, false);
}

void print_strings(struct text *t, struct lind_arg address)
{
	uint32_t pointer;

	if (!fetch(t, address, &pointer, sizeof pointer))
		return;
	text_add(t, "[");
	for (int i = 0; pointer && i < ARRAY_LIMIT; i++) {
		text_add(t, i ? ", " : "");
		print_string(t, (struct lind_arg){ pointer, address.cage }, options.string_limit);
		if (lind_read(lind_at(address, 4 * ((uint64_t)i + 1)), &pointer, sizeof pointer))
			break;
	}
	text_add(t, pointer ? ", ...]" : "]");
}

void print_string_count(struct text *t, struct lind_arg address)
{
	uint32_t pointer;
	int n = 0;

	if (!fetch(t, address, &pointer, sizeof pointer))
		return;
	while (pointer && !lind_read(lind_at(address, 4 * ((uint64_t)n + 1)), &pointer, sizeof pointer))
		n++;
	text_add(t, "%#llx /* %d vars */", (unsigned long long)address.value, n);
}

void print_iovecs(struct text *t, struct lind_arg address, uint64_t count, int64_t bytes)
{
	struct iovec iov[ARRAY_LIMIT];
	uint64_t shown = count < ARRAY_LIMIT ? count : ARRAY_LIMIT;

	if (!fetch(t, address, iov, (size_t)shown * sizeof *iov))
		return;
	text_add(t, "[");
	for (uint64_t i = 0; i < shown; i++) {
		uint64_t length = iov[i].iov_len;

		if (bytes >= 0 && length > (uint64_t)bytes)
			length = (uint64_t)bytes;
		text_add(t, "%s{iov_base=", i ? ", " : "");
		if (bytes == ADDRESSES)
			print_pointer(t, (uintptr_t)iov[i].iov_base);
		else
			print_buffer(t, (struct lind_arg){ (uintptr_t)iov[i].iov_base, address.cage }, length);
		text_add(t, ", iov_len=%lu}", (unsigned long)iov[i].iov_len);
		if (bytes >= 0)
			bytes -= (int64_t)length;
	}
	text_add(t, shown < count ? ", ...]" : "]");
}
