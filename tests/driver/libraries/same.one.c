static int state = 10;
int same(void) { return state++; }
int extra = 1;
