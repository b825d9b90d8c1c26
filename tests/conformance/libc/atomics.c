/* C11 atomics and their builtins with one thread: results and widths. */
#include "check.h"

#include <stdatomic.h>
#include <stdbool.h>

int main(void)
{
	atomic_int number = 5;
	_Atomic uint64_t wide = UINT64_MAX;
	_Atomic unsigned char small = 255;
	atomic_flag flag = ATOMIC_FLAG_INIT;
	int expected = 5;
	void *_Atomic pointer = NULL;

	CHECK_EQ(atomic_fetch_add(&number, 3), 5);
	CHECK_EQ(atomic_load(&number), 8);
	CHECK(!atomic_compare_exchange_strong(&number, &expected, 1));
	CHECK_EQ(expected, 8);
	CHECK(atomic_compare_exchange_strong(&number, &expected, 1));
	CHECK_EQ(atomic_exchange(&number, 7), 1);
	CHECK_EQ(atomic_fetch_or(&number, 8), 7);
	CHECK_EQ(number, 15);
	CHECK_EQ(atomic_fetch_add(&wide, 2), -1);
	CHECK_EQ(atomic_load(&wide), 1);
	CHECK_EQ(atomic_fetch_add(&small, 1), 255);
	CHECK_EQ(small, 0);
	CHECK(!atomic_flag_test_and_set(&flag) && atomic_flag_test_and_set(&flag));
	atomic_store(&pointer, &number);
	CHECK(atomic_load(&pointer) == &number);
	CHECK_EQ(__sync_val_compare_and_swap((int *)&expected, 8, 9), 8);
	CHECK(atomic_is_lock_free(&wide) && atomic_is_lock_free(&small));
	atomic_thread_fence(memory_order_seq_cst);
	return check_done();
}
