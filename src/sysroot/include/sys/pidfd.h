#ifndef _SYS_PIDFD_H
#define _SYS_PIDFD_H
#include <fcntl.h>
#include <signal.h>
#ifdef __cplusplus
extern "C" {
#endif

#define PIDFD_NONBLOCK O_NONBLOCK

int pidfd_open(pid_t, unsigned int);
int pidfd_getfd(int, int, unsigned int);
int pidfd_send_signal(int, int, siginfo_t *, unsigned int);

#ifdef __cplusplus
}
#endif
#endif
