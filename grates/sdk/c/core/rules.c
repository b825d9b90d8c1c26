/* Rules that change while programs run: the thread that waits for them. */
#include <errno.h>
#include <lind/raw.h>
#include <lind/rules.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sdk.h"

/* As the kernel's. */
#define MOST_BYTES  (1u << 20)
#define MOST_ANSWER 1024

static bool live;

const char *lind_live_(const char *value)
{
	(void)value;
	live = true;
	return NULL;
}

bool lind_is_live(void)
{
	return live;
}

/* One after the other, up to the first that is wrong. */
static void set_all(const struct lind_rules *rules, const char *words, size_t length, char answer[MOST_ANSWER])
{
	for (const char *word = words; !*answer && word < words + length; word += strlen(word) + 1)
		lind_option_again_(rules->options, rules->count, word, answer, MOST_ANSWER);
}

static void apply(const struct lind_rules *rules, const char *words, size_t length, char answer[MOST_ANSWER])
{
	const char *wrong = rules->begin();

	*answer = 0;
	if (wrong) {
		snprintf(answer, MOST_ANSWER, "%s", wrong);
		return;
	}
	set_all(rules, words, length, answer);
	if ((wrong = rules->settle(!*answer)))
		snprintf(answer, MOST_ANSWER, "%s", wrong);
}

static void *follow(void *argument)
{
	const struct lind_rules *rules = argument;
	char answer[MOST_ANSWER] = "";
	/* A NUL behind all ends the last word, whatever comes. */
	char *words = calloc(1, MOST_BYTES + 1);

	if (!words)
		lind_die("out of memory");
	for (;;) {
		int64_t length = lind_import_syscall(
		    SYS_next_rules, (uintptr_t)answer, strlen(answer), (uintptr_t)words, MOST_BYTES, 0, 0);

		if (length == -EINTR)
			continue;
		/* The rules stay what they are. */
		if (length < 0 || length > MOST_BYTES)
			break;
		words[length] = 0;
		apply(rules, words, (size_t)length, answer);
	}
	free(words);
	return NULL;
}

void lind_rules_follow(const struct lind_rules *rules)
{
	pthread_t thread;
	int64_t r;

	if (!live || lind_explains())
		return;
	r = lind_import_syscall(SYS_follow_rules, (uintptr_t)rules->name, strlen(rules->name), 0, 0, 0, 0);
	if (r < 0)
		lind_die("--live: %s", strerror((int)-r));
	if ((r = pthread_create(&thread, NULL, follow, (void *)rules)))
		lind_die("cannot start the thread for rules: %s", strerror((int)r));
	pthread_detach(thread);
}

bool lind_use_once(uint64_t number)
{
	return !lind_import_syscall(SYS_use_once, number, 0, 0, 0, 0, 0);
}
