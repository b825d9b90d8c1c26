/* Takes values out of its settings as a grate does. */
#include <lind/config.h>
#include <lind/grate.h>
#include <stdio.h>

static const char *file = "";

LIND_KEEPS(set_config, file)
LIND_OPTION("c", "config", "toml");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 'c', "config", "FILE", "read settings", set_config } };
	struct lind_config *config, *rules, *most;
	const char *name;
	double share;
	long times;

	lind_options(options, 1, "Takes values.", &argc, &argv);
	config = lind_config_load(file);
	name = lind_config_need(config, "name", LIND_CONFIG_STRING)->string;
	rules = lind_config_get(config, "rule", LIND_CONFIG_ARRAY);
	times = (long)lind_config_integer(config, "times", 1, 10, 7);
	share = lind_config_number(config, "share", 0, 1, 0.5);
	most = lind_config_get(config, "most", 0);
	for (struct lind_config *rule = lind_config_first(rules); rule; rule = rule->next) {
		lind_config_string(lind_config_is(rule, LIND_CONFIG_TABLE), "call", "");
		lind_config_bool(rule, "deny", false);
	}
	if (most)
		printf("%llu bytes\n", (unsigned long long)lind_config_bytes(most));
	if ((most = lind_config_get(config, "within", 0)))
		printf("%llu ns\n", (unsigned long long)lind_config_time(most));
	lind_config_no_others(config);
	printf("%s %ld %g\n", name, times, share);
	for (struct lind_config *rule = lind_config_first(rules); rule; rule = rule->next)
		printf("%s %d\n", lind_config_string(rule, "call", ""), lind_config_bool(rule, "deny", false));
	fflush(stdout);
	return lind_grate_main(argc, argv);
}
