//! The names of the machine. The host's names are what a runner begins with; its cages may give it
//! others, and with CLONE_NEWUTS some of them others than the rest.

use std::sync::{Arc, Mutex};

use lind_abi::layout::Utsname;
use lind_abi::{Errno, In, Len, Out, Result};

use super::persona;
use crate::cage::{Cage, capability};
use crate::call::Ctx;
use crate::lock::Locked;

/// __NEW_UTS_LEN
const LONGEST: usize = 64;

/// The names that cages have given: a namespace.
#[derive(Default)]
pub(crate) struct Names {
    host: Mutex<Option<Box<[u8]>>>,
    domain: Mutex<Option<Box<[u8]>>>,
}

impl Names {
    /// The names that a cage has.
    pub fn of(cage: &Cage) -> Arc<Names> {
        Arc::clone(&cage.settings().names)
    }

    /// The same, to be changed apart.
    pub fn apart(&self) -> Arc<Names> {
        Arc::new(Names { host: Mutex::new(get(&self.host)), domain: Mutex::new(get(&self.domain)) })
    }

    /// The host name.
    pub fn host(&self) -> Box<[u8]> {
        get(&self.host).unwrap_or_else(|| rustix::system::uname().nodename().to_bytes().into())
    }

    /// The NIS domain name.
    pub fn domain(&self) -> Box<[u8]> {
        get(&self.domain).unwrap_or_else(|| rustix::system::uname().domainname().to_bytes().into())
    }

    /// Sets it, by writing to /proc/sys/kernel/hostname: as much as fits.
    pub fn set_host(&self, name: &[u8]) {
        put(&self.host, &name[..name.len().min(LONGEST)]);
    }

    /// Sets it, by writing to /proc/sys/kernel/domainname.
    pub fn set_domain(&self, name: &[u8]) {
        put(&self.domain, &name[..name.len().min(LONGEST)]);
    }
}

fn put(name: &Mutex<Option<Box<[u8]>>>, bytes: &[u8]) {
    *name.locked() = Some(bytes.into());
}

fn get(name: &Mutex<Option<Box<[u8]>>>) -> Option<Box<[u8]>> {
    name.locked().clone()
}

/// uname(2)
pub(crate) fn uname(cx: &Ctx<'_>, buf: Out<Utsname>) -> Result<()> {
    let host = rustix::system::uname();
    let field = |bytes: &[u8]| {
        let mut field = [0; LONGEST + 1];
        let len = bytes.len().min(LONGEST);
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
    set(cx, name, len, |names| &names.host)
}

/// setdomainname(2)
pub(crate) fn setdomainname(cx: &Ctx<'_>, name: In<u8>, len: Len) -> Result<()> {
    set(cx, name, len, |names| &names.domain)
}

fn set(cx: &Ctx<'_>, name: In<u8>, len: Len, of: impl Fn(&Names) -> &Mutex<Option<Box<[u8]>>>) -> Result<()> {
    if !cx.cage.settings().credentials.can(capability::SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    // An int.
    let len = len.0 & u64::from(u32::MAX);
    let len = usize::try_from(len).ok().filter(|&len| len <= LONGEST).ok_or(Errno::EINVAL)?;
    let mut bytes = [0; LONGEST];
    cx.copy_in(name, &mut bytes[..len])?;
    // As a string it ends at its first NUL.
    let end = bytes[..len].iter().position(|&byte| byte == 0).unwrap_or(len);
    put(of(&Names::of(cx.cage)), &bytes[..end]);
    Ok(())
}
