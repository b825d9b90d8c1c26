// Files: one function for each of libuv's, which is called at once or, if a function is given at
// the end, off the thread. A result that is a negative number is an errno.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node.h"

struct job {
	uv_fs_t uv;
	struct env *env;
	JSValue done, kept;
	// Bytes that another thread reads or writes: the program may detach its own meanwhile.
	uint8_t *memory;
	// Names are returned as bytes.
	bool raw;
};

// Text of a path: a string, or a buffer of bytes. To be freed.
static char *path_of(JSContext *ctx, JSValueConst value)
{
	size_t length;
	char *copy = NULL;
	if (JS_IsString(value)) {
		const char *text = JS_ToCStringLen(ctx, &length, value);
		if (text && memchr(text, 0, length))
			JS_ThrowTypeError(ctx, "a path has no null bytes");
		else if (text)
			copy = got(strdup(text));
		JS_FreeCString(ctx, text);
		return copy;
	}
	uint8_t *bytes = bytes_of(ctx, value, &length);
	return bytes ? got(strndup((char *)bytes, length)) : NULL;
}

static JSValue name_value(struct job *job, const char *text)
{
	JSContext *ctx = job->env->ctx;
	if (!text)
		return JS_NULL;
	if (job->raw)
		return JS_NewUint8ArrayCopy(ctx, (const uint8_t *)text, strlen(text));
	return new_utf8(ctx, (const uint8_t *)text, strlen(text));
}

static void put_time(double *to, uv_timespec_t time)
{
	to[0] = time.tv_sec;
	to[1] = time.tv_nsec;
}

static JSValue numbers(JSContext *ctx, const double *values, int count)
{
	JSValue list = JS_NewArray(ctx);
	for (int i = 0; i < count; i++)
		JS_SetPropertyUint32(ctx, list, i, JS_NewFloat64(ctx, values[i]));
	return list;
}

static JSValue stat_value(JSContext *ctx, const uv_stat_t *stat)
{
	double values[18] = { stat->st_dev, stat->st_mode, stat->st_nlink, stat->st_uid, stat->st_gid, stat->st_rdev,
		stat->st_blksize, stat->st_ino, stat->st_size, stat->st_blocks };
	put_time(values + 10, stat->st_atim);
	put_time(values + 12, stat->st_mtim);
	put_time(values + 14, stat->st_ctim);
	put_time(values + 16, stat->st_birthtim);
	return numbers(ctx, values, 18);
}

// The result of a job: a number, an array of numbers, a name, or [names, types].
static JSValue result_of(struct job *job)
{
	JSContext *ctx = job->env->ctx;
	if (job->uv.result < 0)
		return JS_NewInt64(ctx, job->uv.result);
	switch (job->uv.fs_type) {
	case UV_FS_STAT:
	case UV_FS_LSTAT:
	case UV_FS_FSTAT:
		return stat_value(ctx, &job->uv.statbuf);
	case UV_FS_STATFS: {
		uv_statfs_t *stat = job->uv.ptr;
		double values[] = { stat->f_type, stat->f_bsize, stat->f_blocks, stat->f_bfree, stat->f_bavail,
			stat->f_files, stat->f_ffree };
		return numbers(ctx, values, 7);
	}
	case UV_FS_READLINK:
	case UV_FS_REALPATH:
		return name_value(job, job->uv.ptr);
	case UV_FS_MKDTEMP:
		return name_value(job, job->uv.path);
	case UV_FS_SCANDIR: {
		JSValue names = JS_NewArray(ctx), types = JS_NewArray(ctx), pair = JS_NewArray(ctx);
		uv_dirent_t entry;
		for (uint32_t i = 0; uv_fs_scandir_next(&job->uv, &entry) != UV_EOF; i++) {
			JS_SetPropertyUint32(ctx, names, i, name_value(job, entry.name));
			JS_SetPropertyUint32(ctx, types, i, JS_NewInt32(ctx, entry.type));
		}
		JS_SetPropertyUint32(ctx, pair, 0, names);
		JS_SetPropertyUint32(ctx, pair, 1, types);
		return pair;
	}
	default:
		return JS_NewInt64(ctx, job->uv.result);
	}
}

// The pieces of a list of bytes, without copies; NULL, with an exception, if one is none. To be
// freed.
static uv_buf_t *pieces_of(JSContext *ctx, JSValueConst list, int64_t *count, uint64_t *total)
{
	*count = *total = 0;
	JS_GetLength(ctx, list, count);
	uv_buf_t *buffers = got(calloc(*count + 1, sizeof *buffers));
	for (int64_t i = 0; i < *count; i++) {
		size_t length = 0;
		JSValue piece = JS_GetPropertyUint32(ctx, list, i);
		buffers[i].base = (char *)bytes_of(ctx, piece, &length);
		buffers[i].len = length;
		*total += length;
		JS_FreeValue(ctx, piece);
		if (!buffers[i].base) {
			free(buffers);
			return NULL;
		}
	}
	return buffers;
}

// Gives what was read to the program's own bytes, as far as these are still there.
static void give(struct job *job)
{
	JSContext *ctx = job->env->ctx;
	int64_t count;
	uint64_t total;
	size_t left = job->uv.result, at = 0;
	uv_buf_t *buffers = pieces_of(ctx, job->kept, &count, &total);
	if (!buffers)
		JS_FreeValue(ctx, JS_GetException(ctx));
	for (int64_t i = 0; buffers && left && i < count; i++) {
		size_t some = left < buffers[i].len ? left : buffers[i].len;
		memcpy(buffers[i].base, job->memory + at, some);
		at += some;
		left -= some;
	}
	free(buffers);
}

static void on_done(uv_fs_t *uv)
{
	struct job *job = uv->data;
	struct env *env = job->env;
	if (uv->fs_type == UV_FS_READ && uv->result > 0)
		give(job);
	JSValue result = result_of(job);
	uv_fs_req_cleanup(uv);
	free(job->memory);
	call_from_loop(env, job->done, 1, &result);
	JS_FreeValue(env->ctx, job->done);
	JS_FreeValue(env->ctx, job->kept);
	free(job);
}

enum {
	ACCESS,
	OPEN,
	CLOSE,
	READ,
	WRITE,
	STAT,
	LSTAT,
	FSTAT,
	STATFS,
	RENAME,
	FTRUNCATE,
	RMDIR,
	MKDIR,
	FSYNC,
	FDATASYNC,
	SCANDIR,
	READLINK,
	SYMLINK,
	LINK,
	UNLINK,
	CHMOD,
	FCHMOD,
	CHOWN,
	FCHOWN,
	LCHOWN,
	UTIME,
	FUTIME,
	LUTIME,
	MKDTEMP,
	COPYFILE,
	REALPATH,
};

// How many arguments a function has before the one that is called when it is done, and which of
// these are paths.
static const struct {
	const char *name;
	int arguments, paths;
} kinds[] = {
	[ACCESS] = { "access", 2, 1 },
	[OPEN] = { "open", 3, 1 },
	[CLOSE] = { "close", 1, 0 },
	[READ] = { "read", 3, 0 },
	[WRITE] = { "write", 3, 0 },
	[STAT] = { "stat", 1, 1 },
	[LSTAT] = { "lstat", 1, 1 },
	[FSTAT] = { "fstat", 1, 0 },
	[STATFS] = { "statfs", 1, 1 },
	[RENAME] = { "rename", 2, 2 },
	[FTRUNCATE] = { "ftruncate", 2, 0 },
	[RMDIR] = { "rmdir", 1, 1 },
	[MKDIR] = { "mkdir", 2, 1 },
	[FSYNC] = { "fsync", 1, 0 },
	[FDATASYNC] = { "fdatasync", 1, 0 },
	[SCANDIR] = { "scandir", 2, 1 },
	[READLINK] = { "readlink", 2, 1 },
	[SYMLINK] = { "symlink", 2, 2 },
	[LINK] = { "link", 2, 2 },
	[UNLINK] = { "unlink", 1, 1 },
	[CHMOD] = { "chmod", 2, 1 },
	[FCHMOD] = { "fchmod", 2, 0 },
	[CHOWN] = { "chown", 3, 1 },
	[FCHOWN] = { "fchown", 3, 0 },
	[LCHOWN] = { "lchown", 3, 1 },
	[UTIME] = { "utime", 3, 1 },
	[FUTIME] = { "futime", 3, 0 },
	[LUTIME] = { "lutime", 3, 1 },
	[MKDTEMP] = { "mkdtemp", 2, 1 },
	[COPYFILE] = { "copyfile", 3, 2 },
	[REALPATH] = { "realpath", 2, 1 },
};

// read(fd, [bytes...], position) and write: in one call.
static int transfer(JSContext *ctx, struct job *job, uv_fs_cb done, int op, JSValueConst *argv)
{
	int64_t count;
	uint64_t total;
	uv_loop_t *loop = &job->env->loop;
	int fd = int_of(ctx, argv[0]);
	int64_t position = JS_IsNumber(argv[2]) || JS_IsBigInt(argv[2]) ? -2 : -1;
	if (position == -2 && JS_ToInt64Ext(ctx, &position, argv[2]))
		position = -1;
	uv_buf_t *buffers = pieces_of(ctx, argv[1], &count, &total);
	if (!buffers) {
		JS_FreeValue(ctx, JS_GetException(ctx));
		return UV_EINVAL;
	}
	job->kept = JS_DupValue(ctx, argv[1]);
	if (done) {
		// Pieces may be the same memory: together they can be more than there is.
		uint8_t *to = job->memory = total < INT32_MAX ? malloc(total + 1) : NULL;
		if (!to) {
			free(buffers);
			return UV_ENOMEM;
		}
		for (int64_t i = 0; i < count; to += buffers[i++].len) {
			if (op == WRITE)
				memcpy(to, buffers[i].base, buffers[i].len);
			buffers[i].base = (char *)to;
		}
	}
	int status = op == READ ? uv_fs_read(loop, &job->uv, fd, buffers, count, position, done)
				: uv_fs_write(loop, &job->uv, fd, buffers, count, position, done);
	free(buffers);
	return status;
}

static int start(
    JSContext *ctx, struct job *job, uv_fs_cb done, int op, JSValueConst *argv, const char *a, const char *b)
{
	uv_loop_t *loop = &job->env->loop;
	uv_fs_t *uv = &job->uv;
	int fd = kinds[op].paths ? 0 : int_of(ctx, argv[0]);
	int second = kinds[op].arguments > 1 && kinds[op].paths < 2 ? int_of(ctx, argv[1]) : 0;
	int third = kinds[op].arguments > 2 ? int_of(ctx, argv[2]) : 0;
	switch (op) {
	case ACCESS:
		return uv_fs_access(loop, uv, a, second, done);
	case OPEN:
		return uv_fs_open(loop, uv, a, second | O_CLOEXEC, third, done);
	case CLOSE:
		return uv_fs_close(loop, uv, fd, done);
	case READ:
	case WRITE:
		return transfer(ctx, job, done, op, argv);
	case STAT:
		return uv_fs_stat(loop, uv, a, done);
	case LSTAT:
		return uv_fs_lstat(loop, uv, a, done);
	case FSTAT:
		return uv_fs_fstat(loop, uv, fd, done);
	case STATFS:
		return uv_fs_statfs(loop, uv, a, done);
	case RENAME:
		return uv_fs_rename(loop, uv, a, b, done);
	case FTRUNCATE:
		return uv_fs_ftruncate(loop, uv, fd, number_of(ctx, argv[1]), done);
	case RMDIR:
		return uv_fs_rmdir(loop, uv, a, done);
	case MKDIR:
		return uv_fs_mkdir(loop, uv, a, second, done);
	case FSYNC:
		return uv_fs_fsync(loop, uv, fd, done);
	case FDATASYNC:
		return uv_fs_fdatasync(loop, uv, fd, done);
	case SCANDIR:
		return uv_fs_scandir(loop, uv, a, 0, done);
	case READLINK:
		return uv_fs_readlink(loop, uv, a, done);
	case SYMLINK:
		return uv_fs_symlink(loop, uv, a, b, 0, done);
	case LINK:
		return uv_fs_link(loop, uv, a, b, done);
	case UNLINK:
		return uv_fs_unlink(loop, uv, a, done);
	case CHMOD:
		return uv_fs_chmod(loop, uv, a, second, done);
	case FCHMOD:
		return uv_fs_fchmod(loop, uv, fd, second, done);
	case CHOWN:
		return uv_fs_chown(loop, uv, a, second, third, done);
	case FCHOWN:
		return uv_fs_fchown(loop, uv, fd, second, third, done);
	case LCHOWN:
		return uv_fs_lchown(loop, uv, a, second, third, done);
	case UTIME:
		return uv_fs_utime(loop, uv, a, number_of(ctx, argv[1]), number_of(ctx, argv[2]), done);
	case FUTIME:
		return uv_fs_futime(loop, uv, fd, number_of(ctx, argv[1]), number_of(ctx, argv[2]), done);
	case LUTIME:
		return uv_fs_lutime(loop, uv, a, number_of(ctx, argv[1]), number_of(ctx, argv[2]), done);
	case MKDTEMP:
		return uv_fs_mkdtemp(loop, uv, a, done);
	case COPYFILE:
		return uv_fs_copyfile(loop, uv, a, b, third, done);
	case REALPATH:
		return uv_fs_realpath(loop, uv, a, done);
	default:
		return UV_EINVAL;
	}
}

static JSValue call(ARGS, int op)
{
	int arguments = kinds[op].arguments;
	bool later = argc > arguments && JS_IsFunction(ctx, argv[arguments]);
	char *paths[2] = { NULL, NULL };
	for (int i = 0; i < kinds[op].paths; i++)
		if (!(paths[i] = path_of(ctx, argv[i]))) {
			free(paths[0]);
			return JS_EXCEPTION;
		}
	struct job *job = got(calloc(1, sizeof *job));
	job->env = env_of(ctx);
	job->kept = JS_UNDEFINED;
	job->done = later ? JS_DupValue(ctx, argv[arguments]) : JS_UNDEFINED;
	job->uv.data = job;
	if (op == SCANDIR || op == READLINK || op == REALPATH || op == MKDTEMP)
		job->raw = JS_ToBool(ctx, argv[1]);
	int status = start(ctx, job, later ? on_done : NULL, op, argv, paths[0], paths[1]);
	free(paths[0]);
	free(paths[1]);
	if (later && !status)
		return JS_UNDEFINED;
	if (status < 0)
		job->uv.result = status;
	JSValue result = result_of(job);
	uv_fs_req_cleanup(&job->uv);
	free(job->memory);
	JS_FreeValue(ctx, job->kept);
	JS_FreeValue(ctx, job->done);
	free(job);
	return result;
}

// kind(path): 0 for a file, 1 for a directory, negative if there is none.
static JSValue kind(ARGS)
{
	struct stat found;
	char *path = path_of(ctx, argv[0]);
	if (!path)
		return JS_EXCEPTION;
	int result = stat(path, &found) ? -errno : S_ISDIR(found.st_mode);
	free(path);
	return JS_NewInt32(ctx, result);
}

// The longest file that is read into one piece of memory.
enum { MOST = INT32_MAX / 2 };

// read_file(path or descriptor, flags): its bytes, or an errno.
static JSValue read_file(ARGS)
{
	char *path = NULL, *data = NULL;
	size_t length = 0, room = 0;
	ssize_t count = 0;
	int fd;
	if (JS_IsNumber(argv[0])) {
		fd = int_of(ctx, argv[0]);
	} else {
		if (!(path = path_of(ctx, argv[0])))
			return JS_EXCEPTION;
		fd = open(path, int_of(ctx, argv[1]) | O_CLOEXEC, 0666);
		free(path);
		if (fd < 0)
			return JS_NewInt32(ctx, -errno);
	}
	struct stat found;
	off_t size = !fstat(fd, &found) && S_ISREG(found.st_mode) ? found.st_size : 0;
	room = size <= MOST ? size + 1 : 0;
	for (;;) {
		if (size > MOST || length > MOST) {
			count = -1;
			errno = EFBIG;
			break;
		}
		if (length >= room || !data) {
			room = room > length ? room : room * 2 + 8192;
			data = got(realloc(data, room));
		}
		count = read(fd, data + length, room - length);
		if (!count || (count < 0 && errno != EINTR))
			break;
		length += count > 0 ? count : 0;
	}
	int problem = count < 0 ? -errno : 0;
	if (path)
		close(fd);
	if (problem) {
		free(data);
		return JS_NewInt32(ctx, problem);
	}
	return own_bytes(ctx, data, length);
}

static JSValue error_text(ARGS)
{
	return JS_NewString(ctx, uv_strerror(int_of(ctx, argv[0])));
}

static JSValue error_name(ARGS)
{
	return JS_NewString(ctx, uv_err_name(int_of(ctx, argv[0])));
}

static JSValue new_error(JSContext *ctx, int number, const char *name, const char *text)
{
	JSValue list = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, list, 0, JS_NewInt32(ctx, number));
	JS_SetPropertyUint32(ctx, list, 1, JS_NewString(ctx, name));
	JS_SetPropertyUint32(ctx, list, 2, JS_NewString(ctx, text));
	return list;
}

// errors(): [[number, name, text]...], all that libuv knows.
static JSValue errors(ARGS)
{
	JSValue list = JS_NewArray(ctx);
	uint32_t n = 0;
#define ONE(name, text) JS_SetPropertyUint32(ctx, list, n++, new_error(ctx, UV_##name, #name, text));
	UV_ERRNO_MAP(ONE)
#undef ONE
	return list;
}

static const JSCFunctionListEntry list[] = {
	FUNCTION(kind, 1),
	FUNCTION(read_file, 2),
	FUNCTION(error_text, 1),
	FUNCTION(error_name, 1),
	FUNCTION(errors, 0),
};

JSValue fs_functions(JSContext *ctx)
{
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, list);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		set(ctx, object, kinds[i].name,
		    JS_NewCFunctionMagic(ctx, call, kinds[i].name, kinds[i].arguments + 1, JS_CFUNC_generic_magic, i));
	return object;
}
