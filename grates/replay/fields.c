/* Bytes, sums, and the table of calls by number. */
#include <stdlib.h>
#include <string.h>
#include "replay.h"

char *bytes_room(struct bytes *b, size_t length)
{
	if (b->size - b->used < length) {
		size_t size = b->size ? b->size : 4096;

		while (size - b->used < length)
			size *= 2;
		if (!(b->data = realloc(b->data, size))) {
			lind_log("out of memory for the %zu bytes of a call: it and the programs end here", size);
			living_end(125);
		}
		b->size = size;
	}
	return b->data + b->used;
}

void bytes_add(struct bytes *b, const void *data, size_t length)
{
	if (!length)
		return;
	memcpy(bytes_room(b, length), data, length);
	b->used += length;
}

void bytes_free(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){ 0 };
}

static uint32_t sums[8][256];

/* Eight bytes at a time: by the tables of one byte followed by 0 to 7 others. */
static void sums_begin(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t sum = i;

		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
		sums[0][i] = sum;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int n = 1; n < 8; n++)
			sums[n][i] = sums[n - 1][i] >> 8 ^ sums[0][sums[n - 1][i] & 255];
}

/* The CRC-32 of IEEE 802.3, as in zip files. */
uint32_t crc32_of(uint32_t before, const void *data, size_t length)
{
	const unsigned char *at = data;
	uint32_t sum = ~before;

	for (; length >= 8; at += 8, length -= 8) {
		uint32_t low, high;

		memcpy(&low, at, 4);
		memcpy(&high, at + 4, 4);
		low ^= sum;
		sum = sums[7][low & 255] ^ sums[6][low >> 8 & 255] ^ sums[5][low >> 16 & 255] ^ sums[4][low >> 24] ^
		    sums[3][high & 255] ^ sums[2][high >> 8 & 255] ^ sums[1][high >> 16 & 255] ^ sums[0][high >> 24];
	}
	for (; length; at++, length--)
		sum = sum >> 8 ^ sums[0][(sum ^ *at) & 255];
	return ~sum;
}

static const struct lind_syscall *rows[LIND_NUMBERS];

void rows_begin(void)
{
	const struct lind_syscall *row;

	for (size_t i = 0; (row = lind_syscall_at(i)); i++)
		if (row->nr < LIND_NUMBERS)
			rows[row->nr] = row;
	sums_begin();
}

const struct lind_syscall *row_of(uint32_t nr)
{
	return nr < LIND_NUMBERS ? rows[nr] : NULL;
}
