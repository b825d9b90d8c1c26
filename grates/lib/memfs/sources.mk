# A file system in memory behind the system calls of clients: MEMFS are its sources. The grate that
# has them defines first_ended().

MEMFS_DIR := $(dir $(lastword $(MAKEFILE_LIST)))
# The file system itself, plain C.
MEMFS_CORE = attr data dir fds fifo file locks magic names node passes path watch xattr
# The calls.
MEMFS_CALLS = clients look on_attr on_clone on_data on_exec on_fd on_fifo on_limit on_lock on_map on_message on_names \
	on_open on_poll on_proc on_socket on_splice on_transfer on_watch on_xattr sync travel
MEMFS = $(patsubst %,$(MEMFS_DIR)%.c,$(MEMFS_CORE) $(MEMFS_CALLS))
MEMFS_HDRS = $(wildcard $(MEMFS_DIR)*.h)
