/* The work of somebody with a repository: clone, look, search, change, compare, check. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"

static const char *program;

/* Runs git and returns what it writes, which the next call frees. */
static char *git(const char *const *words, size_t *length)
{
	static char *out;
	size_t room = 1 << 16, have = 0;
	int ends[2], status;
	ssize_t got;
	pid_t child;

	free(out);
	if (!(out = malloc(room)) || pipe(ends) || (child = fork()) < 0)
		fail("fork");
	if (!child) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execv(program, (char *const *)(uintptr_t)words);
		_exit(127);
	}
	close(ends[1]);
	while ((got = read(ends[0], out + have, room - have - 1)) > 0) {
		have += (size_t)got;
		if (room - have < 2 && !(out = realloc(out, room *= 2)))
			fail("memory");
	}
	close(ends[0]);
	if (waitpid(child, &status, 0) != child || status) {
		fprintf(stderr, "child: git %s: status %#x\n", words[1], status);
		exit(1);
	}
	out[have] = 0;
	*length = have;
	return out;
}

#define GIT(...) git((const char *const[]){ "git", __VA_ARGS__, NULL }, &length)

static void git_is_seen(const char *text, size_t length)
{
	seen(text, length);
	seen_number((int64_t)length);
}

static void search(char *names, size_t length, long most, size_t keep, const char *token)
{
	int64_t found = 0, read_files = 0;
	struct stat st;

	for (char *name = names; name < names + length && read_files < most; name += strlen(name) + 1) {
		char *text;
		int fd;

		if (lstat(name, &st) || !S_ISREG(st.st_mode))
			continue;
		fd = open(name, O_RDONLY);
		if (fd < 0 || !(text = malloc((size_t)st.st_size + 1)) ||
		    read(fd, text, (size_t)st.st_size) != st.st_size)
			fail(name);
		close(fd);
		text[st.st_size] = 0;
		for (char *at = text; (at = strstr(at, token)); at += strlen(token))
			found++;
		seen_text(name);
		seen_number(st.st_size);
		seen(text, (size_t)st.st_size < keep ? (size_t)st.st_size : keep);
		free(text);
		read_files++;
	}
	count("read", read_files);
	count("found", found);
}

static void append_line(const char *name, int64_t *bytes)
{
	static const char line[] = "one more line\n";
	struct stat st;
	int fd = open(name, O_WRONLY | O_APPEND);

	if (fd < 0 || write(fd, line, sizeof line - 1) != sizeof line - 1 || fsync(fd) || fstat(fd, &st))
		fail(name);
	close(fd);
	*bytes += st.st_size;
}

/* Of sources first, then of tests, of documents, and of all. */
static void edit(const char *names, size_t length, long most)
{
	static const char *const starts[] = { "src/", "tests/", "docs/", "" };
	int64_t bytes = 0;
	long done = 0;
	struct stat st;

	for (int i = 0; i < 4; i++)
		for (const char *name = names; name < names + length && done < most; name += strlen(name) + 1) {
			bool before = false;

			for (int j = 0; j < i; j++)
				before |= !strncmp(name, starts[j], strlen(starts[j]));
			if (before || strncmp(name, starts[i], strlen(starts[i])) || lstat(name, &st) ||
			    !S_ISREG(st.st_mode))
				continue;
			append_line(name, &bytes);
			done++;
		}
	count("edited", done);
	count("edited_bytes", bytes);
}

void git_work(char **arguments)
{
	size_t length, kept;
	char *text, *names;

	program = arguments[1];
	begin();
	GIT("clone", "--quiet", "--local", "--no-hardlinks", arguments[0], "work");
	phase("clone");
	if (chdir("work"))
		fail("work");
	GIT("checkout", "--quiet", "-B", "overlay-benchmark");
	text = GIT("rev-parse", "HEAD");
	git_is_seen(text, length);
	phase("checkout");
	text = GIT("status", "--short");
	git_is_seen(text, length);
	text = GIT("status", "--short", "--branch");
	git_is_seen(text, length);
	phase("status");
	text = GIT("ls-files", "-z");
	if (!(names = malloc(length + 1)))
		fail("memory");
	memcpy(names, text, length + 1);
	kept = length;
	search(names, kept, atol(arguments[2]), (size_t)atol(arguments[3]), arguments[5]);
	phase("read_search");
	edit(names, kept, atol(arguments[4]));
	phase("edit");
	text = GIT("diff", "--name-only", "--");
	git_is_seen(text, length);
	text = GIT("diff", "--stat", "--");
	git_is_seen(text, length);
	text = GIT("diff", "--", ".");
	git_is_seen(text, length);
	phase("diff");
	if (atol(arguments[6])) {
		GIT("fsck", "--strict");
		phase("fsck");
	}
}
