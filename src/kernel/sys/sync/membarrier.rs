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

/// membarrier(2): every barrier is one for all threads of the runner, so nobody need register. Those that synchronise
/// instruction fetches or restartable sequences are EINVAL.
pub(crate) fn membarrier(_cx: &Ctx<'_>, cmd: i32, flags: u32, _cpu: i32) -> Result<i32> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    match cmd {
        QUERY => {
            Ok(GLOBAL | GLOBAL_EXPEDITED | REGISTER_GLOBAL_EXPEDITED | PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED)
        }
        GLOBAL | GLOBAL_EXPEDITED | PRIVATE_EXPEDITED => {
            if host::barrier() {
                Ok(0)
            } else {
                Err(Errno::ENOSYS)
            }
        }
        REGISTER_GLOBAL_EXPEDITED | REGISTER_PRIVATE_EXPEDITED => {
            if host::barrier() {
                Ok(0)
            } else {
                Err(Errno::ENOSYS)
            }
        }
        _ => Err(Errno::EINVAL),
    }
}
