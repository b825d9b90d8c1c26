/* Four bytes of GB18030: the right character, surrogates passed over, beyond plane 0, and
 * errors. */
#include "check.h"
#include <iconv.h>

static iconv_t cd;

static long decode(const char *bytes)
{
	char *in = (char *)bytes, out[4], *at = out;
	size_t left = 4, room = sizeof out;
	unsigned char *o = (unsigned char *)out;

	iconv(cd, 0, 0, 0, 0);
	if (iconv(cd, &in, &left, &at, &room) == (size_t)-1)
		return -errno;
	return (long)o[0] << 24 | o[1] << 16 | o[2] << 8 | o[3];
}

int main(void)
{
	cd = iconv_open("UTF-32BE", "GB18030");
	NEED(cd != (iconv_t)-1);
	CHECK_EQ(decode("\x81\x30\x81\x30"), 0x80);
	CHECK_EQ(decode("\x81\x30\x84\x36"), 0xa5);
	CHECK_EQ(decode("\x81\x30\x84\x38"), 0xa9);
	CHECK_EQ(decode("\x83\x36\xc7\x38"), 0xd7ff);
	CHECK_EQ(decode("\x84\x31\xa4\x39"), 0xffff);
	CHECK_EQ(decode("\x90\x30\x81\x30"), 0x10000);
	CHECK_EQ(decode("\x94\x39\xfc\x36"), 0x1f600);
	CHECK_EQ(decode("\xe3\x32\x9a\x35"), 0x10ffff);
	CHECK_EQ(decode("\xe3\x32\x9a\x36"), -EILSEQ);
	CHECK_EQ(decode("\x81\x30\x81\x3a"), -EILSEQ);

	/* As much as a mail has: it takes no time. */
	for (int i = 0; i < 20000; i++)
		if (decode("\x82\x35\x95\x30") < 0x80)
			return 1;
	iconv_close(cd);
	return check_done();
}
