//! Which calls a clamp lets in: what `grates/namespace/choose.c` decides, from the options alone. `tests/grates/scenarios/run` compares the two.

use std::path::Path;

use anyhow::{Context, Result, bail};
use lind_abi::Syscall;

use super::narrow::text_of;
use super::options::{self, Calls, Given};

/// A clamp's options.
#[derive(Default)]
pub struct Clamp {
    calls: Calls,
    /// A list of calls that is not known here.
    unknown: Option<String>,
    prefixes: Vec<String>,
    addresses: Vec<String>,
    ports: Vec<String>,
    fds: Vec<String>,
    kinds: Vec<String>,
    flags: Vec<String>,
}

/// What becomes of a call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// It goes past, and the clamp does not see it.
    Past,
    /// The clamp sees it, and nobody inside does.
    Seen,
    /// It enters under this condition; empty if there is none.
    Enters(String),
}

const DESCRIPTOR: &str = "if its descriptor is inside";

impl Clamp {
    /// What the options of a clamp say. Files are looked for below `root`.
    ///
    /// # Errors
    /// What the clamp would say.
    pub fn read(grate: &str, given: Vec<Given>, root: &Path) -> Result<Clamp> {
        let mut clamp = Clamp::default();
        let class =
            |word: &str, row: &Syscall| word.strip_prefix('%').is_some_and(|class| options::in_class(class, row));
        if given.iter().all(|(name, _)| *name == "by-text") {
            bail!("{grate}: nothing says which calls enter");
        }
        for (name, value) in given {
            match name {
                "prefix" => clamp.prefixes.push(value),
                "address" => clamp.addresses.push(value),
                "port" => clamp.ports.push(value),
                "fd" => clamp.fds.push(value),
                "fd-kind" => clamp.kinds.push(value),
                "fd-flags" => clamp.flags.push(value),
                "calls" => {
                    clamp.calls.change(&value, &class).with_context(|| format!("{grate}: --calls: '{value}'"))?;
                }
                "calls-from" => match text_of(&value, root) {
                    Some(text) => {
                        for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
                            let told = || format!("{grate}: --calls-from: '{value}'");
                            clamp.calls.change(line, &class).with_context(told)?;
                        }
                    }
                    None => clamp.unknown = Some(value),
                },
                _ => {}
            }
        }
        Ok(clamp)
    }

    fn by_net(&self) -> bool {
        !(self.addresses.is_empty() && self.ports.is_empty())
    }

    fn by_fd(&self) -> bool {
        !(self.fds.is_empty() && self.kinds.is_empty() && self.flags.is_empty())
    }

    fn by_path(&self) -> bool {
        !self.prefixes.is_empty()
    }

    /// What is inside, in words. None where only calls decide.
    pub fn inside(&self) -> Option<String> {
        let mut what = Vec::new();
        let mut say = |text: &str, words: &[String]| {
            if !words.is_empty() {
                what.push(format!("{text} {}", words.join(", ")));
            }
        };
        say("paths at or below", &self.prefixes);
        match (&self.addresses[..], &self.ports[..]) {
            ([], ports) => say("sockets of port", ports),
            (addresses, []) => say("sockets of address", addresses),
            (addresses, ports) => say(&format!("sockets of address {} and port", addresses.join(", ")), ports),
        }
        say("at the start descriptors", &self.fds);
        match (&self.kinds[..], &self.flags[..]) {
            ([], flags) => say("descriptors open", flags),
            (kinds, []) => say("descriptors of kind", kinds),
            (kinds, flags) => say(&format!("descriptors of kind {} open", kinds.join(", ")), flags),
        }
        (!what.is_empty())
            .then(|| format!("{}; and descriptors that calls which entered have made, and copies", what.join("; ")))
    }

    /// The list of calls that could not be read.
    pub fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// What becomes of a call that a grate inside handles, or none does.
    pub fn way(&self, row: &Syscall, handled_inside: bool) -> Way {
        let listed = self.unknown.is_some() || self.calls.has(row.nr) || begins_or_ends(row.name);
        let perhaps = if self.unknown.is_some() && !begins_or_ends(row.name) { "may, by a list" } else { "" };
        let handled = handled_inside && listed;
        let enters = |when: &str| if handled_inside { Way::Enters(when.to_owned()) } else { Way::Seen };
        let by_path = self.by_path();
        if !by_path && !self.by_net() && !self.by_fd() {
            return if handled { Way::Enters(perhaps.to_owned()) } else { Way::Past };
        }
        match row.name {
            "clone" => return enters(""),
            name if keeps_state(name) => return if handled { Way::Enters(String::new()) } else { Way::Past },
            "pipe" | "pipe2" | "socketpair" => return Way::Seen,
            "rename" | "renameat" | "renameat2" | "rmdir" | "unlinkat" if !by_path => {}
            name if moves_descriptors(name) => return enters(&self.condition(row)),
            "connect" | "bind" | "sendto" if by_path || self.by_net() => return enters(&self.condition(row)),
            "ioctl" if self.flags.iter().any(|flags| flags.contains("append") || flags.contains("nonblock")) => {
                return if handled { Way::Enters(DESCRIPTOR.to_owned()) } else { Way::Seen };
            }
            _ => {}
        }
        let condition = if handled { self.condition(row) } else { String::new() };
        if condition.is_empty() {
            return if options::makes_descriptor(row) { Way::Seen } else { Way::Past };
        }
        Way::Enters(if perhaps.is_empty() { condition } else { format!("{perhaps}, and {condition}") })
    }

    /// Under which a call enters that is looked at. Empty if it never does.
    fn condition(&self, row: &Syscall) -> String {
        let of_path = match &self.prefixes[..] {
            [] => "if its path starts in a directory that is inside".to_owned(),
            prefixes => format!("if its path is {} or below", prefixes.join(" or ")),
        };
        match row.name {
            "munmap" | "mremap" | "msync" | "mprotect" | "madvise" | "mincore" | "mlock" | "munlock" | "mlock2"
            | "brk" => "once a file that is inside was mapped".to_owned(),
            "mmap" => "if it maps a file that is inside, and once one was mapped".to_owned(),
            "poll" | "ppoll" | "select" | "pselect6" => "if a descriptor in its set is inside".to_owned(),
            "getcwd" => "if the working directory is inside".to_owned(),
            "connect" | "bind" | "sendto" => "if its address matches, or its socket is inside".to_owned(),
            "sendmsg" | "sendmmsg" => {
                "if its address matches, or its socket or a descriptor in it is inside".to_owned()
            }
            "recvmsg" | "recvmmsg" => "if its socket is inside, and once a descriptor from inside was sent".to_owned(),
            "epoll_ctl" => "if one of its descriptors is inside".to_owned(),
            "fchdir" => DESCRIPTOR.to_owned(),
            "close_range" => "once a descriptor is inside".to_owned(),
            _ if options::takes_path(row) => of_path,
            _ if options::descriptors(row) > 1 => "if one of its descriptors is inside".to_owned(),
            _ if options::descriptors(row) > 0 => DESCRIPTOR.to_owned(),
            _ => String::new(),
        }
    }
}

/// Those that begin or end a program: grates inside keep count of their clients by them.
fn begins_or_ends(name: &str) -> bool {
    matches!(name, "clone" | "spawn" | "execve" | "execveat" | "exit" | "exit_group")
}

/// Those that change what a grate may keep about a process, and have neither path nor descriptor.
fn keeps_state(name: &str) -> bool {
    begins_or_ends(name)
        || matches!(
            name,
            "umask" | "setuid" | "setgid" | "setreuid" | "setregid" | "setresuid" | "setresgid" | "setgroups"
        )
        || matches!(name, "setfsuid" | "setfsgid" | "capset" | "unshare" | "setrlimit" | "prlimit64")
        || matches!(name, "register_handler" | "copy_data_between_cages" | "copy_handler_table_to_cage")
}

/// By these, descriptors come, go and travel: looked at whether a grate inside handles them, and is to see them, or not.
fn moves_descriptors(name: &str) -> bool {
    matches!(name, "close" | "close_range" | "dup" | "dup2" | "dup3" | "fcntl" | "accept" | "accept4")
        || matches!(name, "sendmsg" | "sendmmsg" | "recvmsg" | "recvmmsg" | "chdir" | "fchdir")
        || matches!(
            name,
            "open" | "openat" | "openat2" | "creat" | "rename" | "renameat" | "renameat2" | "rmdir" | "unlinkat"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(options: &[&str], name: &str, handled: bool) -> Way {
        let words: Vec<_> = options.iter().map(ToString::to_string).collect();
        let row = lind_abi::syscall_named(name).unwrap();
        let given = options::read("g", &super::super::sources::options("namespace_grate").unwrap(), &words).unwrap();
        Clamp::read("g", given, Path::new("/nowhere")).unwrap().way(row, handled)
    }

    #[test]
    fn a_list_of_calls_decides_alone() {
        assert_eq!(way(&["--calls", "read,%network"], "connect", true), Way::Enters(String::new()));
        assert_eq!(way(&["--calls", "read"], "write", true), Way::Past);
        assert_eq!(way(&["--calls", "read"], "read", false), Way::Past);
        assert_eq!(way(&["--calls", "read"], "clone", true), Way::Enters(String::new()));
    }

    #[test]
    fn conditions_are_those_of_the_call() {
        let path = Way::Enters("if its path is /tmp or below".to_owned());
        assert_eq!(way(&["-p/tmp"], "open", true), path);
        assert_eq!(way(&["-p/tmp"], "stat", true), path);
        assert_eq!(way(&["-p/tmp"], "stat", false), Way::Past);
        assert_eq!(way(&["-p/tmp"], "open", false), Way::Seen);
        assert_eq!(way(&["-p/tmp"], "geteuid", true), Way::Past);
        assert_eq!(way(&["-p/tmp"], "pipe", true), Way::Seen);
        assert_eq!(way(&["-p/tmp", "-cread"], "stat", true), Way::Past);
        assert_eq!(way(&["--fd-kind=pipe"], "write", true), Way::Enters(DESCRIPTOR.to_owned()));
        assert_eq!(way(&["--fd-flags=append"], "ioctl", false), Way::Seen);
        assert_eq!(way(&["--calls-from=/none"], "read", true), Way::Enters("may, by a list".to_owned()));
    }
}
