//! Socket addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use lind_abi::layout::Sockaddr;

use lind_abi::Len;

use crate::{Cx, Errno, In, Result};

const UNIX: u16 = 1;
const INET: u16 = 2;
const INET6: u16 = 10;

/// A socket address that a client passed: a copy, to look at and to forward.
#[derive(Clone, Copy)]
pub struct Address {
    raw: Sockaddr,
    length: u32,
}

impl Cx<'_> {
    /// Copies the socket address of a call. EINVAL if it is longer than any address is, EFAULT for
    /// NULL.
    ///
    /// ```no_run
    /// # use lind_grate::prelude::*;
    /// fn on_connect(cx: &Cx, fd: Fd, addr: In<Sockaddr>, len: Len) -> Result<i64> {
    ///     let to = cx.address(addr, len)?;
    ///     match to.inet() {
    ///         Some(host) if !host.ip().is_loopback() => Err(Errno::EACCES),
    ///         _ => calls::connect::forward(cx, fd, to.raw(), to.len()),
    ///     }
    /// }
    /// # calls!(static CALLS = { alters connect: on_connect });
    /// # fn main() {}
    /// ```
    pub fn address(&self, from: In<Sockaddr>, length: Len) -> Result<Address> {
        let size = usize::try_from(length.0).ok().filter(|&size| size <= size_of::<Sockaddr>()).ok_or(Errno::EINVAL)?;
        let mut bytes = [0; size_of::<Sockaddr>()];
        self.read(crate::Arg { value: from.addr, cage: from.cage }, &mut bytes[..size])?;
        Ok(Address::of_bytes(&bytes, size))
    }
}

impl Address {
    fn of_bytes(bytes: &[u8; size_of::<Sockaddr>()], size: usize) -> Address {
        let mut raw = Sockaddr { family: u16::from_le_bytes([bytes[0], bytes[1]]), data: [0; 126] };
        raw.data.copy_from_slice(&bytes[2..]);
        // At most the size of a Sockaddr.
        let length = u32::try_from(size).unwrap_or_default();
        Address { raw, length }
    }

    /// The family: AF_INET and so on.
    pub fn family(&self) -> u16 {
        if self.length >= 2 { self.raw.family } else { 0 }
    }

    /// The host and port of an address of IPv4 or IPv6. An IPv4 address that is written as one of
    /// IPv6 is the IPv4 address, which is where it leads.
    pub fn inet(&self) -> Option<SocketAddr> {
        let data = &self.raw.data;
        let port = u16::from_be_bytes([data[0], data[1]]);
        let ip = match self.family() {
            INET if self.length >= 16 => IpAddr::V4(Ipv4Addr::new(data[2], data[3], data[4], data[5])),
            INET6 if self.length >= 24 => {
                let bytes: [u8; 16] = data[6..22].try_into().ok()?;
                IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }

    /// Whether it is one of a unix socket.
    pub fn is_unix(&self) -> bool {
        self.family() == UNIX
    }

    /// The copy, to forward.
    pub fn raw(&self) -> &Sockaddr {
        &self.raw
    }

    /// Its length, to forward.
    pub fn len(&self) -> Len {
        Len(u64::from(self.length))
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Address {
        let mut all = [0; 128];
        all[..bytes.len()].copy_from_slice(bytes);
        Address::of_bytes(&all, bytes.len())
    }

    #[test]
    fn hosts_of_both_families_are_read() {
        let four = of(&[2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(four.inet(), "127.0.0.1:8080".parse().ok());
        let mut six = [0; 28];
        (six[0], six[3], six[23]) = (10, 80, 1);
        assert_eq!(of(&six).inet(), "[::1]:80".parse().ok());
    }

    #[test]
    fn a_mapped_address_is_where_it_leads() {
        let mut six = [0; 28];
        (six[0], six[3], six[18], six[19]) = (10, 80, 255, 255);
        six[20..24].copy_from_slice(&[10, 0, 0, 1]);
        assert_eq!(of(&six).inet(), "10.0.0.1:80".parse().ok());
    }

    #[test]
    fn a_short_address_is_no_host() {
        assert_eq!(of(&[2, 0, 0, 80, 127, 0, 0]).inet(), None);
        assert_eq!(of(&[2]).family(), 0);
        assert_eq!((of(&[]).family(), of(&[]).is_empty()), (0, true));
    }
}
