/* The namespace grate: options. */
#include <lind/grate.h>
#include "choose.h"
#include "clients.h"
#include "fds.h"
#include "kinds.h"
#include "net.h"
#include "paths.h"
#include "where.h"

LIND_COMPOSES(1);
/* The calls that the grates inside handle; the options say which of them enter. */
LIND_HANDLE(alters, any, NULL);
/* By these, descriptors, directories and threads come, go and travel: looked at in any case. */
LIND_HANDLE(alters, open, NULL);
LIND_HANDLE(alters, openat, NULL);
LIND_HANDLE(alters, openat2, NULL);
LIND_HANDLE(alters, creat, NULL);
LIND_HANDLE(alters, chdir, NULL);
LIND_HANDLE(alters, rename, NULL);
LIND_HANDLE(alters, renameat, NULL);
LIND_HANDLE(alters, renameat2, NULL);
LIND_HANDLE(alters, rmdir, NULL);
LIND_HANDLE(alters, unlinkat, NULL);
LIND_HANDLE(alters, connect, NULL);
LIND_HANDLE(alters, bind, NULL);
LIND_HANDLE(alters, sendto, NULL);
LIND_HANDLE(alters, sendmsg, NULL);
LIND_HANDLE(alters, sendmmsg, NULL);
LIND_HANDLE(alters, recvmsg, NULL);
LIND_HANDLE(alters, recvmmsg, NULL);
LIND_HANDLE(alters, pipe, NULL);
LIND_HANDLE(alters, pipe2, NULL);
LIND_HANDLE(alters, socketpair, NULL);
LIND_HANDLE(observes, close, NULL);
LIND_HANDLE(observes, close_range, NULL);
LIND_HANDLE(observes, dup, NULL);
LIND_HANDLE(observes, dup2, NULL);
LIND_HANDLE(observes, dup3, NULL);
LIND_HANDLE(observes, fcntl, NULL);
LIND_HANDLE(observes, accept, NULL);
LIND_HANDLE(observes, accept4, NULL);
LIND_HANDLE(observes, fchdir, NULL);
LIND_HANDLE(observes, clone, NULL);

LIND_OPTION("p", "prefix", "value");
LIND_OPTION("c", "calls", "value");
LIND_OPTION("-", "calls-from", "reads");
LIND_OPTION("a", "address", "value");
LIND_OPTION("-", "port", "value");
LIND_OPTION("f", "fd", "value");
LIND_OPTION("-", "fd-kind", "value");
LIND_OPTION("-", "fd-flags", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'p', "prefix", "PATH", "let calls on PATH and below enter; may be repeated", add_prefix },
		{ 0, "by-text", NULL,
		    "pass paths elsewhere on as text: a link that is made there meanwhile may lead inside",
		    set_by_text },
		{ 'c', "calls", "LIST",
		    "let only these calls enter: names, numbers, %file %desc %network %memory %process %ipc %signal, !LIST",
		    add_calls },
		{ 0, "calls-from", "FILE", "read such a list from FILE, one or more per line; # begins a comment",
		    add_calls_file },
		{ 'a', "address", "ADDRESS[/BITS]", "let calls on sockets with this address enter; may be repeated",
		    add_address },
		{ 0, "port", "PORT[-PORT]", "let calls on sockets with these ports enter; may be repeated", add_port },
		{ 'f', "fd", "FD[-FD]", "put these descriptors of the program's start inside", add_start_fds },
		{ 0, "fd-kind", "LIST",
		    "put descriptors of these kinds inside: file, dir, pipe, socket, chardev, tty, ... (a wrong one lists them); !LIST: of none of these",
		    add_fd_kinds },
		{ 0, "fd-flags", "LIST",
		    "put descriptors with these flags inside: readonly, writable, append, nonblock, ... (a wrong one lists them); !LIST: with none of these",
		    add_fd_flags },
	};
	static const struct lind_composer composer = {
		.stacks = 1,
		.choose = choose,
		.when = when,
		.entered = client_entered,
		.lifecycle = { 0 },
	};
	static struct lind_composer with;

	lind_options(options, sizeof options / sizeof *options,
	    "Sends the calls that match through the grates between %{ and %}, and the others past them.", &argc, &argv);
	if (!by_path && !by_net && !by_fd && !by_call)
		lind_die(
		    "nothing says which calls enter: give it --prefix, --calls, --address, --port, --fd, --fd-kind or --fd-flags");
	with = composer;
	with.lifecycle = lifecycle;
	return lind_compose_run(&with, argc, argv);
}
