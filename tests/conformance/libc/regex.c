/* regcomp and regexec, fnmatch, glob. */
#include "check.h"

#include <fnmatch.h>
#include <glob.h>
#include <regex.h>

static int matches(const char *pattern, const char *text, int flags)
{
	regex_t regex;
	int result;

	if (regcomp(&regex, pattern, flags | REG_NOSUB))
		return -1;
	result = regexec(&regex, text, 0, NULL, 0) == 0;
	regfree(&regex);
	return result;
}

int main(void)
{
	regmatch_t at[3];
	regex_t regex;
	char message[64];
	glob_t found;

	NEED(regcomp(&regex, "([a-z]+)=([0-9]+)", REG_EXTENDED) == 0);
	CHECK_EQ(regexec(&regex, "set size=42 now", 3, at, 0), 0);
	CHECK_EQ(at[0].rm_so, 4);
	CHECK_EQ(at[0].rm_eo, 11);
	CHECK_EQ(at[1].rm_eo, 8);
	CHECK_EQ(at[2].rm_so, 9);
	CHECK_EQ(regexec(&regex, "nothing", 3, at, 0), REG_NOMATCH);
	regfree(&regex);
	CHECK_EQ(matches("^(ab|cd)*$", "abcdab", REG_EXTENDED), 1);
	CHECK_EQ(matches("^a.c$", "a\nc", REG_EXTENDED | REG_NEWLINE), 0);
	CHECK_EQ(matches("HELLO", "well hello", REG_ICASE), 1);
	CHECK_EQ(matches("\\(a\\)\\1", "aa", 0), 1);
	CHECK_EQ(matches("[[:digit:]]{3}", "ab123", REG_EXTENDED), 1);
	CHECK_EQ(matches("x{2,3}y", "xxxxy", REG_EXTENDED), 1);
	CHECK_EQ(matches("(a", "a", REG_EXTENDED), -1);
	CHECK(regcomp(&regex, "[z-a]", REG_EXTENDED) != 0);
	CHECK(regerror(REG_EBRACK, NULL, message, sizeof message) > 0);

	/* A character by another name: alone in its class in the locales C and POSIX. */
	CHECK_EQ(matches("^[[=d=]]$", "d", 0), 1);
	CHECK_EQ(matches("^[[=d=]]$", "e", 0), 0);
	CHECK_EQ(matches("^[[.-.]x]*$", "x-x", 0), 1);
	CHECK_EQ(matches("^[[.a.]-[.c.]]+$", "abc", REG_EXTENDED), 1);
	CHECK_EQ(matches("^[[.a.]-[.c.]]+$", "abd", REG_EXTENDED), 0);
	CHECK_EQ(matches("^[^[=a=]]$", "a", 0), 0);
	CHECK_EQ(matches("^[[=a=]]$", "A", REG_ICASE), 1);
	CHECK_EQ(regcomp(&regex, "[[=a=]-c]", 0), REG_ERANGE);
	CHECK_EQ(regcomp(&regex, "[[.no-name.]]", 0), REG_ECOLLATE);
	CHECK(regcomp(&regex, "[[.a", 0) != 0);
	CHECK(regcomp(&regex, "[[=", 0) != 0);
	CHECK(regcomp(&regex, "[a-[.", 0) != 0);

	CHECK_EQ(fnmatch("[[=d=]]", "d", 0), 0);
	CHECK_EQ(fnmatch("[[=d=]]", "e", 0), FNM_NOMATCH);
	CHECK_EQ(fnmatch("[![.d.]]", "d", 0), FNM_NOMATCH);
	CHECK_EQ(fnmatch("[[.a.]-[.c.]]", "b", 0), 0);
	CHECK_EQ(fnmatch("[[.a.]-c]x", "bx", 0), 0);
	CHECK_EQ(fnmatch("[[.a.]-[.c.]]", "d", 0), FNM_NOMATCH);
	CHECK_EQ(fnmatch("*.c", "file.c", 0), 0);
	CHECK_EQ(fnmatch("[!a]?", "bc", 0), 0);
	CHECK_EQ(fnmatch("*", "a/b", FNM_PATHNAME), FNM_NOMATCH);
	CHECK_EQ(fnmatch("*", ".hidden", FNM_PERIOD), FNM_NOMATCH);

	close(check_file("b.txt", ""));
	close(check_file("a.txt", ""));
	close(check_file("c.dat", ""));
	NEED(glob("*.txt", 0, NULL, &found) == 0);
	CHECK_EQ(found.gl_pathc, 2);
	CHECK_STR(found.gl_pathv[0], "a.txt");
	globfree(&found);
	CHECK_EQ(glob("*.none", 0, NULL, &found), GLOB_NOMATCH);
	CHECK_EQ(unlink("a.txt"), 0);
	CHECK_EQ(unlink("b.txt"), 0);
	CHECK_EQ(unlink("c.dat"), 0);
	return check_done();
}
