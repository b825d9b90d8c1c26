/* The namespace grate: options. */
#include "namespace.h"

bool by_path, by_net, by_fd;

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'p', "prefix", "PATH", "calls on PATH and what is below enter; may be repeated", add_prefix },
		{ 0, "by-text", NULL, "paths elsewhere are passed on as text: links put there meanwhile may lead in", set_by_text },
		{ 'c', "calls", "LIST", "only these calls enter: names, numbers, %file %desc %network %memory %process %ipc %signal, !LIST", add_calls },
		{ 0, "calls-from", "FILE", "the same, one or more per line; # begins a comment", add_calls_file },
		{ 'a', "address", "ADDRESS[/BITS]", "calls on sockets with this address enter; may be repeated", add_address },
		{ 0, "port", "PORT[-PORT]", "calls on sockets with these ports enter; may be repeated", add_port },
		{ 'f', "fd", "FD[-FD]", "these descriptors of the program's start are inside", add_start_fds },
	};
	static const struct lind_composer composer = {
		.stacks = 1, .choose = choose, .entered = client_entered,
		.lifecycle = { 0 },
	};
	static struct lind_composer with;

	lind_options(options, sizeof options / sizeof *options,
		"Sends the calls that match through the grates between %{ and %}, and the others past them.", &argc, &argv);
	with = composer;
	with.lifecycle = lifecycle;
	return lind_compose_run(&with, argc, argv);
}
