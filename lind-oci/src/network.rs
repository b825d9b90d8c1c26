//! The network namespace of a container: one that the engine has made, or a new one. The host name
//! of a pod.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::config::Namespace;

/// The network of a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Network {
    /// The one of this process.
    Own,
    /// A new one, with the loopback interface alone.
    New,
    /// The one at this path.
    At(PathBuf),
}

impl Network {
    /// The network that the namespaces of config.json say.
    pub fn of(namespaces: &[Namespace]) -> Network {
        match namespaces.iter().find(|namespace| namespace.kind == "network") {
            None => Network::Own,
            Some(namespace) => namespace.of_others().map_or(Network::New, |path| Network::At(path.to_owned())),
        }
    }

    /// Moves the calling thread, and the processes that it starts, into the network, and sets
    /// `settings` there.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; a path that is not a namespace.
    pub fn enter(&self, settings: &[(String, String)]) -> Result<()> {
        match self {
            Network::Own => return Ok(()),
            Network::New => {
                #[allow(
                    deprecated,
                    reason = "unsafe is meant for CLONE_FILES; a network namespace shares no descriptors"
                )]
                rustix::thread::unshare(UnshareFlags::NEWNET).context("cannot make a network namespace")?;
                raise_loopback().context("cannot raise the loopback interface")?;
            }
            Network::At(path) => join(path, LinkNameSpaceType::Network)?,
        }
        for (name, value) in settings {
            let path = Path::new("/proc/sys").join(name.replace('.', "/"));
            std::fs::write(&path, value).with_context(|| format!("linux.sysctl: {name}"))?;
        }
        Ok(())
    }
}

/// Moves the calling thread into the namespace at a path.
///
/// # Errors
/// As for [`Network::enter`].
pub fn join(path: &Path, kind: LinkNameSpaceType) -> Result<()> {
    let shown = || format!("cannot enter the namespace {}", path.display());
    let file = File::open(path).with_context(shown)?;
    move_into_link_name_space(file.as_fd(), Some(kind)).with_context(shown)
}

/// Gives the calling thread, and the processes that it starts, a host name of their own.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn set_host_name(name: &str) -> Result<()> {
    #[allow(deprecated, reason = "unsafe is meant for CLONE_FILES; a host name shares no descriptors")]
    rustix::thread::unshare(UnshareFlags::NEWUTS).context("cannot make a namespace for the host name")?;
    rustix::system::sethostname(name.as_bytes()).context("cannot set the host name of the pod")
}

/// The host name in the namespace of others, if a container shall be in one.
///
/// # Errors
/// A path that is not a namespace.
pub fn host_name(namespaces: &[Namespace]) -> Result<Option<String>> {
    let Some(path) = namespaces.iter().find(|namespace| namespace.kind == "uts").and_then(Namespace::of_others) else {
        return Ok(None);
    };
    let look = || -> Result<String> {
        join(path, LinkNameSpaceType::HostNameAndNISDomainName)?;
        Ok(rustix::system::uname().nodename().to_string_lossy().into_owned())
    };
    let found = std::thread::scope(|scope| scope.spawn(look).join());
    found.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread has failed"))).map(Some)
}

const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST_AND_ACK: u16 = 1 | 4;
const LOOPBACK: i32 = 1;
const IFF_UP: u32 = 1;

/// Raises the loopback interface, as rtnetlink(7) says.
fn raise_loopback() -> Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut request = Vec::new();
    // nlmsghdr, and ifinfomsg.
    request.extend(32_u32.to_ne_bytes());
    request.extend(RTM_NEWLINK.to_ne_bytes());
    request.extend(NLM_F_REQUEST_AND_ACK.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([0; 4]);
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes());
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 512];
    let (count, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let errno =
        answer.get(16..20).filter(|_| count >= 20).and_then(|word| word.try_into().ok()).map_or(0, i32::from_ne_bytes);
    anyhow::ensure!(errno == 0, "{}", std::io::Error::from_raw_os_error(-errno));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_says_which_network() {
        let of = |text: &str| Network::of(&serde_json::from_str::<Vec<Namespace>>(text).unwrap());
        assert_eq!(of(r#"[{"type": "pid"}]"#), Network::Own);
        assert_eq!(of(r#"[{"type": "network"}]"#), Network::New);
        assert_eq!(of(r#"[{"type": "network", "path": ""}]"#), Network::New);
        assert_eq!(of(r#"[{"type": "network", "path": "/n"}]"#), Network::At("/n".into()));
        assert!(Network::At("/dev/null".into()).enter(&[]).is_err());
    }
}
