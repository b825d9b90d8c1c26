/* Other ports have __syscall_cp_asm in this place. Ours is in pthread_cancel.c. */
