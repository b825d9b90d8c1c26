/* The shared libraries that are part of a program. The linker's driver writes the table
 * __lind_libraries of this; dlopen, dlsym and dladdr read it. */
#ifndef _LIND_LIBRARIES_H
#define _LIND_LIBRARIES_H

/* Instead of a size: the address is a function, which returns the address in the calling thread. */
#define LIND_THREAD_LOCAL (-1U)

struct lind_symbol {
	const char *name;
	void *address; /* null if the program has no such symbol after all */
	unsigned size; /* of data; 0 for a function */
};

struct lind_library {
	const char *name;   /* the soname */
	const char *digest; /* of what was joined; empty for the program and the C library */
	const struct lind_symbol *symbols; /* in the order of strcmp */
	unsigned count;
	void (*const *starts)(void);          /* constructors in their order, up to a null */
	struct lind_library *const *needed;   /* direct ones, up to a null */
	struct lind_library *const *scope;    /* itself and all that it needs, nearest first, up to a null */
	int at_start; /* in the scope of the program: it is started before main, and all find its names */

	/* Written by dlopen. */
	const char *path; /* by which it was opened first */
	void *starter;    /* the thread that runs its constructors */
	int state;
	unsigned handles;
	struct lind_library *next_global;
};

/* The program first, then what it needs, nearest first, then the others; up to a null. */
extern struct lind_library *const __lind_libraries[];
/* The C library: those of its functions that are in the program. */
extern struct lind_library __lind_libc;

/* Runs the constructors of the libraries that the program needs. */
void __lind_start_libraries(void);
/* dlsym, called by code of a library; null for the program. */
void *__dlsym(void *__restrict, const char *__restrict, void *__restrict);

#endif
