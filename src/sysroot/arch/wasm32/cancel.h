/* Musl declares it without parameters; a wasm call must state them. */
#include "syscall.h"

hidden long __cancel(void);

/* The word `cancel` of a thread: it was asked to end; the signal that interrupts it may be sent;
 * somebody is sending it. */
#define CANCEL_ASKED 1
#define CANCEL_OPEN 2
#define CANCEL_SENDING 4

/* A flag of sigaction(2) in cages: the interrupted call is not restarted, even if the handler that
 * ran first has SA_RESTART. */
#define SA_LIND_INTERRUPT 0x20000000
