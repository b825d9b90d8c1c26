/* Chooses operations, paths and users; open files are kept from one operation to the next. */
#include <stdarg.h>
#include "operations.h"

int slots[SLOTS] = { -1, -1, -1, -1, -1, -1, -1, -1 };

/* Two plain names may be followed by one `..`: a plain name leads at least one level down, since no
 * link begins with one. */
void any_path(char path[PATH_ROOM])
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "longer name", "\303\274" };
	int parts = 1 + (int)any(3) * (int)any(2), depth = 0;

	*path = 0;
	for (int i = 0; i < parts; i++) {
		uint32_t kind = any(30);

		if (i)
			strcat(path, any(20) ? "/" : "//");
		if (kind == 0 && depth > 0) {
			strcat(path, "..");
			depth--;
		} else if (kind == 1 && depth > 0)
			strcat(path, ".");
		else if (kind < 5 && i + 1 < parts)
			snprintf(path + strlen(path), 20, "m/f%03u", any(any(2) ? 20 : 170)), depth += 2;
		else
			strcat(path, names[any(any(3) ? 4 : 7)]), depth++;
	}
	if (!any(12))
		strcat(path, "/");
	if (!any(400))
		*path = 0;
	if (!any(400)) {
		memset(path, 'n', 256);
		path[255 + any(2)] = 0;
	}
}

int any_start(int *slot)
{
	*slot = (int)any(SLOTS * 4);
	if (*slot < SLOTS && slots[*slot] >= 0)
		return slots[*slot];
	*slot = -1;
	return AT_FDCWD;
}

void did(int64_t r, const char *format, ...)
{
	va_list ap;

	if (quiet)
		return;
	printf("%ld as %u ", operation_number, (unsigned)geteuid());
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	if (r < 0)
		printf(" = errno %d\n", (int)-r);
	else
		printf(" = %lld\n", (long long)r);
}

void also(const char *format, ...)
{
	va_list ap;

	if (quiet)
		return;
	va_start(ap, format);
	printf("    ");
	vprintf(format, ap);
	putchar('\n');
	va_end(ap);
}

void be_root(void)
{
	if (users && (seteuid(0) || setegid(0))) {
		perror("model: seteuid");
		exit(2);
	}
}

static void become(void)
{
	bool user = any(2);

	be_root();
	if (user && users && (setegid(USER) || seteuid(USER))) {
		perror("model: seteuid");
		exit(2);
	}
}

void close_all(void)
{
	for (int i = 0; i < SLOTS; i++) {
		if (slots[i] >= 0)
			close(slots[i]);
		slots[i] = -1;
	}
}

void one_operation(void)
{
	switch (any(12)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		operation_on_data();
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		operation_on_names();
		break;
	case 9:
	case 10:
		operation_on_attributes();
		break;
	default:
		if (!any(4))
			become();
	}
}
