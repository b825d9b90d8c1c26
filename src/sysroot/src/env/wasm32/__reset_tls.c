/* Called between two notifications of a timer's thread. The thread's descriptor is among its
 * thread-local variables, so they cannot be initialised again: they keep their values. */
#include "pthread_impl.h"

void __reset_tls()
{
}
