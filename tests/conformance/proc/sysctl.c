/* /proc/sys: limits and settings are there, are numbers where they are numbers, and are the ones
 * that calls go by. */
#include "check.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "slurp.h"

static long long number_in(const char *name)
{
	char path[128], *end;
	long long value;

	snprintf(path, sizeof path, "/proc/sys/%s", name);
	if (access(path, R_OK)) {
		printf("%s\n", path);
		CHECK_EQ(access(path, R_OK), 0);
		return -1;
	}
	slurp(path);
	value = strtoll(text, &end, 10);
	CHECK(end != text && (*end == '\n' || *end == '\t' || *end == ' '));
	return value;
}

static void check_numbers(void)
{
	static const char *const names[] = {
		"kernel/pid_max",
		"kernel/tainted",
		"kernel/msgmni",
		"kernel/msgmax",
		"kernel/msgmnb",
		"kernel/shmmni",
		"kernel/threads-max",
		"kernel/overflowuid",
		"kernel/panic",
		"kernel/sched_rr_timeslice_ms",
		"kernel/core_uses_pid",
		"kernel/randomize_va_space",
		"fs/file-max",
		"fs/file-nr",
		"fs/nr_open",
		"fs/pipe-max-size",
		"fs/aio-max-nr",
		"fs/lease-break-time",
		"fs/inotify/max_user_watches",
		"fs/inotify/max_user_instances",
		"fs/inotify/max_queued_events",
		"fs/epoll/max_user_watches",
		"vm/overcommit_memory",
		"vm/max_map_count",
		"vm/swappiness",
		"vm/mmap_min_addr",
		"vm/overcommit_kbytes",
		"vm/nr_overcommit_hugepages",
		"vm/page-cluster",
		"vm/vfs_cache_pressure",
		"fs/protected_hardlinks",
		"fs/protected_symlinks",
		"fs/protected_fifos",
		"fs/protected_regular",
		"kernel/sched_rt_period_us",
	};
	static const char *const of_net[] = {
		"net/core/somaxconn",
		"net/core/rmem_default",
		"net/core/rmem_max",
		"net/core/wmem_default",
		"net/core/wmem_max",
		"net/ipv4/ip_local_port_range",
		"net/ipv4/tcp_fin_timeout",
		"net/ipv4/tcp_rmem",
		"net/ipv4/tcp_wmem",
		"net/ipv4/tcp_syncookies",
		"net/ipv4/ip_forward",
		"net/ipv4/ip_unprivileged_port_start",
		"net/unix/max_dgram_qlen",
		"net/ipv4/igmp_max_memberships",
		"net/ipv4/tcp_mtu_probing",
		"net/ipv4/tcp_no_metrics_save",
		"net/ipv4/tcp_notsent_lowat",
		"net/ipv4/tcp_slow_start_after_idle",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		CHECK(number_in(names[i]) >= 0);
	for (size_t i = 0; i < sizeof of_net / sizeof *of_net; i++)
		CHECK(number_in(of_net[i]) >= 0);
	CHECK(number_in("kernel/pid_max") > getpid());
	CHECK(number_in("fs/file-nr") > 0);
	slurp("/proc/sys/kernel/shmmax");
	CHECK(strtoull(text, NULL, 10) >= 1 << 25);
	CHECK(slurp("/proc/sys/kernel/core_pattern")[0] != '\n');
}

static void check_agreement(void)
{
	struct utsname names;
	char line[128];
	int n = 0, s = socket(AF_INET, SOCK_DGRAM, 0), p[2];
	socklen_t size = sizeof n;

	NEED(s >= 0);
	CHECK_EQ(getsockopt(s, SOL_SOCKET, SO_RCVBUF, &n, &size), 0);
	CHECK_EQ(number_in("net/core/rmem_default"), n);
	n = 1 << 30;
	CHECK_EQ(setsockopt(s, SOL_SOCKET, SO_SNDBUF, &n, sizeof n), 0);
	CHECK_EQ(getsockopt(s, SOL_SOCKET, SO_SNDBUF, &n, &size), 0);
	CHECK_EQ(number_in("net/core/wmem_max"), n / 2);
	CHECK_EQ(getsockopt(s, IPPROTO_IP, IP_TTL, &n, &size), 0);
	CHECK_EQ(number_in("net/ipv4/ip_default_ttl"), n);
	close(s);
	NEED((s = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	CHECK_EQ(getsockopt(s, IPPROTO_TCP, TCP_KEEPIDLE, &n, &size), 0);
	CHECK_EQ(number_in("net/ipv4/tcp_keepalive_time"), n);
	CHECK_EQ(getsockopt(s, IPPROTO_TCP, TCP_KEEPCNT, &n, &size), 0);
	CHECK_EQ(number_in("net/ipv4/tcp_keepalive_probes"), n);
	close(s);
	NEED(pipe(p) == 0 && uname(&names) == 0);
	CHECK(fcntl(p[0], F_SETPIPE_SZ, (int)number_in("fs/pipe-max-size")) > 0);
	close(p[0]), close(p[1]);
	snprintf(line, sizeof line, "%s\n", names.release);
	CHECK_STR(slurp("/proc/sys/kernel/osrelease"), line);
	CHECK(access("/proc/sys/kernel/nothing", F_OK) == -1);
}

int main(void)
{
	if (access("/proc/sys/kernel", R_OK))
		check_skip("no /proc here");
	check_numbers();
	check_agreement();
	return check_done();
}
