__attribute__((weak)) int hook(void) { return 1; }
__attribute__((weak)) int left(void) { return 2; }
__attribute__((weak)) int nobody(void);
__attribute__((weak)) extern int no_data;
int sum(void) { return 100 * hook() + 10 * left() + (nobody ? 5 : 0) + (&no_data ? 5 : 0); }
