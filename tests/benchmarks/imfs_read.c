/*
 * The imfs grate's filesystem called as functions: what a read costs when nothing leads to it.
 * links: ../../grates/lib/memfs/{attr,data,dir,fds,fifo,file,locks}.c
 * links: ../../grates/lib/memfs/{magic,names,node,passes,path,watch,xattr}.c
 */
#include "bench.h"
#include "../../grates/lib/memfs/imfs_core.h"

static char buffer[10240];

static void measure(struct imfs *fs, struct imfs_file *file, size_t size, long loops)
{
	long long start = gettimens();

	for (long i = 0; i < loops; i++)
		if (imfs_pread(fs, file, buffer, size, 0) != (int64_t)size)
			bench_die("imfs_pread");
	emit_since("IMFS read", (long)size, loops, start);
}

int main(void)
{
	static struct imfs fs;
	static struct imfs_at at;
	struct imfs_process *process = imfs_process_new();
	struct imfs_file *file;

	if (!process || imfs_init(&fs, "", 1 << 24, &process->cred))
		bench_die("imfs_init");
	if (imfs_walk(&fs, process, fs.root, NULL, "/file", true, &at))
		bench_die("imfs_walk");
	if (imfs_open(&fs, process, &at, O_RDWR | O_CREAT, 0600, &file))
		bench_die("imfs_open");
	memset(buffer, 'r', sizeof buffer);
	if (imfs_pwrite(&fs, process, file, buffer, sizeof buffer, 0) != (int64_t)sizeof buffer)
		bench_die("imfs_pwrite");
	memset(buffer, 0, sizeof buffer);
	measure(&fs, file, 1, 1000000);
	measure(&fs, file, 1024, 1000000);
	measure(&fs, file, 4096, 1000000);
	measure(&fs, file, 10240, 100000);
	if (buffer[0] != 'r' || buffer[10239] != 'r')
		bench_die("the file has other bytes");
	return 0;
}
