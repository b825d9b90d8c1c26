int from_global(void) { return 50; }
int value(void) { return 7; }
