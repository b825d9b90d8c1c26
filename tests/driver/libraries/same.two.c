static int state = 20;
int same(void) { return state++; }
int extra = 2;
