//! The words of `--publish`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A port of the host, and the port of the sandbox to which it is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The address of the host.
    pub host: SocketAddr,
    /// The port of the sandbox.
    pub port: u16,
}

impl Published {
    /// Parses `[ADDRESS:]PORT:PORT`. The default address is 127.0.0.1. For port 0 of the host the
    /// system chooses a port.
    ///
    /// # Errors
    /// The form that the text must have.
    pub fn parse(text: &str) -> Result<Published, String> {
        const EXPECTED: &str = "must be [HOSTADDRESS:]HOSTPORT:PORT, such as 8080:80 or 127.0.0.1:8080:80";
        let expected = || EXPECTED.to_owned();
        let (rest, port) = text.rsplit_once(':').ok_or_else(expected)?;
        let (address, host_port) = match rest.rsplit_once(':') {
            Some((address, port)) => (address, port),
            None => ("127.0.0.1", rest),
        };
        let address: IpAddr = match address.strip_prefix('[').and_then(|address| address.strip_suffix(']')) {
            Some(six) => IpAddr::V6(six.parse().map_err(|_| expected())?),
            None => IpAddr::V4(address.parse::<Ipv4Addr>().map_err(|_| expected())?),
        };
        let port: u16 = port.parse().map_err(|_| expected())?;
        if port == 0 {
            return Err("the port inside the sandbox cannot be 0".to_owned());
        }
        Ok(Published { host: SocketAddr::new(address, host_port.parse().map_err(|_| expected())?), port })
    }
}

impl std::fmt::Display for Published {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of the host leads to port {} of the sandbox", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named_as_other_tools_have_them() {
        let parsed = |text| Published::parse(text).map(|published| (published.host.to_string(), published.port));
        assert_eq!(parsed("8080:80"), Ok(("127.0.0.1:8080".to_owned(), 80)));
        assert_eq!(parsed("0.0.0.0:8080:80"), Ok(("0.0.0.0:8080".to_owned(), 80)));
        assert_eq!(parsed("[::1]:0:80"), Ok(("[::1]:0".to_owned(), 80)));
        for wrong in ["", "80", "80:", ":80", "a:80", "80:0", "::1:80:80", "80:70000", "80:80/udp", "host:80:80"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
