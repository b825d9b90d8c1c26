int value(void) { return 1; }
int only_one(void) { return value() * 10; }
