//! The line of grates that a sandbox's rules stand for, outermost first.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::options::{Network, Options};
use super::policy::{LIMITS, Policy};
use super::volume::Volume;

/// The grates before the command, as one would type them.
pub fn grates(options: &Options, policy: &Policy, volumes: &[Volume]) -> Result<Vec<String>> {
    let mut line = Vec::new();
    if let Some(file) = &options.audit {
        line.extend(["witness_grate".to_owned(), "-o".to_owned(), absolute(file)?]);
    }
    line.extend(limits(options, policy));
    line.extend(network(options, policy)?);
    line.extend(protection(policy, volumes));
    Ok(line)
}

fn absolute(file: &Path) -> Result<String> {
    let path = std::path::absolute(file)?;
    path.to_str().map(str::to_owned).with_context(|| format!("{}: not a name that can be passed on", path.display()))
}

/// What limits all programs together.
fn limits(options: &Options, policy: &Policy) -> Vec<String> {
    let named = |limit: &str| match limit {
        "memory" => options.memory.as_deref(),
        "cpu" => options.cpu.as_deref(),
        "cages" => options.cages.as_deref(),
        "files" => options.files.as_deref(),
        "disk" => options.disk.as_deref(),
        _ => None,
    };
    let mut words = Vec::new();
    for limit in LIMITS {
        if let Some(amount) = named(limit).or_else(|| policy.limit(limit)) {
            words.push(match limit {
                "disk" => format!("--write-bytes=file={amount}"),
                limit => format!("--{limit}={amount}"),
            });
        }
    }
    if !words.is_empty() {
        words.insert(0, "resource_grate".to_owned());
    }
    words
}

/// What says who may be reached. With the host's network and no rules, nobody needs to be asked.
fn network(options: &Options, policy: &Policy) -> Result<Vec<String>> {
    let rules = options.allow.iter().chain(&policy.allow);
    let on = options.network.map_or(policy.network, |network| network == Network::Host);
    let mut words = vec!["net_grate".to_owned()];
    for rule in rules {
        ensure!(options.network != Some(Network::None), "--allow {rule} and --network none: choose one");
        words.push(format!("--allow={}", net_rule(rule)?));
    }
    Ok(if on && words.len() == 1 { Vec::new() } else { words })
}

/// HOST[:PORT] as a rule of the net grate; a rule is taken as it is.
fn net_rule(text: &str) -> Result<String> {
    if text.contains(' ') {
        return Ok(text.to_owned());
    }
    let (host, port) = match text.rsplit_once(':') {
        // An address of IPv6 has colons of its own; with a port it is in brackets.
        Some((host, port)) if !host.contains(':') || (host.starts_with('[') && host.ends_with(']')) => (host, port),
        _ => (text, "*"),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ensure!(!host.is_empty(), "--allow {text}: no host is named");
    let number = port == "*" || port.split(['-', ',']).all(|part| part.parse::<u16>().is_ok_and(|port| port > 0));
    ensure!(number, "--allow {text}: {port} is no port");
    Ok(format!("out {host} {port}"))
}

/// What keeps protected names of volumes as they are, and keeps them from coming to be.
fn protection(policy: &Policy, volumes: &[Volume]) -> Vec<String> {
    let mut words = Vec::new();
    for volume in volumes.iter().filter(|volume| !volume.read_only && volume.host.is_dir()) {
        words.extend(policy.protect.iter().map(|name| format!("--protect={}", volume.guest.join(name).display())));
    }
    if !words.is_empty() {
        words.splice(..0, ["write_filter_grate".to_owned(), "--errno=EROFS".to_owned()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_become_rules() {
        let rule = |text: &str| net_rule(text).unwrap();
        assert_eq!(rule("example.org"), "out example.org *");
        assert_eq!(rule("example.org:443"), "out example.org 443");
        assert_eq!(rule("10.0.0.0/8:80,8000-8100"), "out 10.0.0.0/8 80,8000-8100");
        assert_eq!(rule("2001:db8::1"), "out 2001:db8::1 *");
        assert_eq!(rule("[2001:db8::1]:53"), "out 2001:db8::1 53");
        assert_eq!(rule("in tcp 127.0.0.1 8080"), "in tcp 127.0.0.1 8080");
        for wrong in [":443", "a:b", "a:0", "a:70000", ""] {
            assert!(net_rule(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_go_before_the_policy() {
        let mut policy = Policy::named("agent").unwrap();
        let options = Options { memory: Some("1G".into()), disk: Some("5M".into()), ..Options::default() };
        let line = grates(&options, &policy, &[]).unwrap().join(" ");
        assert_eq!(line, "resource_grate --memory=1G --cages=256 --files=4096 --write-bytes=file=5M net_grate");
        policy.network = true;
        assert!(!grates(&options, &policy, &[]).unwrap().contains(&"net_grate".to_owned()));
        let none = Options { network: Some(Network::None), ..Options::default() };
        assert!(grates(&none, &policy, &[]).unwrap().contains(&"net_grate".to_owned()));
        let both = Options { network: Some(Network::None), allow: vec!["a".into()], ..Options::default() };
        assert!(grates(&both, &policy, &[]).is_err());
    }

    #[test]
    fn names_are_protected_in_what_can_be_changed() {
        let volume = |read_only| Volume { host: "/etc".into(), guest: "/p".into(), read_only };
        let policy = Policy { protect: vec![".git/hooks".into(), ".envrc".into()], ..Policy::default() };
        let line = protection(&policy, &[volume(false)]).join(" ");
        assert_eq!(line, "write_filter_grate --errno=EROFS --protect=/p/.git/hooks --protect=/p/.envrc");
        assert!(protection(&policy, &[volume(true)]).is_empty());
        assert!(protection(&Policy::default(), &[volume(false)]).is_empty());
    }
}
