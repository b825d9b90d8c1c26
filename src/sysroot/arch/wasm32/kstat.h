/* The result of stat(2): the x86-64 kernel's struct. */
struct kstat {
	dev_t st_dev;
	ino_t st_ino;
	nlink_t st_nlink;
	mode_t st_mode;
	uid_t st_uid;
	gid_t st_gid;
	unsigned __pad0;
	dev_t st_rdev;
	off_t st_size;
	blksize_t st_blksize;
	long __pad1;
	blkcnt_t st_blocks;
	long long st_atime_sec, st_atime_nsec;
	long long st_mtime_sec, st_mtime_nsec;
	long long st_ctime_sec, st_ctime_nsec;
	long long __unused[3];
};
