/* The head of a member of a tar, as in POSIX. Numbers are octal digits. */
#ifndef SESSION_TAR_H
#define SESSION_TAR_H

#define BLOCK 512

struct head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100], magic[8];
	char user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

_Static_assert(sizeof(struct head) == BLOCK, "a head is a block");

/* The sum of a head's bytes, with blanks in place of the sum. */
static inline unsigned head_sum(const struct head *head)
{
	const unsigned char *bytes = (const unsigned char *)head;
	unsigned sum = 8 * ' ';

	for (unsigned i = 0; i < BLOCK; i++)
		if (i < offsetof(struct head, sum) || i >= offsetof(struct head, type))
			sum += bytes[i];
	return sum;
}

#endif
