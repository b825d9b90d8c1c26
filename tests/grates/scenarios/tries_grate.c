/* Tries, while it explains itself, what it may not: its notes say what came of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

LIND_HANDLE(alters, getppid, NULL);

static void *nothing(void *with)
{
	return with;
}

static void note(const char *what, long result)
{
	static char texts[32][80];
	static int count;

	snprintf(texts[count], sizeof *texts, "%s: %s", what, result < 0 ? strerror(errno) : "done");
	lind_explain_note(texts[count++]);
}

static long thread(void)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, nothing, NULL);
	/* The errno that the C library returns for a failure. */
	errno = errno == EAGAIN ? EIO : errno;
	return errno ? -1 : 0;
}

static const char *try(const char *value)
{
	static char *const argv[] = { "true", NULL };
	struct stat st;

	(void)value;
	lind_explain_note(stat("/grates-test/kept.log", &st) || open("/grates-test/kept.log", O_RDONLY) < 0
		? "does not read"
		: "reads");
	note("open", open("/grates-test/tried", O_WRONLY | O_CREAT, 0644));
	note("truncate", open("/grates-test/kept.log", O_RDONLY | O_TRUNC));
	note("temporary", open("/grates-test", O_RDWR | O_TMPFILE, 0600));
	note("proc", open("/proc/self/oom_score_adj", O_WRONLY));
	note("mkdir", mkdir("/grates-test/tried.d", 0755));
	note("unlink", unlink("/grates-test/kept.log"));
	note("socket", socket(AF_INET, SOCK_STREAM, 0));
	note("fork", fork());
	note("thread", thread());
	note("exec", execv("/bin/true", argv));
	note("kill", kill(getpid(), SIGKILL));
	errno = EIO;
	note("register",
	    lind_call_plain(SYS_register_handler, lind_self(), SYS_getppid, lind_self(), 0, 0) == -EIO ? -1 : 0);
	return NULL;
}

static const char *flood(const char *value)
{
	(void)value;
	for (int i = 0; i < 1 << 20; i++)
		printf("{{{{");
	return NULL;
}

static const char *says(uint32_t nr)
{
	(void)nr;
	return "says \"no\" \\ \n";
}

static int64_t on_getppid(const struct lind_call *c)
{
	return lind_forward(c);
}

LIND_OPTION("-", "try", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 0, "try", "WHEN", "try all that may not be done", try },
		{ 0, "flood", NULL, "say too much", flood } };
	static const struct lind_handler on[] = { { SYS_getppid, on_getppid } };

	lind_options(options, 2, "Tries what an explanation must not do.", &argc, &argv);
	lind_explain_calls(says);
	return lind_grate_run(on, 1, argc, argv);
}
