/* The main stack holds what Linux's default of 8 MiB holds: deep recursion and one large frame. */
#include "check.h"

static __attribute__((noinline)) long down(int levels)
{
	volatile char frame[1000];

	frame[0] = (char)levels;
	return levels ? down(levels - 1) + (frame[0] == (char)levels) : 0;
}

static __attribute__((noinline)) int large(void)
{
	volatile char frame[4 << 20];

	for (size_t i = 0; i < sizeof frame; i += 1000)
		frame[i] = (char)i;
	return frame[3000000] == (char)3000000;
}

int main(void)
{
	CHECK_EQ(down(6000), 6000);
	CHECK(large());
	CHECK_EQ(down(6000), 6000);
	return check_done();
}
