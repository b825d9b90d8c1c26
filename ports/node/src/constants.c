// Numbers of the system, by name.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "node.h"

struct constant {
	const char *name;
	int value;
};

#define ONE(name) { #name, name }

static const struct constant errnos[] = {
	ONE(E2BIG),
	ONE(EACCES),
	ONE(EADDRINUSE),
	ONE(EADDRNOTAVAIL),
	ONE(EAFNOSUPPORT),
	ONE(EAGAIN),
	ONE(EALREADY),
	ONE(EBADF),
	ONE(EBADMSG),
	ONE(EBUSY),
	ONE(ECANCELED),
	ONE(ECHILD),
	ONE(ECONNABORTED),
	ONE(ECONNREFUSED),
	ONE(ECONNRESET),
	ONE(EDEADLK),
	ONE(EDESTADDRREQ),
	ONE(EDOM),
	ONE(EDQUOT),
	ONE(EEXIST),
	ONE(EFAULT),
	ONE(EFBIG),
	ONE(EHOSTUNREACH),
	ONE(EIDRM),
	ONE(EILSEQ),
	ONE(EINPROGRESS),
	ONE(EINTR),
	ONE(EINVAL),
	ONE(EIO),
	ONE(EISCONN),
	ONE(EISDIR),
	ONE(ELOOP),
	ONE(EMFILE),
	ONE(EMLINK),
	ONE(EMSGSIZE),
	ONE(EMULTIHOP),
	ONE(ENAMETOOLONG),
	ONE(ENETDOWN),
	ONE(ENETRESET),
	ONE(ENETUNREACH),
	ONE(ENFILE),
	ONE(ENOBUFS),
	ONE(ENODATA),
	ONE(ENODEV),
	ONE(ENOENT),
	ONE(ENOEXEC),
	ONE(ENOLCK),
	ONE(ENOLINK),
	ONE(ENOMEM),
	ONE(ENOMSG),
	ONE(ENOPROTOOPT),
	ONE(ENOSPC),
	ONE(ENOSR),
	ONE(ENOSTR),
	ONE(ENOSYS),
	ONE(ENOTCONN),
	ONE(ENOTDIR),
	ONE(ENOTEMPTY),
	ONE(ENOTSOCK),
	ONE(ENOTSUP),
	ONE(ENOTTY),
	ONE(ENXIO),
	ONE(EOPNOTSUPP),
	ONE(EOVERFLOW),
	ONE(EPERM),
	ONE(EPIPE),
	ONE(EPROTO),
	ONE(EPROTONOSUPPORT),
	ONE(EPROTOTYPE),
	ONE(ERANGE),
	ONE(EROFS),
	ONE(ESPIPE),
	ONE(ESRCH),
	ONE(ESTALE),
	ONE(ETIME),
	ONE(ETIMEDOUT),
	ONE(ETXTBSY),
	ONE(EWOULDBLOCK),
	ONE(EXDEV),
};

static const struct constant signals[] = {
	ONE(SIGHUP),
	ONE(SIGINT),
	ONE(SIGQUIT),
	ONE(SIGILL),
	ONE(SIGTRAP),
	ONE(SIGABRT),
	ONE(SIGIOT),
	ONE(SIGBUS),
	ONE(SIGFPE),
	ONE(SIGKILL),
	ONE(SIGUSR1),
	ONE(SIGSEGV),
	ONE(SIGUSR2),
	ONE(SIGPIPE),
	ONE(SIGALRM),
	ONE(SIGTERM),
	ONE(SIGCHLD),
	ONE(SIGSTKFLT),
	ONE(SIGCONT),
	ONE(SIGSTOP),
	ONE(SIGTSTP),
	ONE(SIGTTIN),
	ONE(SIGTTOU),
	ONE(SIGURG),
	ONE(SIGXCPU),
	ONE(SIGXFSZ),
	ONE(SIGVTALRM),
	ONE(SIGPROF),
	ONE(SIGWINCH),
	ONE(SIGIO),
	ONE(SIGPOLL),
	ONE(SIGPWR),
	ONE(SIGSYS),
};

static const struct constant files[] = {
	ONE(UV_FS_SYMLINK_DIR),
	ONE(UV_FS_SYMLINK_JUNCTION),
	ONE(O_RDONLY),
	ONE(O_WRONLY),
	ONE(O_RDWR),
	ONE(UV_DIRENT_UNKNOWN),
	ONE(UV_DIRENT_FILE),
	ONE(UV_DIRENT_DIR),
	ONE(UV_DIRENT_LINK),
	ONE(UV_DIRENT_FIFO),
	ONE(UV_DIRENT_SOCKET),
	ONE(UV_DIRENT_CHAR),
	ONE(UV_DIRENT_BLOCK),
	ONE(S_IFMT),
	ONE(S_IFREG),
	ONE(S_IFDIR),
	ONE(S_IFCHR),
	ONE(S_IFBLK),
	ONE(S_IFIFO),
	ONE(S_IFLNK),
	ONE(S_IFSOCK),
	ONE(O_CREAT),
	ONE(O_EXCL),
	ONE(UV_FS_O_FILEMAP),
	ONE(O_NOCTTY),
	ONE(O_TRUNC),
	ONE(O_APPEND),
	ONE(O_DIRECTORY),
	ONE(O_NOATIME),
	ONE(O_NOFOLLOW),
	ONE(O_SYNC),
	ONE(O_DSYNC),
	ONE(O_DIRECT),
	ONE(O_NONBLOCK),
	ONE(S_IRWXU),
	ONE(S_IRUSR),
	ONE(S_IWUSR),
	ONE(S_IXUSR),
	ONE(S_IRWXG),
	ONE(S_IRGRP),
	ONE(S_IWGRP),
	ONE(S_IXGRP),
	ONE(S_IRWXO),
	ONE(S_IROTH),
	ONE(S_IWOTH),
	ONE(S_IXOTH),
	ONE(F_OK),
	ONE(R_OK),
	ONE(W_OK),
	ONE(X_OK),
	ONE(UV_FS_COPYFILE_EXCL),
	ONE(UV_FS_COPYFILE_FICLONE),
	ONE(UV_FS_COPYFILE_FICLONE_FORCE),
};

static const struct constant compression[] = {
	ONE(Z_NO_FLUSH),
	ONE(Z_PARTIAL_FLUSH),
	ONE(Z_SYNC_FLUSH),
	ONE(Z_FULL_FLUSH),
	ONE(Z_FINISH),
	ONE(Z_BLOCK),
	ONE(Z_OK),
	ONE(Z_STREAM_END),
	ONE(Z_NEED_DICT),
	ONE(Z_ERRNO),
	ONE(Z_STREAM_ERROR),
	ONE(Z_DATA_ERROR),
	ONE(Z_MEM_ERROR),
	ONE(Z_BUF_ERROR),
	ONE(Z_VERSION_ERROR),
	ONE(Z_NO_COMPRESSION),
	ONE(Z_BEST_SPEED),
	ONE(Z_BEST_COMPRESSION),
	ONE(Z_DEFAULT_COMPRESSION),
	ONE(Z_FILTERED),
	ONE(Z_HUFFMAN_ONLY),
	ONE(Z_RLE),
	ONE(Z_FIXED),
	ONE(Z_DEFAULT_STRATEGY),
	ONE(ZLIB_VERNUM),
};

static const struct constant names[] = {
	ONE(AF_INET),
	ONE(AF_INET6),
	ONE(AF_UNSPEC),
	ONE(AI_ADDRCONFIG),
	ONE(AI_ALL),
	ONE(AI_V4MAPPED),
};

static const struct constant dynamic[] = {
	ONE(RTLD_LAZY),
	ONE(RTLD_NOW),
	ONE(RTLD_GLOBAL),
	ONE(RTLD_LOCAL),
};

static JSValue object_of(JSContext *ctx, const struct constant *list, size_t count)
{
	JSValue object = JS_NewObjectProto(ctx, JS_NULL);
	for (size_t i = 0; i < count; i++)
		set(ctx, object, list[i].name, JS_NewInt32(ctx, list[i].value));
	return object;
}

#define OBJECT(list) object_of(ctx, list, sizeof list / sizeof *list)

JSValue constant_lists(JSContext *ctx)
{
	JSValue object = JS_NewObject(ctx);
	set(ctx, object, "errno", OBJECT(errnos));
	set(ctx, object, "signals", OBJECT(signals));
	set(ctx, object, "fs", OBJECT(files));
	set(ctx, object, "zlib", OBJECT(compression));
	set(ctx, object, "names", OBJECT(names));
	set(ctx, object, "dlopen", OBJECT(dynamic));
	return object;
}
