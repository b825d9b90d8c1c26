/* The kernel's struct has 64-bit words, ours 32-bit ones: amounts of memory are given in larger
 * units where they do not fit. */
#include <sys/sysinfo.h>
#include <stdint.h>
#include "syscall.h"

struct kernel_sysinfo {
	int64_t uptime;
	uint64_t loads[3];
	uint64_t totalram, freeram, sharedram, bufferram, totalswap, freeswap;
	uint16_t procs, pad;
	uint64_t totalhigh, freehigh;
	uint32_t mem_unit;
};

int __lsysinfo(struct sysinfo *info)
{
	struct kernel_sysinfo k;
	int r = __syscall(SYS_sysinfo, &k);
	if (r) return __syscall_ret(r);

	uint64_t widest = k.totalram | k.totalswap | 1;
	int shift = widest >> 32 ? 32 - __builtin_clzll(widest) : 0;
	info->uptime = k.uptime;
	for (int i = 0; i < 3; i++) info->loads[i] = k.loads[i];
	info->totalram = k.totalram >> shift;
	info->freeram = k.freeram >> shift;
	info->sharedram = k.sharedram >> shift;
	info->bufferram = k.bufferram >> shift;
	info->totalswap = k.totalswap >> shift;
	info->freeswap = k.freeswap >> shift;
	info->procs = k.procs;
	info->totalhigh = k.totalhigh >> shift;
	info->freehigh = k.freehigh >> shift;
	info->mem_unit = (k.mem_unit ? k.mem_unit : 1) << shift;
	return 0;
}

weak_alias(__lsysinfo, sysinfo);
