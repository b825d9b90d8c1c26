/* Which calls are looked at, and by which handler. A call that no grate inside handles, and that
 * moves no descriptor, stays untouched. */
#include <stdio.h>
#include <stdlib.h>
#include "choose.h"
#include "fds.h"
#include "hold.h"
#include "messages.h"
#include "net.h"
#include "paths.h"
#include <lind/syscall_table.h>

bool by_call;

static bool chosen[LIND_NUMBERS];

/* Those that begin or end a program: the grates inside keep count of their clients by them. */
static bool is_lifecycle(uint32_t nr)
{
	switch (nr) {
	case SYS_clone:
	case SYS_spawn:
	case SYS_execve:
	case SYS_execveat:
	case SYS_exit:
	case SYS_exit_group:
		return true;
	default:
		return false;
	}
}

/* Those that change what a grate may keep about a process, and have neither path nor descriptor. */
static bool is_state(uint32_t nr)
{
	switch (nr) {
	case SYS_umask:
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setgroups:
	case SYS_setfsuid:
	case SYS_setfsgid:
	case SYS_capset:
	case SYS_unshare:
	case SYS_setrlimit:
	case SYS_prlimit64:
	case SYS_register_handler:
	case SYS_copy_data_between_cages:
	case SYS_copy_handler_table_to_cage:
		return true;
	default:
		return is_lifecycle(nr);
	}
}

static bool has(const struct lind_syscall *row, enum lind_kind kind)
{
	for (unsigned i = 0; i < row->count; i++)
		if (row->args[i].kind == kind)
			return true;
	return false;
}

static bool in_class(const struct lind_syscall *row, const char *class)
{
	if (!strcmp(class, "file"))
		return has(row, LIND_PATH);
	if (!strcmp(class, "desc"))
		return has(row, LIND_FD) || has(row, LIND_DIRFD) || row->ret == LIND_FD;
	if (!strcmp(class, "network"))
		return !strcmp(row->area, "net");
	return !strcmp(row->area, class);
}

static const char *const classes[] = { "file", "desc", "network", "memory", "process", "ipc", "signal", "time", "wait",
	"sync", "fs" };

static bool choose_word(const char *word, bool yes)
{
	const struct lind_syscall *row;
	bool found = false;
	char *end;
	unsigned long nr = strtoul(word, &end, 10);

	if (end != word && !*end && nr < LIND_NUMBERS) {
		chosen[nr] = yes;
		return true;
	}
	for (size_t i = 0; (row = lind_syscall_at(i)); i++)
		if (*word == '%' ? in_class(row, word + 1) : !strcmp(row->name, word)) {
			chosen[row->nr] = yes;
			found = true;
		}
	for (size_t i = 0; *word == '%' && i < sizeof classes / sizeof *classes; i++)
		found = found || !strcmp(classes[i], word + 1);
	return found && (*word != '%' || word[1]);
}

/* Commas between the words; ! before the first takes them away, from all if there was nothing
 * before. */
static const char *choose_list(char *list)
{
	static char wrong[80];
	bool yes = *list != '!';
	char *save, *word;

	if (!yes && !by_call)
		memset(chosen, 1, sizeof chosen);
	by_call = true;
	for (word = strtok_r(list + !yes, ", \t", &save); word; word = strtok_r(NULL, ", \t", &save))
		if (!choose_word(word, yes)) {
			snprintf(wrong, sizeof wrong, "no such system call or class: %.32s", word);
			return wrong;
		}
	return NULL;
}

const char *add_calls(const char *value)
{
	char *copy = strdup(value);
	const char *wrong = copy ? choose_list(copy) : "out of memory";

	free(copy);
	return wrong;
}

const char *add_calls_file(const char *value)
{
	FILE *file = lind_read_file(value);
	const char *wrong = NULL;
	char line[1024];

	if (!file)
		return strerror(errno);
	while (!wrong && fgets(line, sizeof line, file)) {
		line[strcspn(line, "#\n")] = 0;
		wrong = line[strspn(line, " \t")] ? choose_list(line) : NULL;
	}
	fclose(file);
	return wrong;
}

static bool is_memory(uint32_t nr)
{
	switch (nr) {
	case SYS_munmap:
	case SYS_mremap:
	case SYS_msync:
	case SYS_mprotect:
	case SYS_madvise:
	case SYS_mincore:
	case SYS_mlock:
	case SYS_munlock:
	case SYS_mlock2:
	case SYS_brk:
		return true;
	default:
		return false;
	}
}

/* Descriptors that come, go or travel: looked at whether a grate inside handles the call or not. */
static lind_handle_fn *mover(uint32_t nr)
{
	switch (nr) {
	case SYS_close:
		return on_close;
	case SYS_close_range:
		return on_close_range;
	case SYS_dup:
		return on_dup;
	case SYS_dup2:
	case SYS_dup3:
		return on_dup2;
	case SYS_fcntl:
		return on_fcntl;
	case SYS_pipe:
	case SYS_pipe2:
	case SYS_socketpair:
		return on_pair;
	case SYS_accept:
	case SYS_accept4:
		return on_accept;
	case SYS_sendmsg:
		return on_send;
	case SYS_sendmmsg:
		return on_send_many;
	case SYS_recvmsg:
		return on_receive;
	case SYS_recvmmsg:
		return on_receive_many;
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
	case SYS_creat:
		return on_path;
	case SYS_chdir:
		return on_chdir;
	case SYS_fchdir:
		return on_fchdir;
	case SYS_rename:
	case SYS_renameat:
	case SYS_renameat2:
	case SYS_rmdir:
	case SYS_unlinkat:
		return by_path ? on_path : NULL;
	default:
		return NULL;
	}
}

/* Calls that a grate inside handles. */
static lind_handle_fn *matched(uint32_t nr, const struct lind_syscall *row)
{
	int fds = 0;

	if (is_memory(nr))
		return on_memory;
	switch (nr) {
	case SYS_mmap:
		return on_mmap;
	case SYS_poll:
	case SYS_ppoll:
		return on_poll;
	case SYS_select:
	case SYS_pselect6:
		return on_select;
	case SYS_getcwd:
		return on_getcwd;
	case SYS_connect:
	case SYS_bind:
	case SYS_sendto:
		return on_address;
	case SYS_epoll_ctl:
		return on_fds;
	default:
		break;
	}
	for (unsigned i = 0; i < row->count; i++) {
		if (row->args[i].kind == LIND_PATH)
			return on_path;
		fds += row->args[i].kind == LIND_FD;
	}
	return fds > 1 ? on_fds : fds ? on_fd : NULL;
}

/* The conditions of handlers that enter, in words. */
const char *when(uint32_t nr, lind_handle_fn *handle)
{
	static const struct {
		lind_handle_fn *handle;
		const char *when;
	} conditions[] = {
		{ on_enter, "" },
		{ on_clone, "" },
		{ on_memory, "once a file that is inside was mapped" },
		{ on_mmap, "if it maps a file that is inside, and once one was mapped" },
		{ on_poll, "if a descriptor in its set is inside" },
		{ on_select, "if a descriptor in its set is inside" },
		{ on_getcwd, "if the working directory is inside" },
		{ on_address, "if its address matches, or its socket is inside" },
		{ on_send, "if its address matches, or its socket or a descriptor in it is inside" },
		{ on_send_many, "if its address matches, or its socket or a descriptor in it is inside" },
		{ on_receive, "if its socket is inside, and once a descriptor from inside was sent" },
		{ on_receive_many, "if its socket is inside, and once a descriptor from inside was sent" },
		{ on_fds, "if one of its descriptors is inside" },
		{ on_dup2, "if one of its descriptors is inside" },
		{ on_close_range, "once a descriptor is inside" },
		{ on_pair, NULL },
		{ on_control_past, NULL },
		{ on_made, NULL },
	};

	(void)nr;
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
		if (conditions[i].handle == handle)
			return conditions[i].when;
	if (handle == on_path || handle == on_chdir)
		return by_path ? "if its path matches" : "if its path starts in a directory that is inside";
	return "if its descriptor is inside";
}

lind_handle_fn *choose(uint32_t nr)
{
	const struct lind_syscall *row = lind_syscall(nr);
	bool handled =
	    lind_handled_inside(0, nr) && (!by_call || (nr < LIND_NUMBERS && chosen[nr]) || is_lifecycle(nr));
	lind_handle_fn *handle = NULL;

	if (!by_path && !by_net && !by_fd)
		return handled ? on_enter : NULL;
	if (nr == SYS_clone)
		return on_clone;
	if (is_state(nr))
		return handled ? on_enter : NULL;
	if ((handle = mover(nr)))
		return handle;
	if (nr == SYS_ioctl && flags_change)
		return handled ? on_control : on_control_past;
	if ((by_net || by_path) && (nr == SYS_connect || nr == SYS_bind || nr == SYS_sendto))
		return on_address;
	if (handled && row)
		handle = matched(nr, row);
	return handle || !row || row->ret != LIND_FD ? handle : on_made;
}

/* Lets the kernel do the work of on_fd without entering it. Clients begin one after the other. */
void fds_route(struct client *client, uint64_t cage)
{
	static struct lind_fd_routes routes = { .count = LIND_FDS, .mask = INSIDE };

	/* This client was started before the grates inside, and so is not their client. */
	if (!lind_view(0))
		return;
	if (!routes.set) {
		routes.unset = lind_self();
		routes.set = lind_view(0);
		for (uint32_t nr = 0; nr < 64 * sizeof routes.numbers / sizeof *routes.numbers; nr++)
			if (choose(nr) == on_fd)
				lind_route_number(&routes, nr);
	}
	routes.words = (uintptr_t)client->fds;
	/* Calls that the kernel cannot route itself come to on_fd. */
	(void)lind_route_fds(cage, &routes);
}
