//! The hosts of settings, as rules of a policy. A policy has no list of denied hosts, so an allowed
//! one that is partly denied is left out, or allowed at fewer ports.

use std::net::IpAddr;

/// A host, or `*.` and a name for all below it, or `*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// How much of an allowed host a denied one takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Nothing.
    Nothing,
    /// All of it.
    Everything,
    /// This port.
    Port(u16),
    /// Some of the names below it.
    Names,
}

/// The ports that are left to a host some of whose ports are denied.
const USUAL: [u16; 2] = [80, 443];

impl Host {
    /// Reads NAME, `*.NAME`, ADDRESS or `*`, with :PORT or without.
    ///
    /// # Errors
    /// The reason why it is none of these.
    pub fn parse(text: &str) -> Result<Host, &'static str> {
        const FORM: &str = "expected a host such as example.org, *.example.org or example.org:443";
        let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, "")) => (address, None),
            Some((address, rest)) => (address, Some(rest.strip_prefix(':').ok_or(FORM)?)),
            None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
        };
        let port = port.map(|port| port.parse().ok().filter(|port| *port > 0).ok_or(FORM)).transpose()?;
        let is_address = name.parse::<IpAddr>().is_ok();
        if is_address || name == "*" {
            return Ok(Host { name: name.to_owned(), port });
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if !name.is_ascii() {
            return Err("expected a name in its ASCII form, which begins with xn--");
        }
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let labels = name.strip_prefix("*.").unwrap_or(&name);
        if text.starts_with('[') || !labels.split('.').all(is_label) {
            return Err(FORM);
        }
        Ok(Host { name, port })
    }

    /// Why the host cannot be allowed, if so.
    pub fn unfit(&self) -> Option<&'static str> {
        let below = self.name.strip_prefix("*.");
        match &*self.name {
            "*" => Some("a policy names the hosts; network = \"host\" would allow this host's own services, too"),
            "localhost" => Some(
                "localhost is the sandbox's own there; a port of this host's is allowed by its address, as in \
                 --allow 127.0.0.1:5432",
            ),
            name if name.ends_with(".localhost") => Some("names below localhost are the sandbox's own"),
            _ if below.is_some_and(|name| !name.contains('.')) => {
                Some("a whole domain of the top is too much; name the hosts")
            }
            _ => None,
        }
    }

    /// The rule of a policy.
    pub fn rule(&self) -> String {
        let name = if self.name.contains(':') { format!("[{}]", self.name) } else { self.name.clone() };
        self.port.map_or(name.clone(), |port| format!("{name}:{port}"))
    }

    /// How much of this host `denied` takes away.
    pub fn taken_by(&self, denied: &Host) -> Taken {
        let below = |name: &str, of: &str| name.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
        let names = match (denied.name.strip_prefix("*."), self.name.strip_prefix("*.")) {
            _ if denied.name == "*" || denied.name == self.name => Taken::Everything,
            (Some(denied), None) if below(&self.name, denied) => Taken::Everything,
            (Some(denied), Some(own)) if below(own, denied) => Taken::Everything,
            (Some(denied), Some(own)) if below(denied, own) => Taken::Names,
            (None, Some(own)) if below(&denied.name, own) => Taken::Names,
            _ => Taken::Nothing,
        };
        match (names, denied.port) {
            (Taken::Nothing, _) => Taken::Nothing,
            (_, Some(port)) if self.port.is_some_and(|own| own != port) => Taken::Nothing,
            (Taken::Everything, Some(port)) if self.port.is_none() => Taken::Port(port),
            (taken, _) => taken,
        }
    }

    /// The host at the usual ports without these.
    pub fn without(&self, denied: &[u16]) -> Vec<Host> {
        let left = USUAL.into_iter().filter(|port| !denied.contains(port));
        left.map(|port| Host { port: Some(port), ..self.clone() }).collect()
    }

    /// Its name or address.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a name, and not an address.
    pub fn is_name(&self) -> bool {
        self.name.parse::<IpAddr>().is_err()
    }
}

/// Whether no name that a policy allows reaches this address or network, ADDRESS[/BITS].
pub fn is_private(range: &str) -> bool {
    const PRIVATE: [(&str, u32); 16] = [
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.168.0.0", 16),
        ("198.18.0.0", 15),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
        ("::", 128),
        ("::1", 128),
        ("fc00::", 7),
        ("fe80::", 10),
        ("ff00::", 8),
    ];
    let (address, bits) = range.split_once('/').map_or((range, None), |(address, bits)| (address, Some(bits)));
    let Some((number, width)) = address.parse().ok().map(number) else { return false };
    let Some(bits) = bits.map_or(Some(width), |bits| bits.parse().ok().filter(|bits| *bits <= width)) else {
        return false;
    };
    PRIVATE.iter().any(|(network, own)| {
        let network = network.parse().map(self::number);
        network.is_ok_and(|(network, size)| {
            size == width && *own <= bits && (network ^ number).checked_shr(width - own).unwrap_or(0) == 0
        })
    })
}

/// An address as a number, and how many bits it has.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn hosts_have_one_form() {
        for (text, rule) in [
            ("Example.ORG", "example.org"),
            ("*.example.org.", "*.example.org"),
            ("a.example:443", "a.example:443"),
            ("127.0.0.1:5432", "127.0.0.1:5432"),
            ("[2001:db8::1]:443", "[2001:db8::1]:443"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(host(text).rule(), rule);
            crate::plan::line::net_rule(rule).unwrap();
        }
        // A rule of the net grate has blanks.
        for wrong in [
            "",
            "any * *",
            "a b",
            "https://a.example",
            "a.example/x",
            "a..b",
            "a*.b",
            "*.*.b",
            "a:0",
            "a:x",
            "[a]",
            "::1",
            "ü.example",
            "a\n",
        ] {
            assert!(Host::parse(wrong).is_err(), "{wrong}");
        }
        for unfit in ["*", "localhost", "a.localhost", "*.com"] {
            assert!(host(unfit).unfit().is_some(), "{unfit}");
        }
    }

    #[test]
    fn what_is_denied_is_taken_away() {
        for (allowed, denied, taken) in [
            ("a.example", "a.example", Taken::Everything),
            ("a.example", "*", Taken::Everything),
            ("a.b.example", "*.example", Taken::Everything),
            ("*.b.example", "*.example", Taken::Everything),
            ("*.example", "*.b.example", Taken::Names),
            ("*.example", "b.example", Taken::Names),
            ("*.example", "b.example:22", Taken::Names),
            ("b.example", "example", Taken::Nothing),
            ("notb.example", "*.b.example", Taken::Nothing),
            ("a.example", "*:22", Taken::Port(22)),
            ("a.example:443", "*:22", Taken::Nothing),
            ("a.example:22", "*:22", Taken::Everything),
        ] {
            assert_eq!(host(allowed).taken_by(&host(denied)), taken, "{allowed} {denied}");
        }
        assert_eq!(host("a.b").without(&[22, 80]), [host("a.b:443")]);
    }

    #[test]
    fn networks_that_no_name_reaches() {
        for range in ["10.0.0.0/8", "10.1.2.3", "192.168.1.0/24", "fd00::/8", "::1", "fe80::1"] {
            assert!(is_private(range), "{range}");
        }
        for range in ["0.0.0.0/0", "8.8.8.8", "10.0.0.0/7", "::/0", "x", "10.0.0.0/33", "2001:db8::/32"] {
            assert!(!is_private(range), "{range}");
        }
    }
}
