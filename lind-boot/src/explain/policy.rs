//! What a policy of the seccomp grate decides, by its file: as far as that is decided by which call it is.

use lind_abi::{Syscall, syscall_named};
use toml::de::{DeTable, DeValue};

use super::sources::names as names_in;

/// The lists of calls that do what another does: a rule that refuses one refuses those, too.
const FAMILIES: &str = include_str!("../../../grates/seccomp/family.c");

/// What a policy makes of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does not enter the grate.
    Passes,
    /// It has the grate's answer, whatever it is about.
    Always(String),
    /// It is decided by its arguments, paths or addresses.
    Depends,
}

/// What becomes of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// As TOML has it.
    pub name: String,
    /// Of denials.
    pub errno: String,
}

/// A rule of a policy.
pub struct Rule {
    /// What it says.
    pub action: Action,
    /// Names and classes.
    pub calls: Vec<String>,
    /// It is not about calls alone.
    pub conditions: bool,
    /// It does not hold for calls that do the same.
    pub exact: bool,
}

/// A policy.
pub struct Policy {
    /// For calls that no rule is about.
    pub otherwise: Action,
    /// The first that applies decides.
    pub rules: Vec<Rule>,
}

impl Policy {
    /// A policy in TOML. None if it is none, or says what is not understood here.
    pub fn toml(text: &str) -> Option<Policy> {
        let file = DeTable::parse(text).ok()?;
        let file = file.get_ref();
        let errno = errno_of(file, "EPERM")?;
        let name = file.get("default").map_or(Some("deny"), |name| text_of(name.get_ref()))?.to_owned();
        let rules = match file.get("rule").map(|rules| rules.get_ref()) {
            Some(DeValue::Array(rules)) => {
                rules.iter().map(|rule| Rule::parse(rule.get_ref(), &errno)).collect::<Option<_>>()?
            }
            Some(_) => return None,
            None => Vec::new(),
        };
        Some(Policy { otherwise: Action { name, errno }, rules })
    }

    /// What becomes of a call.
    pub fn verdict(&self, row: &Syscall) -> Verdict {
        let named = |name: &str| self.rules.iter().any(|rule| rule.names(name));
        match row.name {
            "exit" | "exit_group" | "rt_sigreturn" if !named(row.name) => return Verdict::Passes,
            "forward" => return Verdict::Passes,
            // It needs what both of these need.
            "spawn" if !named("spawn") => {
                let both = ["clone", "execve"].map(|name| syscall_named(name).map(|row| self.verdict(row)));
                let passes = both.iter().all(|verdict| *verdict == Some(Verdict::Passes));
                return if passes { Verdict::Passes } else { Verdict::Depends };
            }
            _ => {}
        }
        let applying = self.rules.iter().filter(|rule| rule.applies(row));
        let mut depends = None;
        for rule in applying {
            if rule.conditions {
                depends = Some(());
            } else {
                return depends.map_or_else(|| rule.action.verdict(), |()| Verdict::Depends);
            }
        }
        depends.map_or_else(|| self.otherwise.verdict(), |()| Verdict::Depends)
    }
}

fn text_of<'a>(value: &'a DeValue<'_>) -> Option<&'a str> {
    if let DeValue::String(text) = value { Some(text) } else { None }
}

fn errno_of(table: &DeTable<'_>, otherwise: &str) -> Option<String> {
    match table.get("errno").map(|errno| errno.get_ref()) {
        None => Some(otherwise.to_owned()),
        Some(DeValue::String(name)) => Some(name.to_string()),
        Some(DeValue::Integer(number)) => Some(format!("errno {}", number.as_str())),
        Some(_) => None,
    }
}

impl Rule {
    fn parse(value: &DeValue<'_>, errno: &str) -> Option<Rule> {
        let DeValue::Table(rule) = value else { return None };
        let DeValue::Array(calls) = rule.get("calls")?.get_ref() else { return None };
        Some(Rule {
            action: Action { name: text_of(rule.get("action")?.get_ref())?.to_owned(), errno: errno_of(rule, errno)? },
            calls: calls.iter().map(|call| text_of(call.get_ref()).map(str::to_owned)).collect::<Option<_>>()?,
            conditions: ["args", "path", "address"].iter().any(|key| rule.contains_key(*key)),
            exact: rule.get("exact").is_some_and(|exact| matches!(exact.get_ref(), DeValue::Boolean(true))),
        })
    }

    fn names(&self, name: &str) -> bool {
        self.calls.iter().any(|call| call.trim_start_matches('?') == name)
    }

    fn applies(&self, row: &Syscall) -> bool {
        let class = |call: &String| call.strip_prefix('%').is_some_and(|class| class == row.area);
        let related =
            || self.calls.iter().any(|call| also_reached_by(call.trim_start_matches('?')).any(|name| name == row.name));
        let refuses = self.action.name == "deny" || self.action.name == "kill";
        self.names(row.name) || self.calls.iter().any(class) || (refuses && !self.exact && related())
    }
}

impl Action {
    fn verdict(&self) -> Verdict {
        match &self.name[..] {
            "allow" => Verdict::Passes,
            "log" => Verdict::Always("sees, and logs".to_owned()),
            "kill" => Verdict::Always("kills the program".to_owned()),
            _ => Verdict::Always(format!("refuses with {}", self.errno)),
        }
    }
}

/// What a rule against `call` holds for as well: the row that begins with it, or the list that it is in.
fn also_reached_by(call: &str) -> impl Iterator<Item = &'static str> {
    let lines = || FAMILIES.lines().map(str::trim);
    let row = lines().find(|line| line.starts_with("ROW(SYS_") && names_in(line).next() == Some(call));
    let list = || lines().find(|line| line.starts_with("LIST(SYS_") && names_in(line).any(|name| name == call));
    row.or_else(list).into_iter().flat_map(names_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(policy: &str, name: &str) -> Verdict {
        Policy::toml(policy).expect("a policy").verdict(syscall_named(name).unwrap())
    }

    const DENIES: &str = "default = 'allow'\n[[rule]]\naction = 'deny'\nerrno = 'EACCES'\ncalls = ['open', 'unlink']\n\
                          [[rule]]\naction = 'kill'\ncalls = ['socket']\nargs = { domain = 'AF_INET' }";
    const ALLOWS: &str = "[[rule]]\naction = 'allow'\ncalls = ['%memory', 'read', '?nothing']\n\
                          [[rule]]\naction = 'allow'\ncalls = ['open']\npath = '/srv/**'";

    #[test]
    fn rules_decide_in_order() {
        let refused = Verdict::Always("refuses with EACCES".to_owned());
        assert_eq!([verdict(DENIES, "open"), verdict(DENIES, "openat2")], [refused.clone(), refused.clone()]);
        assert_eq!([verdict(DENIES, "unlinkat"), verdict(DENIES, "read")], [refused, Verdict::Passes]);
        assert_eq!([verdict(DENIES, "socket"), verdict(DENIES, "spawn")], [Verdict::Depends, Verdict::Passes]);
    }

    #[test]
    fn what_no_rule_allows_is_refused() {
        let refused = Verdict::Always("refuses with EPERM".to_owned());
        assert_eq!([verdict(ALLOWS, "read"), verdict(ALLOWS, "mmap")], [Verdict::Passes, Verdict::Passes]);
        assert_eq!([verdict(ALLOWS, "write"), verdict(ALLOWS, "openat")], [refused.clone(), refused]);
        assert_eq!([verdict(ALLOWS, "open"), verdict(ALLOWS, "exit_group")], [Verdict::Depends, Verdict::Passes]);
    }

    #[test]
    fn families_are_read() {
        assert_eq!(also_reached_by("open").collect::<Vec<_>>(), ["open", "openat", "openat2", "creat"]);
        assert_eq!(also_reached_by("unlink").collect::<Vec<_>>(), ["unlink", "unlinkat"]);
        assert_eq!(also_reached_by("getpid").count(), 0);
    }
}
