//! Facts about the machine: sysinfo(2), getrandom(2), sched_getaffinity(2), getcpu(2).

use lind_abi::flags::RandomFlags;
use lind_abi::layout::Sysinfo;
use lind_abi::{Errno, In, Len, Out, Pid, Result};
use rustix::rand::GetRandomFlags;
use rustix::thread::CpuSet;

use super::{may_schedule, on_process_near};
use crate::cage::Thread;
use crate::call::Ctx;
use crate::host::errno;

/// sysinfo(2): memory is at most what the cage may map, processes are cages.
pub(crate) fn sysinfo(cx: &Ctx<'_>, info: Out<Sysinfo>) -> Result<()> {
    let host = rustix::system::sysinfo();
    let unit = u64::from(host.mem_unit.max(1));
    let limit = cx.cage.memory.map().limit();
    let bytes = |count: u64| count.saturating_mul(unit).min(limit);
    let info_for_cage = Sysinfo {
        uptime: host.uptime,
        loads: host.loads,
        totalram: bytes(host.totalram),
        freeram: bytes(host.freeram),
        procs: u16::try_from(cx.kernel.cages.len()).unwrap_or(u16::MAX),
        mem_unit: 1,
        ..Sysinfo::default()
    };
    cx.store(info, &info_for_cage)
}

/// getrandom(2)
pub(crate) fn getrandom(cx: &Ctx<'_>, buf: Out<u8>, len: Len, flags: RandomFlags) -> Result<usize> {
    let both = RandomFlags::GRND_RANDOM | RandomFlags::GRND_INSECURE;
    if flags.beyond(both | RandomFlags::GRND_NONBLOCK) || flags.has(both) {
        return Err(Errno::EINVAL);
    }
    let flags = GetRandomFlags::from_bits_retain(flags.0);
    let len = cx.output(buf, Len(len.0.min(i32::MAX.unsigned_abs().into())))?.len();
    let mut bytes = [0; 512];
    let mut done = 0;
    while done < len {
        let part = &mut bytes[..(len - done).min(512)];
        let filled = cx.blocking(|| rustix::rand::getrandom(&mut *part, flags).map_err(errno));
        let stored =
            filled.and_then(|n| cx.copy_out(Out::new(buf.addr + done as u64, buf.cage), &part[..n]).map(|()| n));
        match stored {
            Ok(n) => done += n,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
        // A request for gigabytes must not hold up the end of the cage.
        if cx.thread.attention() != 0 {
            break;
        }
    }
    Ok(done)
}

/// sched_yield(2)
pub(crate) fn sched_yield(_cx: &Ctx<'_>) -> Result<()> {
    rustix::thread::sched_yield();
    Ok(())
}

/// sched_setaffinity(2): those of the processors that the runner may use.
pub(crate) fn sched_setaffinity(cx: &Ctx<'_>, pid: Pid, size: Len, mask: In<u8>) -> Result<()> {
    let mut bytes = [0_u8; 128];
    let len = usize::try_from(size.0).map_or(bytes.len(), |len| len.min(bytes.len()));
    cx.copy_in(mask, &mut bytes[..len])?;
    let mut wanted = CpuSet::new();
    (0..bytes.len() * 8).filter(|cpu| bytes[cpu / 8] & (1 << (cpu % 8)) != 0).for_each(|cpu| wanted.set(cpu));
    let own = cx.cage.settings().credentials.clone();
    on_thread(cx, pid, |thread| {
        let may = thread.cage.id == cx.cage.id || may_schedule(&own, &thread.cage.settings().credentials);
        if may { thread.set_processors(cx.kernel, &wanted) } else { Err(Errno::EPERM) }
    })
}

/// Acts on a thread: the caller's own, one of its cage, or of another cage that it knows of.
pub(super) fn on_thread<T>(cx: &Ctx<'_>, pid: Pid, act: impl FnOnce(&Thread) -> Result<T>) -> Result<T> {
    let id = u32::try_from(pid.0).map_err(|_| Errno::ESRCH)?;
    if id == 0 {
        return act(cx.thread);
    }
    on_process_near(cx, pid, |cage| act(&*cage.thread(id).ok_or(Errno::ESRCH)?))
}

/// sched_getaffinity(2): the processors the runner may use, unless the thread has chosen.
pub(crate) fn sched_getaffinity(cx: &Ctx<'_>, pid: Pid, size: Len, mask: Out<u8>) -> Result<usize> {
    let cpus = on_thread(cx, pid, |thread| Ok(thread.processors(cx.kernel)))?;
    let mut bytes = [0_u8; 128];
    for cpu in (0..bytes.len() * 8).filter(|&cpu| cpus.is_set(cpu)) {
        bytes[cpu / 8] |= 1 << (cpu % 8);
    }
    // As many as the machine has, even if fewer are chosen. A guest's long has four bytes, and the
    // host's words of a mask eight.
    let most = cx.kernel.processors.list().last().map_or(1, |last| last + 1);
    if size.0.saturating_mul(8) < most as u64 || !size.0.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    let length = usize::try_from(size.0).map_or(bytes.len(), |size| size.min(most.div_ceil(64) * 8));
    cx.copy_out(mask, &bytes[..length])?;
    Ok(length)
}

/// getcpu(2). There is one node.
pub(crate) fn getcpu(cx: &Ctx<'_>, cpu: Out<u32>, node: Out<u32>) -> Result<()> {
    let now = u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0);
    cx.store_if(cpu, &now)?;
    cx.store_if(node, &0)
}
