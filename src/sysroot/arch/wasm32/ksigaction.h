/* The argument of rt_sigaction(2): five words. A handler returns to the engine, which called it, so
 * the structure has no restorer. */
#include <features.h>

struct k_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned mask[2];
};

#undef SA_RESTORER
#define SA_RESTORER 0
#define __restore ((void (*)(void))0)
#define __restore_rt ((void (*)(void))0)
