//! The block of words a program starts with: argc, argv, envp, auxv, at the top of its stack, as
//! execve(2) leaves them.

use std::ffi::CString;

use lind_abi::{Errno, Result};
use lind_kernel::cage::Cage;
use lind_kernel::mem::{PAGE, space};
use lind_kernel::runtime::Start;

/// Linux: arguments and environment may take three quarters of 8 MiB, or less by the stack's limit,
/// which the starter of a program has checked. Some more for the words that are added here.
const MOST: usize = (6 << 20) + 8192;

/// Linux: one string may be 32 pages long.
const MOST_STRING: usize = 32 * 4096;

/// Writes the block to the top of the main stack; returns its address, which is also the stack
/// pointer to start with.
///
/// # Errors
/// E2BIG, EFAULT if the stack is not mapped.
pub fn write_block(cage: &Cage, start: &Start) -> Result<u32> {
    let mut strings = Strings { bytes: Vec::new() };
    let random = strings.push(&start.random.unwrap_or_else(random_bytes));
    let path = strings.push_string(&start.path)?;
    let arguments = strings.end();
    let argv = start.argv.iter().map(|arg| strings.push_string(arg)).collect::<Result<Vec<_>>>()?;
    let environment = strings.end();
    let envp = start.envp.iter().map(|var| strings.push_string(var)).collect::<Result<Vec<_>>>()?;

    let words = argv.len() + envp.len() + 2 * AUXV_MOST + 4;
    if strings.bytes.len() + 4 * words > MOST {
        return Err(Errno::E2BIG);
    }
    // The strings end at the end of the stack, the words begin 16-byte aligned below them.
    let top = u32::try_from(space::END).map_err(|_| Errno::ENOMEM)?;
    let first_string = top - u32::try_from(strings.bytes.len()).map_err(|_| Errno::E2BIG)?;
    let mut block: Vec<u32> = vec![u32::try_from(argv.len()).map_err(|_| Errno::E2BIG)?];
    block.extend(argv.iter().map(|at| first_string + at));
    block.push(0);
    block.extend(envp.iter().map(|at| first_string + at));
    block.push(0);
    let before = u32::try_from(4 * block.len()).map_err(|_| Errno::E2BIG)?;
    for (kind, value) in auxv(cage, first_string + random, first_string + path) {
        block.extend([kind, value]);
    }
    let len = u32::try_from(4 * block.len()).map_err(|_| Errno::E2BIG)?;
    let address = (first_string - len) & !15;
    let bytes: Vec<u8> = block.iter().flat_map(|word| word.to_le_bytes()).collect();
    cage.memory.guest.write(u64::from(first_string), &strings.bytes)?;
    cage.memory.guest.write(u64::from(address), &bytes)?;
    let place = |offset: u32| u64::from(first_string) + u64::from(offset);
    let mut map = cage.memory.map();
    map.arguments = place(arguments)..place(environment);
    map.environment = place(environment)..u64::from(top);
    map.auxiliary = u64::from(address + before)..u64::from(address + len);
    drop(map);
    Ok(address)
}

struct Strings {
    bytes: Vec<u8>,
}

impl Strings {
    /// The offset of the next bytes.
    fn end(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
    }

    /// Appends bytes; returns their offset.
    fn push(&mut self, bytes: &[u8]) -> u32 {
        let at = self.end();
        self.bytes.extend(bytes);
        at
    }

    fn push_string(&mut self, string: &CString) -> Result<u32> {
        let bytes = string.as_bytes_with_nul();
        if bytes.len() > MOST_STRING || self.bytes.len() + bytes.len() > MOST {
            return Err(Errno::E2BIG);
        }
        Ok(self.push(bytes))
    }
}

const AUXV_MOST: usize = 12;

fn auxv(cage: &Cage, random: u32, path: u32) -> [(u32, u32); 11] {
    let credentials = cage.settings().credentials.clone();
    const AT_NULL: u32 = 0;
    const AT_PAGESZ: u32 = 6;
    const AT_UID: u32 = 11;
    const AT_EUID: u32 = 12;
    const AT_GID: u32 = 13;
    const AT_EGID: u32 = 14;
    const AT_HWCAP: u32 = 16;
    const AT_CLKTCK: u32 = 17;
    const AT_SECURE: u32 = 23;
    const AT_RANDOM: u32 = 25;
    const AT_EXECFN: u32 = 31;
    const CLOCK_TICKS: u32 = 100;
    [
        (AT_PAGESZ, u32::try_from(PAGE).unwrap_or(4096)),
        (AT_UID, credentials.uid[0]),
        (AT_EUID, credentials.uid[1]),
        (AT_GID, credentials.gid[0]),
        (AT_EGID, credentials.gid[1]),
        (AT_HWCAP, 0),
        (AT_CLKTCK, CLOCK_TICKS),
        (AT_SECURE, credentials.is_raised().into()),
        (AT_RANDOM, random),
        (AT_EXECFN, path),
        (AT_NULL, 0),
    ]
}

/// The bytes that AT_RANDOM points to: the seed of the guest's stack protector.
fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    // Without the pool (early boot) the call would block; a fixed seed weakens the guest only
    // against itself.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    bytes
}
