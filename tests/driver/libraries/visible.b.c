// part
#define HIDDEN __attribute__((visibility("hidden")))
extern HIDDEN int state;
HIDDEN int shared_inside(void) { return 1000 * state; }
static int own(void) { return 0; }
int second(void) { return own() + state; }
