/* Prints what the process is told about itself; exits with its number of arguments. */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	printf("%s: euid %d, uid %s\n", argv[0], (int)geteuid(), getuid() == geteuid() ? "same" : "other");
	return argc - 1;
}
