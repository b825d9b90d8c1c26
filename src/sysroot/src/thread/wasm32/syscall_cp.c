/* Other ports have __syscall_cp_asm here; this one needs none. */
