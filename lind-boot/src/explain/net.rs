//! Which calls the net grate looks at, by its rules. What it may do with each it declares.

use std::path::Path;

use lind_abi::Syscall;
use toml::de::{DeTable, DeValue};

use super::narrow::{Known, Says, text_of};
use super::options::Given;
use super::sources::{NET, rows_in};

/// What rules make necessary to look at.
#[derive(Default, PartialEq, Debug)]
struct Need {
    /// Some rule has a host's name: answers of resolvers are read.
    names: bool,
    /// Datagrams may come, and where from is looked at.
    datagrams: bool,
}

/// What the options say.
pub fn read(given: &[Given], root: &Path) -> Known {
    let mut need = Need::default();
    for (name, value) in given {
        match *name {
            "allow" | "deny" | "redirect" => need.rule(*name != "deny", value),
            "default" => need.datagrams |= value == "allow",
            "config" => match text_of(value, root).and_then(|text| need.file(&text)) {
                Some(()) => {}
                None => return Known::Unread(value.clone()),
            },
            _ => {}
        }
    }
    let mut says = Says::default();
    let mut add = |list| says.calls.extend(rows_in(&NET, list).map(|row: &Syscall| (row.nr, None)));
    ["run_handlers", "call_handlers", "message_handlers"].into_iter().for_each(&mut add);
    if need.datagrams || need.names {
        add("datagram_handlers");
    }
    if need.names {
        add("name_handlers");
    }
    Known::Says(says)
}

impl Need {
    fn rule(&mut self, allows: bool, text: &str) {
        let words: Vec<_> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let is_protocol = |word: &str| word.split(',').all(|one| matches!(one, "tcp" | "udp" | "icmp" | "unix"));
        let protocols = words.get(1).copied().filter(|word| is_protocol(word));
        let Some(target) = words.get(1 + usize::from(protocols.is_some())) else { return };
        let of_unix = target.starts_with("unix:");
        let udp = protocols.is_none_or(|list| list.split(',').any(|one| matches!(one, "udp" | "icmp")));
        self.datagrams |= allows && udp && !of_unix;
        let ends_in_digit = target.ends_with(|c: char| c.is_ascii_digit());
        self.names |= *target != "*" && !of_unix && !target.contains(['/', ':']) && !ends_in_digit;
    }

    /// None if something there is not understood.
    fn file(&mut self, text: &str) -> Option<()> {
        let file = DeTable::parse(text).ok()?;
        let Some(rules) = file.get_ref().get("rule") else { return Some(()) };
        let DeValue::Array(rules) = rules.get_ref() else { return None };
        for rule in rules.iter() {
            let DeValue::Table(rule) = rule.get_ref() else { return None };
            for (key, text) in rule.iter() {
                self.rule(key.get_ref() != "deny", text.get_ref().as_str()?);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_what_is_looked_at() {
        for (allows, text, names, datagrams) in [
            (true, "out 10.0.0.1 80", false, true),
            (true, "out tcp 10.0.0.1", false, false),
            (false, "out *", false, false),
            (true, "out tcp example.org 443", true, false),
            (true, "any unix:/run/*", false, false),
            (true, "any *", false, true),
            (true, "in tcp,udp ::1 53", false, true),
        ] {
            let mut need = Need::default();
            need.rule(allows, text);
            assert_eq!(need, Need { names, datagrams }, "{text}");
        }
    }
}
