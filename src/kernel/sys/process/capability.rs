//! capget(2), capset(2), and the options of prctl(2) about capabilities.

use lind_abi::flags::PrctlOp;
use lind_abi::{Errno, In, InOut, Out, Pid, Result};

use super::on_process;
use crate::cage::{Capabilities, Credentials, capability, secure};
use crate::call::Ctx;

/// The versions of capget(2), and how many words each has for a set.
const VERSIONS: [(u32, usize); 3] = [(0x1998_0330, 1), (0x2007_1026, 2), (0x2008_0522, 2)];

/// The version a header names, and its process.
fn header(cx: &Ctx<'_>, at: InOut<[i32; 2]>) -> Result<(usize, i32)> {
    let [version, pid] = cx.load(cx.reading(at))?;
    let version = version.cast_unsigned();
    match VERSIONS.iter().find(|&&(known, _)| known == version) {
        Some(&(_, words)) => Ok((words, pid)),
        None => {
            cx.store(Out::new(at.addr, at.cage), &VERSIONS[2].0)?;
            Err(Errno::EINVAL)
        }
    }
}

/// capget(2)
pub(crate) fn capget(cx: &Ctx<'_>, at: InOut<[i32; 2]>, data: Out<u32>) -> Result<()> {
    let (words, pid) = match header(cx, at) {
        // A request for the version, as in capabilities(7).
        Err(Errno::EINVAL) if data.addr == 0 => return Ok(()),
        header => header?,
    };
    if pid < 0 {
        return Err(Errno::EINVAL);
    }
    let sets = on_process(cx, Pid(pid), |cage| Ok(cage.settings().credentials.capabilities))?;
    if data.addr == 0 {
        return Ok(());
    }
    let half = |set: u64, word: usize| u32::try_from(set >> (32 * word) & u64::from(u32::MAX)).unwrap_or(0);
    let of_word = |word| [sets.effective, sets.permitted, sets.inheritable].map(|set| half(set, word));
    let bytes: Vec<u8> = (0..words).flat_map(of_word).flat_map(u32::to_le_bytes).collect();
    cx.copy_out(Out::new(data.addr, data.cage), &bytes)
}

/// capset(2), of the calling process.
pub(crate) fn capset(cx: &Ctx<'_>, at: InOut<[i32; 2]>, data: In<u32>) -> Result<()> {
    let (words, pid) = header(cx, at)?;
    if pid != 0 && pid.cast_unsigned() != cx.cage.id.0 && pid.cast_unsigned() != cx.thread.tid {
        return Err(Errno::EPERM);
    }
    let values: Vec<u32> = cx.load_array(data, 3 * words)?;
    let set = |which: usize| {
        let known = (1_u64 << (capability::LAST + 1)) - 1;
        (0..words).map(|word| u64::from(values[3 * word + which]) << (32 * word)).sum::<u64>() & known
    };
    let [effective, permitted, inheritable] = [set(0), set(1), set(2)];
    cx.cage.change_credentials(|own| {
        let old = own.capabilities;
        let most = if own.can(capability::SETPCAP) { u64::MAX } else { old.inheritable | old.permitted };
        let beyond = |new: u64, most: u64| new & !most != 0;
        if beyond(inheritable, most & (old.inheritable | old.bounding))
            || beyond(permitted, old.permitted)
            || beyond(effective, permitted)
        {
            return Err(Errno::EPERM);
        }
        let ambient = old.ambient & permitted & inheritable;
        own.capabilities = Capabilities { inheritable, permitted, effective, ambient, ..old };
        Ok(())
    })
}

/// prctl(2), as far as it is about capabilities.
///
/// # Errors
/// EINVAL, EPERM.
pub(super) fn about_capabilities(cx: &Ctx<'_>, op: PrctlOp, [a, b, c, d]: [u64; 4]) -> Result<i32> {
    let named = |number: u64| if number <= capability::LAST { Ok(1 << number) } else { Err(Errno::EINVAL) };
    let own = |of: &dyn Fn(&Credentials) -> bool| Ok(i32::from(of(&cx.cage.settings().credentials)));
    match op.0 {
        PrctlOp::PR_CAPBSET_READ => {
            let one = named(a)?;
            own(&|own| own.capabilities.bounding & one != 0)
        }
        PrctlOp::PR_CAPBSET_DROP => cx.cage.change_credentials(|own| {
            if !own.can(capability::SETPCAP) {
                return Err(Errno::EPERM);
            }
            own.capabilities.bounding &= !named(a)?;
            Ok(0)
        }),
        PrctlOp::PR_GET_KEEPCAPS => own(&|own| own.secure_bits & secure::KEEP_CAPS != 0),
        PrctlOp::PR_SET_KEEPCAPS => cx.cage.change_credentials(|own| {
            if a > 1 {
                return Err(Errno::EINVAL);
            }
            if own.secure_bits & secure::KEEP_CAPS << 1 != 0 {
                return Err(Errno::EPERM);
            }
            own.secure_bits &= !secure::KEEP_CAPS;
            own.secure_bits |= if a == 1 { secure::KEEP_CAPS } else { 0 };
            Ok(0)
        }),
        PrctlOp::PR_GET_SECUREBITS => Ok(i32::try_from(cx.cage.settings().credentials.secure_bits).unwrap_or(i32::MAX)),
        PrctlOp::PR_SET_SECUREBITS => cx.cage.change_credentials(|own| {
            let new = u32::try_from(a).map_err(|_| Errno::EPERM)?;
            let old = own.secure_bits;
            let locked = (old & secure::LOCKS) >> 1;
            let unlocks = old & secure::LOCKS & !new != 0;
            if (new ^ old) & locked != 0 || unlocks || new & !secure::ALL != 0 || !own.can(capability::SETPCAP) {
                return Err(Errno::EPERM);
            }
            own.secure_bits = new;
            Ok(0)
        }),
        _ => ambient(cx, a, b, [c, d]),
    }
}

/// PR_CAP_AMBIENT.
fn ambient(cx: &Ctx<'_>, what: u64, number: u64, rest: [u64; 2]) -> Result<i32> {
    const IS_SET: u64 = 1;
    const RAISE: u64 = 2;
    const LOWER: u64 = 3;
    const CLEAR_ALL: u64 = 4;
    if rest != [0, 0] || (what == CLEAR_ALL && number != 0) {
        return Err(Errno::EINVAL);
    }
    if !(IS_SET..=CLEAR_ALL).contains(&what) || number > capability::LAST {
        return Err(Errno::EINVAL);
    }
    let one = 1 << number;
    cx.cage.change_credentials(|own| {
        let sets = &mut own.capabilities;
        match what {
            IS_SET => return Ok(i32::from(sets.ambient & one != 0)),
            RAISE => {
                let may = sets.permitted & sets.inheritable & one != 0;
                if !may || own.secure_bits & secure::NO_CAP_AMBIENT_RAISE != 0 {
                    return Err(Errno::EPERM);
                }
                sets.ambient |= one;
            }
            LOWER => sets.ambient &= !one,
            _ => sets.ambient = 0,
        }
        Ok(0)
    })
}
