/* Turns the kernel's way of starting a program into WASI's, and counts the memory that the program
 * believes to have. */
#include "wasi.h"

/* The program's own start function, in the same module. */
void program_start(void) __attribute__((import_module("program"), import_name("start")));
/* Writes its data, as a WASI host does before the start, and calls the module's start function if
 * it has one. */
void program_load(void) __attribute__((import_module("program"), import_name("load")));
/* The pages of 64 KiB that it begins with, and the most that it may have. */
uint32_t program_pages(void) __attribute__((import_module("program"), import_name("pages")));
uint32_t program_most(void) __attribute__((import_module("program"), import_name("most")));

enum { PAGE = 65536, READ_WRITE = 3, MAP_FIXED_ANONYMOUS = 0x32, NO_REPLACE = 0x100000 };

static _Noreturn void end(uint32_t status)
{
	CALL1(SYS_EXIT_GROUP, status);
	__builtin_trap();
}

/* Maps memory of the program from page `first` on. Returns whether it is there afterwards. */
static int map_pages(uint32_t first, uint32_t count, int flags)
{
	if (!count)
		return 1;
	int64_t at = (int64_t)first * PAGE;
	return CALL6(SYS_MMAP, at, (int64_t)count * PAGE, READ_WRITE, flags, -1, 0) == at;
}

static uint32_t length_of(uint32_t text)
{
	const char *at = (const char *)text;

	while (*at)
		at++;
	return (uint32_t)at - text;
}

/* Adds a directory that the program may use, under a name by which it finds it: NAME, or NAME=PATH.
 * A directory that cannot be opened is left out. */
static void add_preopen(uint32_t word, uint32_t size)
{
	struct state *s = state();
	char *path = s->path[0];
	uint32_t name = word, length = 0, from;

	while (length < size && ((const char *)name)[length] != '=')
		length++;
	from = length < size ? length + 1 : 0;
	if (s->preopens == PREOPENS || !length || size - from >= PATH_MAX)
		return;
	__builtin_memcpy(path, (const char *)name + from, size - from);
	path[size - from] = 0;
	int64_t fd = CALL4(SYS_OPENAT, AT_FDCWD, address(path), O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	s->preopen[s->preopens].fd = (fd_t)fd;
	s->preopen[s->preopens].name = name;
	s->preopen[s->preopens++].length = length;
}

/* `WASI_PREOPENS=/data:.=/tmp` in the environment names the directories. */
static int is_preopens(const char *variable)
{
	uint64_t start, end;

	for (int i = 0; i < 14; i++)
		if (!variable[i])
			return 0;
	__builtin_memcpy(&start, variable, 8);
	__builtin_memcpy(&end, variable + 6, 8);
	return start == 0x4552505f49534157 /* WASI_PRE */ && end == 0x3d534e45504f4552 /* REOPENS= */;
}

/* Without that variable: the whole root, and the directory where the program was started. Their
 * names are written into the state. */
static void usual_preopens(void)
{
	char *names = state()->entries;

	names[0] = '/';
	names[1] = '.';
	add_preopen((uint32_t)names, 1);
	add_preopen((uint32_t)names + 1, 1);
}

static void find_preopens(void)
{
	struct state *s = state();

	for (uint32_t i = 0; i < s->envc; i++) {
		uint32_t variable = ((uint32_t *)s->envp)[i];
		if (!is_preopens((const char *)variable))
			continue;
		/* The variable is not for the program. */
		for (uint32_t j = i; j < s->envc; j++)
			((uint32_t *)s->envp)[j] = ((uint32_t *)s->envp)[j + 1];
		s->envc--;
		for (uint32_t from = variable + 14;;) {
			uint32_t to = from;
			while (*(const char *)to && *(const char *)to != ':')
				to++;
			add_preopen(from, to - from);
			if (!*(const char *)to)
				return;
			from = to + 1;
		}
	}
	usual_preopens();
}

void wasi_main(uint32_t *block)
{
	struct state *s = state();

	s->argc = block[0];
	s->argv = (uint32_t)(block + 1);
	s->envp = (uint32_t)(block + 1 + block[0] + 1);
	while (((uint32_t *)s->envp)[s->envc])
		s->envc++;
	s->pages = program_pages();
	/* The kernel has mapped the range between the first page and __heap_base. */
	if (!map_pages(0, s->pages ? 1 : 0, MAP_FIXED_ANONYMOUS))
		end(126);
	find_preopens();
	program_load();
	program_start();
	end(0);
}

/* The program's memory.size and memory.grow. */
EXPORT(memory_size) uint32_t memory_size(void)
{
	return state()->pages;
}

EXPORT(memory_grow) uint32_t memory_grow(uint32_t more)
{
	struct state *s = state();
	uint32_t before = s->pages;

	if (more > program_most() || before > program_most() - more ||
	    !map_pages(before, more, MAP_FIXED_ANONYMOUS | NO_REPLACE))
		return (uint32_t)-1;
	s->pages += more;
	return before;
}

static void copy_strings(uint32_t from, uint32_t count, uint32_t *pointers, char *to)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t text = ((uint32_t *)from)[i], length = length_of(text) + 1;
		pointers[i] = (uint32_t)to;
		__builtin_memcpy(to, (const char *)text, length);
		to += length;
	}
}

static uint32_t sizes(uint32_t from, uint32_t count)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < count; i++)
		all += length_of(((uint32_t *)from)[i]) + 1;
	return all;
}

EXPORT(args_get) result_t args_get(uint32_t *pointers, char *text)
{
	copy_strings(state()->argv, state()->argc, pointers, text);
	return 0;
}

EXPORT(args_sizes_get) result_t args_sizes_get(uint32_t *count, uint32_t *bytes)
{
	*count = state()->argc;
	*bytes = sizes(state()->argv, state()->argc);
	return 0;
}

EXPORT(environ_get) result_t environ_get(uint32_t *pointers, char *text)
{
	copy_strings(state()->envp, state()->envc, pointers, text);
	return 0;
}

EXPORT(environ_sizes_get) result_t environ_sizes_get(uint32_t *count, uint32_t *bytes)
{
	*count = state()->envc;
	*bytes = sizes(state()->envp, state()->envc);
	return 0;
}

EXPORT(proc_exit) void proc_exit(uint32_t status)
{
	end(status);
}

/* WASI's signals are numbered as Linux's up to 15, but for a few. */
static int signal_of(uint32_t number)
{
	switch (number) {
	case 0 ... 15:
		return (int)number;
	case 16:
		return 17; /* CHLD */
	case 17:
		return 18; /* CONT */
	case 18:
		return 19; /* STOP */
	case 19:
		return 20; /* TSTP */
	case 20:
		return 21; /* TTIN */
	case 21:
		return 22; /* TTOU */
	case 22:
		return 23; /* URG */
	case 23:
		return 24; /* XCPU */
	case 24:
		return 25; /* XFSZ */
	case 25:
		return 26; /* VTALRM */
	case 26:
		return 27; /* PROF */
	case 27:
		return 28; /* WINCH */
	case 28:
		return 29; /* POLL */
	case 29:
		return 30; /* PWR */
	case 30:
		return 31; /* SYS */
	default:
		return -1;
	}
}

EXPORT(proc_raise) result_t proc_raise(uint32_t number)
{
	int signal = signal_of(number);

	return signal < 0 ? WASI_INVAL : error_of(CALL2(SYS_KILL, CALL1(SYS_GETPID, 0), signal));
}

EXPORT(sched_yield) result_t sched_yield(void)
{
	return error_of(CALL1(SYS_SCHED_YIELD, 0));
}

EXPORT(random_get) result_t random_get(char *to, uint32_t length)
{
	while (length) {
		int64_t got = CALL3(SYS_GETRANDOM, address(to), length, 0);
		if (got == -E_INTR)
			continue;
		if (got < 0)
			return error_of(got);
		to += got;
		length -= (uint32_t)got;
	}
	return 0;
}

/* WASI's clocks have Linux's numbers. */
EXPORT(clock_res_get) result_t clock_res_get(uint32_t clock, uint64_t *resolution)
{
	struct timespec t = { 0, 0 };
	result_t error = clock > 3 ? WASI_INVAL : error_of(CALL2(SYS_CLOCK_GETRES, clock, address(&t)));

	if (!error)
		*resolution = (uint64_t)t.seconds * 1000000000 + (uint64_t)t.nanoseconds;
	return error;
}

EXPORT(clock_time_get) result_t clock_time_get(uint32_t clock, uint64_t precision, uint64_t *now)
{
	struct timespec t = { 0, 0 };
	result_t error = clock > 3 ? WASI_INVAL : error_of(CALL2(SYS_CLOCK_GETTIME, clock, address(&t)));

	(void)precision;
	if (!error)
		*now = (uint64_t)t.seconds * 1000000000 + (uint64_t)t.nanoseconds;
	return error;
}
