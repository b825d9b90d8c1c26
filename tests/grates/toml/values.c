/* Takes values out of a file as a grate does. */
#include <lind/toml.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct lind_toml *config = lind_toml_load(argc > 1 ? argv[1] : "");
	const char *name = lind_toml_need(config, "name", LIND_TOML_STRING)->string;
	struct lind_toml *rules = lind_toml_get(config, "rule", LIND_TOML_ARRAY);
	long times = (long)lind_toml_integer(config, "times", 1, 10, 7);
	double share = lind_toml_number(config, "share", 0, 1, 0.5);

	for (struct lind_toml *rule = lind_toml_first(rules); rule; rule = rule->next) {
		lind_toml_string(lind_toml_is(rule, LIND_TOML_TABLE), "call", "");
		lind_toml_bool(rule, "deny", false);
	}
	lind_toml_no_others(config);
	printf("%s %ld %g\n", name, times, share);
	for (struct lind_toml *rule = lind_toml_first(rules); rule; rule = rule->next)
		printf("%s %d\n", lind_toml_string(rule, "call", ""), lind_toml_bool(rule, "deny", false));
	return 0;
}
