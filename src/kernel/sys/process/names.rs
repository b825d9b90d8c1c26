//! The names of the machine. The host's names are what a runner begins with; its cages may give it
//! others, and with CLONE_NEWUTS some of them others than the rest.

use lind_abi::layout::Utsname;
use lind_abi::{Errno, In, Len, Out, Result};

use super::persona;
use crate::cage::{LONGEST_NAME, Names, capability};
use crate::call::Ctx;

/// uname(2)
pub(crate) fn uname(cx: &Ctx<'_>, buf: Out<Utsname>) -> Result<()> {
    let host = rustix::system::uname();
    let field = |bytes: &[u8]| {
        let mut field = [0; LONGEST_NAME + 1];
        let len = bytes.len().min(LONGEST_NAME);
        field[..len].copy_from_slice(&bytes[..len]);
        field
    };
    let names = Names::of(cx.cage);
    let name = Utsname {
        sysname: field(b"Linux"),
        nodename: field(&names.host()),
        release: field(&release(cx, host.release().to_bytes())),
        version: field(host.version().to_bytes()),
        machine: field(b"wasm32"),
        domainname: field(&names.domain()),
    };
    cx.store(buf, &name)
}

/// The release; with UNAME26, for programs that expect two numbers and a small third, 2.6.60 and
/// more, as on Linux.
fn release(cx: &Ctx<'_>, host: &[u8]) -> Vec<u8> {
    if cx.cage.settings().persona & persona::UNAME26 == 0 {
        return host.to_vec();
    }
    let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = host.iter().position(|byte| !digits(byte)).unwrap_or(host.len());
    let dots = host[..end].iter().enumerate().filter(|&(_, &byte)| byte == b'.').map(|(at, _)| at);
    let end = dots.clone().nth(2).unwrap_or(end);
    let minor = String::from_utf8_lossy(&host[..end]).split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    let mut release = format!("2.6.{}", minor.unwrap_or(0).saturating_add(60)).into_bytes();
    release.extend_from_slice(&host[end..]);
    release
}

/// sethostname(2)
pub(crate) fn sethostname(cx: &Ctx<'_>, name: In<u8>, len: Len) -> Result<()> {
    set(cx, name, len, Names::set_host)
}

/// setdomainname(2)
pub(crate) fn setdomainname(cx: &Ctx<'_>, name: In<u8>, len: Len) -> Result<()> {
    set(cx, name, len, Names::set_domain)
}

fn set(cx: &Ctx<'_>, name: In<u8>, len: Len, give: impl Fn(&Names, &[u8])) -> Result<()> {
    if !cx.cage.settings().credentials.can(capability::SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    // An int.
    let len = len.0 & u64::from(u32::MAX);
    let len = usize::try_from(len).ok().filter(|&len| len <= LONGEST_NAME).ok_or(Errno::EINVAL)?;
    let mut bytes = [0; LONGEST_NAME];
    cx.copy_in(name, &mut bytes[..len])?;
    // As a string it ends at its first NUL.
    let end = bytes[..len].iter().position(|&byte| byte == 0).unwrap_or(len);
    give(&Names::of(cx.cage), &bytes[..end]);
    Ok(())
}
