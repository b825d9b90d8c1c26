/* The namespace grate: options. */
#include <lind/typed.h>
#include "choose.h"
#include "clients.h"
#include "fds.h"
#include "kinds.h"
#include "net.h"
#include "paths.h"
#include "where.h"

LIND_COMPOSES(1);
/* The calls that the grates inside handle; the options say which of them enter. */
LIND_DECLARE("alters", any);
/* By these, descriptors, directories and threads come, go and travel: looked at in any case. */
LIND_DECLARE("alters", open);
LIND_DECLARE("alters", openat);
LIND_DECLARE("alters", openat2);
LIND_DECLARE("alters", creat);
LIND_DECLARE("alters", chdir);
LIND_DECLARE("alters", rename);
LIND_DECLARE("alters", renameat);
LIND_DECLARE("alters", renameat2);
LIND_DECLARE("alters", rmdir);
LIND_DECLARE("alters", unlinkat);
LIND_DECLARE("alters", connect);
LIND_DECLARE("alters", bind);
LIND_DECLARE("alters", sendto);
LIND_DECLARE("alters", sendmsg);
LIND_DECLARE("alters", sendmmsg);
LIND_DECLARE("alters", recvmsg);
LIND_DECLARE("alters", recvmmsg);
LIND_DECLARE("alters", pipe);
LIND_DECLARE("alters", pipe2);
LIND_DECLARE("alters", socketpair);
LIND_DECLARE("observes", close);
LIND_DECLARE("observes", close_range);
LIND_DECLARE("observes", dup);
LIND_DECLARE("observes", dup2);
LIND_DECLARE("observes", dup3);
LIND_DECLARE("observes", fcntl);
LIND_DECLARE("observes", accept);
LIND_DECLARE("observes", accept4);
LIND_DECLARE("observes", fchdir);
LIND_DECLARE("observes", clone);

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
