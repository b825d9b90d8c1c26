/* liar RECORD TO SEED [CALL]: a record with right sums whose calls are wrong: some bytes of its
 * records are others, or, with CALL, the result of that call alone. */
#include <lz4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block {
	uint32_t magic, kind, cage, raw, packed, sum;
	uint64_t first;
	uint32_t check, pad;
};
struct record {
	uint32_t nr, bytes;
	uint64_t number;
	int64_t result;
	uint64_t args[6];
	uint32_t flags, turn;
};

static uint32_t crc(const unsigned char *at, size_t length)
{
	uint32_t sum = ~0u;

	for (; length; at++, length--) {
		sum ^= *at;
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
	}
	return ~sum;
}

static void lie(unsigned char *data, size_t length, uint64_t call)
{
	if (!call) {
		for (int n = 1 + rand() % 3; n; n--)
			data[(size_t)rand() % length] = (unsigned char)(rand() % 3 ? rand() : 255);
		return;
	}
	for (size_t at = 0; at + sizeof(struct record) <= length;) {
		struct record record;

		memcpy(&record, data + at, sizeof record);
		if (record.number == call) {
			record.result ^= 1;
			memcpy(data + at, &record, sizeof record);
		}
		at += sizeof record + ((record.bytes + 7u) & ~7u);
	}
}

int main(int argc, char **argv)
{
	FILE *from = fopen(argv[1], "rb"), *to = fopen(argv[2], "wb");
	uint64_t call = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
	struct {
		char magic[16];
		uint32_t length, sum;
	} head;
	struct block block;

	if (!from || !to || fread(&head, sizeof head, 1, from) != 1)
		return 1;
	srand((unsigned)atoi(argv[3]));
	char *text = malloc(head.length);
	fread(text, 1, head.length, from);
	fwrite(&head, sizeof head, 1, to);
	fwrite(text, 1, head.length, to);
	while (fread(&block, sizeof block, 1, from) == 1) {
		unsigned char *packed = malloc(block.packed), *data = packed;

		fread(packed, 1, block.packed, from);
		if (block.kind == 1) {
			char *raw = malloc(block.raw);
			int room = LZ4_compressBound((int)block.raw);

			LZ4_decompress_safe((char *)packed, raw, (int)block.packed, (int)block.raw);
			lie((unsigned char *)raw, block.raw, call);
			data = malloc((size_t)room);
			block.packed = (uint32_t)LZ4_compress_default(raw, (char *)data, (int)block.raw, room);
			block.sum = crc(data, block.packed);
			block.check = crc((unsigned char *)&block, 32);
		}
		fwrite(&block, sizeof block, 1, to);
		fwrite(data, 1, block.packed, to);
	}
	return fclose(to);
}
