/* dlopen and dlsym of a program that is linked statically: the libraries are those in the program,
 * and their names are a table that symbols.py writes. Linked before the C library, whose own
 * functions always fail. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
	const char *name;
	void *address;
};
/* In the order of strcmp. */
extern const struct symbol lind_symbols[];
extern const unsigned lind_symbol_count;

/* The C library's: what dlerror returns next. */
void __dl_seterr(const char *format, ...);

/* Libraries that a program of Linux loads; here they are part of the program. */
static const char *const parts[] = { "libc", "libm", "libdl", "libpthread", "librt", "libutil", "libresolv",
	"libcrypt" };

static int is_part(const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		size_t length = strlen(parts[i]);
		if (!strncmp(name, parts[i], length) && !strncmp(name + length, ".so", 3))
			return 1;
	}
	return 0;
}

void *dlopen(const char *file, int mode)
{
	(void)mode;
	if (!file || is_part(file))
		return (void *)lind_symbols;
	__dl_seterr("%s: libraries cannot be loaded: programs are linked statically", file);
	return 0;
}

static int compare(const void *name, const void *symbol)
{
	return strcmp(name, ((const struct symbol *)symbol)->name);
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	const struct symbol *found = bsearch(name, lind_symbols, lind_symbol_count, sizeof *found, compare);
	if (found && (!handle || handle == RTLD_NEXT || handle == (void *)lind_symbols))
		return found->address;
	__dl_seterr("symbol not found: %s", name);
	return 0;
}

int dlclose(void *handle)
{
	if (handle == (void *)lind_symbols)
		return 0;
	__dl_seterr("not a handle of dlopen: %p", handle);
	return -1;
}
