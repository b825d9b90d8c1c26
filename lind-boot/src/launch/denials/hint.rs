//! Advice about a denial: to the command, and to the person who started it.
//!
//! A hint is pasted into a shell or a policy. It allows exactly the thing that was denied, and part
//! of it may be words of a guest: so options are quoted as shell words ([`shell_word`]), and paths
//! are literal strings of TOML, which a shell takes for one word too. Where that is impossible, or
//! a rule would allow more than this thing, no hint is given.

use lind_kernel::denial::Denial;
use lind_kernel::text::{is_seen, shell_word};

use super::text::{call, grate};

/// The longest name in a hint: a longer one would be cut where it is printed.
const LONGEST: usize = 300;

/// The net grate's words for an address whose time is over.
const EXPIRED: &str = "the answer for the name has expired";

/// The write filter's words before a name that is protected in every directory.
const ANY: &str = ", as any ";

/// Advice to the command: what it can do without more rights.
pub fn instead(denial: &Denial) -> Option<&'static str> {
    let rule = denial.rule.as_str();
    Some(match grate(denial) {
        "net" if rule.starts_with(EXPIRED) => "look the name up again",
        "net" if denial.subject.starts_with("unix:") => "use a socket in /tmp or the home directory, or ask for access",
        "net" => "work without it, or ask for access",
        "write_filter" if rule.starts_with("not among") => {
            "write where the policy allows it, such as /tmp, or ask for access"
        }
        "write_filter" if denial.subject.ends_with("/.git/config") => {
            "set it for one command by git -c NAME=VALUE, or ask for access"
        }
        "write_filter" if subject_is_of_git(denial) => {
            "make repositories, clones and worktrees in a directory in /tmp, or ask for access"
        }
        "write_filter" => "use another name, or a directory in /tmp, or ask for access",
        "resource" => match denial.subject.as_str() {
            "cages" | "threads" => "run less at the same time",
            "files" => "close files",
            "memory" => "use less memory",
            subject if subject.starts_with("write") => "write less",
            _ => return None,
        },
        "seccomp" if rule == "not among the files" && may_change(denial) => "write to another place, or ask for access",
        "seccomp" => "work without it, or ask for access",
        _ => return None,
    })
}

/// Whether a file of git's own was denied, such as `init`, `clone` and `worktree add` create.
fn subject_is_of_git(denial: &Denial) -> bool {
    denial.subject.split('/').any(|name| name == ".git")
}

/// Advice to the person who started the command: an addition to the options or the policy.
pub fn hint(denial: &Denial) -> Option<String> {
    let subject = denial.subject.as_str();
    match grate(denial) {
        "net" if denial.rule.starts_with(EXPIRED) => None,
        "net" => Some(format!("--allow {}", shell_word(allowed(&denial.what, subject)?))),
        "write_filter" if denial.rule.starts_with("not among") => listed(subject, "write"),
        "write_filter" if denial.rule.contains(ANY) => {
            let name = denial.rule.split_once(ANY)?.1;
            // With other characters the option would take it for a pattern.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
            name.chars().all(is_plain).then(|| format!("--allow-name {name}"))
        }
        "write_filter" => Some("a policy of your own that does not protect it (--policy FILE)".into()),
        "resource" => match subject {
            "threads" => Some("a larger limit `threads` in the policy".into()),
            "memory" | "cpu" | "cages" | "files" => Some(format!("a larger --{subject}")),
            subject if subject.starts_with("write") => Some("a larger --disk".into()),
            _ => None,
        },
        "seccomp" => match (denial.rule.as_str(), call(denial)) {
            ("not among the files", _) => listed(subject, if may_change(denial) { "write" } else { "read" }),
            ("not among the programs", _) => listed(subject, "programs"),
            (_, Some(call)) => Some(format!("'{call}' in the list calls of the policy")),
            (_, None) => None,
        },
        _ => None,
    }
}

/// The entry of a path in a list of the policy. A path with a character of patterns would allow
/// others too.
fn listed(path: &str, list: &str) -> Option<String> {
    let is_literal =
        path.starts_with('/') && path.len() <= LONGEST && path.chars().all(|c| is_seen(c) && !"'*?[]\\".contains(c));
    is_literal.then(|| format!("'{path}' in the list {list} of the policy"))
}

/// The value of `--allow` that permits this and nothing else. `what` is `VERB PROTOCOL ADDRESS`.
fn allowed(what: &str, subject: &str) -> Option<String> {
    let mut words = what.split(' ');
    let (verb, protocol) = (words.next()?, words.next()?);
    if verb == "look" {
        return (what.strip_prefix("look up ") == Some(subject) && is_host(subject)).then(|| subject.to_owned());
    }
    if what == "socket for icmp" {
        return Some("out icmp *".to_owned());
    }
    let receives = matches!(verb, "bind" | "listen" | "accept");
    if let Some(name) = subject.strip_prefix("unix:") {
        return Some(format!("{} {}", if receives { "in" } else { "out" }, socket_rule(name)?));
    }
    let (host, port) = subject.rsplit_once(':').filter(|_| matches!(protocol, "tcp" | "udp" | "icmp"))?;
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let any = matches!(address, "0.0.0.0" | "::");
    match (verb, port) {
        ("connect" | "send", _) if protocol == "icmp" => Some(format!("out icmp {address}")),
        ("connect" | "send", "0") => None,
        ("connect" | "send", _) => Some(subject.to_owned()),
        // A program listens on port 0 after its bind was denied, which was reported.
        ("listen" | "accept", "0") => None,
        ("accept", _) => Some(format!("accept {protocol} {address} {port}")),
        // Connections to any address of this host come from anywhere.
        ("bind" | "listen", _) => {
            Some(format!("in {protocol} {} {}", if any { "*" } else { address }, if port == "0" { "*" } else { port }))
        }
        _ => None,
    }
}

/// The name of a unix socket as it is written in a rule, where blanks separate words and some
/// characters make a pattern.
fn socket_rule(name: &str) -> Option<String> {
    let can_be_said = name.len() > 1 && name.chars().all(|c| c.is_ascii_graphic());
    if !can_be_said || !name.starts_with(['/', '@']) {
        return None;
    }
    let literal = |c: char| if "*?[]\\".contains(c) { format!("\\{c}") } else { c.to_string() };
    Some(format!("unix:{}", name.chars().map(literal).collect::<String>()))
}

fn is_host(name: &str) -> bool {
    name.len() < 254 && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Whether the denied call changes files.
fn may_change(denial: &Denial) -> bool {
    use lind_abi::paths::{FILE_USES, effect};
    const CHANGES: u16 = effect::WRITE | effect::CREATE | effect::REMOVE | effect::META | effect::LINK;
    let name = call(denial);
    let Some(used) = FILE_USES.iter().find(|used| Some(used.name) == name.as_deref()) else { return false };
    let opens = used.paths.iter().any(|path| path.effect & effect::OPEN != 0);
    let to_change = opens && ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| denial.what.contains(flag));
    to_change || used.paths.iter().any(|path| path.effect & CHANGES != 0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::denial;
    use super::*;
    use lind_abi::Errno;

    fn net(what: &str) -> Option<String> {
        let subject = if what.contains("unix:") {
            &what[what.find("unix:").unwrap()..]
        } else {
            what.rsplit(' ').next().unwrap()
        };
        hint(&denial("net_grate", Some(Errno::EACCES), ["no rule allows it", what, subject]))
    }

    #[test]
    fn hints_are_about_what_was_refused() {
        for (what, expected) in [
            ("connect tcp 127.0.0.1:22", "--allow 127.0.0.1:22"),
            ("connect tcp [::1]:22", "--allow '[::1]:22'"),
            ("send udp 10.0.0.1:53", "--allow 10.0.0.1:53"),
            ("connect tcp example.org:443", "--allow example.org:443"),
            ("connect tcp db.internal:5432/private", "--allow db.internal:5432/private"),
            ("look up example.org", "--allow example.org"),
            ("bind udp 127.0.0.1:53", "--allow 'in udp 127.0.0.1 53'"),
            ("bind udp 127.0.0.1:0", "--allow 'in udp 127.0.0.1 *'"),
            ("bind tcp [::]:80", "--allow 'in tcp * 80'"),
            ("listen tcp 127.0.0.1:80", "--allow 'in tcp 127.0.0.1 80'"),
            ("accept tcp 10.0.0.7:80", "--allow 'accept tcp 10.0.0.7 80'"),
            ("send icmp 10.0.0.1:0", "--allow 'out icmp 10.0.0.1'"),
            ("socket for icmp", "--allow 'out icmp *'"),
            ("connect unix unix:/s/a", "--allow 'out unix:/s/a'"),
            ("bind unix unix:@a*", "--allow 'in unix:@a\\*'"),
            ("connect unix unix:@$(touch${IFS}RAN):1", "--allow 'out unix:@$(touch${IFS}RAN):1'"),
            ("connect unix unix:@it's", "--allow 'out unix:@it'\\''s'"),
        ] {
            assert_eq!(net(what).as_deref(), Some(expected), "{what}");
        }
        for what in [
            "listen tcp 0.0.0.0:0",
            "connect udp 1.2.3.4:0",
            "connect unix unix:imfs:[7] (deleted)",
            "connect unix unix:@a $(touch RAN):1",
            "connect unix unix:@",
            "bind unix unix:/a\n--network host",
            "socket of family 16",
            "setsockopt SO_MARK",
            "look up a b",
            "",
        ] {
            assert_eq!(net(what), None, "{what}");
        }
    }

    #[test]
    fn hints_name_the_list() {
        let hint_of = |name: &str, what: &str, path: &str| {
            let number = lind_abi::syscall_named(name).unwrap().nr.into();
            let texts = ["not among the files", what, path];
            hint(&Denial { number, ..denial("seccomp_grate", Some(Errno::EACCES), texts) })
        };
        let of = |name: &str, what: &str| hint_of(name, what, "/f").unwrap();
        assert_eq!(of("open", "open(\"/f\", O_RDONLY)"), "'/f' in the list read of the policy");
        assert_eq!(of("open", "open(\"/f\", O_WRONLY|O_CREAT)"), "'/f' in the list write of the policy");
        assert_eq!(of("unlink", "unlink(\"/f\")"), "'/f' in the list write of the policy");
        assert_eq!(of("stat", "stat(\"/f\")"), "'/f' in the list read of the policy");
        for odd in ["/a*", "/it's", "/\u{1b}", "f", "/a\nb", &format!("/{}", "x".repeat(LONGEST))] {
            assert_eq!(hint_of("stat", "stat", odd), None, "{odd}");
        }
    }
}
