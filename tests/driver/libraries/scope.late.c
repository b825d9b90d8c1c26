int from_global(void);
int late(void) { return from_global() + 1; }
