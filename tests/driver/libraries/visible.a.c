// also b
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN int shared_inside(void);
HIDDEN int state = 1;
__attribute__((visibility("protected"))) int guarded(void) { return 8; }
static int own(void) { return 10; }
__attribute__((weak)) int replaceable(void) { return 5; }
int entry(void) { return shared_inside() + own() + state++ + replaceable() + guarded(); }
