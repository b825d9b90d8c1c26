/* Hash tables, trees, queues, linear search, random permutations sorted by merge and heap alike. */
#include "check.h"

#include <search.h>

static int visited;

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static int with_context(const void *a, const void *b, void *sign)
{
	return by_value(a, b) * *(int *)sign;
}

static void visit(const void *node, VISIT order, int level)
{
	static int last = -1;

	(void)level;
	if (order == postorder || order == leaf) {
		CHECK(**(int *const *)node > last);
		last = **(int *const *)node;
		visited++;
	}
}

int main(void)
{
	static int numbers[500];
	char names[100][8];
	ENTRY entry = { 0 }, *found;
	void *root = NULL;
	size_t count = 0;
	int key, down = -1, table[20];

	for (int i = 0; i < 500; i++) {
		numbers[i] = (i * 379) % 500;
		NEED(tsearch(&numbers[i], &root, by_value));
	}
	twalk(root, visit);
	CHECK_EQ(visited, 500);
	key = 123;
	CHECK_EQ(**(int **)tfind(&key, &root, by_value), 123);
	CHECK(tdelete(&key, &root, by_value) != NULL);
	CHECK(tfind(&key, &root, by_value) == NULL);

	NEED(hcreate(200));
	for (int i = 0; i < 100; i++) {
		snprintf(names[i], sizeof names[i], "k%d", i);
		entry = (ENTRY){ names[i], &numbers[i] };
		NEED(hsearch(entry, ENTER));
	}
	entry.key = (char[]){ "k42" };
	NEED((found = hsearch(entry, FIND)));
	CHECK(found->data == &numbers[42]);
	entry.key = (char[]){ "nothing" };
	CHECK(hsearch(entry, FIND) == NULL);
	hdestroy();
	for (int i = 0; i < 30; i++) {
		key = i % 20;
		NEED(lsearch(&key, table, &count, sizeof *table, by_value));
	}
	CHECK_EQ(count, 20);
	qsort_r(numbers, 500, sizeof *numbers, with_context, &down);
	for (int i = 0; i < 500; i++)
		NEED(numbers[i] == 499 - i);
	return check_done();
}
