/* The compiler runtime keeps four words here: a label, a call's identity and the value. */
typedef unsigned long __jmp_buf[8];
