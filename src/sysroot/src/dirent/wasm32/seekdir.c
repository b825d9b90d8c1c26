#include <dirent.h>
#include <unistd.h>
#include "../__dirent.h"
#include "lock.h"
#include "dir_position.h"

void seekdir(DIR *dir, long number)
{
	LOCK(dir->lock);
	dir->tell = lseek(dir->fd, __dir_position(number), SEEK_SET);
	dir->buf_pos = dir->buf_end = 0;
	UNLOCK(dir->lock);
}
