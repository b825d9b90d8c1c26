/* The strace grate: what its files share. */
#ifndef STRACE_H
#define STRACE_H

#include <lind/raw.h>
#include <lind/syscall_table.h>
#include <stdbool.h>

/* A text that grows. Without memory it stops growing. */
struct text {
	char *data;
	size_t length, room;
	char small[200];
};
void text_init(struct text *t);
void text_free(struct text *t);
void text_clear(struct text *t);
__attribute__((format(printf, 2, 3))) void text_add(struct text *t, const char *format, ...);
void text_bytes(struct text *t, const char *bytes, size_t length);
/* In quotes, escaped as in C. At most `limit` bytes, then `...` if there are more. */
void text_quoted(struct text *t, const char *bytes, size_t length, size_t limit, bool more);

/* names.c */
void print_flags(struct text *t, uint64_t value, const struct lind_names *names, const char *zero);
void print_value(struct text *t, uint64_t value, const struct lind_names *names);
void print_signal(struct text *t, int signal);
void print_open_flags(struct text *t, uint32_t flags);
void print_mode(struct text *t, uint32_t mode);  /* with the type of file */
void print_errno(struct text *t, int number);  /* ENOENT (No such file or directory) */
extern const struct lind_names *const poll_events,
    *const epoll_events, *const address_families, *const socket_levels, *const socket_options, *const message_flags,
												   *const statx_mask;
const struct lind_names *argument_names(uint32_t nr, int argument); /* NULL for most */

/* buffers.c. `address` is where it is in the client; `bytes` says how many there are, where that
 * is known. */
#define ARRAY_LIMIT 32 /* elements shown of an array */
bool fetch(struct text *t, struct lind_arg address, void *to, size_t size); /* reads a struct or prints its address */
#define ADDRESSES (-2)  /* of bytes: what is there was not read by the call, so only where it would go */
void print_iovecs(struct text *t, struct lind_arg address, uint64_t count, int64_t bytes);
void print_buffer(struct text *t, struct lind_arg address, uint64_t length);
void print_string(struct text *t, struct lind_arg address, size_t limit);
void print_strings(struct text *t, struct lind_arg address);
void print_string_count(struct text *t, struct lind_arg address);

/* structs.c: the same of structs. */
void print_struct(struct text *t, struct lind_arg address, enum lind_layout layout, uint64_t bytes);
void print_set(struct text *t, struct lind_arg address);
void print_epoll_events(struct text *t, struct lind_arg address, uint64_t count);
void print_poll_result(struct text *t, struct lind_arg address, uint64_t count);
void print_wait_status(struct text *t, int status);

/* net.c */
void print_sockaddr(struct text *t, struct lind_arg address, uint64_t length);
void print_msghdr(struct text *t, struct lind_arg address, int64_t bytes);
void print_messages(struct text *t, struct lind_arg address, int64_t count, bool received);
void print_socket_option(struct text *t, uint32_t level, uint32_t option);
void print_option_value(struct text *t, struct lind_arg address, uint64_t length);
void print_protocol(struct text *t, uint32_t domain, uint32_t protocol);

/* args.c. The first prints what the call reads, the second what it wrote. */
struct traced {
	const struct lind_syscall *row;
	const struct lind_call *call;
	int64_t result;
	struct text args[6];
	struct text after;  /* behind the result, in parentheses */
	int count;
	int skip;   /* an argument that is part of the one before it, or -1 */
};
void args_before(struct traced *t);

/* special.c */
void print_pointer(struct text *t, uint64_t value);
void print_fcntl(struct traced *t, struct text *to, uint64_t value);
void print_seals(struct text *to, uint32_t value);
/* Also says how many arguments there are. */
void print_prctl(struct traced *t, int i, struct text *to);
/* After the call: what it has read, which is nothing if it failed; what select found. */
void print_scattered(struct traced *t);
void args_after(struct traced *t);
void print_result(struct text *line, const struct traced *t);
/* The name and the arguments, as they were printed by args_before and args_after. */
void print_call(struct text *line, const struct traced *t);
/* Gives the texts of the arguments back. */
void release_call(struct traced *t);

/* select.c: -e trace=... */
const char *select_calls(const char *expression);
bool selected(const struct lind_syscall *row);
bool everything_selected(void);

/* count.c: -c */
void count_call(uint32_t nr, int64_t nanoseconds, bool failed);
void count_report(void (*print)(const char *line, size_t length));

/* The values of the options. */
struct options {
	size_t string_limit;
	bool verbose, counts, counts_only, durations, quiet, relative, only_good, only_bad;
	int times;   /* how many -t */
};
extern struct options options;

static inline bool failed_call(int64_t result)
{
	return result < 0 && result >= -4095;
}

#endif
