//! The requests of netdevice(7) about interfaces. Nothing is changed by a guest.
//!
//! A guest's struct ifreq has a union of 16 bytes where the host's has 24; only SIOCGIFMAP uses the
//! difference.

use lind_abi::{Errno, In, InOut, Out, Result};

use crate::call::Ctx;
use crate::fd::File;
use crate::host::net::{self, IFREQ};
use crate::host::requests::OF_INTERFACES;

/// The size of a guest's struct ifreq.
const GUEST: usize = 32;

const SIOCGIFCONF: u32 = 0x8912;

/// ioctl(2) for interfaces.
///
/// # Errors
/// ENOTTY for other requests.
pub(crate) fn interface(cx: &Ctx<'_>, file: &File, request: u32, arg: InOut<u8>) -> Result<i32> {
    if request == SIOCGIFCONF {
        return all(cx, file, arg);
    }
    if !OF_INTERFACES.contains(&request) {
        return Err(Errno::ENOTTY);
    }
    let mut ifreq = [0; IFREQ];
    cx.copy_in(cx.reading(arg), &mut ifreq[..GUEST])?;
    net::interface(file.host(), request, &mut ifreq)?;
    cx.copy_out(cx.writing(arg), &ifreq[..GUEST]).map(|()| 0)
}

/// SIOCGIFCONF. Its argument is a struct ifconf: a length and an address; without the address, the
/// needed length is returned.
fn all(cx: &Ctx<'_>, file: &File, arg: InOut<u8>) -> Result<i32> {
    let [room, buffer]: [u32; 2] = cx.load(In::new(arg.addr, arg.cage))?;
    let mut list = net::interfaces(file.host())?;
    if buffer != 0 {
        let room = usize::try_from(room.cast_signed()).map_err(|_| Errno::EINVAL)?;
        list.truncate(room / GUEST);
        let bytes: Vec<u8> = list.iter().flat_map(|ifreq| &ifreq[..GUEST]).copied().collect();
        cx.copy_out(Out::new(buffer.into(), arg.cage), &bytes)?;
    }
    let len = i32::try_from(list.len() * GUEST).map_err(|_| Errno::EINVAL)?;
    cx.store(Out::new(arg.addr, arg.cage), &len).map(|()| 0)
}
