/* Reading a directory comes to an end, also where each entry gets another name as soon as it has
 * been read. */
#include "check.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#define FILES 100

struct record {
	uint64_t ino, off;
	uint16_t length;
	uint8_t type;
	char name[];
};

int main(void)
{
	char name[64], from[300], to[300], buffer[256];
	int count = 0, fd;
	long n;

	NEED(mkdir("many", 0755) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "many/f%d", i);
		close(check_file(name, ""));
	}
	NEED((fd = open("many", O_RDONLY | O_DIRECTORY)) >= 0);
	while ((n = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0 && count < 20 * FILES)
		for (char *at = buffer; at < buffer + n; at += ((struct record *)at)->length) {
			const struct record *r = (struct record *)at;

			if (*r->name != 'f')
				continue;
			snprintf(from, sizeof from, "many/%.100s", r->name);
			snprintf(to, sizeof to, "many/f%d", FILES + count++);
			rename(from, to);
		}
	lseek(fd, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
		for (char *at = buffer; at < buffer + n; at += ((struct record *)at)->length)
			if (snprintf(from, sizeof from, "many/%.100s", ((struct record *)at)->name) && from[5] == 'f')
				unlink(from);
	close(fd);
	CHECK(rmdir("many") == 0);
	CHECK(count >= FILES && count < 20 * FILES);
	return check_done();
}
