/* mkstemp, mkdtemp, tmpfile, O_TMPFILE. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	char file[] = "t-XXXXXX", dir[] = "d-XXXXXX", text[8] = { 0 };
	struct stat st;
	FILE *f;
	int fd, other;

	NEED((fd = mkstemp(file)) >= 0);
	CHECK(strcmp(file, "t-XXXXXX"));
	NEED(fstat(fd, &st) == 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(unlink(file), 0);
	close(fd);
	NEED(mkdtemp(dir));
	NEED(stat(dir, &st) == 0);
	CHECK_EQ(st.st_mode & 07777, 0700);
	CHECK_EQ(rmdir(dir), 0);
	CHECK_ERRNO(mkstemp((char[]){ "short-XX" }), EINVAL);

	NEED((f = tmpfile()));
	CHECK(fputs("text", f) >= 0);
	rewind(f);
	CHECK(fgets(text, sizeof text, f) != NULL);
	CHECK_STR(text, "text");
	CHECK_EQ(fclose(f), 0);

	if ((fd = open(".", O_TMPFILE | O_RDWR, 0600)) >= 0) {
		NEED(fstat(fd, &st) == 0);
		CHECK_EQ(st.st_nlink, 0);
		CHECK_EQ(write(fd, "tmp", 3), 3);
		close(fd);
	} else {
		CHECK(errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
	}
	/* The number is free again. */
	NEED((other = open(".", O_RDONLY)) >= 0);
	close(other);
	return check_done();
}
