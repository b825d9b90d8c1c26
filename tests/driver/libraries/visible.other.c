#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN int state = 40;
HIDDEN int shared_inside(void) { return state++; }
int entry(void) { return shared_inside(); }
