//! membarrier(2).

use lind_abi::{Errno, Result};

use crate::call::Ctx;
use crate::host;

const QUERY: i32 = 0;
const GLOBAL: i32 = 1;
const GLOBAL_EXPEDITED: i32 = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: i32 = 1 << 2;
const PRIVATE_EXPEDITED: i32 = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

/// membarrier(2): every barrier is one for all threads of the runner. Those that synchronise
/// instruction fetches or restartable sequences are EINVAL; a private one that was not registered
/// for is EPERM, as on Linux.
pub(crate) fn membarrier(cx: &Ctx<'_>, cmd: i32, flags: u32, _cpu: i32) -> Result<i32> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    match cmd {
        QUERY => {
            Ok(GLOBAL | GLOBAL_EXPEDITED | REGISTER_GLOBAL_EXPEDITED | PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED)
        }
        PRIVATE_EXPEDITED if cx.cage.settings().barriers & REGISTER_PRIVATE_EXPEDITED == 0 => Err(Errno::EPERM),
        GLOBAL | GLOBAL_EXPEDITED | PRIVATE_EXPEDITED => there(),
        REGISTER_GLOBAL_EXPEDITED | REGISTER_PRIVATE_EXPEDITED => {
            let zero = there()?;
            cx.cage.settings().barriers |= cmd;
            Ok(zero)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn there() -> Result<i32> {
    if host::barrier() { Ok(0) } else { Err(Errno::ENOSYS) }
}
